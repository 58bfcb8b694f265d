"""The word lists of words/*.txt as plain Python values."""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
MASS = {'soup', 'popcorn', 'cheese', 'spaghetti', 'lemonade', 'ice cream', 'salad', 'rain', 'fog', 'ice', 'fire',
        'wind', 'autumn', 'winter', 'spring', 'summer', 'night', 'sea', 'sun', 'moon', 'lightning', 'thunder', 'sunshine', 'snow', 'mist',
        'frost', 'sky', 'dawn', 'bamboo', 'moss', 'lavender', 'candy'}
# The kinds that people ask for most.
POPULAR = ('girl boy dog cat rabbit fox bear dragon princess prince robot mouse owl lion elephant penguin unicorn dinosaur horse '
           'pirate king queen wizard witch knight monkey frog duck fish whale bird mermaid turtle puppy kitten bee ghost spider '
           'butterfly squirrel wolf cow pig tiger astronaut').split()
COLORS = ['red', 'blue', 'green', 'yellow', 'purple', 'orange', 'silver', 'golden', 'pink', 'white']


def lines(name):
    with open(os.path.join(HERE, name), encoding='utf-8') as f:
        return [line.rstrip('\n') for line in f if line.strip() and not line.startswith('#')]


def article(noun):
    """'a fox', 'an owl', 'some soup'."""
    if noun in MASS:
        return 'some ' + noun
    if re.match(r'(unicorn|uni|one|use|ukulele)', noun):
        return 'a ' + noun
    return ('an ' if noun[0] in 'aeiouAEIOU' or noun.startswith(('honest', 'hour')) else 'a ') + noun


PLURALS = {'mouse': 'mice', 'goose': 'geese', 'wolf': 'wolves', 'sheep': 'sheep', 'fish': 'fish', 'deer': 'deer', 'man': 'men',
           'woman': 'women', 'child': 'children', 'leaf': 'leaves', 'elf': 'elves', 'calf': 'calves', 'knife': 'knives', 'ox': 'oxen',
           'loaf': 'loaves', 'shelf': 'shelves', 'scarf': 'scarves', 'dwarf': 'dwarves', 'fisherman': 'fishermen', 'snowman': 'snowmen',
           'potato': 'potatoes', 'tomato': 'tomatoes', 'hero': 'heroes', 'mosquito': 'mosquitoes'}


def plural(noun):
    head, _, last = noun.rpartition(' ')
    if ' of ' in noun:
        head, last = '', noun.split(' of ')[0]
        return plural(last) + noun[len(last):]
    if last not in PLURALS:
        last = last[:-1] + 'ies' if re.search(r'[^aeiou]y$', last) else last + ('es' if re.search(r'(s|x|ch|sh|z)$', last) else 's')
    return (head + ' ' + PLURALS.get(last, last)).strip()


class Habitat:
    def __init__(self, name):
        self.name, self.home, self.spots, self.kinds, self.more = name, [], [], [], []


def load_habitats():
    """List of Habitat; a kind is (noun, gender or None, may be called little); `more` are kinds for the plots alone."""
    out = []
    for line in lines('words/kinds.txt'):
        if line.startswith('['):
            out.append(Habitat(line.strip('[]')))
            continue
        key, rest = line.split(':', 1)
        if key == 'kinds':
            out[-1].kinds = read_kinds(rest)
        else:
            setattr(out[-1], key, [x.strip() for x in rest.split(';') if x.strip()])
    for line in lines('words/more_kinds.txt'):
        key, rest = line.split(':', 1)
        next(h for h in out if h.name == key).more = read_kinds(rest)
    return out


def read_kinds(text):
    out = []
    for x in (x.strip() for x in text.split(';') if x.strip()):
        noun, _, gender = x.lstrip('*').partition('=')
        out.append((noun, gender or None, not x.startswith('*')))
    return out


def load_things(name):
    return {key: [x.strip() for x in rest.split(';') if x.strip()] for key, rest in (line.split(':', 1) for line in lines(name))}


def load_names(name):
    """{'she': [...], 'he': [...]}"""
    return {key: rest.split() for key, rest in (line.split(':', 1) for line in lines(name))}


HABITATS = load_habitats()
THINGS = load_things('words/things.txt')
MORE_THINGS = load_things('words/more_things.txt')
NAMES = load_names('words/names.txt')
MORE_NAMES = load_names('words/more_names.txt')
VERBS, JOBS = ([x.strip() for x in line.split(';')] for line in lines('words/verbs.txt'))
TRAITS = lines('words/traits.txt')[0].split()
FOODS = [x.strip() for x in lines('words/foods.txt')[0].split(';')]
KIND_NOUNS = sorted({k[0] for h in HABITATS for k in h.kinds})
THING_NOUNS = sorted({t for v in THINGS.values() for t in v})
GENDER = {n: g for g in ('she', 'he') for n in NAMES[g]}
ALL_NAMES = {g: NAMES[g] + MORE_NAMES[g] for g in ('she', 'he')}
ALL_GENDER = {n: g for g in ('she', 'he') for n in ALL_NAMES[g]}
