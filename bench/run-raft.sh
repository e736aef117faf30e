#!/usr/bin/env bash
# Three nodes that order their logs themselves (--journal raft), beside etcd, rqlite, three nodes over PostgreSQL without
# rows and one node of files: each alone on the machine, in turns within a round, on a real disk. Then what only they do:
# barriers, moves of leads, deaths of nodes, 256 idle logs, a node that comes back.
# Environment: PARTS ("latency appends reads leads barriers moves kills idle return"), PEERS (1; 0 leaves out etcd, rqlite and
# PostgreSQL), ROUNDS (5), COUNT of a latency run (500), SECS of a load (4), MOVES (20), KILLS (50), IDLE_SECS (60),
# EVENTS that the node misses (1000000), RATE while it returns (300); see servers.sh.
source "$(dirname "$0")/servers.sh"
rounds=${ROUNDS:-5} count=${COUNT:-500} secs=${SECS:-4} parts=" ${PARTS:-latency appends reads leads barriers moves kills idle return} "
peers=$([ "${PEERS:-1}" = 0 ] || ./raft-peers.sh)
source ./cluster.sh
pg() { ../test-servers/postgres.sh "$@"; }
chmod 755 "$work" "$(dirname "$work")"
trap 'stop_all; pg down "$work/postgres" 2> /dev/null || true; rm -rf "$work"' EXIT
sync -f "$work"
value=$(printf 'x%.0s' {1..256})
has() { [[ $parts = *" $1 "* ]]; }

# launch LABEL PROGRAM…: starts a server that is not ours.
launch() { local label=$1; shift; "$@" > "$work/$label.log" 2>&1 & pid[$label]=$!; }
eventually() { for _ in $(seq 200); do "$@" > "$work/told.txt" 2>&1 && return; sleep 0.1; done; cat "$work/told.txt" >&2; return 1; }

