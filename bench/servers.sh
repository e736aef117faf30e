# shellcheck shell=bash
# Sourced by the run-*.sh drivers: builds wsbench, starts and stops servers on free loopback ports in a
# temporary folder on a real disk, and reports. Every process is stopped by its own id.
#
# Environment: WELLSPRING_BIN (default ../target/release/wellspring; "null" takes the null server instead, to
# try the drivers; NULL_LOSE=n makes it lose each n-th event of POST /e, to see them fail), UMADB_VERSION,
# ROUNDS, BENCH_TMP, BENCH_CACHE, BENCH_BOOST=1 (own autogroup at nice -15), OUT (keeps the rows in this file).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ "${BENCH_BOOST:-0}" = 1 ] && [ -z "${BENCH_BOOSTED:-}" ]; then
    # Under sched_autogroup `nice` means nothing between sessions: take a session of our own and raise it.
    export BENCH_BOOSTED=1
    exec setsid -w bash -c 'echo -15 > /proc/self/autogroup 2>/dev/null || true; exec "$@"' - "$0" "$@"
fi

# A driver that needs no wsbench sets `plain` before it sources this: nothing is built.
[ -n "${plain:-}" ] || CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-1} cargo build --release --quiet
wsbench=$PWD/target/release/wsbench
# Where `wellspring bench` finds the load tester.
PATH=$(realpath -m ../target/release):$PATH
wellspring=${WELLSPRING_BIN:-$PWD/../target/release/wellspring}
cache=${BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/wellspring-bench}
umadb=$cache/umadb-venv/bin/umadb
name=$(basename "$0" .sh); name=${name#run-}
mkdir -p "${BENCH_TMP:-target/tmp}"
work=$(mktemp -d -p "${BENCH_TMP:-target/tmp}" "$name.XXXXXX"); work=$(realpath "$work")
out=${OUT:-$work/rows.jsonl}
server_core=0
client_core=$(( $(nproc) > 1 ? 1 : 0 ))
declare -A address pid

# A driver that starts no server sets `serverless` before it sources this.
if [ -z "${serverless:-}" ] && [ "$wellspring" != null ] && [ ! -x "$wellspring" ]; then
    echo "no Wellspring at $wellspring: build it (cargo build --release) or set WELLSPRING_BIN" >&2
    exit 1
fi

# UmaDB's server and Python client in a virtual environment of their own.
install_umadb() {
    [ -x "$umadb" ] && return
    mkdir -p "$cache"
    python3 -m venv "$cache/umadb-venv"
    "$cache/umadb-venv/bin/pip" install --quiet "umadb==${UMADB_VERSION:-0.7.8}"
}

# answers KIND ADDRESS: whether the server answers (a floor: whether it listens, for it knows only POST /e).
answers() {
    case $1 in
        epoll | uring | hyper) (exec 3<> "/dev/tcp/${2%:*}/${2##*:}") 2> /dev/null ;;
        umadb) "$wsbench" head --server umadb --address "$2" > /dev/null 2>&1 ;;
        wellspring) curl -sf "http://$2/health" > /dev/null 2>&1 ;;
        *) "$wsbench" head --server wellspring --address "$2" > /dev/null 2>&1 ;;
    esac
}

free_address() {
    if [ -z "${plain:-}" ]; then "$wsbench" free-address; return; fi
    python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print("127.0.0.1:%d" % s.getsockname()[1])'
}

# start LABEL KIND PINNING [ARGUMENT…]: starts a server and waits until it answers. KIND is wellspring, umadb,
# null, or a floor (epoll, uring, hyper); PINNING is "pinned" or "none". Leaves address[LABEL] and pid[LABEL].
start() {
    local label=$1 kind=$2 pinning=$3; shift 3
    local at data=$work/$label run=()
    at=$(free_address)
    mkdir -p "$data"
    [ "$pinning" = pinned ] && run=(taskset -c "$server_core")
    [ "$kind" = wellspring ] && [ "$wellspring" = null ] && kind=null
    case $kind in
        wellspring) run+=("$wellspring" serve --data "$data" --listen "$at" "$@") ;;
        umadb) run+=("$umadb" --listen "$at" --db-path "$data" "$@") ;;
        null) run+=("$wsbench" null-server --address "$at" ${NULL_LOSE:+--lose "$NULL_LOSE"}) ;;
        epoll | uring | hyper) run+=("${wsbench%/*}/floor" "$kind" "$at") ;;
    esac
    "${run[@]}" > "$work/$label.log" 2>&1 &
    pid[$label]=$!
    address[$label]=$at
    for _ in $(seq 300); do
        answers "$kind" "$at" && return
        kill -0 "${pid[$label]}" 2> /dev/null || break
        sleep 0.1
    done
    echo "$label did not start:" >&2; tail -20 "$work/$label.log" >&2; exit 1
}

# stop LABEL: ends one server by its id and waits for it.
stop() {
    local id=${pid[$1]:-}
    [ -n "$id" ] || return 0
    unset "pid[$1]"
    kill "$id" 2> /dev/null || true
    wait "$id" 2> /dev/null || true
}

stop_all() { local label; for label in "${!pid[@]}"; do stop "$label"; done; }
clean_up() { stop_all; rm -rf "$work"; }
trap clean_up EXIT
trap 'exit 130' INT TERM

# in_turns ROUND A B C …: prints the labels forwards in even rounds and backwards in odd ones (A B, B A), so
# that a drift of the machine falls on all of them alike.
in_turns() {
    local round=$1; shift
    if (( round % 2 )); then printf '%s\n' "$@" | tac; else printf '%s\n' "$@"; fi
}

# client_flags PINNING: what tells wsbench where to run.
client_flags() {
    echo "--pinning $1 --out $out"
    if [ "$1" = pinned ]; then echo "--pin $client_core"; fi
}

# heading TEXT: the environment before the tables.
heading() {
    echo "## $1"
    echo
    [ "$wellspring" != null ] || echo "THE NULL SERVER IN PLACE OF WELLSPRING"
    [ -n "${plain:-}" ] || "$wsbench" environment
    echo "- data on $(stat -f -c %T "$work"), pinned = server on core $server_core, client on core $client_core"
    echo
}

# noted CASE FIELD VALUE: a figure into the rows.
noted() { printf '{"case":"%s","round":%s,"%s":%s}\n' "$1" "${round:-0}" "$2" "$3" >> "$out"; }

# load CASE: durable appends of one event from 16 connections to the server "wellspring", for SECS seconds (10).
load() {
    local body='{"events":[{"type":"T","tags":["a:1"],"data":{"n":1}}]}'
    "$wellspring" bench "http://${address[wellspring]}/v1/append" -m POST -H 'Content-Type: application/json' -d "$body" -c 16 --duration "${SECS:-10}s" \
        --rate 1500 -q --no-headroom --json "$work/run.json" > "$work/told.txt" 2>&1 || true
    ./load_row.py "$work/run.json" case="$1" round="$round" >> "$out"
}

# report TEXT: the figures of this driver, as goals.toml defines them.
report() {
    heading "$1"
    ./figures.py "${PART:-$name}" "$out"
}
