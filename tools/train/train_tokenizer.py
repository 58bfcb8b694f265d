"""Trains the tokenizer on the prepared data and writes tokenizer.json (Hugging Face form).

usage: train_tokenizer.py --data DIR --out tokenizer.json [--size 4096]
"""
import argparse
import json
import os
import time
from multiprocessing import Pool

import bpe


def count_file(task):
    """Words of every n-th example; user turns count too, so that requests are cheap."""
    path, most = task
    texts = []
    with open(path, encoding='utf-8') as f:
        for i, line in enumerate(f):
            if i >= most:
                break
            texts += [text for _, text in json.loads(line)]
    return bpe.count_words(texts)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument('--data', required=True)
    a.add_argument('--out', required=True)
    a.add_argument('--size', type=int, default=4096)
    a.add_argument('--jobs', type=int, default=os.cpu_count())
    a = a.parse_args()
    start = time.time()
    shards = sorted(os.path.join(a.data, f) for f in os.listdir(a.data) if f.startswith('train-') and f.endswith('.jsonl'))
    with Pool(a.jobs) as pool:
        counts = sum(pool.imap_unordered(count_file, [(s, 12000) for s in shards]), start=bpe.Counter())
    merges = bpe.train(counts, a.size)
    tok = bpe.Tokenizer(merges, a.size)
    sample = 'Once upon a time, there was a fox named Lily. "Hello!" she said.\nIt was 2 o\'clock.'
    assert tok.decode(tok.encode(sample)) == sample
    with open(a.out, 'w', encoding='utf-8') as f:
        json.dump(tok.to_json(), f, ensure_ascii=False)
    n = sum(len(w) * c for w, c in counts.items())
    ids = sum(len(tok.word(w)) * c for w, c in counts.items())
    print(f'tokenizer: {len(tok.tokens)} entries from {len(counts)} words, {n / ids:.2f} bytes a token, {time.time() - start:.0f} s')


if __name__ == '__main__':
    main()
