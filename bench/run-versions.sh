#!/usr/bin/env bash
# Two builds against each other, in turns on the same machine: durable appends of 1 and 64 clients, plain and
# conditional; reads of the whole log and of one tag; POST /e. What a change costs the hot paths is read off here.
# Environment: OLD_BIN (the build of before; required), WELLSPRING_BIN (the new one), ROUNDS (4), SECS (3),
# EVENTS (500000) that are read, INGEST (64) connections of POST /e; see servers.sh.
# shellcheck disable=SC2154 # servers.sh sets them
source "$(dirname "$0")/servers.sh"
old=${OLD_BIN:?name the build of before in OLD_BIN}
new=$wellspring
bench=${BENCH_BIN:-$new}
events=${EVENTS:-500000}
rounds=${ROUNDS:-4} secs=${SECS:-3}
# one LABEL SUBCOMMAND [FLAG…]: a measurement of one build.
one() {
    local label=$1 subcommand=$2; shift 2
    # shellcheck disable=SC2046 # flags are words
    "$wsbench" "$subcommand" --server wellspring --server-name "$label" --address "${address[$label]}" \
        --round "$round" $(client_flags pinned) "$@"
}
for label in old wellspring; do
    wellspring=$([ "$label" = old ] && echo "$old" || echo "$new") start "$label" wellspring pinned --threads 1
    "$wsbench" fill --server wellspring --address "${address[$label]}" --events "$events" --customers $(( events / 10 ))
done
for (( round = 0; round < rounds; round++ )); do
    # What is read has been filled in alike, before anything is appended to one of them.
    for label in $(in_turns "$round" old wellspring); do
        one "$label" reads --size "$events" --customers $(( events / 10 )) --count 2000
    done
done
for (( round = 0; round < rounds; round++ )); do
    for mode in plain conditional; do
        for clients in 1 64; do
            for label in $(in_turns "$round" old wellspring); do
                one "$label" append-throughput --mode "$mode" --server-pid "${pid[$label]}" --connections "$clients" --seconds "$secs"
            done
        done
    done
    for label in $(in_turns "$round" old wellspring); do
        one "$label" ingest --bench "$bench" --server-pid "${pid[$label]}" --connections "${INGEST:-64}" --seconds "$secs"
    done
done
report "Two builds"
