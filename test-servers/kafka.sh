#!/usr/bin/env bash
# A Kafka cluster of a test's own: brokers in DIR (KRaft, a JVM each), on loopback, on free ports, gone with `down`.
#
#   kafka.sh up DIR [--brokers N] [--while PID] [--secure] [-c setting=value ...]
#       makes and starts N brokers (1); prints `address=HOST:PORT[,HOST:PORT...]` and `pids=PID[ PID...]`, one a line.
#       --while: a watcher stops and removes them when the process PID is gone, however it ended.
#       --secure: listens with TLS and SASL besides; prints `secure=HOST:PORT[,...]` and `ca=FILE`. There the user
#       `wellspring` has the password `kafka-secret`, by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
#   kafka.sh kill DIR [N]         kills broker N (all) as kill -9 does.
#   kafka.sh start DIR [N]        starts it again on the same ports, and waits until it answers; prints as `up`.
#   kafka.sh tool DIR CLASS ...   runs a tool of Kafka's own, e.g. org.apache.kafka.tools.consumer.ConsoleConsumer.
#   kafka.sh down DIR             kills all by their pids and removes DIR.
#   kafka.sh fetch                fetches Kafka alone, so that the first `up` does not have to.
#
# Kafka comes from Maven Central, once, into $KAFKA_LIBS (~/.cache/wellspring/kafka-VERSION). Exit status 3: Java or
# Maven is not installed, or Kafka cannot be fetched.
set -euo pipefail

VERSION=${KAFKA_VERSION:-4.1.1}
LIBS=${KAFKA_LIBS:-${XDG_CACHE_HOME:-$HOME/.cache}/wellspring/kafka-$VERSION}
PASSWORD=kafka-secret

usage() { sed -n '2,18p' "$0" | sed 's/^# \{0,1\}//'; exit 2; }

unavailable() { echo "$1" >&2; exit 3; }

# Several tests may want it at once: one fetches, into a folder that gets its name when it is whole.
fetch() {
    command -v java > /dev/null || unavailable "Java is not installed: apt-get install -y openjdk-17-jre-headless"
    [ ! -d "$LIBS" ] || return 0
    command -v mvn > /dev/null || unavailable "Maven is not installed: apt-get install -y maven"
    mkdir -p "$(dirname "$LIBS")"
    exec 9> "$LIBS.lock"
    flock 9
    if [ ! -d "$LIBS" ]; then
        local work
        work=$(mktemp -d "$LIBS.XXXXXX")
        write_pom "$work/pom.xml"
        (cd "$work" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=libs) > "$work/log" 2>&1 ||
            { cat "$work/log" >&2; rm -rf "$work"; unavailable "Kafka $VERSION cannot be fetched from Maven Central"; }
        mv "$work/libs" "$LIBS"
        rm -rf "$work"
    fi
    exec 9>&-
}

write_pom() {
    local dependency
    {
        echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        echo '<groupId>wellspring</groupId><artifactId>kafka</artifactId><version>1</version><dependencies>'
        for dependency in org.apache.kafka:kafka_2.13:"$VERSION" org.apache.kafka:kafka-tools:"$VERSION" \
            org.slf4j:slf4j-simple:1.7.36; do
            IFS=: read -r group artifact version <<< "$dependency"
            printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n' \
                "$group" "$artifact" "$version"
        done
        echo '</dependencies></project>'
    } > "$1"
}

# Small and quick to start: a test's broker serves thousands of records, not millions a second.
java_of_kafka() { java "-Xmx${KAFKA_HEAP:-384m}" -XX:TieredStopAtLevel="${KAFKA_TIER:-1}" -XX:+UseSerialGC -cp "$LIBS/*" "$@"; }

# Below the range from which the system gives ports to others: a broker that was killed comes back at its own.
free_ports() {
    python3 - "$1" <<'PY'
import random, socket, sys
free = set()
while len(free) < int(sys.argv[1]):
    port = random.randrange(12_000, 32_000)
    with socket.socket() as s:
        if s.connect_ex(("127.0.0.1", port)):
            free.add(port)
print(*free)
PY
}

