"""Compresses a file to .xz on all cores (several streams in one file, which every xz reader accepts), without the xz program.

usage: pack.py FILE   writes FILE.xz
"""
import lzma
import os
import sys
from multiprocessing import Pool


def squeeze(raw):
    return lzma.compress(raw, preset=5)


def main():
    path = sys.argv[1]
    with open(path, 'rb') as f:
        data = f.read()
    jobs = os.cpu_count() or 1
    step = max(1 << 20, -(-len(data) // jobs))
    with Pool(jobs) as pool, open(path + '.xz', 'wb') as f:
        for part in pool.imap(squeeze, [data[i:i + step] for i in range(0, len(data), step)] or [b'']):
            f.write(part)


if __name__ == '__main__':
    main()
