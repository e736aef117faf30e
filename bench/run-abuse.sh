#!/usr/bin/env bash
# Abuse. An honest client asks at a fixed rate (open loop): GET /v1/head and durable appends over kept connections,
# POST /e over others; first alone ("quiet"), then while the server is abused (abuse.py): IDLE connections that ask
# nothing, SLOW heads and SLOW bodies of a byte a second, BIG heads of 72 KiB a second, DEEP JSON bodies of a million
# brackets a second, and all of it together; in rounds, forwards and backwards. Held if its p99 (median of the rounds)
# is at most twice the quiet one, none of its requests fails, and resident memory (/metrics) stays below the bound that docs/operations.md makes of the
# configuration. Loopback only, bounded in count and time; everything is stopped by its own id.
# A phase with @decoy abuses a second server on the same core instead: what the honest client suffers then is what the
# abuser takes of the machine (it shares the honest client's core), not what the server makes of it.
# Environment: ROUNDS (3), IDLE (10000), SLOW (1000), BIG (200), DEEP (20), SECS (12) of each phase, RATE (400) of the
# honest client for each of its two kinds, PHASES (the first is quiet); see servers.sh.
# shellcheck disable=SC2154 # servers.sh sets them
source "$(dirname "$0")/servers.sh"
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
phases=${PHASES:-quiet idle slow-heads slow-bodies big-heads deep-json deep-json@decoy all all@decoy}
# Less than the defaults, so that the bound is a tight one.
body_mib=64 partition_mib=4 staged_mib=16 page_mib=4 long_reads=8 connections=$(( needed - 200 ))
flags=(--threads 1 --max-connections "$connections" --body-memory-bytes $(( body_mib << 20 ))
    --ingest-partition-bytes $(( partition_mib << 20 )) --staged-bytes $(( staged_mib << 20 ))
    --max-page-bytes $(( page_mib << 20 )) --max-long-reads "$long_reads")
start abused wellspring pinned "${flags[@]}"
start decoy wellspring pinned "${flags[@]}"
url=http://${address[abused]}

# resident: bytes, as the server counts them.
resident() { curl -sf "$url/metrics" | awk '/^process_resident_memory_bytes / { print $2 }'; }
# honest LABEL: the honest client, twice, and the server's memory meanwhile.
honest() {
    local clients=() sampler
    taskset -c "$client_core" "$bench" bench scenario abuse.toml --url "$url" --rate "$rate" --users 16 --no-pin \
        -z "${secs}s" --warmup 2s --no-headroom --json "$work/$1.kept.json" > "$work/$1.kept.txt" 2>&1 &
    clients+=($!)
    taskset -c "$client_core" "$bench" bench "$url/e" -r "$rate" -c 16 -d '{"n":"{{counter}}"}' --template --expect 202 \
        --no-pin -z "${secs}s" --warmup 2s --no-headroom --json "$work/$1.e.json" > "$work/$1.e.txt" 2>&1 &
    clients+=($!)
    ( while sleep 1; do resident >> "$work/$1.rss" || true; done ) &
    sampler=$!
    wait "${clients[@]}" || { tail -5 "$work/$1".*.txt >&2; kill "$sampler"; exit 1; }
    kill "$sampler"; wait "$sampler" 2> /dev/null || true
}

# abused_by KIND=NUMBER…: the honest client meanwhile.
abused_by() {
    local abuser ready told
    # It lives until its input ends, or its time.
    coproc abuse { exec taskset -c "$client_core" nice -n 19 python3 abuse.py hold "${address[$target]}" "$@" \
        --seconds $(( secs + 120 )); }
    abuser=$abuse_PID
    exec {told}<&"${abuse[0]}"
    read -r ready <&"$told"
    [ "$ready" = ready ] || { echo "$label did not begin: $ready" >&2; exit 1; }
    honest "$label"
    eval "exec ${abuse[1]}>&-"
    cat <&"$told" > "$work/$label.abuse"
    exec {told}<&-
    wait "$abuser" 2> /dev/null || true
}

base_mib=$(( $(resident) >> 20 ))
echo "$phases" > "$work/phases"
for (( round = 0; round < rounds; round++ )); do
    # shellcheck disable=SC2086 # phases are words
    for phase in $(in_turns "$round" $phases); do
        label=$phase.$round
        target=abused
        if [[ $phase = *@decoy ]]; then target=decoy; fi
        case ${phase%@decoy} in
            quiet) honest "$label" ;;
            idle) abused_by "idle=$idle" ;;
            slow-heads | slow-bodies) abused_by "${phase%@decoy}=$slow" ;;
            big-heads) abused_by "${phase%@decoy}=$big" ;;
            deep-json) abused_by "${phase%@decoy}=$deep" ;;
            all) abused_by "idle=$idle" "slow-heads=$slow" "slow-bodies=$slow" "big-heads=$big" "deep-json=$deep" ;;
            *) echo "no phase is called $phase" >&2; exit 1 ;;
        esac
        sleep 1
    done
done
# As docs/operations.md, "Limits", has it.
bound_mib=$(( base_mib + connections * 32 / 1024 + body_mib + slow * 64 / 1024 + 2 * 2 * partition_mib + 2 * staged_mib
    + long_reads * (page_mib + 2) ))
{
    heading "Abuse"
    python3 abuse.py report "$work" --bound-mib "$bound_mib"
} | tee "${out%.jsonl}.md"
