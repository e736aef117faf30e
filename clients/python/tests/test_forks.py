"""A client that was made before a fork is used by the parent and by its children."""

import itertools
import json
import multiprocessing
import os
import threading
import time
import unittest

from server import URL, FakeServer, fresh_log, json_answer

from wellspring import (
    NO_RETRY,
    Client,
    ConditionFailed,
    NewEvent,
    matching,
    unless_exists,
)

CHILDREN = 4
LONGEST_S = 20


def in_child(action) -> object:
    """What `action` returns in a forked process, as JSON; fails if it takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = json.dumps(action())
        except BaseException as fault:
            text = json.dumps(repr(fault))
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    killer = threading.Timer(LONGEST_S, os.kill, (child, 9))
    killer.start()
    with open(reader, "rb") as told:
        text = told.read()
    killer.cancel()
    os.waitpid(child, 0)
    return json.loads(text) if text else "the child hangs"


@unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
class Forks(unittest.TestCase):
    def test_each_process_gets_its_own_answers(self) -> None:
        log = fresh_log()
        log.head()  # Leaves a connection open.
        context = multiprocessing.get_context("fork")
        told = context.Queue()

        def claim(child: int) -> None:
            for name in range(40):
                tags = [f"name:{name}"]
                try:
                    event = NewEvent("Claimed", {"by": child, "name": name}, tags)
                    log.append([event], unless_exists(matching(["Claimed"], tags)))
                    told.put((name, child))
                except ConditionFailed:
                    pass
            told.put(None)

        children = [context.Process(target=claim, args=(child,)) for child in range(CHILDREN)]
        for child in children:
            child.start()
        won = []
        for _ in children:
            won += iter(lambda: told.get(timeout=LONGEST_S), None)
        for child in children:
            child.join(LONGEST_S)
        stored = [(event.data["name"], event.data["by"]) for event in log.read()]
        self.assertEqual(sorted(won), sorted(stored))
        self.assertEqual(len(stored), 40)

    def test_the_connections_of_the_parent_outlive_the_child(self) -> None:
        connections = []

        def answer(request):
            connections.append(threading.get_ident())
            return json_answer(200, {"head": len(connections)})

        with FakeServer(answer) as server:
            client = Client(server.url, retry=NO_RETRY)
            log = client.log("x")
            log.head()

            def use_and_close() -> int:
                position = log.head().position
                client.close()
                return position

            self.assertEqual(in_child(use_and_close), 2)
            self.assertEqual(log.head().position, 3)
            first, of_child, last = connections
            self.assertEqual(first, last, "the parent has kept its connection")
            self.assertNotEqual(first, of_child)

    def test_a_child_keeps_no_descriptor_of_its_parent(self) -> None:
        release = threading.Event()

        def answer(request):
            if request.path.endswith("/slow/head"):
                release.wait(LONGEST_S)
            return json_answer(200, {"head": 1})

        with FakeServer(answer) as server:
            client = Client(server.url, retry=NO_RETRY)
            slow = threading.Thread(target=client.log("slow").head)
            slow.start()
            while not server.requests:
                time.sleep(0.01)
            client.log("x").head()
            sockets = [sock.fileno() for sock in client._transport._sockets]
            self.assertEqual(len(sockets), 2)

            def still_open() -> list:
                return [fd for fd in sockets if os.path.exists(f"/dev/fd/{fd}")]

            self.assertEqual(still_open(), sockets)
            self.assertEqual(in_child(still_open), [])
            release.set()
            slow.join(LONGEST_S)

    def test_locks_that_are_held_during_the_fork_do_not_hold_up_the_child(self) -> None:
        log = fresh_log()
        client = Client(URL)
        log = client.log(log.name)
        log.append([NewEvent("A", 1)])
        with log.subscribe() as followed:
            next(followed)

            def use() -> list:
                event = next(followed)
                return [client.log(log.name).head().position, event.position]

            log.append([NewEvent("A", 2)])
            with client._lock, log._lock, client._transport._lock, followed._lock:
                self.assertEqual(in_child(use), [2, 2])

    def test_a_subscription_goes_on_in_both_processes(self) -> None:
        log = fresh_log()
        log.append([NewEvent("A", n) for n in range(5)])
        with log.subscribe() as followed:
            self.assertEqual(next(followed).position, 1)

            def rest() -> list:
                found = [event.position for event in itertools.islice(followed, 4)]
                followed.close()
                return found

            self.assertEqual(in_child(rest), [2, 3, 4, 5])
            self.assertEqual([e.position for e in itertools.islice(followed, 4)], [2, 3, 4, 5])
            stream = followed._stream
            log.append([NewEvent("A", 5)])
            self.assertEqual(next(followed).position, 6)
            self.assertIs(followed._stream, stream, "on the connection it had")


if __name__ == "__main__":
    unittest.main()
