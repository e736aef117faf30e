"""A small client for Wellspring's HTTP API, and the helpers that the examples share.

Python 3.9 or newer, standard library only. WELLSPRING_URL is the server
(default http://127.0.0.1:4000). WELLSPRING_TOKEN, if set, is a token or an API
key for a server with accounts.

`Log.decide` is a complete decision on a dynamic consistency boundary: project,
decide, append under the condition that came with the projection, and start
over if another writer got there first.
"""

import contextlib
import http.client
import json
import os
import random
import sys
import threading
import time
import urllib.parse
import uuid

URL = os.environ.get("WELLSPRING_URL", "http://127.0.0.1:4000")
TOKEN = os.environ.get("WELLSPRING_TOKEN", "").strip()
ATTEMPTS = 100
TIMEOUT_SECONDS = 30


class Refused(Exception):
    """A business rule refuses. Retrying would not help."""


class Conflict(Exception):
    """Events that the decision was based on have changed: nothing was appended."""


class HttpError(Exception):
    """Any other unsuccessful answer, with the server's explanation."""

    def __init__(self, status, problem):
        self.status = status
        self.problem = problem
        super().__init__(f"{status} {problem.get('title', '')}: {problem.get('detail', '')}")


class Decision:
    """The answer of a projection: the states, and the condition that protects a decision based on them."""

    def __init__(self, answer):
        self.states = answer["states"]
        self.position = answer["position"]
        self.condition = answer["appendCondition"]


def event(event_type, tags, **data):
    """An event to be appended."""
    return {"type": event_type, "tags": list(tags), "data": data}


def projection(reduce, types=(), tags=(), **more):
    """One projection: a reducer over the events that have one of the types and all of the tags."""
    item = {name: list(texts) for name, texts in (("types", types), ("tags", tags)) if texts}
    return {"query": {"items": [item]}, "reduce": reduce, **more}


class Log:
    """One log of the server; may be used from several threads at once."""

    def __init__(self, name, url=URL):
        self.name = name
        self._path = "/v1/logs/" + urllib.parse.quote(name, safe="")
        self._url = urllib.parse.urlsplit(url)
        self._thread = threading.local()
        self._seen = 0

    def create(self):
        self._call("PUT", "")

    def drop(self):
        self._call("DELETE", "?confirm=" + urllib.parse.quote(self.name))

    def project(self, projections):
        """Folds events on the server, all projections in one read."""
        return Decision(self._call("POST", "/project", {"projections": projections}))

    def append(self, events, condition=None, key=None):
        """Appends all events or none. Raises Conflict if the condition fails.

        The key makes a retry safe: the same key and body get the first answer again.
        """
        body = {"events": events}
        if condition is not None:
            body["condition"] = condition
        answer = self._call("POST", "/append", body, key or str(uuid.uuid4()))
        # Later reads of this client ask for at least this position, so they see the events.
        self._seen = max(self._seen, answer["last"])
        return answer

    def events(self, types=(), tags=()):
        """The events that have one of the types and all of the tags, oldest first."""
        terms = [("type", t) for t in types] + [("tag", t) for t in tags] + [("limit", "500")]
        after = 0
        while True:
            query = urllib.parse.urlencode(terms + [("after", after)])
            page = self._call("GET", "/events?" + query)
            yield from page["events"]
            if not page["events"] or page.get("next") is None:
                return
            after = page["next"]

    def decide(self, projections, decision):
        """Projects, lets `decision(states)` return events (or raise Refused), appends them.

        If the append condition fails, the states were out of date, and both steps are
        repeated. Returns the append's answer, or None if there was nothing to append.
        """
        for attempt in range(ATTEMPTS):
            known = self.project(projections)
            events = decision(known.states)
            if not events:
                return None
            try:
                return self.append(events, known.condition)
            except Conflict:
                pause(attempt)
        raise RuntimeError(f"gave up after {ATTEMPTS} attempts")

    def _call(self, method, path, body=None, key=None):
        headers = {"Accept": "application/json"}
        if TOKEN:
            headers["Authorization"] = f"Bearer {TOKEN}"
        if self._seen:
            headers["Wellspring-Min-Position"] = str(self._seen)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        payload = None if body is None else json.dumps(body)
        status, text = self._exchange(method, self._path + path, payload, headers)
        try:
            answer = json.loads(text) if text else {}
        except ValueError:
            answer = {"detail": text[:200].decode("utf-8", "replace")}
        if status == 409 and answer.get("type", "").endswith("append-condition-failed"):
            raise Conflict(answer.get("detail", "append-condition-failed"))
        if status >= 400:
            raise HttpError(status, answer)
        return answer

    def _exchange(self, method, path, payload, headers):
        """One request. A connection that the server has closed meanwhile is reopened, once:
        repeating is safe because reads change nothing and appends carry a key."""
        fresh = getattr(self._thread, "connection", None) is None
        try:
            connection = self._connection()
            connection.request(method, path, payload, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (http.client.HTTPException, ConnectionError):
            self._thread.connection.close()
            self._thread.connection = None
            if fresh:
                raise
            return self._exchange(method, path, payload, headers)

    def _connection(self):
        if getattr(self._thread, "connection", None) is None:
            secure = self._url.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            connection = kind(self._url.hostname, self._url.port, timeout=TIMEOUT_SECONDS)
            self._thread.connection = connection
        return self._thread.connection


def pause(attempt):
    """Backs off: longer each time, with jitter, so that rivals do not collide again."""
    time.sleep(random.uniform(0, min(0.001 * 2**attempt, 0.05)))


@contextlib.contextmanager
def fresh_log(example):
    """A log of its own for one run of an example, deleted at the end."""
    log = Log(f"example-{example}-{uuid.uuid4().hex[:8]}")
    try:
        log.create()
    except OSError as fault:
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
        if isinstance(result, Exception) and not isinstance(result, (Refused, Conflict)):
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
