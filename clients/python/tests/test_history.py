"""The identity of a log: a consumer is told when the log is not the one it knew."""

import itertools
import shutil
import unittest

from server import URL, FakeLog, FakeServer, RealServer, fresh_log, tells_history

from wellspring import AnotherHistory, Client, Cursor, NewEvent, RetryPolicy, projection

OLD, NEW = "00000000000000aa", "00000000000000bb"
QUICK = RetryPolicy(attempts=5, total_s=5.0, first_s=0.01, longest_s=0.02)
COUNT = {"n": projection("count")}


class Histories(unittest.TestCase):
    def setUp(self) -> None:
        self.fake = FakeLog(OLD, 6)
        self.server = self.enterContext(FakeServer(self.fake.answer))
        self.log = Client(self.server.url, retry=QUICK).log("x")

    def enterContext(self, context):
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def told(self, action, head: int = 3) -> AnotherHistory:
        with self.assertRaises(AnotherHistory) as caught:
            action()
        self.assertEqual((caught.exception.history, caught.exception.head), (NEW, head))
        return caught.exception

    def test_the_first_history_is_remembered_and_sent(self) -> None:
        self.assertEqual(self.log.head(), Cursor(6, OLD))
        self.assertNotIn("wellspring-history", self.server.requests[0].headers)
        self.assertEqual([str(e.cursor) for e in self.log.read(after=4)], [f"5@{OLD}", f"6@{OLD}"])
        self.assertEqual(self.server.requests[1].headers["wellspring-history"], OLD)
        self.assertEqual(self.log.history, OLD)

    def test_everything_on_a_restored_log_is_told(self) -> None:
        cursor = self.log.head()
        self.fake.restore(NEW, 3)
        event = NewEvent("A")
        self.told(lambda: self.log.append([event]))
        self.told(lambda: self.log.append_bulk([event]))
        self.told(lambda: self.log.ingest({}))
        self.told(lambda: list(self.log.read()))
        self.told(lambda: self.log.project(COUNT))
        self.told(lambda: self.log.decide(COUNT, lambda states: [event]))
        self.told(lambda: next(self.log.subscribe(after=cursor)))
        self.assertEqual(self.fake.head, 3, "nothing was done")
        self.log.forget_history()
        self.assertEqual(len(list(self.log.read())), 3)
        self.assertEqual(self.log.history, NEW)
        self.told(lambda: list(self.log.read(after=str(cursor))))

    def test_a_saved_cursor_is_checked_by_another_process(self) -> None:
        saved = str(self.log.head())
        self.fake.restore(NEW, 30)
        later = Client(self.server.url, retry=QUICK).log("x")
        self.told(lambda: next(later.subscribe(after=saved)), head=30)
        self.told(lambda: list(later.read(after=saved)), head=30)

    def test_a_bare_position_ahead_of_the_log_is_told(self) -> None:
        self.fake.restore(NEW, 3)
        self.assertEqual(self.told(lambda: list(self.log.read(after=6))).position, 6)
        self.assertEqual(self.told(lambda: next(self.log.subscribe(after=6))).position, 6)

    def test_a_log_restored_between_projection_and_append_is_told(self) -> None:
        def decision(states):
            self.fake.restore(NEW, 3)
            self.log.forget_history()  # As another thread might that has noticed first.
            return [NewEvent("A")]

        self.told(lambda: self.log.decide(COUNT, decision))
        self.assertEqual(self.fake.head, 3)

    def test_a_log_restored_under_a_subscription_is_told_at_the_next_connection(self) -> None:
        # The fake ends every stream after the events it has.
        followed = self.log.subscribe(after="start")
        self.assertEqual(len(list(itertools.islice(followed, 6))), 6)
        self.assertEqual(str(followed.cursor), f"6@{OLD}")
        self.fake.restore(NEW, 9)
        self.told(lambda: next(followed), head=9)

    def test_a_server_that_does_not_check_is_checked(self) -> None:
        def answer(request):
            request.headers.pop("wellspring-history", None)
            return self.fake.answer(request)

        with FakeServer(answer) as server:
            log = Client(server.url, retry=QUICK).log("x")
            cursor = log.head()
            self.fake.restore(NEW, 9)
            self.told(lambda: list(log.read(after=cursor)), head=9)
            self.told(lambda: next(log.subscribe(after=cursor)), head=9)
            log.forget_history()
            stream = log.subscribe(after=0)
            next(stream)

    def test_a_server_without_histories_is_used_as_it_is(self) -> None:
        self.fake.restore(None, 6)
        self.assertEqual(self.log.head(), Cursor(6))
        with self.log.subscribe(after=4) as followed:
            self.assertEqual([str(e.cursor) for e in itertools.islice(followed, 2)], ["5", "6"])
        self.assertEqual([e.position for e in self.log.read(after=f"5@{OLD}")], [6])
        self.log.append([NewEvent("A")])
        self.assertNotIn("wellspring-history", self.server.requests[-1].headers)

    def test_cursors_are_text(self) -> None:
        for text in ("0", "42", f"42@{OLD}"):
            self.assertEqual(str(Cursor.parse(text)), text)
        for text in ("", "x", "-1", "1@", "@a", "1.5", "start", "²"):
            with self.assertRaises(ValueError):
                Cursor.parse(text)


