"""A server with one consumer, as the wire of consumers says, and with faults that tests order."""

from __future__ import annotations

import threading
import time

from server import FakeRequest, json_answer, problem

HISTORY = "00000000000000aa"


class FakeConsumer:
    """Delivers positions, each as an event of its own; `cut` and `faults` spoil answers.

    `faults` are answers, or None for a cut connection, which replace the next answers to a path;
    the request has no effect then. `cut` has the paths whose next answer is lost after its effect.
    """

    def __init__(self, *positions: int, hold_ms: int = 30_000) -> None:
        self.hold_ms = hold_ms
        self.state = "running"
        self.faults: dict[str, list] = {}
        self.cut: list[str] = []
        self.refuse: dict[str, list[str]] = {}
        self.settled: list[tuple[int, str]] = []
        self.appended: list[dict] = []
        self.extended: list[str] = []
        self.definition = None
        self._changed = threading.Condition()
        self._ready = [(position, 1) for position in positions]
        self._held: dict[str, tuple[str, int, int]] = {}
        self._turns: dict[str, tuple[int, list[str], list[dict]]] = {}
        self._calls: dict[str, int] = {}
        self._count = 0

    def answer(self, request: FakeRequest):
        kind = request.path.rsplit("/", 1)[-1]
        if faults := self.faults.get(kind):
            return faults.pop(0)
        with self._changed:
            if kind == "next":
                answered = self._next(request.json())
            elif kind == "extend":
                answered = self._extend(request.json())
            elif kind == "append":
                answered = self._append(request.json())
            elif request.method == "PUT":
                is_new, self.definition = self.definition is None, request.json()
                answered = json_answer(201 if is_new else 200, {})
            else:
                answered = json_answer(200, self._status())
            self._changed.notify_all()
        if kind in self.cut:
            self.cut.remove(kind)
            return None
        return answered

    def add(self, position: int) -> None:
        with self._changed:
            self._ready.append((position, 1))
            self._changed.notify_all()

    def lose(self) -> None:
        """Takes everything away from all workers."""
        with self._changed:
            for _, position, tries in self._held.values():
                self._ready.append((position, tries + 1))
            self._held.clear()
            self._changed.notify_all()

    def wait(self, condition) -> None:
        """Waits until something is so."""
        with self._changed:
            if not self._changed.wait_for(condition, 60):
                raise AssertionError(f"{self.settled}, {self._held}")

    @property
    def held(self) -> list[int]:
        return sorted(position for _, position, _ in self._held.values())

    def _next(self, sent: dict):
        worker, turn = sent["worker"], sent["turn"]
        last, given, refused = self._turns.get(worker, (0, [], []))
        if turn < last:
            return problem(409, "turn-passed", turn=last)
        # Another call takes the place of one that waits, also for the same turn.
        call = self._calls[worker] = self._calls.get(worker, 0) + 1
        self._changed.notify_all()
        if turn > last:
            given, refused = [], []
            for what in ("done", "failed", "park", "release"):
                for item in sent.get(what, ()):
                    self._settle(worker, what, item, refused)
            self._turns[worker] = (turn, given, refused)
            ends_s = time.monotonic() + sent["wait_ms"] / 1000
            self._changed.notify_all()
            while sent["want"] and not self._ready or self.state != "running":
                left_s = ends_s - time.monotonic()
                if left_s <= 0 or not self._changed.wait(left_s):
                    break
                if self._calls[worker] != call:
                    return problem(409, "turn-passed", turn=self._turns[worker][0])
            while self._ready and len(given) < sent["want"] and self.state == "running":
                position, tries = self._ready.pop(0)
                self._count += 1
                given.append(f"1.{self._count:x}.abc")
                self._held[given[-1]] = (worker, position, tries)
        found = [self._delivery(each) for each in given if each in self._held]
        told = {"turn": turn, "state": self.state, "refused": refused, "deliveries": found}
        return json_answer(
            200,
            {**told, "hold_ms": self.hold_ms, "head": 99},
            Wellspring_History=HISTORY,
        )

    def _delivery(self, id: str) -> dict:
        _, position, tries = self._held[id]
        event = {"position": position, "type": "T", "tags": [], "data": position}
        event["recorded_at"] = "2026-11-25T00:00:00.000000Z"
        key = f"mailer-1-{position}"
        found = {"delivery": id, "keys": [str(position % 2)], "tries": tries, "effect_key": key}
        return {**found, "events": [event]}

    def _settle(self, worker: str, what: str, item, refused: list[dict]) -> None:
        id = item if isinstance(item, str) else item["delivery"]
        if orders := self.refuse.get(what):
            refused.append({"delivery": id, "problem": orders.pop(0)})
            return
        if self._held.get(id, ("",))[0] != worker:
            refused.append({"delivery": id, "problem": "delivery-lost"})
            return
        _, position, tries = self._held.pop(id)
        reason = "" if isinstance(item, str) else ": " + item["reason"]
        self.settled.append((position, what + reason))
        if what in ("failed", "release"):
            self._ready.append((position, tries + (what == "failed")))

    def _extend(self, sent: dict):
        self.extended.append(sent["worker"])
        held = sum(worker == sent["worker"] for worker, _, _ in self._held.values())
        return json_answer(200, {"held": held, "hold_ms": self.hold_ms})

    def _append(self, sent: dict):
        settles = sent["settles"]
        for first, done in enumerate(self.appended, 1):
            if done == sent:
                found = {"first": first, "last": first, "head": 99, "replayed": True}
                return json_answer(200, found)
        worker, position, _ = self._held.get(settles["delivery"], ("", 0, 0))
        if worker != settles["worker"] or settles["consumer"] != "mailer":
            return problem(409, "delivery-lost")
        del self._held[settles["delivery"]]
        self.appended.append(sent)
        self.settled.append((position, "appended"))
        last = len(self.appended)
        return json_answer(200, {"first": last, "last": last, "head": 99, "replayed": False})

    def _status(self) -> dict:
        return {
            "state": self.state,
            "lag": 0,
            "open_keys": len(self._ready) + len(self._held),
            "in_flight": len(self._held),
            "parked": 0,
            "oldest_age_ms": 1500,
            "scanned": 99,
        }
