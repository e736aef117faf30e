#!/usr/bin/env bash
# Three nodes over PostgreSQL, against what PostgreSQL alone does in the same round: p50 of appends at the leader and
# through a follower beside the journal's statement by hand, a look at the end, and an HTTP ping-pong; appends of 64
# clients, plain and conditional, beside batches of 100 events by hand and a transaction for each event; reads that are
# local and linearizable; how far a follower is behind at half load; three hot logs that one node leads, and three.
# All with fsync, on a real disk.
# Environment: ROUNDS (5), COUNT of a latency run (500), SECS of a throughput run (4), ROWS (true: with rows for SQL),
# PINNINGS is not used: PostgreSQL, three nodes and the client share all cores; PG_SETTINGS ("-c name=value"); see servers.sh.
source "$(dirname "$0")/servers.sh"
rounds=${ROUNDS:-5} count=${COUNT:-500} secs=${SECS:-4}
pg() { ../test-servers/postgres.sh "$@"; }
chmod 755 "$work" "$(dirname "$work")"
# shellcheck disable=SC2086 # several settings
url=$(pg up "$work/postgres" --while $$ ${PG_SETTINGS:-} | sed -n 's/^url=//p')
trap 'stop_all; pg down "$work/postgres" || true; rm -rf "$work"' EXIT
psql_port=${url##*:} psql_port=${psql_port%/*}
sql() { psql -XqAt -h 127.0.0.1 -p "$psql_port" -U postgres -c "$1"; }

source ./cluster.sh
nodes "$url" --journal-rows "${ROWS:-true}"

# entry_bytes: of the leader's last entry of one event, with its head.
entry_bytes() { sql "SELECT octet_length(entry) FROM wellspring.ws_entry WHERE log LIKE 'main%' AND octet_length(entry) > 200 ORDER BY place DESC LIMIT 1"; }

by_hand() { local what=$1; shift; "$wsbench" sql --url "$url" --what "$what" --bytes "$bytes" --round "$round" --out "$out" "$@"; }

half_load() {
    local rate=$1
    "$wellspring" bench "http://${address[$leader]}/v1/append" -r "$rate" -z "$((secs + 2))s" --no-pin --no-headroom --quiet \
        --template -d '{"events":[{"type":"OrderPlaced","tags":["order:{{counter}}"],"data":{"n":{{counter}}}}]}' > "$work/told.txt" 2>&1 &
    local load=$!
    sleep 1
    "$wsbench" lag --leader "${address[$leader]}" --follower "${address[$follower]}" --seconds "$secs" --round "$round" --out "$out"
    wait "$load" || true
}

one() {
    case $1 in
        leader) latency "$leader" leader ;;
        follower) latency "$follower" follower ;;
        cas) by_hand cas --count "$count" ;;
        end) by_hand end --count "$count" ;;
        plain | conditional)
            "$wsbench" append-throughput --server wellspring --address "${address[$leader]}" --mode "$1" --seconds "$secs" \
                --server-pid "${pid[$leader]}" --round "$round" --server-name "$1" --out "$out" ;;
        batches) by_hand batches --seconds "$secs" ;;
        transactions) by_hand transactions --seconds "$secs" ;;
        local) looked local '/v1/head?consistency=local' 1 ;;
        linearizable) looked linearizable '/v1/head?consistency=linearizable&wait_ms=10000' 1 ;;
        local-64) looked local-64 '/v1/head?consistency=local' 64 ;;
        together) leads together "$leader" "$leader" "$leader" ;;
        apart) leads apart a b c ;;
        linearizable-64) looked linearizable-64 '/v1/head?consistency=linearizable&wait_ms=10000' 64 ;;
    esac
}

for log in hot-1 hot-2 hot-3; do curl -sf -X PUT "http://${address[a]}/v1/logs/$log" > "$work/told.txt"; done
round=0; bytes=400
latency "$leader" warm-up; : > "$out"
for (( round = 0; round < rounds; round++ )); do
    bytes=$(entry_bytes); bytes=${bytes:-400}
    for case in $(in_turns "$round" leader cas follower end); do one "$case"; done
    for case in $(in_turns "$round" plain batches conditional transactions); do one "$case"; done
    for case in $(in_turns "$round" local linearizable local-64 linearizable-64); do one "$case"; done
    rate=$(python3 - "$out" "$round" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
print(int(next(r["value"] for r in rows if r["server"] == "plain" and r["round"] == int(sys.argv[2])) / 2))
PY
)
    half_load "$rate"
    for case in $(in_turns "$round" together apart); do one "$case"; done
done

report "Three nodes over PostgreSQL"
