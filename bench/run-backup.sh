#!/usr/bin/env bash
# Backup and restore: how fast, and what appends notice of them.
#
# - backup: bytes a second of `wellspring backup` to a folder, against a plain copy of the same segments with a
#   barrier (cp, sync) in turns; and the 99th percentile of durable appends during backups against quiet ones.
# - restore: events a second.
# Environment: WELLSPRING_BIN, EVENTS (2000000), ROUNDS (3), SECS (10); see servers.sh.
# shellcheck disable=SC2034,SC2154
plain=1
source "$(dirname "$0")/servers.sh"
events=${EVENTS:-2000000} rounds=${ROUNDS:-3}
now() { date +%s.%N; }
since() { echo "$(now) $1" | awk '{ printf "%.3f", $1 - $2 }'; }
cold() { sync; echo 1 > /proc/sys/vm/drop_caches 2> /dev/null || true; }

start wellspring wellspring none --scrub-bytes-per-s 0
url=http://${address[wellspring]}
awk -v n="$events" 'BEGIN { for (i = 1; i <= n; i++)
    printf "{\"type\":\"OrderPlaced\",\"tags\":[\"order:%d\",\"customer:%d\"],\"data\":{\"total\":%d.50,\"note\":\"a few words of text\"}}\n", i, i % 5000, i % 900 }' \
    > "$work/events.ndjson"
"$wellspring" import "$work/events.ndjson" --url "$url" 2>&1 | tail -1
data=$work/wellspring
bytes=$(cat "$data"/logs/*/*.seg | wc -c)
for (( round = 0; round < rounds; round++ )); do
    cold; begun=$(now); mkdir -p "$work/copy"; cp "$data"/logs/main/*.seg "$work/copy/"; sync "$work/copy"/*; copied=$(since "$begun"); rm -rf "$work/copy"
    cold; begun=$(now); "$wellspring" backup --url "$url" --to "$work/backup" 2> /dev/null; took=$(since "$begun")
    begun=$(now); "$wellspring" restore --from "$work/backup" --data "$work/restored" > /dev/null 2>&1; restored=$(since "$begun")
    rm -rf "$work/restored" "$work/backup"
    noted copy mb_per_s "$(awk "BEGIN { print $bytes / $copied / 1e6 }")"
    noted backup mb_per_s "$(awk "BEGIN { print $bytes / $took / 1e6 }")"
    noted restore rate "$(awk "BEGIN { print $events / $restored }")"
done
# Appends with a backup running and without, in turns.
# during CASE FLAG…: load while backup follows backup, each to a folder of its own.
during() {
    local case=$1; shift
    ( n=0; until [ -e "$work/ended" ]; do "$wellspring" backup --url "$url" --to "$work/during/$(( n++ ))" "$@" 2> /dev/null || true; done ) & loop=$!
    load "$case"
    touch "$work/ended"; wait "$loop"
    rm -rf "$work/during" "$work/ended"; sync; sleep 1
}
for (( round = 0; round < rounds; round++ )); do
    load quiet
    during unlimited
    during limited --rate 67108864
done
report "Backup and restore: $events events, $((bytes / 1000000)) MB of segments"
