"""Judges what workers of a consumer have done, by an export of the log and the files of workers.

    python3 judge.py EXPORT FOLDER [--jobs N] [--spoil]

It shares no code with the server or its clients. EXPORT is what `wellspring export` writes. FOLDER
holds files of workers that settle without an append; a line is `number<TAB>microseconds since
1970`, written before the delivery is settled. `--jobs` says how many jobs were appended. `--spoil`
also judges spoiled copies, of which each must be found at fault. Exit code 1: at fault.

An effect of a job is its `Result` in the log, or a line of a file. The rules:

- numbers       the jobs of the log are 0 … N-1, each once
- neither       each job has an effect
- twice         no job has two results
- key           a result has the key of its job
- order         the first effects of the jobs of a key come in the order of the jobs
- again         no job is begun by a worker after its result is durable (with some patience)
- checkpoint    what a checkpoint says is settled has had its effect before it
- end           after the last checkpoint nothing is open, and all jobs are scanned
"""

import bisect
import datetime
import json
import pathlib
import sys
from dataclasses import dataclass, field

import spoil

# A worker that was given a job before its result was durable may begin it this much later.
PATIENCE_US = 10_000_000


@dataclass
class Job:
    number: int
    key: str
    position: int
    results: list = field(default_factory=list)  # (position, microseconds) of each
    lines: list = field(default_factory=list)  # microseconds of each

    def first_effect_us(self):
        times = [at_us for _, at_us in self.results] + self.lines
        return min(times) if times else None


