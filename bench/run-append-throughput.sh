#!/usr/bin/env bash
# Appends per second at 64 clients in a closed loop, one event each, plain and conditional, against UmaDB over
# gRPC in its fastest form: a connection each, 8 connections × 8 streams, and its pipelined writer.
# The null server tells the client's own ceiling.
# Environment: ROUNDS (4), SECS measured a run (5), CLIENTS (64), MODES, PINNINGS, FILL (10000); see servers.sh.
source "$(dirname "$0")/servers.sh"
install_umadb
clients=${CLIENTS:-64}
modes=${MODES:-plain conditional}
one() { # LABEL SERVER-NAME DIALECT MODE ROUND [FLAG…]
    local label=$1 server=$2 dialect=$3 mode=$4 round=$5; shift 5
    "$wsbench" append-throughput --server "$dialect" --server-name "$server" --address "${address[$label]}" \
        --server-pid "${pid[$label]}" --mode "$mode" --seconds "${seconds:-${SECS:-5}}" --round "$round" \
        $(client_flags "$pinning") "$@"
}
for pinning in ${PINNINGS:-pinned none}; do
    start ours wellspring "$pinning"
    start peer umadb "$pinning"
    start peer-pipelined umadb "$pinning" --pipelined-writer true
    "$wsbench" fill --server wellspring --address "${address[ours]}" --events "${FILL:-10000}"
    for label in peer peer-pipelined; do
        "$wsbench" fill --server umadb --address "${address[$label]}" --events "${FILL:-10000}"
    done
    for (( round = 0; round < ${ROUNDS:-4}; round++ )); do
        for mode in $modes; do
            for who in $(in_turns "$round" ours peer peer-shared peer-pipelined); do
                case $who in
                    ours) one ours wellspring wellspring "$mode" "$round" --connections "$clients" ;;
                    peer) one peer umadb umadb "$mode" "$round" --connections "$clients" ;;
                    peer-shared) one peer umadb-8x8 umadb "$mode" "$round" --connections 8 --streams $((clients / 8)) ;;
                    peer-pipelined) one peer-pipelined umadb-pipelined umadb "$mode" "$round" --connections "$clients" ;;
                esac
            done
        done
    done
    stop_all
    seconds=2
    start null null "$pinning"
    for mode in $modes; do
        one null null-http wellspring "$mode" 0 --connections "$clients"
        one null null-grpc umadb "$mode" 0 --connections "$clients"
    done
    stop_all
    unset seconds
    rm -rf "$work"/ours "$work"/peer*
done
report "Appends per second, $clients clients"
