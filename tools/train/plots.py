"""Expands the hand-written plots of plots/*.txt into stories together with the facts about them.

A plot is a list of beats. A beat is a line of alternatives separated by ' | '; '*' before it marks the core, which a
shortened version keeps; '?' marks a beat that is left out half of the time. '[a/b]' chooses, '{slot}' is filled in;
'&' marks a core beat that takes the same alternative as the beat before it; '{slot^}' is a slot with a capital,
'{macro}' one of plots/macros.txt. 'ask:' lines say what a request for this story may ask for, 'Q:' lines are questions
that the story answers. Tables ('[table x]') give a plot columns {1}, {2}, ...
"""
import glob
import os
import random
import re

import words
from words import HERE, article

BABY = re.compile(r'baby|cub|kitten|puppy|chick|duckling|calf|foal|lamb|fawn|piglet|tadpole|girl|boy|prince')
GRAND = re.compile(r'giant|whale|elephant|mammoth|king|queen|grand')
PAST = {'shares': 'shared', 'is': 'was', 'tells': 'told', 'talks': 'talked', 'says': 'said', 'thinks': 'thought',
        'breaks': 'broke', 'eats': 'ate', 'hates': 'hated', 'loves': 'loved', 'sleeps': 'slept', 'listens': 'listened', 'smiles': 'smiled',
        'laughs': 'laughed', 'wants': 'wanted', 'forgets': 'forgot', 'plays': 'played', 'washes': 'washed', 'cleans': 'cleaned'}
# Parts of made-up names and beings. A user who asks for an invented hero wants exactly that one, so the model has to learn to
# copy what it was asked for rather than to choose from a list.
FIRST = 'b br ch d dr f fl fr g gl gr h j k kl l m n p pl qu r s sh sk sn t th tr v w y z'.split()
MIDDLE = 'a e i o u ai ee oo ou a e i o u'.split()
LAST = 'b bb bo ck d den do ff g ggle k l la le lin ll lo ly m mble mo n na nd ndo ng nk no nny p ppo r ra rin ro rt sh t ta to vo x zi zle'.split()
# Words that the parts above must not form.
RUDE = re.compile(r'fu[ck]|sh[ie]+t|dic?k|c[ou]+[cn]|k[oiu]+[ck]|fag|n[ie]+g|tit|slu|who|ra?pe?|pu[sz]|pis|sex|bi[tc]|boob|bra|cum|kum|ho+mo|wan[kg]|'
                  r'poo|pee|pen|na[zt]|dy|gook|spi|tw|slo|an[ua]l|d[ea]+d|kil|di[e]|hel+$|dam|go+d|dum|fat|gay|je[ws]|ara?b|mo+r|r?ape|queer|kl[ua]')
HERO_CLASSES = ['small', 'wear', 'toy', 'food', 'plant']
LOOKS = words.COLORS + ['striped', 'spotted', 'flying', 'talking', 'invisible', 'magic', 'fluffy', 'round', 'wooden', 'paper', 'snowy',
                        'singing', 'dancing', 'giant', 'clumsy', 'forgetful', 'wild', 'lost', 'one-eyed', 'sparkling', 'rainbow']
GENERAL = [words.KIND_NOUNS] + [t[g] for t in (words.THINGS, words.MORE_THINGS) for g in ('small', 'toy', 'big', 'food', 'nature')]
PRONOUNS = {'he': ('he', 'him', 'his', 'himself'), 'she': ('she', 'her', 'her', 'herself')}


class Plot:
    def __init__(self, name, table):
        self.name, self.table, self.asks, self.beats, self.qa = name, table, [], [], []
        self.things, self.trait = [], None


class Story:
    """text, short (the core beats), what follows, and facts: kind, name, kind2, thing, trait, asks, qa."""


