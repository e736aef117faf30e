#!/usr/bin/env bash
# Sinks and sources, with a Kafka broker, the server and the clients on the same machine.
# (1) end-to-end: EVENTS by `POST /e` at full speed, until all of them are committed in a topic, counted there by Kafka's
#     own consumer; in turns with Kafka's own producer (acks=all) on the same broker.
# (2) beside: `POST /e` at full speed, and one client's appends, with a sink that delivers them and with the same sink
#     paused, in turns.
# (3) source: RECORDS by Kafka's own producer, until all of them are in a log.
# (4) webhook: HOOKS signed requests to a receiver that answers at once, at 64 in flight (crates/connectors/examples/webhook_rate.rs).
# Needs Java and Maven (test-servers/kafka.sh), and a program with the feature kafka.
# Environment: EVENTS (1000000), RECORDS (1000000), HOOKS (200000), ROUNDS (3), SECS (5), PARTS ("end beside source webhook");
# see servers.sh.
# shellcheck disable=SC2154 # servers.sh sets them
# shellcheck disable=SC2034 # servers.sh reads it
plain=1
source "$(dirname "$0")/servers.sh"
rounds=${ROUNDS:-3} secs=${SECS:-5} events=${EVENTS:-1000000} records=${RECORDS:-1000000} hooks=${HOOKS:-200000}
parts=" ${PARTS:-end beside source webhook} "
kafka=$PWD/../test-servers/kafka.sh
trap 'stop_all; "$kafka" down "$work/kafka"; rm -rf "$work"' EXIT

KAFKA_HEAP=1g KAFKA_TIER=4 "$kafka" up "$work/kafka" --while $$ > "$work/kafka.txt"
brokers=$(sed -n 's/^address=//p' "$work/kafka.txt")
# The lines that drive it are Python: one driver, no jq.
export wellspring brokers work out rounds secs events records hooks parts kafka
start hub wellspring none
if [[ $parts == *" webhook "* ]]; then
    cargo build --release --quiet --manifest-path ../Cargo.toml -p wellspring-connectors --example webhook_rate
    export webhook_rate=$PWD/../target/release/examples/webhook_rate
fi
python3 kafka/measure.py "http://${address[hub]}"
report "Kafka and webhooks"
