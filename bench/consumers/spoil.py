"""Spoiled histories: a judge that takes one of them for a good one is of no use.

Each takes events and lines, and returns changed ones; the rule that is broken stands beside it.
"""

import copy


class NothingToSpoil(Exception):
    """The history has nothing of what is to be spoiled."""


def _results(events, lines):
    """Places of the results of jobs that no file knows."""
    in_files = {number for number, _ in lines}
    return [
        place
        for place, event in enumerate(events)
        if event["type"] == "Result" and event["data"]["n"] not in in_files
    ]


def _of_one_key(events, lines):
    """Places of two results of one key."""
    seen = {}
    for place in _results(events, lines):
        key = events[place]["data"]["key"]
        if key in seen:
            return seen[key], place
        seen[key] = place
    raise NothingToSpoil


def drop_result(events, lines):
    del events[_results(events, lines)[-1]]
    return events, lines


def double_result(events, lines):
    place = _results(events, lines)[len(_results(events, lines)) // 2]
    again = copy.deepcopy(events[place])
    again["position"] = events[-1]["position"] + 1
    return [*events, again], lines


def swap_results(events, lines):
    former, later = _of_one_key(events, lines)
    for place, data in ((former, events[later]["data"]), (later, events[former]["data"])):
        events[place] = {**events[place], "data": data}
    return events, lines


def give_another_key(events, lines):
    place = _results(events, lines)[0]
    data = {**events[place]["data"], "key": "another"}
    events[place] = {**events[place], "data": data}
    return events, lines


def drop_job(events, lines):
    places = [place for place, event in enumerate(events) if event["type"] == "Job"]
    del events[places[len(places) // 2]]
    return events, lines


def double_job(events, lines):
    job = next(event for event in events if event["type"] == "Job")
    return [*events, {**job, "position": events[-1]["position"] + 1}], lines


def drop_lines(events, lines):
    """Loses the lines of a job that has no result."""
    with_result = {event["data"]["n"] for event in events if event["type"] == "Result"}
    victim = next((number for number, _ in lines if number not in with_result), None)
    if victim is None:
        raise NothingToSpoil
    return events, [line for line in lines if line[0] != victim]


def late_line(events, lines):
    """A worker begins a job a day after its result."""
    number = events[_results(events, lines)[0]]["data"]["n"]
    return events, [*lines, (number, max(at_us for _, at_us in lines) + 86_400_000_000)]


def early_checkpoint(events, lines):
    """The last checkpoint comes before the last result."""
    last_result = _results(events, lines)[-1]
    places = [place for place, event in enumerate(events) if event["type"] == "ConsumerCheckpoint"]
    after = [place for place in places if place > last_result][-1]
    moved = {**events[after], "position": events[last_result]["position"] - 1}
    moved["recorded_at"] = events[last_result - 1]["recorded_at"]
    kept = [event for place, event in enumerate(events) if place < last_result]
    return [*kept, moved, *events[last_result:after], *events[after + 1:]], lines


def no_end(events, lines):
    """The log ends before the last checkpoints."""
    last_result = _results(events, lines)[-1]
    kept = [
        event
        for place, event in enumerate(events)
        if place <= last_result or event["type"] != "ConsumerCheckpoint"
    ]
    return kept, lines


ALL = [
    ("a result is missing", "neither", drop_result),
    ("a result is there twice", "twice", double_result),
    ("two results of a key are swapped", "order", swap_results),
    ("a result has another key", "key", give_another_key),
    ("a job is missing", "numbers", drop_job),
    ("a job is there twice", "numbers", double_job),
    ("a file lost its line", "neither", drop_lines),
    ("a job is begun after its result", "again", late_line),
    ("a checkpoint is ahead of the results", "checkpoint", early_checkpoint),
    ("the last checkpoints are missing", "end", no_end),
]
