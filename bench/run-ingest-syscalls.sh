#!/usr/bin/env bash
# System calls for each POST /e, by name: strace -f -c on the running server while a bounded number of requests
# is answered. Under strace the server is slower than its clients, so more is ready at each look and calls that
# serve several requests are shared by more of them than in a run without it; recv and send are what they are.
# Environment: REQUESTS (50000), CONNECTIONS ("1 64"), SERVERS ("wellspring wellspring-general floor-epoll
# floor-uring"), BENCH_BIN; see servers.sh. Needs strace.
command -v strace > /dev/null || { echo "strace is missing: apt-get install strace" >&2; exit 1; }
source "$(dirname "$0")/servers.sh"
source ./ingest.sh
requests=${REQUESTS:-50000}
read -ra servers <<< "${SERVERS:-wellspring wellspring-general floor-epoll floor-uring}"
counts=$work/counts
trace=

# strace is a process of ours, too: it ends with us, whatever happens.
end_trace() {
    [ -n "$trace" ] || return 0
    # Until it is gone: one signal may come just before strace waits for the next call, and be slept over.
    while kill -INT "$trace" 2> /dev/null; do sleep 0.2; done
    wait "$trace" 2> /dev/null || true
    trace=
}
trap 'end_trace; clean_up' EXIT

# traced LABEL CONNECTIONS: the table of strace for REQUESTS requests, start and end of the connections included.
traced() {
    local label=$1 connections=$2
    strace -f -c -U calls,name -o "$counts" -p "${pid[$label]}" > "$work/strace.log" 2>&1 &
    trace=$!
    for _ in $(seq 100); do
        grep -q attached "$work/strace.log" && break
        sleep 0.1
    done
    grep -q attached "$work/strace.log" || { cat "$work/strace.log" >&2; exit 1; }
    taskset -c "$client_core" "$bench" bench -c "$connections" -t 1 -n "$requests" -m POST -d '{"e":1}' \
        --expect 202 --fail-if 'failure_rate>0%' --no-headroom -q "http://${address[$label]}/e" > "$work/bench.log" 2>&1 || {
        cat "$work/bench.log" >&2; exit 1
    }
    # What was accepted is stored now, and that counts.
    sleep 0.5
    end_trace
}

# rows LABEL CONNECTIONS: Markdown rows, and JSON lines into results. What happens less than once in 200 requests
# (connections, a thread's start) is one row, and line by line in the JSON.
rows() {
    awk -v label="$1" -v connections="$2" -v requests="$requests" -v out="$out" '
        $1 ~ /^[0-9]+$/ && $2 != "total" {
            if ($1 * 200 < requests) { rare += $1; names = names (names == "" ? "" : ", ") $2 }
            else printf "| %d | %s | %s | %d | %.4f |\n", connections, label, $2, $1, $1 / requests
            printf "{\"measurement\":\"ingest-syscalls\",\"connections\":%d,\"server\":\"%s\",\"call\":\"%s\",\"calls\":%d,\"requests\":%d}\n", \
                connections, label, $2, $1, requests >> out
            sum += $1
        }
        END {
            if (rare) printf "| %d | %s | rare: %s | %d | %.4f |\n", connections, label, names, rare, rare / requests
            printf "| %d | %s | **all** | %d | **%.4f** |\n", connections, label, sum, sum / requests
        }' "$counts"
}

table=$work/table
for connections in ${CONNECTIONS:-1 64}; do
    for label in "${servers[@]}"; do
        start_ingest "$label"
        traced "$label" "$connections"
        rows "$label" "$connections" >> "$table"
        stop "$label"
        rm -rf "${work:?}/$label"
    done
done
{
    heading "System calls for each POST /e, $requests requests"
    echo "| connections | server | call | calls | a request |"
    echo "|---|---|---|---|---|"
    cat "$table"
}
