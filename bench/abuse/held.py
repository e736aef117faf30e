"""Connections that are held or sent badly: idle, slow, with heads too large and JSON too deep.

Kinds: idle=N (connections, every other one after a request), bolt-idle=N (the same by Bolt: every other one after a
log-on, the others with half a message), slow-heads=N and slow-bodies=N (connections, a byte a
second each; every other one for the lean loop, and opened anew when the server cuts it), big-heads=R and
deep-json=R (a second: heads of 72 KiB; bodies of a million brackets, to all routes that take JSON).
"""

import errno
import select
import socket
import time

from . import bolt

MOST_CONNECTIONS = 12_000
CONNECTS_A_TICK = 100
TICK_S = 0.01
POOL = 32
KINDS = {"idle", "bolt-idle", "slow-heads", "slow-bodies", "big-heads", "deep-json"}
HEAD = b"GET /v1/head HTTP/1.1\r\nHost: abuse\r\n\r\n"
DEEP = b"[" * 1_000_000
DEEP_PATHS = ["/e", "/v1/append", "/v1/project", "/v1/query", "/api/urls", "/append", "/read"]


class Connection:
    """A socket that does not block, what is still to be sent over it, and what becomes of it."""

    __slots__ = ("socket", "out", "kind", "drip", "sent", "answer", "one_shot")

    def __init__(self, kind, address, out=b"", drip=None, one_shot=False):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.out, self.kind, self.drip, self.sent = memoryview(out), kind, drip, 0
        self.answer, self.one_shot = b"", one_shot
        result = self.socket.connect_ex(address)
        if result not in (0, errno.EINPROGRESS):
            raise OSError(result, "connect")


class Abuse:
    def __init__(self, address, wanted):
        self.address, self.wanted = address, wanted
        self.epoll, self.connections = select.epoll(), {}
        self.counts = {kind: {"opened": 0, "cut": 0} for kind in wanted}
        self.held = dict.fromkeys(wanted, 0)
        self.dripping, self.turn = [], 0

    def open(self, kind, **more):
        if len(self.connections) >= MOST_CONNECTIONS:
            return
        try:
            connection = Connection(kind, self.address, **more)
        except OSError as error:
            self.count(kind, f"connect: {errno.errorcode.get(error.errno, error.errno)}")
            return
        self.connections[connection.socket.fileno()] = connection
        self.counts[kind]["opened"] += 1
        self.held[kind] += 1
        self.epoll.register(connection.socket, select.EPOLLIN | select.EPOLLOUT)
        if connection.drip is not None:
            self.dripping.append(connection)

    def count(self, kind, what):
        self.counts[kind][what] = self.counts[kind].get(what, 0) + 1

    def close(self, connection, cut):
        if self.connections.pop(connection.socket.fileno(), None) is None:
            return
        self.held[connection.kind] -= 1
        if cut:
            self.counts[connection.kind]["cut"] += 1
        if connection.answer.startswith(b"HTTP/1.1 "):
            self.count(connection.kind, connection.answer[9:12].decode("latin-1"))
        connection.socket.close()

    def fill(self):
        """Opens what is missing of those that are held."""
        left = CONNECTS_A_TICK
        for kind in ("idle", "bolt-idle", "slow-heads", "slow-bodies"):
            while left > 0 and self.held.get(kind, 0) < self.wanted.get(kind, 0):
                before = len(self.connections)
                lean = self.counts[kind]["opened"] % 2 == 0
                if kind == "idle":
                    self.open(kind, out=b"" if lean else HEAD)
                elif kind == "bolt-idle":
                    self.open(kind, out=bolt.LOGGED_ON if lean else bolt.HALF_A_MESSAGE)
                elif kind == "slow-heads":
                    line = b"POST /e HTTP/1.1\r\n" if lean else b"GET /v1/head HTTP/1.1\r\n"
                    self.open(kind, out=line + b"Host: abuse\r\n", drip=b"X-Slow: yes\r\n")
                else:
                    path = b"/e" if lean else b"/v1/append"
                    head = b"POST %s HTTP/1.1\r\nHost: abuse\r\nContent-Type: application/json\r\n"
                    self.open(kind, out=head % path + b"Content-Length: 1000000\r\n\r\n", drip=b"[")
                left -= 1
                if len(self.connections) == before:
                    return

    def shoot(self, kind):
        """One request that is over once it is answered."""
        self.turn += 1
        if kind == "big-heads":
            line = [b"GET /v1/head HTTP/1.1", b"POST /e HTTP/1.1"][self.turn % 2]
            fields = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 1_400) for n in range(52))
            return self.open(kind, out=line + b"\r\nHost: abuse\r\n" + fields + b"\r\n", one_shot=True)
        path = DEEP_PATHS[self.turn % len(DEEP_PATHS)].encode()
        body = b'{"events":[{"type":"T","data":' + DEEP if b"append" in path else DEEP
        head = b"POST %s HTTP/1.1\r\nHost: abuse\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        return self.open(kind, out=head % (path, len(body)) + body, one_shot=True)

    def drip(self):
        alive = []
        for connection in self.dripping:
            if connection.socket.fileno() < 0:
                continue
            alive.append(connection)
            if connection.out:
                continue  # it has not begun yet
            byte = connection.drip[connection.sent % len(connection.drip):][:1]
            try:
                connection.socket.send(byte)
                connection.sent += 1
            except BlockingIOError:
                pass
            except OSError:
                self.close(connection, cut=True)
        self.dripping = alive

    def ready(self, descriptor, events):
        connection = self.connections.get(descriptor)
        if connection is None:
            return
        try:
            if events & select.EPOLLOUT:
                if connection.out:
                    connection.out = connection.out[connection.socket.send(connection.out):]
                if not connection.out:
                    self.epoll.modify(connection.socket, select.EPOLLIN)
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                got = connection.socket.recv(65_536)
                if not connection.answer:
                    connection.answer = got
                if not got or (connection.one_shot and not connection.out):
                    self.close(connection, cut=not got)
        except BlockingIOError:
            pass
        except OSError:
            self.close(connection, cut=True)

    def run(self, seconds, is_over):
        """Abuses until it is over; says `ready` on standard output once what is held is there. Gives what became
        of it."""
        rates = {kind: self.wanted[kind] for kind in ("big-heads", "deep-json") if kind in self.wanted}
        held = {kind: n for kind, n in self.wanted.items() if kind not in rates}
        begun = time.monotonic()
        shot, told, dripped = dict.fromkeys(rates, 0), False, begun
        while (now := time.monotonic()) < begun + seconds and not (told and is_over()):
            self.fill()
            if not told and all(self.held[kind] >= n * 0.98 for kind, n in held.items()):
                print("ready", flush=True)
                told = True
            for kind, rate in rates.items():
                while shot[kind] < (now - begun) * rate and self.held[kind] < POOL:
                    shot[kind] += 1
                    self.shoot(kind)
                # What could not be sent in time is not sent later.
                shot[kind] = max(shot[kind], int((now - begun) * rate))
            if now - dripped >= 1:
                dripped = now
                self.drip()
            for descriptor, events in self.epoll.poll(TICK_S, 1_000):
                self.ready(descriptor, events)
        for kind, held in self.held.items():
            self.counts[kind]["held_at_end"] = held
        return self.counts
