"""What a log answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .events import Condition


@dataclass(frozen=True)
class Appended:
    """Events that are on disk: the positions of the first and the last, and the head."""

    first: int
    last: int
    head: int
    replayed: bool
    """Whether this is the answer to an earlier attempt."""


@dataclass(frozen=True)
class Accepted:
    """Events that are in the server's memory, and on disk within milliseconds."""

    accepted: int


@dataclass(frozen=True)
class BulkAppended:
    """Events appended in batches; `first` and `last` are None if there were none."""

    events: int
    first: int | None
    last: int | None
    replayed: bool
    """Whether all of them had been appended by an earlier attempt."""


@dataclass(frozen=True)
class PassedOver:
    """Events that a projection has passed over."""

    events: int
    first: int
    """The position of the first."""


@dataclass(frozen=True)
class Projected:
    """States, the position they reflect, and the condition that protects a decision on them."""

    states: dict[str, Any]
    position: int
    guard: Condition | None
    """The condition; None if only events until some time were asked for."""
    history: str | None = None
    appended: Appended | None = None
    """What the caller has appended under the `key` that was given."""
    passed_over: dict[str, PassedOver] = field(default_factory=dict)
    """Events without a value that a projection could use, by its name; none: it is missing."""

    @property
    def condition(self) -> Condition:
        """What `Log.append` takes as its condition.

        Raises ValueError if only events until some time were asked for: what has come since may
        matter to a decision.
        """
        if self.guard is None:
            raise ValueError("a projection until some time has no append condition")
        return self.guard


@dataclass(frozen=True)
class LogInfo:
    """What the server says about a log."""

    name: str
    head: int
    disk_bytes: int
    segments: int
    types: int
    tags: int
    more_types: bool
    more_tags: bool
    history: str | None
