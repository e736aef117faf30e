#!/usr/bin/env bash
# Links. (1) Redirects with the click recorded against POST /e, and links made against durable appends: all
# against one server, in turns, everything answered counted in the log and folded before the server's CPU time
# is read. (2) Redirects of a link that has GROWTH_CLICKS clicks against one that has none, in turns. (3) How
# long the view of links takes to be there after a start, rebuilt from CLICKS clicks on 1000 links and from its
# snapshot. (4) Memory of LINKS links, and of CLICKED links with 10 clicks each (10 visitors).
# Environment: ROUNDS (4), SECS measured a run (3), WARMUP (0.5), CONNECTIONS ("1 64"), GROWTH_CLICKS (20000000)
# and CLICKS (10000000; each takes some GB of disk), LINKS (1000000), CLICKED (100000), PARTS ("load growth rebuild
# memory"), BENCH_BIN; see servers.sh.
source "$(dirname "$0")/servers.sh"
source ./ingest.sh
rounds=${ROUNDS:-4} clicks=${CLICKS:-10000000} links=${LINKS:-1000000} clicked=${CLICKED:-100000}
growth=${GROWTH_CLICKS:-20000000} parts=" ${PARTS:-load growth rebuild memory} "
for count in "$clicks" "$links" "$clicked" "$growth"; do
    [[ $count =~ ^[1-9][0-9]*$ ]] || { echo "CLICKS, LINKS and the like are numbers, not $count" >&2; exit 1; }
done
# What an event of a click was seen to take, and room for its view.
needed_mib=$(( (clicks > growth ? clicks : growth) * 160 / 1048576 + 1024 ))
free_mib=$(df -Pm "$work" | awk 'NR == 2 { print $4 }')
if (( free_mib < needed_mib )); then
    echo "$work has $free_mib MiB free; $needed_mib may be needed" >&2
    exit 1
fi

# asked SERVER NAME WHAT CONNECTIONS: one run of WHAT against a running server.
asked() {
    # shellcheck disable=SC2046 # flags are words
    "$wsbench" links --what "$3" --server-name "$2" --address "${address[$1]}" --server-pid "${pid[$1]}" \
        --bench "$bench" --connections "$4" --seconds "${SECS:-3}" --warmup "${WARMUP:-0.5}" --round "$round" \
        $(client_flags pinned)
}

if [[ $parts = *" load "* ]]; then
    for (( round = 0; round < rounds; round++ )); do
        start links wellspring pinned --threads 1
        for connections in ${CONNECTIONS:-1 64}; do
            for what in $(in_turns "$round" events redirect many); do asked links "$what" "$what" "$connections"; done
            for what in $(in_turns "$round" append create); do asked links "$what" "$what" "$connections"; done
        done
        stop links
        rm -rf "${work:?}/links"
    done
fi

if [[ $parts = *" growth "* ]]; then
    start full wellspring pinned --threads 1 --link-accept-events
    "$wsbench" links-fill --address "${address[full]}" --one true --clicked "$(( (growth + 9999) / 10000 ))" \
        --each 10000 --out "$out"
    sync
    for (( round = 0; round < rounds; round++ )); do
        start empty wellspring pinned --threads 1
        for connections in ${CONNECTIONS:-1 64}; do
            for label in $(in_turns "$round" empty full); do
                asked "$label" "redirect-$label" redirect "$connections"
            done
        done
        stop empty
        rm -rf "${work:?}/empty"
    done
    stop full
    rm -rf "${work:?}/full"
fi

# fill FOLDER FLAG…: links or clicks into the log of this folder.
fill() {
    local folder=$1; shift
    start "$folder" wellspring none --link-accept-events
    "$wsbench" links-fill --address "${address[$folder]}" --out "$out" "$@"
    stop "$folder"
}

# opened FOLDER CASE REBUILD: one start.
opened() {
    "$wsbench" links-open --binary "$wellspring" --data "$work/$1" --case "$2" --rebuild "$3" \
        --round "$round" --out "$out"
}

if [[ $parts = *" rebuild "* ]]; then
    each=$(( (clicks + 999) / 1000 ))
    fill clicks --links 1000 --clicked 1000 --each "$each"
    sync
    for (( round = 0; round < rounds; round++ )); do
        opened clicks "$(( each * 1000 )) clicks on 1000 links" true
        opened clicks "$(( each * 1000 )) clicks on 1000 links" false
    done
    rm -rf "${work:?}/clicks"
fi

if [[ $parts = *" memory "* ]]; then
    mkdir "$work/memory"
    for (( round = 0; round < 3; round++ )); do opened memory empty true; done
    fill memory --links "$links"
    for (( round = 0; round < 3; round++ )); do opened memory "$links links" true; done
    fill memory --clicked "$clicked" --each 10
    for (( round = 0; round < 3; round++ )); do opened memory "$links links, $clicked clicked" true; done
fi

report "Links"
