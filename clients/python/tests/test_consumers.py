"""Workers of the real server, which are killed with it."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
import unittest
from collections import defaultdict

from server import PATIENT, RealServer, fresh_log

from wellspring import Client, NewEvent, NotFound, Park, matching

KEYS, EVENTS = 7, 400
PROGRAM = """
import logging, sys
from wellspring import Client, NewEvent, RetryPolicy

logging.getLogger("wellspring.worker").setLevel(logging.CRITICAL)
log = Client(sys.argv[1], retry=RetryPolicy(attempts=200, total_s=20.0)).log("main")

@log.worker("mailer", threads=4, batch=2)
def mail(delivery):
    [key] = delivery.keys
    made = [NewEvent("MailSent", delivery.event.data, [f"customer:{key}"])]
    if sys.argv[2] == "settles":
        return made
    log.append(made, key=delivery.effect_key)

mail.run()
"""


class Consumers(unittest.TestCase):
    def setUp(self) -> None:
        logger = logging.getLogger("wellspring.worker")
        logger.disabled = True
        self.addCleanup(setattr, logger, "disabled", False)

    def settled(self, log, name: str) -> None:
        """Waits until a consumer has nothing left to do."""
        ends_s = time.monotonic() + 60
        while time.monotonic() < ends_s:
            status = log.consumer(name)
            if status.lag == 0 and status.open_keys == status.parked:
                return
            time.sleep(0.05)
        self.fail(str(status))

    def test_events_under_effect_keys_are_there_once_and_in_order_through_kills(self) -> None:
        self.work_through_kills("keyed")

    def test_events_that_settle_are_there_once_and_in_order_through_kills(self) -> None:
        self.work_through_kills("settles")

    def work_through_kills(self, how: str) -> None:
        """Kills workers and the server; the handler's events are there once for each event."""
        with RealServer() as server, contextlib.ExitStack() as ends:
            log = Client(server.url, retry=PATIENT).log("main")
            log.define_consumer(
                "mailer",
                matching(["Paid"]),
                key={"tag": "customer"},
                hold_s=1,
                max_hold_s=5,
                backoff_s=(0, 0.1),
                max_tries=255,
            )
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            words = [sys.executable, "-c", PROGRAM, server.url, how]

            def begin() -> subprocess.Popen:
                return ends.enter_context(subprocess.Popen(words, env=environment))

            programs = [begin(), begin()]
            for number in range(EVENTS):
                log.append([NewEvent("Paid", number, [f"customer:{number % KEYS}"])])
                if number % 100 == 50:
                    programs.pop(0).kill()
                    programs.append(begin())
                if number % 150 == 99:
                    server.kill()
                    server.start()
            self.settled(log, "mailer")
            for program in programs:
                program.terminate()
            for program in programs:
                # The youngest may not have come as far as to handle the signal.
                self.assertIn(program.wait(30), (0, -signal.SIGTERM))
            sent = defaultdict(list)
            for event in log.read(matching(["MailSent"])):
                sent[event.tags[0]].append(event.data)
            for key in range(KEYS):
                self.assertEqual(sent[f"customer:{key}"], list(range(key, EVENTS, KEYS)))

    def test_what_fails_comes_again_and_what_parks_waits(self) -> None:
        log = fresh_log()
        with self.assertRaises(NotFound):
            log.worker("mailer", lambda delivery: None).run()
        query = matching(["Paid"])
        self.assertTrue(log.define_consumer("mailer", query, key="all", backoff_s=(0, 0)))
        self.assertFalse(log.define_consumer("mailer", query, key="all", backoff_s=(0, 0)))
        log.append([NewEvent("Paid", number) for number in range(4)])
        tries = []

        def handle(delivery) -> None:
            tries.append((delivery.event.data, delivery.tries))
            if delivery.event.data == 1 and delivery.tries < 3:
                raise OSError("SMTP 451")
            if delivery.event.data == 2:
                raise Park("no such address")

        with log.worker("mailer", handle, threads=2):
            while log.consumer("mailer").parked == 0:
                time.sleep(0.01)
        # What shares a key with a parked event waits for it.
        self.assertEqual(tries, [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)])

    def test_what_was_not_begun_counts_no_try(self) -> None:
        log = fresh_log()
        log.define_consumer("mailer", matching(["Paid"]))
        log.append([NewEvent("Paid", number) for number in range(3)])
        seen = []

        def first(delivery) -> None:
            seen.append((delivery.event.data, delivery.tries))
            worker.stop()

        worker = log.worker("mailer", first, batch=3)
        worker.run()
        with log.worker("mailer", lambda each: seen.append((each.event.data, each.tries))):
            self.settled(log, "mailer")
        self.assertEqual(sorted(seen), [(0, 1), (1, 1), (2, 1)])

    def test_a_slow_handler_keeps_its_delivery(self) -> None:
        log = fresh_log()
        log.define_consumer("mailer", matching(["Paid"]), hold_s=0.5)
        log.append([NewEvent("Paid")])
        held = []

        def slow(delivery) -> None:
            time.sleep(1.5)
            held.append((delivery.is_held, delivery.tries))

        with log.worker("mailer", slow, threads=2):
            self.settled(log, "mailer")
        self.assertEqual(held, [(True, 1)])


if __name__ == "__main__":
    unittest.main()
