"""Short links with click statistics, on the log `main`."""

from __future__ import annotations

import urllib.parse
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .log import Log, _json_bytes
from .transport import Answer, Request

_UNSET: Any = object()


@dataclass(frozen=True)
class Link:
    """A link as it was created."""

    short_code: str
    short_url: str
    original_url: str
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
        expires_in_s: float | None = None,
        tags: Iterable[str] = (),
        key: str | None = None,
    ) -> Link:
        """Creates a link, repeated under one idempotency key until the outcome is known.

        Raises `Conflict` if the alias is taken, and `Invalid` if the URL may not be a target.
        """
        sent: dict[str, Any] = {"url": url}
        optional = {
            "alias": alias,
            "deterministic": deterministic or None,
            "expires_at": expires_at,
            "expires_in_s": expires_in_s,
            "tags": list(tags) or None,
        }
        sent.update({name: value for name, value in optional.items() if value is not None})
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        found = self._call("POST", "", sent, headers, is_safe=True, changes=True).json()
        return Link(**_link(found))

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
        given["tags"] = tags if tags is _UNSET else list(tags)
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
        return LinkStats(**{name: found[name] for name in LinkStats.__dataclass_fields__})

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
            yield from map(_details, found["links"])
            if found["next"] is None:
                return
            terms["after"] = found["next"]

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
        body = None if sent is None else _json_bytes(sent)
        safe = not changes if is_safe is None else is_safe
        answer = log._transport.exchange(
            Request(method, "/api/urls" + path, body, complete, safe, changes)
        )
        log._learn(answer.headers, None)
        position = answer.headers.get("Wellspring-Position")
        if changes and position is not None:
            log._has_written(int(position))
        return answer


def _link(found: Mapping[str, Any]) -> dict[str, Any]:
    names = ("short_code", "short_url", "original_url", "created_at")
    link: dict[str, Any] = {name: found[name] for name in names}
    link.update(expires_at=found.get("expires_at"), tags=tuple(found.get("tags") or ()))
    return link


def _details(found: Mapping[str, Any]) -> LinkDetails:
    figures = {name: found[name] for name in ("enabled", "clicks", "visitors", "bots")}
    return LinkDetails(**_link(found), **figures, refused=bool(found.get("refused")))


def _quoted(code: str) -> str:
    return urllib.parse.quote(code, safe="")


def _query(terms: Mapping[str, Any]) -> str:
    given = {name: value for name, value in terms.items() if value is not None}
    return "?" + urllib.parse.urlencode(given) if given else ""
