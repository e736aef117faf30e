"""Requests over kept connections, repeated where that is safe. Threads may share a transport."""

from __future__ import annotations

import base64
import contextlib
import http.client
import re
import select
import socket
import ssl
import threading
import time
import urllib.parse
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Union

from .errors import (
    Headers,
    OutcomeUnknown,
    ServerFault,
    Unavailable,
    Untrusted,
    WellspringError,
    error_of,
    is_temporary,
    settles_doubt,
)
from .forks import abandon, on_fork
from .heads import CutShort, WholeHeadResponse
from .retry import Backoff, RetryPolicy
from .version import VERSION
from .wire import header_value, json_value, utf8

# The server closes idle connections after 90 s by default.
_LONGEST_IDLE_S = 60.0
_MOST_IDLE = 32
_USER_AGENT = f"wellspring-python/{VERSION}"

Secret = Union[str, Callable[[], str]]
"""A secret, or what returns the current one; it is called for every request."""


@dataclass(frozen=True)
class Credentials:
    """At most one of a token, an API key, and a name with its password."""

    token: Secret | None = field(default=None, repr=False)
    key: Secret | None = field(default=None, repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.token, self.key, self.basic)) > 1:
            raise ValueError("give one of token, key and basic")
        for secret, what in ((self.token, "token"), (self.key, "key")):
            if secret is not None and not callable(secret):
                header_value(secret, what)
        if self.basic is not None:
            _basic(*self.basic)

    def headers(self) -> dict[str, str]:
        """The header that proves the caller's identity."""
        if self.token is not None:
            return {"Authorization": f"Bearer {_value_of(self.token, 'token')}"}
        if self.key is not None:
            return {"X-API-Key": _value_of(self.key, "key")}
        if self.basic is not None:
            return {"Authorization": _basic(*self.basic)}
        return {}


@dataclass(frozen=True)
class Request:
    """A request, and whether it may be repeated."""

    method: str
    path: str
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_safe: bool = True
    """Whether a repetition does no harm."""
    changes: bool = False
    """Whether it matters if a request without an answer was done."""
    timeout_s: float | None = None
    interruption: Interruption | None = None


