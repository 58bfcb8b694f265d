#!/usr/bin/env python3
"""Many clients on one `hearth serve`, some of which disconnect: does it keep up, and do its metrics agree?

    tests/server/load.py [--seconds 180] [--clients 64] [--leaving 0.3] [--seed 1] LAUNCHER HEARTH [SERVE ARGS...]

Starts the server on a free port, e.g. with `tools/vulkan-run build/release/tools/hearth`. Each client streams one
completion after another; some close their connection after a random number of tokens. At the end /metrics must
agree with what the clients saw, nothing may run, wait or hold blocks, and the server must exit with 0 on SIGTERM.
Prints a report as JSON; exits with 1 if something is wrong. Run it by hand: it takes minutes.
"""
import argparse
import http.client
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time


class Tally:
    def __init__(self):
        self.lock = threading.Lock()
        self.ended = self.left = self.tokens_of_ended = 0
        self.errors, self.first_seconds = [], []

    def note_error(self, what):
        with self.lock:
            self.errors.append(what)


def stream_one(port, chance, leaving, tally):
    """One completion, to its end or until this client disconnects."""
    body = {"prompt": f"Once upon a time there was a {chance.choice(['fox', 'bee', 'king', 'cat'])} "
                      f"who had {chance.randint(2, 99)} friends",
            "max_tokens": chance.randint(8, 96), "seed": chance.randrange(1 << 30), "ignore_eos": True,
            "stream": True, "stream_options": {"include_usage": True}}
    leaves_after = chance.randint(0, body["max_tokens"] - 1) if chance.random() < leaving else None
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    began, seen, usage = time.monotonic(), 0, None
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        if reply.status != 200:
            return tally.note_error(f"status {reply.status}: {reply.read(200)}")
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            if "error" in chunk:
                return tally.note_error(chunk["error"]["message"])
            usage = chunk.get("usage") or usage
            if chunk["choices"]:
                if seen == 0:
                    with tally.lock:
                        tally.first_seconds.append(time.monotonic() - began)
                seen += 1
            if leaves_after is not None and seen > leaves_after:
                with tally.lock:
                    tally.left += 1
                return None
        if usage is None or usage["completion_tokens"] != body["max_tokens"]:
            return tally.note_error(f"a stream of {body['max_tokens']} ended with {usage}")
        with tally.lock:
            tally.ended += 1
            tally.tokens_of_ended += usage["completion_tokens"]
    except (OSError, http.client.HTTPException, ValueError) as error:
        tally.note_error(repr(error))
    finally:
        connection.close()
    return None


def metrics(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {name: float(value) for name, value in re.findall(r"^(hearth_\S+) (\S+)$", text, re.M)}


def resident_mib(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) // 1024


def start(command):
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"listening on http://[^:]+:(\d+)", line)
        if found:
            # Somebody must read the log, or the server would wait.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, int(found.group(1))
    sys.exit("the server did not start")


def client(number, port, options, until, tally):
    chance = random.Random(options.seed * 1000 + number)
    while time.monotonic() < until and not tally.errors:
        stream_one(port, chance, options.leaving, tally)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--leaving", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    launcher, hearth, *more = options.command
    process, port = start([launcher, hearth, "serve", "--port", "0", *more])

    tally, began, resident = Tally(), time.monotonic(), []
    threads = [threading.Thread(target=client, args=(i, port, options, began + options.seconds, tally))
               for i in range(options.clients)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(options.seconds / 12)
        resident.append(resident_mib(process))
    took = time.monotonic() - began
    for _ in range(100):  # The last disconnect is noticed within a step.
        seen = metrics(port)
        if seen["hearth_requests_running"] + seen["hearth_requests_waiting"] == 0:
            break
        time.sleep(0.1)

    submitted = tally.ended + tally.left
    cancelled = seen['hearth_requests_finished_total{reason="cancelled"}']
    by_length = seen['hearth_requests_finished_total{reason="length"}']
    process.send_signal(signal.SIGTERM)
    exit_code = process.wait(timeout=60)
    wrong = list(tally.errors)
    for what, right in {
            "submitted is what clients asked for": seen["hearth_requests_submitted_total"] == submitted,
            "ended and cancelled are all": by_length + cancelled == submitted,
            # A client that disconnects at the last token may find that the answer had ended.
            "cancelled is at most who left": cancelled <= tally.left <= cancelled + 0.1 * submitted + 1,
            "tokens are at least those seen": seen["hearth_generated_tokens_total"] >= tally.tokens_of_ended,
            "nothing runs or waits": seen["hearth_requests_running"] + seen["hearth_requests_waiting"] == 0,
            "no block is held": seen["hearth_kv_blocks_used"] == 0,
            "it ended with 0": exit_code == 0}.items():
        if not right:
            wrong.append(f"not so: {what}")
    first = sorted(tally.first_seconds)
    print(json.dumps({
        "seconds": round(took, 1), "clients": options.clients, "ended": tally.ended, "left": tally.left,
        "cancelled": int(cancelled), "tokens": int(seen["hearth_generated_tokens_total"]),
        "tokens_per_s": round(seen["hearth_generated_tokens_total"] / took, 1),
        "first_token_s": {"median": round(first[len(first) // 2], 2), "worst": round(first[-1], 2)} if first else None,
        "resident_mib": resident, "wrong": wrong[:10]}, indent=1))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
