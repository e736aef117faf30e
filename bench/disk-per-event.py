#!/usr/bin/env python3
"""What an event takes on disk: imports events of a few typical shapes into a server of its own and
looks at the files. Only full segments count, because the last one is written ahead of its events.

    WELLSPRING_BIN=target/release/wellspring bench/disk-per-event.py [EVENTS]
"""

import http.client
import json
import os
import re
import random
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

# The server would warn about a variable that it does not know.
PROGRAM = os.environ.pop("WELLSPRING_BIN", "target/release/wellspring")
EVENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000


def click(n: int, dice: random.Random) -> dict:
    """Telemetry: no tags."""
    return {"type": "Clicked", "data": {"page": f"/p/{dice.randrange(500)}", "ms": dice.randrange(9000)}}


def change(n: int, dice: random.Random) -> dict:
    """A small event of an entity of its own, with an event id."""
    entity = uuid.UUID(int=dice.getrandbits(128))
    return {"id": str(uuid.UUID(int=dice.getrandbits(128))), "type": "CourseDefined",
            "tags": [f"course:{entity}"], "data": {"capacity": dice.randrange(100), "title": f"Course {n}"}}


def order(n: int, dice: random.Random) -> dict:
    """An order: a tag of its own and two that others share, metadata, some hundred bytes of data."""
    lines = [{"sku": f"sku-{dice.randrange(5000)}", "quantity": dice.randrange(1, 9), "cents": dice.randrange(99_999)}
             for _ in range(4)]
    return {"id": str(uuid.UUID(int=dice.getrandbits(128))), "type": "OrderPlaced",
            "tags": [f"order:{n}", f"customer:{dice.randrange(20_000)}", f"store:{dice.randrange(300)}"],
            "metadata": {"correlation_id": str(uuid.UUID(int=dice.getrandbits(128)))},
            "data": {"lines": lines, "currency": "EUR"}}


def serve(folder: str) -> tuple:
    command = [PROGRAM, "serve", "--data", folder, "--listen", "127.0.0.1:0", "--segment-bytes", str(8 << 20)]
    log = open(Path(folder) / "server.log", "w+")
    server = subprocess.Popen(command, stdout=log, stderr=log)
    for _ in range(300):
        found = re.search(r"127\.0\.0\.1:([1-9]\d+)", Path(log.name).read_text())
        if found:
            return server, int(found[1])
        time.sleep(0.1)
    sys.exit("the server did not start: " + Path(log.name).read_text())


def fill_by_import(port: int, folder: str, shape) -> None:
    path, dice = Path(folder) / "events.ndjson", random.Random(7)
    with open(path, "w") as file:
        for n in range(EVENTS):
            file.write(json.dumps(shape(n, dice)) + "\n")
    subprocess.run([PROGRAM, "import", str(path), "--url", f"http://127.0.0.1:{port}"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def sizes(folder: str) -> tuple:
    """Events in full segments, bytes of those, and bytes of the index files."""
    log = Path(folder) / "logs" / "main"
    segments = sorted(log.glob("*.seg"))
    full = segments[:-1]
    return int(segments[-1].stem) - 1, sum(f.stat().st_size for f in full), sum(f.stat().st_size for f in log.glob("*.idx"))


def settled(folder: str) -> tuple:
    """The sizes once the background thread has written and merged its indexes."""
    before = None
    while (now := sizes(folder)) != before or now[2] == 0:
        before = now
        time.sleep(3)
    return now


def measure(name: str, shape) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server, port = serve(folder)
        try:
            fill_by_import(port, folder, shape)
            events, segments, indexes = settled(folder)
        finally:
            server.terminate()
            server.wait()
    example = shape(EVENTS // 2, random.Random(7))
    sent = len(json.dumps(example["data"], separators=(",", ":")))
    segment, index = segments / events, indexes / events
    print(f"{name:34} {sent:5} {segment:8.1f} {index:7.1f} {segment + index:7.1f}   {events} events", flush=True)


def measure_single(shape, count: int) -> float:
    """Bytes of a batch with one small event each, as written."""
    with tempfile.TemporaryDirectory() as folder:
        server, port = serve(folder)
        try:
            connection, dice = http.client.HTTPConnection("127.0.0.1", port), random.Random(7)
            for n in range(count):
                body = json.dumps({"events": [shape(n, dice)]})
                connection.request("POST", "/v1/append", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200, answer.status
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
        finally:
            server.terminate()
            server.wait()
    total = re.search(r'wellspring_log_batch_bytes_sum\{log="main"\} (\S+)', page)
    return float(total[1]) / count


def without(field: str, shape):
    """The shape with a field left out."""
    return lambda n, dice: {name: value for name, value in shape(n, dice).items() if name != field}


def with_tag(tag, shape):
    """The shape with one more tag."""
    return lambda n, dice: (event := shape(n, dice)) | {"tags": [*event.get("tags", []), tag(n, dice)]}


print(f"{'shape':34} {'data':>5} {'segment':>8} {'index':>7} {'sum':>7}   bytes an event, batches of 1000")
measure("telemetry, no tags", click)
measure("+ a tag of its own, a number", with_tag(lambda n, dice: f"click:{n}", click))
measure("+ a tag of its own, a UUID", with_tag(lambda n, dice: f"click:{uuid.UUID(int=dice.getrandbits(128))}", click))
measure("+ a tag that 1,000 share", with_tag(lambda n, dice: f"page:{n % (EVENTS // 1000)}", click))
measure("+ an event id", lambda n, dice: click(n, dice) | {"id": str(uuid.UUID(int=dice.getrandbits(128)))})
measure("small event, own tag, event id", change)
measure("order, 3 tags, metadata", without("id", order))
measure("order, 3 tags, metadata, event id", order)
print(f"small event, appended alone: {measure_single(change, 500):.0f} bytes of segment", flush=True)
