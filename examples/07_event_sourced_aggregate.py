#!/usr/bin/env python3
"""Event-sourced aggregate: the classic pattern works unchanged on a DCB event store.

An aggregate's stream is simply the events with its tag; its version is the
position of the last of them; the usual optimistic lock is an append condition
that no later event has that tag. So existing aggregates can move in as they
are, and rules that span several of them can use projections beside them.
"""

from demo import (
    ATTEMPTS,
    Refused,
    chapter,
    check,
    check_refused,
    event,
    fresh_log,
    pause,
    race,
    say,
    succeeded,
)
from wellspring import ConditionFailed, matching, projection, unless_changed


class Course:
    """The aggregate: rules inside, no knowledge of any store."""

    def __init__(self):
        self.id = None
        self.capacity = 0
        self.students = set()
        self.recorded = []

    @classmethod
    def create(cls, course, capacity):
        self = cls()
        self._record("CourseDefined", course=course, capacity=capacity)
        return self

    def change_capacity(self, capacity):
        if capacity == self.capacity:
            raise Refused(f"the capacity is {capacity} already")
        if capacity < len(self.students):
            raise Refused(f"{len(self.students)} students have joined already")
        self._record("CourseCapacityChanged", capacity=capacity)

    def subscribe(self, student):
        if student in self.students:
            raise Refused(f"{student} has joined already")
        if len(self.students) >= self.capacity:
            raise Refused(f"course {self.id} is full")
        self._record("StudentSubscribed", student=student)

    def _record(self, event_type, **data):
        self.apply(event_type, data)
        self.recorded.append((event_type, data))

    def apply(self, event_type, data):
        if event_type == "CourseDefined":
            self.id, self.capacity = data["course"], data["capacity"]
        elif event_type == "CourseCapacityChanged":
            self.capacity = data["capacity"]
        elif event_type == "StudentSubscribed":
            self.students.add(data["student"])


class CourseRepository:
    """Loads and saves aggregates; the only part that knows of the log."""

    def __init__(self, log):
        self.log = log
        self.versions = {}

    def load(self, course):
        aggregate, version = Course(), 0
        for found in self.log.read(matching(tags=[f"course:{course}"])):
            aggregate.apply(found.type, found.data)
            version = found.position
        if version == 0:
            raise Refused(f"course {course} is not defined")
        self.versions[aggregate] = version
        return aggregate

    def save(self, aggregate):
        """Raises ConditionFailed if the aggregate has changed since it was loaded."""
        tags = [f"course:{aggregate.id}"]
        condition = unless_changed(matching(tags=tags), after=self.versions.get(aggregate, 0))
        answer = self.log.append([event(kind, tags, **data) for kind, data in aggregate.recorded], condition)
        self.versions[aggregate] = answer.last
        aggregate.recorded.clear()


def change(log, course, command):
    """Load, command, save; after a conflict from the start."""
    for attempt in range(ATTEMPTS):
        repository = CourseRepository(log)
        aggregate = repository.load(course)
        command(aggregate)
        try:
            return repository.save(aggregate)
        except ConditionFailed:
            pause(attempt)
    raise RuntimeError(f"gave up after {ATTEMPTS} attempts")


def main(log):
    chapter("An aggregate is created, changed and loaded again")
    repository = CourseRepository(log)
    course = Course.create("maths", 2)
    course.subscribe("ada")
    repository.save(course)
    course.change_capacity(3)
    repository.save(course)
    loaded = CourseRepository(log).load("maths")
    check((loaded.capacity, loaded.students) == (3, {"ada"}), "it comes back as it was saved")
    check_refused(lambda: loaded.subscribe("ada"), "its rules hold")
    check_refused(lambda: repository.load("magic"), "an unknown course is refused")

    chapter("Two editors work on the same version")
    first, second = CourseRepository(log), CourseRepository(log)
    mine, theirs = first.load("maths"), second.load("maths")
    mine.subscribe("ben")
    theirs.change_capacity(1)
    results = race([lambda: first.save(mine), lambda: second.save(theirs)])
    check(len(succeeded(results)) == 1, "one is saved, the other is told of the conflict")

    chapter("Creating the same course twice at the same moment")
    results = race([lambda: CourseRepository(log).save(Course.create("art", 5)) for _ in range(8)])
    check(len(succeeded(results)) == 1, "exactly one creation succeeded")

    chapter("Sixteen students rush for five seats")
    results = race([lambda i=i: change(log, "art", lambda c: c.subscribe(f"s{i}")) for i in range(16)])
    say(f"{len(succeeded(results))} got in, {16 - len(succeeded(results))} were refused")
    check(len(succeeded(results)) == 5, "exactly five subscriptions were saved")
    check(len(CourseRepository(log).load("art").students) == 5, "and the aggregate has five students")

    chapter("Other courses are not disturbed, and projections see the same events")
    joined = projection("count", ["StudentSubscribed"], ["course:art"])
    check(log.project({"joined": joined}).states["joined"] == 5, "the server counts five as well")


if __name__ == "__main__":
    with fresh_log("event-sourced-aggregate") as fresh:
        main(fresh)
