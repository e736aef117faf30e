"""One log of a server: append, read, project, decide, subscribe."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, Literal, overload

from .answers import Accepted, Appended, BulkAppended, LogInfo, PassedOver, Projected
from .calls import LogCalls
from .consumers import ConsumerKey, ConsumerStatus, consumer_path, milliseconds
from .cursor import Cursor, Place, cursor_at
from .errors import ConditionFailed, WellspringError, move_lines
from .events import (
    ALL,
    Condition,
    Event,
    Json,
    NewEvent,
    Projection,
    Query,
    events_json,
    listed,
    texts,
)
from .leases import Fence, HeldLease, Lease, acquire, hold
from .read_model import Connection, ReadModel
from .retry import Backoff, RetryPolicy
from .subscription import Subscription
from .transport import Request
from .wire import (
    LONGEST_BULK_KEY,
    Time,
    history_of,
    idempotency_key,
    json_bytes,
    member,
    query_text,
    segment,
    time_text,
    times_of,
)
from .worker import Handler, Worker

_BULK_LINES = 10_000
_BULK_BYTES = 8 << 20
_PAGE_EVENTS = 1000
WorkerDecorator = Callable[[Handler], Worker]
_DECISIONS = RetryPolicy(attempts=100, total_s=30.0, first_s=0.001, longest_s=0.05)


class Log(LogCalls):
    """One log of the server. Threads may share it; `Client.log` returns one for each name."""

    def __repr__(self) -> str:
        return f"Log({self.name!r} at {self._transport.url})"

    # The log itself

    def create(self) -> bool:
        """Creates the log; False if it exists, unchanged.

        The request is repeated as long as its outcome is unknown. So False may also mean that
        this call has created the log, at an attempt whose answer was lost.
        """
        answer = self._transport.exchange(Request("PUT", self._path, changes=True))
        if answer.status == 201:
            self.forget_history()
        self._learn(answer.headers, None)
        return answer.status == 201

    def drop(self) -> None:
        """Deletes the log with all its events."""
        self._change("DELETE", query_text([("confirm", self.name)]), None)
        self.forget_history()

    def info(self) -> LogInfo:
        """Head, size, and numbers of types and tags."""
        found = self._read("GET", "").json()
        counts = ("head", "disk_bytes", "segments", "types", "tags")
        return LogInfo(
            name=member(found, "name", str),
            **{name: member(found, name, int) for name in counts},
            more_types=member(found, "more_types", bool),
            more_tags=member(found, "more_tags", bool),
            history=found.get("history"),
        )

    def head(self) -> Cursor:
        """The end of the log as it is now."""
        answer = self._read("GET", "/head")
        return Cursor(member(answer.json(), "head", int), history_of(answer.headers))

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
        are stored once. `key`, of 1 to 255 printable ASCII characters, names a request that
        outlives this process; the same key must come with the same events. An error's `key` is
        that of the request.

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
        sent: dict[str, Any] = {"events": list(events_json(events))}
        if condition is not None:
            sent["condition"] = condition
        if fence is not None:
            sent["fence"] = fence
        if ack != "durable":
            sent["ack"] = ack
        with self._keyed(idempotency_key(key)) as append:
            found = append(json_bytes(sent), "application/json", history)
            if ack != "durable":
                return Accepted(member(found, "accepted", int))
            first, last, head = (member(found, name, int) for name in ("first", "last", "head"))
            done = Appended(first, last, head, member(found, "replayed", bool))
        self._has_written(done.last)
        return done

    def append_bulk(self, events: Iterable[NewEvent], *, key: str | None = None) -> BulkAppended:
        """Appends any number of events, in batches of at most 1000, each of them atomic.

        Under the same `key` the same events can be sent again: what is in the log is found, and
        the rest is added. A bulk's key has at most 230 characters: each batch is sent under one
        that begins with it. Raises `Invalid` with `line`; everything before it is in the log.
        """
        key = idempotency_key(key, LONGEST_BULK_KEY)
        done: list[BulkAppended] = []
        lines = 0
        for number, (count, body) in enumerate(_bulk_bodies(events)):
            try:
                done.append(self._append_part(body, f"{key}.{number}"))
            except WellspringError as error:
                error.key = key
                move_lines(error, lines)
                raise
            lines += count
        if done:
            self._has_written(done[-1].last or 0)
        return BulkAppended(
            events=sum(part.events for part in done),
            first=done[0].first if done else None,
            last=done[-1].last if done else None,
            replayed=bool(done) and all(part.replayed for part in done),
        )

    def _append_part(self, body: bytes, key: str) -> BulkAppended:
        """Appends lines of a bulk, of which there is at least one."""
        with self._keyed(key) as append:
            found = append(body, "application/x-ndjson", self.history)
            events, first, last = (member(found, name, int) for name in ("events", "first", "last"))
            return BulkAppended(events, first, last, member(found, "replayed", bool))

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
        terms += [("tag", tag) for tag in texts(tags, "tags")]
        terms += [("ack", ack)] if ack != "accepted" else []
        is_bytes = isinstance(data, (bytes, bytearray, memoryview))
        kind = "application/octet-stream" if is_bytes else "application/json"
        body = bytes(data) if is_bytes else json_bytes(data)
        self._change("POST", "/e" + query_text(terms), body, kind)

    # Reading

    def read(
        self,
        query: Query = ALL,
        *,
        after: Place | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        backwards: bool = False,
        page: int = _PAGE_EVENTS,
    ) -> Iterator[Event]:
        """The events that match, oldest first, or newest first if `backwards`; page by page.

        `after` is exclusive and follows the direction: backwards, it means before. A cursor is
        checked: if the log has another history, or is not that long, `AnotherHistory` is raised.
        `since` (inclusive) and `until` (exclusive) are times of recording.
        """
        times = times_of(since, until)
        place = None if after is None else cursor_at(after)
        history = place.history if place is not None else None
        position = None if place is None else place.position
        left = limit
        while left is None or left > 0:
            size = page if left is None else min(page, left)
            wanted: dict[str, Any] = {"query": query, "limit": size, **times}
            if position is not None:
                wanted["after"] = position
            if backwards:
                wanted["order"] = "desc"
            answer = self._read("POST", "/query", json_bytes(wanted), history)
            # All pages are of one log.
            history = history or history_of(answer.headers)
            found = answer.json()
            events = member(found, "events", list)
            for event in events:
                yield Event.of_json(event, history)
            if found.get("next") is None:
                return
            position = member(found, "next", int)
            left = None if left is None else left - len(events)

    def event(self, position: int) -> Event:
        """One event by its position; `NotFound` if there is none."""
        answer = self._read("GET", f"/events/{operator.index(position)}")
        return Event.of_json(answer.json(), history_of(answer.headers))

    def event_by_id(self, id: str) -> Event:
        """One event by its id; `NotFound` if there is none."""
        answer = self._read("GET", "/events/by-id/" + segment(str(id), "the id of an event"))
        return Event.of_json(answer.json(), history_of(answer.headers))

    def subscribe(
        self,
        query: Query = ALL,
        *,
        after: Place | Literal["start", "end"] = "start",
        since: Time | None = None,
        while_held: Lease | None = None,
        heartbeat_timeout_s: float = 45.0,
        give_up_after_s: float | None = None,
    ) -> Subscription:
        """Follows the log after a cursor, a position, its start or its present end.

        A connection without a sign of life for `heartbeat_timeout_s` is replaced; the server
        sends one every 15 s by default. Without `give_up_after_s` it tries for ever to reconnect.
        With `since` nothing is handed out that was recorded before. With `while_held` it raises
        `LeaseLost` when the lease ends, also if the server cannot be reached.
        """
        if after == "end":
            place = self.head()
        else:
            place = Cursor(0) if after == "start" else cursor_at(after)
        begins = None if since is None else time_text(since, "since")
        return Subscription(
            self, query, place, heartbeat_timeout_s, give_up_after_s, begins, while_held
        )

    # Deciding

    def project(
        self,
        projections: Mapping[str, Projection],
        *,
        after: int | None = None,
        since: Time | None = None,
        until: Time | None = None,
        key: str | None = None,
    ) -> Projected:
        """Folds events on the server, all projections in one read.

        `since` (inclusive) and `until` (exclusive) are times of recording; until some time, there
        is no condition. If something was appended under the `key`, the answer's `appended` is it.
        """
        wanted: dict[str, Any] = {"projections": dict(projections), **times_of(since, until)}
        if after is not None:
            wanted["after"] = after
        if key is not None:
            wanted["key"] = idempotency_key(key)
        answer = self._read("POST", "/project", json_bytes(wanted))
        found = answer.json()
        position = member(found, "position", int)
        guard: Any = None if until is not None else member(found, "appendCondition", dict)
        appended = found.get("appended")
        if appended is not None:
            first, last = (member(appended, name, int) for name in ("first", "last"))
            appended = Appended(first, last, max(position, last), True)
        states = member(found, "states", dict)
        passed_over = {
            name: PassedOver(member(each, "events", int), member(each, "first", int))
            for name, each in found.get("passed_over", {}).items()
        }
        history = history_of(answer.headers)
        return Projected(states, position, guard, history, appended, passed_over)

    def decide(
        self,
        projections: Mapping[str, Projection],
        decision: Callable[[dict[str, Any]], Iterable[NewEvent] | None],
        *,
        key: str | None = None,
        policy: RetryPolicy = _DECISIONS,
    ) -> Appended | None:
        """Projects, lets `decision(states)` return events, appends them under the condition.

        If another writer got there first, all of it is repeated on the new states, so `decision`
        must have no effects of its own. Returns None if there are no events to append. Raises
        what `decision` raises, and `ConditionFailed` if others were always faster.

        `key` names the request: a form that is sent twice gets the first answer, with `replayed`,
        and is not decided again, whichever process had it first.
        """
        backoff = Backoff(policy)
        while True:
            known = self.project(projections, key=key)
            if known.appended is not None:
                return known.appended
            events = list(listed(decision(known.states) or ()))
            if not events:
                return None
            try:
                history = known.history or self.history
                done = self._append(events, known.condition, key, None, "durable", history)
                assert isinstance(done, Appended)
                return done
            except WellspringError as error:
                # Of two requests with the key the later finds what the earlier has appended.
                is_late = key is not None and error.type == "idempotency-key-reused"
                again = is_late or isinstance(error, ConditionFailed)
                pause_s = backoff.next_pause_s() if again else None
                if pause_s is None:
                    raise
                time.sleep(pause_s)

    # Work in the background

    def define_consumer(
        self,
        name: str,
        query: Query,
        *,
        key: ConsumerKey = "none",
        begin: int | Time | Literal["beginning", "now"] = "beginning",
        run: int | None = None,
        max_tries: int | None = None,
        backoff_s: tuple[float, float] | None = None,
        on_failure: Literal["park-key", "park-event", "stop"] | None = None,
        hold_s: float | None = None,
        max_hold_s: float | None = None,
        max_in_flight: int | None = None,
    ) -> bool:
        """Defines or changes a consumer, as an operator; False if it was there.

        Events with the same value of the tag `key={"tag": "customer"}` are delivered in the order
        of the log, one after the other. `begin` counts when the consumer is created: the position
        after which it begins, a time, `"beginning"` or `"now"`. What is not given is as the
        server's manual says.
        """
        first = begin if isinstance(begin, int) else time_text(begin, "begin")
        sent: dict[str, Any] = {"query": query, "key": key, "from": first}
        counts = {"run": run, "max_tries": max_tries, "max_in_flight": max_in_flight}
        given = {**counts, "on_failure": on_failure}
        sent.update({name: value for name, value in given.items() if value is not None})
        times = {"hold": hold_s, "max_hold": max_hold_s, "backoff": backoff_s}
        sent.update(milliseconds(times))
        answer = self._change("PUT", consumer_path(name), json_bytes(sent), is_safe=True)
        return answer.status == 201

    def consumer(self, name: str) -> ConsumerStatus:
        """How far a consumer has come; `NotFound` if there is none."""
        return ConsumerStatus.of_json(self._read("GET", consumer_path(name)).json())

    @overload
    def worker(self, consumer: str, *, threads: int = 1, batch: int = 1) -> WorkerDecorator: ...

    @overload
    def worker(
        self, consumer: str, handle: Handler, *, threads: int = 1, batch: int = 1
    ) -> Worker: ...

    def worker(
        self, consumer: str, handle: Handler | None = None, *, threads: int = 1, batch: int = 1
    ) -> Worker | WorkerDecorator:
        """Makes a function the worker of a consumer: `run` calls it with each delivery.

        A delivery is settled when the function returns. If it returns events, they are appended
        to this log and the delivery is settled as one. If it raises, the delivery comes again
        after a pause, up to the consumer's `max_tries`; `Park` parks it at once.

        Each thread takes `batch` deliveries, and settles them together afterwards.
        """
        if handle is None:
            return lambda handle: Worker(self, consumer, handle, threads, batch)
        return Worker(self, consumer, handle, threads, batch)

    # Read models

    def read_model(self, name: str, connection: Connection, query: Query = ALL) -> ReadModel:
        """Rows of a database that follow the log, each event exactly once: `follow` applies them.

        The connection is one of any DB-API driver. `name`, of letters, digits, `_`, `.` and `-`,
        is unique in the database.
        """
        return ReadModel(self, name, connection, query)

    # Leases

    def acquire_lease(self, name: str, ttl_s: float, *, wait_s: float = 0.0) -> Lease:
        """Acquires a lease, waiting for it at most `wait_s` (60 s); else raises `LeaseHeld`."""
        return Lease(*acquire(self, name, ttl_s, wait_s))

    def hold_lease(
        self, name: str, ttl_s: float = 15.0, *, wait_s: float | None = None
    ) -> HeldLease:
        """Acquires a lease that renews itself; waits for it, or at most `wait_s`.

        As a context manager it is released at the end. If it cannot be renewed in time it is lost:
        its subscriptions raise `LeaseLost`, and so do fenced appends.
        """
        return hold(self, name, ttl_s, wait_s)


def _bulk_bodies(events: Iterable[NewEvent]) -> Iterator[Any]:
    """Bodies of bounded size, each with its number of lines; cut by content alone, so that a
    repetition cuts the same ones."""
    lines: list[bytes] = []
    size = 0
    for event in events_json(events):
        line = json_bytes(event)
        lines.append(line)
        size += len(line) + 1
        if len(lines) == _BULK_LINES or size >= _BULK_BYTES:
            yield len(lines), b"\n".join(lines)
            lines, size = [], 0
    if lines:
        yield len(lines), b"\n".join(lines)
