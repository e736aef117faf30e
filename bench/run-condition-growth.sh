#!/usr/bin/env bash
# Conditional append p50 at one client for every query shape, at several sizes of the log. One server for each
# size, all running, measured in turns: what differs between the columns is the size and not the hour.
# Environment: ROUNDS (4), COUNT appends per shape and round (200), SIZES ("1000 100000 1000000"; add 10000000
# for the full picture), UMADB_SIZES ("", e.g. "1000 100000"), BUDGET seconds per shape (10); see servers.sh.
source "$(dirname "$0")/servers.sh"
sizes=${SIZES:-1000 100000 1000000}
[ -n "${UMADB_SIZES:-}" ] && install_umadb
labels=()
for size in $sizes; do labels+=("wellspring-$size"); done
for size in ${UMADB_SIZES:-}; do labels+=("umadb-$size"); done
for label in "${labels[@]}"; do
    start "$label" "${label%-*}" pinned
    "$wsbench" fill --server "${label%-*}" --address "${address[$label]}" --events "${label#*-}" --pin "$client_core"
done
for (( round = 0; round < ${ROUNDS:-4}; round++ )); do
    for label in $(in_turns "$round" "${labels[@]}"); do
        "$wsbench" condition-growth --server "${label%-*}" --address "${address[$label]}" --size "${label#*-}" \
            --count "${COUNT:-200}" --budget "${BUDGET:-10}" --round "$round" $(client_flags pinned)
    done
done
report "Conditional append as the log grows"