def load():
    macros, tables, plots = {}, {}, []
    for path in sorted(glob.glob(os.path.join(HERE, 'plots', '*.txt'))):
        mode, target, table = None, None, None
        for line in open(path, encoding='utf-8'):
            line = line.rstrip('\n')
            if line.startswith('#'):
                continue
            head = re.fullmatch(r'\[(table )?(\w+)\]', line)
            if head:
                target = []
                (tables if head[1] else macros)[head[2]] = target
                mode, table = ('table', target) if head[1] else ('macro', table)
            elif line.startswith('plot '):
                plots.append(Plot(line[5:].strip(), table))
                mode = 'plot'
            elif mode == 'macro':
                if line.strip():
                    target.append(line)
            elif mode == 'table':
                if line.strip():
                    target.append([c.strip() for c in line.split('|')])
            elif mode == 'plot':
                add_line(plots[-1], line)
    for p in plots:
        if p.table is not None and not any('{1' in text for x in p.beats if x for text in x[1]):
            p.table = None
    return plots, macros


def add_line(plot, line):
    if line.startswith('thing:'):
        plot.things = line[6:].split()
    elif line.startswith('trait:'):
        plot.trait = line[6:].strip()
    elif line.startswith('ask:'):
        plot.asks.append(line[4:].strip())
    elif line.startswith('pal:'):
        pass
    elif line.startswith('Q:'):
        q, a = line[2:].split('=>')
        plot.qa.append(([x.strip() for x in q.split('|')], [x.strip() for x in a.split(' | ')]))
    elif not line.strip():
        plot.beats.append(None)
    else:
        choices = [x.strip().lstrip('*?&').strip() for x in line.split(' | ')]
        plot.beats.append((line[0], choices))


def capital(s):
    return s[:1].upper() + s[1:]


def join_beats(beats):
    """One paragraph; a new speaker right after another one starts a new line."""
    out = beats[0] if beats else ''
    for b in beats[1:]:
        out += ('\n' if out.endswith('"') and b.startswith('"') else ' ') + b
    return out


