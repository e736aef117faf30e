#!/usr/bin/env bash
# Durable append p50 at one client, against fdatasync of the same bytes + loopback ping-pong of the same sizes.
# Environment: ROUNDS (8), COUNT appends a round (500), PINNINGS ("pinned none"); see servers.sh.
source "$(dirname "$0")/servers.sh"
install_umadb
ours_out=$out peer_out=$work/umadb.jsonl
for pinning in ${PINNINGS:-pinned none}; do
    core=(); [ "$pinning" = pinned ] && core=(--server-core "$server_core")
    start "ours-$pinning" wellspring "$pinning"
    start "peer-$pinning" umadb "$pinning"
    common=(--rounds "${ROUNDS:-8}" --count "${COUNT:-500}" "${core[@]}")
    "$wsbench" append-latency --server wellspring --address "${address[ours-$pinning]}" --dir "$work" \
        "${common[@]}" $(client_flags "$pinning")
    out=$peer_out
    "$wsbench" append-latency --server umadb --address "${address[peer-$pinning]}" --dir "$work" \
        "${common[@]}" $(client_flags "$pinning")
    out=$ours_out
    stop_all
done
sed 's/"server":"floor"/"server":"floor-of-umadb"/' "$peer_out" >> "$out"
report "Durable append, one client"
