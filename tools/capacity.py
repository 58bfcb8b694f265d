#!/usr/bin/env python3
"""How many replicas a load needs: a capacity model of Hearth behind a proxy (docs/scale.md).

  tools/capacity.py plan TRACE [--replicas 1000] [--device h200-8b]
      What one replica carries of the trace, what routing gains, and what a fleet needs.
  tools/capacity.py check HEARTH
      Compares the model with `hearth replay --simulate` at one and two replicas. Exits with 1 if a
      number is more than 15 % off.

The model: a step's time from a table of measured steps; the steady state of continuous batching by
Little's law; prompt tokens found in a prefix cache from the trace itself, replica by replica; and
waiting times as in a queue with as many servers as a replica has slots.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import zlib

from capacity_model import (BLOCK, DEVICES, Device, Load, Request, hit_share, mean, most_requests,
                            pool_state, read_trace, route, session_of, steady_state, write_trace)


# ---- check: against hearth replay ----

class Replay:
    """`hearth replay --simulate`, and the simulated card as a Device."""
    SLOTS, STEP_TOKENS, KV_BLOCKS = 16, 256, 8192

    def __init__(self, hearth):
        self.hearth = hearth

    def run(self, trace, slots=SLOTS, kv_blocks=KV_BLOCKS, more=()):
        command = [self.hearth, "replay", "--simulate", "--json", "--max-seqs", str(slots),
                   "--max-step-tokens", str(self.STEP_TOKENS), "--kv-blocks", str(kv_blocks), trace,
                   *more]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(run.stdout)["policies"][0]

    def measured_device(self, kv_blocks):
        """The step table, measured as one would on a real card."""
        decode = {n: self.run(f"synthetic:n={n},prompt=16,gen=64", n)["tpot_seconds"]["p50"]
                  for n in (1, 4, 8, 16)}
        far = self.run("synthetic:n=1,prompt=8000,gen=64", 1)["tpot_seconds"]["p50"]
        kv = (far - decode[1]) / (8000 - 16)
        table = [(n, seconds - n * 48 * kv) for n, seconds in decode.items()]
        chunk = self.run("synthetic:n=1,prompt=256,gen=1", 1)["ttft_seconds"]["mean"]
        long = self.run("synthetic:n=1,prompt=8000,gen=1", 1)["ttft_seconds"]["mean"]
        chunks = 8000 / self.STEP_TOKENS
        row_key = max(long - chunks * chunk, 0) / (8000 * 8000 / 2 - chunks * 256 * 128)
        table.append((256, chunk - 256 * 128 * row_key))
        return Device(table, kv, row_key, self.SLOTS, self.STEP_TOKENS, kv_blocks * 16)

    def run_replicas(self, requests, placed, replicas, folder, **limits):
        """Each replica's part of the trace; the numbers of all together."""
        parts = []
        for replica in range(replicas):
            part = [one for one, (target, _) in zip(requests, placed) if target == replica]
            path = os.path.join(folder, f"part-{replica}.jsonl")
            write_trace(path, part)
            parts.append((part, self.run(path, **limits)))
        count = len(requests)
        tokens = sum(one.prompt for one in requests)

        def over_requests(key):
            return sum(len(part) * result[key]["mean"] for part, result in parts) / count

        return {"ttft": over_requests("ttft_seconds"), "e2e": over_requests("e2e_seconds"),
                "tpot": over_requests("tpot_seconds"),
                "throughput": sum(result["throughput_tokens_per_s"] for _, result in parts),
                "hits": sum(result["prefix_hit_share"] * sum(one.prompt for one in part)
                            for part, result in parts) / tokens}


