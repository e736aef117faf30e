#!/usr/bin/env bash
# Builds the servers that run-raft.sh measures beside ours, and etcd's load tool, from the Go module proxy into
# BENCH_CACHE: etcd, etcdctl, etcd-benchmark, rqlited. Prints the folder. Needs Go and a C compiler; two minutes once.
set -euo pipefail
etcd=v3.6.8 rqlite=v8.43.4
go=$(command -v go || echo /usr/local/go/bin/go)
peers=${BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/wellspring-bench}/raft-peers
mkdir -p "$peers/bin"
# The tools refuse `go install`, because their modules have replace directives: a module of our own requires them.
module() {
    mkdir -p "$peers/$1"; cd "$peers/$1"
    [ -f go.mod ] || "$go" mod init "wellspring.invalid/bench/$1" 2> /dev/null
}
if [ ! -x "$peers/bin/etcd-benchmark" ]; then
    (module etcd
     "$go" get "go.etcd.io/etcd/"{server/,etcdctl/,}"v3@$etcd"
     "$go" build -o "$peers/bin/etcd" go.etcd.io/etcd/server/v3
     "$go" build -o "$peers/bin/etcdctl" go.etcd.io/etcd/etcdctl/v3
     "$go" build -o "$peers/bin/etcd-benchmark" go.etcd.io/etcd/v3/tools/benchmark) >&2
fi
if [ ! -x "$peers/bin/rqlited" ]; then
    (module rqlite; rm -f go.mod
     # Replacements of a module count for the main module alone, so ours repeats them.
     own=$("$go" mod download -json "github.com/rqlite/rqlite/v8@$rqlite" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
     { printf 'module wellspring.invalid/bench/rqlite\n\nrequire github.com/rqlite/rqlite/v8 %s\n' "$rqlite"; sed -n '/^replace/,/^)/p' "$own"; } > go.mod
     "$go" get "github.com/rqlite/rqlite/v8/cmd/rqlited@$rqlite"
     "$go" build -o "$peers/bin/rqlited" github.com/rqlite/rqlite/v8/cmd/rqlited) >&2
fi
echo "$peers/bin"