up_raft() { nodes raft; }
up_postgres() { nodes "$(pg up "$work/postgres" --while $$ | sed -n 's/^url=//p')" --journal-rows false; }
up_files() { start a wellspring none; leader=a; }
up_etcd() {
    local at all=() label
    for label in etcd-1 etcd-2 etcd-3; do
        address[$label]=$(free_address) at=$(free_address); all+=("$label=http://$at")
    done
    for at in "${all[@]}"; do
        label=${at%%=*} at=${at#*=}
        launch "$label" "$peers/etcd" --name "$label" --data-dir "$work/$label" --listen-peer-urls "$at" --initial-advertise-peer-urls "$at" \
            --listen-client-urls "http://${address[$label]}" --advertise-client-urls "http://${address[$label]}" \
            --initial-cluster "$(IFS=,; echo "${all[*]}")"
    done
    etcd_all=${address[etcd-1]},${address[etcd-2]},${address[etcd-3]}
    eventually "$peers/etcdctl" --endpoints "$etcd_all" put k "$value"
    etcd_follower=$("$peers/etcdctl" --endpoints "$etcd_all" endpoint status -w json | python3 -c '
import json, sys
print(next(one["Endpoint"] for one in json.load(sys.stdin) if one["Status"]["leader"] != one["Status"]["header"]["member_id"]))')
}
up_rqlite() {
    local number at join=()
    for number in 1 2 3; do
        address[rqlite-$number]=$(free_address) at=$(free_address)
        launch "rqlite-$number" "$peers/rqlited" -node-id "$number" -http-addr "${address[rqlite-$number]}" -raft-addr "$at" \
            "${join[@]}" "$work/rqlite-$number"
        eventually curl -sf "http://${address[rqlite-$number]}/readyz"
        [ "$number" != 1 ] || join=(-join "$at")
    done
    curl -sf "http://${address[rqlite-1]}/db/execute" -H 'Content-Type: application/json' \
        -d '["CREATE TABLE kv (k INTEGER PRIMARY KEY, v TEXT)"]' > "$work/told.txt"
}
down() {
    stop_all
    [ "$1" != postgres ] || pg down "$work/postgres"
    rm -rf "${work:?}"/{a,b,c,etcd-*,rqlite-*}
    # Or barriers of the next system wait until the disk has discarded the blocks of this one: 20 times as long.
    sync -f "$work"; sleep 3
}

# load CASE SERVER CLIENTS URL [FLAG…]: our load tester, closed loop.
load() {
    local case=$1 server=$2 clients=$3; shift 3
    "$wellspring" bench "$@" -c "$clients" --threads 1 --no-pin -z "${secs}s" --warmup 1s --no-headroom --quiet \
        --json "$work/run.json" > "$work/told.txt" 2>&1 || true
    ./load_row.py "$work/run.json" case="$case" server="$server" round="$round" >> "$out"
}

# etcd_load CASE CLIENTS TOTAL ENDPOINTS WORD…: etcd's own load tool, a connection for each client.
etcd_load() {
    local case=$1 clients=$2 total=$3 endpoints=$4; shift 4
    "$peers/etcd-benchmark" --precise --endpoints "$endpoints" --conns "$clients" --clients "$clients" "$@" --total "$total" > "$work/run.txt" 2> "$work/told.txt"
    python3 - "$work/run.txt" "$case" "$round" >> "$out" <<'PY'
import json, re, sys
text = open(sys.argv[1]).read()
number = lambda pattern: float(re.search(pattern, text)[1])
assert "Error distribution" not in text, text
print(json.dumps({"case": sys.argv[2], "server": "etcd", "round": int(sys.argv[3]), "rate": number(r"Requests/sec:\s*(\S+)"),
                  "p50_us": number(r"50% in (\S+) secs") * 1e6}))
PY
}

# etcd_rated CASE CLIENTS ENDPOINTS WORD…: as many requests as it answers in SECS, found by a short run.
etcd_rated() {
    local case=$1 clients=$2 endpoints=$3 rate kept=$out; shift 3
    out=$work/trial.jsonl; etcd_load trial "$clients" 2000 "$endpoints" "$@"; out=$kept
    rate=$(python3 -c 'import json, sys; print(int(json.loads(sys.stdin.readlines()[-1])["rate"]))' < "$work/trial.jsonl")
    etcd_load "$case" "$clients" $((rate * secs + 1000)) "$endpoints" "$@"
}

puts=(put --sequential-keys --key-size 16 --val-size 256)
event='{"type":"OrderPlaced","tags":["order:{{counter}}"],"data":"'$value'"}'
hundred=$(python3 -c 'import sys; print(",".join([sys.argv[1].replace("{{counter}}", "1")] * 100))' "$event")
appends() { load append-64 "$1" 64 "http://${address[$leader]}/v1/append" --template -d "{\"events\":[$event]}"; }
reads() { load read-64 "$1" 64 "http://${address[$follower]}/v1/events/1?consistency=linearizable&wait_ms=10000"; }

# measured SYSTEM: everything that is measured of it in a round.
measured() {
    case $1 in
        raft)
            ! has latency || { latency "$leader" orderer; led main "$follower"; latency "$follower" elsewhere; led main "$leader"; }
            ! has appends || {
                appends raft
                EVENTS_EACH=100 load batch-16 raft 16 "http://${address[$leader]}/v1/append" -d "{\"events\":[$hundred]}"
            }
            ! has reads || { has appends || appends raft; reads raft; }
            ! has leads || {
                for log in hot-1 hot-2 hot-3; do curl -sf -X PUT "http://${address[$leader]}/v1/logs/$log" > "$work/told.txt"; done
                for case in $(in_turns "$round" together apart); do
                    if [ "$case" = apart ]; then leads apart a b c; else leads together "$leader" "$leader" "$leader"; fi
                done
            } ;;
        etcd)
            ! has latency || etcd_load put-1 1 "$count" "$etcd_all" --target-leader "${puts[@]}"
            ! has appends || etcd_rated append-64 64 "$etcd_all" --target-leader "${puts[@]}"
            ! has reads || etcd_rated read-64 64 "$etcd_follower" range k --consistency l ;;
        rqlite) load append-64 rqlite 64 "http://${address[rqlite-1]}/db/execute" -d "[[\"INSERT INTO kv(v) VALUES(?)\",\"$value\"]]" ;;
        postgres)
            ! has appends || appends postgres
            ! has reads || { has appends || appends postgres; reads postgres; } ;;
        files) appends files ;;
    esac
}

systems=()
! has latency && ! has appends && ! has reads && ! has leads || systems+=(raft)
if [ -n "$peers" ]; then
    ! has latency && ! has appends && ! has reads || systems+=(etcd)
    ! has appends || systems+=(rqlite)
    ! has appends && ! has reads || systems+=(postgres)
fi
! has appends || systems+=(files)
for (( round = 0; round < rounds; round++ )); do
    for system in $(in_turns "$round" "${systems[@]}"); do
        "up_$system"; measured "$system"; down "$system"
    done
done
round=0

figure() { curl -sf "http://${address[$1]}/metrics" | awk -v name="$2" '$1 == name { print $2 }'; }

