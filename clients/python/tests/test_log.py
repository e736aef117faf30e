"""Against the real binary that clients/test has started."""

import decimal
import itertools
import random
import threading
import unittest
import urllib.request
import uuid

from server import URL, fresh_log

from wellspring import (
    Accepted,
    Client,
    ConditionFailed,
    Conflict,
    Cursor,
    Invalid,
    LeaseHeld,
    LeaseLost,
    NewEvent,
    NotFound,
    PassedOver,
    any_of,
    matching,
    projection,
    unless_changed,
    unless_exists,
)


def random_text(draw: random.Random, longest: int = 12) -> str:
    alphabet = "aZ0 _-\"\\/'\u00e9\u4e16\U0001f300\u2028"
    return "".join(draw.choice(alphabet) for _ in range(draw.randint(1, longest)))


def random_json(draw: random.Random, depth: int = 3):
    kind = draw.randint(0, 7 if depth else 5)
    if kind == 0:
        return None
    if kind == 1:
        return draw.random() < 0.5
    if kind == 2:
        return draw.randint(-(10**30), 10**30)
    if kind == 3:
        return draw.uniform(-1e9, 1e9)
    if kind in (4, 5):
        return random_text(draw) + draw.choice(["", "\n", "\x00", "\r\n", "\t"])
    if kind == 6:
        return [random_json(draw, depth - 1) for _ in range(draw.randint(0, 4))]
    return {random_text(draw): random_json(draw, depth - 1) for _ in range(draw.randint(0, 4))}


def random_event(draw: random.Random) -> NewEvent:
    data = draw.randbytes(draw.randint(0, 40)) if draw.random() < 0.2 else random_json(draw)
    return NewEvent(
        type=random_text(draw),
        data=data,
        tags=sorted({random_text(draw) for _ in range(draw.randint(0, 5))}),
        id=str(uuid.UUID(int=draw.getrandbits(128))) if draw.random() < 0.5 else None,
        metadata={random_text(draw): random_text(draw)} if draw.random() < 0.3 else None,
    )


def essence(event):
    return event.type, tuple(event.tags), event.data, event.id, dict(event.metadata or {})


