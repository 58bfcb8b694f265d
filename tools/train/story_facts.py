"""How a sampled story ends, as far as a program can tell."""
import re

import story_filter

HAPPY = re.compile(r'\b(happy|happily|smil\w+|friends?|laugh\w*|fun|loved?|proud|hugged|together|safe|glad|best)\b')
SAD = re.compile(r'\b(sad|cried|cry|alone|never (?:saw|found|came)|lost|sorry|gone|disappointed|upset)\b')


def ends_well(text):
    tail = ' '.join(story_filter.sentences(text)[-3:]).lower()
    return len(HAPPY.findall(tail)) >= 2 and not SAD.search(tail)