class Random:
    """Numbers that are the same everywhere."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) / 2**53

    def between(self, low, high):
        return low + int(self.uniform() * (high - low + 1))


def conversations(count, turns, rate, seed):
    """Users who come back: each turn's prompt is the last one's and 512 tokens more."""
    random = Random(seed)
    waiting = [(user, 0) for user in range(count)]
    at, requests = 0.0, []
    while waiting:
        at -= math.log(1 - random.uniform()) / rate
        place = random.between(0, min(len(waiting) - 1, count // 2))
        user, turn = waiting.pop(place)
        ids = [user * 64 + i for i in range(turn + 1)]
        requests.append(Request(at, len(ids) * BLOCK + random.between(1, 40),
                                random.between(40, 120), ids))
        if turn + 1 < turns:
            waiting.append((user, turn + 1))
    return requests


def plain(count, rate, seed):
    random = Random(seed)
    at, requests = 0.0, []
    for _ in range(count):
        at -= math.log(1 - random.uniform()) / rate if rate else 0
        requests.append(Request(at, random.between(100, 500), random.between(50, 150), []))
    return requests


def check(hearth):
    replay = Replay(hearth)
    device = replay.measured_device(Replay.KV_BLOCKS)
    worst = 0.0
    print(f"{'':<56} {'model':>10} {'replay':>10} {'off':>9}")

    def compare(what, modelled, replayed):
        nonlocal worst
        off = abs(modelled - replayed) / max(abs(replayed), 1e-9)
        worst = max(worst, off)
        print(f"{what:<56} {modelled:10.3f} {replayed:10.3f} {100 * off:7.1f} %")

    with tempfile.TemporaryDirectory(prefix="hearth-capacity.") as folder:
        for replicas in (1, 2):
            full = plain(300 * replicas, 0, 1)
            placed = route(full, replicas, "round-robin", 1)
            result = replay.run_replicas(full, placed, replicas, folder)
            most = replicas * most_requests(device, Load(full))
            compare(f"{replicas} x, all at once: tokens/s",
                    most * mean(one.generated for one in full), result["throughput"])
            for share in (0.4, 0.7):
                rate = share * most
                some = plain(600 * replicas, rate, 2)
                placed = route(some, replicas, "round-robin", 1)
                result = replay.run_replicas(some, placed, replicas, folder)
                state = pool_state(device, some, placed, replicas, 1 / replicas)
                label = f"{replicas} x, {share:.0%} of that"
                compare(f"{label}: TPOT, ms", state.tpot * 1e3, result["tpot"] * 1e3)
                compare(f"{label}: TTFT, ms", state.ttft * 1e3, result["ttft"] * 1e3)
                compare(f"{label}: end to end, s", state.e2e, result["e2e"])
        blocks = 2048
        small = replay.measured_device(blocks)
        for replicas in (1, 2):
            for how in ("round-robin", "sessions") if replicas > 1 else ("sessions",):
                talks = conversations(24 * replicas, 6, 1.0 * replicas, 3)
                placed = route(talks, replicas, how, small.pool_tokens)
                result = replay.run_replicas(talks, placed, replicas, folder, kv_blocks=blocks)
                state = pool_state(small, talks, placed, replicas,
                                   1 / replicas if how == "round-robin" else 1)
                label = f"{replicas} x, conversations, {how}"
                compare(f"{label}: prompt tokens found, %", 100 * hit_share(talks, placed),
                        100 * result["hits"])
                compare(f"{label}: TPOT, ms", state.tpot * 1e3, result["tpot"] * 1e3)
                compare(f"{label}: end to end, s", state.e2e, result["e2e"])
    print(f"\nworst: {100 * worst:.1f} %")
    return 0 if worst <= 0.15 else 1


# ---- plan ----

def scaled(requests, times):
    """The trace with `times` as many users: some of its sessions, or copies of all that share nothing
    with each other and are spread over the time."""
    if times < 1:
        return [one for one in requests
                if zlib.crc32(str(session_of(one)).encode()) % 10**6 < times * 10**6]
    period, many = max(requests[-1].at, 1e-9), []
    for copy in range(round(times)):
        for one in requests:
            many.append(Request((one.at + copy * period / round(times)) % period, one.prompt,
                                one.generated, [block + copy * 10**9 for block in one.ids]))
    many.sort(key=lambda request: request.at)
    return many


def peak(requests, seconds=60):
    """Requests per second of the busiest minute, over the mean."""
    span = max(requests[-1].at, 1e-9)
    counts = [0] * (int(span // seconds) + 1)
    for one in requests:
        counts[int(one.at // seconds)] += 1
    return max(counts) / min(seconds, span) / (len(requests) / span)


def plan(arguments):
    device = DEVICES[arguments.device]()
    requests = read_trace(arguments.trace, arguments.limit)
    requests = [one for one in requests if one.prompt + one.generated < device.pool_tokens / 4]
    span = requests[-1].at
    rate, surge = len(requests) / span, peak(requests)
    print(f"{len(requests)} requests in {span:.0f} s: {rate:.2f}/s on average, {surge:.2f} times that in "
          f"the busiest minute; {mean(one.prompt for one in requests):.0f} prompt tokens, "
          f"{mean(one.generated for one in requests):.0f} generated")
    base = most_requests(device, Load(requests))
    print(f"one replica without a prefix cache: {base:.2f} requests/s, "
          f"{base * Load(requests).generated:.0f} tokens/s\n")
    routes = ("round-robin", "sessions", "prefixes") if any(one.ids for one in requests) else (
        "round-robin",)
    results = {}
    print(f"{'routing':<14} {'replicas':>8} {'found':>7} {'requests/s each':>16} {'gain':>6}")
    for how in routes:
        for count in arguments.sizes:
            # As many users as keep them 70 % busy.
            some = scaled(requests, count * 0.7 * base / rate)
            placed = route(some, count, how, device.pool_tokens)
            load = Load(some, [tokens for _, tokens in placed])
            most = most_requests(device, load)
            results[how] = (most, load)
            print(f"{how:<14} {count:>8} {hit_share(some, placed):>7.1%} {most:>16.2f} "
                  f"{most / base:>6.2f}")
    print(f"\nfor this trace {arguments.times} times over, at 70 % of what replicas can do in the "
          "busiest minute:")
    print(f"{'routing':<14} {'cards':>7} {'TTFT, ms':>9} {'TPOT, ms':>9} {'streams each':>13}")
    for how, (most, load) in results.items():
        cards = math.ceil(rate * surge * arguments.times / (0.7 * most))
        state = steady_state(device, load, rate * arguments.times / cards)
        print(f"{how:<14} {cards:>7} {state.ttft * 1e3:>9.0f} {state.tpot * 1e3:>9.1f} "
              f"{state.running:>13.1f}")
    how, (most, load) = list(results.items())[-1]
    fleet(arguments.replicas, device, load, 0.7 * most, how)
    return 0


def fleet(replicas, device, load, rate, how):
    """What everything around the replicas has to carry."""
    state = steady_state(device, load, rate)
    tokens = rate * load.generated
    blocks = rate * (load.prompt + load.generated) / 16
    print(f"\n{replicas} replicas at 70 %, routed by {how}:")
    for name, value, unit in (
            ("requests", rate * replicas, "/s"),
            ("generated tokens", tokens * replicas, "/s"),
            ("open streams", state.running * replicas, ""),
            ("stream traffic, 250 bytes per token", 250 * tokens * replicas / 1e6, "MB/s"),
            ("KV events, stored and removed", 2 * blocks * replicas, "/s"),
            ("KV events, about 110 bytes per block", 110 * blocks * replicas / 1e6, "MB/s"),
            ("blocks in an index of all prefixes", device.pool_tokens / 16 * replicas / 1e6,
             "million"),
            ("health checks, two per second", 2 * replicas, "/s"),
            ("metrics, 500 samples per 5 s", 100 * replicas, "samples/s")):
        print(f"  {name:<40} {value:>12,.0f} {unit}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="compare with hearth replay --simulate")
    checking.add_argument("hearth", help="the program")
    planning = commands.add_parser("plan", help="how many replicas a trace needs")
    planning.add_argument("trace", help="an Azure CSV or Mooncake JSONL file")
    planning.add_argument("--device", choices=sorted(DEVICES), default="h200-8b")
    planning.add_argument("--replicas", type=int, default=1000)
    planning.add_argument("--times", type=float, default=1000, help="how many times the trace's load")
    planning.add_argument("--limit", type=int, default=0, help="only the first N requests")
    planning.add_argument("--sizes", type=lambda text: [int(one) for one in text.split(",")],
                          default=[8, 64], help="replicas for which routing is simulated")
    arguments = parser.parse_args()
    return check(arguments.hearth) if arguments.command == "check" else plan(arguments)


if __name__ == "__main__":
    sys.exit(main())
