#!/usr/bin/env bash
# The graph. (1) Writes: nodes created one a transaction, at 1 and 99 connections and over 99 streams of one HTTP/2
# connection, and a counter that 99 clients increment, against durable appends of the same event, in turns on one
# server. (2) Store: NODES nodes and five times as many relationships made over HTTP; memory, time from start to the
# first answer from a snapshot and rebuilt, three hops over HTTP, and creates at a steady rate alone and beside
# queries that go through the whole graph.
# Environment: ROUNDS (4), SECS measured a run (4), WARMUP (1), NODES (1000000; takes some GB of disk), RATE (300
# creates a second), PARTS ("writes store"); see servers.sh.
source "$(dirname "$0")/servers.sh"
rounds=${ROUNDS:-4} secs=${SECS:-4} nodes=${NODES:-1000000} parts=" ${PARTS:-writes store} "
declare -A path json
statement() { printf '{"statements":[{"statement":"%s","parameters":%s}]}' "$1" "${2:-{\}}"; }
node='"id":{{counter}},"timestamp":{{now_ns}}'
path[append]=/v1/append
json[append]='{"events":[{"type":"NodeCreated","tags":["label:TestNode"],"data":{"nodes":[{"id":{{counter}},"new":["TestNode"],"set":{'$node'}}]}}]}'
path[create]=/db/neo4j/tx/commit
json[create]=$(statement 'CREATE (n:TestNode {id: $id, timestamp: $timestamp})' "{$node}")
path[counter]=${path[create]} path[hops]=${path[create]}
json[counter]=$(statement 'MATCH (c:C {id:1}) SET c.n = c.n + 1')
json[hops]=$(statement 'MATCH (:Person {id: $id})-[:KNOWS]->()-[:KNOWS]->()-[:KNOWS]->() RETURN count(*)' '{"id":{{random:0..'$(( nodes - 1 ))'}}}')

# cypher LABEL STATEMENT: the rows of one statement; fails if it does.
cypher() {
    statement "$2" | curl --silent --fail --json @- "http://${address[$1]}/db/neo4j/tx/commit" | python3 -c '
import json, sys
answer = json.load(sys.stdin)
assert not answer["errors"], answer
print(*[row["row"] for row in answer["results"][0]["data"]])'
}

# asked SERVER CASE WHAT USERS FLAG…: one run of WHAT, each answer looked into; its figures into the rows.
asked() {
    local label=$1 case=$2 what=$3 users=$4; shift 4
    local right='"/errors" = { length = 0 }'
    [ "$what" = append ] && right='"/first" = "exists"'
    cat > "$work/scenario.toml" <<TOML
name = "$what"
[[step]]
name = "$what"
method = "POST"
path = "${path[$what]}"
json = '${json[$what]}'
expect = { status = 200, json = { $right } }
TOML
    taskset -c "$client_core" "$wellspring" bench scenario "$work/scenario.toml" --url "http://${address[$label]}" \
        --users "$users" --threads 1 --no-pin -z "${secs}s" --warmup "${WARMUP:-1}s" --server-pid "${pid[$label]}" \
        --no-headroom --quiet --json "$work/run.json" "$@" > "$work/told.txt" 2>&1 || true
    ./load_row.py "$work/run.json" case="$case" users="$users" round="$round" >> "$out"
}

