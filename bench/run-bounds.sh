#!/usr/bin/env bash
# Bounds of the core. An honest client asks at a fixed rate (open loop): GET /v1/head and durable appends over kept
# connections, POST /e over others; first alone ("quiet"), then while others use up what is bounded: one client that
# sends the largest legal condition without pause ("conditions"; CONDITION is items:types:tags), SUBSCRIBERS idle
# subscriptions, LEASES requests that wait for a lease that is held. Then, on a file system that is full at the end of
# a segment (a tmpfs, where this user may mount one): reads and GET /health while appends and POST /e are refused.
# Held if the honest client's p99 (median of the rounds) is at most twice the quiet one and none of its requests fails.
# A phase with @decoy loads a second server on the same core instead: what the machine itself takes.
# Environment: ROUNDS (3), SECS (8), RATE (400), SUBSCRIBERS (20000), LEASES (5000), CONDITION (16:1:64), PHASES,
# FULL (1; 0 leaves the full disk out); see servers.sh.
# shellcheck disable=SC2154 # servers.sh sets them
if [ "${FULL:-1}" = 1 ] && [ -z "${BOUNDS_MOUNTED:-}" ]; then
    # A name space of mounts of our own: what is mounted goes with us.
    export BOUNDS_MOUNTED=1
    if [ "$(id -u)" = 0 ]; then exec unshare -m "$0" "$@"; else exec unshare -Urm "$0" "$@"; fi
fi
source "$(dirname "$0")/servers.sh"
secs=${SECS:-8} rate=${RATE:-400} rounds=${ROUNDS:-3} subscribers=${SUBSCRIBERS:-20000} leases=${LEASES:-5000}
IFS=: read -r items types tags <<< "${CONDITION:-16:1:64}"
bench=${BENCH_BIN:-$wellspring}
phases=${PHASES:-quiet conditions conditions@decoy subscribers subscribers@decoy lease-waiters}
flags=(--threads 1 --max-subscribers 50000)
start held wellspring pinned "${flags[@]}"
start decoy wellspring pinned "${flags[@]}"
url=http://${address[held]}

# honest LABEL: the honest client and the server's memory meanwhile.
honest() {
    local clients=() sampler
    taskset -c "$client_core" "$bench" bench scenario "${scenario:-abuse.toml}" --url "$url" --rate "$rate" --users 16 \
        --no-pin -z "${secs}s" --warmup 2s --no-headroom --json "$work/$1.kept.json" > "$work/$1.kept.txt" 2>&1 &
    clients+=($!)
    if [ -z "${scenario:-}" ]; then
        taskset -c "$client_core" "$bench" bench "$url/e" -r "$rate" -c 16 -d '{"n":"{{counter}}"}' --template \
            --expect 202 --no-pin -z "${secs}s" --warmup 2s --no-headroom --json "$work/$1.e.json" > "$work/$1.e.txt" 2>&1 &
        clients+=($!)
    fi
    ( while sleep 1; do curl -sf "$url/metrics" | awk '/^process_resident_memory_bytes / { print $2 }' >> "$work/$1.rss" || true; done ) &
    sampler=$!
    wait "${clients[@]}" || { tail -5 "$work/$1".*.txt >&2; kill "$sampler"; exit 1; }
    kill "$sampler"; wait "$sampler" 2> /dev/null || true
}

# beside LABEL TARGET WHAT COUNT: the honest client while WHAT is held.
beside() {
    local holder ready told
    coproc hold { exec taskset -c "$client_core" nice -n 19 "$wsbench" hold --address "${address[$2]}" --what "$3" \
        --count "$4" --seconds $(( secs + 120 )) --items "$items" --types "$types" --tags "$tags"; }
    holder=$hold_PID
    exec {told}<&"${hold[0]}"
    read -r ready <&"$told" || true
    [ "$ready" = ready ] || { echo "$1 did not begin: $ready" >&2; exit 1; }
    honest "$1"
    eval "exec ${hold[1]}>&-"
    cat <&"$told" > "$work/$1.abuse"
    exec {told}<&-
    wait "$holder" 2> /dev/null || true
}

for (( round = 0; round < rounds; round++ )); do
    # shellcheck disable=SC2086 # phases are words
    for phase in $(in_turns "$round" $phases); do
        target=held
        if [[ $phase = *@decoy ]]; then target=decoy; fi
        case ${phase%@decoy} in
            quiet) honest "$phase.$round" ;;
            conditions) beside "$phase.$round" "$target" conditions 1 ;;
            subscribers) beside "$phase.$round" "$target" subscribers "$subscribers" ;;
            lease-waiters) beside "$phase.$round" "$target" lease-waiters "$leases" ;;
            *) echo "no phase is called $phase" >&2; exit 1 ;;
        esac
        sleep 1
    done
done
echo "$phases" > "$work/phases"

full_disk() {
    local segment_bytes=$(( 16 << 20 )) segment line bulk room=$work/full
    mkdir "$room" && mount -t tmpfs -o size=64m tmpfs "$room" || { echo "no tmpfs: the full disk is left out" >&2; return; }
    work=$room start full wellspring pinned --threads 1 --segment-bytes "$segment_bytes"
    url=http://${address[full]} scenario=bounds-reads.toml
    line='{"type":"Filled","tags":["user:1"],"data":"'$(printf '%0256d' 0)'"}'
    bulk=$(for _ in $(seq 100); do echo "$line"; done)
    # Until the last segment has been extended over its end: what is written last is written into it.
    while :; do
        curl -sf -o /dev/null -H 'Content-Type: application/x-ndjson' --data-binary "$bulk" "$url/v1/append"
        segment=$(ls "$room"/full/logs/main/*.seg | tail -1)
        (( $(stat -c %s "$segment") < segment_bytes )) || break
    done
    # Clients that go on although they are refused, niced on the client's core.
    local refused=(taskset -c "$client_core" nice -n 19 "$bench" bench -r 200 -c 2 --no-pin -z "$(( secs + 6 ))s" --no-headroom) one two
    for (( round = 0; round < rounds; round++ )); do
        rm -f "$room/filler"
        honest "full-quiet.$round"
        head -c 100M /dev/zero > "$room/filler" 2> /dev/null || true
        "${refused[@]}" "$url/v1/append" -d "{\"events\":[$line]}" --expect 503 > "$work/full-append.txt" 2>&1 & one=$!
        "${refused[@]}" "$url/e" -d "$line" --expect 202 > "$work/full-e.txt" 2>&1 & two=$!
        sleep 2
        honest "full-disk.$round"
        curl -s -d "{\"events\":[$line]}" -H 'Content-Type: application/json' "$url/v1/append" > "$work/full-disk.$round.abuse"; echo >> "$work/full-disk.$round.abuse"
        kill "$one" "$two" 2> /dev/null || true; wait "$one" "$two" 2> /dev/null || true
    done
    stop full
    umount -l "$room"
    mkdir -p "$work/full-tables"; mv "$work"/full-quiet.* "$work"/full-disk.* "$work/full-tables"
    echo "full-quiet full-disk" > "$work/full-tables/phases"
}
[ "${FULL:-1}" = 1 ] && full_disk
{
    heading "Bounds of the core"
    echo "Conditions of $items items with $types types and $tags tags each; $subscribers subscriptions; $leases lease waiters."
    echo
    python3 -m abuse report "$work" --bound-mib "${BOUND_MIB:-4096}" --rows "$out" || true
    if [ -d "$work/full-tables" ]; then echo; python3 -m abuse report "$work/full-tables" --bound-mib 4096 --rows "$out" || true; fi
}
