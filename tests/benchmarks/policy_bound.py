#!/usr/bin/env python3
"""What continuous batching can gain over static batching at most, from lengths alone.

    policy_bound.py [REQUESTS] [SLOTS] [SHORTEST] [LONGEST]

All requests are there at once, prompts cost nothing, and every step takes as long as any other. Prints
the means over 1,000 draws of lengths: static batching's steps over continuous batching's, the mean time
to first token of continuous batching as a share of static batching's, and that of a schedule that knows
every length and takes the shortest first.
"""
import heapq
import random
import sys

DRAWS = 1000


def static(lengths, slots):
    """Steps in all, and the sum of waits: a batch begins when the last of the one before has ended."""
    now = waits = 0
    for first in range(0, len(lengths), slots):
        batch = lengths[first:first + slots]
        waits += now * len(batch)
        now += max(batch)
    return now, waits


def continuous(lengths, slots):
    """The same where whoever ends makes room for the next."""
    free = [0] * slots
    waits = 0
    for length in lengths:
        start = heapq.heappop(free)
        waits += start
        heapq.heappush(free, start + length)
    return max(free), waits


def main():
    requests, slots, shortest, longest = (
        int(given) for given in (sys.argv[1:] + ["64", "16", "8", "96"][len(sys.argv) - 1:]))
    draw = random.Random(1)
    gains, shares, best_shares = [], [], []
    for _ in range(DRAWS):
        lengths = [draw.randint(shortest, longest) for _ in range(requests)]
        steps, waits = static(lengths, slots)
        fewer_steps, shorter = continuous(lengths, slots)
        _, shortest_waits = continuous(sorted(lengths), slots)
        first_tokens = waits + requests  # a step each
        gains.append(steps / fewer_steps)
        shares.append((shorter + requests) / first_tokens)
        best_shares.append((shortest_waits + requests) / first_tokens)
    for name, values in (("static's steps over continuous's", gains),
                         ("mean time to first token, of static's", shares),
                         ("the same, shortest first", best_shares)):
        print(f"{name}: {sum(values) / DRAWS:.2f}")


if __name__ == "__main__":
    main()
