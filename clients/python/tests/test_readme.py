"""The examples of README.md work as printed."""

import contextlib
import re
import sqlite3
import tempfile
import threading
import time
import unittest
from pathlib import Path

from consumer import FakeConsumer
from server import URL, FakeServer, fresh_log

from wellspring import Client, LeaseLost, NewEvent, matching


class EndOfExample(Exception):
    pass


class Readme(unittest.TestCase):
    def test_its_examples_work_as_printed(self) -> None:
        page = (Path(__file__).parent.parent / "README.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertEqual(len(blocks), 6)
        log, handled, saved = fresh_log(), [], []

        def handle(event) -> None:
            handled.append(event.type)
            if len(handled) == 2:
                raise EndOfExample

        names = {"load_cursor": lambda: None, "save_cursor": saved.append, "handle": handle}
        names["print"] = lambda *_: None
        for block in blocks[:2]:
            block = block.replace("http://127.0.0.1:4000", URL).replace('"main"', f'"{log.name}"')
            exec(compile(block, "README.md", "exec"), names)  # noqa: S102
        names["log"].decide(names["seats"], names["subscribe"])
        with self.assertRaises(EndOfExample):
            exec(compile(blocks[2], "README.md", "exec"), names)  # noqa: S102
        types = [event.type for event in log.read()]
        self.assertEqual(types, ["UsernameClaimed", "Subscribed", "Subscribed"])
        self.assertEqual(handled, ["Subscribed", "Subscribed"])
        self.assertEqual([text.split("@")[0] for text in saved], ["2"])

        self.follow_until_counted(blocks[3], names)
        self.work_until_appended(blocks[4], names)

        def release_when_shipped() -> None:
            next(log.subscribe(matching(["Shipped"])))
            names["lease"].release()

        names["log"].append([NewEvent("Paid", {"order": 1})])
        names["cursor"] = "start"
        threading.Thread(target=release_when_shipped).start()
        with self.assertRaises(LeaseLost):
            exec(compile(blocks[5], "README.md", "exec"), names)  # noqa: S102
        self.assertEqual([event.type for event in log.read(after=3)], ["Paid", "Shipped"])

    def follow_until_counted(self, block: str, names: dict) -> None:
        """Runs the example of a read model until its rows have come."""
        make, made = names["log"].read_model, []
        names["log"].read_model = lambda *given: made.append(make(*given)) or made[0]
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/page.db"
            code = compile(block.replace("page.db", file), "README.md", "exec")
            program = threading.Thread(target=exec, args=(code, names))
            program.start()
            with contextlib.closing(sqlite3.connect(file)) as db:
                rows = []
                while rows != [("course:maths", 2)] and program.is_alive():
                    with contextlib.suppress(sqlite3.OperationalError):
                        rows = db.execute("SELECT * FROM seats").fetchall()
                    time.sleep(0.01)
            made[0].stop()
            program.join(60)
        self.assertEqual(rows, [("course:maths", 2)])

    def work_until_appended(self, block: str, names: dict) -> None:
        """Runs the example of a worker until its event has come."""
        consumer, sent = FakeConsumer(4), []
        with FakeServer(consumer.answer) as server:
            names = {**names, "log": Client(server.url).log("x")}
            names["send"] = lambda event, key: sent.append((event.position, key))
            code = compile(block, "README.md", "exec")
            program = threading.Thread(target=exec, args=(code, names))
            program.start()
            consumer.wait(lambda: consumer.appended)
            names["mail"].stop()
            program.join(60)
        self.assertEqual(sent, [(4, "mailer-1-4")])
        self.assertEqual(consumer.appended[0]["events"][0]["data"], {"payment": 4})
        self.assertEqual(consumer.definition["key"], {"tag": "customer"})


if __name__ == "__main__":
    unittest.main()
