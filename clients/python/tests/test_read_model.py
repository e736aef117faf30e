"""Rows that follow a log: each event once, whatever kills the program."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from server import PATIENT, URL, FakeLog, FakeServer, RealServer, fresh_log

from wellspring import AnotherHistory, Client, NewEvent, ReadModel, RetryPolicy, matching

QUICK = RetryPolicy(attempts=5, total_s=5.0, first_s=0.01, longest_s=0.02)
# Appends to a list of positions, and ends itself at a commit: before it, or after it.
PROGRAM = """
import os, signal, sqlite3, sys
from wellspring import Client

class Deadly:
    def __init__(self, connection, commits, is_done):
        self.cursor, self.rollback = connection.cursor, connection.rollback
        self._connection, self._commits, self._is_done = connection, commits, is_done

    def commit(self):
        self._commits -= 1
        if self._commits or self._is_done:
            self._connection.commit()
        if not self._commits:
            os.kill(os.getpid(), signal.SIGKILL)

def apply(db, event):
    db.execute("INSERT INTO seen VALUES (?, ?)", (event.position, event.data))

url, log, file, commits, is_done = sys.argv[1:]
connection = Deadly(sqlite3.connect(file), int(commits), is_done == "after")
Client(url).log(log).read_model("seen", connection).follow(apply)
"""


class Watched:
    """A connection that tells how many statements each of its transactions had."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.rollback = connection.rollback
        self.applied, self.commits = 0, []
        self._connection = connection

    def cursor(self):
        return self._connection.cursor()

    def commit(self) -> None:
        self.commits.append(self.applied)
        self.applied = 0
        self._connection.commit()


def store(db, event) -> None:
    db.execute("INSERT INTO seen VALUES (?, ?)", (event.position, event.data))


def empty(db) -> None:
    db.execute("DELETE FROM seen")


