"""Consumers of a log: their definition and their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, Union

from .wire import member, segment


class TagKey(TypedDict):
    """Orders events that have the same value of this tag, such as `customer`."""

    tag: str


ConsumerKey = Union[TagKey, Literal["none", "all"]]
"""What is delivered in the order of the log: events of a tag's value, nothing, or everything."""


@dataclass(frozen=True)
class ConsumerStatus:
    """How far a consumer has come."""

    state: str
    """`running`, `paused` or `stopped`."""
    lag: int
    """Positions of the log that were not looked at yet."""
    open_keys: int
    in_flight: int
    """Deliveries that workers hold."""
    parked: int
    """Events that wait for an operator."""
    oldest_age_s: float | None
    """Age of the oldest event that is not settled."""
    details: dict[str, Any] = field(default_factory=dict)
    """The whole answer, with the definition."""

    @staticmethod
    def of_json(found: Any) -> ConsumerStatus:
        """The status as the server shows it."""
        age_ms = found.get("oldest_age_ms") if isinstance(found, dict) else None
        return ConsumerStatus(
            state=member(found, "state", str),
            lag=member(found, "lag", int),
            open_keys=member(found, "open_keys", int),
            in_flight=member(found, "in_flight", int),
            parked=member(found, "parked", int),
            oldest_age_s=None if age_ms is None else age_ms / 1000,
            details=dict(found),
        )


def consumer_path(name: str) -> str:
    """The path of a consumer in its log."""
    return "/consumers/" + segment(name, "the name of a consumer")


def milliseconds(times: Mapping[str, float | tuple[float, float] | None]) -> dict[str, Any]:
    """Times in seconds as they are sent; those that are not given are left out."""
    sent: dict[str, Any] = {}
    for name, time in times.items():
        if isinstance(time, tuple):
            sent[f"{name}_ms"] = [round(each * 1000) for each in time]
        elif time is not None:
            sent[f"{name}_ms"] = round(time * 1000)
    return sent
