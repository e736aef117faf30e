#!/usr/bin/env bash
# Abuse. An honest client asks at a fixed rate (open loop): GET /v1/head and durable appends over kept connections,
# POST /e over others; first alone ("quiet"), then while the server is abused (python3 -m abuse), in rounds, forwards
# and backwards. Two kinds of abuse:
# - connections: IDLE that ask nothing, IDLE by Bolt, SLOW heads and SLOW bodies of a byte a second, BIG heads of 72 KiB a second,
#   DEEP JSON bodies of a million brackets a second, and all of it together;
# - requests that are dear, one phase each, named in abuse/attacks.py (ALL): what a review did to a server once.
# Held if the honest client's p99 (median of the rounds) is at most twice the quiet one, none of its requests fails,
# the server answers as before within 2 s after each abuse, and resident memory (/metrics) stays below the bound that
# the configuration gives (abuse/bound.py). Loopback only, bounded in count and time; everything is stopped by its id.
# A phase with @decoy abuses a second server on the same core instead: what the honest client suffers then is what the
# abuser takes of the machine (it shares the honest client's core), not what the server makes of it. Phases "keys" and
# "quiet-keys" are of a third server, with accounts.
# SHORT=1 is for CI: one round, few clients, some seconds a phase; times are shown and not judged.
# Environment: ROUNDS (3), IDLE (10000), SLOW (1000), BIG (200), DEEP (20), SECS (12) of each phase, RATE (400) of the
# honest client for each of its two kinds, PHASES (the first is quiet); see servers.sh.
# shellcheck disable=SC2154 # servers.sh sets them
if [ "${SHORT:-0}" = 1 ]; then plain=1; fi
source "$(dirname "$0")/servers.sh"
short=()
if [ "${SHORT:-0}" = 1 ]; then
    short=(--short)
    ROUNDS=${ROUNDS:-1} IDLE=${IDLE:-200} SLOW=${SLOW:-50} BIG=${BIG:-20} DEEP=${DEEP:-4} SECS=${SECS:-3} RATE=${RATE:-50}
fi
idle=${IDLE:-10000} slow=${SLOW:-1000} big=${BIG:-200} deep=${DEEP:-20} secs=${SECS:-12} rate=${RATE:-400}
rounds=${ROUNDS:-3}
bench=${BENCH_BIN:-$wellspring}
for count in "$rounds" "$idle" "$slow" "$big" "$deep" "$secs" "$rate"; do
    [[ $count =~ ^[1-9][0-9]*$ ]] || { echo "IDLE, SLOW and the like are numbers, not $count" >&2; exit 1; }
done
needed=$(( idle + 2 * slow + 1000 ))
if [ "$(ulimit -Hn)" != unlimited ] && (( $(ulimit -Hn) < needed )); then
    echo "$needed open files are needed, $(ulimit -Hn) allowed: lower IDLE and SLOW" >&2
    exit 1
fi
ulimit -n "$(ulimit -Hn)"
held="quiet idle bolt-idle slow-heads slow-bodies big-heads deep-json deep-json@decoy all all@decoy"
dear="project-dialect rapid-reset large-subscriptions large-waits dear-conditions meeting-conditions lease-waiters
    feed-waiters deterministic long-lists unique-tags unknown-types long-items bolt-rows"
if [ "${SHORT:-0}" = 1 ]; then
    phases=${PHASES:-quiet all bolt-idle $dear quiet-keys keys}
else
    decoys=$(for attack in $dear; do echo "$attack $attack@decoy"; done)
    phases=${PHASES:-$held $decoys quiet-keys keys}
fi
# Less than the defaults, so that the bound is a tight one.
flags=(--threads 1 --max-connections "$(( needed - 200 ))" --max-buffer-bytes 32768 --body-memory-bytes $(( 64 << 20 ))
    --ingest-partition-bytes $(( 4 << 20 )) --staged-bytes $(( 16 << 20 )) --max-page-bytes $(( 4 << 20 ))
    --max-long-reads 8 --max-subscribers 256)
start abused wellspring pinned "${flags[@]}"
start decoy wellspring pinned "${flags[@]}"
python3 -m abuse prepare "${address[abused]}" "${short[@]}"
if [[ $phases = *@decoy* ]]; then python3 -m abuse prepare "${address[decoy]}" "${short[@]}"; fi
if [[ $phases = *keys* ]]; then
    WELLSPRING_ADMIN_PASSWORD=$(head -c 24 /dev/urandom | base64 -w0)
    export WELLSPRING_ADMIN_PASSWORD
    start closed wellspring pinned "${flags[@]}"
    python3 -m abuse accounts "${address[closed]}" "$work/closed"
    unset WELLSPRING_ADMIN_PASSWORD