class Interruption:
    """Ends the wait for an answer, which is then lost. Any thread may `set` it, for good."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._socket: socket.socket | None = None

    def set(self) -> None:
        """Interrupts the present request and all later ones."""
        with self._lock:
            self._is_set = True
            self._shut(self._socket)

    @contextlib.contextmanager
    def watching(self, sock: socket.socket) -> Iterator[None]:
        """Interrupts what waits for this connection."""
        with self._lock:
            self._socket = sock
            if self._is_set:
                self._shut(sock)
        try:
            yield
        finally:
            with self._lock:
                self._socket = None

    @staticmethod
    def _shut(sock: socket.socket | None) -> None:
        with contextlib.suppress(OSError):  # It was closed already.
            if sock is not None:
                sock.shutdown(socket.SHUT_RDWR)


_NOT_JSON = object()


class Answer:
    """A successful answer."""

    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body
        self._document = _document_of(headers, body)

    def json(self) -> Any:
        """The body as JSON."""
        if self._document is _NOT_JSON:
            text = self._body[:200].decode("utf-8", "replace")
            raise ServerFault(f"the answer is not JSON: {text}", status=self.status)
        return self._document


class Transport:
    """The connections to one server."""

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        context: ssl.SSLContext | None,
        timeout_s: float,
        retry: RetryPolicy,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ValueError(f"not the URL of a server: {url!r}")
        if parts.username or parts.password:
            raise ValueError("give credentials as token, key or basic, not in the URL")
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s
        self.retry = retry
        self._host, self._port = parts.hostname, parts.port
        self._base_path = parts.path.rstrip("/")
        self._credentials = credentials
        self._context = context
        if parts.scheme == "https" and context is None:
            self._context = ssl.create_default_context()
        elif parts.scheme == "http" and context is not None:
            raise ValueError("TLS needs a URL that begins with https://")
        self._lock = threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        on_fork(self)

    def _after_fork(self) -> None:
        # Two processes on one connection would get each other's answers.
        self._lock = threading.Lock()
        self._idle = []
        sockets, self._sockets = self._sockets, weakref.WeakSet()
        for sock in sockets:
            abandon(sock)

    def exchange(self, request: Request, retry: RetryPolicy | None = None) -> Answer:
        """Sends a request, again where that is safe and may help.

        Raises the last error; `OutcomeUnknown` if an attempt at a change may have been done.
        """
        backoff = Backoff(retry or self.retry)
        doubt: WellspringError | None = None
        while True:
            try:
                return self._attempt(request)
            except WellspringError as error:
                if isinstance(error, OutcomeUnknown) or error.status == 500:
                    doubt = error
                is_final = not is_temporary(error)
                pause_s = None
                if not is_final and request.is_safe:
                    pause_s = backoff.next_pause_s(error.retry_after)
                if pause_s is None:
                    is_settled = is_final and settles_doubt(error)
                    if doubt is None or is_settled or not request.changes or doubt is error:
                        raise
                    message = f"no attempt was confirmed, and one may have been done: {error}"
                    raise OutcomeUnknown(message, problem=doubt.problem) from error
            time.sleep(pause_s)

    def open(self, request: Request) -> Stream:
        """Sends a request whose answer is a stream, on a connection of its own; never repeated."""
        headers = self._headers_of(request)
        connection = self._new_connection()
        self._connect(connection)
        # A response that ends with its connection takes the socket away from it.
        sock = connection.sock
        response = self._send(connection, request, headers)
        kind = response.headers.get_content_type()
        if response.status == 200 and kind == "text/event-stream":
            return Stream(connection, response, sock)
        try:
            body = b"" if response.status == 200 else response.read()
        except (OSError, http.client.HTTPException):
            body = b""
        connection.close()
        if response.status == 200:
            message = f"{self.url}: the answer is of type {kind}, not a stream of events"
            raise ServerFault(message, status=200, headers=response.headers)
        raise error_of(response.status, response.headers, body, request.changes)

    def close(self) -> None:
        """Closes the idle connections. The transport can still be used."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _attempt(self, request: Request) -> Answer:
        headers = self._headers_of(request)
        connection = self._take()
        try:
            with self._watching(request, connection):
                response = self._send(connection, request, headers)
                try:
                    body = response.read()
                    answer = Answer(response.status, response.headers, body)
                except (OSError, http.client.HTTPException) as fault:
                    raise self._lost(request, fault) from fault
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._give_back(connection)
        if 200 <= response.status < 300:
            return answer
        raise error_of(response.status, response.headers, body, request.changes)

    def _watching(
        self, request: Request, connection: http.client.HTTPConnection
    ) -> contextlib.AbstractContextManager[None]:
        if request.interruption is None:
            return contextlib.nullcontext()
        if connection.sock is None:
            self._connect(connection)
        return request.interruption.watching(connection.sock)

    def _headers_of(self, request: Request) -> dict[str, str]:
        # Made before a connection is taken: a function of the caller may return a secret.
        headers = {"Accept": "application/json", "User-Agent": _USER_AGENT}
        headers.update(self._credentials.headers())
        headers.update(request.headers)
        return headers

    def _send(
        self,
        connection: http.client.HTTPConnection,
        request: Request,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        timeout_s = self.timeout_s if request.timeout_s is None else request.timeout_s
        connection.timeout = timeout_s
        if connection.sock is None:
            self._connect(connection)
        connection.sock.settimeout(timeout_s)
        target = self._base_path + request.path
        try:
            try:
                connection.request(request.method, target, request.body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # The server may have answered before it took the whole body.
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as fault:
            connection.close()
            raise self._lost(request, fault) from fault

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as fault:
            connection.close()
            raise Untrusted(f"{self.url}: {fault.verify_message}") from fault
        except OSError as fault:
            connection.close()
            raise Unavailable(f"cannot connect to {self.url}: {fault}") from fault
        with self._lock:
            self._sockets.add(connection.sock)

    def _lost(self, request: Request, fault: Exception) -> WellspringError:
        kind = "no answer in time" if isinstance(fault, socket.timeout) else "connection lost"
        message = f"{self.url}: {kind} ({type(fault).__name__}: {fault})"
        return OutcomeUnknown(message) if request.changes else Unavailable(message)

    def _new_connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._context is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self.timeout_s)
        else:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self.timeout_s, context=self._context
            )
        connection.response_class = WholeHeadResponse
        return connection

    def _take(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                since_s, connection = self._idle.pop()
            # An idle connection has nothing to read, unless the server has closed it.
            if time.monotonic() - since_s < _LONGEST_IDLE_S and not _is_readable(connection.sock):
                return connection
            connection.close()
        return self._new_connection()

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()


class Stream:
    """An answer that arrives piece by piece. `close` may be called by another thread."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        sock: socket.socket,
    ) -> None:
        self.headers: Headers = response.headers
        self._response = response
        self._connection = connection
        self._socket = sock

    def next_piece(self) -> bytes:
        """The bytes that have arrived; empty at the end.

        Raises `Unavailable` if the connection is lost or silent for the request's time limit.
        """
        try:
            return self._response.read1(65536)
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as fault:
            # Reading from a response that was closed meanwhile is a ValueError or AttributeError.
            raise Unavailable(f"the stream was lost ({type(fault).__name__}: {fault})") from fault

    def interrupt(self) -> None:
        """Ends a `next_piece` that another thread waits in."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # It was closed already.

    def close(self) -> None:
        """Closes the connection."""
        self._response.close()
        self._connection.close()


def _value_of(secret: Secret, what: str) -> str:
    return header_value(secret() if callable(secret) else secret, what)


def _basic(name: str, password: str) -> str:
    pair = ":".join((name, password))
    if re.search("[\0-\x1f\x7f]", pair):
        raise ValueError(
            "basic has a control character, such as the line break at the end of a file; remove it"
        )
    return "Basic " + base64.b64encode(utf8(pair)).decode("ascii")


def _document_of(headers: Headers, body: bytes) -> Any:
    says_json = "json" in (headers.get("Content-Type") or "").partition(";")[0]
    says_json = says_json and headers.get("Content-Length") != "0"
    try:
        return json_value(body) if body or says_json else _NOT_JSON
    except ValueError:
        if not says_json:
            return _NOT_JSON
        # A gateway that speaks HTTP/1.0, or has stored what it got, hides where the answer ended.
        raise CutShort("the answer says that it is JSON, and is not") from None


def _is_readable(sock: socket.socket | None) -> bool:
    if sock is None:
        return True
    try:
        if hasattr(select, "poll"):
            poller = select.poll()
            poller.register(sock, select.POLLIN)
            return bool(poller.poll(0))
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True