make_keystore() {
    keytool -genkeypair -alias broker -keyalg EC -groupname secp256r1 -dname CN=localhost -validity 3650 \
        -ext san=ip:127.0.0.1,dns:localhost -storetype PKCS12 -keystore "$1/broker.p12" \
        -storepass "$PASSWORD" > /dev/null 2>&1
    keytool -exportcert -rfc -alias broker -keystore "$1/broker.p12" -storepass "$PASSWORD" > "$1/ca.pem" 2> /dev/null
}

# One broker, which is a controller, too.
write_properties() {
    local dir=$1 node=$2 brokers=$3 voters=$4 port=$5 controller=$6 secure=$7 replicas
    replicas=$((brokers < 3 ? brokers : 3))
    local listeners="PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller"
    local advertised="PLAINTEXT://127.0.0.1:$port"
    if [ "$secure" != 0 ]; then
        listeners+=",SECURE://127.0.0.1:$secure"
        advertised+=",SECURE://127.0.0.1:$secure"
    fi
    cat <<PROPERTIES
process.roles=broker,controller
node.id=$node
controller.quorum.voters=$voters
controller.listener.names=CONTROLLER
listeners=$listeners
advertised.listeners=$advertised
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
inter.broker.listener.name=PLAINTEXT
log.dirs=$dir/broker-$node/data
auto.create.topics.enable=false
offsets.topic.num.partitions=4
offsets.topic.replication.factor=$replicas
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=$replicas
transaction.state.log.min.isr=$((replicas > 1 ? replicas - 1 : 1))
share.coordinator.state.topic.replication.factor=$replicas
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
PROPERTIES
    [ "$secure" = 0 ] || cat <<PROPERTIES
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_wellspring="$PASSWORD";
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.ssl.keystore.type=PKCS12
listener.name.secure.ssl.keystore.location=$dir/broker.p12
listener.name.secure.ssl.keystore.password=$PASSWORD
listener.name.secure.ssl.key.password=$PASSWORD
PROPERTIES
    [ "${#SETTINGS[@]}" = 0 ] || printf '%s\n' "${SETTINGS[@]}"
}

format() {
    local dir=$1 brokers=$2 cluster node voters="" ports scram=()
    read -r -a ports <<< "$(free_ports $((brokers * 3)))"
    cluster=$(python3 -c 'import base64, os; print(base64.urlsafe_b64encode(b"\x01" + os.urandom(15)).decode().rstrip("="))')
    for node in $(seq "$brokers"); do
        voters+="${voters:+,}$node@127.0.0.1:${ports[$((node * 3 - 2))]}"
    done
    if [ "$SECURE" = 1 ]; then
        make_keystore "$dir"
        for mechanism in SCRAM-SHA-256 SCRAM-SHA-512; do
            scram+=(--add-scram "$mechanism=[name=wellspring,password=$PASSWORD]")
        done
    fi
    for node in $(seq "$brokers"); do
        mkdir -p "$dir/broker-$node"
        echo "${ports[$((node * 3 - 3))]}" > "$dir/broker-$node/port"
        local secure=0
        if [ "$SECURE" = 1 ]; then
            secure=${ports[$((node * 3 - 1))]}
            echo "$secure" > "$dir/broker-$node/secure"
        fi
        write_properties "$dir" "$node" "$brokers" "$voters" "${ports[$((node * 3 - 3))]}" \
            "${ports[$((node * 3 - 2))]}" "$secure" > "$dir/broker-$node/server.properties"
        java_of_kafka kafka.tools.StorageTool format -t "$cluster" -c "$dir/broker-$node/server.properties" \
            ${scram[@]+"${scram[@]}"} > "$dir/broker-$node/format.log" 2>&1 ||
            { cat "$dir/broker-$node/format.log" >&2; exit 1; }
    done
}

nodes() { seq "$(find "$1" -maxdepth 1 -name 'broker-*' | wc -l)"; }

is_up() { kill -0 "$(cat "$1/pid" 2> /dev/null || echo x)" 2> /dev/null; }

