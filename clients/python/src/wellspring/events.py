"""Events, and the words of a request: queries, conditions and projections, as on the wire."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from .cursor import Cursor
from .errors import ServerFault
from .wire import member

Json = Any
"""Anything that `json.dumps` takes, except NaN and infinities."""


@dataclass(frozen=True)
class NewEvent:
    """An event to be appended. Its data are JSON, or bytes."""

    type: str
    data: Json | bytes = None
    tags: Iterable[str] = ()
    id: str | None = None
    metadata: Mapping[str, str] | None = None
    subject: str | None = None
    """The data subject, a tag, for which all data are sealed, so that they can be erased."""
    personal: Mapping[str, Json] | None = None
    """A value for each of several data subjects, sealed beside data that stay clear."""

    def to_json(self) -> dict[str, Any]:
        """The event as the server takes it."""
        sent: dict[str, Any] = {"type": self.type, "tags": texts(self.tags, "tags")}
        if isinstance(self.data, (bytes, bytearray, memoryview)):
            sent["data_base64"] = base64.b64encode(self.data).decode("ascii")
        else:
            sent["data"] = self.data
        if self.id is not None:
            sent["id"] = str(self.id)
        if self.metadata is not None:
            sent["metadata"] = dict(self.metadata)
        if self.subject is not None:
            sent["subject"] = self.subject
        if self.personal is not None:
            sent["personal"] = dict(self.personal)
        return sent


@dataclass(frozen=True)
class Event:
    """An event of a log."""

    position: int
    type: str
    tags: tuple[str, ...]
    data: Json | bytes
    recorded_at: str
    id: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    history: str | None = None
    subject: str | None = None
    """The data subject of all data; these are None if they were not opened."""
    personal: dict[str, Json] = field(default_factory=dict)
    """The value of each data subject; None if it was not opened."""
    withheld: bool = False
    """Whether personal data are not shown: to this caller, or because an erasure is due."""
    erased: tuple[str, ...] = ()
    """The data subjects that are erased: their data are gone."""
    unavailable: tuple[str, ...] = ()
    """The data subjects whose keys the server lacks, which does not mean that they are erased."""

    @property
    def cursor(self) -> Cursor:
        """The place right after this event: save it once the event is processed."""
        return Cursor(self.position, self.history)

    @staticmethod
    def of_json(found: Mapping[str, Any], history: str | None) -> Event:
        """The event as the server shows it."""
        position, type_ = member(found, "position", int), member(found, "type", str)
        encoded = found.get("data_base64")
        try:
            data = found.get("data") if encoded is None else base64.b64decode(encoded)
        except (TypeError, ValueError):
            raise ServerFault(f"the data of event {position} are not base64") from None
        return Event(
            position=position,
            type=type_,
            tags=tuple(found.get("tags") or ()),
            data=data,
            recorded_at=found.get("recorded_at", ""),
            id=found.get("id"),
            metadata=dict(found.get("metadata") or {}),
            history=history,
            subject=found.get("subject"),
            personal=dict(found.get("personal") or {}),
            withheld=bool(found.get("withheld")),
            erased=tuple(found.get("erased") or ()),
            unavailable=tuple(found.get("unavailable") or ()),
        )


class QueryItem(TypedDict, total=False):
    """Matches an event that has one of the types (if any are given) and all of the tags."""

    types: list[str]
    tags: list[str]


class Query(TypedDict):
    """Matches what one of its items matches; without items, every event."""

    items: list[QueryItem]


class Condition(TypedDict, total=False):
    """What must hold for an append, else `ConditionFailed`."""

    failIfEventsMatch: Query
    after: int
    failIfExists: Query


class Projection(TypedDict, total=False):
    """A reducer over the events of a query, run by the server."""

    query: Query
    reduce: Any
    init: Any
    strict: bool


ALL: Query = {"items": []}
"""Matches every event."""


def matching(types: Iterable[str] = (), tags: Iterable[str] = ()) -> Query:
    """Matches events that have one of the types (if any are given) and all of the tags."""
    item: QueryItem = {}
    if types := texts(types, "types"):
        item["types"] = types
    if tags := texts(tags, "tags"):
        item["tags"] = tags
    return {"items": [item] if item else []}


def any_of(*queries: Query) -> Query:
    """Matches what one of the queries matches."""
    if any(not query["items"] for query in queries):
        return ALL
    return {"items": [item for query in queries for item in query["items"]]}


def unless_exists(query: Query) -> Condition:
    """A condition that fails if any event matches the query."""
    return {"failIfExists": query}


def unless_changed(query: Query, after: int) -> Condition:
    """A condition that fails if any event after this position matches the query."""
    return {"failIfEventsMatch": query, "after": after}


_UNSET: Any = object()


def projection(
    reduce: Any,
    types: Iterable[str] = (),
    tags: Iterable[str] = (),
    *,
    query: Query | None = None,
    init: Any = _UNSET,
    strict: bool = False,
) -> Projection:
    """A reducer over the events with one of the types and all of the tags, or of a whole query.

    `reduce` is `"count"`, `{"last": "/pointer"}` and so on, as the server's manual lists them.
    A strict projection is refused with `Invalid` if an event has no value that it can use.
    """
    made: Projection = {"query": query or matching(types, tags), "reduce": reduce}
    if strict:
        made["strict"] = True
    if init is not _UNSET:
        made["init"] = init
    return made


def texts(given: Iterable[str], name: str) -> list[str]:
    """A list of texts; a single text, which is a series of its characters, is a TypeError."""
    if isinstance(given, str):
        raise TypeError(f"{name} must be a list of texts, not one text")
    return list(given)


def listed(events: Iterable[NewEvent]) -> Iterable[NewEvent]:
    """What can be gone through; a TypeError says that it is no list of events."""
    if isinstance(events, (NewEvent, str, bytes, Mapping)) or not isinstance(events, Iterable):
        raise TypeError(f"events must be a list of NewEvent, not one {type(events).__name__}")
    return events


def events_json(events: Iterable[NewEvent]) -> Iterator[dict[str, Any]]:
    """Events as the server takes them; a TypeError names what is none."""
    for index, event in enumerate(listed(events)):
        if not isinstance(event, NewEvent):
            kind = type(event).__name__
            raise TypeError(f"events[{index}] is of type {kind}; make it a NewEvent(type, data, …)")
        yield event.to_json()
