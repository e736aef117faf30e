#!/usr/bin/env bash
# Start of the process to its first answer, and resident memory then: an empty store, and one of EVENTS events
# with warm and cold page cache. UmaDB's figures include the Python interpreter its wheel starts in.
# Environment: ROUNDS (5), EVENTS (1000000; the goal speaks of 10000000); see servers.sh.
source "$(dirname "$0")/servers.sh"
install_umadb
events=${EVENTS:-1000000}
kinds=(wellspring umadb); [ "$wellspring" = null ] && kinds=(umadb) # the null server keeps nothing to open
binary() { if [ "$1" = umadb ]; then echo "$umadb"; else echo "$wellspring"; fi; }
for kind in "${kinds[@]}"; do
    start "$kind" "$kind" none
    "$wsbench" fill --server "$kind" --address "${address[$kind]}" --events "$events"
    printf '{"case":"most memory while filling","server":"%s","value":%s}\n' "$kind" \
        "$(awk '/^VmHWM:/ { print $2 / 1024 }' "/proc/${pid[$kind]}/status")" >> "$out"
    stop "$kind"
done
for (( round = 0; round < ${ROUNDS:-5}; round++ )); do
    for kind in $(in_turns "$round" "${kinds[@]}"); do
        empty=$work/empty-$kind-$round
        mkdir "$empty"
        "$wsbench" open --server "$kind" --binary "$(binary "$kind")" --data "$empty" --round "$round" $(client_flags none)
        rm -rf "$empty"
        for cold in false true; do
            "$wsbench" open --server "$kind" --binary "$(binary "$kind")" --data "$work/$kind" --size "$events" \
                --cold "$cold" --round "$round" $(client_flags none)
        done
    done
done
report "Opening"
