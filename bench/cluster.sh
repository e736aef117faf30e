# shellcheck shell=bash disable=SC2154 # servers.sh and the driver assign what is used here
# Sourced by run-cluster.sh and run-raft.sh after servers.sh: three nodes that share their logs, and loads on them.
"$wellspring" cluster key "$work/key" > "$work/told.txt"

# nodes JOURNAL [FLAG…]: starts a, b and c; leaves the names of who leads `system`, and of another node.
nodes() {
    local journal=$1 node urls=(); shift
    for node in a b c; do
        start "$node" wellspring none --journal "$journal" --node "$node" --cluster-key "$work/key" "$@"
        urls+=("http://${address[$node]}")
    done
    [ "$journal" != raft ] || "$wellspring" cluster init "${urls[@]}" > "$work/told.txt"
    found_leader
}

# ready NODE: waits until it takes writes.
ready() { for _ in $(seq 300); do curl -sf "http://${address[$1]}/health/ready?for=writes" > "$work/told.txt" && return; sleep 0.1; done; return 1; }

leader_name() { curl -sf "http://${address[a]}/v1/cluster" | python3 -c 'import json, sys; print((json.load(sys.stdin)["leader"] or {}).get("node", ""))'; }

found_leader() {
    local node
    for node in a b c; do ready "$node"; done
    for _ in $(seq 100); do leader=$(leader_name) && [ -n "$leader" ] && break; sleep 0.1; done
    [ -n "$leader" ] || { echo "no node leads" >&2; exit 1; }
    for follower in a b c; do [ "$follower" = "$leader" ] || break; done
}

# led LOG NODE: pins a log.
led() {
    "$wellspring" cluster transfer --url "http://${address[a]}" --log "$1" --to "$2" > "$work/told.txt"
    grep -q 'leads it' "$work/told.txt"
}

# latency NODE NAME: one client; also barriers and ping-pongs of the same sizes.
latency() {
    sleep 0.5
    "$wsbench" append-latency --server wellspring --address "${address[$1]}" --dir "$work" --rounds 5 --count $((count / 5)) \
        --server-name "$2" --round "$round" --out "$work/part.jsonl"
    # Its five rounds, in which appends, barriers and ping-pongs take turns, are one of ours.
    python3 - "$work/part.jsonl" "$round" >> "$out" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    print(json.dumps({**json.loads(line), "round": int(sys.argv[2])}))
PY
    rm "$work/part.jsonl"
}

# looked CASE TARGET USERS: reads of the follower.
looked() {
    "$wellspring" bench "http://${address[$follower]}$2" -c "$3" --threads 1 --no-pin -z "${secs}s" --warmup 1s \
        --no-headroom --quiet --expect 200 --json "$work/run.json" > "$work/told.txt" 2>&1 || true
    ./load_row.py "$work/run.json" measurement=read case="$1" round="$round" >> "$out"
}

# leads CASE NODE NODE NODE: appends to three logs at once, each at the node that leads it.
leads() {
    local case=$1 at=0 log loads=()
    local -a to=("${@:2}") logs=(hot-1 hot-2 hot-3)
    for log in "${logs[@]}"; do
        led "$log" "${to[at]}"
        at=$((at + 1))
    done
    sleep 1; at=0
    for log in "${logs[@]}"; do
        "$wellspring" bench "http://${address[${to[at]}]}/v1/logs/$log/append" -c 21 --threads 1 --no-pin -z "${secs}s" --warmup 1s \
            --no-headroom --quiet --json "$work/run-$log.json" \
            --template -d '{"events":[{"type":"OrderPlaced","tags":["order:{{counter}}"],"data":{"n":{{counter}}}}]}' > "$work/told-$log.txt" 2>&1 &
        loads+=($!); at=$((at + 1))
    done
    for load in "${loads[@]}"; do wait "$load" || true; done
    for log in "${logs[@]}"; do ./load_row.py "$work/run-$log.json" measurement=leads case="$case" round="$round"; done |
        python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert len(rows) == 3
print(json.dumps(rows[0] | {"rate": sum(row["rate"] for row in rows)}))' >> "$out"
}
