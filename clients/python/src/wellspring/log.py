"""One log of a server: append, read, project, decide, subscribe."""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Literal,
    overload,
)

from .answers import Accepted, Appended, BulkAppended, LogInfo, Projected
from .cursor import Cursor, Place, cursor_at
from .errors import AnotherHistory, ConditionFailed, Headers, WellspringError
from .events import ALL, Condition, Event, Json, NewEvent, Projection, Query
from .leases import Fence, Lease
from .retry import Backoff, RetryPolicy
from .subscription import Subscription
from .transport import Answer, Request, Stream, Transport

_BULK_LINES = 10_000
_BULK_BYTES = 8 << 20
_PAGE_EVENTS = 1000
_HISTORY = "Wellspring-History"
_DECISIONS = RetryPolicy(attempts=100, total_s=30.0, first_s=0.001, longest_s=0.05)


@dataclass
class _Known:
    """What this client knows of the log; guarded by the log's lock."""

    history: str | None = None
    seen: int = 0


class Log:
    """One log of the server. Threads may share it; `Client.log` returns one for each name."""

    def __init__(self, transport: Transport, name: str, read_your_writes: bool) -> None:
        self.name = name
        self._transport = transport
        self._path = "/v1/logs/" + urllib.parse.quote(name, safe="")
        self._read_your_writes = read_your_writes
        self._lock = threading.Lock()
        self._known = _Known()

    def __repr__(self) -> str:
        return f"Log({self.name!r} at {self._transport.url})"

    # The log itself

    def create(self) -> bool:
        """Creates the log; False if it exists, unchanged."""
        answer = self._transport.exchange(Request("PUT", self._path))
        if answer.status == 201:
            self.forget_history()
        self._learn(answer.headers, None)
        return answer.status == 201

    def drop(self) -> None:
        """Deletes the log with all its events."""
        confirm = urllib.parse.quote(self.name, safe="")
        self._change("DELETE", f"?confirm={confirm}", None)
        self.forget_history()

    def info(self) -> LogInfo:
        """Head, size, and numbers of types and tags."""
        found = self._read("GET", "").json()
        names = [name for name in LogInfo.__dataclass_fields__ if name != "history"]
        return LogInfo(**{name: found[name] for name in names}, history=found.get("history"))

    def head(self) -> Cursor:
        """The end of the log as it is now."""
        answer = self._read("GET", "/head")
        return Cursor(answer.json()["head"], answer.headers.get(_HISTORY))

    @property
    def history(self) -> str | None:
        """The history that this client takes the log to have; None if the server tells none."""
        with self._lock:
            return self._known.history

    def forget_history(self) -> None:
        """Accepts whatever log the server has from now on, after `AnotherHistory`.

        Positions and cursors from before must be discarded by the caller.
        """
        with self._lock:
            self._known = _Known()

    # Appending

    @overload
    def append(
        self,
        events: Iterable[NewEvent],
        condition: Condition | None = None,
        *,
        key: str | None = None,
        fence: Fence | None = None,
        ack: Literal["durable"] = "durable",
    ) -> Appended: ...

    @overload
    def append(
        self,
        events: Iterable[NewEvent],
        condition: Condition | None = None,
        *,
        key: str | None = None,
        fence: Fence | None = None,
        ack: Literal["accepted"],
    ) -> Accepted: ...

    def append(
        self,
        events: Iterable[NewEvent],
        condition: Condition | None = None,
        *,
        key: str | None = None,
        fence: Fence | None = None,
        ack: Literal["durable", "accepted"] = "durable",
    ) -> Appended | Accepted:
        """Appends all events or none.

        It is repeated as long as its outcome is unknown, under one idempotency key, so the events
        are stored once. `key` names a request that outlives this process; the same key must
        come with the same events. An error's `key` is that of the request.

        Raises `ConditionFailed`, `LeaseLost`, `Invalid` and so on: nothing was appended. After
        `OutcomeUnknown` it may have been; append the same under the same key to find out.
        """
        return self._append(events, condition, key, fence, ack, self.history)

    def _append(
        self,
        events: Iterable[NewEvent],
        condition: Condition | None,
        key: str | None,
        fence: Fence | None,
        ack: str,
        history: str | None,
    ) -> Appended | Accepted:
        sent: dict[str, Any] = {"events": [event.to_json() for event in events]}
        if condition is not None:
            sent["condition"] = condition
        if fence is not None:
            sent["fence"] = fence
        if ack != "durable":
            sent["ack"] = ack
        key = key or str(uuid.uuid4())
        answer = self._keyed("/append", _json_bytes(sent), "application/json", key, history)
        if ack != "durable":
            return Accepted(answer["accepted"])
        self._has_written(answer["last"])
        return Appended(answer["first"], answer["last"], answer["head"], answer["replayed"])

    def append_bulk(self, events: Iterable[NewEvent], *, key: str | None = None) -> BulkAppended:
        """Appends any number of events, in batches of at most 1000, each of them atomic.

        Under the same `key` the same events can be sent again: what is in the log is found, and
        the rest is added. Raises `Invalid` with `line`; everything before it is in the log.
        """
        key = key or str(uuid.uuid4())
        done: list[dict[str, Any]] = []
        lines = 0
        for number, (count, body) in enumerate(_bulk_bodies(events)):
            part = f"{key}.{number}"
            try:
                kind = "application/x-ndjson"
                done.append(self._keyed("/append", body, kind, part, self.history))
            except WellspringError as error:
                error.key = key
                for member in ("line", "durable_lines"):
                    if member in error.problem:
                        error.problem[member] += lines
                raise
            lines += count
        filled = [part for part in done if part.get("last") is not None]
        if filled:
            self._has_written(filled[-1]["last"])
        return BulkAppended(
            events=sum(part["events"] for part in done),
            first=filled[0]["first"] if filled else None,
            last=filled[-1]["last"] if filled else None,
            replayed=bool(done) and all(part["replayed"] for part in done),
        )

    def ingest(
        self,
        data: Json | bytes,
        *,
        type: str | None = None,
        tags: Iterable[str] = (),
        ack: Literal["accepted", "durable"] = "accepted",
    ) -> None:
        """Hands over one frequent, small event, answered from memory (`POST /e`).

        A crash of the server may lose the last milliseconds. Never repeated: after
        `OutcomeUnknown` it may be stored or not.
        """
        terms = [("type", type)] if type is not None else []
        terms += [("tag", tag) for tag in tags]
        terms += [("ack", ack)] if ack != "accepted" else []
        is_bytes = isinstance(data, (bytes, bytearray, memoryview))
        kind = "application/octet-stream" if is_bytes else "application/json"
        body = bytes(data) if is_bytes else _json_bytes(data)
        query = "?" + urllib.parse.urlencode(terms) if terms else ""
        self._change("POST", "/e" + query, body, kind)

    # Reading

    def read(
        self,
        query: Query = ALL,
        *,
        after: Place | None = None,
        limit: int | None = None,
        backwards: bool = False,
        page: int = _PAGE_EVENTS,
    ) -> Iterator[Event]:
        """The events that match, oldest first, or newest first if `backwards`; page by page.

        `after` is exclusive and follows the direction: backwards, it means before. A cursor is
        checked: if the log has another history, or is not that long, `AnotherHistory` is raised.
        """
        place = None if after is None else cursor_at(after)
        history = place.history if place is not None else None
        position = None if place is None else place.position
        left = limit
        while left is None or left > 0:
            size = page if left is None else min(page, left)
            wanted: dict[str, Any] = {"query": query, "limit": size}
            if position is not None:
                wanted["after"] = position
            if backwards:
                wanted["order"] = "desc"
            answer = self._read("POST", "/query", _json_bytes(wanted), history)
            # All pages are of one log.
            history = history or answer.headers.get(_HISTORY)
            found = answer.json()
            for event in found["events"]:
                yield Event.of_json(event, history)
            position = found["next"]
            if position is None:
                return
            left = None if left is None else left - len(found["events"])

    def event(self, position: int) -> Event:
        """One event by its position; `NotFound` if there is none."""
        answer = self._read("GET", f"/events/{int(position)}")
        return Event.of_json(answer.json(), answer.headers.get(_HISTORY))

    def event_by_id(self, id: str) -> Event:
        """One event by its id; `NotFound` if there is none."""
        answer = self._read("GET", "/events/by-id/" + urllib.parse.quote(str(id), safe=""))
        return Event.of_json(answer.json(), answer.headers.get(_HISTORY))

    def subscribe(
        self,
        query: Query = ALL,
        *,
        after: Place | Literal["start", "end"] = "start",
        heartbeat_timeout_s: float = 45.0,
        give_up_after_s: float | None = None,
    ) -> Subscription:
        """Follows the log after a cursor, a position, its start or its present end.

        A connection without a sign of life for `heartbeat_timeout_s` is replaced; the server
        sends one every 15 s by default. Without `give_up_after_s` it tries for ever to reconnect.
        """
        if after == "end":
            place = self.head()
        else:
            place = Cursor(0) if after == "start" else cursor_at(after)
        return Subscription(self, query, place, heartbeat_timeout_s, give_up_after_s)

    # Deciding

    def project(
        self, projections: Mapping[str, Projection], *, after: int | None = None
    ) -> Projected:
        """Folds events on the server, all projections in one read."""
        wanted: dict[str, Any] = {"projections": dict(projections)}
        if after is not None:
            wanted["after"] = after
        answer = self._read("POST", "/project", _json_bytes(wanted))
        found = answer.json()
        return Projected(
            states=found["states"],
            position=found["position"],
            condition=found["appendCondition"],
            history=answer.headers.get(_HISTORY),
        )

    def decide(
        self,
        projections: Mapping[str, Projection],
        decision: Callable[[dict[str, Any]], Iterable[NewEvent] | None],
        *,
        policy: RetryPolicy = _DECISIONS,
    ) -> Appended | None:
        """Projects, lets `decision(states)` return events, appends them under the condition.

        If another writer got there first, all of it is repeated on the new states, so `decision`
        must have no effects of its own. Returns None if there are no events to append. Raises
        what `decision` raises, and `ConditionFailed` if others were always faster.
        """
        backoff = Backoff(policy)
        while True:
            known = self.project(projections)
            events = list(decision(known.states) or ())
            if not events:
                return None
            try:
                history = known.history or self.history
                done = self._append(events, known.condition, None, None, "durable", history)
                assert isinstance(done, Appended)
                return done
            except ConditionFailed:
                pause_s = backoff.next_pause_s()
                if pause_s is None:
                    raise
                time.sleep(pause_s)

    # Leases

    def acquire_lease(self, name: str, ttl_s: float, *, wait_s: float = 0.0) -> Lease:
        """Acquires a lease, waiting for it at most `wait_s` (60 s); else raises `LeaseHeld`."""
        sent: dict[str, Any] = {"ttl_ms": round(ttl_s * 1000)}
        if wait_s:
            sent["wait_ms"] = round(wait_s * 1000)
        path = "/leases/" + urllib.parse.quote(name, safe="")
        timeout_s = self._transport.timeout_s + wait_s
        answer = self._change("POST", path, _json_bytes(sent), timeout_s=timeout_s)
        return Lease(self, path, answer.json())

    # Requests

    def _headers(self, history: str | None) -> dict[str, str]:
        history = history or self.history
        return {_HISTORY: history} if history is not None else {}

    def _read(
        self, method: str, path: str, body: bytes | None = None, history: str | None = None
    ) -> Answer:
        headers = self._headers(history)
        headers.update(self._freshness())
        if body is not None:
            headers["Content-Type"] = "application/json"
        answer = self._transport.exchange(Request(method, self._path + path, body, headers))
        self._learn(answer.headers, history)
        return answer

    def _freshness(self) -> dict[str, str]:
        with self._lock:
            seen = self._known.seen
        return {"Wellspring-Min-Position": str(seen)} if self._read_your_writes and seen else {}

    def _keyed(
        self, path: str, body: bytes, kind: str, key: str, history: str | None
    ) -> dict[str, Any]:
        headers = {**self._headers(history), "Content-Type": kind, "Idempotency-Key": key}
        request = Request("POST", self._path + path, body, headers, is_safe=True, changes=True)
        try:
            answer = self._transport.exchange(request)
            self._learn(answer.headers, history)
            found: dict[str, Any] = answer.json()
            return found
        except WellspringError as error:
            error.key = key
            raise

    def _change(
        self,
        method: str,
        path: str,
        body: bytes | None,
        kind: str = "application/json",
        *,
        is_safe: bool = False,
        timeout_s: float | None = None,
    ) -> Answer:
        headers = self._headers(None)
        if body is not None:
            headers["Content-Type"] = kind
        answer = self._transport.exchange(
            Request(method, self._path + path, body, headers, is_safe, True, timeout_s)
        )
        self._learn(answer.headers, None)
        return answer

    def _open_stream(self, query: Query, after: Cursor, timeout_s: float) -> Stream:
        # No freshness is asked for: own writes will come. A server that has lost them since must
        # say that its log is behind `after`, instead of being waited for.
        headers = {
            **self._headers(after.history),
            "Accept": "text/event-stream",
            "Content-Type": "application/json",
        }
        body = _json_bytes({"query": query, "after": after.position})
        request = Request("POST", self._path + "/query", body, headers, timeout_s=timeout_s)
        stream = self._transport.open(request)
        try:
            self._learn(stream.headers, after.history)
        except AnotherHistory:
            stream.close()
            raise
        return stream

    def _learn(self, headers: Headers, expected: str | None) -> None:
        """Remembers the first history that the server tells, and checks every later one."""
        told = headers.get(_HISTORY)
        if told is None:
            return
        with self._lock:
            if self._known.history is None:
                self._known.history = told
            expected = expected or self._known.history
        if told != expected:
            head = headers.get("Wellspring-Position")
            problem = {"history": told, "head": int(head) if head else None}
            message = f"log {self.name} has history {told} now, not {expected}"
            raise AnotherHistory(message, problem=problem, headers=headers)

    def _has_written(self, position: int) -> None:
        with self._lock:
            self._known.seen = max(self._known.seen, position)


def _json_bytes(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def _bulk_bodies(events: Iterable[NewEvent]) -> Iterator[Any]:
    """Bodies of bounded size, each with its number of lines; cut by content alone, so that a
    repetition cuts the same ones."""
    lines: list[bytes] = []
    size = 0
    for event in events:
        line = _json_bytes(event.to_json())
        lines.append(line)
        size += len(line) + 1
        if len(lines) == _BULK_LINES or size >= _BULK_BYTES:
            yield len(lines), b"\n".join(lines)
            lines, size = [], 0
    if lines:
        yield len(lines), b"\n".join(lines)
