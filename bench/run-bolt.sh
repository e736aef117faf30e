#!/bin/bash
# Bolt against HTTP on one server, by the official Go driver: creates at 1 and 99 clients, and
# 100,000 rows. Usage: bench/run-bolt.sh [PROGRAM]; needs Go.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-${WELLSPRING_BIN:-$here/../target/release/wellspring}}")
cd "$here"
data=$(mktemp -d)
export OUT=${OUT:-$data/rows.jsonl}
port=${PORT:-4171}
"$program" serve --data "$data/wellspring" --listen "127.0.0.1:$port" >"$data/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$data"' EXIT
for _ in $(seq 50); do curl -sf "http://127.0.0.1:$port/health/ready" >/dev/null && break; sleep 0.1; done
(cd bolt && go run . "127.0.0.1:$port" "$server")
./figures.py bolt "$OUT"
