"""Makes the training data: filtered stories, chat-form examples, small talk.

usage: make_data.py --corpus DIR --out DIR [--more more.tsv ...] [--plots 800000] [--limit N] [--jobs N]
Reads stories.tsv.xz, african_storybook.txt.xz and fairytaleqa.jsonl.xz of the corpus, and what sample_more.py wrote.
Writes train-*.jsonl and valid.jsonl (an example is a list of [role, text]; role "text" is plain text without chat),
held_out.txt (sampled stories that are not trained on, separated by a line <|story|>), held_out_told.txt (the same from the
plots) and stats.json.
"""
import argparse
import json
import lzma
import os
import random
import re
import time
import zlib
from collections import Counter
from multiprocessing import Pool

import examples
import story_filter
import words

SKETCH = 8         # smallest shingle hashes kept of a story
SAME = 3           # this many in common: a near duplicate
RARE = 6           # a word in fewer stories than this is taken for gibberish
SHARDS = 32
COMMON_NAMES = {'Lily': 'she', 'Timmy': 'he', 'Tim': 'he', 'Tom': 'he', 'Ben': 'he', 'Sue': 'she', 'Mia': 'she', 'Max': 'he',
                'Lucy': 'she', 'Sam': 'he', 'Anna': 'she', 'Jack': 'he', 'Bob': 'he', 'Billy': 'he', 'Sara': 'she', 'Jane': 'she',
                'Amy': 'she', 'Joe': 'he', 'Tommy': 'he', 'Bobby': 'he', 'Benny': 'he', 'Jimmy': 'he', 'Mary': 'she', 'Sally': 'she',
                'Emma': 'she', 'John': 'he', 'Johnny': 'he', 'Mike': 'he', 'Kitty': 'she', 'Mark': 'he'}
# Most openings of the corpus pair things at random ("a careful pumpkin") and the stories suffer; these ones read well.
# The others are still useful as plain text, for their vocabulary, but never as an answer.
GOOD_OPENING = re.compile(r'Once upon a time, (there was an? (?P<adj>\w+) \w+\.|there was an? \w+ who lived .*|'
                          r'there was an? (?P<who>\w+) named (?P<name>\w+)\.)$')
ADJECTIVES = set('little big small brave shy kind lazy clever silly happy sad lonely old young tiny hungry curious careful gentle '
                 'grumpy proud quiet noisy sleepy tall fast slow'.split())
GENDERED = {'mom': 'she', 'grandma': 'she', 'queen': 'she', 'princess': 'she', 'girl': 'she', 'sister': 'she', 'mermaid': 'she',
            'witch': 'she', 'fairy': 'she', 'dad': 'he', 'grandpa': 'he', 'king': 'he', 'prince': 'he', 'boy': 'he',
            'brother': 'he', 'wizard': 'he', 'policeman': 'he', 'fisherman': 'he', 'twin': 'none', 'baby': 'none'}


def odd(opening):
    """True for openings of the corpus whose subject and situation do not go together."""
    m = GOOD_OPENING.match(opening)
    return bool(opening) and (not m or bool(m['adj'] and m['adj'] not in ADJECTIVES))


def wrong_name(opening):
    """True for "a princess named Ben"."""
    m = GOOD_OPENING.match(opening)
    return bool(m and m['who'] in GENDERED) and words.GENDER.get(m['name']) != GENDERED[m['who']]


def sketch(text):
    w = re.findall(r'[a-z]+', text.lower())
    return sorted({zlib.crc32(' '.join(w[i:i + 5]).encode()) for i in range(len(w) - 4)})[:SKETCH]


def rename(text, opening, rng):
    """Replaces the few names that dominate the sampled stories by others, everywhere in a story."""
    present = [n for n in COMMON_NAMES if re.search(r'\b' + n + r'\b', text)]
    taken = set(re.findall(r'[A-Z][a-z]+', text))
    for n in present:
        if rng.random() < 0.8:
            new = rng.choice([x for x in words.NAMES[COMMON_NAMES[n]] if x not in taken])
            taken.add(new)
            text, opening = (re.sub(r'\b' + n + r'\b', new, t) for t in (text, opening))
    return text, opening


