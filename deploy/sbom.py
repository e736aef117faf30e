#!/usr/bin/env python3
"""Writes the software bill of materials of the shipped program as CycloneDX 1.5 JSON: every crate
that is built into it for one target with these features, with version, licence, checksum, and what
it depends on; those that only run during the build have the scope `excluded`. `cargo tree` says which
crates these are, `cargo metadata` what they are. Needs nothing but Python and Cargo.

    deploy/sbom.py --target TRIPLE --features a,b --out FILE
    deploy/sbom.py --test
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import datetime, timezone
from pathlib import Path

PROGRAM = "wellspring-server"


def licence(expression: str) -> list:
    """An SPDX expression; older crates write `MIT/Apache-2.0` for OR."""
    return [{"expression": expression.replace("/", " OR ")}]


def reference(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def tree(kinds: str, target: str, features: str) -> set:
    """Name and version of the crates of the program. `cargo metadata` cannot say: it switches on what
    any crate of the workspace asks for, tests included."""
    command = ["cargo", "tree", "--locked", "-p", PROGRAM, "--target", target, "--features", features, "-e", kinds,
               "--prefix", "none", "--format", "{p}"]
    lines = subprocess.check_output(command, text=True).splitlines()
    return {(name, version.removeprefix("v")) for name, version, *_ in (line.split() for line in lines if line)}


def shipped(metadata: dict, built: set) -> tuple:
    """What is linked into the program or runs during its build, from its crate down, with the edges
    among these."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    known = {package["id"]: (package["name"], package["version"]) for package in metadata["packages"]}
    root = next(at for at, (name, _) in known.items() if name == PROGRAM)
    edges, to_visit = {}, [root]
    while to_visit:
        at = to_visit.pop()
        if at in edges:
            continue
        used = {dep["pkg"] for dep in nodes[at]["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])}
        edges[at] = sorted(to for to in used if known[to] in built)
        to_visit += edges[at]
    return root, edges


def bill(metadata: dict, built: set, linked: set, checksums: dict, created: str) -> dict:
    packages = {package["id"]: package for package in metadata["packages"]}
    root, edges = shipped(metadata, built)

    def component(package: dict) -> dict:
        made = {"type": "library", "bom-ref": reference(package), "name": package["name"], "version": package["version"],
                "scope": "required" if (package["name"], package["version"]) in linked else "excluded",
                "purl": reference(package)}
        if package["license"]:
            made["licenses"] = licence(package["license"])
        if package["repository"]:
            made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        if checksum := checksums.get((package["name"], package["version"])):
            made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return made

    components = [component(packages[at]) for at in edges if at != root]
    components.sort(key=lambda one: (one["name"], one["version"]))
    main = component(packages[root]) | {"type": "application", "name": "wellspring"}
    dependencies = [{"ref": reference(packages[at]), "dependsOn": [reference(packages[to]) for to in used]}
                    for at, used in edges.items()]
    dependencies.sort(key=lambda one: one["ref"])
    made = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"timestamp": created, "component": main,
                         "tools": {"components": [{"type": "application", "name": "wellspring deploy/sbom.py"}]}},
            "components": components, "dependencies": dependencies}
    # The same content has the same number.
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()
    number = f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    return {"serialNumber": f"urn:uuid:{number}"} | made


def faults(made: dict) -> list:
    """What a reader could stumble over."""
    references = [one["bom-ref"] for one in made["components"]] + [made["metadata"]["component"]["bom-ref"]]
    found = [f"{one['name']} has no licence" for one in made["components"] if "licenses" not in one]
    found += [f"{one['name']} has no checksum" for one in made["components"]
              if "hashes" not in one and not one["name"].startswith("wellspring-")]
    found += [f"{one} comes twice" for one in sorted(set(references)) if references.count(one) > 1]
    for one in made["dependencies"]:
        found += [f"{to} is no component" for to in [one["ref"], *one["dependsOn"]] if to not in references]
    if not re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["serialNumber"]):
        found.append("serialNumber is no UUID")
    return found


def test() -> None:
    def package(name, licence="MIT", version="1.0.0"):
        return {"id": name, "name": name, "version": version, "license": licence, "repository": None}

    def node(name, *used):
        return {"id": name, "deps": [{"pkg": to, "dep_kinds": [{"kind": kind}]} for to, kind in used]}

    packages = [package(PROGRAM), package("a"), package("b", "MIT/Apache-2.0"), package("tests-alone"), package("builder")]
    packages.append(package("switched-off"))
    nodes = [node(PROGRAM, ("a", None), ("tests-alone", "dev"), ("builder", "build")), node("a", ("b", None)),
             node("b", ("switched-off", None)), node("tests-alone"), node("builder"), node("switched-off")]
    metadata = {"packages": packages, "resolve": {"nodes": nodes}}
    linked = {(name, "1.0.0") for name in (PROGRAM, "a", "b")}
    built = linked | {("builder", "1.0.0")}
    made = bill(metadata, built, linked, {(name, "1.0.0"): "00" for name in "ab"}, "2026-01-01T00:00:00Z")
    assert [one["name"] for one in made["components"]] == ["a", "b", "builder"], made["components"]
    assert [one["scope"] for one in made["components"]] == ["required", "required", "excluded"]
    assert made["components"][1]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert faults(made) == ["builder has no checksum"], faults(made)
    packages[1]["license"] = None
    again = [bill(metadata, built, linked, {}, "") for _ in range(2)]
    assert "a has no licence" in faults(again[0]) and again[0] == again[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target")
    parser.add_argument("--features")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--test", action="store_true")
    asked = parser.parse_args()
    if asked.test:
        return test()
    if not (asked.target and asked.features and asked.out):
        parser.error("--target, --features and --out are needed")
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", asked.target,
               "--features", ",".join(f"{PROGRAM}/{feature}" for feature in asked.features.split(","))]
    metadata = json.loads(subprocess.check_output(command))
    built, linked = (tree(kinds, asked.target, asked.features) for kinds in ("normal,build", "normal,no-proc-macro"))
    locked = tomllib.loads(Path("Cargo.lock").read_text())["package"]
    checksums = {(one["name"], one["version"]): one["checksum"] for one in locked if "checksum" in one}
    created = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc)
    made = bill(metadata, built, linked, checksums, created.strftime("%Y-%m-%dT%H:%M:%SZ"))
    found = faults(made)
    named = {(one["name"], one["version"]) for one in made["components"]} | {(PROGRAM, made["metadata"]["component"]["version"])}
    found += [f"{name} {version} is in the program and not in the bill" for name, version in sorted(built - named)]
    if found:
        sys.exit("sbom.py: " + "\n".join(found))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(made, indent=1) + "\n")
    print(f"{asked.out}: {len(made['components'])} components")


main()
