# shellcheck shell=bash disable=SC2154 # servers.sh and the driver assign what is used here
# Sourced by the run-ingest*.sh drivers after servers.sh: builds the floors, starts servers of ingest by name.
CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-1} cargo build --release --quiet -p floor
bench=${BENCH_BIN:-$PWD/../target/release/wellspring}
if [ ! -x "$bench" ]; then
    echo "no load tester at $bench: build it (cargo build --release) or set BENCH_BIN" >&2
    exit 1
fi

# stores LABEL: whether the server keeps an account of events.
stores() { [[ $1 = wellspring* ]]; }

# start_ingest LABEL: wellspring…, wellspring-general, floor-epoll, floor-uring or hyper; pinned, one thread.
start_ingest() {
    case $1 in
        wellspring-general) start "$1" wellspring pinned --threads 1 --lean-loop false ;;
        wellspring*) start "$1" wellspring pinned --threads 1 ;;
        floor-* | hyper) start "$1" "${1#floor-}" pinned ;;
        *) echo "no server is called $1" >&2; exit 1 ;;
    esac
}

# one SUBCOMMAND LABEL [FLAG…]: one run against one server, with the round's number.
one() {
    local subcommand=$1 label=$2; shift 2
    local kind=floor; stores "$label" && kind=wellspring
    # shellcheck disable=SC2046 # flags are words
    "$wsbench" "$subcommand" --server "$kind" --server-name "$label" --address "${address[$label]}" \
        --seconds "${SECS:-3}" --round "$round" $(client_flags pinned) "$@"
}
