#!/usr/bin/env bash
# The catalogue, on a server with one core. (1) Requests: an item from what is rendered (lean loop), the same answer of
# the general stack rendered each time, 304, all items, `POST /e`, linearizable look-ups; orders of one item and of a
# thousand against durable appends of the same event, in turns on one server. (2) Store: ITEMS items imported as NDJSON;
# memory, time from start to the first answer from a snapshot and rebuilt.
# Environment: ROUNDS (4), SECS measured a run (4), WARMUP (1), CLIENTS (64), ITEMS (1000000), PARTS ("requests store"); see
# servers.sh.
# shellcheck disable=SC2154 # servers.sh sets them
# shellcheck disable=SC2034 # servers.sh reads it
plain=1
source "$(dirname "$0")/servers.sh"
rounds=${ROUNDS:-4} secs=${SECS:-4} clients=${CLIENTS:-64} items=${ITEMS:-1000000} parts=" ${PARTS:-requests store} "

# items FROM TO STOCK: items as lines, ten topics.
items() {
    python3 - "$@" <<'PY'
import sys
first, last, stock = map(int, sys.argv[1:])
for i in range(first, last + 1):
    print('{"sku":"sku-%d","name":"Item number %d of the shop","description":"A thing of kind %d, made for measuring","topic":"Topic %d",'
          '"price":%d.%02d,"currency":"EUR","stock":%d}' % (i, i, i % 97, i % 10, i % 500, i % 100, stock))
PY
}

import_items() { "$wellspring" import --preset items --format ndjson --url "http://${address[$1]}" - 2> "$work/import.txt"; }

# asked CASE PATH USERS STATUS FLAG…: one run; its figures into the rows.
asked() {
    local case=$1 path=$2 users=$3 status=$4; shift 4
    taskset -c "$client_core" "$wellspring" bench "http://${address[shop]}$path" -c "$users" --threads 1 --no-pin \
        -z "${secs}s" --warmup "${WARMUP:-1}s" --server-pid "${pid[shop]}" --no-headroom --quiet --expect "$status" \
        --json "$work/run.json" "$@" > "$work/told.txt" 2>&1 || true
    ./load_row.py "$work/run.json" case="$case" users="$users" round="$round" >> "$out"
}

# one CASE: the request of a case.
one() {
    local event='{"events":[{"type":"ItemOrdered","tags":["article:{{random:1..1000}}","order:{{counter}}"],"data":{"item":1,"order":{{counter}},"amount":1,"price_minor":1990}}]}'
    case $1 in
        cached) asked "$1" /lookup/1 "$clients" 200 ;;
        item) asked "$1" /v1/catalogue/items/1 "$clients" 200 ;;
        not-modified) asked "$1" /lookup/2 "$clients" 304 -H "If-None-Match: $(etag /lookup/2)" ;;
        rendered) asked "$1" '/v1/catalogue/items?sku=sku-1' "$clients" 200 ;;
        ingest) asked "$1" /e "$clients" 202 -d '{"a":1}' ;;
        append) asked "$1" /v1/append "$clients" 200 --template -d "$event" ;;
        order-one) asked "$1" '/order/1?amount=1' "$clients" 200 -m POST ;;
        order-thousand) asked "$1" '/order/{{random:1..1000}}?amount=1' "$clients" 200 -m POST --template ;;
        cached-1) asked "$1" '/lookup/3?consistency=cached' 1 200 ;;
        linearizable-1) asked "$1" '/lookup/3?consistency=linearizable' 1 200 ;;
        *) echo "no case is called $1" >&2; return 1 ;;
    esac
}

etag() { curl -sf -o /dev/null -D - "http://${address[shop]}$1" | tr -d '\r' | awk 'tolower($1) == "etag:" { print $2 }'; }

if [[ $parts = *" requests "* ]]; then
    for (( round = 0; round < rounds; round++ )); do
        start shop wellspring pinned --threads 1
        items 1 1000 100000000 | import_items shop
        for case in $(in_turns "$round" cached item not-modified rendered ingest); do one "$case"; done
        for case in $(in_turns "$round" append order-one order-thousand); do one "$case"; done
        for case in $(in_turns "$round" cached-1 linearizable-1); do one "$case"; done
        stop shop
        rm -rf "${work:?}/shop"
    done
fi

# opened CASE: starts the server and waits for its first answer; notes time and memory.
opened() {
    local begun
    begun=$(date +%s%N)
    start shop wellspring none
    until curl -sf "http://${address[shop]}/lookup/$items" > /dev/null; do sleep 0.02; done
    noted "$1" seconds "$(( ($(date +%s%N) - begun) / 1000000 ))e-3"
    noted "$1" resident_mib "$(awk '/VmRSS/ { print $2 / 1024 }' "/proc/${pid[shop]}/status")"
}

if [[ $parts = *" store "* ]]; then
    round=0
    start shop wellspring none
    noted empty resident_mib "$(awk '/VmRSS/ { print $2 / 1024 }' "/proc/${pid[shop]}/status")"
    begun=$(date +%s%N)
    items 1 "$items" 100 | import_items shop
    noted imported seconds "$(( ($(date +%s%N) - begun) / 1000000 ))e-3"
    tail -1 "$work/import.txt"
    stop shop
    for (( round = 0; round < 2; round++ )); do
        opened snapshot; stop shop
        find "$work/shop" -path '*views*' -name '*catalogue*' -type f -delete
        opened rebuilt; stop shop
    done
fi

report "The catalogue"
