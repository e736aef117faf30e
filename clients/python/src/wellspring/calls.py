"""The requests of one log, and what the client knows of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, TypeVar

from .cursor import Cursor
from .errors import AnotherHistory, Headers, WellspringError
from .events import Query
from .forks import on_fork
from .leases import Fence
from .retry import RetryPolicy
from .transport import Answer, Interruption, Request, Stream, Transport
from .wire import history_of, json_bytes, position_of, segment, times_of

_HISTORY = "Wellspring-History"

LogCallsType = TypeVar("LogCallsType", bound="LogCalls")


@dataclass
class _Known:
    """What this client knows of the log; guarded by the log's lock."""

    history: str | None = None
    seen: int = 0


class LogCalls:
    """Sends requests to a log, and checks the history that the answers tell."""

    def __init__(self, transport: Transport, name: str, read_your_writes: bool) -> None:
        self.name = name
        self._transport = transport
        self._path = "/v1/logs/" + segment(name, "the name of a log")
        self._read_your_writes = read_your_writes
        self._lock = threading.Lock()
        self._known = _Known()
        on_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def _copy(self: LogCallsType) -> LogCallsType:
        """The same log for one purpose, which may come to know another history."""
        return type(self)(self._transport, self.name, self._read_your_writes)

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

    @contextlib.contextmanager
    def _keyed(self, key: str) -> Iterator[Callable[[bytes, str, str | None], Any]]:
        """How to append under a key, which errors then name."""

        def append(body: bytes, kind: str, history: str | None) -> Any:
            headers = {**self._headers(history), "Content-Type": kind, "Idempotency-Key": key}
            path = self._path + "/append"
            request = Request("POST", path, body, headers, is_safe=True, changes=True)
            answer = self._transport.exchange(request)
            self._learn(answer.headers, history)
            return answer.json()

        try:
            yield append
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

    def _consume(
        self,
        path: str,
        sent: Any,
        retry: RetryPolicy | None = None,
        timeout_s: float | None = None,
        interruption: Interruption | None = None,
    ) -> Answer:
        """Sends a worker's request: the same one has its effect once."""
        headers = {**self._headers(None), "Content-Type": "application/json"}
        body = sent if isinstance(sent, bytes) else json_bytes(sent)
        request = Request(
            "POST", self._path + path, body, headers, True, True, timeout_s, interruption
        )
        answer = self._transport.exchange(request, retry)
        self._learn(answer.headers, None)
        return answer

    def _open_stream(
        self,
        query: Query,
        after: Cursor,
        timeout_s: float,
        since: str | None,
        fence: Fence | None,
    ) -> Stream:
        # No freshness is asked for: own writes will come. A server that has lost them since must
        # say that its log is behind `after`, instead of being waited for.
        headers = {
            **self._headers(after.history),
            "Accept": "text/event-stream",
            "Content-Type": "application/json",
        }
        sent: dict[str, Any] = {"query": query, "after": after.position, **times_of(since, None)}
        if fence is not None:
            sent["fence"] = fence
        body = json_bytes(sent)
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
        told = history_of(headers)
        if told is None:
            return
        with self._lock:
            if self._known.history is None:
                self._known.history = told
            expected = expected or self._known.history
        if told != expected:
            problem = {"history": told, "head": position_of(headers)}
            message = f"log {self.name} has history {told} now, not {expected}"
            raise AnotherHistory(message, problem=problem, headers=headers)

    def _has_written(self, position: int) -> None:
        with self._lock:
            self._known.seen = max(self._known.seen, position)
