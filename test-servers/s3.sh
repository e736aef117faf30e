#!/usr/bin/env bash
# An object store that speaks S3, of a test's own (moto), on loopback, on a free port, in memory.
#
#   s3.sh up DIR [--while PID]    starts it; prints `url=...`; makes the bucket `backups`.
#       --while: a watcher stops it when the process PID is gone, however it ended.
#   s3.sh down DIR                stops it by its pid.
#
# Exit status 3: moto is not installed (pip install 'moto[server]').
set -euo pipefail

usage() { sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 2; }

up() {
    local dir=$1 port url
    command -v moto_server > /dev/null && moto_server --help > /dev/null 2>&1 ||
        { echo "moto is not installed: pip install 'moto[server]'" >&2; exit 3; }
    mkdir -p "$dir"
    for _ in 1 2 3 4 5; do
        # Another process may take a free port before the server does: then another one is tried.
        port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
        url=http://127.0.0.1:$port
        moto_server -H 127.0.0.1 -p "$port" > "$dir/log" 2>&1 < /dev/null &
        echo $! > "$dir/pid"
        for _ in $(seq 150); do
            curl -sf -X PUT "$url/backups" -o /dev/null 2> /dev/null && { echo "url=$url"; return; }
            kill -0 "$(cat "$dir/pid")" 2> /dev/null || break
            sleep 0.1
        done
    done
    echo "moto does not start:" >&2; tail -5 "$dir/log" >&2; exit 1
}

down() {
    [ ! -s "$1/pid" ] || kill "$(cat "$1/pid")" 2> /dev/null || true
    rm -rf "$1"
}

[ $# -ge 2 ] || usage
case $1 in
    up)
        dir=$2; shift 2
        up "$dir"
        if [ "${1:-}" = --while ]; then
            owner=$2
            ( while kill -0 "$owner" 2> /dev/null; do sleep 1; done; down "$dir" ) > /dev/null 2>&1 < /dev/null &
        fi ;;
    down) down "$2" ;;
    *) usage ;;
esac
