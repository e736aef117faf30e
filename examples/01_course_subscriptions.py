#!/usr/bin/env python3
"""Course subscriptions: one decision guards rules of two entities, course and student.

Rules: a course id is defined once; a course takes no more students than its
capacity, which may change; a student joins at most ten courses, each once.
A subscription is one event with two tags, so no saga and no large aggregate is
needed: the decision reads exactly the events its rules depend on, and only a
change to those makes it start over.
"""

from demo import Refused, chapter, check, check_refused, event, fresh_log, race, say, succeeded
from wellspring import projection

MAX_COURSES = 10


def define_course(log, course, capacity):
    tag = f"course:{course}"

    def decision(states):
        if states["defined"]:
            raise Refused(f"course {course} is already defined")
        return [event("CourseDefined", [tag], course=course, capacity=capacity)]

    return log.decide({"defined": projection("count", ["CourseDefined"], [tag])}, decision)


def change_capacity(log, course, capacity):
    tag = f"course:{course}"
    types = ["CourseDefined", "CourseCapacityChanged"]

    def decision(states):
        if states["capacity"] is None:
            raise Refused(f"course {course} is not defined")
        if states["capacity"] == capacity:
            raise Refused(f"the capacity is {capacity} already")
        return [event("CourseCapacityChanged", [tag], course=course, capacity=capacity)]

    return log.decide({"capacity": projection({"last": "/capacity"}, types, [tag])}, decision)


def subscribe(log, student, course):
    course_tag, student_tag = f"course:{course}", f"student:{student}"
    subscribed = ["StudentSubscribed"]
    projections = {
        "capacity": projection(
            {"last": "/capacity"}, ["CourseDefined", "CourseCapacityChanged"], [course_tag]
        ),
        "in_course": projection("count", subscribed, [course_tag]),
        "of_student": projection("count", subscribed, [student_tag]),
        "both": projection("count", subscribed, [course_tag, student_tag]),
    }

    def decision(states):
        if states["capacity"] is None:
            raise Refused(f"course {course} is not defined")
        if states["both"]:
            raise Refused(f"{student} has joined {course} already")
        if states["in_course"] >= states["capacity"]:
            raise Refused(f"course {course} is full")
        if states["of_student"] >= MAX_COURSES:
            raise Refused(f"{student} has joined {MAX_COURSES} courses")
        tags = [course_tag, student_tag]
        return [event("StudentSubscribed", tags, student=student, course=course)]

    return log.decide(projections, decision)


def subscriptions(log, key):
    """Number of subscriptions by the value of a tag key, as the server groups them."""
    by_key = {"group": {"by": {"tag": key}, "reduce": "count"}}
    return log.project({"n": projection(by_key, ["StudentSubscribed"])}).states["n"] or {}


def main(log):
    chapter("Courses are defined once and their capacity can change")
    define_course(log, "maths", 2)
    check_refused(lambda: define_course(log, "maths", 9), "a second definition is refused")
    subscribe(log, "ada", "maths")
    subscribe(log, "ben", "maths")
    check_refused(lambda: subscribe(log, "cleo", "maths"), "a third student is refused")
    check_refused(lambda: change_capacity(log, "maths", 2), "the same capacity is refused")
    change_capacity(log, "maths", 3)
    subscribe(log, "cleo", "maths")
    check_refused(lambda: subscribe(log, "ada", "maths"), "joining twice is refused")
    check_refused(lambda: subscribe(log, "ada", "magic"), "an unknown course is refused")

    chapter("Twenty students rush for the five seats of one course")
    define_course(log, "physics", 5)
    rush = [lambda i=i: subscribe(log, f"student-{i}", "physics") for i in range(20)]
    results = race(rush)
    say(f"{len(succeeded(results))} got in, {20 - len(succeeded(results))} were refused")
    check(len(succeeded(results)) == 5, "exactly five subscriptions succeeded")
    check(subscriptions(log, "course")["physics"] == 5, "and the log holds exactly five")

    chapter("One student tries to join fifteen courses at the same moment")
    for i in range(15):
        define_course(log, f"course-{i}", 100)
    results = race([lambda i=i: subscribe(log, "dora", f"course-{i}") for i in range(15)])
    check(len(succeeded(results)) == MAX_COURSES, "ten succeeded, though no two share a course")
    check(subscriptions(log, "student")["dora"] == MAX_COURSES, "and the log holds exactly ten")


if __name__ == "__main__":
    with fresh_log("course-subscriptions") as fresh:
        main(fresh)
