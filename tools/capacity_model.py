"""The capacity model of docs/scale.md: devices, traces, routing, and one replica in its steady state.
tools/capacity.py uses it."""
import csv
import datetime
import json
import math
import zlib
from collections import OrderedDict, namedtuple

BLOCK = 512  # tokens per id of a prefix in a Mooncake trace
Request = namedtuple("Request", "at prompt generated ids")  # seconds, tokens, tokens, list


# ---- Devices ----

class Device:
    """Seconds per step, from measurements. `table` has (rows, seconds) without the attention that
    grows with the context: decode steps of that many streams, and a full step of prompt tokens."""

    def __init__(self, table, kv_token_seconds, row_key_seconds, slots, step_tokens, pool_tokens):
        self.table = sorted(table)
        self.kv_token_seconds = kv_token_seconds  # per token of context of a stream that decodes
        self.row_key_seconds = row_key_seconds  # per prompt token and token before it
        self.slots = slots  # requests that run at a time
        self.step_tokens = step_tokens  # most rows of a step
        self.pool_tokens = pool_tokens  # that the KV cache holds

    def step(self, rows, kv_tokens=0.0, row_keys=0.0):
        table = self.table
        place = 1
        while place < len(table) - 1 and table[place][0] < rows:
            place += 1
        (x0, y0), (x1, y1) = table[place - 1], table[place]
        seconds = y0 + (y1 - y0) * max(rows - x0, 0) / (x1 - x0)
        return seconds + kv_tokens * self.kv_token_seconds + row_keys * self.row_key_seconds


def h200_8b():
    """8 B parameters in F16 on an H200; docs/measurements.md, 2026-11-17. Keys and values of a token
    are 128 KiB, read at 91 % of 4.59 TB/s; attention of prompts runs at 189 TFLOP/s."""
    streams = {1: 276.7, 8: 1930, 32: 6418, 64: 10347, 256: 16688}
    table = [(n, n / tokens_per_s) for n, tokens_per_s in streams.items()]
    kv_bytes = 131072
    kv = kv_bytes / (0.91 * 4.59e12)
    # Those streams had contexts of 64 tokens on average.
    table = [(n, seconds - n * 64 * kv) for n, seconds in table]
    row_key = 4 * 32 * 32 * 128 / 189e12
    table.append((2048, 2048 / 24201 - 2048 * 1024 * row_key))
    return Device(table, kv, row_key, slots=64, step_tokens=2048,
                  pool_tokens=int(110e9 / kv_bytes))


DEVICES = {"h200-8b": h200_8b}


# ---- Traces ----

def read_trace(path, limit=0):
    requests = []
    with open(path, encoding="utf-8") as file:
        if path.endswith(".csv"):
            begin = None
            for row in csv.DictReader(file):
                at = datetime.datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp()
                begin = at if begin is None else begin
                requests.append(Request(at - begin, int(row["ContextTokens"]),
                                        max(int(row["GeneratedTokens"]), 1), []))
        else:
            for line in file:
                row = json.loads(line)
                requests.append(Request(row["timestamp"] / 1e3, row["input_length"],
                                        max(row["output_length"], 1), row["hash_ids"]))
    requests.sort(key=lambda request: request.at)
    return requests[:limit] if limit else requests


def write_trace(path, requests):
    with open(path, "w", encoding="utf-8") as file:
        for request in requests:
            file.write(json.dumps({"timestamp": round(request.at * 1e3),
                                   "input_length": request.prompt,
                                   "output_length": request.generated,
                                   "hash_ids": request.ids}) + "\n")


# ---- Routing and prefix caches ----

def session_of(request):
    """Who says nothing about sessions shares at least the first block with earlier turns."""
    return request.ids[0] if request.ids else request.at


class PrefixCache:
    """The blocks of a replica, the least recently used first: id to tokens."""

    def __init__(self, tokens):
        self.room = tokens
        self.blocks = OrderedDict()

    def hits(self, request):
        count = 0
        for one in request.ids:
            if one not in self.blocks:
                break
            count += 1
        return count

    def add(self, request):
        # What no other prompt has goes first when blocks run short, then the end of the prefix.
        own = request.prompt - BLOCK * len(request.ids) + request.generated
        self._add(("own", id(request)), max(own, 0))
        for one in reversed(request.ids):
            self._add(one, BLOCK)
        while self.room < 0:
            self.room += self.blocks.popitem(last=False)[1]

    def _add(self, one, tokens):
        self.room += self.blocks.pop(one, 0) - tokens
        self.blocks[one] = tokens


