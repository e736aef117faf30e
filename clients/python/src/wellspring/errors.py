"""What can go wrong, one class for each thing that a caller can do about it.

Every class is a `WellspringError`. The server explains an error as a problem document
(RFC 9457); its members are attributes here, and `problem` is the whole document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, Union

RetryAdvice = Union[str, float]
"""`"no"`, `"same"` (repeat the request), `"after-reread"` (decide again), or seconds to wait."""


class Headers(Protocol):
    """The headers of an answer, found by name in either case."""

    def get(self, name: str, /) -> str | None:
        """The value of a header, if the answer has it."""


class WellspringError(Exception):
    """The base of all errors of this client."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        problem: Mapping[str, Any] | None = None,
        headers: Headers | None = None,
    ) -> None:
        super().__init__(message)
        self.status: int | None = status
        """The HTTP status, or None if there was no answer."""
        self.problem: dict[str, Any] = dict(problem or {})
        """The whole problem document; empty if there was none."""
        self.request_id: str | None = headers.get("X-Request-Id") if headers else None
        """The id under which the server's log has the request."""
        self.key: str | None = None
        """The idempotency key of the request. Repeating it with this key is safe."""
        self.retry_after: float | None = _seconds(headers)
        """How long to wait before another attempt, in seconds, if the server says so."""
        if self.retry_after is None and isinstance(self.problem.get("retry"), (int, float)):
            self.retry_after = float(self.problem["retry"])

    @property
    def type(self) -> str:
        """The name of the problem type, such as `append-condition-failed`; may be empty."""
        return str(self.problem.get("type", "")).rsplit("/", 1)[-1]

    @property
    def detail(self) -> str:
        """What is wrong, and what to do about it."""
        return str(self.problem.get("detail", self))

    @property
    def retry(self) -> RetryAdvice | None:
        """The server's advice about a retry, if it gave any."""
        return self.problem.get("retry")


class ConditionFailed(WellspringError):
    """An event in the log matches the condition. Nothing was appended: read and decide again."""

    @property
    def conflict(self) -> dict[str, Any]:
        """The newest event in the way: `position`, `clause` and `item`."""
        return dict(self.problem.get("conflict", {}))


class AnotherHistory(WellspringError):
    """The log is not the one this client knew: it was restored, or made anew. Nothing was done.

    Positions, cursors and decisions from before mean nothing in it. Discard what was derived from
    the earlier log (or find out which is right), call `Log.forget_history()`, and start over.
    """

    history: str | None
    head: int | None
    position: int | None

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message, **more)
        self.history = self.problem.get("history")
        """The history of the log as it is now."""
        self.head = self.problem.get("head")
        """The head of the log as it is now."""
        self.position = self.problem.get("position")
        """The position that was asked for, if it is greater than the head."""


class LeaseHeld(WellspringError):
    """Another client holds the lease: try later, or wait for it with `wait_s`."""

    @property
    def remaining_s(self) -> float | None:
        """How long the holder has it at most, unless it renews."""
        left = self.problem.get("remaining_ms")
        return None if left is None else float(left) / 1000


class LeaseLost(WellspringError):
    """The lease has ended. Nothing was done: acquire it again, read, and decide again."""


class Unauthenticated(WellspringError):
    """The credentials are missing, wrong or expired: get new ones."""


class Forbidden(WellspringError):
    """The credentials are valid, but do not permit this: ask for the role that `detail` names."""


class NotFound(WellspringError):
    """There is no such log, event, lease or link, or no longer."""


class Conflict(WellspringError):
    """The request contradicts what is there: an alias is taken, an event id is used."""


class Invalid(WellspringError):
    """The request breaks a rule or a limit: correct it."""

    @property
    def field(self) -> str | None:
        """The path of the member at fault, such as `events[3].tags[0]`."""
        return self.problem.get("field")

    @property
    def limit(self) -> int | None:
        """The limit that was exceeded."""
        return self.problem.get("limit")

    @property
    def line(self) -> int | None:
        """The line at fault of a bulk, from 1."""
        return self.problem.get("line")


