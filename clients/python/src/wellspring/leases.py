"""Exclusive leases, and the fence that keeps a former holder from appending."""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from typing import TYPE_CHECKING, Any, TypedDict

from .errors import LeaseHeld, LeaseLost
from .forks import on_fork
from .wire import json_bytes, member, segment

if TYPE_CHECKING:
    from .log import Log
    from .subscription import Subscription

# Of its time, a lease is renewed after this part, and again after this part of what is left.
_RENEW_AFTER = 1 / 3
_SHORTEST_TIMEOUT_S = 0.05
# What the server lets one request wait.
_LONGEST_WAIT_S = 60.0


class Fence(TypedDict):
    """Makes an append fail with `LeaseLost` unless the lease is held with this token."""

    lease: str
    token: int


class Lease:
    """A lease that this client holds until its time is up, unless renewed.

    As a context manager it is released at the end. It does not renew itself, `Log.hold_lease`
    does: without a `fence` on its appends, a holder that was paused too long does not know that
    it lost the lease.
    """

    def __init__(self, log: Log, path: str, granted: Any, asked_s: float) -> None:
        self._log = log
        self._path = path
        self.name: str = member(granted, "name", str)
        self.token: int = member(granted, "token", int)
        self.expires_at: str = ""
        """When it ends by the server's clock, unless renewed; for people."""
        self.ttl_s: float = 0.0
        self._take(granted, asked_s)

    @property
    def fence(self) -> Fence:
        """What `Log.append` takes as `fence`."""
        return {"lease": self.name, "token": self.token}

    @property
    def is_held(self) -> bool:
        """Whether it is certain to be held now, by a clock that is never set."""
        return time.monotonic() < self._deadline_s

    def check(self) -> None:
        """Raises `LeaseLost` unless it is held."""
        if not self.is_held:
            raise LeaseLost(f"the lease {self.name!r} has ended: its time was up")

    def renew(self) -> None:
        """Holds the lease for `ttl_s` from now; raises `LeaseLost` if it has ended."""
        self._renew(None)

    def _renew(self, timeout_s: float | None) -> None:
        body = json_bytes({"token": self.token, "ttl_ms": round(self.ttl_s * 1000)})
        asked_s = time.monotonic()
        # Whoever gives a time limit tries again by itself.
        answer = self._log._change(
            "PUT", self._path, body, is_safe=timeout_s is None, timeout_s=timeout_s
        )
        self._take(answer.json(), asked_s)

    def _take(self, granted: Any, asked_s: float) -> None:
        self.expires_at = member(granted, "expires_at", str)
        self.ttl_s = member(granted, "ttl_ms", int) / 1000
        # The server has counted from a later moment.
        self._deadline_s = asked_s + self.ttl_s

    def release(self) -> None:
        """Ends the lease; raises `LeaseLost` if it had ended before."""
        self._log._change("DELETE", f"{self._path}?token={self.token}", None)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self.release()
        except LeaseLost:
            pass  # It ended by itself.


class HeldLease(Lease):
    """A lease that renews itself, in a thread of its own, until it is released or lost.

    Subscriptions with `while_held` end when it is lost. A child process that is forked from the
    holder does not hold it.
    """

    def __init__(self, log: Log, path: str, granted: Any, asked_s: float) -> None:
        super().__init__(log, path, granted, asked_s)
        self._stopped = threading.Event()
        self._lost: LeaseLost | None = None
        self._subscriptions: weakref.WeakSet[Subscription] = weakref.WeakSet()
        on_fork(self)
        threading.Thread(target=self._keep, name=f"lease {self.name}", daemon=True).start()

    def _after_fork(self) -> None:
        self._stopped = threading.Event()
        self._stopped.set()
        self._lost = LeaseLost(f"the lease {self.name!r} is held by the parent process")

    @property
    def is_held(self) -> bool:
        """Whether it is certain to be held now, by a clock that is never set."""
        return self._lost is None and not self._stopped.is_set() and super().is_held

    def check(self) -> None:
        """Raises `LeaseLost` unless it is held."""
        if self._lost is not None:
            raise self._lost
        if self._stopped.is_set():
            raise LeaseLost(f"the lease {self.name!r} was released")
        super().check()

    def release(self) -> None:
        """Ends the lease; raises `LeaseLost` if it had ended before."""
        if self._lost is None and not self._stopped.is_set():
            self._stopped.set()
            self._interrupt()
            super().release()

    def __enter__(self) -> HeldLease:
        return self

    def _ends(self, subscription: Subscription) -> None:
        """Has a subscription interrupted at the end of the lease."""
        self._subscriptions.add(subscription)

    def _interrupt(self) -> None:
        for subscription in list(self._subscriptions):
            subscription._interrupt()

    def _keep(self) -> None:
        fault: Exception | None = None
        pause_s = self.ttl_s * _RENEW_AFTER
        while not self._stopped.wait(pause_s):
            left_s = self._deadline_s - time.monotonic()
            if left_s <= 0:
                self._lose(f"it could not be renewed in time ({fault})", fault)
                return
            try:
                self._renew(max(left_s * _RENEW_AFTER, _SHORTEST_TIMEOUT_S))
                pause_s = self.ttl_s * _RENEW_AFTER
            except LeaseLost as lost:
                if not self._stopped.is_set():
                    self._lose("it has expired or has another holder", lost)
                return
            except Exception as error:  # Of a function that returns a secret, too.
                fault = error
                pause_s = min(self.ttl_s / 30, max(self._deadline_s - time.monotonic(), 0))

    def _lose(self, why: str, cause: Exception | None) -> None:
        problem = getattr(cause, "problem", None) if isinstance(cause, LeaseLost) else None
        lost = LeaseLost(f"the lease {self.name!r} was lost: {why}", problem=problem)
        lost.__cause__ = cause
        self._lost = lost
        self._interrupt()


def acquire(log: Log, name: str, ttl_s: float, wait_s: float) -> tuple[Log, str, Any, float]:
    """Asks for a lease, and returns what a `Lease` is made of."""
    # Under a name of its own the request may be repeated: it gets the same token.
    sent: dict[str, Any] = {"ttl_ms": round(ttl_s * 1000), "holder": uuid.uuid4().hex}
    if wait_s:
        sent["wait_ms"] = round(wait_s * 1000)
    path = "/leases/" + segment(name, "the name of a lease")
    timeout_s = log._transport.timeout_s + wait_s
    asked_s = time.monotonic()
    answer = log._change("POST", path, json_bytes(sent), is_safe=True, timeout_s=timeout_s)
    granted = answer.json()
    if time.monotonic() - asked_s > ttl_s / 3:
        # It may have been granted just now, after the wait, or long ago: a renewal tells.
        lease = Lease(log, path, granted, asked_s)
        asked_s = time.monotonic()
        lease.renew()
    return log, path, granted, asked_s


def hold(log: Log, name: str, ttl_s: float, wait_s: float | None) -> HeldLease:
    """Waits for a lease that renews itself, for ever or at most `wait_s`."""
    ends_s = None if wait_s is None else time.monotonic() + wait_s
    while True:
        left_s = _LONGEST_WAIT_S if ends_s is None else max(ends_s - time.monotonic(), 0.0)
        try:
            return HeldLease(*acquire(log, name, ttl_s, min(left_s, _LONGEST_WAIT_S)))
        except (LeaseHeld, LeaseLost):
            # Lost: it was granted, and the answer came too late.
            if ends_s is not None and time.monotonic() >= ends_s:
                raise
