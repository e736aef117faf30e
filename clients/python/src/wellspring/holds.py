"""How long a thread of a worker holds its deliveries, and when it has to say that it lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

# How often a hold is extended, and tried again, in parts of it.
EXTEND_AFTER = 1 / 3
_RETRY_AFTER = 1 / 30
_SHORTEST_TIMEOUT_S = 0.05


class Hold:
    """Until when one thread of a worker is certain to hold what it was given."""

    def __init__(self) -> None:
        self.deadline_s = 0.0

    @property
    def lasts(self) -> bool:
        """Whether it does now, by a clock that is never set."""
        return time.monotonic() < self.deadline_s


@dataclass(frozen=True)
class Extension:
    """A request that is about to extend a hold."""

    timeout_s: float
    change: int


class HeldDeliveries:
    """The deliveries of one thread, which another thread extends."""

    def __init__(self) -> None:
        self._hold = Hold()
        self.hold_s = 0.0
        self._lock = threading.Lock()
        self._ids: set[str] = set()
        self._changes = 0
        self._signed_s = 0.0
        self._tried_s = 0.0

    def take(self, hold: Hold, ids: Iterable[str], asked_s: float, hold_s: float) -> None:
        """Takes note of a turn: nothing is held but what its answer has given."""
        with self._lock:
            self._hold.deadline_s = 0.0
            self._hold, self._ids = hold, set(ids)
            self._sign(asked_s, hold_s)

    def has(self, delivery: str) -> bool:
        """Whether it is not settled yet."""
        with self._lock:
            return delivery in self._ids

    def forget(self, delivery: str) -> None:
        """Takes note that a delivery was settled, or lost."""
        with self._lock:
            self._ids.discard(delivery)
            self._changes += 1

    def due_s(self) -> float | None:
        """When the hold has to be extended; None if nothing is held."""
        with self._lock:
            if not self._ids:
                return None
            first_s = self._signed_s + self.hold_s * EXTEND_AFTER
            return max(first_s, self._tried_s + self.hold_s * _RETRY_AFTER)

    def begin_extension(self) -> Extension | None:
        """What to do if it is time."""
        due_s, now_s = self.due_s(), time.monotonic()
        if due_s is None or now_s < due_s:
            return None
        with self._lock:
            self._tried_s = now_s
            left_s = (self._hold.deadline_s - now_s) * EXTEND_AFTER
            return Extension(max(left_s, _SHORTEST_TIMEOUT_S), self._changes)

    def end_extension(self, begun: Extension, held: int, asked_s: float, hold_s: float) -> bool:
        """Takes note of what the server has counted; returns whether all was lost."""
        with self._lock:
            if begun.change != self._changes:
                return False  # It is about what was held before.
            if held == 0 and self._ids:
                self._lose()
                return True
            self._sign(asked_s, hold_s)
            return False

    def lose(self) -> None:
        """Takes note that nothing is held any more."""
        with self._lock:
            self._lose()

    def _lose(self) -> None:
        self._ids.clear()
        self._hold.deadline_s = 0.0
        self._changes += 1

    def _sign(self, asked_s: float, hold_s: float) -> None:
        # The server has counted from a later moment.
        self._signed_s = asked_s
        self.hold_s = hold_s
        self._hold.deadline_s = asked_s + hold_s
        self._changes += 1
