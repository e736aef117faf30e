"""Retries, errors and keys, against a server that misbehaves."""

import threading
import time
import unittest

from server import FakeServer, free_port, json_answer, problem

from wellspring import (
    NO_RETRY,
    Client,
    Conflict,
    Forbidden,
    Invalid,
    NewEvent,
    NotFound,
    OutcomeUnknown,
    RetryPolicy,
    ServerFault,
    Unauthenticated,
    Unavailable,
)

QUICK = RetryPolicy(attempts=5, total_s=5.0, first_s=0.01, longest_s=0.02)
DONE = {"first": 1, "last": 1, "head": 1, "replayed": False}


def in_turn(*answers):
    """Answers requests in turn, the last for ever."""
    left = list(answers)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


class Transports(unittest.TestCase):
    def test_an_append_is_repeated_as_it_was_under_one_key(self) -> None:
        busy = json_answer(503, {"type": "/problems/overloaded", "retry": 1}, Retry_After="0")
        gateway = (502, {"Content-Type": "text/html"}, b"<h1>Bad gateway</h1>")
        with FakeServer(in_turn(None, busy, gateway, json_answer(200, DONE))) as server:
            client = Client(server.url, retry=QUICK)
            self.assertEqual(client.log("x").append([NewEvent("A", "ö")]).last, 1)
            self.assertEqual(len(server.requests), 4)
            self.assertEqual(len({request.body for request in server.requests}), 1)
            keys = {request.headers["idempotency-key"] for request in server.requests}
            self.assertEqual(len(keys), 1)
            client.log("x").append([NewEvent("A", "ö")])
            self.assertNotIn(server.requests[-1].headers["idempotency-key"], keys)

    def test_an_append_in_doubt_says_so_and_names_its_key(self) -> None:
        busy = json_answer(503, {"type": "/problems/overloaded", "retry": "same"})
        with FakeServer(in_turn(None, busy)) as server:
            with self.assertRaises(OutcomeUnknown) as caught:
                Client(server.url, retry=QUICK).log("x").append([NewEvent("A")])
            self.assertEqual(len(server.requests), 5)
            key = server.requests[0].headers["idempotency-key"]
            self.assertEqual(caught.exception.key, key)
        with FakeServer(in_turn(busy)) as server:
            with self.assertRaises(Unavailable):
                Client(server.url, retry=QUICK).log("x").append([NewEvent("A")])
        # A definite answer settles the doubt.
        with FakeServer(in_turn(None, problem(409, "append-condition-failed"))) as server:
            with self.assertRaises(Exception) as caught:
                Client(server.url, retry=QUICK).log("x").append([NewEvent("A")])
            self.assertEqual(type(caught.exception).__name__, "ConditionFailed")

    def test_what_is_not_safe_is_sent_once(self) -> None:
        with FakeServer(in_turn(None)) as server:
            log = Client(server.url, retry=QUICK).log("x")
            with self.assertRaises(OutcomeUnknown):
                log.ingest({})
            with self.assertRaises(OutcomeUnknown):
                log.drop()
            with self.assertRaises(OutcomeUnknown):
                Client(server.url, retry=QUICK).links.change("abc", enabled=False)
            self.assertEqual(len(server.requests), 3)
            with self.assertRaises(Unavailable):
                log.head()
            self.assertEqual(len(server.requests), 8)

    def test_an_answer_of_a_gateway_leaves_a_change_in_doubt(self) -> None:
        gateways = [
            (status, {"Content-Type": "text/html"}, b"<h1>Gateway</h1>")
            for status in (408, 500, 502, 503, 504, 520)
        ]
        gateways.append(json_answer(502, {"type": "about:blank", "detail": "not ours"}))
        gateways.append(json_answer(504, {"message": "Endpoint request timed out"}))
        for gateway in gateways:
            with FakeServer(in_turn(gateway)) as server:
                client = Client(server.url, retry=QUICK)
                log = client.log("x")
                with self.assertRaises(OutcomeUnknown) as caught:
                    log.append([NewEvent("A")], key="mine")
                told = (caught.exception.key, caught.exception.status)
                self.assertEqual(told, ("mine", gateway[0]))
                self.assertIn("may have been done", str(caught.exception))
                self.assertEqual(len(server.requests), 5)
                with self.assertRaises(OutcomeUnknown):
                    log.create()
                self.assertEqual(len(server.requests), 10)
                with self.assertRaises(OutcomeUnknown):
                    log.acquire_lease("x", 1)
                self.assertEqual(len({request.body for request in server.requests[10:]}), 1)
                self.assertEqual(len(server.requests), 15)
                for action in (
                    lambda: log.ingest(1),
                    log.drop,
                    lambda: client.links.delete("a"),
                ):
                    with self.assertRaises(OutcomeUnknown):
                        action()
                self.assertEqual(len(server.requests), 18, "what is not safe is sent once")
            with FakeServer(in_turn(gateway, json_answer(200, DONE))) as server:
                log = Client(server.url, retry=QUICK).log("x")
                self.assertEqual(log.append([NewEvent("A")]).last, 1)
        for status, kind, attempts in ((503, Unavailable, 5), (502, Unavailable, 5),
                                       (504, Unavailable, 5), (500, ServerFault, 1)):  # fmt: skip
            with FakeServer(in_turn((status, {}, b"<h1>Gateway</h1>"))) as server:
                with self.assertRaises(kind):
                    Client(server.url, retry=QUICK).log("x").head()
                self.assertEqual(len(server.requests), attempts)

    def test_only_a_judgement_of_the_server_settles_a_doubt(self) -> None:
        for status, slug, kind in (
            (401, "unauthenticated", OutcomeUnknown),
            (403, "forbidden", OutcomeUnknown),
            (503, "detached", OutcomeUnknown),
            (422, "idempotency-key-reused", Invalid),
            (404, "log-not-found", NotFound),
        ):
            with FakeServer(in_turn(None, problem(status, slug))) as server:
                with self.assertRaises(kind) as caught:
                    Client(server.url, retry=QUICK).log("x").append([NewEvent("A")])
                self.assertEqual((type(caught.exception), len(server.requests)), (kind, 2))
        with FakeServer(in_turn(None, (404, {}, b"no backend"))) as server:
            with self.assertRaises(OutcomeUnknown):
                Client(server.url, retry=QUICK).log("x").append([NewEvent("A")])

    def test_retry_after_is_honoured_and_time_is_bounded(self) -> None:
        busy = json_answer(503, {"type": "/problems/overloaded", "retry": 1}, Retry_After="1")
        with FakeServer(in_turn(busy, json_answer(200, {"head": 5}))) as server:
            begun_s = time.monotonic()
            self.assertEqual(Client(server.url, retry=QUICK).log("x").head().position, 5)
            self.assertGreaterEqual(time.monotonic() - begun_s, 1.0)
        late = json_answer(429, {"type": "/problems/ingest-full", "retry": 60}, Retry_After="60")
        with FakeServer(in_turn(late)) as server:
            begun_s = time.monotonic()
            with self.assertRaises(Unavailable) as caught:
                Client(server.url, retry=QUICK).log("x").head()
            self.assertEqual(caught.exception.retry_after, 60.0)
            self.assertLess(time.monotonic() - begun_s, 1.0)

    def test_each_problem_has_the_class_of_its_remedy(self) -> None:
        expected = [
            (400, "malformed-json", Invalid),
            (401, "unauthenticated", Unauthenticated),
            (403, "forbidden", Forbidden),
            (404, "log-not-found", NotFound),
            (409, "alias-taken", Conflict),
            (410, "link-deleted", NotFound),
            (413, "too-large", Invalid),
            (422, "invalid", Invalid),
            (500, "corrupt", ServerFault),
            (503, "detached", ServerFault),
            (501, "search-not-built", ServerFault),
        ]
        for status, slug, kind in expected:
            with FakeServer(in_turn(problem(status, slug, field="a.b", limit=7))) as server:
                with self.assertRaises(kind) as caught:
                    Client(server.url, retry=QUICK).log("x").head()
                error = caught.exception
                self.assertEqual((type(error), error.type, error.status), (kind, slug, status))
                self.assertEqual(len(server.requests), 1, slug)
                self.assertEqual(error.problem["field"], "a.b")
        with FakeServer(in_turn((200, {}, b"<html>"))) as server:
            with self.assertRaises(ServerFault):
                Client(server.url).log("x").head()

    def test_nothing_listens(self) -> None:
        log = Client(f"http://127.0.0.1:{free_port()}", retry=NO_RETRY).log("x")
        for attempt in (log.head, lambda: log.append([NewEvent("A")]), lambda: log.ingest(1)):
            with self.assertRaises(Unavailable):
                attempt()

    def test_a_silent_server_is_not_waited_for_longer_than_told(self) -> None:
        def answer(request):
            time.sleep(1.0)
            return json_answer(200, {"head": 1})

        with FakeServer(answer) as server:
            client = Client(server.url, retry=NO_RETRY, timeout_s=0.1)
            with self.assertRaises(Unavailable):
                client.log("x").head()
            with self.assertRaises(OutcomeUnknown):
                client.log("x").ingest(1)

    def test_a_connection_is_kept_and_one_that_was_closed_is_not_used(self) -> None:
        ports = []

        def answer(request):
            ports.append(threading.get_ident())
            return json_answer(200, {"head": 1})

        with FakeServer(answer) as server:
            client = Client(server.url, retry=NO_RETRY)
            for _ in range(5):
                client.log("x").head()
            self.assertEqual(len(set(ports)), 1, "one connection, so one thread of the server")

        def closing(request):
            return (200, {"Content-Type": "application/json"}, [b'{"head":1}', b""])

        with FakeServer(closing) as server:
            client = Client(server.url, retry=NO_RETRY)
            for _ in range(5):
                self.assertEqual(client.log("x").head().position, 1)
                time.sleep(0.02)

    def test_own_writes_are_read_unless_turned_off(self) -> None:
        def answer(request):
            body = {**DONE, "last": 41, "head": 99} if "append" in request.path else {"head": 99}
            return json_answer(200, body)

        with FakeServer(answer) as server:
            for on, expected in ((True, "41"), (False, None)):
                log = Client(server.url, read_your_writes=on).log("x")
                log.append([NewEvent("A")])
                log.head()
                sent = server.requests[-1].headers.get("wellspring-min-position")
                self.assertEqual(sent, expected)

    def test_a_silent_subscription_is_replaced_and_resumes(self) -> None:
        def message(position: int) -> bytes:
            return b'id: %d\ndata: {"position":%d,"type":"T","data":1}\n\n' % (position, position)

        asked = []

        def answer(request):
            after = request.json()["after"]
            asked.append(after)
            if after == 0:
                pieces = [b": wellspring\n\n", message(1), message(2)[:-1], 5.0]
            elif after == 1:
                pieces = [b'event: position\nid: 9\ndata: {"position":9}\n\n', 5.0]
            else:
                pieces = [message(10), 5.0]
            return 200, {"Content-Type": "text/event-stream"}, pieces

        with FakeServer(answer) as server:
            log = Client(server.url, retry=QUICK).log("x")
            with log.subscribe(heartbeat_timeout_s=0.3) as followed:
                self.assertEqual([next(followed).position, next(followed).position], [1, 10])
            self.assertEqual(asked, [0, 1, 9])

    def test_a_subscription_gives_up_when_told_to_and_at_what_a_retry_does_not_mend(self) -> None:
        log = Client(f"http://127.0.0.1:{free_port()}", retry=QUICK).log("x")
        with self.assertRaises(Unavailable):
            next(log.subscribe(give_up_after_s=0.2))
        with FakeServer(in_turn(problem(401, "unauthenticated"))) as server:
            with self.assertRaises(Unauthenticated):
                next(Client(server.url, retry=QUICK).log("x").subscribe())

    def test_a_subscription_ends_at_an_answer_that_is_no_stream(self) -> None:
        for answer in (
            (200, {"Content-Type": "text/html"}, b"<html>hi</html>"),
            (200, {}, b"hi"),
            json_answer(200, {}),
        ):
            with FakeServer(in_turn(answer)) as server:
                for give_up_after_s in (None, 60.0):
                    log = Client(server.url, retry=QUICK).log("x")
                    with self.assertRaises(ServerFault) as caught:
                        next(log.subscribe(give_up_after_s=give_up_after_s))
                    self.assertIn("not a stream of events", str(caught.exception))
                self.assertEqual(len(server.requests), 2)

    def test_only_comments_and_messages_are_signs_of_life(self) -> None:
        headers = {"Content-Type": "text/event-stream; charset=utf-8"}
        begun_s = time.monotonic()
        with FakeServer(in_turn((200, headers, [b"data: begun\n"]))) as server:
            log = Client(server.url, retry=QUICK).log("x")
            with self.assertRaises(Unavailable):
                next(log.subscribe(give_up_after_s=0.3))
        self.assertLess(time.monotonic() - begun_s, 5)
        position = b'event: position\nid: 9\ndata: {"position":9}\n\n'
        for sign in (b": heartbeat\n", position):
            with FakeServer(in_turn((200, headers, [sign]))) as server:
                followed = Client(server.url, retry=QUICK).log("x").subscribe(give_up_after_s=0.3)
                threading.Timer(1.0, followed.close).start()
                self.assertEqual(list(followed), [])

    def test_what_follows_a_broken_message_is_not_handed_out(self) -> None:
        broken = b'id: 1\ndata: {"position\n\nid: 2\ndata: {"position":2,"type":"T"}\n\n'
        stream = (200, {"Content-Type": "text/event-stream"}, [broken, 5.0])
        with FakeServer(in_turn(stream)) as server:
            with Client(server.url, retry=QUICK).log("x").subscribe() as followed:
                for _ in range(2):
                    with self.assertRaises(ServerFault):
                        next(followed)
            self.assertEqual([request.json()["after"] for request in server.requests], [0, 0])

    def test_secrets_are_not_shown(self) -> None:
        client = Client("http://127.0.0.1:1", token="wsk_secret")
        shown = f"{client!r} {client.log('x')!r} {client._transport._credentials!r}"
        self.assertNotIn("secret", shown)


if __name__ == "__main__":
    unittest.main()
