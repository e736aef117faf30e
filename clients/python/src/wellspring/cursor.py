"""A place in a log, as text that a consumer can save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Cursor:
    """A position, and the history of the log it belongs to, if the server told it.

    `str(cursor)` is `42@00c0ffee00c0ffee`, or `42` without a history; `Cursor.parse` reads both.
    """

    position: int
    history: str | None = None

    def __str__(self) -> str:
        return str(self.position) if self.history is None else f"{self.position}@{self.history}"

    @staticmethod
    def parse(text: str) -> Cursor:
        """Reads what `str` has written.

        Raises ValueError for anything else.
        """
        position, at, history = text.strip().partition("@")
        if not (position.isascii() and position.isdigit()) or (at and not history):
            raise ValueError(f"not a cursor: {text!r}")
        return Cursor(int(position), history or None)


Place = Union[Cursor, int, str]
"""A cursor, its text, or a bare position, which is not checked against a history."""


def cursor_at(place: Place) -> Cursor:
    """The cursor that a place stands for."""
    if isinstance(place, Cursor):
        return place
    return Cursor.parse(place) if isinstance(place, str) else Cursor(place)