launch() {
    local broker=$1/broker-$2
    ! is_up "$broker" || return 0
    (
        exec setsid java "-Xmx${KAFKA_HEAP:-384m}" -XX:TieredStopAtLevel="${KAFKA_TIER:-1}" -XX:+UseSerialGC \
            -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$LIBS/*" kafka.Kafka "$broker/server.properties"
    ) > "$broker/log" 2>&1 < /dev/null 9>&- &
    echo $! > "$broker/pid"
}

# Until it has answered a client: a port that is open is not yet a broker that serves.
await() {
    local broker=$1/broker-$2 port tries
    port=$(cat "$broker/port")
    for tries in $(seq 600); do
        is_up "$broker" || { tail -50 "$broker/log" >&2; return 1; }
        if python3 - "$port" <<'PY'
import socket, struct, sys
# ApiVersions v0, as any client asks it first.
try:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1) as s:
        s.settimeout(2)
        s.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
        sys.exit(0 if len(s.recv(4)) == 4 else 1)
except OSError:
    sys.exit(1)
PY
        then return 0; fi
        sleep 0.1
    done
    tail -50 "$broker/log" >&2
    return 1
}

joined() {
    local dir=$1 file=$2 node all=""
    for node in $(nodes "$dir"); do
        all+="${all:+,}127.0.0.1:$(cat "$dir/broker-$node/$file")"
    done
    echo "$all"
}

print_cluster() {
    local node pids=""
    echo "address=$(joined "$1" port)"
    for node in $(nodes "$1"); do pids+="${pids:+ }$(cat "$1/broker-$node/pid")"; done
    echo "pids=$pids"
    if [ -e "$1/ca.pem" ]; then
        echo "secure=$(joined "$1" secure)"
        echo "ca=$1/ca.pem"
    fi
}

kill_node() {
    local broker=$1/broker-$2 pid
    pid=$(cat "$broker/pid" 2> /dev/null) || return 0
    kill -9 "$pid" 2> /dev/null || true
    while kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
    rm -f "$broker/pid"
}

each() {
    local what=$1 dir=$2 node
    for node in ${3:-$(nodes "$dir")}; do "$what" "$dir" "$node" || return 1; done
}

watch_process() {
    [ -n "$2" ] || return 0
    setsid bash -c 'while kill -0 "$1" 2>/dev/null; do sleep 0.5; done; exec "$2" down "$3"' \
        watch "$2" "$SELF" "$1" > /dev/null 2>&1 < /dev/null &
}

up() {
    [ ! -e "$1/broker-1" ] || { echo "$1 holds a cluster already: kafka.sh down $1" >&2; exit 1; }
    # Another process may take a free port before the broker does: then others are tried.
    local try
    for try in 1 2 3; do
        mkdir -p "$1"
        format "$1" "$BROKERS"
        each launch "$1"
        if each await "$1"; then
            print_cluster "$1"
            watch_process "$1" "$WATCHED"
            return
        fi
        down "$1"
    done
    echo "no broker came up in three attempts" >&2
    exit 1
}

down() {
    [ ! -d "$1" ] || each kill_node "$1"
    rm -rf "$1"
}

[ $# -ge 1 ] || usage
SELF=$(readlink -f "$0")
COMMAND=$1
shift
if [ "$COMMAND" = fetch ]; then
    fetch
    exit
fi
[ $# -ge 1 ] || usage
DIR=$(realpath -m "$1")
shift
if [ "$COMMAND" = tool ]; then
    [ $# -ge 1 ] || usage
    fetch
    java_of_kafka -Dorg.slf4j.simpleLogger.defaultLogLevel=error "$@"
    exit
fi
NODE="" WATCHED="" BROKERS=1 SECURE=0 SETTINGS=()
while [ $# -gt 0 ]; do
    case $1 in
        --while) WATCHED=${2:?--while needs the id of a process}; shift 2 ;;
        --brokers) BROKERS=${2:?--brokers needs a number}; shift 2 ;;
        --secure) SECURE=1; shift ;;
        -c) SETTINGS+=("${2:?-c needs setting=value}"); shift 2 ;;
        [1-9]) NODE=$1; shift ;;
        *) usage ;;
    esac
done
case $COMMAND in
    up) fetch; up "$DIR" ;;
    kill) each kill_node "$DIR" "$NODE" ;;
    start) fetch; each launch "$DIR" "$NODE"; each await "$DIR" "$NODE"; print_cluster "$DIR" ;;
    down) down "$DIR" ;;
    *) usage ;;
esac
