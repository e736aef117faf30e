"""Workers of a consumer, against a server that misbehaves."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from consumer import FakeConsumer
from server import FakeServer, free_port, json_answer, problem

from wellspring import (
    AnotherHistory,
    Client,
    Delivery,
    Forbidden,
    NewEvent,
    NotFound,
    Park,
    RetryPolicy,
    Worker,
    matching,
)

QUICK = RetryPolicy(attempts=5, total_s=5.0, first_s=0.01, longest_s=0.02)
BUSY = json_answer(503, {"type": "/problems/overloaded", "retry": 1}, Retry_After="0")
PROGRAM = """
import sys, time
from wellspring import Client

log = Client(sys.argv[1]).log("x")

@log.worker("mailer", batch=2)
def mail(delivery):
    print(delivery.event.position, flush=True)
    time.sleep(0.5)

mail.run()
print("ended", flush=True)
"""
RAISE = "import signal, threading; signal.pthread_kill(threading.get_ident(), signal.SIGTERM)"


@contextlib.contextmanager
def told_by_workers():
    """The lines that workers write to the log of the program."""
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    logger = logging.getLogger("wellspring.worker")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield told
    finally:
        logger.removeHandler(handler)


class Workers(unittest.TestCase):
    def serve(self, consumer: FakeConsumer):
        server = FakeServer(consumer.answer)
        server.__enter__()
        self.addCleanup(server.__exit__)
        self.server = server
        return Client(server.url, retry=QUICK).log("x")

    def calls(self, kind: str) -> list[dict]:
        requests = [each for each in self.server.requests if each.path.endswith(f"/{kind}")]
        return [request.json() for request in requests]

    @contextlib.contextmanager
    def working(self, consumer: FakeConsumer, handle, **options):
        """A worker, and what it has told."""
        with told_by_workers() as told:
            with self.serve(consumer).worker("mailer", handle, **options):
                yield told

    def quietly(self, consumer: FakeConsumer, handle, condition, **options) -> None:
        """Works until something is so; nothing is told."""
        with self.working(consumer, handle, **options) as told:
            consumer.wait(condition)
        self.assertEqual(told, [])

    def test_what_returns_is_settled_by_the_next_call(self) -> None:
        consumer, seen = FakeConsumer(4, 5, 6), []

        def handle(delivery: Delivery) -> None:
            seen.append(delivery)

        self.quietly(consumer, handle, lambda: len(consumer.settled) == 3)
        self.assertEqual(consumer.settled, [(4, "done"), (5, "done"), (6, "done")])
        first = seen[0]
        self.assertEqual((first.event.position, first.event.data, first.keys), (4, 4, ("0",)))
        self.assertEqual((first.tries, first.effect_key, len(first.events)), (1, "mailer-1-4", 1))
        self.assertFalse(first.is_held)
        turns = [(call["turn"], call["want"]) for call in self.calls("next")]
        self.assertEqual(turns[:4], [(1, 0), (2, 1), (3, 1), (4, 1)])
        self.assertEqual(self.calls("next")[2]["done"], ["1.1.abc"])

    def test_events_are_appended_and_settle_as_one(self) -> None:
        consumer = FakeConsumer(4)

        def handle(delivery: Delivery):
            yield NewEvent("MailSent", {"to": "ada"}, ["order:1"])

        self.quietly(consumer, handle, lambda: consumer.settled)
        [sent] = consumer.appended
        self.assertEqual(sent["events"][0]["type"], "MailSent")
        self.assertEqual(sent["settles"]["delivery"], "1.1.abc")
        self.assertNotIn("idempotency-key", self.server.requests[-2].headers)
        self.assertFalse(any("done" in call for call in self.calls("next")))

    def test_an_append_whose_answer_is_lost_is_repeated_as_it_was(self) -> None:
        consumer = FakeConsumer(4, 5)
        consumer.cut = ["append"]
        consumer.faults["append"] = [BUSY] * 7
        with self.working(consumer, lambda delivery: [NewEvent("A")]) as told:
            consumer.wait(lambda: len(consumer.settled) == 2)
        self.assertEqual(consumer.settled, [(4, "appended"), (5, "appended")])
        self.assertEqual(len(self.calls("append")), 10)
        self.assertEqual(len({str(call) for call in self.calls("append")}), 2)
        self.assertTrue(all("server answers" in each for each in told), told)

    def test_a_settled_delivery_is_success_and_a_lost_one_is_told(self) -> None:
        settled = problem(409, "delivery-settled", first=7, last=7)
        consumer = FakeConsumer(4, 5, 6)
        consumer.faults["append"] = [settled, problem(409, "delivery-lost")]
        with self.working(consumer, lambda delivery: [NewEvent("A")]) as told:
            consumer.wait(lambda: consumer.settled)
        self.assertEqual(consumer.settled, [(6, "appended")])
        [lost] = told
        self.assertIn("position 5", lost)
        self.assertIn("was lost", lost)

    def test_an_exception_fails_with_its_text(self) -> None:
        consumer = FakeConsumer(4)

        def handle(delivery: Delivery) -> None:
            if delivery.tries == 1:
                raise OSError("SMTP 451 " + "ö" * 1000)

        with self.working(consumer, handle) as told:
            consumer.wait(lambda: len(consumer.settled) == 2)
        failed, done = consumer.settled
        self.assertTrue(failed[1].startswith("failed: OSError: SMTP 451 öö"))
        self.assertLessEqual(len(failed[1].encode()), 1024 + len("failed: "))
        self.assertEqual(done, (4, "done"))
        self.assertIn("failed", told[0])

    def test_what_cannot_be_appended_fails(self) -> None:
        invalid = json_answer(
            422, {"type": "/problems/invalid-field", "title": "no", "status": 422}
        )
        made = [[NewEvent("A", float("nan"))], [{"type": "A"}], True, [NewEvent("A")]]
        consumer = FakeConsumer(4)
        consumer.faults["append"] = [invalid]
        with self.working(consumer, lambda delivery: made.pop(0) if made else None):
            consumer.wait(lambda: len(consumer.settled) == 5)
        kinds = [what.split(" ")[1] if " " in what else what for _, what in consumer.settled]
        self.assertEqual(kinds, ["ValueError:", "TypeError:", "TypeError:", "Invalid:", "done"])

    def test_park_parks(self) -> None:
        consumer = FakeConsumer(4)

        def handle(delivery: Delivery) -> None:
            raise Park("no such address")

        self.quietly(consumer, handle, lambda: consumer.settled)
        self.assertEqual(consumer.settled, [(4, "park: no such address")])

    def test_a_lost_answer_repeats_the_same_turn(self) -> None:
        consumer, seen = FakeConsumer(4, 5, 6), []
        consumer.cut = ["next"]
        log = self.serve(consumer)
        # The answer to the first look, then that to the first deliveries, is lost.
        worker = log.worker("mailer", lambda delivery: seen.append(delivery.event.position))
        worker.start()
        consumer.wait(lambda: len(consumer.settled) == 1)
        consumer.cut = ["next"]
        consumer.wait(lambda: len(consumer.settled) == 3)
        worker.stop()
        self.assertEqual(seen, [4, 5, 6], "each once")
        calls = self.calls("next")
        self.assertEqual(calls[0], calls[1])
        turns = [call["turn"] for call in calls]
        self.assertEqual(turns, sorted(turns))
        repeated = [call for call in calls if turns.count(call["turn"]) > 1]
        self.assertGreaterEqual(len(repeated), 4)

    def test_outages_are_waited_out(self) -> None:
        consumer = FakeConsumer(4)
        consumer.faults["next"] = [None, BUSY, None, BUSY]
        with self.working(consumer, lambda delivery: None) as told:
            consumer.wait(lambda: consumer.settled)
        self.assertEqual(len(told), 2, told)
        self.assertIn("until the server answers", told[0])
        self.assertIn("answers again", told[1])

    def test_no_consumer_at_the_start_is_an_error(self) -> None:
        consumer = FakeConsumer(4)
        consumer.faults["next"] = [problem(404, "consumer-not-found")] * 2
        log = self.serve(consumer)
        for begin in (Worker.run, Worker.start):
            worker = log.worker("mailer", lambda delivery: None)
            with self.assertRaises(NotFound):
                begin(worker)

    def test_a_server_that_is_not_there_yet_is_waited_for(self) -> None:
        port = free_port()
        log = Client(f"http://127.0.0.1:{port}", retry=QUICK).log("x")
        with told_by_workers():
            with log.worker("mailer", lambda delivery: None, threads=2):
                time.sleep(0.2)

    def test_a_lasting_error_ends_the_worker(self) -> None:
        consumer = FakeConsumer(4, 5)
        log = self.serve(consumer)
        worker = log.worker("mailer", lambda delivery: None, threads=3)

        def forbid() -> None:
            consumer.wait(lambda: len(consumer.settled) == 2)
            consumer.faults["next"] = [problem(403, "forbidden")] * 9
            consumer.add(6)

        threading.Thread(target=forbid).start()
        with told_by_workers(), self.assertRaises(Forbidden):
            worker.run()

    def test_a_restored_log_ends_the_worker_and_counts_no_try(self) -> None:
        consumer = FakeConsumer(4, 5)

        def handle(delivery: Delivery) -> None:
            raise AnotherHistory("the log has another history now")

        worker = self.serve(consumer).worker("mailer", handle, batch=2)
        with told_by_workers(), self.assertRaises(AnotherHistory):
            worker.run()
        self.assertEqual(consumer.settled, [(4, "release"), (5, "release")])

    def test_a_refused_settlement_is_told(self) -> None:
        consumer = FakeConsumer(4, 5)

        def handle(delivery: Delivery) -> None:
            if delivery.event.position == 4 and delivery.tries == 1:
                consumer.lose()

        with self.working(consumer, handle) as told:
            consumer.wait(lambda: len(consumer.settled) == 2)
        self.assertEqual(sorted(consumer.settled), [(4, "done"), (5, "done")])
        self.assertEqual(len(told), 1)
        self.assertIn("delivery-lost", told[0])

    def test_a_settlement_beside_a_staged_append_is_repeated(self) -> None:
        consumer = FakeConsumer(4, hold_ms=900)
        consumer.refuse["done"] = ["delivery-staged", "delivery-staged"]
        self.quietly(consumer, lambda delivery: None, lambda: consumer.settled)
        waits = [call["wait_ms"] for call in self.calls("next")]
        self.assertEqual(waits[2:5], [300, 100, 100])

    def test_a_hold_is_extended_while_a_handler_works(self) -> None:
        consumer, held = FakeConsumer(4, hold_ms=600), []

        def handle(delivery: Delivery) -> None:
            consumer.wait(lambda: len(consumer.extended) >= 4)
            held.append(delivery.is_held)

        self.quietly(consumer, handle, lambda: consumer.settled, threads=3)
        self.assertEqual(len(set(consumer.extended)), 1, "only the one that holds something")
        self.assertEqual(consumer.settled, [(4, "done")])

    def test_what_is_settled_is_not_extended(self) -> None:
        consumer = FakeConsumer(4, hold_ms=300)
        self.quietly(consumer, lambda delivery: None, lambda: len(self.calls("next")) > 6)
        self.assertEqual(consumer.extended, [])

    def test_a_handler_can_ask_whether_it_has_lost_its_delivery(self) -> None:
        consumer, ended = FakeConsumer(4, hold_ms=300), threading.Event()

        def handle(delivery: Delivery) -> None:
            if delivery.tries == 1:
                consumer.lose()
                while delivery.is_held:
                    time.sleep(0.01)
                ended.set()

        with self.working(consumer, handle) as told:
            consumer.wait(lambda: consumer.settled)
        self.assertTrue(ended.is_set())
        self.assertEqual(len(told), 2, "that it was lost, and that its settlement was refused")

    def test_a_name_that_another_process_uses_is_given_up(self) -> None:
        consumer = FakeConsumer(4)
        with self.working(consumer, lambda delivery: None) as told:
            consumer.wait(lambda: consumer.settled)
            consumer.faults["next"] = [problem(409, "turn-passed", turn=99)]
            consumer.add(5)
            while len({call["worker"] for call in self.calls("next")}) < 2:
                time.sleep(0.01)
            # What is held under the former name cannot be settled.
            consumer.lose()
            consumer.wait(lambda: (5, "done") in consumer.settled)
        self.assertEqual(len(told), 1, told)
        self.assertIn("another process", told[0])

    def test_stop_gives_back_what_was_not_begun_and_waits_for_what_runs(self) -> None:
        consumer, begun, go_on = FakeConsumer(4, 5, 6), threading.Event(), threading.Event()

        def handle(delivery: Delivery) -> None:
            begun.set()
            go_on.wait(60)

        worker = self.serve(consumer).worker("mailer", handle, batch=3)
        worker.start()
        self.assertTrue(begun.wait(60))
        stopping = threading.Thread(target=worker.stop)
        stopping.start()
        time.sleep(0.1)
        self.assertTrue(stopping.is_alive())
        go_on.set()
        stopping.join(60)
        self.assertEqual(consumer.settled, [(4, "done"), (5, "release"), (6, "release")])
        self.assertEqual(consumer.held, [])

    def test_stop_ends_a_wait_at_once_and_gives_back_what_had_been_on_its_way(self) -> None:
        consumer = FakeConsumer()
        worker = self.serve(consumer).worker("mailer", lambda delivery: None, threads=2)
        worker.start()
        while len(self.calls("next")) < 3:
            time.sleep(0.01)
        begun_s = time.monotonic()
        # The answers to the waiting calls have no reader any more.
        for puller in worker._pullers:
            puller.interrupt()
        worker._stopping.set()
        consumer.add(4)
        consumer.add(5)
        worker.stop()
        self.assertLess(time.monotonic() - begun_s, 9, "it does not wait for the server's 10 s")
        self.assertEqual(consumer.held, [])

    def test_a_handler_may_stop_its_worker(self) -> None:
        consumer = FakeConsumer(4, 5, 6)
        workers: list[Worker] = []

        def handle(delivery: Delivery) -> None:
            if delivery.event.position == 5:
                workers[0].stop()

        workers.append(self.serve(consumer).worker("mailer", handle))
        workers[0].run()
        self.assertEqual(consumer.settled, [(4, "done"), (5, "done")])
        with self.assertRaises(RuntimeError):
            workers[0].start()

    def test_a_handler_that_exits_ends_the_worker(self) -> None:
        consumer = FakeConsumer(4)
        worker = self.serve(consumer).worker("mailer", lambda delivery: sys.exit(3))
        with told_by_workers(), self.assertRaises(SystemExit):
            worker.run()
        self.assertEqual(consumer.settled, [(4, "release")])

    def test_sigterm_stops_a_program(self) -> None:
        consumer = FakeConsumer(4, 5)
        self.serve(consumer)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        words = [sys.executable, "-c", PROGRAM, self.server.url]
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stdout.readline(), "4\n")
            program.send_signal(signal.SIGTERM)
            rest = program.stdout.read()
        self.assertEqual((program.returncode, rest), (0, "ended\n"))
        self.assertEqual(consumer.settled, [(4, "done"), (5, "release")])

    def test_sigterm_ends_a_program_whichever_thread_receives_it(self) -> None:
        # As after SIGCONT: the main thread has not gone on yet, so the kernel takes another one.
        consumer = FakeConsumer(4)
        self.serve(consumer)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        words = [sys.executable, "-c", PROGRAM.replace("time.sleep(0.5)", RAISE), self.server.url]
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as program:
            try:
                found = program.communicate(timeout=30)[0]
            finally:
                program.kill()
        self.assertEqual((program.returncode, found), (0, "4\nended\n"))

    def test_a_pause_of_the_consumer_is_told_and_waited_out(self) -> None:
        consumer = FakeConsumer(hold_ms=300)
        consumer.state = "paused"
        with self.working(consumer, lambda delivery: None, threads=2) as told:
            while len(self.calls("next")) < 4:
                time.sleep(0.01)
            consumer.add(4)
            consumer.state = "running"
            consumer.wait(lambda: consumer.settled)
        self.assertEqual([each.split(": ")[1] for each in told], ["it is paused", "it is running"])

    def test_threads_work_at_once(self) -> None:
        consumer, all_at_once = FakeConsumer(1, 2, 3, 4), threading.Barrier(4)
        self.quietly(
            consumer,
            lambda delivery: None if all_at_once.wait(60) < 4 else None,
            lambda: len(consumer.settled) == 4,
            threads=4,
        )
        self.assertEqual(len({call["worker"] for call in self.calls("next")}), 4)

    def test_a_consumer_is_defined_and_tells_its_state(self) -> None:
        consumer = FakeConsumer(4)
        log = self.serve(consumer)
        query = matching(["OrderPlaced"])
        self.assertTrue(log.define_consumer("mailer", query))
        sent = {"query": query, "key": "none", "from": "beginning"}
        self.assertEqual(consumer.definition, sent)
        is_new = log.define_consumer(
            "mailer",
            query,
            key={"tag": "customer"},
            begin="now",
            run=5,
            max_tries=3,
            backoff_s=(0.5, 60),
            on_failure="park-event",
            hold_s=15,
        )
        self.assertFalse(is_new)
        sent = {"query": query, "key": {"tag": "customer"}, "from": "now", "run": 5, "max_tries": 3}
        sent.update(on_failure="park-event", hold_ms=15_000, backoff_ms=[500, 60_000])
        self.assertEqual(consumer.definition, sent)
        status = log.consumer("mailer")
        told = (status.state, status.open_keys, status.oldest_age_s, status.details["scanned"])
        self.assertEqual(told, ("running", 1, 1.5, 99))

    def test_the_worker_is_its_handler(self) -> None:
        worker = self.serve(FakeConsumer()).worker("mailer")(lambda delivery: delivery)
        self.assertEqual(worker("given"), "given")
        with self.assertRaises(ValueError):
            self.serve(FakeConsumer()).worker("mailer", worker, threads=0)


if __name__ == "__main__":
    unittest.main()
