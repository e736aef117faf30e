#!/usr/bin/env bash
# NDJSON events a second of `wellspring import`, client and server on this machine, and the processor time both took:
# binaries in turns, each round on a fresh server. Two shapes: orders (a tag of 100,000 and one of its own) and
# clicks (one type, one of ten tags).
# Usage: run-import.sh [BINARY …], by their whole paths. Environment: EVENTS (2000000), ROUNDS (3), BENCH_TMP, BENCH_BOOST=1 (own
# autogroup at nice -15: elsewhere's load counts less).
set -euo pipefail
if [ "${BENCH_BOOST:-0}" = 1 ] && [ -z "${BENCH_BOOSTED:-}" ]; then
    export BENCH_BOOSTED=1
    exec setsid -w bash -c 'echo -15 > /proc/self/autogroup 2>/dev/null || true; exec "$@"' - "$0" "$@"
fi
cd "$(dirname "${BASH_SOURCE[0]}")"
[ $# -gt 0 ] || set -- "${WELLSPRING_BIN:-$PWD/../target/release/wellspring}"
events=${EVENTS:-2000000}
work=$(mktemp -d -p "${BENCH_TMP:-/tmp}" import.XXXXXX)
out=${OUT:-$work/rows.jsonl}
trap 'rm -rf "$work"' EXIT
python3 - "$events" "$work" <<'PYTHON'
import random, sys
random.seed(1)
events, work = int(sys.argv[1]), sys.argv[2]
with open(work + "/orders.ndjson", "w") as orders, open(work + "/clicks.ndjson", "w") as clicks:
    for i in range(events):
        orders.write('{"type":"OrderPlaced","tags":["customer:%d","order:%d"],"data":{"amount":%d.%02d,"currency":"EUR","item":"sku-%05d"}}\n'
            % (random.randrange(100000), i, random.randrange(500), random.randrange(100), random.randrange(20000)))
        clicks.write('{"type":"Clicked","tags":["page:%d"],"data":{"n":%d}}\n' % (i % 10, i))
PYTHON
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
for shape in orders clicks; do
    for (( round = 1; round <= ${ROUNDS:-3}; round++ )); do
        for binary in "$@"; do
            port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
            "$binary" serve --data "$work/data" --listen "127.0.0.1:$port" 2>"$work/log" & server=$!
            until curl --silent --fail "http://127.0.0.1:$port/health" >/dev/null; do sleep 0.05; done
            before=$(ticks $server); begun=$(date +%s.%N)
            TIMEFORMAT='%U %S'
            client=$( { time "$binary" import "$work/$shape.ndjson" --url "http://127.0.0.1:$port" 2>/dev/null; } 2>&1 )
            ended=$(date +%s.%N); after=$(ticks $server)
            most=$(awk '/^VmHWM:/ { print $2 }' "/proc/$server/status")
            kill $server; wait $server || true
            rm -rf "$work/data"
            awk -v shape=$shape -v round=$round -v binary="$binary" -v first="$1" -v events=$events -v begun=$begun -v ended=$ended \
                -v server=$((after - before)) -v client="$client" -v most="$most" 'BEGIN {
                split(client, c, " ")
                printf "{\"case\":\"%s\",\"round\":%d,\"server\":\"%s\",\"rate\":%.0f,\"server_us\":%.3f,\"client_us\":%.3f,\"most_mib\":%.1f}\n",
                    shape, round, binary == first ? "wellspring" : binary, events / (ended - begun), server * 1e4 / events, (c[1] + c[2]) * 1e6 / events, most / 1024 }' |
                tee -a "$out"
        done
    done
done
./figures.py import "$out"
