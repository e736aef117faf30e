"""Answers that break off are not believed."""

import json
import unittest

from server import FakeServer, RawServer, json_answer

from wellspring import (
    NO_RETRY,
    AnotherHistory,
    Client,
    NewEvent,
    OutcomeUnknown,
    RetryPolicy,
    ServerFault,
    Unavailable,
)

QUICK = RetryPolicy(attempts=3, total_s=5.0, first_s=0.001, longest_s=0.002)
HISTORY = "00000000000000aa"
DONE = {"first": 7, "last": 8, "head": 9, "replayed": False}
HEAD = (
    "HTTP/1.1 200 OK\r\nWellspring-History: 00000000000000aa\r\nwellspring-position: 9\r\n"
    "content-type: application/json\r\n"
)
OLD_HEAD = HEAD.replace("HTTP/1.1", "HTTP/1.0").encode() + b"\r\n"


def whole(document) -> bytes:
    body = json.dumps(document).encode()
    return HEAD.encode() + b"content-length: %d\r\n\r\n%s" % (len(body), body)


class WholeAnswers(unittest.TestCase):
    def test_an_answer_that_is_cut_anywhere_is_asked_for_again(self) -> None:
        answer = whole(DONE)
        for cut in range(len(answer)):
            with RawServer(answer[:cut], answer) as server:
                log = Client(server.url, retry=QUICK).log("x")
                done = log.append([NewEvent("A")])
                told = (server.connections, done.first, done.last, done.head, log.history)
                self.assertEqual(told, (2, 7, 8, 9, HISTORY), answer[:cut])

    def test_a_change_whose_answer_is_cut_may_have_been_done(self) -> None:
        answer = whole(DONE)
        for mark in (b"HTTP/1.1 2", b"200 OK", b"content-ty", b"00000", b'"last'):
            cut = answer[: answer.index(mark) + len(mark)]
            with RawServer(cut) as server:
                log = Client(server.url, retry=NO_RETRY).log("x")
                with self.assertRaises(OutcomeUnknown) as caught:
                    log.append([NewEvent("A")], key="mine")
                self.assertEqual(caught.exception.key, "mine")
                for action in (lambda: log.ingest(1), log.drop, log.create):
                    with self.assertRaises(OutcomeUnknown):
                        action()
                with self.assertRaises(Unavailable):
                    log.head()
                if b"\r\n\r\n" not in cut:
                    with self.assertRaises(Unavailable):
                        next(log.subscribe(give_up_after_s=-1))
                self.assertIsNone(log.history)

    def test_an_answer_without_a_length_is_whole_if_its_json_is(self) -> None:
        body = json.dumps(DONE).encode()
        for cut in range(len(body)):
            with RawServer(OLD_HEAD + body[:cut], OLD_HEAD + body) as server:
                log = Client(server.url, retry=QUICK).log("x")
                self.assertEqual((log.append([NewEvent("A")]).last, server.connections), (8, 2))
        with RawServer(OLD_HEAD + body[:-1]) as server:
            with self.assertRaises(OutcomeUnknown):
                Client(server.url, retry=QUICK).log("x").append([NewEvent("A")])
            self.assertEqual(server.connections, 3)

    def test_a_problem_that_is_cut_is_not_taken_for_another(self) -> None:
        document = b'{"type":"/problems/append-condition-failed","title":"x"}'
        head = b"HTTP/1.0 409 Conflict\r\ncontent-type: application/problem+json\r\n\r\n"
        with RawServer(head + document[:30], whole(DONE)) as server:
            log = Client(server.url, retry=QUICK).log("x")
            self.assertEqual(log.append([NewEvent("A")]).last, 8)

    def test_a_history_has_sixteen_digits(self) -> None:
        odd = json_answer(200, {"head": 1}, Wellspring_History="00000000", Wellspring_Position="x")
        even = json_answer(200, {"head": 1}, Wellspring_History=HISTORY)
        other = json_answer(
            200, {"head": 1}, Wellspring_History="b" * 16, Wellspring_Position="many"
        )
        left = [odd, even, odd, other]
        with FakeServer(lambda request: left.pop(0)) as server:
            log = Client(server.url, retry=NO_RETRY).log("x")
            self.assertIsNone(log.head().history)
            self.assertIsNone(log.history)
            self.assertEqual(log.head().history, HISTORY)
            self.assertIsNone(log.head().history)
            with self.assertRaises(AnotherHistory) as caught:
                log.head()
            self.assertEqual((caught.exception.history, caught.exception.head), ("b" * 16, None))

    def test_an_answer_that_lacks_what_was_asked_for_is_a_fault_of_the_server(self) -> None:
        for document in ({}, [], None, 1, {"first": "1"}, {"head": True, "events": 1}):
            with FakeServer(lambda request: json_answer(200, document)) as server:
                client = Client(server.url, retry=QUICK)
                log = client.log("x")
                for action in (
                    lambda: log.append([NewEvent("A")]),
                    lambda: log.append([NewEvent("A")], ack="accepted"),
                    lambda: log.append_bulk([NewEvent("A")]),
                    log.head,
                    log.info,
                    lambda: list(log.read()),
                    lambda: log.event(1),
                    lambda: log.project({}),
                    lambda: log.acquire_lease("x", 1),
                    client.logs,
                    lambda: client.links.create("http://example.com"),
                    lambda: client.links.get("a"),
                    lambda: client.links.stats("a"),
                    lambda: list(client.links.list()),
                ):
                    with self.assertRaises(ServerFault):
                        action()
        with FakeServer(lambda request: json_answer(200, {})) as server:
            with self.assertRaises(ServerFault) as caught:
                Client(server.url).log("x").append([NewEvent("A")], key="mine")
            self.assertEqual(caught.exception.key, "mine")


if __name__ == "__main__":
    unittest.main()
