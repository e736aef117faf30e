"""Checks that every crate we build on has a licence that deny.toml allows.

Reads `cargo metadata` only, so it needs nothing but Python. `cargo deny check`
reads the same deny.toml and checks more; it is not required because building it
takes longer than all the rest of CI.
"""

import json
import re
import subprocess
import sys
import tomllib


def allowed_by(expression: str, allowed: set) -> bool:
    """Evaluates an SPDX expression of AND, OR, WITH and parentheses."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def alternatives(i):
        value, i = conjunction(i)
        while i < len(tokens) and tokens[i].upper() == "OR":
            right, i = conjunction(i + 1)
            value = value or right
        return value, i

    def conjunction(i):
        value, i = atom(i)
        while i < len(tokens) and tokens[i].upper() == "AND":
            right, i = atom(i + 1)
            value = value and right
        return value, i

    def atom(i):
        if tokens[i] == "(":
            value, i = alternatives(i + 1)
            return value, i + 1
        name = tokens[i]
        i += 1
        if i < len(tokens) and tokens[i].upper() == "WITH":
            name, i = f"{name} WITH {tokens[i + 1]}", i + 2
        return name in allowed, i

    return alternatives(0)[0]


def main() -> int:
    with open("deny.toml", "rb") as file:
        deny = tomllib.load(file)
    allowed = set(deny["licenses"]["allow"])
    banned = {entry["crate"] for entry in deny["bans"]["deny"]}
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    packages = json.loads(subprocess.check_output(command))["packages"]
    faults = []
    for package in packages:
        name, licence = package["name"], package["license"]
        if not licence or not allowed_by(licence, allowed):
            faults.append(f"{name} {package['version']}: licence {licence!r} is not allowed")
        if name in banned:
            faults.append(f"{name} {package['version']}: banned by deny.toml")
        source = package["source"] or ""
        if source.startswith("git+"):
            faults.append(f"{name} {package['version']}: comes from a git repository")
    print("\n".join(faults) or f"{len(packages)} crates, all licences allowed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
