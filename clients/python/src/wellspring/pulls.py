"""One thread of a worker: it takes deliveries, has them handled, and tells what came of it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable

from .consumers import consumer_path
from .delivery import Delivery, Park
from .errors import AnotherHistory, Forbidden, Unauthenticated, WellspringError, is_temporary
from .events import NewEvent, events_json
from .holds import EXTEND_AFTER, HeldDeliveries, Hold
from .notices import Notices
from .retry import NO_RETRY, Backoff, RetryPolicy
from .transport import Interruption
from .wire import history_of, json_bytes, member

if TYPE_CHECKING:
    from .log import Log

# How long the server lets a call wait for deliveries, and after what it repeats a late settlement.
_WAIT_S = 20.0
_STAGED_WAIT_S = 0.1
_LONGEST_REASON_BYTES = 1024
# Outages are waited out, but not at the end.
_ENDLESS = RetryPolicy(attempts=1 << 62, total_s=float("inf"), first_s=0.05, longest_s=5.0)
_AT_THE_END = RetryPolicy(attempts=10, total_s=5.0)
# These do not concern one event alone.
_FATAL = (AnotherHistory, Unauthenticated, Forbidden)


class Puller:
    """Takes deliveries, one call after the other: the next one is made after the last answer."""

    def __init__(
        self,
        log: Log,
        consumer: str,
        handle: Callable[[Delivery], Iterable[NewEvent] | None],
        batch: int,
        stopping: threading.Event,
        changed: threading.Event,
        notices: Notices,
    ) -> None:
        self.worker = ""
        """The name it goes by, drawn at the start."""
        self.is_done = False
        self._log, self._consumer, self._path = log, consumer, consumer_path(consumer)
        self._handle, self._batch = handle, batch
        self._stopping, self._changed, self._notices = stopping, changed, notices
        self._interruption = Interruption()
        self._turn = 0
        # A call without an answer, which is repeated as it was.
        self._sent: dict[str, Any] | None = None
        # What came of deliveries: in the call, and in the next one.
        self._told: dict[str, tuple[str, Any]] = {}
        self._outcomes: dict[str, tuple[str, Any]] = {}
        self._is_staged = False
        self._held = HeldDeliveries()

    def look(self) -> None:
        """Raises an error that waiting does not mend, such as `NotFound`."""
        try:
            self._take_turn(0, 0.0)
        except WellspringError as error:
            if not is_temporary(error):
                raise

    def work(self) -> None:
        """Works until the worker is stopped, then gives back what was not begun."""
        backoff = Backoff(_ENDLESS)
        try:
            while not self._stopping.is_set():
                asked_s, wait_s = time.monotonic(), self._wait_s()
                deliveries = self._pull(wait_s)
                self._work_on(deliveries)
                if deliveries or time.monotonic() - asked_s > wait_s / 2:
                    backoff = Backoff(_ENDLESS)
                else:
                    # A server that does not wait is not asked without a pause.
                    self._stopping.wait(backoff.next_pause_s())
        finally:
            self._leave()

    def interrupt(self) -> None:
        """Ends a wait for deliveries, for good."""
        self._interruption.set()

    def _wait_s(self) -> float:
        """How long the next call may wait; so short that its answer leaves most of the hold."""
        if self._is_staged:
            return _STAGED_WAIT_S
        return min(_WAIT_S, self._held.hold_s * EXTEND_AFTER)

    def _pull(self, wait_s: float) -> list[Delivery]:
        """Takes deliveries; waits out whatever is temporary."""
        backoff = Backoff(_ENDLESS)
        while True:
            try:
                return self._take_turn(self._batch, wait_s)
            except WellspringError as error:
                if self._stopping.is_set():
                    return []
                if error.type == "turn-passed":
                    self._rename()
                elif not is_temporary(error):
                    raise
                else:
                    self._wait_out(error, backoff)

    def _take_turn(self, want: int, wait_s: float, is_last: bool = False) -> list[Delivery]:
        """Tells what came of deliveries and takes new ones; or repeats that, after an error."""
        if self._sent is None:
            self._turn += 1
            self._told, self._outcomes = self._outcomes, {}
            self._held.lose()
            self._sent = {"worker": self.worker, "turn": self._turn}
            for kind, item in self._told.values():
                self._sent.setdefault(kind, []).append(item)
            self._sent.update(want=want, wait_ms=round(wait_s * 1000))
        asked_s = time.monotonic()
        answer = self._log._consume(
            f"{self._path}/next",
            self._sent,
            _AT_THE_END if is_last else NO_RETRY,
            self._log._transport.timeout_s + self._sent["wait_ms"] / 1000,
            None if is_last else self._interruption,
        )
        found = answer.json()
        hold_s = member(found, "hold_ms", int) / 1000
        state, refused = member(found, "state", str), found.get("refused") or ()
        hold, history = Hold(), history_of(answer.headers)
        taken = [Delivery(each, history, hold) for each in member(found, "deliveries", list)]
        self._sent, self._is_staged = None, False
        self._held.take(hold, [delivery.id for delivery in taken], asked_s, hold_s)
        self._changed.set()
        for refusal in refused:
            self._hear(member(refusal, "delivery", str), member(refusal, "problem", str))
        self._told = {}
        self._notices.hear(state)
        return taken

    def _work_on(self, deliveries: list[Delivery]) -> None:
        try:
            for delivery in deliveries:
                if self._stopping.is_set():
                    self._release(delivery)
                elif delivery.is_held:
                    self._try(delivery)
                else:
                    self._notices.say(f"{delivery} was lost before it was begun: it comes again")
                    self._release(delivery)
        except BaseException:
            for delivery in deliveries:
                if self._held.has(delivery.id) and delivery.id not in self._outcomes:
                    self._release(delivery)
            raise

    def _try(self, delivery: Delivery) -> None:
        """Has a delivery handled; what the handler raises is a reason to try again."""
        try:
            made = self._handle(delivery)
            if made is not None and (events := list(events_json(made))):
                settles = {"consumer": self._consumer, "worker": self.worker}
                settles["delivery"] = delivery.id
                body = json_bytes({"events": events, "settles": settles})
            else:
                self._outcomes[delivery.id] = ("done", delivery.id)
                return
        except Park as park:
            self._outcomes[delivery.id] = ("park", _because(delivery, str(park)))
            return
        except _FATAL:
            raise
        except Exception as fault:
            self._fail(delivery, fault)
            return
        self._append(delivery, body)

    def _append(self, delivery: Delivery, body: bytes) -> None:
        """Appends events and settles the delivery as one; repeats that until it is known."""
        backoff = Backoff(_ENDLESS)
        while True:
            try:
                done = self._log._consume("/append", body)
                self._log._has_written(member(done.json(), "last", int))
                self._held.forget(delivery.id)
                return
            except WellspringError as error:
                if error.type in ("delivery-settled", "delivery-lost"):
                    self._held.forget(delivery.id)
                    if error.type == "delivery-lost":
                        self._notices.say(f"{delivery} was lost, and its events were not appended")
                    return
                if not is_temporary(error):
                    if isinstance(error, _FATAL):
                        raise
                    self._fail(delivery, error)
                    return
                if self._stopping.is_set():
                    self._notices.say(
                        f"{delivery}: whether its events were appended is unknown ({error})"
                    )
                    self._release(delivery)
                    return
                self._wait_out(error, backoff)

    def _fail(self, delivery: Delivery, fault: Exception) -> None:
        self._notices.say(f"{delivery} has failed", fault)
        reason = f"{type(fault).__name__}: {fault}"
        self._outcomes[delivery.id] = ("failed", _because(delivery, reason))

    def _release(self, delivery: Delivery) -> None:
        self._outcomes[delivery.id] = ("release", delivery.id)

    def _hear(self, delivery: str, problem: str) -> None:
        """Takes notice that what became of a delivery was refused."""
        kind, item = self._told.get(delivery, ("", None))
        if problem == "delivery-staged" and kind:
            # An append of ours is under way: then it is settled, or held again.
            self._outcomes[delivery] = (kind, item)
            self._is_staged = True
        elif kind != "release":
            verb = {"done": "settle", "failed": "fail", "park": "park"}.get(kind, kind)
            self._notices.say(
                f"delivery {delivery}: refused to {verb} it ({problem}); it may come again"
            )

    def _wait_out(self, error: WellspringError, backoff: Backoff) -> None:
        self._notices.miss(error)
        self._stopping.wait(backoff.next_pause_s(error.retry_after))

    def _rename(self) -> None:
        """Goes on under a new name: another process, perhaps a copy of this one, has used it."""
        former, self.worker = self.worker, uuid.uuid4().hex
        for delivery in self._told:
            self._hear(delivery, f"another process goes by the name {former}")
        self._turn, self._sent, self._told = 0, None, {}

    def _leave(self) -> None:
        """Tells what came of the last deliveries, and gives back those that were not begun."""
        try:
            if self._sent is not None:
                # Its answer may have been on its way.
                self._sent.update(want=0, wait_ms=0)
                for delivery in self._take_turn(0, 0.0, is_last=True):
                    self._release(delivery)
            ends_s = time.monotonic() + _AT_THE_END.total_s
            while self._outcomes and time.monotonic() < ends_s:
                self._take_turn(0, 0.0, is_last=True)
                if self._outcomes:
                    time.sleep(_STAGED_WAIT_S)
        except Exception as error:
            if count := len({*self._told, *self._outcomes}):
                self._notices.say(f"what came of {count} deliveries could not be told: {error}")

    def due_s(self) -> float | None:
        """When the hold has to be extended; None if nothing is held."""
        return self._held.due_s()

    def extend_if_due(self) -> None:
        """Extends the hold, if it is time."""
        if (hold := self._held.begin_extension()) is None:
            return
        asked_s = time.monotonic()
        try:
            path, sent = f"{self._path}/extend", {"worker": self.worker}
            found = self._log._consume(path, sent, NO_RETRY, hold.timeout_s).json()
            count, hold_s = member(found, "held", int), member(found, "hold_ms", int) / 1000
        except Exception:  # Of a function that returns a secret, too.
            return
        if self._held.end_extension(hold, count, asked_s, hold_s):
            self._notices.say("what it holds was lost: it was silent or busy with it for too long")


def _because(delivery: Delivery, reason: str) -> dict[str, str]:
    cut = reason.encode("utf-8", "replace")[:_LONGEST_REASON_BYTES].decode("utf-8", "ignore")
    return {"delivery": delivery.id, "reason": cut}