fi

# resident: bytes, as the system counts them of the server that is asked.
resident() { awk '/^VmRSS:/ { print $2 * 1024 }' "/proc/${pid[$honest_to]}/status"; }
# honest LABEL: the honest client, twice, and the server's memory meanwhile.
honest() {
    local clients=() sampler url=http://${address[$honest_to]} shown=()
    if [ "$honest_to" = closed ]; then shown=(--token-file "$work/closed/writer"); fi
    taskset -c "$client_core" "$bench" bench scenario abuse.toml --url "$url" --rate "$rate" --users 16 --no-pin "${shown[@]}" \
        -z "${secs}s" --warmup "${warmup}s" --no-headroom --json "$work/$1.kept.json" > "$work/$1.kept.txt" 2>&1 &
    clients+=($!)
    taskset -c "$client_core" "$bench" bench "$url/e" -r "$rate" -c 16 -d '{"n":"{{counter}}"}' --template --expect 202 \
        --no-pin "${shown[@]}" -z "${secs}s" --warmup "${warmup}s" --no-headroom --json "$work/$1.e.json" > "$work/$1.e.txt" 2>&1 &
    clients+=($!)
    resident > "$work/$1.rss"
    ( while sleep 0.5; do resident >> "$work/$1.rss" || true; done ) &
    sampler=$!
    wait "${clients[@]}" || { tail -5 "$work/$1".*.txt >&2; kill "$sampler"; exit 1; }
    kill "$sampler"; wait "$sampler" 2> /dev/null || true
}

# abused_by KIND=NUMBER…: the honest client meanwhile.
abused_by() {
    local abuser ready told
    # It lives until its input ends, or its time.
    coproc abuse { exec taskset -c "$client_core" nice -n 19 python3 -m abuse hold "${address[$target]}" "$@" \
        "${short[@]}" --seconds $(( secs + 120 )); }
    abuser=$abuse_PID
    exec {told}<&"${abuse[0]}"
    read -r ready <&"$told"
    [ "$ready" = ready ] || { echo "$label did not begin: $ready" >&2; exit 1; }
    honest "$label"
    eval "exec ${abuse[1]}>&-"
    cat <&"$told" > "$work/$label.abuse"
    exec {told}<&-
    wait "$abuser" 2> /dev/null || true
    settled
}

# settled: how long until the server answers the honest client as before.
settled() {
    local shown=()
    if [ "$honest_to" = closed ]; then shown=(--token-file "$work/closed/writer"); fi
    python3 -m abuse settle "${address[$honest_to]}" "$work" "$label" "${shown[@]}"
}

warmup=$(( secs > 5 ? 2 : 1 ))
# shellcheck disable=SC2086 # phases are words
echo $phases > "$work/phases"
for (( round = 0; round < rounds; round++ )); do
    # shellcheck disable=SC2086 # phases are words
    for phase in $(in_turns "$round" $phases); do
        label=$phase.$round
        target=abused honest_to=abused
        if [[ $phase = *@decoy ]]; then target=decoy; fi
        if [[ $phase = *keys ]]; then target=closed honest_to=closed; fi
        case ${phase%@decoy} in
            quiet | quiet-keys) honest "$label"; settled ;;
            idle | bolt-idle) abused_by "${phase%@decoy}=$idle" ;;
            slow-heads | slow-bodies) abused_by "${phase%@decoy}=$slow" ;;
            big-heads) abused_by "${phase%@decoy}=$big" ;;
            deep-json) abused_by "${phase%@decoy}=$deep" ;;
            all) abused_by "idle=$idle" "slow-heads=$slow" "slow-bodies=$slow" "big-heads=$big" "deep-json=$deep" ;;
            keys) abused_by keys --token-file "$work/closed/reader" ;;
            *) abused_by "${phase%@decoy}" ;;
        esac
        sleep 1
    done
done
bound_mib=$(python3 -m abuse bound "$wellspring" "${flags[@]}")
{
    heading "Abuse"
    python3 -m abuse report "$work" --bound-mib "$bound_mib" --rows "$out" "${short[@]}"
}
