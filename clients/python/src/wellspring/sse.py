"""Server-sent events (WHATWG HTML, 9.2.6), parsed as they arrive."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """A complete message."""

    event: str
    id: str | None
    data: str


class SseParser:
    """Turns bytes into messages. A message that breaks off is never returned."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_cr = False
        self._at_start = True
        self._event = ""
        self._id: str | None = None
        self._data: list[str] = []
        self.signs_of_life = 0
        """Comments and messages so far; the server's heartbeat is a comment."""

    def feed(self, piece: bytes) -> list[Message]:
        """The messages that this piece completes."""
        if not piece:
            return []
        ends_in_cr = piece.endswith(b"\r")
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]  # The second half of a line break.
        self._after_cr = ends_in_cr
        lines = (self._rest + piece).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        messages = (self._line(line) for line in lines)
        return [message for message in messages if message is not None]

    def _line(self, line: bytes) -> Message | None:
        text = line.decode("utf-8", "replace")
        if self._at_start:
            self._at_start = False
            text = text[1:] if text.startswith("\ufeff") else text
        if not text:
            return self._complete()
        name, _, value = text.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if not name:
            self.signs_of_life += 1
        elif name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _complete(self) -> Message | None:
        event, data = self._event, self._data
        self._event, self._data = "", []
        if not data:
            return None
        self.signs_of_life += 1
        return Message(event or "message", self._id, "\n".join(data))