def route(requests, replicas, how, pool_tokens):
    """The replica of each request, and how many of its prompt tokens that replica's cache has."""
    caches = [PrefixCache(pool_tokens) for _ in range(replicas)]
    load = [0.0] * replicas  # recent work, which fades
    placed = []
    for index, request in enumerate(requests):
        load = [value * 0.99 for value in load] if index % 16 == 0 else load
        if how == "round-robin":
            target = index % replicas
        elif how == "sessions":
            # Bounded load: at most 1.5 times the average, then the next replica.
            target = zlib.crc32(str(session_of(request)).encode()) % replicas
            bound = 1.5 * (sum(load) / replicas) + request.prompt
            while load[target] > bound:
                target = (target + 1) % replicas
        else:  # prefixes: the longest match among those that are not overloaded
            bound = 1.5 * (sum(load) / replicas) + request.prompt
            target = max((replica for replica in range(replicas) if load[replica] <= bound),
                         key=lambda replica: (caches[replica].hits(request), -load[replica]))
        # The newest token is always computed.
        tokens = min(caches[target].hits(request) * BLOCK, request.prompt - 1)
        caches[target].add(request)
        load[target] += request.prompt - tokens
        placed.append((target, tokens))
    return placed


def hit_share(requests, placed):
    return sum(tokens for _, tokens in placed) / max(sum(one.prompt for one in requests), 1)


# ---- One replica in its steady state ----

def mean(values):
    values = list(values)
    return sum(values) / max(len(values), 1)


class Load:
    """What requests ask of a replica: means over a trace."""

    def __init__(self, requests, hits=None):
        hits = hits or [0] * len(requests)
        computed = [one.prompt - hit for one, hit in zip(requests, hits)]
        self.prompt = mean(computed)
        self.prompt_squared = mean(tokens * tokens for tokens in computed)
        self.row_keys = mean(tokens * (hit + tokens / 2) for tokens, hit in zip(computed, hits))
        self.generated = mean(one.generated for one in requests)
        self.context = mean(one.generated * (one.prompt + one.generated / 2)
                            for one in requests) / self.generated
        self.held = mean(one.prompt + one.generated for one in requests)


PoolState = namedtuple("PoolState", "ttft tpot e2e")
State = namedtuple("State", "rate running slots step prompt_seconds tpot ttft e2e busy prompt_share")


def steady_state(device, load, rate, arrivals=1.0):
    """The replica at `rate` requests per second, or None if it cannot keep up. `arrivals` is the
    squared variation of the time between requests: 1 if they come at random, less behind a proxy
    that deals them out in turn."""
    slots = min(device.slots, device.pool_tokens / load.held)

    def at(running):
        """Seconds per prompt, share of the time in steps with prompts, seconds between tokens."""
        room = max(device.step_tokens - running, 1)
        chunks = max(math.ceil(load.prompt / room), 1)
        kv = running * load.context
        chunk = device.step(running + load.prompt / chunks, kv, load.row_keys / chunks)
        share = rate * chunks * chunk
        if share >= 1:
            return None
        decode = device.step(max(running, 1), kv)
        tpot = 1 / (rate * chunks + (1 - share) / decode)
        return chunks * chunk, share, tpot, decode

    # Little's law: the running requests are those that arrive during one request's stay.
    running, found = 0.0, None
    for _ in range(200):
        found = at(running)
        if found is None:
            return None
        prompt_seconds, share, tpot, decode = found
        stay = prompt_seconds + (load.generated - 1) * tpot
        following = rate * stay
        if following > slots * 1.5:
            return None
        running += 0.3 * (following - running)
    if running >= slots:
        return None
    # Prompts wait for each other: a queue with one server (Kingman). Then for a slot: one with as
    # many servers as slots (Sakasegawa).
    prompts = load.prompt_squared / max(load.prompt**2, 1) - 1
    behind_prompts = share / (1 - share) * prompt_seconds * (arrivals + prompts) / 2
    use = running / slots
    for_slot = use**(math.sqrt(2 * (slots + 1)) - 1) / (slots * (1 - use)) * stay
    # A request that arrives in the middle of a step waits for its end.
    busy = 1 - math.exp(-running)
    first = busy * decode / 2 + behind_prompts + prompt_seconds
    # Prompts that came while it waited for its own first token run while it decodes.
    tpot *= 1 + (1 / decode - 1 / tpot) * first / max(load.generated - 1, 1)
    return State(rate, running, slots, decode, prompt_seconds, tpot, first + for_slot,
                 first + for_slot + (load.generated - 1) * tpot, busy, share)


def pool_state(device, requests, placed, replicas, arrivals=1.0):
    """The means over all requests of a pool whose replicas each have their own part of the load."""
    span, totals = max(requests[-1].at, 1e-9), [0.0, 0.0, 0.0]
    for replica in range(replicas):
        part = [(one, hit) for one, (target, hit) in zip(requests, placed) if target == replica]
        if not part:
            continue
        load = Load([one for one, _ in part], [hit for _, hit in part])
        state = steady_state(device, load, len(part) / span, arrivals)
        if state is None:
            return None
        for i, value in enumerate((state.ttft, state.tpot, state.e2e)):
            totals[i] += value * len(part) / len(requests)
    return PoolState(*totals)


def most_requests(device, load):
    """Requests per second that a replica keeps up with."""
    low, high = 0.0, 1.0
    while steady_state(device, load, high):
        low, high = high, high * 2
    for _ in range(40):
        middle = (low + high) / 2
        if steady_state(device, load, middle):
            low = middle
        else:
            high = middle
    return low
