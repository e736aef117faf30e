"""Leases that tell: renewal, loss, lost answers, subscriptions that end with a lease."""

import threading
import time
import unittest
import uuid

from server import FakeLog, FakeServer, RealServer, fresh_log, json_answer, problem

from wellspring import (
    NO_RETRY,
    Client,
    Lease,
    LeaseHeld,
    LeaseLost,
    NewEvent,
    OutcomeUnknown,
    RetryPolicy,
    projection,
)

QUICK = RetryPolicy(attempts=20, total_s=10.0, first_s=0.01, longest_s=0.05)


def granted(token: int, ttl_ms: int = 1000):
    return json_answer(
        201, {"name": "a", "token": token, "ttl_ms": ttl_ms, "expires_at": "2026-01-01T00:00:00Z"}
    )


class Leases(unittest.TestCase):
    def test_a_lease_renews_itself(self) -> None:
        renewed = threading.Event()

        def answer(request):
            if request.method == "PUT":
                renewed.set()
            return granted(7, ttl_ms=9_000)

        with (
            FakeServer(answer) as server,
            Client(server.url).log("x").hold_lease("a", 9.0) as lease,
        ):
            first_s = lease._deadline_s
            self.assertTrue(renewed.wait(60))
            while lease._deadline_s == first_s and lease.is_held:
                time.sleep(0.01)
            self.assertTrue(lease.is_held)

    def test_a_held_lease_keeps_others_out_until_it_is_released(self) -> None:
        log = fresh_log()
        with log.hold_lease("importer", ttl_s=60.0) as lease:
            log.append([NewEvent("A")], fence=lease.fence)
            with self.assertRaises(LeaseHeld):
                log.hold_lease("importer", wait_s=0.1)
        self.assertFalse(lease.is_held)
        with self.assertRaises(LeaseLost):
            lease.check()
        log.acquire_lease("importer", 3.0).release()

    def test_a_lost_answer_to_an_acquire_leaves_no_orphan(self) -> None:
        log = fresh_log()
        asked = []

        def relay(request):
            asked.append(request.json()["holder"])
            lease = log._change("POST", "/leases/a", request.body).json()
            return None if len(asked) == 1 else json_answer(201, lease)

        with FakeServer(relay) as server:
            lease = Client(server.url, retry=QUICK).log("x").acquire_lease("a", 30)
        self.assertEqual(asked, [asked[0]] * 2)
        log.append([NewEvent("A")], fence=lease.fence)

    def test_the_deadline_counts_from_before_the_request(self) -> None:
        arrived_s = []

        def answer(request):
            arrived_s.append(time.monotonic())
            time.sleep(0.1)
            return granted(7, ttl_ms=60_000)

        with FakeServer(answer) as server:
            lease = Client(server.url).log("x").acquire_lease("a", 60.0)
            self.assertLessEqual(lease._deadline_s, arrived_s[0] + 60.0)
            self.assertEqual(len(server.requests), 1)

        def late(request):
            time.sleep(0.5)
            return granted(8)

        # After a wait it is a renewal that tells how long it lasts.
        with FakeServer(late) as server:
            lease = Client(server.url).log("x").acquire_lease("a", 1.0, wait_s=5)
            self.assertEqual([r.method for r in server.requests], ["POST", "PUT"])

    def test_a_subscription_ends_when_another_has_taken_the_lease(self) -> None:
        log = fresh_log()
        log.append([NewEvent("A")])
        lease = log.hold_lease("worker", ttl_s=30.0)
        with log.subscribe(while_held=lease) as events:
            self.assertEqual(next(events).type, "A")
            # Behind the back of its holder.
            threading.Timer(0.2, lambda: Lease.release(lease)).start()
            with self.assertRaises(LeaseLost):
                next(events)
        with self.assertRaises(LeaseLost), log.subscribe(while_held=lease) as events:
            next(events)

    def test_a_subscription_ends_when_its_own_holder_releases(self) -> None:
        log = fresh_log()
        lease = log.hold_lease("worker", ttl_s=30.0)
        with log.subscribe(while_held=lease) as events:
            threading.Timer(0.2, lease.release).start()
            with self.assertRaises(LeaseLost):
                next(events)

    def test_a_subscription_ends_though_the_server_has_gone(self) -> None:
        with RealServer() as server:
            log = Client(server.url).log("main")
            lease = log.hold_lease("worker", ttl_s=3.0)
            with log.subscribe(while_held=lease) as events:
                threading.Timer(0.3, server.kill).start()
                with self.assertRaises(LeaseLost):
                    next(events)
            self.assertFalse(lease.is_held)

    def test_where_no_lease_is_known_the_holder_goes_by_its_own_clock(self) -> None:
        log = FakeLog("0123456789abcdef", 2)

        def follower(request):
            if "/leases/" in request.path:
                return granted(7, ttl_ms=60_000)
            if request.path.endswith("/query") and "fence" in request.json():
                return problem(503, "not-leading", retry=1)
            return log.answer(request)

        with FakeServer(follower) as server:
            lease = Client(server.url).log("x").acquire_lease("a", 60.0)
            with Client(server.url).log("x").subscribe(while_held=lease) as events:
                self.assertEqual([next(events).position, next(events).position], [1, 2])

    def test_no_event_is_handed_out_after_the_lease(self) -> None:
        log = FakeLog("0123456789abcdef", 3)

        def answer(request):
            if "/leases/" in request.path:
                return granted(7, ttl_ms=60_000)
            return log.answer(request)

        with FakeServer(answer) as server:
            logged = Client(server.url, retry=NO_RETRY).log("x")
            lease = logged.acquire_lease("a", 60.0)
            with logged.subscribe(while_held=lease) as events:
                next(events)
                lease._deadline_s = time.monotonic()
                with self.assertRaises(LeaseLost):
                    next(events)