# Barriers of the WAL on each node, by the kernel's account, beside the entries that went through it.
if has barriers; then
    up_raft
    for clients in 1 64; do
        traces=()
        for node in a b c; do
            strace -f -y -e trace=fdatasync,fsync -o "$work/trace-$node" -p "${pid[$node]}" 2> /dev/null & traces+=($!)
        done
        sleep 1
        entries=$(figure "$leader" wellspring_raft_last_index)
        load "traced-$clients" raft "$clients" "http://${address[$leader]}/v1/append" --template -d "{\"events\":[$event]}"
        entries=$(($(figure "$leader" wellspring_raft_last_index) - entries))
        kill "${traces[@]}"; wait "${traces[@]}" 2> /dev/null || true
        for node in a b c; do
            noted "barriers-$clients" wal "$(awk -v entries="$entries" '/sync\([0-9]+<.*\/raft\// { made++ } END { print made / entries }' "$work/trace-$node")"
            round=$((round + 1))
        done
        round=0
    done
    down raft
fi

faults() {
    local what=$1; shift
    ./raft_faults.py "$what" --program "$wellspring" --work "$work" --out "$out" "$@" \
        $(for node in a b c; do echo "$node=${address[$node]}=${pid[$node]}"; done)
}
if has moves; then up_raft; faults moves --times "${MOVES:-20}"; down raft; fi
if has kills; then up_raft; faults kills --times "${KILLS:-50}"; down raft; fi

if has idle; then
    up_raft
    for (( log = $(curl -sf "http://${address[a]}/v1/logs" | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["logs"]))'); log < 256; log++ )); do
        curl -sf -X PUT "http://${address[$leader]}/v1/logs/log-$log" > "$work/told.txt" || break
    done
    sleep 10
    declare -A processor kept
    for node in a b c; do processor[$node]=$(awk '{ print $14 + $15 }' "/proc/${pid[$node]}/stat"); kept[$node]=$(figure "$node" wellspring_raft_kept_bytes); done
    sleep "${IDLE_SECS:-60}"
    for node in a b c; do
        noted idle cpu "$(awk -v before="${processor[$node]}" -v seconds="${IDLE_SECS:-60}" -v hertz="$(getconf CLK_TCK)" \
            '{ print ($14 + $15 - before) / hertz / seconds * 100 }' "/proc/${pid[$node]}/stat")"
        noted idle wal_kb_min "$(python3 -c 'import sys; before, after, s = map(float, sys.argv[1:]); print((after - before) / 1000 / s * 60)' \
            "${kept[$node]}" "$(figure "$node" wellspring_raft_kept_bytes)" "${IDLE_SECS:-60}")"
        round=$((round + 1))
    done
    round=0
    down raft
fi

# at_rate CASE: appends in open loop, for ten times SECS at most.
at_rate() {
    "$wellspring" bench "http://${address[$leader]}/v1/append" -r "${RATE:-300}" -z "$((secs * 2))s" --no-pin --no-headroom --quiet \
        --json "$work/rate.json" --template -d "{\"events\":[$event]}" > "$work/told.txt" 2>&1 || true
    ./load_row.py "$work/rate.json" case="$1" round="$round" >> "$out"
}

if has return; then
    up_raft
    kill -9 "${pid[$follower]}"; wait "${pid[$follower]}" 2> /dev/null || true; unset "pid[$follower]"
    "$wellspring" bench "http://${address[$leader]}/v1/append" -n $((${EVENTS:-1000000} / 100)) -c 16 --threads 1 --no-pin --no-headroom --quiet \
        -d "{\"events\":[$hundred]}" > "$work/told.txt" 2>&1 || cat "$work/told.txt" >&2
    sleep 3
    at_rate return-before
    head=$(curl -sf "http://${address[$leader]}/v1/head" | python3 -c 'import json, sys; print(json.load(sys.stdin)["head"])')
    noted return-events value "$head"
    begun=$(date +%s%N)
    start "$follower" wellspring none --journal raft --node "$follower" --cluster-key "$work/key"
    at_rate return-while & rated=$!
    for _ in $(seq 600); do
        ! curl -sf -H "Wellspring-Min-Position: $head" "http://${address[$follower]}/v1/head?wait_ms=1000" > "$work/head.txt" || break
        sleep 0.1
    done
    noted return seconds "$(( ($(date +%s%N) - begun) / 1000000 ))e-3"
    wait "$rated"
    down raft
fi

report "Three nodes by themselves"
