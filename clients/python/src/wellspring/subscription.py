"""Following a log: events as they come, over any number of connections."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .cursor import Cursor
from .errors import (
    AnotherHistory,
    ServerFault,
    Unavailable,
    WellspringError,
    error_of,
    is_temporary,
)
from .events import Event, Query
from .forks import on_fork
from .leases import Fence, HeldLease, Lease
from .retry import Backoff, RetryPolicy
from .sse import Message, SseParser
from .transport import Stream
from .wire import json_value

if TYPE_CHECKING:
    from .log import Log

# A connection that lasted this long was a good one.
_GOOD_CONNECTION_S = 5.0


class Subscription(Iterator[Event]):
    """Events in order, each once: existing ones first, then new ones for as long as it is open.

    It reconnects by itself and resumes after the last event it has handed out. One thread
    iterates; any may call `close`, which ends the iteration.
    """

    def __init__(
        self,
        log: Log,
        query: Query,
        after: Cursor,
        heartbeat_timeout_s: float,
        give_up_after_s: float | None,
        since: str | None = None,
        while_held: Lease | None = None,
    ) -> None:
        self._log = log
        self._query = query
        self._cursor = after
        self._heartbeat_timeout_s = heartbeat_timeout_s
        self._give_up_after_s = give_up_after_s
        self._since = since
        self._lease = while_held
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._parser = SseParser()
        self._arrived: deque[Message] = deque()
        self._opened_s = 0.0
        self._last_sign_of_life_s = time.monotonic()
        self._backoff = self._new_backoff()
        on_fork(self)
        if isinstance(while_held, HeldLease):
            while_held._ends(self)

    def _after_fork(self) -> None:
        # The child reads on by itself, on a connection of its own.
        was_closed = self._closed.is_set()
        self._lock, self._closed = threading.Lock(), threading.Event()
        if was_closed:
            self._closed.set()
        self._stream = None
        self._arrived.clear()

    @property
    def cursor(self) -> Cursor:
        """Everything up to here was handed out. Saved between two events, it resumes there."""
        return self._cursor

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Event:
        """The next event.

        Raises `AnotherHistory` if the log is not the one the cursor belongs to, `LeaseLost` if the
        lease has ended that must be held, and whatever else a retry does not mend.
        """
        while not self._closed.is_set():
            self._check_lease()
            while self._arrived:
                try:
                    event = self._take(self._arrived.popleft())
                except WellspringError:
                    self._disconnect()
                    raise
                self._check_lease()
                if event is not None:
                    self._backoff = self._new_backoff()
                    return event
            try:
                self._receive()
            except WellspringError as error:
                self._disconnect()
                if self._closed.is_set():
                    break
                self._check_lease()
                if not is_temporary(error):
                    raise
                self._pause(error)
        self._disconnect()
        raise StopIteration

    def close(self) -> None:
        """Ends the subscription."""
        self._closed.set()
        self._interrupt()

    def _interrupt(self) -> None:
        """Ends the wait for the next bytes."""
        with self._lock:
            if self._stream is not None:
                self._stream.interrupt()

    def _check_lease(self) -> None:
        if self._lease is not None and not self._lease.is_held:
            self._disconnect()
            self._lease.check()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
        self._disconnect()

    def _receive(self) -> None:
        """Waits for the next bytes; connects first if need be."""
        stream = self._stream
        if stream is None:
            stream = self._open(None if self._lease is None else self._lease.fence)
            self._parser = SseParser()
            self._opened_s = time.monotonic()
            with self._lock:
                self._stream = stream
            if self._closed.is_set() or (self._lease is not None and not self._lease.is_held):
                return
        piece = stream.next_piece()
        if not piece:
            raise Unavailable("the server has ended the stream")
        signs = self._parser.signs_of_life
        self._arrived.extend(self._parser.feed(piece))
        if self._parser.signs_of_life > signs:
            self._last_sign_of_life_s = time.monotonic()

    def _open(self, fence: Fence | None) -> Stream:
        try:
            return self._log._open_stream(
                self._query, self._cursor, self._heartbeat_timeout_s, self._since, fence
            )
        except Unavailable as error:
            if fence is None or error.type != "not-leading":
                raise
        # Only the node that leads knows of leases. Here the holder's own clock and renewals tell.
        return self._open(None)

    def _take(self, message: Message) -> Event | None:
        """Moves the cursor; returns the event, if the message is one."""
        if message.event == "problem":
            raise error_of(409, {}, message.data.encode(), False)
        try:
            reached = Cursor.parse(message.id or "")
            found = json_value(message.data)
        except ValueError:
            raise ServerFault(f"not an event: {message}") from None
        known = self._cursor.history
        if known and reached.history and known != reached.history:
            raise AnotherHistory(
                "the log has another history now", problem={"history": reached.history}
            )
        self._cursor = Cursor(reached.position, reached.history or known)
        if message.event != "message":
            return None
        return Event.of_json(found, self._cursor.history)

    def _disconnect(self) -> None:
        with self._lock:
            stream, self._stream = self._stream, None
        # The next connection resumes after what was handed out.
        self._arrived.clear()
        if stream is not None:
            stream.close()

    def _pause(self, error: WellspringError) -> None:
        now_s = time.monotonic()
        silent_s = now_s - self._last_sign_of_life_s
        if self._give_up_after_s is not None and silent_s > self._give_up_after_s:
            raise error
        if self._opened_s and now_s - self._opened_s > _GOOD_CONNECTION_S:
            self._backoff = self._new_backoff()
        self._opened_s = 0.0
        self._closed.wait(self._backoff.next_pause_s(error.retry_after) or 0.0)

    def _new_backoff(self) -> Backoff:
        policy = self._log._transport.retry
        endless = RetryPolicy(1 << 62, float("inf"), policy.first_s, policy.longest_s)
        return Backoff(endless)
