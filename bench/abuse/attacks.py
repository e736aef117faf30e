"""Attacks with requests that are dear: each repeats one of a review that once stalled or filled a server.

An attack is what one of its workers does again and again. What the server answers is counted, not
judged: it may refuse. Whether others notice is measured by somebody else.
"""

import collections
import dataclasses
import functools
import json
import os
import pathlib
import threading
import time
from typing import Callable

from . import bolt
from .wire import Http1, Http2

NEVER = str(2**40)
MAX_WAIT_MS = 60_000
NDJSON = [("content-type", "application/x-ndjson")]
JSON = [("content-type", "application/json")]
# More than one of these at once would only have Python's threads wait for each other.
WORKERS_MOST = 32


@dataclasses.dataclass(frozen=True)
class Attack:
    """What a worker does again and again, and how many do."""

    what: str
    workers: int
    once: Callable
    # Workers of a short run.
    few: int = 2


def document(value):
    return json.dumps(value, separators=(",", ":")).encode()


@functools.cache
def items(count, types, tags, type_name="t", tag_name="g"):
    """Items of a query that have no type and no tag in common."""
    return [
        {"types": [f"{type_name}{i}-{n}" for n in range(types)], "tags": [f"{tag_name}{i}:{n}" for n in range(tags)]}
        for i in range(count)
    ]


@functools.cache
def many_projectors():
    """256 projectors of 256 items each, all different (S1)."""
    projectors = [
        {"id": f"p{p}", "query": {"items": [{"types": [f"t{p}-{i}"]} for i in range(256)]}} for p in range(256)
    ]
    return document({"projectors": projectors})


def project_dialect(server, turn):
    if turn % 2:
        return server.post("/project", many_projectors())[0]
    # And who does not wait for the answer.
    with Http1(server) as connection:
        connection.send("POST", "/project", many_projectors(), JSON)
    return "left"


@functools.cache
def never_meet():
    """Two common tags that no event has both of, again and again: a read to the end of the log (S2)."""
    return document({"query": {"items": [{"tags": ["a:1", "b:2"]}]}, "limit": 1})


def rapid_reset(server, _turn):
    """300 dear reads begun and reset over one connection."""
    connection = Http2(server)
    try:
        streams = []
        for _ in range(300):
            streams.append(connection.open("POST", "/v1/query", never_meet(), JSON))
        for stream in streams:
            connection.reset(stream)
        connection.pump(0.2)
    finally:
        connection.close()
    time.sleep(0.5)
    return "reset"


@functools.cache
def large_query(types):
    """A query of 256 items of that many types of 200 bytes."""
    long = [{"types": [f"{i}-{n}".ljust(200, "x") for n in range(types)]} for i in range(256)]
    return document({"query": {"items": long}})


def large_subscription(server, turn):
    """A subscription with the largest query, or with one as large as may be (S3)."""
    body = large_query(256) if turn % 4 == 0 else large_query(1)
    with Http1(server, 3.0) as connection:
        connection.send("POST", "/v1/query", body, [*JSON, ("accept", "text/event-stream")])
        status, _ = connection.head()
        if status == 200:
            held_until = time.monotonic() + 3.0
            try:
                while time.monotonic() < held_until and connection.file.readline():
                    pass
            except TimeoutError:
                pass
        return status


def large_wait(server, _turn):
    """A request with a large body that waits for what never comes (S3)."""
    headers = [("wellspring-min-position", NEVER)]
    return server.post("/v1/query?wait_ms=3000", large_query(5), headers, timeout_s=10.0)[0]


@functools.cache
def largest_condition(types, tags):
    condition = {"failIfEventsMatch": {"items": items(256, types, tags)}}
    return document({"events": [{"type": "Judged", "data": 1}], "condition": condition})


def dear_condition(server, turn):
    """The largest condition there can be, and the largest that is legal (S4)."""
    return server.post("/v1/append", largest_condition(*[(256, 64), (8, 8)][turn % 2]))[0]


def meeting_condition(server, _turn):
    """256 conditions on two common tags that never meet (S4)."""
    condition = {"failIfEventsMatch": {"items": [{"tags": ["a:1", "b:2", f"c:{i}"]} for i in range(256)]}}
    body = {"events": [{"type": "Judged", "data": 1}], "condition": condition}
    return server.post("/v1/append", document(body))[0]


