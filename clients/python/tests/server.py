"""Servers for tests: the real binary as a process of its own, and a small one that misbehaves."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
import uuid
from pathlib import Path

from wellspring import Client, Log, RetryPolicy

BIN = os.environ.get("WELLSPRING_BIN", "")
URL = os.environ.get("WELLSPRING_URL", "")
PATIENT = RetryPolicy(attempts=200, total_s=20.0, first_s=0.02, longest_s=0.1)


def fresh_log(client: Client | None = None) -> Log:
    """A new log on the server that `clients/test` has started."""
    if not URL:
        raise RuntimeError("WELLSPRING_URL is not set: run clients/test")
    log = (client or Client(URL)).log(f"py-{uuid.uuid4().hex[:12]}")
    log.create()
    return log


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class RealServer:
    """The real binary on a data folder of its own; it can be killed and started again."""

    def __init__(self, *flags: str, scheme: str = "http") -> None:
        if not BIN:
            raise RuntimeError("WELLSPRING_BIN is not set: run clients/test")
        self._folder = tempfile.TemporaryDirectory(prefix="wellspring-clients-")
        self.data = Path(self._folder.name) / "data"
        self.data.mkdir(mode=0o700)
        self._flags = flags
        self.port = free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *words: str) -> str:
        """Runs a command of the tool and returns what it prints."""
        done = subprocess.run(
            [BIN, *words], check=True, capture_output=True, stdin=subprocess.DEVNULL, text=True
        )
        return done.stdout.strip()

    def start(self) -> RealServer:
        words = [BIN, "serve", "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}"]
        log = open(self.data.parent / "server.log", "ab")
        self._process = subprocess.Popen([*words, *self._flags], stdout=log, stderr=log)
        log.close()
        deadline_s = time.monotonic() + 20
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                break
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return self
            except OSError:
                time.sleep(0.02)
        raise RuntimeError((self.data.parent / "server.log").read_text())

    def kill(self) -> None:
        """Ends the process at once (kill -9)."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> RealServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._folder.cleanup()


def tells_history(url: str) -> bool:
    """Whether a server's answers carry `Wellspring-History`."""
    with urllib.request.urlopen(f"{url}/v1/logs/main/head") as answer:
        return answer.headers.get("Wellspring-History") is not None


class FakeServer:
    """A server that answers what a test says, and remembers what it was sent.

    `answer(request)` returns status, headers and body; a body that is a list of bytes is sent
    piece by piece without an end, as a stream; None closes the connection without an answer.
    """

    def __init__(self, answer) -> None:
        self.requests: list[FakeRequest] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = FakeRequest(self.command, self.path, dict(self.headers), body)
                outer.requests.append(request)
                answered = answer(request)
                if answered is None:
                    self.close_connection = True
                    return
                status, headers, content = answered
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if isinstance(content, list):
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.stream(content)
                    return
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def stream(self, pieces: list[bytes | float]) -> None:
                try:
                    for piece in pieces:
                        if isinstance(piece, float):
                            time.sleep(piece)
                            continue
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                except OSError:
                    pass  # The client has left.
                self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # A client that has left is no fault of the server.
        self._server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class FakeRequest:
    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.path, self.body = method, path, body
        self.headers = {name.lower(): value for name, value in headers.items()}

    def json(self):
        return json.loads(self.body)


def json_answer(status: int, document, **headers: str):
    """An answer with a JSON body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    kind = "application/json" if status < 400 else "application/problem+json"
    return status, {"Content-Type": kind, **named}, json.dumps(document).encode()


def problem(status: int, slug: str, **members):
    """A problem document as the server writes it."""
    document = {"type": f"/problems/{slug}", "title": slug, "status": status, "detail": "…"}
    return json_answer(status, {**document, "retry": "no", **members})


class FakeLog:
    """A log with a history, as the contract of `Wellspring-History` describes it."""

    def __init__(self, history: str | None, head: int) -> None:
        self.history, self.head = history, head

    def restore(self, history: str, head: int) -> None:
        self.history, self.head = history, head

    def event(self, position: int) -> dict:
        return {
            "position": position,
            "type": "T",
            "tags": [],
            "data": {"of": self.history},
            "recorded_at": "2026-11-25T00:00:00.000000Z",
        }

    def answer(self, request: FakeRequest):
        told = {} if self.history is None else {"Wellspring-History": self.history}
        told["Wellspring-Position"] = str(self.head)
        now = {"history": self.history, "head": self.head}
        asked = request.headers.get("wellspring-history")
        if self.history is not None and asked not in (None, self.history):
            return problem(409, "another-history", **now)
        wanted = request.json() if request.body else {}
        after = wanted.get("after") or 0
        if self.history is not None and request.path.endswith("/query") and after > self.head:
            return problem(409, "another-history", **now, position=after)
        if request.path.endswith("/head"):
            return json_answer(200, {"head": self.head}, **told)
        if request.path.endswith("/append"):
            self.head += len(wanted["events"])
            done = {"first": self.head, "last": self.head, "head": self.head, "replayed": False}
            return json_answer(200, done, **told)
        if request.path.endswith("/project"):
            projected = {"states": {}, "position": self.head, "appendCondition": {}}
            return json_answer(200, projected, **told)
        events = [self.event(position) for position in range(after + 1, self.head + 1)]
        if request.headers.get("accept") == "text/event-stream":
            at = "" if self.history is None else f"@{self.history}"
            pieces = [b": wellspring\n\n"]
            for event in events:
                text = f"id: {event['position']}{at}\ndata: {json.dumps(event)}\n\n"
                pieces.append(text.encode())
            return 200, {"Content-Type": "text/event-stream", **told}, pieces
        page = events[: wanted.get("limit", 100)]
        more = len(page) < len(events)
        found = {"events": page, "head": self.head, "next": page[-1]["position"] if more else None}
        return json_answer(200, found, **told)


class RawServer:
    """Answers each connection with the next bytes of a list, the last for ever, and closes it."""

    def __init__(self, *answers: bytes) -> None:
        self.connections = 0
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            answer = self._answers[min(self.connections, len(self._answers) - 1)]
            self.connections += 1
            with sock, sock.makefile("rb") as received:
                length = 0
                while (line := received.readline().lower()) not in (b"\r\n", b""):
                    if line.startswith(b"content-length:"):
                        length = int(line.partition(b":")[2])
                received.read(length)
                sock.sendall(answer)

    def __enter__(self) -> RawServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