class RealHistories(unittest.TestCase):
    def setUp(self) -> None:
        if not tells_history(URL):
            self.skipTest("this server sends no Wellspring-History")

    def test_a_log_made_anew_is_told_from_the_old_one(self) -> None:
        log = fresh_log()
        log.append([NewEvent("A", n) for n in range(5)])
        cursor = log.head()
        self.assertEqual(log.info().history, cursor.history)
        other = Client(URL).log(log.name)
        other.drop()
        other.create()
        self.assertNotEqual(other.head().history, cursor.history)
        for action in (
            log.head,
            lambda: log.append([NewEvent("A")]),
            lambda: log.append_bulk([NewEvent("A")]),
            lambda: log.ingest({}),
            lambda: log.decide(COUNT, lambda states: [NewEvent("A")]),
            lambda: list(log.read(after=cursor)),
            lambda: next(log.subscribe(after=cursor)),
            lambda: next(other.subscribe(after=str(cursor))),
            lambda: next(other.subscribe(after=5)),
            lambda: list(other.read(after=5)),
        ):
            with self.assertRaises(AnotherHistory) as caught:
                action()
            self.assertEqual(caught.exception.history, other.history)
            self.assertEqual(caught.exception.head, 0)
        log.forget_history()
        log.append([NewEvent("A")])
        with log.subscribe() as followed:
            self.assertEqual(next(followed).history, other.history)

    def test_an_old_copy_of_the_data_folder_is_told_from_the_folder(self) -> None:
        # A copy keeps the history; the consumer is ahead of it.
        with RealServer() as server:
            log = Client(server.url, retry=QUICK).log("orders")
            log.create()
            log.append([NewEvent("A", n) for n in range(3)])
            server.kill()
            copy = server.data.with_name("copy")
            shutil.copytree(server.data, copy)
            server.start()
            log.append([NewEvent("B", n) for n in range(3)])
            followed = log.subscribe()
            self.assertEqual([next(followed).position for _ in range(6)], [1, 2, 3, 4, 5, 6])
            server.kill()
            shutil.rmtree(server.data)
            copy.rename(server.data)
            server.start()
            later = Client(server.url, retry=QUICK).log("orders")
            saved = str(followed.cursor)
            for action in (
                lambda: next(followed),
                lambda: next(later.subscribe(after=saved)),
                lambda: list(later.read(after=saved)),
            ):
                with self.assertRaises(AnotherHistory) as caught:
                    action()
                self.assertEqual((caught.exception.head, caught.exception.position), (3, 6))


if __name__ == "__main__":
    unittest.main()
