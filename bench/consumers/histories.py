"""Workers of a consumer under fire: they and the server are killed, and a judge looks at the end.

    python3 histories.py PROGRAM [--short] [--jobs N] [--keys N] [--workers N] [--keep]

Jobs are appended in bulk, their keys drawn by Zipf (1.1), while worker processes settle them: most
append a `Result` as they settle, the others write a line to a file and settle without an
append. Every second a worker is killed with SIGKILL and replaced, or it is frozen with SIGSTOP for
longer than it may hold its deliveries; the server is killed every now and then.
When all is settled the server is stopped and started again, the log is exported, and `judge.py`
judges it, and copies of it that were spoiled. Exit code 0: no fault.
"""

import argparse
import bisect
import faulthandler
import itertools
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "clients" / "python" / "src"))

from wellspring import Client, NewEvent, RetryPolicy, WellspringError, matching  # noqa: E402

CONSUMER = "jobs"
# One of so many workers writes files; it is faster than the others.
FILE_SHARE = 8
# Longest silence of a worker.
HOLD_S = 2.0
# Without progress for this long, the run has failed.
STALL_S = 60.0
PATIENT = RetryPolicy(attempts=1000, total_s=300.0, longest_s=0.5)


class ServerProcess:
    """The program on a data folder, which is killed and started again on the same port."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.kills = 0

    def start(self):
        words = [self.program, "serve", "--data", self.folder / "data", "--listen"]
        with open(self.folder / "server.log", "ab") as told:
            self.process = subprocess.Popen(
                [*words, f"127.0.0.1:{self.port}"], stdout=told, stderr=told
            )
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError((self.folder / "server.log").read_text()[-2000:])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def stop(self):
        self.process.terminate()
        if self.process.wait(120) != 0:
            raise RuntimeError(f"the server ended with {self.process.returncode}")


def work(url, kind, path):
    """A worker process. It ends with SIGTERM, and shows its threads with SIGUSR1."""
    faulthandler.register(signal.SIGUSR1)
    log = Client(url).log("main")

    def append(delivery):
        job = delivery.event
        key = delivery.keys[0]
        return [NewEvent("Result", {"n": job.data["n"], "key": key}, [f"r:{key}"])]

    def write(delivery):
        line = f"{delivery.event.data['n']}\t{time.time_ns() // 1000}\n"
        with open(path, "a", encoding="ascii") as lines:
            lines.write(line)

    log.worker(CONSUMER, append if kind == "append" else write, batch=4).run()


class Fleet:
    """The worker processes, of which one is killed and replaced at a time."""

    def __init__(self, url, folder, count):
        self.url, self.folder = url, folder
        self.numbers = itertools.count()
        self.kills = 0
        self.freezes = 0
        # Frozen workers, with the time when each goes on.
        self.frozen = []
        self.processes = [self.begin(place) for place in range(count)]

    def begin(self, place):
        number = next(self.numbers)
        kind = "file" if place % FILE_SHARE == 0 else "append"
        words = [sys.executable, __file__, "--work", self.url, kind]
        with open(self.folder / "workers.log", "ab") as told:
            lines = self.folder / f"{number}.lines"
            return subprocess.Popen([*words, lines], stdout=told, stderr=told)

    def ended(self):
        """Workers that ended without being killed."""
        return [process.pid for process in self.processes if process.poll() is not None]

    def disturb_one(self):
        """Kills a worker and replaces it; one of three goes on after a while, as it was."""
        place = random.randrange(len(self.processes))
        if random.random() < 1 / 3:
            self.processes[place].send_signal(signal.SIGSTOP)
            self.frozen.append((self.processes[place], time.monotonic() + 2 * HOLD_S))
            self.freezes += 1
            return
        self.processes[place].kill()
        self.processes[place].wait()
        self.processes[place] = self.begin(place)
        self.kills += 1

    def thaw(self, until_s):
        for process, due_s in self.frozen:
            if due_s <= until_s:
                process.send_signal(signal.SIGCONT)
        self.frozen = [(process, due_s) for process, due_s in self.frozen if due_s > until_s]

    def stop(self):
        self.thaw(float("inf"))
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        return [self.ending(process) for process in self.processes]

    @staticmethod
    def ending(process):
        try:
            return process.wait(20)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            raise


def draw_keys(count, jobs):
    """Keys of jobs by Zipf's law: the first key is the most frequent."""
    sums = list(itertools.accumulate(1 / rank**1.1 for rank in range(1, count + 1)))
    for _ in range(jobs):
        yield bisect.bisect_left(sums, random.random() * sums[-1])


