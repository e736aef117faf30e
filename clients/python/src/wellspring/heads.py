"""Answers of HTTP/1 of which every part has arrived."""

from __future__ import annotations

import http.client
from typing import Any


class CutShort(http.client.HTTPException):
    """The connection ended before the answer did."""


class WholeHeadResponse(http.client.HTTPResponse):
    """A response whose head ends with a blank line.

    The standard library takes the end of the connection for the end of the head: it would believe
    half a header, and a body without its length.
    """

    def begin(self, **limits: Any) -> None:
        """Reads the head; raises `CutShort` if it breaks off."""
        source: Any = self.fp
        self.fp = _HeadReader(source)  # type: ignore[assignment]
        try:
            super().begin(**limits)
        finally:
            if self.fp is not None:
                self.fp = source


class _HeadReader:
    def __init__(self, source: Any) -> None:
        self._source = source

    def readline(self, most_bytes: int) -> bytes:
        line: bytes = self._source.readline(most_bytes)
        if not line.endswith(b"\n") and len(line) < most_bytes:
            raise CutShort("the head of the answer breaks off" if line else "there is no answer")
        return line

    def close(self) -> None:
        self._source.close()
