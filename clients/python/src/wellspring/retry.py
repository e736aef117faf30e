"""How often and how long a request is repeated."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter, bounded in number and in time.

    Only what is safe to repeat is repeated: reads, and writes under an idempotency key.
    """

    attempts: int = 10
    """Most attempts, the first included."""
    total_s: float = 30.0
    """No attempt begins later than this after the first."""
    first_s: float = 0.05
    """Longest pause after the first attempt; it doubles with each further one."""
    longest_s: float = 2.0
    """Longest pause, unless the server asks for a longer one (`Retry-After`)."""


NO_RETRY = RetryPolicy(attempts=1)
"""Never repeats a request."""


class Backoff:
    """The pauses between the attempts of one request."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._begun_s = time.monotonic()
        self._failures = 0

    def next_pause_s(self, retry_after_s: float | None = None) -> float | None:
        """How long to wait after another failure; None to give up."""
        self._failures += 1
        if self._failures >= self._policy.attempts:
            return None
        pause_s = (retry_after_s or 0.0) + self.jitter_s()
        if time.monotonic() - self._begun_s + pause_s > self._policy.total_s:
            return None
        return pause_s

    def jitter_s(self) -> float:
        """A random pause for this number of failures."""
        doublings = min(max(self._failures - 1, 0), 30)
        return random.uniform(0, min(self._policy.first_s * 2**doublings, self._policy.longest_s))