def waiters(server, path, body, headers, connections):
    """As many requests that wait as so many connections carry, for as long as they may (S5)."""
    held = []
    try:
        for _ in range(connections):
            connection = Http2(server)
            held.append(connection)
            for _ in range(250):
                connection.open("POST" if body else "GET", path, body, headers)
            connection.pump(0.01)
        until = time.monotonic() + 5.0
        while time.monotonic() < until:
            for connection in held:
                connection.pump(0.005)
    finally:
        for connection in held:
            connection.close()
    return "held"


def lease_waiters(server, turn, connections=18):
    body = document({"ttl_ms": MAX_WAIT_MS, "wait_ms": MAX_WAIT_MS})
    return waiters(server, f"/v1/leases/abused-{turn % 4}", body, JSON, connections)


def feed_waiters(server, _turn, connections=67):
    headers = [("wellspring-min-position", NEVER)]
    return waiters(server, f"/v1/head?wait_ms={MAX_WAIT_MS}", b"", headers, connections)


def key_storm(server, turn):
    """A reader makes keys and has them rotated (S7)."""
    with Http1(server) as connection:
        last = None
        for _ in range(50):
            status, answer = connection.ask("POST", "/v1/keys", b'{"role":"reader"}', JSON)
            last = status
            if status != 201:
                break
            key = json.loads(answer)["id"]
            for _ in range(3):
                status, answer = connection.ask("POST", f"/v1/keys/{key}/rotate", b"{}", JSON)
                if status != 201:
                    break
                key = json.loads(answer)["id"]
        return last


DETERMINISTIC = document({"url": "https://example.com/again", "deterministic": True})


def deterministic_links(server, _turn):
    """Links whose codes were all taken by others that are deleted (S8)."""
    return server.ask("POST", "/api/urls", b"\n".join([DETERMINISTIC] * 250), NDJSON)[0]


def long_lists(server, turn):
    """Lists of all there is (S9)."""
    path = ["/v1/types?limit=10000", "/v1/tags?limit=1", "/v1/logs", "/v1/types", "/v1/logs/main"][turn % 5]
    return server.ask("GET", path)[0]


def unique_tags(server, turn):
    """64 tags an event that nothing else has (S12)."""
    stamp = f"{threading.get_ident()}-{turn}"
    lines = [
        document({"type": "Tagged", "tags": [f"{stamp}-{n}-{i}" for i in range(64)], "data": 1}) for n in range(100)
    ]
    return server.ask("POST", "/v1/append", b"\n".join(lines), NDJSON)[0]


def unknown_types(server, turn):
    """Types that no event has, each to be looked up in each segment (S13)."""
    query = {"items": items(256, [256, 16][turn % 2], 0, "unknown")}
    match turn % 3:
        case 0:
            return server.post("/v1/query", document({"query": query, "limit": 1}))[0]
        case 1:
            return server.post("/v1/project", document({"projections": {"p": {"query": query, "reduce": "count"}}}))[0]
        case _:
            body = {"events": [{"type": "Judged", "data": 1}], "condition": {"failIfEventsMatch": query}}
            return server.post("/v1/append", document(body))[0]


ALL_TAGS = [f"shared:{n}" for n in range(64)]


@functools.cache
def shared_projections(item_count):
    shared = [{"types": [f"None-{i}"], "tags": ALL_TAGS[: 64 - i % 8]} for i in range(item_count)]
    projections = {
        f"p{n}": {"query": {"items": shared}, "init": 0, "reduce": {"sum": "/n"}} for n in range(64)
    }
    return document({"projections": projections})


def long_items(server, turn):
    """64 projections that share long items (S14)."""
    return server.post("/v1/project", shared_projections([256, 60][turn % 2]))[0]


ROWS = bolt.message(bolt.RUN, f"UNWIND range(1, 300000) AS i RETURN i, '{'x' * 100}' AS t", {}, {})


def bolt_rows(server, turn):
    """Results of tens of MB that nobody reads, and messages longer than may be."""
    if turn % 4 == 3:
        with bolt.connect(server, bolt.TOO_LONG) as connection:
            return "closed" if ended(connection) else "open"
    with bolt.connect(server, bolt.LOGGED_ON + ROWS + bolt.message(bolt.PULL, {"n": -1})):
        time.sleep(3.0)
    return "left"


def ended(connection):
    """Whether the server closes a connection within 3 s, whatever it sends before."""
    connection.settimeout(3.0)
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    return True


