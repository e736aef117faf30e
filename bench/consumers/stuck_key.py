#!/usr/bin/env python3
"""One key of many is stuck: does a consumer go on with the others, and what does that take?

    python3 stuck_key.py PROGRAM [--events N] [--keys N] [--parked]

The first event of a key is held, then fails for ever, while all others are settled. Shown are the
server's memory and the bytes of checkpoints beside those of events. With `--parked` another
consumer parks all keys, and the start of the server until it answers `next` is compared with its
start until it answers a read. Nothing but the standard library. Exit code 0: all others were
settled.
"""

import argparse
import http.client
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

WORKERS = 4
WANT = 500


class Server:
    def __init__(self, program, folder):
        self.program, self.folder, self.process = program, folder, None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def start(self):
        words = [self.program, "serve", "--data", self.folder / "data", "--listen"]
        with open(self.folder / "server.log", "ab") as told:
            self.process = subprocess.Popen(
                [*words, f"127.0.0.1:{self.port}"], stdout=told, stderr=told
            )

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(120)

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)


def ask(connection, method, path, body=None):
    sent = body if isinstance(body, (bytes, str)) or body is None else json.dumps(body)
    kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
    connection.request(method, path, sent, {"Content-Type": kind})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {content[:500]}")
    return json.loads(content) if content else None


def define(connection, name, **more):
    query = {"items": [{"types": ["Order"]}]}
    definition = {"query": query, "key": {"tag": "k"}, "max_in_flight": 100_000, **more}
    ask(connection, "PUT", f"/v1/consumers/{name}", definition)


def fill(connection, events, keys):
    for first in range(0, events, 10_000):
        orders = (
            {"type": "Order", "tags": [f"k:{n % keys}"], "data": {"n": n, "text": "x" * 60}}
            for n in range(first, min(first + 10_000, events))
        )
        lines = [json.dumps(order) for order in orders]
        ask(connection, "POST", "/v1/append", "\n".join(lines).encode())


class Turns:
    """A worker's calls of `next`, one after the other."""

    def __init__(self, server, consumer, worker):
        self.connection, self.worker, self.turn = server.connect(), worker, 0
        self.path = f"/v1/consumers/{consumer}/next"

    def take(self, want, **said):
        self.turn += 1
        sent = {"worker": self.worker, "turn": self.turn, "want": want, **said}
        return ask(self.connection, "POST", self.path, sent)["deliveries"]


def work(server, consumer, number, ended, failing):
    """Settles everything but the stuck key, which fails."""
    turns = Turns(server, consumer, f"w{number}")
    done, failed = [], []
    while not ended.is_set():
        found = turns.take(WANT, wait_ms=200, done=done, failed=failed)
        stuck = [each for each in found if each["keys"] == ["0"]]
        failing.extend(stuck)
        failed = [
            {"delivery": each["delivery"], "reason": "stuck", "retry_ms": 500} for each in stuck
        ]
        done = [each["delivery"] for each in found if each["keys"] != ["0"]]


def stick(server, options):
    """All but one key is settled; returns the status at the end."""
    connection = server.connect()
    define(connection, "stuck", max_tries=255)
    holder = Turns(server, "stuck", "holder")
    held = holder.take(1, wait_ms=1000)
    assert held[0]["keys"] == ["0"], held
    ended, failing = threading.Event(), []
    threads = [
        threading.Thread(target=work, args=(server, "stuck", number, ended, failing))
        for number in range(WORKERS)
    ]
    begun_s = time.monotonic()
    for thread in threads:
        thread.start()
    extended_s, peak_mib, peak_keys = begun_s, 0.0, 0
    while True:
        time.sleep(0.2)
        now_s = time.monotonic()
        if holder is not None and now_s - extended_s > 5:
            ask(connection, "POST", "/v1/consumers/stuck/extend", {"worker": "holder"})
            extended_s = now_s
        status = ask(connection, "GET", "/v1/consumers/stuck")
        peak_mib = max(peak_mib, server.resident_mib())
        peak_keys = max(peak_keys, status["open_keys"])
        if holder is not None and status["scanned"] > options.events // 2:
            holder.take(0, failed=[{"delivery": held[0]["delivery"], "reason": "stuck"}])
            holder = None
        if status["scanned"] >= options.events and status["open_keys"] == 1:
            break
        if now_s - begun_s > 600:
            raise RuntimeError(f"not at the end after 600 s: {status}")
    took_s = time.monotonic() - begun_s
    ended.set()
    for thread in threads:
        thread.join()
    print(f"settled all but one key in {took_s:.1f} s; it failed {len(failing) + 1} times")
    print(f"most open keys {peak_keys}; memory at most {peak_mib:.0f} MiB")
    keep({"case": "settled beside a stuck key", "seconds": took_s, "most_mib": peak_mib})
    return status


