"""Just enough of Bolt 5.4, by hand: what a client sends without looking at what it is told."""

import socket
import struct

HANDSHAKE = bytes.fromhex("6060b017 00000405 00000000 00000000 00000000")
HELLO, LOGON, RUN, PULL = 0x01, 0x6A, 0x10, 0x3F


def pack(value):
    """A value in PackStream; text up to 65,535 bytes, lists and maps up to 15 members."""
    match value:
        case int():
            return b"\xcb" + struct.pack(">q", value)
        case str():
            octets = value.encode()
            return b"\xd1" + struct.pack(">H", len(octets)) + octets
        case list():
            return bytes([0x90 + len(value)]) + b"".join(map(pack, value))
        case dict():
            return bytes([0xA0 + len(value)]) + b"".join(pack(name) + pack(each) for name, each in value.items())
    raise TypeError(value)


def message(tag, *fields):
    content = bytes([0xB0 + len(fields), tag]) + b"".join(map(pack, fields))
    return struct.pack(">H", len(content)) + content + b"\0\0"


LOGGED_ON = HANDSHAKE + message(HELLO, {"user_agent": "abuse/1"}) + message(LOGON, {"scheme": "none"})
# The rest of 64 KiB never comes.
HALF_A_MESSAGE = LOGGED_ON + b"\xff\xff\xb3\x10"
# A parameter that says it has 4 GiB, in a message that goes on.
TOO_LONG = LOGGED_ON + b"\xff\xff\xb3\x10\xd2\xff\xff\xff\xff" + b"x" * 65_528


def connect(server, out):
    """A connection over which that is sent."""
    connection = socket.create_connection(server.address, 5.0)
    connection.sendall(out)
    return connection
