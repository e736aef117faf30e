"""Exclusive leases, and the fence that keeps a former holder from appending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from .wire import json_bytes, member

if TYPE_CHECKING:
    from .log import Log


class Fence(TypedDict):
    """Makes an append fail with `LeaseLost` unless the lease is held with this token."""

    lease: str
    token: int


class Lease:
    """A lease that this client holds until `expires_at`, unless renewed.

    As a context manager it is released at the end. It does not renew itself: without a `fence`
    on its appends, a holder that was paused too long does not know that it lost the lease.
    """

    def __init__(self, log: Log, path: str, granted: Any) -> None:
        self._log = log
        self._path = path
        self.name: str = member(granted, "name", str)
        self.token: int = member(granted, "token", int)
        self.expires_at: str = member(granted, "expires_at", str)
        self.ttl_s: float = member(granted, "ttl_ms", int) / 1000

    @property
    def fence(self) -> Fence:
        """What `Log.append` takes as `fence`."""
        return {"lease": self.name, "token": self.token}

    def renew(self) -> None:
        """Holds the lease for `ttl_s` from now; raises `LeaseLost` if it has ended."""
        body = json_bytes({"token": self.token, "ttl_ms": round(self.ttl_s * 1000)})
        answer = self._log._change("PUT", self._path, body, is_safe=True)
        self.expires_at = member(answer.json(), "expires_at", str)

    def release(self) -> None:
        """Ends the lease; raises `LeaseLost` if it had ended before."""
        self._log._change("DELETE", f"{self._path}?token={self.token}", None)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: Any) -> None:
        from .errors import LeaseLost

        try:
            self.release()
        except LeaseLost:
            pass  # It ended by itself.
