"""How long a server takes until it answers as before an abuse."""

import json
import pathlib
import time

from .wire import Http1

# It is watched so long.
WATCHED_S = 10.0
# Back to quiet is so long without a slow answer.
STRETCH_S = 2.0
# Quiet is looked at so long.
QUIET_S = 3.0
PAUSE_S = 0.02
EVENT = b'{"events":[{"type":"Probed","tags":[],"data":1}]}'
PROBES = [("GET", "/health", b""), ("POST", "/v1/append", EVENT), ("POST", "/e", b'{"n":1}')]


def probes(server, seconds, is_enough=lambda found: False):
    """When each round of probes was over (seconds from the beginning), and how long the slowest took (s)."""
    begun, found, connections = time.monotonic(), [], {}
    while time.monotonic() - begun < seconds and not is_enough(found):
        slowest = 0.0
        for method, path, body in PROBES:
            at = time.monotonic()
            try:
                connection = connections.get(path) or Http1(server, WATCHED_S)
                connections[path] = connection
                status, _ = connection.ask(method, path, body, [("content-type", "application/json")])
                if status >= 500 or status == 429:
                    slowest = WATCHED_S
            except (OSError, ValueError):
                connections.pop(path, None)
                slowest = WATCHED_S
            slowest = max(slowest, time.monotonic() - at)
        found.append((time.monotonic() - begun, slowest))
        time.sleep(PAUSE_S)
    return found


def run(server, folder, label):
    """Called LABEL `quiet` it writes down what quiet is; else it writes when the last slow answer was."""
    # Each server has a quiet of its own.
    level = pathlib.Path(folder) / f"quiet-s-{server.address[1]}"
    if label.startswith("quiet"):
        times = sorted(slowest for _, slowest in probes(server, QUIET_S))
        level.write_text(str(times[int(len(times) * 0.99)]))
        return
    # Twice the quiet p99, and no less than what a machine of two cores does by itself.
    allowed = max(2 * float(level.read_text()), 0.01)

    def last_slow(found):
        return max((at for at, slowest in found if slowest > allowed), default=0.0)

    # A single slow one much later is the machine's: what counts is a stretch without.
    found = probes(server, WATCHED_S, lambda found: found and found[-1][0] - last_slow(found) > STRETCH_S)
    back = last_slow(found)
    (pathlib.Path(folder) / f"{label}.settled").write_text(json.dumps({"back_after_s": round(back, 3)}))
