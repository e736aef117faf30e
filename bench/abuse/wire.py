"""HTTP/1.1 and just enough of HTTP/2, by hand: the standard library has no HTTP/2."""

import dataclasses
import json
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
CANCEL = 8
# What a frame may hold unless the other side says otherwise (RFC 9113, 6.5.2).
FRAME_BYTES = 16_384


@dataclasses.dataclass(frozen=True)
class Server:
    """Where a server is, and what it is shown."""

    address: tuple
    token: str | None = None

    def headers(self):
        return [("authorization", f"Bearer {self.token}")] if self.token else []

    def ask(self, method, path, body=b"", headers=(), timeout_s=60.0):
        """A request on a connection of its own: status and body. Status 0: there was no answer."""
        try:
            with Http1(self, timeout_s) as connection:
                return connection.ask(method, path, body, headers)
        except (OSError, ValueError):
            return 0, b""

    def post(self, path, value, headers=(), timeout_s=60.0):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.ask("POST", path, body, [("content-type", "application/json"), *headers], timeout_s)


class Http1:
    """A kept connection."""

    def __init__(self, server, timeout_s=60.0):
        self.server = server
        self.socket = socket.create_connection(server.address, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, method, path, body=b"", headers=()):
        lines = [f"{method} {path} HTTP/1.1", "host: {}:{}".format(*self.server.address)]
        lines += [f"{name}: {value}" for name, value in [*self.server.headers(), *headers]]
        if body or method not in ("GET", "DELETE"):
            lines.append(f"content-length: {len(body)}")
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def head(self):
        """Status and headers of an answer."""
        line = self.file.readline()
        if not line.startswith(b"HTTP/1.1 "):
            raise ValueError("no answer")
        headers = {}
        while (field := self.file.readline()) not in (b"\r\n", b"\n", b""):
            name, _, value = field.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return int(line[9:12]), headers

    def ask(self, method, path, body=b"", headers=()):
        self.send(method, path, body, headers)
        status, found = self.head()
        if found.get("transfer-encoding") == "chunked":
            content = b""
            while size := int(self.file.readline().split(b";")[0] or b"0", 16):
                content += self.file.read(size)
                self.file.readline()
            self.file.readline()
            return status, content
        return status, self.file.read(int(found.get("content-length", 0)))


class Http2:
    """A connection over which streams are opened and reset. It reads only what it has to."""

    def __init__(self, server, timeout_s=30.0):
        self.server = server
        self.socket = socket.create_connection(server.address, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.next_stream = 1
        # Room for all answers there may be: nothing waits for us.
        settings = struct.pack(">HI", 4, 0x7FFF_FFFF)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, settings) + window(0, 0x3FFF_FFFF))

    def close(self):
        self.socket.close()

    def open(self, method, path, body=b"", headers=()):
        """Opens a stream and sends all of its request; gives its number."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        fields = [(":method", method), (":scheme", "http"), (":path", path)]
        fields += [(":authority", "{}:{}".format(*self.server.address)), *self.server.headers(), *headers]
        block = b"".join(literal(name, value) for name, value in fields)
        end = 0 if body else END_STREAM
        out = frame(HEADERS, END_HEADERS | end, stream, block)
        for at in range(0, len(body), FRAME_BYTES):
            piece = body[at:at + FRAME_BYTES]
            out += frame(DATA, END_STREAM if at + len(piece) == len(body) else 0, stream, piece)
        self.socket.sendall(out)
        return stream

    def reset(self, stream):
        self.socket.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))

    def pump(self, timeout_s):
        """Reads what is there, answering what has to be; false: the connection has ended."""
        self.socket.settimeout(timeout_s)
        try:
            head = self.exactly(9)
            length, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
            content = self.exactly(length)
        except TimeoutError:
            return True
        except OSError:
            return False
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, content))
        return kind != GOAWAY

    def exactly(self, count):
        found = b""
        while len(found) < count:
            piece = self.socket.recv(count - len(found))
            if not piece:
                raise ConnectionError("closed")
            found += piece
        return found


def frame(kind, flags, stream, content):
    return len(content).to_bytes(3) + bytes([kind, flags]) + struct.pack(">I", stream) + content


def window(stream, more):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", more))


def literal(name, value):
    """A header field that no table remembers (RFC 7541, 6.2.2)."""
    return b"\x00" + text(name.encode()) + text(value.encode())


def text(octets):
    """A string as it is: its length with a prefix of seven bits, then the octets."""
    if len(octets) < 127:
        return bytes([len(octets)]) + octets
    out, rest = bytearray([127]), len(octets) - 127
    while rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    return bytes([*out, rest]) + octets
