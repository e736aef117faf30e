#!/bin/bash
# Consumers against NATS JetStream, whose server is built from the Go module proxy, in turns.
# Usage: bench/run-consumers.sh [PROGRAM] [flags of bench/consumers]; needs Go. Environment: EVENTS,
# ROUNDS, KAFKA=1 (then against transactions of a broker as well, which needs Java and Maven).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-${WELLSPRING_BIN:-$here/../target/release/wellspring}}")
shift || true
tools=${TOOLS:-$here/../target/bench-tools}
mkdir -p "$tools"
if [ ! -x "$tools/nats-server" ]; then
	GOBIN="$tools" go install github.com/nats-io/nats-server/v2@v2.15.2
fi
data=$(mktemp -d -p "${DATA:-$here/../target}")
port=${PORT:-4171}
export OUT=${OUT:-$data/rows.jsonl}
mkdir "$data/nats"
cat >"$data/nats.conf" <<CONF
listen: 127.0.0.1:$((port + 1))
jetstream { store_dir: "$data/nats", sync_interval: always, max_mem: 256MB, max_file: 8GB }
CONF
"$program" serve --data "$data/wellspring" --listen "127.0.0.1:$port" >"$data/log" 2>&1 &
server=$!
"$tools/nats-server" -c "$data/nats.conf" >"$data/nats.log" 2>&1 &
nats=$!
trap 'kill $server $nats 2>/dev/null; wait $server $nats 2>/dev/null; rm -rf "$data"' EXIT
for _ in $(seq 50); do curl -sf "http://127.0.0.1:$port/health/ready" >/dev/null && break; sleep 0.1; done
cd "$here/consumers"
measured() {
	go run . -wellspring "http://127.0.0.1:$port" ${EVENTS:+-events "$EVENTS"} ${ROUNDS:+-rounds "$ROUNDS"} "$@"
}
measured -nats "nats://127.0.0.1:$((port + 1))" "$@"
if [ "${KAFKA:-0}" = 1 ]; then
	# Only now: a broker that is idle takes processor time, too.
	kill $nats
	kafka=$here/../test-servers/kafka.sh
	brokers=$(KAFKA_HEAP=1g KAFKA_TIER=4 "$kafka" up "$data/kafka" --while $$ | sed -n 's/^address=//p')
	"$kafka" tool "$data/kafka" org.apache.kafka.tools.TopicCommand --bootstrap-server "$brokers" --create \
		--topic results --partitions 16 >"$data/topic.log"
	measured -kafka "$brokers" -only kafka
	"$kafka" down "$data/kafka"
fi
"$here/figures.py" consumers "$OUT"
