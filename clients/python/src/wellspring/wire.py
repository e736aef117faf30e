"""JSON, paths and headers: what is sent is checked before, what arrives is checked after."""

from __future__ import annotations

import datetime
import decimal
import json
import re
import urllib.parse
import uuid
from collections.abc import Iterable
from typing import Any, TypeVar, Union

from .errors import Headers, ServerFault

T = TypeVar("T")

Time = Union[datetime.datetime, str]
"""A moment: with a time zone, or as RFC 3339 writes it; a date alone is midnight in UTC."""

# `append_bulk` adds a point and the number of the batch to its key.
LONGEST_KEY = 255
LONGEST_BULK_KEY = 230


def json_bytes(value: Any) -> bytes:
    """JSON as it is sent; raises ValueError or TypeError for what JSON cannot say."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return utf8(text)


def json_value(text: str | bytes) -> Any:
    """The value of JSON text; raises ValueError if it is none.

    An integer of more digits than `int` reads is a `decimal.Decimal`, which has them all.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_integer)


def member(found: Any, name: str, kind: type[T]) -> T:
    """A member of an answer; raises `ServerFault` if it is missing or of another type."""
    value = found.get(name) if isinstance(found, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ServerFault(f"the answer has no valid {name}: {str(found)[:200]}")
    return value


def segment(text: str, what: str) -> str:
    """Text as one segment of a path."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a text, not {type(text).__name__}")
    if text in ("", ".", ".."):
        # On the way, `.` and `..` would be taken for steps between folders.
        raise ValueError(f"{text!r} cannot be {what}")
    return urllib.parse.quote(utf8(text), safe="")


def query_text(terms: Iterable[tuple[str, Any]]) -> str:
    """The query of a URL, with its question mark; empty without terms."""
    encoded = [(name, utf8(str(value))) for name, value in terms]
    return "?" + urllib.parse.urlencode(encoded) if encoded else ""


def time_text(time: datetime.datetime | str, what: str) -> str:
    """A time as RFC 3339 has it; raises ValueError for one without a zone."""
    if isinstance(time, str):
        return time
    if not isinstance(time, datetime.datetime):
        raise TypeError(f"{what} must be a datetime or a text, not {type(time).__name__}")
    if time.tzinfo is None:
        raise ValueError(f"{what} has no time zone: give it one, as datetime.timezone.utc")
    return time.isoformat()


def times_of(since: Time | None, until: Time | None) -> dict[str, str]:
    """The times of a read, as they are sent."""
    given = (("since", since), ("until", until))
    return {name: time_text(time, name) for name, time in given if time is not None}


def header_value(text: str, what: str) -> str:
    """Text that a header can carry. No error shows it: it may be a secret."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a text, not {type(text).__name__}")
    if not text:
        raise ValueError(f"{what} must not be empty")
    if text != text.strip():
        raise ValueError(
            f"{what} begins or ends with white space, such as the line break of a file; strip it"
        )
    if not re.fullmatch("[ -~]+", text):
        raise ValueError(f"{what} has a character that is not printable ASCII")
    return text


def idempotency_key(given: str | None, limit: int = LONGEST_KEY) -> str:
    """The key that the caller has given, or a new one."""
    if given is None:
        return str(uuid.uuid4())
    if len(header_value(given, "key")) > limit:
        raise ValueError(f"key has {len(given)} bytes; the limit here is {limit} bytes")
    return given


def history_of(headers: Headers) -> str | None:
    """The history that an answer tells; None for anything but its 16 digits."""
    told = headers.get("Wellspring-History")
    return told if told is not None and re.fullmatch("[0-9a-f]{16}", told) else None


def position_of(headers: Headers) -> int | None:
    """The end of the log that an answer tells."""
    told = headers.get("Wellspring-Position")
    return int(told) if told is not None and re.fullmatch("[0-9]{1,20}", told) else None


def _integer(digits: str) -> int | decimal.Decimal:
    try:
        return int(digits)
    except ValueError:
        return decimal.Decimal(digits)


def utf8(text: str) -> bytes:
    """UTF-8; raises ValueError for half a character, without the text: it may be a secret."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as fault:
        half = f"U+{ord(text[fault.start]):04X}"
    # Outside of the handler, so that the error does not carry the text.
    raise ValueError(f"a text has {half}, half a character (a lone surrogate); UTF-8 has no such")