def clean_chunk(task):
    """Lines of a .tsv -> (kept [(opening, text, ask, score, sketch, is odd)], reasons, words)."""
    lines, seed = task
    rng = random.Random(seed)
    kept, reasons, seen = [], Counter(), Counter()
    for line in lines:
        parts = line.rstrip('\n').split('\t')
        opening, text = parts[0], story_filter.normalize(parts[1])
        score, ask = (float(parts[2]), parts[3]) if len(parts) > 3 else (None, '')
        is_odd = score is None and odd(opening)
        reason = None
        if score is None:
            reason = 'wrong name' if wrong_name(opening) else story_filter.refuse(text, opening)
        reasons[reason or ('kept, odd opening' if is_odd else 'kept')] += 1
        if reason:
            continue
        if not any(n in ask for n in COMMON_NAMES):
            text, opening = rename(text, opening, rng)
        kept.append((opening, text, ask, score, sketch(text), is_odd))
        seen.update({w for w in re.findall(r"[a-z]+(?:'[a-z]+)?", text)})
    return kept, reasons, seen


def without_rare(task):
    stories, rare = task
    return [s for s in stories if not rare.intersection(re.findall(r"[a-z]+(?:'[a-z]+)?", s[1]))]


def read_lines(path, limit):
    f = lzma.open(path, 'rt', encoding='utf-8') if path.endswith('.xz') else open(path, encoding='utf-8')
    with f:
        out = [x for x in f.read().split('\n') if x]
    return out[::max(1, len(out) // limit)] if limit else out


def corpus_path(corpus, name):
    for n in (name + '.xz', name):
        if os.path.exists(os.path.join(corpus, n)):
            return os.path.join(corpus, n)
    raise SystemExit(f'make_data: {name}.xz is missing in {corpus}')


def unique(stories, reasons):
    """Keeps one of each group of near duplicates."""
    index, out = {}, []
    for i, s in enumerate(stories):
        hits = Counter(index[h] for h in s[4] if h in index)
        if hits and hits.most_common(1)[0][1] >= SAME:
            reasons['near duplicate'] += 1
            continue
        for h in s[4]:
            index[h] = i
        out.append(s)
    return out


def african_stories(corpus):
    """Short stories by people (CC-BY), joined lines, only those that read alone and pass the gentler checks."""
    with lzma.open(corpus_path(corpus, 'african_storybook.txt'), 'rt', encoding='utf-8') as f:
        text = f.read()
    out = []
    for s in text.split('<|endofstory|>'):
        title, _, body = s.strip().partition('\n')
        paragraphs = [' '.join(p.split()) for p in re.split(r'\n\s*\n', body) if p.strip()]
        story = story_filter.normalize('\n'.join(paragraphs))
        if 250 < len(story) < 2600 and story.isascii() and story[-1] in '.!?"' and not story_filter.UNWANTED.search(story) \
                and story.count('"') % 2 == 0:
            out.append((title.strip(), story))
    return out


def fairy_pieces(corpus, most=4000):
    """Paragraph groups of fairy tales in plain words, for breadth: no archaic or rough language."""
    old = re.compile(r"\b(thee|thou|thy|hath|doth|ye|quoth|'tis|'twas|whilst|unto|lo|shalt|nay|yonder|wherefore|o'er|ere)\b", re.I)
    out = []
    with lzma.open(corpus_path(corpus, 'fairytaleqa.jsonl'), 'rt', encoding='utf-8') as f:
        for line in f:
            story = story_filter.normalize(json.loads(line)['story'])
            piece = ''
            for p in story.split('\n'):
                piece = (piece + '\n' + p).strip()
                if len(piece) > 500:
                    if len(piece) < 1600 and piece.isascii() and piece.count('"') % 2 == 0 and not old.search(piece) \
                            and not story_filter.UNWANTED.search(piece) and piece[-1] in '.!?"' and ';' not in piece:
                        out.append(piece)
                    piece = ''
    return out[:most]


def write_shard(task):
    """Runs in a worker: the examples of one shard."""
    path, stories, repeat, plot_count, talk_count, seed = task
    maker = examples.Maker(random.Random(seed))
    lines = []
    for story in stories:
        for _ in range(1 if story[5] else repeat):
            lines += maker.from_sampled(story[1], answers=not story[5])
    for _ in range(plot_count):
        lines += maker.from_plot()
    for _ in range(talk_count):
        lines.append(maker.talk())
    maker.rng.shuffle(lines)
    kinds = Counter('plain' if x[0][0] == 'text' else f'{sum(r == "assistant" for r, _ in x)} turns' for x in lines)
    with open(path, 'w', encoding='utf-8') as f:
        for x in lines:
            f.write(json.dumps(x, ensure_ascii=False) + '\n')
    return len(lines), sum(len(t) for x in lines for _, t in x), kinds


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument('--corpus', required=True)
    a.add_argument('--out', required=True)
    a.add_argument('--more', nargs='*', default=[])
    a.add_argument('--plots', type=int, default=800000, help='stories told from the hand-written plots')
    a.add_argument('--talk', type=int, default=120000, help='small-talk conversations')
    a.add_argument('--repeat', type=int, default=2, help='times a good sampled story is used; plots are new each time, these are not')
    a.add_argument('--best', type=float, default=0.75, help='share of the scored stories that stays, likeliest first')
    a.add_argument('--limit', type=int, default=None, help='read only about N lines of each file, for a trial')
    a.add_argument('--jobs', type=int, default=os.cpu_count())
    a.add_argument('--seed', type=int, default=7)
    a = a.parse_args()
    start = time.time()
    os.makedirs(a.out, exist_ok=True)
    for f in os.listdir(a.out):
        if f.startswith('train-'):
            os.remove(os.path.join(a.out, f))
    stories, reasons, seen = [], Counter(), Counter()
    with Pool(a.jobs) as pool:
        paths = list(a.more)
        # On another machine, a second call may lack the large file.
        if not a.more or os.path.exists(os.path.join(a.corpus, 'stories.tsv.xz')):
            paths.append(corpus_path(a.corpus, 'stories.tsv'))
        for path in paths:
            lines = read_lines(path, a.limit)
            chunks = [(lines[i:i + 2000], a.seed + i) for i in range(0, len(lines), 2000)]
            for kept, why, used in pool.imap(clean_chunk, chunks):
                stories += kept
                reasons.update(why)
                seen.update(used)
        print(f'cleaned: {len(stories)} stories, {time.time() - start:.0f} s', flush=True)
        scores = sorted(s[3] for s in stories if s[3] is not None)
        if scores:
            least = scores[int(len(scores) * (1 - a.best))]
            reasons['unlikely'] = sum(s[3] is not None and s[3] < least for s in stories)
            stories = [s for s in stories if s[3] is None or s[3] >= least]
        rare = {w for w, n in seen.items() if n < RARE} if a.limit is None else set()
        before = len(stories)
        chunks = [(stories[i:i + 4000], rare) for i in range(0, len(stories), 4000)]
        stories = [s for kept in pool.imap(without_rare, chunks) for s in kept]
        reasons['rare word'] = before - len(stories)
        stories = unique(stories, reasons)
        random.Random(a.seed).shuffle(stories)
        print(f'unique: {len(stories)} stories, {time.time() - start:.0f} s', flush=True)
        n_held = max(min(20, len(stories)), len(stories) // 80)
        held = [s for s in stories if not s[5]][:n_held]
        kept_out = set(map(id, held))
        stories = [s for s in stories if id(s) not in kept_out]
        per = -(-len(stories) // SHARDS)
        tasks = [(os.path.join(a.out, f'train-{i:02d}.jsonl'), stories[i * per:(i + 1) * per], a.repeat, a.plots // SHARDS, a.talk // SHARDS,
                  a.seed * 1000 + i) for i in range(SHARDS)]
        tasks.append((os.path.join(a.out, 'valid.jsonl'), held[:1000], 1, 500, 300, 999983))
        total = Counter()
        for n, size, kinds in pool.imap_unordered(write_shard, tasks):
            total.update(kinds)
            total['examples'] += n
            total['characters'] += size
    with open(os.path.join(a.out, 'train-books.jsonl'), 'w', encoding='utf-8') as f:
        maker = examples.Maker(random.Random(a.seed))
        african, fairy = african_stories(a.corpus), fairy_pieces(a.corpus)
        for title, story in african:
            f.write(json.dumps(maker.titled(title, story)) + '\n')
            for x in maker.from_book(story):
                f.write(json.dumps(x) + '\n')
        for piece in fairy:
            f.write(json.dumps([['text', piece]]) + '\n')
    with open(os.path.join(a.out, 'held_out.txt'), 'w', encoding='utf-8') as f:
        f.write('\n<|story|>\n'.join(s[1] for s in held[:800]))
    told = examples.plots.Teller(random.Random(999979))
    with open(os.path.join(a.out, 'held_out_told.txt'), 'w', encoding='utf-8') as f:
        f.write('\n<|story|>\n'.join(told.tell().text for _ in range(400)))
    stats = {'stories kept': len(stories), 'of these odd': sum(s[5] for s in stories), 'held out': len(held), 'reasons': dict(reasons.most_common()), 'examples': dict(total),
             'african storybook': len(african), 'fairy tale pieces': len(fairy), 'plot stories': a.plots,
             'seconds': round(time.time() - start, 1)}
    with open(os.path.join(a.out, 'stats.json'), 'w') as f:
        json.dump(stats, f, indent=1)
    print(json.dumps(stats))


if __name__ == '__main__':
    main()
