#!/bin/bash
# Workers of a consumer are killed and frozen, the server is killed; a judge reads the log at the
# end. Usage: bench/run-consumer-histories.sh [PROGRAM] [flags of bench/consumers/histories.py];
# --short takes 10 s.
# Data in BENCH_TMP (default target/tmp); needs nothing but Python 3.11.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${WELLSPRING_BIN:-$here/../target/release/wellspring}
if [ $# -gt 0 ] && [[ $1 != --* ]]; then program=$1; shift; fi
export BENCH_TMP=${BENCH_TMP:-$here/target/tmp}
mkdir -p "$BENCH_TMP"
exec python3 "$here/consumers/histories.py" "$(realpath "$program")" "$@"
