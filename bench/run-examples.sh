#!/usr/bin/env bash
# The log as a library, in process (crates/log/examples): EXAMPLE is `embedded` (appends and a read of everything, one
# thread, barriers included) or `journals` (a shared log in memory against files, its follower, and stepping down).
# Environment: EXAMPLE (embedded); see servers.sh.
serverless=1 plain=1
source "$(dirname "$0")/servers.sh"
example=${EXAMPLE:-embedded} PART=${EXAMPLE:-embedded}
CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-1} cargo build --release --quiet --locked --manifest-path ../Cargo.toml -p wellspring-log --example "$example"
program=../target/release/examples/$example
case $example in
    embedded) "$program" "$work/log" bench ;;
    journals) "$program" ;;
    *) echo "no example is called $example" >&2; exit 64 ;;
esac | tee "$work/told.txt"
python3 - "$work/told.txt" >> "$out" <<'PY'
import json, re, sys
def row(**members):
    print(json.dumps(members))
for line in open(sys.argv[1]):
    if found := re.match(r"(\d+ event\(s\) an append).*: p50 ([\d.]+) µs, (\d+) events/s", line):
        row(case=found[1], p50_us=float(found[2]), value=float(found[3]))
    elif found := re.match(r"reading all .*: (\d+) events/s", line):
        row(case="reading all", value=float(found[1]))
    elif found := re.match(r"round (\d+): files (\d+)/s, shared (\d+)/s, follower (\d+)/s; one client (\d+)/s and (\d+)/s; "
                           r"steps down in ([\d.]+) ms", line):
        number, *values = map(float, found.groups())
        named = (("64 clients", "files"), ("64 clients", "shared"), ("64 clients", "follower"), ("1 client", "files"),
                 ("1 client", "shared"), ("step down", ""))
        for (case, server), value in zip(named, values):
            row(case=case, server=server, round=int(number), value=value)
PY
report "The log in process: $example"
