"""Tells many stories of every plot and looks for broken slots, quotes, articles and questions. Needs nothing but Python.

usage: check_plots.py [STORIES_PER_PLOT]
"""
import random
import re
import sys

import examples

BAD = [('a slot is left', r'[{}\[\]|^]'), ('two spaces', r'  '), ('space before a stop', r' [.,!?]'),
       ('wrong article', r'\b[Aa] (?!uni|one\b|honest)[aeiou]\w+|\b[Aa]n (?!hour|honest)[b-df-hj-np-tv-z]\w+'),
       ('small letter after a stop', r'[a-z][.!?] [a-z]'), ('doubled word', r'\b(the|a|to|and|was|of) \1\b')]


def problem(text):
    for what, pattern in BAD:
        if re.search(pattern, text):
            return what
    if any(p.count('"') % 2 for p in text.split('\n')):
        return 'open quote'
    return None if text[-1] in '.!?"' and text.isascii() else 'bad end'


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    maker = examples.Maker(random.Random(1))
    failed = 0
    for p in maker.teller.plots:
        found = None
        for _ in range(count):
            st = maker.teller.tell(p, odd=True)
            found = next((f'{problem(t)}: {t}' for t in [st.text, st.short, st.next] + [x for qa in st.qa for x in qa] if problem(t)), None)
            if not found and st.name and st.name not in st.text:
                found = f'the name {st.name} is missing: {st.text}'
            if not found and not any(st.kind in ask for ask in st.asks) and 'two friends' not in ' '.join(st.asks):
                found = f'no request names the {st.kind}: {st.asks}'
            if found:
                break
        failed += found is not None
        if found:
            print(f'plot {p.name}: {found}')
    talk = [t for _ in range(count * 10) for role, t in maker.talk() if role == 'assistant']
    bad = [t for t in talk if '{' in t or any(p.count('"') % 2 for p in t.split('\n'))]
    if bad:
        print('small talk:', bad[0])
    failed += bool(bad)
    print(f'{len(maker.teller.plots) + 1 - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
