#!/usr/bin/env bash
# POST /e: requests/s, latencies and the server's CPU time for each request, against the epoll and io_uring
# floors and a hyper hello-world (bench/floor), all in one run and in turns; every 202 is counted in the log
# afterwards. Then the original's kind of client, which takes every read for one answer.
# Environment: ROUNDS (4), SECS measured a run (3), WARMUP (0.5), CONNECTIONS ("1 8 64 256"), READ_CONNECTIONS
# ("8 64"), SERVERS ("wellspring wellspring-general floor-epoll floor-uring hyper"; -general is
# --lean-loop false), BENCH_BIN (the load tester, default ../target/release/wellspring); see servers.sh.
source "$(dirname "$0")/servers.sh"
source ./ingest.sh
read -ra servers <<< "${SERVERS:-wellspring wellspring-general floor-epoll floor-uring hyper}"
for (( round = 0; round < ${ROUNDS:-4}; round++ )); do
    for label in "${servers[@]}"; do start_ingest "$label"; done
    for connections in ${CONNECTIONS:-1 8 64 256}; do
        for label in $(in_turns "$round" "${servers[@]}"); do
            one ingest "$label" --bench "$bench" --server-pid "${pid[$label]}" \
                --connections "$connections" --warmup "${WARMUP:-0.5}"
        done
    done
    for connections in ${READ_CONNECTIONS:-8 64}; do
        for label in $(in_turns "$round" "${servers[@]}"); do
            one read-counter "$label" --connections "$connections"
        done
    done
    stop_all
    # Each round begins with an empty log; what a long one costs is run-ingest-growth.sh's question.
    for label in "${servers[@]}"; do rm -rf "${work:?}/$label"; done
done
report "Ingest: POST /e"
