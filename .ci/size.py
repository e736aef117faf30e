#!/usr/bin/env python3
"""How large the house is: lines of Rust by crate, packages of each program, and how large the programs are.

    .ci/size.py            the tree as it is
    .ci/size.py REVISION   as it was in that commit, without packages and programs

Product: what is under src/, without files and modules of tests. Code: product without comments and blank lines.
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRODUCT = ("crates/", "loadtest/")


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def files(revision):
    """Every Rust file of the tree, as (path, lines)."""
    if revision:
        for path in run("git", "ls-tree", "-r", "--name-only", revision).splitlines():
            if path.endswith(".rs"):
                yield path, run("git", "show", f"{revision}:{path}").splitlines()
    else:
        for path in run("git", "ls-files", "-co", "--exclude-standard", "*.rs").splitlines():
            if os.path.exists(os.path.join(ROOT, path)):
                with open(os.path.join(ROOT, path)) as file:
                    yield path, file.read().splitlines()


def is_test(path):
    """Whether a file has tests, or what only tests use."""
    parts = path.split("/")
    name = parts[-1].removesuffix(".rs")
    return (not path.startswith(PRODUCT) or "src" not in parts or "tests" in parts or "examples" in parts
            or "log-conformance" in parts or name.endswith("_tests") or name in ("tests", "testing"))


def without_tests(lines):
    """The lines of a file before and after its inline modules of tests."""
    kept, indent = [], None
    for line in lines:
        if indent is not None:
            if line == f"{indent}}}":
                indent = None
            continue
        opened = re.match(r"(\s*)(pub(\(.*\))? )?mod \w+ \{$", line)
        if opened and kept and kept[-1].strip().startswith("#[cfg(") and "test" in kept[-1]:
            kept.pop()
            indent = opened.group(1)
            continue
        kept.append(line)
    return kept


def crate_of(path):
    """The folder of a file's package, as far as the name of the folder tells."""
    return re.split(r"/(?:src|tests|examples|build\.rs)\b", path)[0]


def main():
    revision = sys.argv[1] if len(sys.argv) > 1 else None
    product, code, tests = collections.Counter(), collections.Counter(), collections.Counter()
    for path, lines in files(revision):
        crate = crate_of(path)
        if is_test(path):
            tests[crate] += len(lines)
            continue
        kept = without_tests(lines)
        tests[crate] += len(lines) - len(kept)
        product[crate] += len(kept)
        code[crate] += sum(1 for line in kept if line.strip() and not line.strip().startswith("//"))
    print(f"{'product':>8} {'code':>8} {'tests':>8}")
    for crate in sorted(product | tests, key=lambda each: -product[each]):
        print(f"{product[crate]:8} {code[crate]:8} {tests[crate]:8}  {crate}")
    print(f"{product.total():8} {code.total():8} {tests.total():8}  all")
    if revision:
        return
    for package in ("wellspring-server", "wellspring-bench"):
        tree = run("cargo", "tree", "--locked", "-e", "normal", "--prefix", "none", "-p", package)
        packages = {line.removesuffix(" (*)") for line in tree.splitlines() if line}
        print(f"{len(packages):8} packages in the default program of {package}")
    for profile in ("release", "quick"):
        for name in ("wellspring", "wellspring-bench"):
            program = os.path.join(ROOT, "target", profile, name)
            if os.path.exists(program):
                print(f"{os.path.getsize(program) / 1e6:8.1f} MB  target/{profile}/{name}")


main()
