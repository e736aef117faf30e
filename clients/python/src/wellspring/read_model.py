"""Rows of a database that follow a log: each event counts exactly once."""

from __future__ import annotations

import contextlib
import functools
import queue
import re
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Protocol

from .cursor import Cursor
from .errors import AnotherHistory
from .events import Event, Query
from .signals import next_item
from .subscription import Subscription

if TYPE_CHECKING:
    from .log import Log

# The most that one transaction has, so that other programs are not locked out for long.
_MOST_EVENTS = 500
_LONGEST_S = 0.05
# Names and places are parts of statements: so the driver's style of parameters does not matter.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_PLACE = re.compile(r"[0-9]{1,20}(@[0-9a-f]{16})?")
_START = Cursor(0)


class Connection(Protocol):
    """A connection of any DB-API driver (PEP 249) that is not in autocommit mode."""

    def cursor(self) -> Any:
        """What executes statements."""

    def commit(self) -> object:
        """Ends the transaction that the first statement has begun."""

    def rollback(self) -> object:
        """Undoes it."""


class ReadModel:
    """Rows that follow a log; `Log.read_model` makes one.

    How far they have come is a row of the table `wellspring_cursor`, which changes in the
    transaction that changes the rows. Several programs may follow under one name: what one has
    applied, the others pass over.
    """

    def __init__(self, log: Log, name: str, connection: Connection, query: Query) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} must be 1 to 100 letters, digits, or any of _ . -")
        # A rebuild accepts another history for these rows alone.
        self._log = log._copy()
        self._name = name
        self._connection = connection
        self._query = query
        self._stopped = False
        self._arrivals: _Arrivals | None = None

    def follow(
        self,
        apply: Callable[[Any, Event], object],
        rebuild: Callable[[Any], object] | None = None,
    ) -> None:
        """Applies existing events, then new ones as they come, until `stop`.

        `apply(db, event)` executes statements with `db`, a cursor of the DB-API. Up to 500 events
        or 50 ms make a transaction. Neither function may end it; in some databases statements
        such as CREATE TABLE do. An exception rolls back, and is raised.

        If the log was restored or made anew, `rebuild(db)` has to delete the rows; then all
        events are applied again. Without it `AnotherHistory` is raised.
        """
        self._prepare()
        while not self._stopped:
            place = self._place()
            try:
                with self._log.subscribe(self._query, after=place) as events:
                    self._apply_all(events, place, apply)
            except AnotherHistory:
                if rebuild is None:
                    raise
                self._log.forget_history()
                self._transact(place, functools.partial(_rebuilt, rebuild))

    def stop(self) -> None:
        """Has `follow` return after its transaction; for other threads and signal handlers."""
        self._stopped = True
        if self._arrivals is not None:
            self._arrivals.wake()

    def _apply_all(
        self, events: Subscription, place: Cursor, apply: Callable[[Any, Event], object]
    ) -> None:
        """Applies what arrives, until `stop`, or until another program has gone on from here."""
        arrivals = self._arrivals = _Arrivals(events)
        try:
            while not self._stopped:
                first = arrivals.next()
                if first is None:
                    return
                reached = self._transact(place, functools.partial(_batch, arrivals, first, apply))
                if reached is None:
                    return
                place = reached
        finally:
            self._arrivals = None
            arrivals.close()

    def _transact(self, place: Cursor, write: Callable[[Any], Cursor]) -> Cursor | None:
        """Writes rows and the place they have reached, in one transaction.

        Returns that place, or None if another program has moved the former one.
        """
        reached = None
        db = self._connection.cursor()
        try:
            # First of all, as it locks the row and begins the transaction.
            db.execute(f"UPDATE wellspring_cursor SET place = place WHERE name = '{self._name}'")
            if self._read(db, self._name) == str(place):
                reached = write(db)
                self._write(db, reached)
            db.close()
        except BaseException:
            self._connection.rollback()
            raise
        if reached is None:
            self._connection.rollback()
        else:
            self._connection.commit()
        return reached

    def _place(self) -> Cursor:
        found = self._run(functools.partial(self._read, name=self._name))
        if found is None:
            raise RuntimeError(f"the row {self._name!r} of wellspring_cursor was deleted")
        return Cursor.parse(found)

    def _prepare(self) -> None:
        """Makes the table and the row if need be, and checks that a rollback undoes something."""
        read = functools.partial(self._read, name=self._name)
        columns = "name VARCHAR(110) PRIMARY KEY, place VARCHAR(40) NOT NULL"
        try:
            found = self._run(read)
        except Exception:
            # All databases have this in common alone: what is not there cannot be read.
            with contextlib.suppress(Exception):
                made = f"CREATE TABLE wellspring_cursor ({columns})"
                self._run(lambda db: db.execute(made), True)
            found = self._run(read)
        probe = f"{self._name}?"
        self._run(functools.partial(self._insert, name=probe))
        if self._run(functools.partial(self._read, name=probe)) is not None:
            undo = f"DELETE FROM wellspring_cursor WHERE name = '{probe}'"
            self._run(lambda db: db.execute(undo), True)
            raise ValueError("the connection commits each statement: turn its autocommit mode off")
        if found is None:
            try:
                self._run(functools.partial(self._insert, name=self._name), True)
            except Exception:
                # Another program may have done so at this moment.
                if self._run(read) is None:
                    raise

    def _run(self, statement: Callable[[Any], Any], commits: bool = False) -> Any:
        """Runs a statement in a transaction of its own."""
        try:
            db = self._connection.cursor()
            found = statement(db)
            db.close()
            if commits:
                self._connection.commit()
            return found
        finally:
            self._connection.rollback()

    @staticmethod
    def _read(db: Any, name: str) -> str | None:
        db.execute(f"SELECT place FROM wellspring_cursor WHERE name = '{name}'")
        row = db.fetchone()
        if row is None:
            return None
        return str(next(iter(row.values())) if isinstance(row, Mapping) else row[0])

    @staticmethod
    def _insert(db: Any, name: str) -> None:
        db.execute(f"INSERT INTO wellspring_cursor (name, place) VALUES ('{name}', '{_START}')")

    def _write(self, db: Any, place: Cursor) -> None:
        if not _PLACE.fullmatch(str(place)):
            raise ValueError(f"not a place in a log: {place}")
        db.execute(f"UPDATE wellspring_cursor SET place = '{place}' WHERE name = '{self._name}'")


