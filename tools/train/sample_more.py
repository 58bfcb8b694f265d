"""Samples more short stories from stories15M (llama2.c, MIT) on a GPU, from openings with a wide choice of subjects.

usage: sample_more.py --gguf stories15M-Q8_0.gguf --out more.tsv --seconds 150 [--batch 4096] [--seed 1]
One story per line: opening TAB story (newlines as \\n) TAB mean log-probability TAB what a request for it asks for.
Only stories that end by themselves and pass story_filter.py are written.
"""
import argparse
import os
import random
import time
from multiprocessing import Pool

import torch

import gguf_file
import model as llama
import plots
import sentence_piece
import story_filter
import words

SETTINGS = [(0.6, 0.06), (0.7, 0.06), (0.75, 0.08), (0.8, 0.1)]  # temperature, min_p
STOP = {0, 1, 2}
VERBS = ['sing', 'dance', 'fly', 'swim', 'paint', 'read', 'bake a cake', 'make new friends', 'see the sea', 'climb the big hill',
         'build a boat', 'go on an adventure', 'play in the snow', 'help others', 'find a friend', 'see the moon', 'learn to swim',
         'jump very high', 'ride a bike', 'draw pictures', 'tell stories', 'plant flowers', 'cook soup', 'play music',
         'explore the forest', 'visit the castle', 'catch a star', 'touch the clouds', 'win the race', 'go to school']
FEARS = ['the dark', 'water', 'thunder', 'the wind', 'loud noises', 'high places', 'the big dog', 'storms', 'spiders', 'the forest',
         'being alone', 'swimming', 'the snow', 'the night', 'new friends', 'shadows']
TOWNS = ['the park', 'the beach', 'the zoo', 'the farm', 'the forest', 'the river', 'school', 'the library', 'the market', 'the lake',
         'the garden', 'the playground', 'the toy store', 'the mountain', 'the museum']


def opening(teller):
    """(opening, what a request for it asks for)"""
    pick = teller.pick
    s = teller.cast(teller.plots[0])
    n, n2, k, k2 = s['n0'], s['n20'], s['k'], s['k2']
    small = pick(words.THINGS[pick(['small', 'wear', 'toy'])])
    toy = pick(words.THINGS['toy'])
    strange = pick(words.THINGS['strange'])
    plant, food = pick(words.THINGS['plant']), pick(words.THINGS['food'])
    verb, fear, town, spot = pick(VERBS), pick(FEARS), pick(TOWNS), s['spot']
    a, he, He, his = words.article, s['he'], s['He'], s['his']
    color = s['color']
    return pick([
        (f"Once upon a time, there was {s['atr']} {k} named {n}. {He} lived {s['home']}.", f"{a(k)} named {n}"),
        (f"Once upon a time, there was {s['atr']} {k} named {n}. {n} loved to", f"{a(k)} named {n}"),
        (f"Once upon a time, there was {s['atr']} {k} who lived {s['home']}.", f"{s['atr']} {k}"),
        (f"Once upon a time, there was {a(k)} who wanted to {verb}.", f"{a(k)} who wanted to {verb}"),
        (f"Once upon a time, there was {a(k)} named {n} who wanted to {verb}.", f"{a(k)} who wants to {verb}"),
        (f"Once upon a time, there was {a(k)} named {n} who was afraid of {fear}.", f"{a(k)} who is afraid of {fear}"),
        (f"Once upon a time, {a(k)} named {n} lost {his} {small}. {He} looked", f"{a(k)} who lost {his} {small}"),
        (f"One day, {a(k)} named {n} found {a(small)} near {spot}.", f"{a(k)} who found {a(small)}"),
        (f"{n} the {k} had {a(color)} {toy}. {He} loved {his} {toy} very much.", f"{a(k)} and {a(toy)}"),
        (f"Once upon a time, {a(k)} and {a(k2)} were good friends. One day, they", f"{a(k)} and {a(k2)}"),
        (f"One day, {a(k)} met {a(k2)} near {spot}.", f"{a(k)} and {a(k2)}"),
        (f"Once upon a time, there was {a(k)} who had no friends. One day, {he} met {a(k2)}.", f"{a(k)} who meets {a(k2)}"),
        (f"{n} and {n2} were best friends. One day, they went to {town}.", f"{n} and {n2} at {town}"),
        (f"One sunny day, {n} went to {town} with {his} {pick(['mom', 'dad', 'grandma', 'grandpa', 'brother', 'sister'])}.", f"{n} at {town}"),
        (f"{n} found {a(strange)} in the garden.", f"{n} and {a(strange)}"),
        (f"Once upon a time, {a(k)} found {a(strange)} near {spot}.", f"{a(k)} and {a(strange)}"),
        (f"Once upon a time, {a(k)} named {n} planted {a(plant)}.", f"{a(k)} and {a(plant)}"),
        (f"One day, {n} wanted to make {a(food)} for {his} friend {n2}.", f"{n} and {a(food)}"),
        (f"One morning, {n} the {k} woke up and", f"{n} the {k}"),
        (f"It was a cold winter day. {n} the {k} saw snow for the first time.", f"{a(k)} in the snow"),
        (f"It was {n}'s birthday. {He} got {a(toy)}", f"{n}'s birthday and {a(toy)}"),
        ('', ''), ('Once upon a time,', ''), ('One day,', ''), ('There was once', ''),
    ])


