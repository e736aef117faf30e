"""The client of one server."""

from __future__ import annotations

import ssl
import threading
from typing import Any

from .forks import on_fork
from .links import Links
from .log import Log
from .retry import RetryPolicy
from .transport import Credentials, Request, Secret, Transport
from .wire import member


class Client:
    """A client of one server. Threads may share it; it keeps connections open between requests.

    A forked process may use the client of its parent: it makes connections of its own.

    `token` (or an API key given as one), `key` and `basic` (name and password) exclude each other;
    `token` and `key` may be functions that return the current one. `ca` is a file of certificates
    to trust instead of the system's, `ssl_context` says everything about TLS. `timeout_s` bounds
    each wait for the server.

    With `read_your_writes` no read shows less than this client has written, whichever node of
    several answers it.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:4000",
        *,
        token: Secret | None = None,
        key: Secret | None = None,
        basic: tuple[str, str] | None = None,
        ca: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        timeout_s: float = 30.0,
        retry: RetryPolicy = RetryPolicy(),
        read_your_writes: bool = True,
    ) -> None:
        if ca is not None:
            if ssl_context is not None:
                raise ValueError("give one of ca and ssl_context")
            ssl_context = ssl.create_default_context(cafile=ca)
        credentials = Credentials(token, key, basic)
        self._transport = Transport(url, credentials, ssl_context, timeout_s, retry)
        self._read_your_writes = read_your_writes
        self._lock = threading.Lock()
        self._logs: dict[str, Log] = {}
        on_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r})"

    def log(self, name: str = "main") -> Log:
        """A log by its name; the same object for the same name. Sends nothing."""
        with self._lock:
            if name not in self._logs:
                self._logs[name] = Log(self._transport, name, self._read_your_writes)
            return self._logs[name]

    def logs(self) -> list[str]:
        """The names of the logs that this client may read."""
        found = self._transport.exchange(Request("GET", "/v1/logs")).json()
        return [member(log, "name", str) for log in member(found, "logs", list)]

    @property
    def links(self) -> Links:
        """The short links of the server."""
        return Links(self.log("main"))

    def close(self) -> None:
        """Closes idle connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
