"""Cleans one sampled story; if it is rejected, says why.

The sampled stories come from a model of 15M parameters: many of them loop, mix up names and pronouns, slip into another
narrator or lose their subject. The checks are cheap and strict; two thirds of the stories may go.
"""
import re
from collections import Counter

import words

QUOTES = str.maketrans({'\u201c': '"', '\u201d': '"', '\u2018': "'", '\u2019': "'", '\u2013': '-', '\u2014': '-',
                        '\u2026': '...', '\u00a0': ' ', '`': "'", '\u00e9': 'e', '\u00b4': "'"})
# Words that a gentle storyteller leaves out, and words of a text that talks about itself.
UNWANTED = re.compile(
    r'\b(kill\w*|dead|die[ds]?|dying|death|blood\w*|guns?|shoot\w*|shot|knife|knives|drunk|beer|wine|alcohol|cigar\w*|'
    r'smok(e|ed|ing)|hate[ds]?|stupid|idiot|dumb|fat|ugly|naked|kiss\w*|marry|married|wedding|steal|stole|stolen|thief|'
    r'robber\w*|jail|prison|police|bomb\w*|poison\w*|suicid\w*|hell|damn|god|jesus|church|pray\w*|slave\w*|savage\w*|'
    r'negro\w*|gyps\w*|indian\w*|drown\w*|bleed\w*|bled|murder\w*|hang(ed|ing) (him|her)self|hospital|'
    r'once upon a time,? once|the story|this story|bad ending|happy ending|the moral|the lesson|summary|chapter|'
    r'sentence|paragraph|features|tinystor\w*|opera|gain(ed|s)? (a|the|an)|bikini|sexy|attractive|compromise)\b', re.I)
# A first-person narrator outside of direct speech.
FIRST_PERSON = re.compile(r"\b(I|I'm|I'll|I've|I'd|me|my|mine|myself|we|we're|our|ours|us|ourselves|you|your|yours)\b")
BAD_ARTICLE = re.compile(r"\b[Aa]n (?!(?:hour|honest|honor|heir)\w*)[b-df-hj-np-tv-z]\w*|"
                         r"\b[Aa] (?!(?:one|once|un[ip]\w*|us[eu]\w*|eu\w*|uk\w*)\b)[aeio]\w+")
DOUBLED = re.compile(r"\b(?!had\b|that\b|very\b|so\b|no\b|bye\b|knock\b|ha\b|tick\b|long\b|really\b|up\b|round\b|walked\b|"
                     r"searched\b|ran\b|jumped\b|looked\b|worked\b|played\b|drove\b|swam\b|flew\b|dug\b|tried\b)"
                     r"(\w+)(?: and (?:the )?| or | to the |,? )\1\b", re.I)
MALE = re.compile(r'\b(boys?|man|men|dad\w*|daddy|father|brothers?|king|prince|grandpa|uncle|son|mr|sir|husband|wizard)\b', re.I)
FEMALE = re.compile(r'\b(girls?|woman|women|mom\w*|mommy|mother|sisters?|queen|princess|grandma|aunt|daughter|mrs|miss|'
                    r'lady|wife|witch|mermaid|fairy)\b', re.I)
HE = re.compile(r'\b(he|him|his|himself)\b', re.I)
SHE = re.compile(r'\b(she|her|hers|herself)\b', re.I)
SENTENCE = re.compile(r'[^.!?]+[.!?]+["\')]*\s*')
NOT_NAMES = set('I Once One The A An He She They It His Her Their But And So Then When Suddenly After From Mom Dad Mommy Daddy '
                'Grandma Grandpa Mr Mrs Miss Every Everyone In At On As That This There Soon Finally Just Now Yes No Hello Hi '
                'Oh Wow Thank Thanks Please Let Look What Why How Where Who Can You We My Your If Some Each All Both Even '
                'Before Next Later Today Tomorrow Do Did Is Are Was Were Maybe Don Come Go Here Hey Well Okay Ok Good Sure '
                'With Without Inside Outside Mama Papa Momma Nana Auntie Uncle Aunt Granny Christmas Halloween Easter '
                'Monday Tuesday Wednesday Thursday Friday Saturday Sunday Help Stop I\'m Not Never Always Goodbye Bye'.split())
TAIL = re.compile(r"\s*(The end\.?|The End\.?|And that('s| is| was) (the end|how)[^.]*\.|The moral of the story[^.]*\.[^\n]*|"
                  r"The lesson[^.]*\.)\s*$")


def normalize(text):
    text = text.translate(QUOTES).replace('\\n', '\n')
    text = re.sub(r'[ \t]+', ' ', text)
    text = re.sub(r'\s*\n\s*', '\n', text).strip()
    text = re.sub(r'\.{4,}', '...', text)
    for _ in range(2):
        text = TAIL.sub('', text).strip()
    return text


def sentences(text):
    return [s.strip() for s in SENTENCE.findall(text.replace('\n', ' '))]


def narration(text):
    """The text without its quoted speech."""
    return re.sub(r'"[^"]*"', '""', text)


def name_counts(text):
    """Capitalized words that are neither sentence openers nor titles, and known names anywhere."""
    out = Counter()
    for m in re.finditer(r"[A-Z][a-z]+", text):
        w = m[0]
        if w in NOT_NAMES:
            continue
        before = text[:m.start()].rstrip(' "')
        inside = before and before[-1] not in '.!?\n:' and text[m.start() - 1] != '\n'
        if inside or w in words.GENDER:
            out[w] += 1
    return out