class Logs(unittest.TestCase):
    def test_random_events_come_back_as_they_were_sent(self) -> None:
        seed = random.randrange(1 << 32)
        draw, log = random.Random(seed), fresh_log()
        sent = [random_event(draw) for _ in range(300)]
        at = 0
        while at < len(sent):
            some = sent[at : at + draw.randint(1, 40)]
            if draw.random() < 0.5:
                log.append(some)
            else:
                log.append_bulk(some)
            at += len(some)
        read = list(log.read(page=37))
        message = f"seed {seed}"
        self.assertEqual([essence(e) for e in read], [essence(e) for e in sent], message)
        self.assertEqual([e.position for e in read], list(range(1, len(sent) + 1)))
        self.assertEqual(read[::-1], list(log.read(backwards=True, page=41)))
        self.assertEqual(read[100:110], list(log.read(after=read[99].cursor, limit=10, page=3)))
        self.assertEqual(read[89:79:-1], list(log.read(after=91, backwards=True, limit=10, page=3)))
        self.assertEqual(read[:0], list(log.read(after=str(read[-1].cursor))))
        with log.subscribe() as followed:
            self.assertEqual(list(itertools.islice(followed, len(read))), read, message)
        self.assertEqual(log.event(7), read[6])
        known = next(e for e in read if e.id)
        self.assertEqual(log.event_by_id(known.id), known)

    def test_a_log_is_created_described_and_dropped(self) -> None:
        log = fresh_log()
        self.assertFalse(log.create())
        log.append([NewEvent("A", 1), NewEvent("B", 2, ["x:1"])])
        info = log.info()
        self.assertEqual((info.name, info.head, info.types, info.tags), (log.name, 2, 2, 1))
        self.assertEqual(log.head().position, 2)
        self.assertIn(log.name, Client(URL).logs())
        log.drop()
        with self.assertRaises(NotFound) as caught:
            log.head()
        self.assertEqual(caught.exception.type, "log-not-found")
        self.assertTrue(caught.exception.request_id)

    def test_personal_data_are_sealed_and_shown_until_they_are_erased(self) -> None:
        log, ada, eve = fresh_log(), f"student:{uuid.uuid4().hex}", f"student:{uuid.uuid4().hex}"
        log.append([NewEvent("Enrolled", {"name": "Ada"}, subject=ada)])
        log.append([NewEvent("Paired", {"room": 7}, personal={ada: "Ada", eve: ["Eve"]})])
        enrolled, paired = log.read()
        self.assertEqual((enrolled.data, enrolled.subject), ({"name": "Ada"}, ada))
        self.assertEqual((paired.data, paired.personal), ({"room": 7}, {ada: "Ada", eve: ["Eve"]}))
        self.assertEqual((paired.subject, paired.withheld, paired.erased), (None, False, ()))
        erasure = f"{URL}/v1/subjects/{ada}?confirm={ada}"
        urllib.request.urlopen(urllib.request.Request(erasure, method="DELETE")).close()
        enrolled, paired = log.read(limit=2)
        self.assertEqual((enrolled.data, enrolled.erased, paired.erased), (None, (ada,), (ada,)))
        self.assertEqual(paired.personal, {ada: None, eve: ["Eve"]})

    def test_a_failed_condition_names_the_event_in_the_way(self) -> None:
        log = fresh_log()
        name = matching(["Claimed"], ["name:ada"])
        claim = [NewEvent("Claimed", {}, ["name:ada"])]
        self.assertEqual(log.append(claim, unless_exists(name)).first, 1)
        with self.assertRaises(ConditionFailed) as caught:
            log.append(claim, unless_exists(name))
        self.assertEqual(caught.exception.conflict["position"], 1)
        self.assertEqual(caught.exception.retry, "after-reread")
        log.append(claim, unless_changed(any_of(name, matching(["Other"])), after=1))
        with self.assertRaises(ConditionFailed):
            log.append(claim, unless_changed(name, after=1))

    def test_what_breaks_a_rule_is_named(self) -> None:
        log = fresh_log()
        with self.assertRaises(Invalid) as caught:
            log.append([NewEvent("A"), NewEvent("B", tags=["ok", ""])])
        self.assertEqual(caught.exception.field, "events[1].tags[1]")
        with self.assertRaises(Invalid) as caught:
            log.append([NewEvent("A")] * 1001)
        self.assertEqual((caught.exception.status, caught.exception.limit), (413, 1000))
        with self.assertRaises(Invalid) as caught:
            log.append_bulk([NewEvent("A")] * 10_500 + [NewEvent("")] + [NewEvent("A")])
        error = caught.exception
        self.assertEqual((error.line, error.problem["durable_lines"]), (10_501, 10_500))
        self.assertTrue(error.detail.startswith("line 10501: "), error.detail)
        self.assertIn("line 10501: ", str(error))
        self.assertEqual(log.head().position, 10_500)
        with self.assertRaises(ValueError):
            log.append([NewEvent("A", float("nan"))])
        with self.assertRaises(TypeError):
            matching("A")
        with self.assertRaises(TypeError):
            log.append([NewEvent("A", tags="t")])

    def test_the_same_key_is_the_same_request(self) -> None:
        log = fresh_log()
        first = log.append([NewEvent("A")], key="k1")
        again = log.append([NewEvent("A")], key="k1")
        self.assertEqual((first.first, first.replayed), (again.first, False))
        self.assertTrue(again.replayed)
        with self.assertRaises(Invalid) as caught:
            log.append([NewEvent("B")], key="k1")
        self.assertEqual(caught.exception.type, "idempotency-key-reused")
        self.assertEqual(caught.exception.key, "k1")
        one = NewEvent("A", 1, id=str(uuid.uuid4()))
        log.append([one])
        with self.assertRaises(Conflict):
            log.append([NewEvent("A", 2, id=one.id)])
        events = [NewEvent("Bulk", n) for n in range(12_000)]
        done = log.append_bulk(events, key="b")
        self.assertEqual((done.events, done.last - done.first + 1), (12_000, 12_000))
        self.assertFalse(done.replayed)
        self.assertTrue(log.append_bulk(events, key="b").replayed)
        self.assertEqual(log.append_bulk([], key="c").events, 0)
        self.assertFalse(log.append([NewEvent("Long")], key="k" * 255).replayed)
        self.assertEqual(log.append_bulk([NewEvent("Long")] * 10_001, key="k" * 230).last, 22_004)
        self.assertEqual(log.head().position, 22_004)

    def test_no_number_makes_an_event_unreadable(self) -> None:
        log = fresh_log()
        digits = "7" * 5000
        numbers = [digits, f"-{digits}", f'{{"n":[{digits}]}}', "1e999", "42"]
        lines = "".join(f'{{"type":"N","data":{number}}}\n' for number in numbers)
        request = urllib.request.Request(
            f"{URL}/v1/logs/{log.name}/append",
            lines.encode(),
            {"Content-Type": "application/x-ndjson"},
        )
        urllib.request.urlopen(request).close()
        large = decimal.Decimal(digits)
        expected = [large, large.copy_negate(), {"n": [large]}, float("inf"), 42]
        self.assertEqual([event.data for event in log.read()], expected)
        with log.subscribe() as followed:
            self.assertEqual([e.data for e in itertools.islice(followed, 5)], expected)
        self.assertEqual(str(log.event(1).data), digits)
        last = {"x": projection({"last": ""}, ["N"])}
        self.assertEqual(log.project(last).states, {"x": 42})
        self.assertIs(type(log.project(last).states["x"]), int)

    def test_eight_threads_decide_and_no_number_is_used_twice(self) -> None:
        log = fresh_log()
        highest = {"n": projection({"max": "/n"}, ["Numbered"], init=0)}

        def number() -> None:
            for _ in range(5):
                log.decide(highest, lambda states: [NewEvent("Numbered", {"n": states["n"] + 1})])

        threads = [threading.Thread(target=number) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([e.data["n"] for e in log.read()], list(range(1, 41)))
        self.assertIsNone(log.decide(highest, lambda states: []))
        with self.assertRaises(ZeroDivisionError):
            log.decide(highest, lambda states: 1 // 0)
        with self.assertRaisesRegex(TypeError, "must be a list of NewEvent"):
            log.decide(highest, lambda states: NewEvent("Numbered"))

    def test_a_projection_comes_with_the_condition_that_protects_it(self) -> None:
        log = fresh_log()
        log.append([NewEvent("Paid", {"amount": 2}, ["by:ann"])] * 3)
        known = log.project(
            {
                "total": projection({"sum": "/amount"}, ["Paid"]),
                "last": projection({"last": ""}, query=matching(tags=["by:ann"])),
            }
        )
        self.assertEqual(known.states, {"total": 6, "last": {"amount": 2}})
        self.assertEqual(known.position, 3)
        log.append([NewEvent("Paid", {"amount": 1})], known.condition)
        with self.assertRaises(ConditionFailed):
            log.append([NewEvent("Paid", {"amount": 1})], known.condition)

    def test_a_projection_tells_what_it_has_passed_over(self) -> None:
        log = fresh_log()
        log.append([NewEvent("Paid", data) for data in ({"sum": 2}, {"amount": 3}, {})])
        total = {"sum": ["/amount", "/sum"]}
        known = log.project({"total": projection(total), "all": projection("count")})
        self.assertEqual(known.states, {"total": 5, "all": 3})
        self.assertEqual(known.passed_over, {"total": PassedOver(events=1, first=3)})
        with self.assertRaisesRegex(Invalid, "at position 3"):
            log.project({"total": projection(total, strict=True)})

    def test_a_subscription_shows_what_matches_from_where_it_is_told(self) -> None:
        log = fresh_log()
        log.append([NewEvent("Old", n) for n in range(5)])
        with log.subscribe(matching(["New"]), after="end") as new, log.subscribe(after=3) as later:
            log.append([NewEvent("Old", 5), NewEvent("New", 6)])
            event = next(new)
            self.assertEqual((event.position, event.data), (7, 6))
            self.assertEqual(new.cursor, event.cursor)
            self.assertEqual([e.position for e in itertools.islice(later, 4)], [4, 5, 6, 7])
            resumed = Cursor.parse(str(event.cursor))
            with log.subscribe(after=resumed) as following:
                log.append([NewEvent("New", 7)])
                self.assertEqual(next(following).data, 7)

    def test_a_subscription_is_closed_from_another_thread(self) -> None:
        subscription = fresh_log().subscribe()
        threading.Timer(0.2, subscription.close).start()
        self.assertEqual(list(subscription), [])

    def test_leases_exclude_and_fence(self) -> None:
        log = fresh_log()
        with log.acquire_lease("importer", 30) as lease:
            with self.assertRaises(LeaseHeld) as caught:
                log.acquire_lease("importer", 30)
            self.assertGreater(caught.exception.remaining_s, 1)
            lease.renew()
            log.append([NewEvent("A")], fence=lease.fence)
        with self.assertRaises(LeaseLost):
            log.append([NewEvent("A")], fence=lease.fence)
        threading.Timer(0.2, log.acquire_lease("x", 30).release).start()
        log.acquire_lease("x", 30, wait_s=10).release()

    def test_what_is_ingested_is_stored(self) -> None:
        log = fresh_log()
        log.ingest({"x": 1}, type="Clicked", tags=["page:home", "a&b=c"], ack="durable")
        log.ingest(b"\xff\x00", ack="durable")
        log.ingest("text")
        accepted = log.append([NewEvent("A")], ack="accepted")
        self.assertEqual(accepted, Accepted(1))
        with log.subscribe() as followed:
            found = sorted(itertools.islice(followed, 4), key=lambda event: event.type)
        self.assertEqual(found[1].tags, ("page:home", "a&b=c"))
        self.assertEqual([e.type for e in found], ["A", "Clicked", "Ingested", "Ingested"])
        self.assertIn(b"\xff\x00", [e.data for e in found])
        self.assertIn("text", [e.data for e in found])

    def test_links_are_created_changed_counted_and_deleted(self) -> None:
        links = Client(URL).links
        alias = uuid.uuid4().hex[:10]
        link = links.create("http://example.com/a", alias=alias, tags=["py", alias])
        self.assertEqual((link.short_code, link.tags), (alias, ("py", alias)))
        with self.assertRaises(Conflict) as caught:
            links.create("http://example.com/b", alias=alias)
        self.assertEqual(caught.exception.type, "alias-taken")
        with self.assertRaises(Invalid):
            links.create("ftp://example.com")
        self.assertEqual(links.get(alias).clicks, 0)
        changed = links.change(alias, url="http://example.com/c", expires_at=None)
        self.assertEqual(changed.original_url, "http://example.com/c")
        self.assertFalse(links.change(alias, enabled=False).enabled)
        self.assertEqual(links.stats(alias, bucket="hour").series, [])
        self.assertEqual([each.short_code for each in links.list(tag=alias, page=1)], [alias])
        links.delete(alias)
        with self.assertRaises(NotFound):
            links.get(alias)


if __name__ == "__main__":
    unittest.main()
