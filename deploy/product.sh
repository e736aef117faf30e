# What is shipped: sourced by the scripts beside this file, from the root of the repository.
# shellcheck shell=bash disable=SC2034
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# Everything optional is in the packages: whoever installs one cannot rebuild it.
features=otlp,search,kafka,s3,parquet
# The crates that others can embed, as cargo's arguments.
libraries=(-p wellspring-types -p wellspring-json -p wellspring-format -p wellspring-log -p wellspring-graph -p wellspring-cypher)
target=x86_64-unknown-linux-musl
name=wellspring-$version-x86_64-linux
dist=${DIST:-dist}
# Files in packages carry the time of the commit, so the same binary gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

fail() { printf '%s: %s\n' "$(basename "$0")" "$1" >&2; exit "${2:-1}"; }
needs() { for command; do command -v "$command" >/dev/null || fail "$command is missing"; done; }

# The load tester that belongs to a program: LOAD_TESTER names it, else it lies beside the program.
load_tester_of() {
    local found=${LOAD_TESTER:-$(dirname "$1")/wellspring-bench}
    [ -x "$found" ] || fail "no wellspring-bench beside $1: build it (-p wellspring-bench), or name it by LOAD_TESTER" 66
    echo "$found"
}

# Whether a program needs no library. ldd says so on standard error, or of a static-pie on standard output.
is_static() { ldd "$1" 2>&1 | grep -qE 'statically linked|not a dynamic executable'; }