def keep(row):
    """Leaves a row for figures.py in the file that OUT names."""
    if "OUT" in os.environ:
        with open(os.environ["OUT"], "a") as file:
            file.write(json.dumps(row) + "\n")


def checkpoint_share(server, consumer):
    """Bytes of the consumer's checkpoints and of the orders, as JSON of an export."""
    size = {"Order": 0, "ConsumerCheckpoint": 0}
    count = 0
    for kind in size:
        words = [server.program, "export", "--url", f"http://127.0.0.1:{server.port}"]
        words += ["--type", kind]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as export:
            for line in export.stdout:
                if kind == "Order" or f'"consumer:{consumer}"'.encode() in line:
                    size[kind] += len(line)
                    count += kind != "Order"
    share = size["ConsumerCheckpoint"] / size["Order"]
    print(
        f"{count} checkpoints of {consumer}: {size['ConsumerCheckpoint']:,} bytes beside"
        f" {size['Order']:,} of orders: {share:.2%}"
    )


def start_s(server, path, body):
    """Time from the start of the process to the first answer to this."""
    server.stop()
    begun_s = time.monotonic()
    server.start()
    while True:
        try:
            ask(server.connect(), "POST", path, body)
            return time.monotonic() - begun_s
        except OSError:
            time.sleep(0.001)


def starts(server, keys):
    """Restarts with many parked keys, and without consumers."""
    turn = [1_000_000]

    def first_next():
        turn[0] += 1
        asked = {"worker": "w", "turn": turn[0], "want": 1, "wait_ms": 0}
        return start_s(server, "/v1/consumers/parked/next", asked)

    def first_read():
        return start_s(server, "/v1/query", {"query": {"items": [{"types": ["None"]}]}})

    pairs = [(first_next(), first_read()) for _ in range(5)]
    for number, (next_s, read_s) in enumerate(pairs):
        keep({"case": "start, next", "round": number, "ms": next_s * 1000})
        keep({"case": "start, read", "round": number, "ms": read_s * 1000})
    with_s, without_s = (statistics.median(each) for each in zip(*pairs))
    print(
        f"start to the first answer, median of 5: {with_s * 1000:.0f} ms for `next` with {keys}"
        f" parked keys, {without_s * 1000:.0f} ms for a read:"
        f" {(with_s - without_s) * 1000:+.0f} ms"
    )


def park(server, keys):
    """Parks the first event of each key."""
    connection = server.connect()
    define(connection, "parked", max_tries=1)
    turns, failed = Turns(server, "parked", "w"), []
    begun_s = time.monotonic()
    while True:
        found = turns.take(WANT, wait_ms=1000 if not failed else 0, failed=failed)
        if not found and not failed:
            break
        failed = [{"delivery": each["delivery"], "reason": "no"} for each in found]
    status = ask(connection, "GET", "/v1/consumers/parked")
    took_s = time.monotonic() - begun_s
    print(
        f"parked {status['parked']} of {keys} keys in {took_s:.1f} s;"
        f" memory {server.resident_mib():.0f} MiB"
    )
    return status


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--parked", action="store_true", help="park all keys afterwards")
    options = parser.parse_args(words)
    program = pathlib.Path(options.program).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stuck.", dir=os.environ.get("BENCH_TMP")))
    server = Server(program, folder)
    try:
        server.start()
        time.sleep(1)
        fill(server.connect(), options.events, options.keys)
        filled_mib = server.resident_mib()
        print(f"{options.events} events of {options.keys} keys; memory {filled_mib:.0f} MiB")
        stick(server, options)
        print(f"memory at the end {server.resident_mib():.0f} MiB")
        checkpoint_share(server, "stuck")
        if options.parked:
            park(server, options.keys)
            checkpoint_share(server, "parked")
            starts(server, options.keys)
    finally:
        server.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
