"""A program's threads that take deliveries of a consumer."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import re
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Callable

from .delivery import Delivery
from .events import NewEvent
from .notices import Notices
from .pulls import Puller
from .signals import next_item

if TYPE_CHECKING:
    from .log import Log

Handler = Callable[[Delivery], "Iterable[NewEvent] | None"]
"""Does the work of a delivery; what it returns is appended as the delivery is settled."""


class Worker:
    """Calls a handler with the deliveries of a consumer; `Log.worker` makes one.

    `run` is all that a program needs. Within a larger program, `start` and `stop`, or a `with`
    block. A call of the worker itself calls the handler, for tests of it.
    """

    def __init__(self, log: Log, consumer: str, handle: Handler, threads: int, batch: int) -> None:
        if threads < 1 or batch < 1:
            raise ValueError("threads and batch must be at least 1")
        self.consumer = consumer
        self._handle = handle
        self._stopping = threading.Event()
        self._fault: BaseException | None = None
        self._threads: list[threading.Thread] = []
        # Wakes the thread that extends; and `run`, which a signal handler may do.
        self._changed = threading.Event()
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        notices = self._notices = Notices(consumer)
        self._pullers = [
            Puller(log, consumer, handle, batch, self._stopping, self._changed, notices)
            for _ in range(threads)
        ]

    def __call__(self, delivery: Delivery) -> Iterable[NewEvent] | None:
        """Calls the handler."""
        return self._handle(delivery)

    def run(self) -> None:
        """Works until `stop`, SIGTERM, or an error that waiting does not mend, which it raises.

        SIGTERM does what `stop` does, if `run` is called by the main thread of a program that
        does not handle it otherwise. A second one ends the program.
        """
        with self._stopping_at_sigterm():
            try:
                self.start()
                next_item(self._ended)
            finally:
                self.stop()

    def start(self) -> None:
        """Begins to work in threads. Raises `NotFound` if there is no such consumer."""
        if self._threads or self._stopping.is_set():
            raise RuntimeError("this worker was started before")
        names = _names(self.consumer)
        for puller in self._pullers:
            puller.worker = next(names)
        self._pullers[0].look()
        for puller in self._pullers:
            self._begin(functools.partial(self._work, puller), puller.worker)
        self._begin(self._extend, f"{self.consumer}, extending")

    def stop(self) -> None:
        """Gives back what was not begun, without counting a try, and waits for what runs.

        Raises what has ended the worker before. A handler may call it, and does not wait.
        """
        self._stopping.set()
        self._ended.put(None)
        for puller in self._pullers:
            puller.interrupt()
        self._changed.set()
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join()
            if self._fault is not None:
                fault, self._fault = self._fault, None
                raise fault

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _begin(self, action: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=action, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, puller: Puller) -> None:
        try:
            puller.work()
        except BaseException as fault:
            self._notices.say(f"the worker ends: {type(fault).__name__}: {fault}")
            self._fault = self._fault or fault
            self.stop()
        finally:
            puller.is_done = True
            self._changed.set()

    def _extend(self) -> None:
        """Extends what is held, as long as a thread works."""
        while not all(puller.is_done for puller in self._pullers):
            dues = [due for due in (puller.due_s() for puller in self._pullers) if due is not None]
            self._changed.wait(max(0.0, min(dues) - time.monotonic()) if dues else None)
            self._changed.clear()
            for puller in self._pullers:
                puller.extend_if_due()

    @contextlib.contextmanager
    def _stopping_at_sigterm(self) -> Iterator[None]:
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            yield
            return

        def end(*_: Any) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._ended.put(None)

        signal.signal(signal.SIGTERM, end)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _names(consumer: str) -> Iterator[str]:
    """Names of the threads: they tell an operator where to look, and are never used again."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:40]
    start = f"{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    number = 0
    while True:
        number += 1
        yield f"{start}.{number}"
