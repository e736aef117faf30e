#!/usr/bin/env bash
# A PostgreSQL server of a test's own: a new cluster in DIR, on loopback, on a free port, gone with `down`.
#
#   postgres.sh up DIR [--while PID] [-c setting=value ...]
#       makes and starts it; prints `address=HOST:PORT`, `url=...` and `pid=...`, one a line.
#       --while: a watcher stops and removes it when the process PID is gone, however it ended.
#   postgres.sh standby DIR NEW [--while PID]
#       a standby of the server in DIR, in NEW; DIR commits only with it from then on.
#   postgres.sh stop|start DIR    stops it as a power loss would; starts it again on the same port.
#   postgres.sh promote DIR       makes a primary of a standby.
#   postgres.sh down DIR          stops it by its pid and removes DIR.
#
# As root it runs as the user `postgres` (or $PG_USER): the server refuses root. Programs are looked for in $PG_BIN,
# then where pg_config says, then in /usr/lib/postgresql. Exit status 3: PostgreSQL is not installed.
set -euo pipefail

usage() { sed -n '2,15p' "$0" | sed 's/^# \{0,1\}//'; exit 2; }

find_bin() {
    local dir
    for dir in "${PG_BIN:-}" "$(pg_config --bindir 2>/dev/null || true)" \
        $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV) \
        "$(dirname "$(command -v initdb 2>/dev/null || echo /nowhere/x)")"; do
        if [ -n "$dir" ] && [ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ]; then
            echo "$dir"
            return
        fi
    done
    echo "PostgreSQL is not installed: apt-get install -y postgresql, or set PG_BIN" >&2
    exit 3
}

# Nobody's superuser: PostgreSQL does not start as root.
unprivileged() {
    if [ "$(id -u)" = 0 ]; then
        (cd / && runuser -u "${PG_USER:-postgres}" -- "$@")
    else
        "$@"
    fi
}

# Below the range from which the system gives ports to others: a server that was stopped comes back at its own.
free_port() {
    python3 -c '
import random, socket
while True:
    port = random.randrange(12_000, 32_000)
    with socket.socket() as s:
        if s.connect_ex(("127.0.0.1", port)):
            print(port)
            break'
}

make_dir() {
    [ ! -e "$1/data" ] || { echo "$1 holds a server already: postgres.sh down $1" >&2; exit 1; }
    mkdir -p "$1"
    chmod 755 "$1"
    [ "$(id -u)" != 0 ] || chown "${PG_USER:-postgres}" "$1"
}

start() {
    # Another process may take a free port before the server does: then another one is tried.
    local dir=$1 try
    shift
    for try in 1 2 3 4 5; do
        [ -s "$dir/port" ] && [ "$try" = 1 ] || free_port > "$dir/port"
        if unprivileged "$BIN/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 600 -s \
            -o "-p $(cat "$dir/port") -k '$dir' -c listen_addresses=127.0.0.1 $*" start \
            > /dev/null 2> "$dir/start.err" < /dev/null; then
            return
        fi
    done
    cat "$dir/start.err" "$dir/log" >&2
    exit 1
}

print_server() {
    local port pid
    port=$(cat "$1/port")
    pid=$(head -1 "$1/data/postmaster.pid")
    printf 'address=127.0.0.1:%s\nurl=postgres://postgres@127.0.0.1:%s/postgres\npid=%s\n' "$port" "$port" "$pid"
}

watch_process() {
    [ -n "$2" ] || return 0
    setsid bash -c 'while kill -0 "$1" 2>/dev/null; do sleep 0.5; done; exec "$2" down "$3"' \
        watch "$2" "$SELF" "$1" > /dev/null 2>&1 < /dev/null &
}

up() {
    make_dir "$1"
    # Without barriers (-N): `stop` loses what memory holds, never what the system has.
    unprivileged "$BIN/initdb" -N -D "$1/data" -A trust -U postgres -E UTF8 --locale=C > "$1/initdb.log" 2>&1 ||
        { cat "$1/initdb.log" >&2; exit 1; }
    start "$1" "${SETTINGS[*]:-}"
    print_server "$1"
    watch_process "$1" "$WATCHED"
}

standby() {
    local primary=$1 new=$2 port
    port=$(cat "$primary/port")
    make_dir "$new"
    unprivileged "$BIN/pg_basebackup" -N -h 127.0.0.1 -p "$port" -U postgres -D "$new/data" -R -X stream -c fast \
        -d "application_name=standby" > "$new/basebackup.log" 2>&1 || { cat "$new/basebackup.log" >&2; exit 1; }
    start "$new" "${SETTINGS[*]:-}"
    "$BIN/psql" -qAt -h 127.0.0.1 -p "$port" -U postgres \
        -c "ALTER SYSTEM SET synchronous_standby_names = 'standby'" -c "SELECT pg_reload_conf()" > /dev/null
    print_server "$new"
    watch_process "$new" "$WATCHED"
}

down() {
    if [ -s "$1/data/postmaster.pid" ]; then
        unprivileged "$BIN/pg_ctl" -D "$1/data" -m immediate -w -t 30 -s stop > /dev/null 2>&1 || true
    fi
    rm -rf "$1"
}

[ $# -ge 2 ] || usage
SELF=$(readlink -f "$0")
COMMAND=$1
DIR=$(realpath -m "$2")
shift 2
NEW="" WATCHED="" SETTINGS=()
if [ "$COMMAND" = standby ]; then
    [ $# -ge 1 ] || usage
    NEW=$(realpath -m "$1")
    shift
fi
while [ $# -gt 0 ]; do
    case $1 in
        --while) WATCHED=${2:?--while needs the id of a process}; shift 2 ;;
        -c) SETTINGS+=("-c ${2:?-c needs setting=value}"); shift 2 ;;
        *) usage ;;
    esac
done
BIN=$(find_bin)
case $COMMAND in
    up) up "$DIR" ;;
    standby) standby "$DIR" "$NEW" ;;
    stop) unprivileged "$BIN/pg_ctl" -D "$DIR/data" -m immediate -w -t 30 -s stop ;;
    start) start "$DIR" "${SETTINGS[*]:-}"; print_server "$DIR" ;;
    promote) unprivileged "$BIN/pg_ctl" -D "$DIR/data" -w -t 600 -s promote ;;
    down) down "$DIR" ;;
    *) usage ;;
esac