def feed(log, options):
    """Appends all jobs, each once: a bulk is sent again under its key."""
    numbered = enumerate(draw_keys(options.keys, options.jobs))
    bulks = iter(lambda: list(itertools.islice(numbered, options.jobs // 50)), [])
    for number, bulk in enumerate(bulks):
        events = [NewEvent("Job", {"n": n}, [f"k:{key}"]) for n, key in bulk]
        log.append_bulk(events, key=f"feed-{number}")
        time.sleep(options.feed_s / 50)


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.server = ServerProcess(options.program, folder)
        self.log = Client(self.server.url, retry=PATIENT).log("main")
        self.fed = threading.Event()
        self.fault = None

    def feed(self):
        try:
            feed(self.log, self.options)
        except BaseException as fault:  # It is raised by `settle_all`.
            self.fault = fault
        self.fed.set()

    def run(self):
        self.server.start()
        query = matching(["Job"])
        # Whoever is killed has tried: only a fault parks an event here.
        define = {"key": {"tag": "k"}, "max_tries": 200, "hold_s": HOLD_S}
        self.log.define_consumer(CONSUMER, query, **define)
        threading.Thread(target=self.feed, daemon=True).start()
        fleet = Fleet(self.server.url, self.folder, self.options.workers)
        begun_s = time.monotonic()
        try:
            self.settle_all(fleet)
            took_s = time.monotonic() - begun_s
            codes = fleet.stop()
        finally:
            for process in fleet.processes:
                process.kill()
        # A worker that had just been started knows no SIGTERM yet.
        if not set(codes) <= {0, -signal.SIGTERM}:
            raise RuntimeError(f"workers ended with {codes}: {self.folder}/workers.log")
        self.server.stop()
        self.server.start()
        self.export()
        self.server.stop()
        print(
            f"{self.options.jobs} jobs in {took_s:.1f} s; killed {fleet.kills} workers and the"
            f" server {self.server.kills} times, froze {fleet.freezes} workers"
        )

    def settle_all(self, fleet):
        """Kills workers and the server until all is settled."""
        options = self.options
        kill_s = time.monotonic() + options.kill_every_s
        crash_s = time.monotonic() + options.crash_every_s
        seen, moved_s = None, time.monotonic()
        while True:
            time.sleep(0.1)
            if self.fault is not None:
                raise self.fault
            if ended := fleet.ended():
                raise RuntimeError(f"workers ended: {ended}, {self.folder}/workers.log")
            now_s = time.monotonic()
            fleet.thaw(now_s)
            if now_s >= crash_s and self.server.kills < options.crashes:
                self.server.kill()
                self.server.start()
                crash_s = time.monotonic() + options.crash_every_s
            if now_s >= kill_s:
                fleet.disturb_one()
                kill_s = now_s + options.kill_every_s
            try:
                status = self.log.consumer(CONSUMER)
            except WellspringError:
                continue
            details = status.details
            if self.fed.is_set() and not status.open_keys and details["scanned"] >= self.end():
                return
            progress = (details["floor"], details["scanned"], status.open_keys)
            if progress != seen:
                seen, moved_s = progress, now_s
            elif now_s > moved_s + STALL_S:
                raise RuntimeError(f"no progress for {STALL_S} s: {details}")

    def end(self):
        """The position of the last job."""
        return next(iter(self.log.read(matching(["Job"]), backwards=True, limit=1))).position

    def export(self):
        words = [self.options.program, "export", "--url", self.server.url]
        subprocess.run([*words, "-o", self.folder / "export.ndjson"], check=True)


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--short", action="store_true", help="2,000 jobs and 3 crashes")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--crashes", type=int, help="how often the server is killed")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    options = parser.parse_args(words)
    usual = (2_000, 100, 4, 3) if options.short else (200_000, 10_000, 16, 10)
    for name, value in zip(("jobs", "keys", "workers", "crashes"), usual):
        if getattr(options, name) is None:
            setattr(options, name, value)
    times = (0.5, 1.5, 6.0) if options.short else (1.0, 12.0, 60.0)
    options.kill_every_s, options.crash_every_s, options.feed_s = times
    return options


def main(words):
    if words[:1] == ["--work"]:
        work(*words[1:])
        return 0
    options = options_of(words)
    random.seed(options.seed)
    print(f"seed {options.seed}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="histories.", dir=os.environ.get("BENCH_TMP")))
    run = Run(options, folder)
    try:
        run.run()
        words = [sys.executable, HERE / "judge.py", folder / "export.ndjson", folder]
        code = subprocess.run([*words, "--jobs", str(options.jobs), "--spoil"]).returncode
    except BaseException:
        options.keep = True
        raise
    finally:
        if run.server.process is not None:
            run.server.process.kill()
        if options.keep:
            print(f"left in {folder}")
        else:
            shutil.rmtree(folder)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
