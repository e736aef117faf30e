#!/usr/bin/env bash
# What the load tester's client costs: requests a second of one core against wrk (HTTP/1.1) and h2load (h2c),
# the overhead of --phases, and the memory after many requests. The null server answers on core 0, the client
# has core 1; clients take turns within a round, ratios are made within a round.
# Environment: ROUNDS (7), SECS a measurement (2), MANY requests of the memory run (10000000; 0 leaves it out).
# Needs wrk and h2load (Debian: wrk, nghttp2-client).
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in wrk h2load; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install wrk nghttp2-client" >&2; exit 1; }
done
[ "$(nproc)" -ge 2 ] || { echo "needs two cores: one for the client, one for the server" >&2; exit 1; }
export CARGO_TARGET_DIR=target
cargo build --release --quiet --locked -p wellspring-bench
cargo build --release --quiet --locked -p wellspring-load --example null_server
bench=$PWD/target/release/wellspring-bench
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
taskset -c 0 target/release/examples/null_server "127.0.0.1:$port" >/dev/null &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true' EXIT
sleep 0.5
export OUT=${OUT:-$(mktemp)}
BENCH=$bench URL=http://127.0.0.1:$port/ python3 - <<'PY'
import json, os, re, subprocess

bench, url = os.environ["BENCH"], os.environ["URL"]
rounds, secs = int(os.environ.get("ROUNDS", 7)), os.environ.get("SECS", "2")
many = int(os.environ.get("MANY", 10_000_000))
rows = open(os.environ["OUT"], "w")

def run(*command):
    done = subprocess.run(["taskset", "-c", "1", *command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}{done.stdout}")
    return done.stdout

def ours(*options):
    out = run(bench, "--json", "-", "-q", "--no-headroom", "-t", "1", "--warmup", "200ms", *options, url)
    result = json.loads(out)["steps"][0]["runs"][0]
    counters = result["endpoints"][0]["counters"]
    assert counters["sent"] == counters["successes"], counters
    return counters["successes"] * 1e9 / result["measured_ns"], result

def wrk(connections):
    out = run("wrk", "-t1", f"-c{connections}", f"-d{secs}", url)
    assert "Socket errors" not in out, out
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])

def h2load(connections, streams):
    out = run("h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-D{secs}", "--warm-up-time=1", url)
    assert re.search(r" 0 failed, 0 errored", out), out
    return float(re.search(r"finished in [^,]+, ([\d.]+) req/s", out)[1])

def in_turns(label, contenders):
    """The rates of each, a row a round."""
    for round_number in range(rounds):
        names = list(contenders)
        if round_number % 2:
            names.reverse()
        for name in names:
            row = {"case": label, "who": name, "round": round_number, "rate_per_s": contenders[name]()}
            rows.write(json.dumps(row) + "\n")

for c in (1, 16, 64):
    in_turns(f"HTTP/1.1, {c} connections", {
        "wellspring": lambda: ours("-c", str(c), "-z", f"{secs}s")[0],
        "wrk": lambda: wrk(c),
    })
for c, m in ((1, 1), (16, 1), (8, 32)):
    in_turns(f"h2c, {c} connections × {m} streams", {
        "wellspring": lambda: ours("-c", str(c), "--h2c", "-p", str(m), "-z", f"{secs}s")[0],
        "h2load": lambda: h2load(c, m),
    })
in_turns("HTTP/1.1, 16 connections, --phases against without", {
    "with --phases": lambda: ours("-c", "16", "--phases", "-z", f"{secs}s")[0],
    "without": lambda: ours("-c", "16", "-z", f"{secs}s")[0],
})
if many:
    rate, result = ours("-c", "16", "-n", str(many))
    rows.write(json.dumps({"case": "memory", "value": result["client"]["peak_rss_bytes"] / 2**20}) + "\n")
PY
bench/figures.py load-client "$OUT"
