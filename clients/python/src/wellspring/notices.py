"""What a worker tells its program, in the log of the program (`logging`)."""

from __future__ import annotations

import logging
import threading

from .errors import WellspringError

_logger = logging.getLogger("wellspring.worker")


class Notices:
    """Tells what is no error of the program; what concerns all threads is told once."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer
        self._lock = threading.Lock()
        self._state = "running"
        self._is_cut_off = False

    def say(self, message: str, fault: BaseException | None = None) -> None:
        """Tells something, with the origin of a fault."""
        _logger.warning("consumer %s: %s", self._consumer, message, exc_info=fault)

    def hear(self, state: str) -> None:
        """Tells of a change of the consumer's state, which an answer has told."""
        with self._lock:
            is_news, self._state = state != self._state, state
            was_cut_off, self._is_cut_off = self._is_cut_off, False
        if was_cut_off:
            self.say("the server answers again")
        if is_news:
            self.say(f"it is {state}")

    def miss(self, error: WellspringError) -> None:
        """Tells of an outage."""
        with self._lock:
            is_news, self._is_cut_off = not self._is_cut_off, True
        if is_news:
            self.say(f"trying again until the server answers: {error}")