class Teller:
    def __init__(self, rng):
        self.rng = rng
        self.wide = True   # also kinds and things of the longer lists
        self.plots, self.macros = load()
        # A plot with things or a table covers many subjects, so it is told more often.
        self.weighted = self.plots + [p for p in self.plots if p.things or p.table]

    def pick(self, xs):
        return xs[int(self.rng.random() * len(xs))]

    def invented(self):
        """A word that is in no dictionary, such as 'snoggle'; it starts with a consonant."""
        while True:
            out = self.pick(FIRST) + self.pick(MIDDLE) + self.pick(LAST)
            if self.rng.random() < 0.4 or len(out) < 4:
                out = self.pick(FIRST) + self.pick(MIDDLE) + out
            if not RUDE.search(out):
                return out

    def unusual(self):
        """A hero from outside the lists: an object that is alive, a made-up being, or one with a special look."""
        x = self.rng.random()
        if x < 0.35:
            return self.pick(words.THINGS[self.pick(HERO_CLASSES)])
        if x < 0.6:
            return self.invented()
        return self.pick(LOOKS) + ' ' + self.pick(words.POPULAR if x < 0.8 else words.KIND_NOUNS)

    def cast(self, plot, kind=None, thing=None, name=None, kind2=None, odd=False):
        """The slots that stay the same through the whole story. kind, thing, name, kind2 force a choice. odd also takes
        unusual and made-up ones now and then; self.odd then lists what a request has to name."""
        r, s = self.rng, {}
        self.odd = []
        habitat = self.pick(words.HABITATS)
        x = r.random()
        if not kind and x < 0.30:
            kind = self.pick(words.POPULAR)
        elif not kind and odd and x < 0.40:
            kind = self.unusual()
            self.odd.append(kind)
        if kind:
            known = kind.split()[-1] if kind.split()[0] in LOOKS else kind
            homes = [h for h in words.HABITATS if known in [k[0] for k in h.kinds]] or \
                    [h for h in words.HABITATS if h.name in ('town', 'workshop', 'forest', 'garden', 'farm')]
            habitat = self.pick(homes)
            noun, gender, little = kind, *next((k[1:] for k in habitat.kinds if k[0] == known), (None, True))
        else:
            noun, gender, little = self.pick(habitat.kinds + (habitat.more if self.wide and x > 0.6 else []))
        nouns = [k for k in habitat.kinds if k[0] != noun]
        far = self.pick(words.HABITATS)
        while far.name in ('sea', 'pond') and habitat.name not in ('sea', 'pond', 'shore') and r.random() < 0.9:
            far = self.pick(words.HABITATS)
        pal = self.pick(nouns if r.random() < 0.6 else [k for k in far.kinds + (far.more if self.wide else []) if k[0] != noun])
        if odd and r.random() < 0.06:
            pal = (self.unusual(), None, True)
            self.odd.append(pal[0])
        if kind2:
            pal = (kind2, None, True)
        rest = [k for k in nouns if k[0] != pal[0] and not re.search(r'girl|boy', k[0])]
        h, h2 = r.sample(rest, 2)
        gender = gender or words.ALL_GENDER.get(name) or self.pick(['he', 'she'])
        g2 = pal[1] or self.pick(['he', 'she'])
        spots = r.sample(habitat.spots, 3)
        s['k'], s['ak'], s['k2'], s['ak2'] = noun, article(noun), pal[0], article(pal[0])
        s['h'], s['ah'], s['h2'], s['ah2'] = h[0], article(h[0]), h2[0], article(h2[0])
        s['hishelper'] = {'he': 'his', 'she': 'her'}[h[1] or self.pick(['he', 'she'])]
        s['home'], s['spot'], s['spot2'], s['spot3'] = self.pick(habitat.home), *spots
        s['color'], s['food'] = self.pick(words.COLORS), self.pick(words.FOODS)
        for suffix, g in (('', gender), ('2', g2)):
            for slot, word in zip(('he', 'him', 'his', 'himself'), PRONOUNS[g]):
                s[slot + suffix], s[capital(slot) + suffix] = word, capital(word)
        traits = [t for t in words.TRAITS if (little or t not in ('small', 'young', 'tiny', 'little'))
                  and not (t == 'old' and BABY.search(noun)) and not (t in ('small', 'tiny', 'little') and GRAND.search(noun))]
        s['tr'] = self.pick(plot.trait.split('/')) if plot.trait else self.pick(traits)
        s['tr2'] = self.pick([t for t in traits if t != s['tr']])
        s['atr'] = article(s['tr'])
        names = words.ALL_NAMES if self.wide and r.random() < 0.35 else words.NAMES
        s['n0'] = name or self.pick(names[gender])
        if odd and not name and r.random() < 0.12:
            s['n0'] = capital(self.invented())
            self.odd.append(s['n0'])
        s['n20'] = self.pick([n for n in words.NAMES[g2] if n != s['n0']])
        self.named = bool(name) or s['n0'] in self.odd or r.random() < 0.82
        s['n'] = s['n0call'] = s['n0'] if self.named else 'the ' + noun
        s['n2'] = s['n20'] if self.named else 'the ' + pal[0]
        # For table rows that fit everything.
        s['x'] = self.pick([x for x in self.pick(GENERAL) if x not in words.MASS and x != noun])
        s['ax'], s['xs'] = article(s['x']), words.plural(s['x'])
        s['y'] = self.pick((words.MORE_THINGS if r.random() < 0.4 else words.THINGS)[self.pick(['toy', 'big'])])
        s['z'] = self.pick((words.MORE_THINGS if r.random() < 0.4 else words.THINGS)[self.pick(['small', 'wear', 'toy'])])
        s['az'], s['zs'] = article(s['z']), words.plural(s['z'])
        s['fs'] = words.plural(self.pick([x for x in words.THINGS['food'] + words.MORE_THINGS['food'] if x not in words.MASS]))
        s['v'], s['job'] = self.pick(words.VERBS), self.pick(words.JOBS)
        s['ay'], s['ajob'] = article(s['y']), article(s['job'])
        if plot.things:
            group = self.pick(plot.things)
            x = r.random() if self.wide else 1
            t = thing or self.pick((words.MORE_THINGS if x < 0.3 else words.THINGS)[group])
            if odd and not thing and x < 0.03 and group in ('small', 'toy', 'strange'):
                t = self.invented()
                self.odd.append(t)
            s['t'], s['at'] = t, article(t)
        if plot.table:
            general = [row for row in plot.table if re.search(r'\{(ax|xs?|[az]?z|zs|fs|v|a?job|ay)\}', row[0])]
            use_general = odd and r.random() < 0.4
            row = self.pick([row for row in plot.table if (row in general) == use_general])
            for i, cell in enumerate(row):
                s[str(i + 1)] = re.sub(r'\[([^\]]+)\]', lambda m: self.pick(m[1].split('/')), cell)
            if use_general:
                self.odd.append(self.fill(s['1'], s))
            s['1past'] = ' '.join(PAST.get(w, w) for w in s['1'].split())
        return s

    def fill(self, text, s, depth=0):
        def slot(m):
            key = m[1]
            up, key = key.endswith('^'), key.rstrip('^')
            low, key = key.endswith(','), key.rstrip(',')
            if key in ('m', 'M'):
                out = s['n0'] if self.named and self.rng.random() < 0.62 else 'the ' + s['k']
                up = up or key == 'M'
            elif key in ('p', 'P'):
                out = s['n20'] if self.named and self.rng.random() < 0.62 else 'the ' + s['k2']
                up = up or key == 'P'
            elif key in s:
                out = self.fill(s[key], s, depth + 1) if key[0].isdigit() else s[key]
            elif key in self.macros:
                if key in ('intro', 'intro2') and not self.named:
                    key += '_unnamed'
                out = self.fill(self.pick(self.macros[key]), s, depth + 1)
            else:
                raise KeyError(f'{{{m[1]}}} in: {text}')
            if low:
                out = out[:1].lower() + out[1:]
            return capital(out) if up else out
        text = re.sub(r'\[([^\]]+)\]', lambda m: self.pick(m[1].split('/')), text)
        return re.sub(r'\{([^{}]+)\}', slot, text)

    def tidy(self, text):
        text = re.sub(r' +', ' ', text)
        text = re.sub(r'([.!?])\1+', r'\1', text)
        text = re.sub(r'(^|[.!?] +|\n)("?)([a-z])', lambda m: m[1] + m[2] + m[3].upper(), text)
        text = re.sub(r'([a-z])"\.', r'\1."', text)
        text = re.sub(r'([.!?])"\.', r'\1"', text)
        return re.sub(r'([a-z])\.,', r'\1,', text).strip()

    def tell(self, plot=None, **force):
        plot = plot or self.pick(self.weighted)
        s = self.cast(plot, **force)
        paragraphs, core, index = [[]], [], 0
        for beat in plot.beats:
            if beat is None:
                if paragraphs[-1]:
                    paragraphs.append([])
                continue
            mark, choices = beat
            if mark == '?' and self.rng.random() < 0.5:
                continue
            if mark != '&':
                index = int(self.rng.random() * len(choices))
            text = self.fill(choices[index], s)
            paragraphs[-1].append(text)
            if mark in '*&':
                core.append(text)
        out = Story()
        out.text = '\n'.join(self.tidy(join_beats(p)) for p in paragraphs if p)
        out.short = self.tidy(join_beats(core))
        out.next = self.tidy(self.fill(self.pick(self.macros['next_story']), s))
        out.plot, out.kind, out.kind2 = plot.name, s['k'], s['k2']
        out.thing = s.get('t')
        out.trait = s['tr']
        out.name = s['n0'] if self.named else None
        out.name2 = s['n20'] if self.named and s['n20'] in out.text else None
        out.odd = self.odd
        out.he, out.his = s['he'], s['his']
        out.asks = [self.fill(a, s).replace('and some ', 'and ') for a in plot.asks]
        out.qa = []
        for qs, answers in plot.qa:
            # A question is only asked when the alternatives that were chosen really answer it.
            used = re.findall(r'\{(food|color|spot\d?|h2?|t|n20|k2)\}', ' '.join(answers))
            if any(s[u] not in out.text for u in used if u in s):
                continue
            out.qa.append((self.tidy(self.fill(self.pick(qs), s)), self.tidy(self.fill(self.pick(answers), s))))
        if out.name:
            out.qa.append((f"What was the {out.kind}'s name?", f"The {out.kind}'s name was {out.name}."))
        return out


if __name__ == '__main__':
    import sys
    teller = Teller(random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
    for p in teller.plots:
        st = teller.tell(p)
        print('#', st.plot, st.asks, '\n' + st.text, '\n--', st.short, '\n--', st.next, '\n', st.qa, '\n')
