#!/usr/bin/env bash
# Sequential and selective reads at one client: the whole log, and one tag of ten events, against UmaDB with
# its default and its largest batch.
# Environment: ROUNDS (4), EVENTS (1000000), COUNT selective reads a round (2000), PINNINGS; see servers.sh.
source "$(dirname "$0")/servers.sh"
install_umadb
events=${EVENTS:-1000000}
customers=$((events / 10))
for pinning in ${PINNINGS:-pinned none}; do
    # The filled folders serve both pinnings; only the processes are started anew.
    for kind in wellspring umadb; do
        start "$kind" "$kind" "$pinning"
        "$wsbench" fill --server "$kind" --address "${address[$kind]}" --events "$events" --customers "$customers"
    done
    for (( round = 0; round < ${ROUNDS:-4}; round++ )); do
        for who in $(in_turns "$round" wellspring wellspring-records umadb umadb-4096); do
            kind=${who%-*}; batch=(); [ "$who" = umadb-4096 ] && batch=(--batch-size 4096)
            [ "$who" = wellspring-records ] && batch=(--form records)
            "$wsbench" reads --server "$kind" --server-name "$who" --address "${address[$kind]}" --size "$events" \
                --customers "$customers" --count "${COUNT:-2000}" --round "$round" "${batch[@]}" $(client_flags "$pinning")
        done
    done
    stop_all
done
report "Reads, one client, $events events"