class Decisions(unittest.TestCase):
    seats = {"taken": projection("count", ["Taken"])}

    def test_a_form_that_is_sent_twice_is_decided_once(self) -> None:
        log, key, decided = fresh_log(), uuid.uuid4().hex, []

        def decision(states):
            decided.append(states["taken"])
            return [NewEvent("Taken"), NewEvent("Paid")]

        first = log.decide(self.seats, decision, key=key)
        again = Client(log._transport.url).log(log.name).decide(self.seats, decision, key=key)
        self.assertEqual((decided, first.first, first.last), ([0], 1, 2))
        self.assertEqual((again.first, again.last, again.replayed), (1, 2, True))
        self.assertEqual(log.decide(self.seats, decision, key=uuid.uuid4().hex).first, 3)

    def test_of_two_at_once_the_later_gets_the_answer_of_the_earlier(self) -> None:
        log, key = fresh_log(), uuid.uuid4().hex
        both, answers = threading.Barrier(2), []

        def decide(number: int) -> None:
            def decision(states):
                if states["taken"] == 0 and not both.broken:
                    both.wait(10)
                return [NewEvent("Taken", number)]

            answers.append(log.decide(self.seats, decision, key=key))

        threads = [threading.Thread(target=decide, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([(done.first, done.last) for done in answers], [(1, 1)] * 2)
        self.assertEqual([done.replayed for done in sorted(answers, key=str)], [False, True])
        self.assertEqual(log.head().position, 1)

    def test_after_an_unknown_outcome_the_same_key_finds_out(self) -> None:
        log, key = fresh_log(), uuid.uuid4().hex

        def relay(request):
            if request.path.endswith("/append"):
                log.append([NewEvent("Taken")], key=request.headers["idempotency-key"])
                return None
            return json_answer(200, log._read("POST", "/project", request.body).json())

        with FakeServer(relay) as server:
            cut = Client(server.url, retry=NO_RETRY).log("x")
            with self.assertRaises(OutcomeUnknown):
                cut.decide(self.seats, lambda states: [NewEvent("Taken")], key=key)
            self.assertEqual(cut.decide(self.seats, lambda states: 1 / 0, key=key).first, 1)


class Times(unittest.TestCase):
    def test_reads_begin_and_end_with_times(self) -> None:
        log = fresh_log()
        for number in range(4):
            log.append([NewEvent("T", number)])
            time.sleep(0.002)
        times = [event.recorded_at for event in log.read()]
        found = log.read(since=times[1], until=times[3], page=1)
        self.assertEqual([event.data for event in found], [1, 2])
        back = log.read(since=times[1], until=times[3], backwards=True)
        self.assertEqual([event.data for event in back], [2, 1])
        with log.subscribe(since=times[2]) as events:
            self.assertEqual([next(events).data, next(events).data], [2, 3])
        past = log.project({"n": projection("count", ["T"])}, until=times[2])
        self.assertEqual((past.states, past.position), ({"n": 2}, 2))
        with self.assertRaises(ValueError):
            log.append([NewEvent("T")], past.condition)
        since = log.project({"n": projection("count", ["T"])}, since=times[2])
        self.assertEqual((since.states, since.condition["after"]), ({"n": 2}, 4))