# Each create is a node and an event, each increment is in the counter.
counted() {
    local made events increments changes
    made=$(cypher "$1" 'MATCH (n:TestNode) RETURN count(n)')
    increments=$(cypher "$1" 'MATCH (c:C) RETURN c.n')
    tagged() {
        curl --silent --fail "http://${address[$1]}/v1/project" --json '{"projections":{"n":{"query":{"items":[{"types":["GraphChanged"],"tags":["label:'"$2"'"]}]},"reduce":"count"}}}' |
            python3 -c 'import json, sys; print([json.load(sys.stdin)["states"]["n"]])'
    }
    events=$(tagged "$1" TestNode) changes=$(tagged "$1" C)
    [ "$made" = "$events" ] || { echo "$made nodes, $events events of creation" >&2; return 1; }
    # One event created the counter.
    [ $(( ${increments//[^0-9]/} + 1 )) = "${changes//[^0-9]/}" ] || { echo "counter at $increments, $changes events" >&2; return 1; }
}

if [[ $parts = *" writes "* ]]; then
    for (( round = 0; round < rounds; round++ )); do
        start graph wellspring pinned --threads 1
        cypher graph 'CREATE (:C {id: 1, n: 0})' > /dev/null
        for case in $(in_turns "$round" append-1 create-1); do asked graph "$case" "${case%-*}" 1; done
        for case in $(in_turns "$round" append-99 create-99 create-h2 counter-99); do
            case $case in
                create-h2) asked graph "$case" create 1 --h2c --streams 99 ;;
                *) asked graph "$case" "${case%-*}" 99 ;;
            esac
        done
        counted graph
        stop graph
        rm -rf "${work:?}/graph"
    done
fi

# opened CASE: starts the server on the big graph, waits for its first answer, and notes how long it took.
opened() {
    local begun now resident
    begun=$(date +%s%N)
    start big wellspring none
    until [ "$(cypher big 'MATCH (n:Person) RETURN count(n)' 2> /dev/null)" = "[$nodes]" ]; do sleep 0.05; done
    now=$(date +%s%N)
    resident=$(awk '/VmRSS/ { print $2 / 1024 }' "/proc/${pid[big]}/status")
    noted "$1" seconds "$(( (now - begun) / 1000000 ))e-3"
    noted "$1" elements_per_s "$(( nodes * 6 * 1000 / ((now - begun) / 1000000) ))"
    noted "$1" resident_mib "$resident"
}

# fill: nodes by the ten thousand, then relationships between ends that a formula draws.
fill() {
    python3 - "${address[big]}" "$nodes" <<'PY'
import http.client, json, sys
address, nodes = sys.argv[1], int(sys.argv[2])
connection = http.client.HTTPConnection(address)
def run(statement, **parameters):
    body = json.dumps({"statements": [{"statement": statement, "parameters": parameters}]})
    connection.request("POST", "/db/neo4j/tx/commit", body, {"Content-Type": "application/json"})
    answer = json.load(connection.getresponse())
    assert not answer["errors"], answer["errors"]
run("CREATE INDEX person_id FOR (n:Person) ON (n.id)")
step = 10_000
for begin in range(0, nodes, step):
    run("UNWIND range($a, $b) AS i CREATE (:Person {id: i, name: 'person ' + i, score: i * 7919 % 1000003})",
        a=begin, b=min(begin + step, nodes) - 1)
for begin in range(0, 5 * nodes, step):
    run("UNWIND range($a, $b) AS i MATCH (a:Person {id: i % $n}), (b:Person {id: i * 2654435761 % 4294967291 % $n}) "
        "CREATE (a)-[:KNOWS {since: i % 100}]->(b)", a=begin, b=begin + step - 1, n=nodes)
PY
}

# scans SECONDS: one client goes through the whole graph again and again; the client is the load tester's, so that
# nothing else takes part in what is measured.
scans() {
    local looked="MATCH (a:Person)-[:KNOWS]->(b:Person) WHERE a.score + b.score < 0 RETURN count(*)"
    statement "$looked" > "$work/scan.json"
    taskset -c "$client_core" "$wellspring" bench "http://${address[big]}/db/neo4j/tx/commit" -c 1 -d "@$work/scan.json" \
        -H 'Content-Type: application/json' --no-pin -z "${1}s" --no-headroom --quiet --json "$work/scans.json" > "$work/scans.txt" 2>&1
}

if [[ $parts = *" store "* ]]; then
    round=0
    start big wellspring none
    begun=$(date +%s%N)
    fill
    noted filled seconds "$(( ($(date +%s%N) - begun) / 1000000 ))e-3"
    cypher big 'MATCH (a:Person)-[r:KNOWS]->() RETURN count(r)'
    stop big
    sync
    for (( round = 0; round < 2; round++ )); do
        opened snapshot; stop big
        find "$work/big" -path '*views*' -name '*graph*' -type f -delete
        opened rebuilt
        if (( round == 0 )); then stop big; fi
    done
    for (( round = 0; round < rounds; round++ )); do
        asked big hops hops 1
        asked big create-alone create 64 --rate "${RATE:-300}"
        scans "$(( secs + ${WARMUP:-1} + 2 ))" &
        asked big create-beside-scans create 64 --rate "${RATE:-300}"
        wait $!
    done
    stop big
fi

report "The graph"
