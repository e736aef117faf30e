#!/usr/bin/env bash
# POST /e with an empty log and with a long one, in turns: requests/s, latencies and the server's CPU time for
# each request. The long log is filled through POST /e with NDJSON, then written back to the disk before
# anything is measured.
# Environment: GROWTH_EVENTS (50000000; takes some GB of disk), ROUNDS (6), SECS measured a run (3), WARMUP
# (0.5), CONNECTIONS ("64"), BENCH_BIN; see servers.sh.
source "$(dirname "$0")/servers.sh"
source ./ingest.sh
events=${GROWTH_EVENTS:-50000000}
# Twice what an event of 7 bytes was seen to take.
needed_mib=$(( events * 160 / 1048576 + 1024 ))
free_mib=$(df -Pm "$work" | awk 'NR == 2 { print $4 }')
if (( free_mib < needed_mib )); then
    echo "$work has $free_mib MiB free; $events events may take $needed_mib" >&2
    exit 1
fi
full=wellspring-full empty=wellspring-empty
start_ingest $full
timeout 480 "$wsbench" ingest-fill --server-name $full --address "${address[$full]}" --events "$events" --out "$out"
sync
for (( round = 0; round < ${ROUNDS:-6}; round++ )); do
    start_ingest $empty
    for connections in ${CONNECTIONS:-64}; do
        for label in $(in_turns "$round" $empty $full); do
            one ingest "$label" --bench "$bench" --server-pid "${pid[$label]}" \
                --connections "$connections" --warmup "${WARMUP:-0.5}"
        done
    done
    stop $empty
    rm -rf "${work:?}/$empty"
done
report "Ingest: POST /e as the log grows, empty and from $events events on"
