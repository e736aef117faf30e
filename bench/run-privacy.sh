#!/usr/bin/env bash
# What sealing costs: the same events with a data subject and with a plain tag, on one server in turns. Durable appends
# of 64 clients, POST /e, a read of everything; then one subject with a thousand events is erased.
# Environment: WELLSPRING_BIN, EVENTS (300000) that are read, ROUNDS (3), SECS (5); see servers.sh.
# shellcheck disable=SC2034,SC2154
plain=1
source "$(dirname "$0")/servers.sh"
events=${EVENTS:-300000} rounds=${ROUNDS:-3} secs=${SECS:-5}
start wellspring wellspring none --scrub-bytes-per-s 0
url=http://${address[wellspring]}
body() { printf '{"events":[{"type":"T","tags":["user:7"],%s"data":{"name":"%0280d"}}]}' "$1" 7; }
# post CASE PATH BODY: a closed loop of 64 connections.
post() {
    "$wellspring" bench "$url$2" -m POST -H 'Content-Type: application/json' -d "$3" -c 64 --duration "${secs}s" \
        --server-pid "${pid[wellspring]}" -q --no-headroom --json "$work/run.json" > "$work/told.txt" 2>&1 || cat "$work/told.txt"
    ./load_row.py "$work/run.json" case="$1" round="$round" >> "$out"
}
# fill LOG SUBJECT: events of 1,000 users.
fill() {
    curl -sf -X PUT "$url/v1/logs/$1" > /dev/null
    awk -v n="$events" -v s="$2" 'BEGIN { for (i = 1; i <= n; i++) {
        subject = s ? sprintf("\"subject\":\"user:%d\",", i % 1000) : ""
        printf "{\"type\":\"T\",\"tags\":[\"user:%d\"],%s\"data\":{\"name\":\"%0280d\"}}\n", i % 1000, subject, i } }' |
        curl -sf -X POST -H 'Content-Type: application/x-ndjson' --data-binary @- "$url/v1/logs/$1/import" > /dev/null
}
# read_all CASE LOG: events a second.
read_all() {
    local begun; begun=$(date +%s.%N)
    curl -sf -H 'Accept: application/x-ndjson' "$url/v1/logs/$2/events" > /dev/null
    noted "$1" rate "$(echo "$(date +%s.%N) $begun $events" | awk '{ print $3 / ($1 - $2) }')"
}
fill clear ""
fill sealed 1
sealed='"subject":"user:7",'
curl -sf -X POST "$url/v1/append" -H 'Content-Type: application/json' -d "$(body "$sealed")" > /dev/null
for (( round = 0; round < rounds; round++ )); do
    for case in $(in_turns "$round" clear sealed); do read_all "read-$case" "$case"; done
    for case in $(in_turns "$round" clear sealed); do
        subject=; query=tag
        if [ "$case" = sealed ]; then subject=$sealed; query=subject; fi
        post "append-$case" /v1/append "$(body "$subject")"
        post "ingest-$case" "/e?type=T&$query=user:7" "{\"name\":\"$(printf '%0280d' 7)\"}"
    done
done
for (( round = 0; round < 3; round++ )); do
    subject=person:$round
    for (( n = 0; n < 1000; n++ )); do printf '{"type":"T","subject":"%s","data":{"n":%d}}\n' "$subject" "$n"; done |
        curl -sf -X POST -H 'Content-Type: application/x-ndjson' --data-binary @- "$url/v1/append" > /dev/null
    begun=$(date +%s.%N)
    curl -sf -X DELETE "$url/v1/subjects/$subject?confirm=$subject" | grep -q '"state":"complete"'
    noted erase ms "$(echo "$(date +%s.%N) $begun" | awk '{ print ($1 - $2) * 1000 }')"
done
report "Personal data: sealed ÷ clear"