ALL = {
    "project-dialect": Attack("S1: 256 projectors of 256 items", 8, project_dialect),
    "rapid-reset": Attack("S2: 300 dear reads reset", 1, rapid_reset, 1),
    "large-subscriptions": Attack("S3: subscriptions with large queries", 30, large_subscription, 6),
    "large-waits": Attack("S3: requests that wait with large bodies", 30, large_wait, 6),
    "dear-conditions": Attack("S4: the largest conditions", 4, dear_condition),
    "meeting-conditions": Attack("S4: conditions on common tags", 8, meeting_condition),
    "lease-waiters": Attack("S5: 4,500 wait for leases", 1, lease_waiters, 1),
    "feed-waiters": Attack("S5: 17,000 wait for a position", 1, feed_waiters, 1),
    "keys": Attack("S7: keys made and rotated", 4, key_storm),
    "deterministic": Attack("S8: deterministic links whose codes are taken", 2, deterministic_links),
    "long-lists": Attack("S9: lists of all types, tags and logs", 16, long_lists, 4),
    "unique-tags": Attack("S12: 64 tags an event that nothing else has", 2, unique_tags),
    "unknown-types": Attack("S13: 65,536 types that nothing has", 4, unknown_types),
    "long-items": Attack("S14: projections that share long items", 4, long_items),
    "bolt-rows": Attack("results by Bolt that nobody reads", 16, bolt_rows, 4),
}


def prepare(server, short):
    """Puts in what the attacks ask for: bounded, and less if it is to be short."""
    if server.token:
        return
    events, types, taken = (20_000, 2_000, 70) if short else (1_000_000, 200_000, 300)
    line = lambda n: document({"type": "Filled", "tags": ["a:1" if n % 2 else "b:2"], "data": n})
    fill(server, (line(n) for n in range(events)))
    fill(server, (document({"type": f"{n}-".ljust(247, "y"), "data": 1}) for n in range(types)))
    fill(server, (document({"type": "Shared", "tags": ALL_TAGS, "data": {"n": n}}) for n in range(30)))
    for _ in range(taken):
        status, answer = server.post("/api/urls", DETERMINISTIC)
        if status not in (200, 201):
            break
        server.ask("DELETE", f"/api/urls/{json.loads(answer)['short_code']}")


def make_accounts(server, folder):
    """A reader and a writer of a server whose admin was made by the environment."""
    folder = pathlib.Path(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = os.environ["WELLSPRING_ADMIN_PASSWORD"]

    def log_in(name):
        status, answer = server.post("/auth/token", {"username": name, "password": password, "expires_in_s": 86_400})
        if status != 200:
            raise SystemExit(f"{name} cannot log in: {status} {answer[:300]!r}")
        return json.loads(answer)["access_token"]

    admin = dataclasses.replace(server, token=log_in("admin"))
    for role in ("reader", "writer"):
        body = {"name": role, "password": password, "roles": [role]}
        status, answer = admin.post("/v1/accounts", body)
        if status != 201:
            raise SystemExit(f"no account {role}: {status} {answer[:300]!r}")
        (folder / role).write_text(log_in(role))


def fill(server, lines):
    batch = []
    for line in lines:
        batch.append(line)
        if len(batch) == 10_000:
            send(server, batch)
            batch = []
    if batch:
        send(server, batch)


def send(server, batch):
    status, answer = server.ask("POST", "/v1/append", b"\n".join(batch), NDJSON)
    if status != 200:
        raise SystemExit(f"what the attacks ask for was refused: {status} {answer[:300]!r}")


def run(server, names, seconds, is_over, short):
    """Attacks until it is over; says `ready` once all workers are at it. Gives what they were answered."""
    stop, counts = threading.Event(), {name: collections.Counter() for name in names}
    until = time.monotonic() + seconds

    def work(name, begin):
        attack, turn = ALL[name], begin
        while not stop.is_set():
            try:
                if short and name.endswith("-waiters"):
                    told = attack.once(server, turn, connections=2)
                else:
                    told = attack.once(server, turn)
            except (OSError, ValueError) as error:
                told = type(error).__name__
                time.sleep(0.05)
            counts[name][str(told)] += 1
            turn += 1

    threads = []
    for name in names:
        workers = min(ALL[name].few if short else ALL[name].workers, WORKERS_MOST)
        threads += [threading.Thread(target=work, args=(name, n), daemon=True) for n in range(workers)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    while time.monotonic() < until and not is_over():
        time.sleep(0.05)
    stop.set()
    # They are ended with the process: a request under way is cut, as an attacker's is.
    return {name: dict(found) for name, found in counts.items()}