def refuse(text, opening=''):
    """A reason for rejecting the story, or None. text is normalized."""
    if not 260 <= len(text) <= 1150:
        return 'length'
    if not text.isascii():
        return 'not ascii'
    if text[-1] not in '.!?"' or (text[-1] == '"' and text[-2] not in '.!?'):
        return 'cut'
    for p in text.split('\n'):
        if p.count('"') % 2:
            return 'quotes'
        if not p or p[0].islower() or re.search(r'[.!?] +[a-z]', narration(p).replace('""', '"')):
            return 'lower-case start'
    if UNWANTED.search(text):
        return 'unwanted'
    told = narration(text)
    if FIRST_PERSON.search(told):
        return 'narrator'
    if BAD_ARTICLE.search(text) or DOUBLED.search(told) or re.search(r'\s[,.!?]|[a-z][.!?][a-zA-Z]|,,|\.,|[#@*_<>{}\[\]|\\/=+~^$%&]', text):
        return 'grammar'
    return refuse_loops(text) or refuse_cast(text, told) or refuse_drift(text, opening)


def refuse_loops(text):
    ss = sentences(text)
    if not 5 <= len(ss) <= 32 or max(map(len, ss)) > 260:
        return 'sentences'
    low = [re.sub(r'[^a-z ]', '', s.lower()) for s in ss]
    seen = Counter(s for s in low if s.count(' ') >= 2)
    if seen and max(seen.values()) > 1:
        return 'repeated sentence'
    starts = [' '.join(s.split()[:3]) for s in low]
    if max(Counter(starts).values()) > max(3, len(ss) // 4) or any(a == b == c for a, b, c in zip(starts, starts[1:], starts[2:])):
        return 'repeated start'
    w = re.findall(r"[a-z']+", text.lower())
    for n, most in ((4, 3), (6, 2), (9, 1)):
        grams = Counter(zip(*[w[i:] for i in range(n)]))
        if grams and max(grams.values()) > most:
            return 'repeated phrase'
    if len(set(w)) / len(w) < 0.37:
        return 'few words'
    return None


def refuse_cast(text, told):
    names = name_counts(text)
    if len(names) > 4:
        return 'many names'
    ordered = sorted(names)
    for a, b in zip(ordered, ordered[1:]):
        if b.startswith(a) or (len(a) > 3 and a[:4] == b[:4]):
            return 'name changes'
    for n in names:
        if names[n] == 1 and n not in words.GENDER:
            return 'stray name'
        if re.search(r'\b' + n.lower() + r'\b', text) and n.lower() not in ('daisy', 'rose', 'ruby', 'ivy', 'hazel', 'may',
                                                                        'robin', 'pearl', 'olive', 'violet', 'max', 'sue'):
            return 'name in lower case'
    genders = {words.GENDER.get(n) for n in names}
    he, she = len(HE.findall(told)), len(SHE.findall(told))
    if names and None not in genders and len(genders) == 1:
        if genders == {'she'} and he and not MALE.search(text) and not re.search(r'\b(friend|bird|dog|cat|bear|animal)', text):
            return 'pronoun'
        if genders == {'he'} and she and not FEMALE.search(text) and not re.search(r'\b(friend|bird|dog|cat|bear|animal)', text):
            return 'pronoun'
    top = names.most_common(1)
    if top and words.GENDER.get(top[0][0]):
        # The hero's first pronoun has to fit the hero's name.
        m = re.search(r'\b' + top[0][0] + r'\b[^.!?]*[.!?]? (?:[^.!?]*?\b)?(he|she|He|She)\b', told)
        if m and m[1].lower() != words.GENDER[top[0][0]] and len(names) == 1:
            return 'pronoun'
    if not names and he and she and min(he, she) > 1 and not MALE.search(text) and not FEMALE.search(text):
        if len(animals(text)) < 2:
            return 'pronoun'
    if not names and re.search(r'\bits?\b', told) and he + she > 2 and len(re.findall(r'\bit\b', told)) > he + she:
        return 'pronoun'
    return None


KINDS = re.compile(r'\b(' + '|'.join(sorted(map(re.escape, words.KIND_NOUNS), key=len, reverse=True)) + r')s?\b')
THINGS = re.compile(r'\b(' + '|'.join(sorted(map(re.escape, words.THING_NOUNS), key=len, reverse=True)) + r')s?\b')


def animals(text):
    return Counter(KINDS.findall(text.lower()))


def things(text):
    return Counter(THINGS.findall(text.lower()))


def refuse_drift(text, opening):
    """Checks that the subject of the opening comes up again near the end."""
    second = text[len(text) * 45 // 100:]
    if opening:
        names = [n for n in re.findall(r'[A-Z][a-z]+', opening) if n in words.GENDER]
        kinds = list(animals(opening))
        if names and not any(n in second for n in names):
            return 'subject lost'
        if not names and kinds and not any(re.search(r'\b' + k + r's?\b', second) for k in kinds):
            return 'subject lost'
        # The first animal of the opening has to occur three times.
        if kinds and not names and animals(text)[kinds[0]] < 3:
            return 'subject lost'
        for t in things(opening):
            if things(text)[t] < 2:
                return 'thing lost'
    else:
        names = name_counts(text).most_common(1)
        kinds = animals(text).most_common(1)
        if not (names and names[0][1] >= 3 and names[0][0] in second) and not (kinds and kinds[0][1] >= 3 and kinds[0][0] in second):
            return 'no subject'
    return None