class Unavailable(WellspringError):
    """The server cannot be reached or has no room. Nothing was done: try again later."""


class OutcomeUnknown(WellspringError):
    """The request may have been done, or not. Repeat it under the same `key`, or look."""


class ServerFault(WellspringError):
    """The server has failed, or what answers is no Wellspring: an operator has to act."""


class Untrusted(WellspringError):
    """The server's certificate is not trusted: give its authority as `ca`."""


_BY_TYPE: dict[str, type[WellspringError]] = {
    "append-condition-failed": ConditionFailed,
    "another-history": AnotherHistory,
    "lease-held": LeaseHeld,
    "lease-lost": LeaseLost,
    "outcome-unknown": OutcomeUnknown,
}
_BY_STATUS: dict[int, type[WellspringError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    410: NotFound,
    409: Conflict,
    412: Conflict,
    408: Unavailable,
    425: Unavailable,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_JUDGEMENTS = (
    AnotherHistory,
    ConditionFailed,
    Conflict,
    Invalid,
    LeaseHeld,
    LeaseLost,
    NotFound,
)


def error_of(status: int, headers: Headers, body: bytes, changes: bool) -> WellspringError:
    """The error that an unsuccessful answer to a request stands for."""
    problem: dict[str, Any] = {}
    try:
        document = json.loads(body) if body else {}
        if isinstance(document, dict):
            problem = document
    except ValueError:
        problem = {"detail": body[:200].decode("utf-8", "replace")}
    kind = _kind_of(status, problem)
    message = _message_of(status, problem)
    if changes and (status >= 500 or status == 408) and not _is_of_server(problem):
        # A gateway does not know how far the server had come.
        kind = OutcomeUnknown
        message = f"not an answer of Wellspring, and the request may have been done: {message}"
    return kind(message, status=status, problem=problem, headers=headers)


def move_lines(error: WellspringError, lines: int) -> None:
    """Has an error of a part of a bulk, after this many lines, speak of the whole."""
    line = error.problem.get("line")
    for counted in ("line", "durable_lines", "durable_events"):
        if isinstance(error.problem.get(counted), int):
            error.problem[counted] += lines
    prefix = f"line {line}:"
    if isinstance(line, int) and error.detail.startswith(prefix):
        error.problem["detail"] = f"line {line + lines}:" + error.detail[len(prefix) :]
        error.args = (_message_of(error.status, error.problem),)


def settles_doubt(error: WellspringError) -> bool:
    """Whether an answer also says what became of earlier attempts at the same request.

    The server has judged the request itself, and not only who sends it, or when.
    """
    return isinstance(error, _JUDGEMENTS) and _is_of_server(error.problem)


def is_temporary(error: WellspringError) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, (Unavailable, OutcomeUnknown)):
        return True
    return isinstance(error, ServerFault) and error.retry not in (None, "no")


def _kind_of(status: int, problem: Mapping[str, Any]) -> type[WellspringError]:
    slug = str(problem.get("type", "")).rsplit("/", 1)[-1]
    kind = _BY_TYPE.get(slug) or _BY_STATUS.get(status)
    if kind is None:
        kind = Invalid if 400 <= status < 500 else ServerFault
    if kind is Unavailable and problem.get("retry") == "no":
        kind = ServerFault  # Waiting does not help.
    return kind


def _message_of(status: int | None, problem: Mapping[str, Any]) -> str:
    title, detail = problem.get("title", ""), problem.get("detail", "")
    return ": ".join(str(text) for text in (f"{status} {title}".strip(), detail) if text)


def _is_of_server(problem: Mapping[str, Any]) -> bool:
    return "/problems/" in str(problem.get("type", ""))


def _seconds(headers: Headers | None) -> float | None:
    text = headers.get("Retry-After") if headers else None
    # It may be a date, too; only proxies send that, and backing off is as good.
    return float(text) if text is not None and text.strip().isdigit() else None
