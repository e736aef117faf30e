"""What a worker is given, and what it may say about it."""

from __future__ import annotations

from typing import Any

from .events import Event
from .holds import Hold
from .wire import member


class Park(Exception):
    """Raised by a handler: no further try helps, an operator has to look at the event."""


class Delivery:
    """Events for a handler: one, or a run of consecutive ones if the consumer's `run` says so."""

    def __init__(self, found: Any, history: str | None, hold: Hold) -> None:
        self.id: str = member(found, "delivery", str)
        self.events: tuple[Event, ...] = tuple(
            Event.of_json(event, history) for event in member(found, "events", list)
        )
        self.keys: tuple[str, ...] = tuple(found.get("keys") or ())
        """The values of the consumer's key: no other worker has events of these now."""
        self.tries: int = member(found, "tries", int)
        """1 for the first try."""
        self.effect_key: str = member(found, "effect_key", str)
        """The same at each try: for receivers that know idempotency keys."""
        self._hold = hold

    @property
    def event(self) -> Event:
        """The first event, and the only one unless the consumer has a `run`."""
        return self.events[0]

    @property
    def is_held(self) -> bool:
        """Whether it is certain that no other worker has it now."""
        return self._hold.lasts

    def __repr__(self) -> str:
        return f"Delivery({self.id} of position {self.event.position}, try {self.tries})"