class ReadModels(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="wellspring-clients-")
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "page.db"
        self.db = self.open()
        self.db.execute("CREATE TABLE seen (position INTEGER, data)")

    def open(self, **options) -> sqlite3.Connection:
        connection = sqlite3.connect(self.file, **options)
        self.addCleanup(connection.close)
        return connection

    def seen(self) -> list:
        return self.open().execute("SELECT position, data FROM seen ORDER BY rowid").fetchall()

    def place(self) -> str:
        return self.open().execute("SELECT place FROM wellspring_cursor").fetchone()[0]

    def follow(self, model: ReadModel, count: int, apply=store, rebuild=None) -> None:
        """Follows until so many events were applied."""
        left = [count]

        def counted(db, event) -> None:
            apply(db, event)
            left[0] -= 1
            if left[0] == 0:
                model.stop()

        model.follow(counted, rebuild)
        self.assertEqual(left, [0])

    def test_rows_follow_the_log_and_go_on_where_they_were(self) -> None:
        log = fresh_log()
        log.append([NewEvent("A", 1), NewEvent("B", 2), NewEvent("A", 3)])
        model = log.read_model("seen", self.db, matching(["A"]))
        self.follow(model, 2)
        self.assertEqual(self.seen(), [(1, 1), (3, 3)])
        self.assertEqual(self.place(), f"3@{log.history}")
        threading.Timer(0.2, lambda: log.append([NewEvent("A", 4)])).start()
        later = Client(URL).log(log.name).read_model("seen", self.open(), matching(["A"]))
        self.follow(later, 1)
        self.assertEqual(self.seen(), [(1, 1), (3, 3), (4, 4)])

    def test_a_killed_program_leaves_each_event_once(self) -> None:
        log = fresh_log()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        appended = 0
        # The first two commits of all are those of the table and its row.
        for kill in range(16):
            words = [URL, log.name, str(self.file), str(1 + kill // 2 % 3)]
            words.append("after" if kill % 2 else "before")
            program = subprocess.Popen([sys.executable, "-c", PROGRAM, *words], env=environment)
            while program.poll() is None:
                log.append([NewEvent("A", appended), NewEvent("A", appended + 1)])
                appended += 2
            self.assertEqual(program.returncode, -signal.SIGKILL)
            seen = self.seen()
            self.assertEqual(seen, [(number + 1, number) for number in range(len(seen))])
        self.assertGreater(len(seen), 0)
        self.follow(log.read_model("seen", self.db), appended - len(seen))
        self.assertEqual(self.seen(), [(number + 1, number) for number in range(appended)])

    def test_two_programs_under_one_name_apply_each_event_once(self) -> None:
        log = fresh_log()
        models: list[ReadModel] = []
        faults: list[Exception] = []
        done = threading.Event()

        def program() -> None:
            with contextlib.closing(sqlite3.connect(self.file, timeout=30)) as connection:
                model = log.read_model("seen", connection)
                models.append(model)

                def apply(db, event) -> None:
                    store(db, event)
                    if event.type == "End":
                        done.set()

                try:
                    model.follow(apply)
                except Exception as fault:
                    faults.append(fault)
                    done.set()

        threads = [threading.Thread(target=program) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in range(200):
            log.append([NewEvent("A", number)])
        last = log.append([NewEvent("End")]).last
        self.assertTrue(done.wait(60))
        for model in models:
            model.stop()
        for thread in threads:
            thread.join(60)
        self.assertEqual(faults, [])
        self.assertEqual([position for position, _ in self.seen()], list(range(1, last + 1)))

    def test_a_log_made_anew_is_rebuilt_or_told(self) -> None:
        log = fresh_log()
        log.append([NewEvent("A", "old"), NewEvent("A", "old")])
        self.follow(log.read_model("seen", self.db), 2)
        other = Client(URL).log(log.name)
        other.drop()
        other.create()
        other.append([NewEvent("A", "new"), NewEvent("A", "new"), NewEvent("A", "new")])
        model = Client(URL).log(log.name).read_model("seen", self.db)
        with self.assertRaises(AnotherHistory):
            model.follow(store)
        self.assertEqual(self.seen(), [(1, "old"), (2, "old")])
        # Whoever else uses the log is told by itself.
        self.follow(log.read_model("seen", self.db), 3, rebuild=empty)
        self.assertEqual(self.seen(), [(1, "new"), (2, "new"), (3, "new")])
        self.assertEqual(self.place(), f"3@{other.history}")
        with self.assertRaises(AnotherHistory):
            log.head()

    def test_a_log_that_was_restored_from_a_copy_is_rebuilt(self) -> None:
        with RealServer() as server:
            log = Client(server.url, retry=PATIENT).log("orders")
            log.create()
            log.append([NewEvent("A", number) for number in range(3)])
            server.kill()
            copy = server.data.with_name("copy")
            shutil.copytree(server.data, copy)
            server.start()
            log.append([NewEvent("B", number) for number in range(3)])
            model = log.read_model("seen", self.db)

            def restore() -> None:
                server.kill()
                shutil.rmtree(server.data)
                copy.rename(server.data)
                server.start()

            def apply(db, event) -> None:
                store(db, event)
                if event.position == 6:
                    # Under the eyes of the program, which is connected.
                    threading.Thread(target=restore).start()

            self.follow(model, 9, apply, rebuild=empty)
            self.assertEqual(self.seen(), [(1, 0), (2, 1), (3, 2)])

    def test_an_exception_undoes_its_transaction_alone(self) -> None:
        log = fresh_log()
        log.append([NewEvent("A", number) for number in range(3)])

        def broken(db, event) -> None:
            store(db, event)
            if event.data == 2:
                raise KeyError("what is wrong")

        model = log.read_model("seen", self.db)
        for _ in range(2):
            with self.assertRaisesRegex(KeyError, "what is wrong"):
                model.follow(broken)
        before = self.seen()
        self.assertIn(before, [[], [(1, 0)], [(1, 0), (2, 1)]])
        self.follow(model, 3 - len(before))
        self.assertEqual(self.seen(), [(1, 0), (2, 1), (3, 2)])

    def test_a_transaction_has_at_most_five_hundred_events(self) -> None:
        log = fresh_log()
        log.append_bulk([NewEvent("A", number) for number in range(1700)])
        watched = Watched(self.db)

        def apply(db, event) -> None:
            store(db, event)
            watched.applied += 1

        self.follow(log.read_model("seen", watched), 1700, apply)
        self.assertEqual(sum(watched.commits), 1700)
        self.assertLessEqual(max(watched.commits), 500)
        self.assertEqual(len(self.seen()), 1700)

    def test_what_was_read_before_it_broke_off_counts(self) -> None:
        fake = FakeLog("00000000000000aa", 4)
        with FakeServer(fake.answer) as server:
            model = Client(server.url, retry=QUICK).log("x").read_model("seen", self.db)

            def apply(db, event) -> None:
                store(db, event.__class__(event.position, "T", (), event.position, ""))
                # The fake ends each stream after the events that it has.
                if event.position == 4 and fake.head == 4:
                    fake.restore("00000000000000bb", 2)

            with self.assertRaises(AnotherHistory):
                model.follow(apply)
        self.assertEqual([position for position, _ in self.seen()], [1, 2, 3, 4])

    def test_a_connection_that_commits_each_statement_is_refused(self) -> None:
        model = fresh_log().read_model("seen", self.open(isolation_level=None))
        with self.assertRaisesRegex(ValueError, "autocommit"):
            model.follow(store)
        found = self.db.execute("SELECT name FROM wellspring_cursor").fetchall()
        self.assertEqual(found, [])

    def test_rows_by_name_are_understood(self) -> None:
        def named(cursor, row) -> dict:
            return {column[0]: value for column, value in zip(cursor.description, row)}

        log = fresh_log()
        log.append([NewEvent("A")])
        self.db.row_factory = named
        self.follow(log.read_model("seen", self.db), 1)
        self.assertEqual(self.seen(), [(1, None)])

    def test_a_name_is_plain(self) -> None:
        for name in ("", "a b", "o'hara", "x" * 101, "a\n", "?"):
            with self.assertRaises(ValueError):
                fresh_log().read_model(name, self.db)


if __name__ == "__main__":
    unittest.main()