class _Arrivals:
    """Events of a subscription, received by a thread of its own while others are applied."""

    def __init__(self, events: Subscription) -> None:
        self._events = events
        # Unlike other queues, it can be filled by a signal handler.
        self._queue: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(_MOST_EVENTS)
        self._fault: Exception | None = None
        threading.Thread(target=self._receive, name="read model", daemon=True).start()

    def next(self, waits: bool = True) -> Event | None:
        """The next event, or None: there is none yet, or it is over.

        What the subscription raises is raised by a call that waits.
        """
        try:
            is_waiting = waits and self._fault is None
            found = next_item(self._queue) if is_waiting else self._queue.get_nowait()
            self._room.release()
        except queue.Empty:
            found = None
        if isinstance(found, Exception):
            self._fault = found
        if self._fault is not None and waits:
            raise self._fault
        return found if isinstance(found, Event) else None

    def wake(self) -> None:
        """Has a call that waits return."""
        self._queue.put(None)

    def close(self) -> None:
        """Ends the subscription and its thread."""
        self._events.close()
        self._room.release(_MOST_EVENTS)

    def _receive(self) -> None:
        try:
            for event in self._events:
                self._room.acquire()
                self._queue.put(event)
            self._queue.put(None)
        except Exception as fault:
            self._queue.put(fault)


def _batch(
    arrivals: _Arrivals, first: Event, apply: Callable[[Any, Event], object], db: Any
) -> Cursor:
    """Applies an event and those that have arrived meanwhile; returns the place after them."""
    ends_s = time.monotonic() + _LONGEST_S
    event: Event | None = first
    count = 0
    while event is not None:
        apply(db, event)
        place = event.cursor
        count += 1
        is_full = count == _MOST_EVENTS or time.monotonic() >= ends_s
        event = None if is_full else arrivals.next(waits=False)
    return place


def _rebuilt(rebuild: Callable[[Any], object], db: Any) -> Cursor:
    rebuild(db)
    return _START
