#!/usr/bin/env python3
"""What a write waits for while leads move and nodes die: raft_faults.py moves|kills --times N --program P --work DIR --out F NODE=ADDRESS=PID…

`moves`: a log and then the ordering go from node to node under six clients; a row has the slowest write of each move.
`kills`: `kill -9` of the node that orders, then of another one that leads a log, N times each; a row has the time without
a write to a log of the killed node, and to the other log. After each the node is started again, and has every write that
was answered exactly once. Nodes that this started end with it."""
import argparse
import http.client
import itertools
import json
import math
import os
import signal
import statistics
import subprocess
import threading
import time

CLIENTS = 6
PATIENCE_S = 60
JSON = {"Content-Type": "application/json"}


class Node:
    def __init__(self, word):
        self.name, self.address, pid = word.split("=")
        self.pid, self.child = int(pid), None

    def ask(self, method, path, body=None, headers=None, timeout=PATIENCE_S):
        """Status and document, over a connection of its own."""
        connection = http.client.HTTPConnection(self.address, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        if self.child:
            self.child.wait()

    def start(self, options):
        words = [options.program, "serve", "--data", f"{options.work}/{self.name}", "--listen", self.address, "--journal", "raft",
                 "--node", self.name, "--cluster-key", f"{options.work}/key"]
        with open(f"{options.work}/{self.name}.log", "ab") as log:
            self.child = subprocess.Popen(words, stdout=log, stderr=log)
        self.pid = self.child.pid
        eventually(lambda: self.ask("GET", "/health/ready?for=writes")[0] == 200)


def eventually(holds):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if found := holds():
                return found
        except OSError:
            pass
        time.sleep(0.02)
    raise TimeoutError("it does not come about")


class Writer(threading.Thread):
    """Appends to a log, each event until it is answered, at any node that answers."""

    def __init__(self, number, log, nodes, load):
        super().__init__(daemon=True)
        self.number, self.log, self.nodes, self.load = number, log, nodes, load

    def run(self):
        at, connection = self.number, None
        for n in itertools.count():
            key, begun = f"{os.getpid()}-{self.log}-{self.number}-{n}", time.monotonic()
            body = json.dumps({"events": [{"type": "T", "tags": ["t:1"], "data": key}]})
            headers = JSON | {"Idempotency-Key": key}
            while not self.load.done.is_set():
                try:
                    if connection is None:
                        connection = http.client.HTTPConnection(self.nodes[at % len(self.nodes)].address, timeout=PATIENCE_S)
                    connection.request("POST", f"/v1/logs/{self.log}/append", body, headers)
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 200:
                        break
                    assert answer.status in (500, 503), answer.status
                except (OSError, http.client.HTTPException):
                    pass
                connection, at = None, at + 1
                time.sleep(0.002)
            if self.load.done.is_set():
                return
            with self.load.lock:
                self.load.answered.setdefault(self.log, []).append((begun, time.monotonic(), key))
            # Python's own work would fill the core that the nodes need.
            time.sleep(0.005)


class Load:
    """Clients of each log, until it is left."""

    def __init__(self, nodes, *logs):
        self.nodes, self.logs, self.done, self.lock, self.answered = nodes, logs, threading.Event(), threading.Lock(), {}
        self.checked = {log: (0, 0, set()) for log in logs}

    def __enter__(self):
        self.writers = [Writer(number, log, self.nodes, self) for log in self.logs for number in range(CLIENTS)]
        for writer in self.writers:
            writer.start()
        self.more(time.monotonic())
        return self

    def __exit__(self, *_):
        self.done.set()
        for writer in self.writers:
            writer.join()

    def of(self, log, after=-2000):
        """The last answers: when they were asked for, when they came, and the key."""
        with self.lock:
            return self.answered.get(log, [])[after:]

    def more(self, since, logs=None):
        """Waits until each client could have had an answer to what it asked after this time."""
        for log in logs or self.logs:
            eventually(lambda log=log: sum(begun > since for begun, _, _ in self.of(log, -500)) >= 3 * CLIENTS)

    def gap(self, log, since):
        """The longest time without an answer from just before `since`."""
        ends = sorted(end for _, end, _ in self.of(log))
        ends = [end for at, end in enumerate(ends) if end >= since or at + 1 < len(ends) and ends[at + 1] >= since]
        return max(after - before for before, after in zip(ends, ends[1:]))

    def check(self, node):
        """Every write answered so far is at this node, once."""
        for log in self.logs:
            position, count, seen = self.checked[log]
            keys = self.of(log, count)
            while True:
                _, page = node.ask("GET", f"/v1/logs/{log}/events?after={position}&limit=1000&consistency=linearizable&wait_ms=30000")
                for event in page["events"]:
                    assert event["data"] not in seen, f"{event['data']} is there twice"
                    seen.add(event["data"])
                    position = event["position"]
                if len(page["events"]) < 1000:
                    break
            missing = [key for _, _, key in keys if key not in seen]
            assert not missing, f"{missing} were answered and are not there"
            self.checked[log] = (position, count + len(keys), seen)


def leader(nodes):
    """The node that leads `system`, and so orders, as another one says."""
    def found():
        for node in nodes:
            try:
                _, told = node.ask("GET", "/v1/cluster", timeout=5)
            except OSError:
                continue
            if told["leader"]:
                return next(other for other in nodes if other.name == told["leader"]["node"])
    return eventually(found)


def pin(log, to):
    """Has a node lead a log; whether it does."""
    status, told = to.ask("PUT", f"/v1/cluster/leads/{log}", json.dumps({"to": to.name}), JSON)
    return status == 200 and told["leads"]


def order(to):
    """Has a node order; whether it does."""
    status, told = to.ask("POST", "/v1/cluster/transfer", json.dumps({"to": to.name}), JSON)
    return status == 200 or print(f"ordering does not move: {status} {told['title']}")


def moves(nodes, options, put, summary):
    def move(round, case, to, has_moved):
        begun = time.monotonic()
        if has_moved(to):
            ended = time.monotonic()
            load.more(ended)
            slowest = max(end - start for start, end, _ in load.of("hot") if start < ended and end > begun)
            put(case, round=round, slowest_ms=slowest * 1e3, moved_ms=(ended - begun) * 1e3, to=to.name)

    with Load(nodes, "hot") as load:
        for round in range(options.times):
            move(round, "lead", nodes[round % len(nodes)], lambda to: pin("hot", to))
        for round in range(options.times // 2 or 1):
            orders = nodes.index(leader(nodes))
            move(round, "ordering", nodes[(orders + 1) % len(nodes)], order)
        load.check(nodes[0])
    for case in ("lead", "ordering"):
        summary(case)


def kills(nodes, options, put, summary):
    with Load(nodes, "hot", "aside") as load:
        for case, round in itertools.product(("orderer", "other"), range(options.times)):
            orders = leader(nodes)
            other = nodes[(nodes.index(orders) + 1) % len(nodes)]
            eventually(lambda: pin("hot", orders) and pin("aside", other))
            dies, (its, elsewhere) = (orders, ("hot", "aside")) if case == "orderer" else (other, ("aside", "hot"))
            load.more(time.monotonic())
            # The placer may have moved it back for a node that has just returned.
            eventually(lambda: pin(its, dies))
            killed = time.monotonic()
            dies.kill()
            load.more(killed)
            put(f"kill-{case}", round=round, gap_ms=load.gap(its, killed) * 1e3, elsewhere_ms=load.gap(elsewhere, killed) * 1e3)
            dies.start(options)
            load.check(dies)
        for node in nodes:
            load.check(node)
        print(f"{sum(len(load.of(log, 0)) for log in load.logs)} writes were answered, and are there once")
    for case in ("kill-orderer", "kill-other"):
        summary(case)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["moves", "kills"])
    parser.add_argument("--times", type=int, required=True)
    for name in ("program", "work", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("nodes", nargs="+", type=Node)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143) if stop(options.nodes) is None else None)

    rows = []

    def put(case, **members):
        rows.append({"case": case} | members)
        with open(options.out, "a") as out:
            out.write(json.dumps(rows[-1]) + "\n")

    def summary(case):
        """The median, the 99th percentile and the largest of what the rows of a case have in ms."""
        of_case = [row for row in rows if row["case"] == case]
        for name in [name for name in (of_case[0] if of_case else []) if name.endswith("_ms")]:
            values = sorted(row[name] for row in of_case)
            put(f"all-{case}", what=name, p50=statistics.median(values), p99=values[math.ceil(len(values) * 0.99) - 1], most=values[-1])

    try:
        for log in ("hot", "aside"):
            options.nodes[0].ask("PUT", f"/v1/logs/{log}")
        {"moves": moves, "kills": kills}[options.what](options.nodes, options, put, summary)
    finally:
        stop(options.nodes)


def stop(nodes):
    for node in nodes:
        if node.child:
            node.child.kill()
            node.child.wait()


main()
