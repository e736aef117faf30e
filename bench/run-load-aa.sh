#!/usr/bin/env bash
# How often `bench compare` calls a server different from itself: real A/A comparisons, measured in turns,
# against the null server. At 95 % at most 8 of 100 may be called different.
# Environment: COMPARISONS (100), PAIRS runs of each side (10), TURN length of a run (200ms).
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=target
cargo build --release --quiet --locked -p wellspring-bench
cargo build --release --quiet --locked -p wellspring-load --example null_server
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
taskset -c 0 target/release/examples/null_server "127.0.0.1:$port" >/dev/null &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true' EXIT
sleep 0.5
export OUT=${OUT:-$(mktemp)}
BENCH=$PWD/target/release/wellspring-bench URL=http://127.0.0.1:$port/ python3 - <<'PY'
import json, os, subprocess

bench, url = os.environ["BENCH"], os.environ["URL"]
comparisons = int(os.environ.get("COMPARISONS", 100))
pairs, turn = os.environ.get("PAIRS", "10"), os.environ.get("TURN", "200ms")
different = 0
with open(os.environ["OUT"], "w") as rows:
    for number in range(comparisons):
        command = [bench, "compare", url, url, "--pairs", pairs, "-z", turn, "-c", "8", "-q", "--json", "-",
                   "--no-headroom", "--seed", str(number + 1)]
        done = subprocess.run(command, capture_output=True, text=True)
        # 65: against a server that does nothing every report says that it measured the client, which is what is asked here.
        if done.returncode not in (0, 65):
            raise SystemExit(f"ended with {done.returncode}: {done.stderr}")
        step = json.loads(done.stdout)["steps"][0]
        called = [m["metric"] for m in step["metrics"] if m["verdict"] in ("faster", "slower", "fewer_failures", "more_failures")]
        different += bool(called)
        rows.write(json.dumps({"comparison": number, "called_different": called}) + "\n")
        rows.flush()
    rows.write(json.dumps({"case": "different", "value": 100 * different / comparisons}) + "\n")
PY
bench/figures.py load-aa "$OUT"