def decode_rows(task):
    """Runs in a worker: ids -> the stories that are kept, as lines."""
    tokens, logps, openings, lengths = task
    out = []
    for row, lp, (start, ask), n in zip(tokens.tolist(), logps.tolist(), openings, lengths):
        ids, ended, scores = llama.cut_row(row, lp, n, STOP, 256)
        if not ended or len(ids) < 60:
            continue
        # The row has the tokens of the opening before the end of the prompt.
        story = story_filter.normalize(SP.decode(row[:n - 1] + ids))
        if story_filter.refuse(story, start):
            continue
        out.append('\t'.join([start, story.replace('\n', '\\n'), f'{sum(scores) / len(scores):.3f}', ask]) + '\n')
    return len(openings), out


SP = None


def start_worker(gguf):
    global SP
    torch.set_num_threads(1)
    SP = sentence_piece.SentencePiece(gguf_file.read(gguf)[0])


def make_openings(task):
    """Runs in a worker: a batch of (openings, prompts)."""
    seed, batch = task
    teller = plots.Teller(random.Random(seed))
    teller.wide = False   # What the sampling model never met, it tells badly.
    openings = [opening(teller) for _ in range(batch)]
    return openings, [[1] + (SP.encode(o) if o else []) for o, _ in openings]


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument('--gguf', required=True)
    a.add_argument('--out', required=True)
    a.add_argument('--seconds', type=float, default=150)
    a.add_argument('--batch', type=int, default=4096)
    a.add_argument('--seed', type=int, default=1)
    a = a.parse_args()
    # The workers are forked before CUDA starts.
    pool = Pool(max(1, (os.cpu_count() or 2) - 2), start_worker, (a.gguf,))
    ahead = [pool.apply_async(make_openings, ((a.seed * 100000 + i, a.batch),)) for i in range(4)]
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    m, _ = llama.from_gguf(a.gguf)
    m = m.to(device)
    if device == 'cuda':
        m = m.half()
    torch.manual_seed(a.seed)
    start, pending, rounds = time.time(), [], 0
    while time.time() - start < a.seconds:
        openings, prompts = ahead.pop(0).get()
        ahead.append(pool.apply_async(make_openings, ((a.seed * 100000 + rounds + 4, a.batch),)))
        temperature, min_p = SETTINGS[rounds % len(SETTINGS)]
        ids, logps = llama.generate_raw(m, prompts, STOP, 256, temperature, min_p)
        step = 256
        for i in range(0, a.batch, step):
            pending.append(pool.apply_async(decode_rows, ((
                ids[i:i + step].numpy().astype('int32'), logps[i:i + step].numpy().astype('float32'), openings[i:i + step],
                [len(p) for p in prompts[i:i + step]]),)))
        rounds += 1
        if rounds % 20 == 1:
            print(f'round {rounds}: {rounds * a.batch} made, {time.time() - start:.0f} s', flush=True)
    made = kept = size = 0
    with open(a.out, 'w', encoding='utf-8') as f:
        for p in pending:
            n, lines = p.get()
            made, kept, size = made + n, kept + len(lines), size + sum(map(len, lines))
            f.writelines(lines)
    pool.close()
    print(f'sampled {made} stories, kept {kept} ({size / 1e6:.0f} MB) in {time.time() - start:.0f} s')


if __name__ == '__main__':
    main()
