#!/usr/bin/env python3
"""A row for figures.py from a result of `wellspring bench`: load_row.py RESULT KEY=VALUE…
EVENTS_EACH: events of a request, which `rate` counts (1)."""
import json
import os
import sys

path, *members = sys.argv[1:]
with open(path) as file:
    run = json.load(file)["steps"][0]["runs"][0]
endpoint = run["endpoints"][0]
tally, times = endpoint["counters"], endpoint["service"]
row = {"round": 0} | {name: int(value) if value.isdigit() else value for name, _, value in (m.partition("=") for m in members)}
if not tally["successes"] or tally["errors"] or not all(status[0] in "23" for status in tally["statuses"]):
    sys.exit(f"not trusted: {row} {tally}")
row |= {
    "rate": tally["successes"] / (run["measured_ns"] / 1e9) * int(os.environ.get("EVENTS_EACH", 1)),
    "mean_us": times["sum_ns"] / times["count"] / 1e3, "p50_us": times["quantiles_ns"]["p50"] / 1e3,
}
if "p99" in times["quantiles_ns"]:
    row["p99_us"] = times["quantiles_ns"]["p99"] / 1e3
if run.get("server"):
    row["cpu_us"] = run["server"]["cpu_ns"] / 1e3 / tally["successes"]
print(json.dumps(row))
