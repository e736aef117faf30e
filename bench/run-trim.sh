#!/usr/bin/env bash
# The beginning of a log is removed: how long a cut takes, and what appends notice of it.
#
# A log of EVENTS events loses a tenth in each cut, while 16 connections append durably at a steady rate; in turns with
# quiet rounds. The last cut removes everything but the last segment.
# Environment: WELLSPRING_BIN, EVENTS (20000000), ROUNDS (3), SECS (10); see servers.sh.
# shellcheck disable=SC2034,SC2154
plain=1
source "$(dirname "$0")/servers.sh"
events=${EVENTS:-20000000} rounds=${ROUNDS:-3}
now() { date +%s.%N; }

start wellspring wellspring none --scrub-bytes-per-s 0 --segment-bytes 67108864
url=http://${address[wellspring]}
awk -v n="$events" 'BEGIN { for (i = 1; i <= n; i++)
    printf "{\"type\":\"Measured\",\"tags\":[\"device:%d\",\"site:%d\"],\"data\":{\"value\":%d.50,\"note\":\"%0200d\"}}\n", i % 100000, i % 500, i % 900, i }' |
    "$wellspring" import - --format ndjson --url "$url" 2>&1 | tail -1
bytes=$(cat "$work"/wellspring/logs/main/*.seg | wc -c)
# cut POSITION: milliseconds of a cut.
cut() {
    local begun; begun=$(now)
    curl -sf -X POST "$url/v1/trim?before=$1" > "$work/cut.json" || { cat "$work/cut.json"; exit 1; }
    noted cut ms "$(echo "$(now) $begun" | awk '{ print ($1 - $2) * 1000 }')"
}
share=$(( events / (rounds * 3 + 1) )) at=0
for (( round = 0; round < rounds; round++ )); do
    load quiet
    ( sleep 1; for (( n = 0; n < 3; n++ )); do at=$(( at + share )); cut "$at"; sleep 2; done ) & loop=$!
    load cuts
    wait "$loop"
    at=$(( at + 3 * share ))
done
round=$rounds
cut "$events"
report "Cuts: $events events, $((bytes / 1000000)) MB of segments"
