#!/usr/bin/env bash
# Two builds at the same time on one core, each with its own clients, and the processor time that each takes for a
# request. What the machine does to one of them it does to the other, so that a few percent show on a host whose speed
# changes threefold; the rates themselves say little, since the builds compete.
# Environment: OLD_BIN (the build of before; required), WELLSPRING_BIN (the new one), ROUNDS (6), SECS (5) of appends,
# CLIENTS (64) of each, MODES ("plain conditional ingest redirect read event graph bulk"), BENCH_BIN (the load tester
# of all but the first two, default WELLSPRING_BIN); see servers.sh. FOLLOWER=1 gives each build two nodes over a
# PostgreSQL, and sends everything to the one that follows: MODES="plain graph bulk" are then forwarded.
# shellcheck disable=SC2154 # servers.sh sets them
source "$(dirname "$0")/servers.sh"
old=${OLD_BIN:?name the build of before in OLD_BIN}
new=$wellspring
rounds=${ROUNDS:-6} secs=${SECS:-5} clients=${CLIENTS:-64}
modes=${MODES:-plain conditional ingest redirect read event graph bulk} bench=${BENCH_BIN:-$new}

# Nanoseconds that the processes of a build have run, in all their threads.
ran() {
    local id
    for id in "${pid[$1]}" ${pid[$1-leader]:+"${pid[$1-leader]}"}; do cat "/proc/$id/task/"*/schedstat; done |
        awk '{ sum += $1 } END { printf "%.0f", sum }'
}
nodes=()
if [ -n "${FOLLOWER:-}" ]; then
    chmod 755 "$work" "$(dirname "$work")"
    url=$(../test-servers/postgres.sh up "$work/postgres" --while $$ | sed -n 's/^url=//p')
    trap 'stop_all; ../test-servers/postgres.sh down "$work/postgres" || true; rm -rf "$work"' EXIT
    python3 -c 'import secrets; print(secrets.token_hex(32))' > "$work/key"; chmod 600 "$work/key"
fi
for label in old wellspring; do
    # shellcheck disable=SC2034 # start reads it
    wellspring=$([ "$label" = old ] && echo "$old" || echo "$new")
    if [ -n "${FOLLOWER:-}" ]; then
        nodes=(--journal "$url?schema=$label" --cluster-key "$work/key" --node)
        start "$label-leader" wellspring pinned --threads 1 "${nodes[@]}" a
        nodes+=(b)
    fi
    start "$label" wellspring pinned --threads 1 ${nodes[@]+"${nodes[@]}"}
done
seq 1000 | awk '{ printf "{\"type\":\"T\",\"tags\":[\"a:%d\"],\"data\":{\"n\":%d}}\n", $1 % 20, $1 }' > "$work/bulk.ndjson"
echo '{"statements":[{"statement":"CREATE (:T {n: 1})"}]}' > "$work/statement.json"
# What redirects and reads ask for: a link, and 200 events of 20 tags.
for label in old wellspring; do
    curl -sf "${address[$label]}/api/urls" --json '{"url":"http://example.com/x","alias":"abc"}' > "$work/made.txt"
    seq 200 | awk '{ printf "{\"type\":\"T\",\"tags\":[\"a:%d\"],\"data\":{\"n\":%d}}\n", $1 % 20, $1 }' |
        curl -sf "${address[$label]}/v1/append" -H 'Content-Type: application/x-ndjson' --data-binary @- > "$work/made.txt"
done

# asked LABEL MODE: one run, ending with a line of how many requests a second or in all.
asked() {
    local url=http://${address[$1]}
    case $2 in
        plain | conditional)
            # shellcheck disable=SC2046 # flags are words
            "$wsbench" append-throughput --mode "$2" --server wellspring --server-name "$1" \
                --address "${address[$1]}" --connections "$clients" --seconds "$secs" --round "$round" \
                $(client_flags pinned) ;;
        *)
            local flags=()
            case $2 in
                ingest) url+=/e flags=(-n 400000 -d '{"a":1}') ;;
                redirect) url+=/abc flags=(-n 300000 --expect 302) ;;
                read) url+='/v1/events?tag=a:3&limit=10' flags=(-n 60000) ;;
                event) url+=/v1/events/7 flags=(-n 80000) ;;
                graph) url+=/db/neo4j/tx/commit flags=(-n 20000 -T application/json -d "@$work/statement.json") ;;
                bulk) url+=/v1/append flags=(-n 500 -T application/x-ndjson -d "@$work/bulk.ndjson") ;;
                *) echo "no mode is called $2" >&2; return 1 ;;
            esac
            taskset -c "$client_core" "$bench" bench "$url" -c "$clients" "${flags[@]}" || true
            echo "${flags[1]} requests" ;;
    esac
}

declare -A before
for (( round = 0; round < rounds; round++ )); do
    for mode in $modes; do
        loads=()
        for label in old wellspring; do
            before[$label]=$(ran "$label")
            asked "$label" "$mode" > "$work/$label.txt" 2>&1 &
            loads+=($!)
        done
        wait "${loads[@]}"
        for label in old wellspring; do
            count=$(awk -v secs="$secs" '/appends\/s/ { for (i = 2; i <= NF; i++) if ($i ~ /^appends\/s/) n = $(i - 1) * secs }
                / requests$/ && NF == 2 { n = $1 } END { print n }' "$work/$label.txt")
            echo "$mode $label $(( $(ran "$label") - before[$label] )) $count" | tee -a "$work/rows"
        done
    done
done
{
    heading "Two builds at the same time: processor time of a request, $clients clients each"
    awk '
        { us = $3 / 1000 / $4 }
        $2 == "old" { old[$1] = us }
        $2 != "old" { n[$1]++; ratio[$1, n[$1]] = us / old[$1] }
        END {
            for (mode in n) {
                for (i = 1; i <= n[mode]; i++) for (j = i; j > 1 && ratio[mode, j] < ratio[mode, j-1]; j--) {
                    t = ratio[mode, j]; ratio[mode, j] = ratio[mode, j-1]; ratio[mode, j-1] = t
                }
                printf "- %s: new ÷ old %.3f (%.3f … %.3f), median of %d rounds\n", mode,
                    ratio[mode, int((n[mode] + 1) / 2)], ratio[mode, 1], ratio[mode, n[mode]], n[mode]
            }
        }' "$work/rows"
}
