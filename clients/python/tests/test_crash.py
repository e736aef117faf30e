"""The server is killed (kill -9) under appends and under a subscription, and started again."""

import threading
import unittest

from server import PATIENT, RealServer

from wellspring import Client, NewEvent, projection

KILLS = 3
LEAST = 60


class Crashes(unittest.TestCase):
    def test_nothing_is_lost_and_nothing_comes_twice(self) -> None:
        with RealServer() as server:
            client = Client(server.url, retry=PATIENT, timeout_s=10)
            log = client.log("main")
            seen: list = []
            done: list[int] = []
            stop = threading.Event()
            faults: list[BaseException] = []

            def attempt(action) -> None:
                try:
                    action()
                except BaseException as fault:
                    faults.append(fault)
                    raise

            def append(writer: int) -> None:
                number = 0
                while not stop.is_set():
                    log.append([NewEvent("N", [writer, number]), NewEvent("N", [writer, -number])])
                    number += 1
                done.append(2 * number)

            def decide() -> None:
                count = {"n": projection("count", ["Decided"])}
                number = 0
                while not stop.is_set():
                    log.decide(count, lambda states: [NewEvent("Decided", states["n"])])
                    number += 1
                done.append(number)

            subscription = Client(server.url, retry=PATIENT).log("main").subscribe()
            actions = [lambda: append(0), lambda: append(1), decide]
            writers = [threading.Thread(target=attempt, args=(action,)) for action in actions]
            reader = threading.Thread(target=lambda: attempt(lambda: seen.extend(subscription)))
            for thread in [*writers, reader]:
                thread.start()
            for kill in range(KILLS):
                while client.log("main").head().position < (kill + 1) * LEAST:
                    threading.Event().wait(0.001)
                server.kill()
                server.start()
            stop.set()
            for thread in writers:
                thread.join(30)
            self.assertEqual(len(done), len(writers), "every writer has finished")
            head = log.head().position
            # What marks the end is seen last.
            end = log.append([NewEvent("End")]).last
            self.assertEqual(end, head + 1)
            stored = list(log.read())
            while subscription.cursor.position < end and reader.is_alive():
                threading.Event().wait(0.01)
            subscription.close()
            reader.join(10)
            self.assertFalse(faults)
            # The server's own log `main` has events of links, too.
            mine = [e for e in stored if e.type in ("N", "Decided")]
            self.assertEqual(len(mine), sum(done), "stored once for each answered append")
            for writer in (0, 1):
                numbers = [e.data[1] for e in mine if e.type == "N" and e.data[0] == writer]
                expected = [sign * n for n in range(len(numbers) // 2) for sign in (1, -1)]
                self.assertEqual(numbers, expected)
            decided = [e.data for e in mine if e.type == "Decided"]
            self.assertEqual(decided, list(range(len(decided))))
            self.assertEqual(seen, stored, "the subscription missed nothing and repeated nothing")
            self.assertGreaterEqual(head, KILLS * LEAST)


if __name__ == "__main__":
    unittest.main()
