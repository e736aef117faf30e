"""The examples of README.md work as printed."""

import re
import threading
import unittest
from pathlib import Path

from server import URL, fresh_log

from wellspring import LeaseLost, NewEvent, matching


class EndOfExample(Exception):
    pass


class Readme(unittest.TestCase):
    def test_its_examples_work_as_printed(self) -> None:
        page = (Path(__file__).parent.parent / "README.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertEqual(len(blocks), 4)
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

        def release_when_shipped() -> None:
            next(log.subscribe(matching(["Shipped"])))
            names["lease"].release()

        names["log"].append([NewEvent("Paid", {"order": 1})])
        names["cursor"] = "start"
        threading.Thread(target=release_when_shipped).start()
        with self.assertRaises(LeaseLost):
            exec(compile(blocks[3], "README.md", "exec"), names)  # noqa: S102
        self.assertEqual([event.type for event in log.read(after=3)], ["Paid", "Shipped"])


if __name__ == "__main__":
    unittest.main()
