"""Short links with click statistics, on the log `main`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .errors import WellspringError
from .events import texts
from .log import Log
from .transport import Answer, Request
from .wire import idempotency_key, json_bytes, member, position_of, query_text, segment

_UNSET: Any = object()
_FIGURES: dict[str, type[Any]] = {"clicks": int, "visitors": int, "bots": int}


@dataclass(frozen=True)
class Link:
    """A link as it was created."""

    short_code: str
    short_url: str
    original_url: str
    """Empty if it is sealed for a data subject and not shown."""
    created_at: str
    expires_at: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True)
class LinkDetails(Link):
    """A link as it is now, with its clicks."""

    enabled: bool
    refused: bool
    """Whether the server's settings forbid its target."""
    clicks: int
    visitors: int
    bots: int


@dataclass(frozen=True)
class LinkStats:
    """The clicks on a link, in total, over time, and by their origin."""

    short_code: str
    clicks: int
    visitors: int
    bots: int
    bucket: str
    series: list[dict[str, Any]]
    referrers: list[dict[str, Any]]
    agents: list[dict[str, Any]]


class Links:
    """The links of a server. Threads may share it."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def create(
        self,
        url: str,
        *,
        alias: str | None = None,
        deterministic: bool = False,
        expires_at: str | None = None,
        expires_in_s: int | None = None,
        tags: Iterable[str] = (),
        key: str | None = None,
    ) -> Link:
        """Creates a link, repeated under one idempotency key until the outcome is known.

        `expires_in_s` is a whole number of seconds.

        Raises `Conflict` if the alias is taken, and `Invalid` if the URL may not be a target.
        """
        sent: dict[str, Any] = {"url": url}
        optional = {
            "alias": alias,
            "deterministic": deterministic or None,
            "expires_at": expires_at,
            "expires_in_s": None if expires_in_s is None else _whole(expires_in_s),
            "tags": texts(tags, "tags") or None,
        }
        sent.update({name: value for name, value in optional.items() if value is not None})
        key = idempotency_key(key)
        try:
            headers = {"Idempotency-Key": key}
            answer = self._call("POST", "", sent, headers, is_safe=True, changes=True)
            return Link(**_link(answer.json()))
        except WellspringError as error:
            error.key = key
            raise

    def get(self, code: str) -> LinkDetails:
        """A link and its clicks; `NotFound` if there is none."""
        return _details(self._call("GET", "/" + _quoted(code)).json())

    def change(
        self,
        code: str,
        *,
        url: str = _UNSET,
        enabled: bool = _UNSET,
        expires_at: str | None = _UNSET,
        tags: Iterable[str] = _UNSET,
    ) -> LinkDetails:
        """Changes what is given; `expires_at=None` means never."""
        given: dict[str, Any] = {"url": url, "enabled": enabled, "expires_at": expires_at}
        given["tags"] = tags if tags is _UNSET else texts(tags, "tags")
        sent = {name: value for name, value in given.items() if value is not _UNSET}
        return _details(self._call("PATCH", "/" + _quoted(code), sent, changes=True).json())

    def delete(self, code: str) -> None:
        """Deletes a link for good."""
        self._call("DELETE", "/" + _quoted(code), changes=True)

    def stats(
        self,
        code: str,
        *,
        bucket: Literal["hour", "day"] = "day",
        since: str | None = None,
        until: str | None = None,
    ) -> LinkStats:
        """The clicks on a link; `since` and `until` bound the series (RFC 3339)."""
        terms = {"bucket": bucket, "from": since, "to": until}
        found = self._call("GET", f"/{_quoted(code)}/stats{_query(terms)}").json()
        kinds: dict[str, type[Any]] = {"short_code": str, "bucket": str, **_FIGURES}
        kinds.update(series=list, referrers=list, agents=list)
        return LinkStats(**{name: member(found, name, kind) for name, kind in kinds.items()})

    def list(
        self,
        *,
        tag: str | None = None,
        search: str | None = None,
        oldest_first: bool = False,
        page: int = 100,
    ) -> Iterator[LinkDetails]:
        """All links, newest first, page by page."""
        terms: dict[str, Any] = {"tag": tag, "search": search, "limit": page}
        terms["order"] = "asc" if oldest_first else None
        while True:
            found = self._call("GET", _query(terms)).json()
            yield from map(_details, member(found, "links", list))
            if found.get("next") is None:
                return
            terms["after"] = member(found, "next", int)

    def _call(
        self,
        method: str,
        path: str,
        sent: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        is_safe: bool | None = None,
        changes: bool = False,
    ) -> Answer:
        log = self._log
        complete = {**log._headers(None), **log._freshness(), **(headers or {})}
        if sent is not None:
            complete["Content-Type"] = "application/json"
        body = None if sent is None else json_bytes(sent)
        safe = not changes if is_safe is None else is_safe
        answer = log._transport.exchange(
            Request(method, "/api/urls" + path, body, complete, safe, changes)
        )
        log._learn(answer.headers, None)
        position = position_of(answer.headers)
        if changes and position is not None:
            log._has_written(position)
        return answer


def _link(found: Any) -> dict[str, Any]:
    if isinstance(found, dict) and found.get("original_url", "") is None:
        found = {**found, "original_url": ""}
    names = ("short_code", "short_url", "original_url", "created_at")
    link: dict[str, Any] = {name: member(found, name, str) for name in names}
    link.update(expires_at=found.get("expires_at"), tags=tuple(found.get("tags") or ()))
    return link


def _details(found: Any) -> LinkDetails:
    kinds: dict[str, type[Any]] = {"enabled": bool, **_FIGURES}
    figures = {name: member(found, name, kind) for name, kind in kinds.items()}
    return LinkDetails(**_link(found), **figures, refused=bool(found.get("refused")))


def _quoted(code: str) -> str:
    return segment(code, "the code of a link")


def _query(terms: Mapping[str, Any]) -> str:
    return query_text((name, value) for name, value in terms.items() if value is not None)


def _whole(seconds: float) -> int:
    if isinstance(seconds, float) and not seconds.is_integer():
        raise ValueError(f"expires_in_s must be a whole number of seconds, not {seconds}")
    return int(seconds)
