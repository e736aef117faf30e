"""Adds ITEMS items to a catalogue and waits until all can be found: fill.py ADDRESS ITEMS PID."""

import http.client
import json
import sys
import time

from words import Texts

BATCH = 1_000


def resident_mib(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def figure(connection, name: str) -> float:
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    return next((float(line.split()[1]) for line in lines if line.startswith(name + " ")), 0.0)


def main() -> None:
    address, count, pid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    connection = http.client.HTTPConnection(address, timeout=120)
    began, before = time.monotonic(), resident_mib(pid)

    def post(path: str, body: str, media_type: str) -> bytes:
        connection.request("POST", path, body, {"content-type": media_type})
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status in (200, 201), (answer.status, content[:500])
        return content

    if count:
        for topic in range(20):
            post("/v1/catalogue/topics", json.dumps({"name": f"topic {topic}"}), "application/json")
    texts = Texts(1)
    for first in range(0, count, BATCH):
        lines = (
            json.dumps({
                "sku": f"S{i}", "name": texts.text(2, 8), "description": texts.text(10, 40), "topic": i % 20 + 1,
                "price": "9.90", "stock": 10,
            })
            for i in range(first, min(first + BATCH, count))
        )
        post("/v1/catalogue/items", "\n".join(lines) + "\n", "application/x-ndjson")
    filled = time.monotonic()
    while True:
        connection.request("GET", "/v1/catalogue/search?q=zzz&consistency=local&wait_ms=60000")
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            break
        time.sleep(0.05)
    print(json.dumps({
        "what": "fill" if count else "start", "items": figure(connection, "wellspring_catalogue_search_items"),
        "filled_s": round(filled - began, 2), "indexed_after_s": round(time.monotonic() - filled, 2),
        "resident_mib_before": round(before), "resident_mib": round(resident_mib(pid)),
        "index_mib": round(figure(connection, "wellspring_catalogue_search_bytes") / 2**20, 1),
    }), flush=True)


if __name__ == "__main__":
    main()