def microseconds(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return since // datetime.timedelta(microseconds=1)


def value_of(event, tag):
    return next(each[len(tag) + 1:] for each in event["tags"] if each.startswith(tag + ":"))


class Checkpoints:
    """The state of the consumer, as its checkpoints say one after the other."""

    def __init__(self):
        self.scanned = 0
        self.open = {}
        self.count = 0
        self._parts = []

    def take(self, data):
        """Applies one event; returns whether it completes a state."""
        part = data.get("part")
        if part is None:
            self._parts = []
        else:
            is_next = [each["part"][0] for each in self._parts] == list(range(part[0]))
            is_same = all(each["part"][1:] == part[1:] for each in self._parts)
            self._parts = [*self._parts, data] if is_next and is_same else []
            if part[0] == 0:
                self._parts = [data]
            if len(self._parts) != part[1]:
                return False
            self.open = {}
        for whole in self._parts or [data]:
            for key in whole.get("closed", ()):
                self.open.pop(key, None)
            for key, position, _tries, _is_parked in whole.get("open", ()):
                self.open[key] = position
        self._parts = []
        self.scanned = data["scanned"]
        self.count += 1
        return True


class Judge:
    def __init__(self, jobs):
        self.expected = jobs
        self.faults = []
        self.jobs = {}
        self.by_key = {}
        self.checkpoints = Checkpoints()

    def blame(self, rule, text):
        self.faults.append((rule, text))

    def judge(self, events, lines):
        """Takes the events of the log in order, and (number, microseconds) of all files."""
        states = []
        for event in events:
            if event["type"] == "Job":
                self.take_job(event)
            elif event["type"] == "Result":
                self.take_result(event)
            elif event["type"] == "ConsumerCheckpoint":
                states.append(event)
        for number, at_us in lines:
            if number in self.jobs:
                self.jobs[number].lines.append(at_us)
            else:
                self.blame("numbers", f"a worker was given {number}, which is no job")
        self.judge_jobs()
        self.judge_order()
        self.judge_states(states)
        return self.faults

    def take_job(self, event):
        job = Job(event["data"]["n"], value_of(event, "k"), event["position"])
        if job.number in self.jobs:
            self.blame("numbers", f"job {job.number} is in the log again at {job.position}")
            return
        self.jobs[job.number] = job
        self.by_key.setdefault(job.key, []).append(job)

    def take_result(self, event):
        number = event["data"]["n"]
        job = self.jobs.get(number)
        if job is None:
            self.blame("numbers", f"result {event['position']} of {number} precedes its job")
            return
        if event["data"]["key"] != job.key:
            self.blame("key", f"result {event['position']} of {number} has another key")
        job.results.append((event["position"], microseconds(event["recorded_at"])))

    def judge_jobs(self):
        count = len(self.jobs) if self.expected is None else self.expected
        if sorted(self.jobs) != list(range(count)):
            self.blame("numbers", f"{len(self.jobs)} jobs, expected 0 to {count - 1}")
        for job in self.jobs.values():
            if job.first_effect_us() is None:
                self.blame("neither", f"job {job.number} of key {job.key} has no effect")
            if len(job.results) > 1:
                self.blame("twice", f"job {job.number} has results at {job.results}")
            durable_us = min((at_us for _, at_us in job.results), default=None)
            for at_us in job.lines:
                if durable_us is not None and at_us > durable_us + PATIENCE_US:
                    late_s = (at_us - durable_us) / 1e6
                    self.blame("again", f"job {job.number} was begun {late_s:.1f} s late")

    def judge_order(self):
        for key, jobs in self.by_key.items():
            effective = [job for job in jobs if job.first_effect_us() is not None]
            for former, later in zip(effective, effective[1:]):
                if not self.precedes(former, later):
                    self.blame("order", f"key {key}: {later.number} came before {former.number}")

    @staticmethod
    def precedes(former, later):
        if not former.lines and not later.lines:
            return former.results[0][0] < later.results[0][0]
        return former.first_effect_us() <= later.first_effect_us()

    def judge_states(self, states):
        """Each state against the effects before it; a job that passed once need not again."""
        positions = {key: [job.position for job in jobs] for key, jobs in self.by_key.items()}
        passed = dict.fromkeys(positions, 0)
        last = max((job.position for job in self.jobs.values()), default=0)
        for event in states:
            if not self.checkpoints.take(event["data"]):
                continue
            scanned, opened = self.checkpoints.scanned, self.checkpoints.open
            until_us = microseconds(event["recorded_at"])
            for key, of_key in positions.items():
                before = min(opened.get(key, scanned + 1), scanned + 1)
                claimed = bisect.bisect_left(of_key, before)
                for job in self.by_key[key][passed[key]:claimed]:
                    has_result = any(at < event["position"] for at, _ in job.results)
                    if not has_result and not any(at_us <= until_us for at_us in job.lines):
                        self.blame(
                            "checkpoint",
                            f"{event['position']} says that job {job.number} is settled",
                        )
                passed[key] = max(passed[key], claimed)
        if self.checkpoints.open:
            self.blame("end", f"{len(self.checkpoints.open)} keys are open at the end")
        if self.checkpoints.scanned < last:
            self.blame("end", f"scanned to {self.checkpoints.scanned}, the last job is at {last}")

    def summary(self):
        jobs = self.jobs.values()
        both = sum(bool(job.results) and bool(job.lines) for job in jobs)
        by_file = sum(not job.results for job in jobs)
        again = sum(max(len(job.lines) - 1, 0) for job in jobs)
        return (
            f"{len(self.jobs)} jobs of {len(self.by_key)} keys: {len(self.jobs) - by_file} with a"
            f" result ({both} of them in a file, too), {by_file} in a file only,"
            f" {again} lines repeated; {self.checkpoints.count} checkpoints"
        )


def read_lines(folder):
    """What the files of workers say; a worker that was killed may have left half a line."""
    for path in sorted(pathlib.Path(folder).glob("*.lines")):
        for line in path.read_text().split("\n")[:-1]:
            number, at_us = line.split("\t")
            yield int(number), int(at_us)


def tell(faults):
    for rule, text in faults[:20]:
        print(f"AT FAULT {rule}: {text}")
    if len(faults) > 20:
        print(f"… {len(faults)} in all")


def main(words):
    is_spoiling = "--spoil" in words
    words = [word for word in words if word != "--spoil"]
    jobs = None
    if "--jobs" in words:
        at = words.index("--jobs")
        jobs = int(words[at + 1])
        del words[at:at + 2]
    if len(words) != 2:
        sys.exit(__doc__)
    with open(words[0], encoding="utf-8") as export:
        events = [json.loads(line) for line in export]
    lines = list(read_lines(words[1]))
    judge = Judge(jobs)
    faults = judge.judge(events, lines)
    print(judge.summary())
    tell(faults)
    if faults:
        return 1
    print("no fault")
    if is_spoiling:
        return prove(events, lines, len(judge.jobs))
    return 0


def prove(events, lines, jobs):
    """Whether each spoiled copy is found at fault, by the rule that it breaks."""
    is_blind = False
    for name, rule, change in spoil.ALL:
        try:
            spoiled, left = change(list(events), list(lines))
        except spoil.NothingToSpoil:
            print(f"spoiled: {name}: this history has nothing of the kind")
            continue
        found = {broken for broken, _ in Judge(jobs).judge(spoiled, left)}
        verdict = "found" if rule in found else f"MISSED: {sorted(found)}"
        is_blind |= rule not in found
        print(f"spoiled: {name}: {verdict}")
    return int(is_blind)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
