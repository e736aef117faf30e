"""What the examples share: a log of their own, a race, and claims that are checked.

They use the client in clients/python, straight from this checkout. WELLSPRING_URL is the server
(default http://127.0.0.1:4000). WELLSPRING_TOKEN, if set, is a token or an API key for a server
with accounts.
"""

import contextlib
import os
import random
import sys
import threading
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "clients" / "python" / "src"))

from wellspring import Client, ConditionFailed, NewEvent, Unavailable

URL = os.environ.get("WELLSPRING_URL", "http://127.0.0.1:4000")
TOKEN = os.environ.get("WELLSPRING_TOKEN", "").strip()
ATTEMPTS = 100


class Refused(Exception):
    """A business rule refuses. Retrying would not help."""


def event(event_type, tags, **data):
    """An event to be appended."""
    return NewEvent(event_type, data, tags)


def pause(attempt):
    """Backs off: longer each time, with jitter, so that rivals do not collide again."""
    time.sleep(random.uniform(0, min(0.001 * 2**attempt, 0.05)))


@contextlib.contextmanager
def fresh_log(example):
    """A log of its own for one run of an example, deleted at the end."""
    log = Client(URL, token=TOKEN or None).log(f"example-{example}-{uuid.uuid4().hex[:8]}")
    try:
        log.create()
    except Unavailable as fault:
        sys.exit(f"no Wellspring server at {URL} ({fault}); start one, or set WELLSPRING_URL")
    print(f"log {log.name} at {URL}")
    try:
        yield log
    finally:
        log.drop()


def race(actions):
    """Runs all actions at the same moment, each in a thread; returns their results or exceptions."""
    results = [None] * len(actions)
    barrier = threading.Barrier(len(actions))

    def run(i, action):
        barrier.wait()
        try:
            results[i] = action()
        except Exception as fault:  # the caller knows which ones are expected
            results[i] = fault

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, (Refused, ConditionFailed)):
            raise result
    return results


def succeeded(results):
    """The results of a race that are not refusals."""
    return [result for result in results if not isinstance(result, Exception)]


def chapter(title):
    print(f"\n{title}")


def say(text):
    print(f"  {text}")


def check(holds, claim):
    """Prints a claim that holds; ends the run with exit code 1 if it does not."""
    if not holds:
        print(f"  FAILED: {claim}", file=sys.stderr)
        raise SystemExit(1)
    print(f"  ok: {claim}")


def check_refused(action, claim):
    """Checks that a business rule refuses the action."""
    try:
        action()
    except Refused as refusal:
        check(True, f"{claim}: {refusal}")
    else:
        check(False, claim)
