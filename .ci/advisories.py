"""Checks every locked dependency against the advisories of RustSec.

The advisories lie beside this file (advisories.json): a snapshot with its date, because a build must
not depend on a network. It holds what is needed to match and no more. Nothing but Python is needed.

    python3 .ci/advisories.py                       checks every Cargo.lock of the tree; ends with 1 on a hit
    python3 .ci/advisories.py --test                its own tests
    python3 .ci/advisories.py --refresh CLONE       makes the snapshot anew from a clone of
                                                    https://github.com/RustSec/advisory-db

A hit is a version that is neither patched nor unaffected. Advisories that were withdrawn do not count.
Informational ones (unmaintained, unsound, notice) count like others. What is accepted stands in
advisories-ignored.toml, each with a reason and the date from which it is looked at again. So does a
snapshot that is older than 60 days, which fails otherwise.
"""

import datetime
import json
import pathlib
import re
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).parent
SNAPSHOT = HERE / "advisories.json"
IGNORED = HERE / "advisories-ignored.toml"
# Older than this it fails, unless it is accepted like an advisory: what was found since is not known here.
STALE_DAYS = 60
# Under this name the age of the snapshot is accepted: [stale] in advisories-ignored.toml.
STALE = "stale"


class Version:
    """A version of semantic versioning 2.0: ordered by precedence, builds aside."""

    FORM = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")

    def __init__(self, text: str):
        found = self.FORM.fullmatch(text.strip())
        if not found:
            raise ValueError(f"{text!r} is no version")
        self.given = sum(number is not None for number in found.groups()[:3])
        self.core = tuple(int(number or 0) for number in found.groups()[:3])
        self.pre = tuple(found[4].split(".")) if found[4] else ()

    def key(self):
        # A release comes after its pre-releases; numbers before words; more identifiers after fewer.
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.pre)
        return (self.core, not self.pre, parts)

    def __lt__(self, other):
        return self.key() < other.key()


def matches_one(comparator: str, version: Version) -> bool:
    """Whether a version meets one comparator: `>= 1.2.3`, `^0.3`, `~1.2`, `= 1`, `1.2.*`, `*`."""
    found = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~)?\s*(\S+)\s*", comparator)
    if not found:
        raise ValueError(f"{comparator!r} is no comparator")
    operator, text = found[1] or "^", found[2]
    if re.fullmatch(r"[*xX](\.[*xX])*", text):
        return True
    if text.endswith((".*", ".x", ".X")):
        operator, text = "=", re.sub(r"(\.[*xX])+$", "", text)
    bound = Version(text)
    # The first version that is greater in the last number that was given.
    after = Version(".".join(map(str, bumped(bound.core, bound.given - 1))))
    match operator:
        case ">=":
            return not version < bound
        case "<":
            return version < bound
        case ">":
            return not version < (bound if bound.given == 3 else after) and (
                bound.given < 3 or bound < version
            )
        case "<=":
            return not bound < version if bound.given == 3 else version < after
        case "=":
            if bound.given == 3:
                return version.key() == bound.key()
            return not version < bound and below(version, after)
        case "~":
            last = min(bound.given, 2) - 1
            return not version < bound and below(version, core(bumped(bound.core, last)))
        case "^":
            first = next((i for i, n in enumerate(bound.core) if n), bound.given - 1)
            return not version < bound and below(version, core(bumped(bound.core, min(first, bound.given - 1))))


def core(numbers) -> Version:
    return Version(".".join(map(str, numbers)))


def bumped(numbers, place: int):
    return (*numbers[:place], numbers[place] + 1, *(0 for _ in numbers[place + 1 :]))


def below(version: Version, end: Version) -> bool:
    """Below a bound that a range excludes: pre-releases of the bound are not in the range."""
    return version.core < end.core


def matches(requirement: str, version: Version) -> bool:
    """Whether a version lies in a range: comparators with commas between, all of which hold.

    Pre-releases are taken by their order alone, as the tools of RustSec do: 2.0.0-rc.1 is in `>= 1.0`.
    """
    return all(matches_one(comparator, version) for comparator in requirement.split(","))


def affects(advisory: dict, version: str) -> bool:
    """Whether an advisory is about this version."""
    parsed = Version(version)
    return not any(matches(r, parsed) for r in advisory["patched"] + advisory["unaffected"])


def locked(lock: str):
    """Names and versions of a Cargo.lock that come from crates.io."""
    for package in tomllib.loads(lock).get("package", []):
        if package.get("source", "").startswith(("registry+", "sparse+")):
            yield package["name"], package["version"]


def hits(lock: str, advisories: list):
    """Advisories that are about a package of a lock file, each with its version."""
    by_name = {}
    for advisory in advisories:
        by_name.setdefault(advisory["package"], []).append(advisory)
    for name, version in locked(lock):
        for advisory in by_name.get(name, []):
            if affects(advisory, version):
                yield version, advisory


def read_ignored(text: str) -> dict:
    """From an id to why and until when it is accepted.

    Raises ValueError: an entry without a reason of some length, or without a date.
    """
    ignored = {}
    document = tomllib.loads(text)
    entries = [*document.get("ignored", []), *({"id": STALE, **it} for it in [document.get("stale")] if it)]
    for entry in entries:
        if set(entry) != {"id", "reason", "until"}:
            raise ValueError(f"an entry has id, reason and until, and nothing else: {entry}")
        if len(entry["reason"].split()) < 4:
            raise ValueError(f"{entry['id']}: the reason does not say why it does not matter here")
        if not isinstance(entry["until"], datetime.date):
            raise ValueError(f"{entry['id']}: until is a date")
        ignored[entry["id"]] = entry
    return ignored


def refresh(clone: str) -> None:
    """Makes the snapshot from a clone of the database, with a work tree or without."""
    git = ["git", "-C", clone]
    show = lambda *words: subprocess.run([*git, *words], check=True, capture_output=True, text=True).stdout
    commit, day = show("log", "-1", "--format=%H %cs").split()
    advisories = []
    for path in show("ls-tree", "-r", "--name-only", "HEAD", "crates").splitlines():
        if path.endswith(".md"):
            found = summary(show("show", f"HEAD:{path}"))
            advisories += [found] if found else []
    document = {
        "source": "https://github.com/RustSec/advisory-db",
        "commit": commit,
        "date": day,
        "licence": "CC0-1.0; entries with \"licence\": \"CC-BY-4.0\" are adapted from the advisory at their url",
        "advisories": sorted(advisories, key=lambda a: a["id"]),
    }
    lines = ",\n".join(json.dumps(a, ensure_ascii=False) for a in document.pop("advisories"))
    head = json.dumps(document, indent=0, ensure_ascii=False)[:-2]
    SNAPSHOT.write_text(f'{head},\n"advisories": [\n{lines}\n]}}\n')
    print(f"{len(advisories)} advisories of {day}")


def summary(text: str) -> dict | None:
    """What is needed of an advisory, or nothing if it was withdrawn."""
    front = tomllib.loads(re.match(r"```toml\n(.*?)\n```", text, re.DOTALL)[1])
    advisory, versions = front["advisory"], front.get("versions", {})
    if "withdrawn" in advisory:
        return None
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    kept = {
        "id": advisory["id"],
        "package": advisory["package"],
        "date": str(advisory["date"]),
        "title": title[1].strip() if title else "",
        "patched": versions.get("patched", []),
        "unaffected": versions.get("unaffected", []),
    }
    if "informational" in advisory:
        kept["informational"] = advisory["informational"]
    if advisory.get("license", "CC0-1.0") != "CC0-1.0":
        kept |= {"licence": advisory["license"], "url": advisory["url"]}
    return kept


def main() -> int:
    snapshot = json.loads(SNAPSHOT.read_text())
    ignored = read_ignored(IGNORED.read_text())
    root, today = HERE.parent, datetime.date.today()
    locks = sorted(lock for depth in ["", "*/", "*/*/"] for lock in root.glob(f"{depth}Cargo.lock"))
    needed = {root / "Cargo.lock", root / "bench/Cargo.lock"}
    if not needed <= set(locks):
        print(f"missing: {needed - set(locks)}")
        return 1
    failed, seen, used = False, set(), set()
    for lock in locks:
        text = lock.read_text()
        seen |= set(locked(text))
        for version, advisory in hits(text, snapshot["advisories"]):
            entry = ignored.get(advisory["id"])
            used.add(advisory["id"])
            if entry and entry["until"] > today:
                continue
            failed = True
            kind = advisory.get("informational", "vulnerability")
            print(
                f"{lock.relative_to(root)}: {advisory['package']} {version}: {advisory['id']} ({kind}, {advisory['date']}): "
                f"{advisory['title']}. Patched: {', '.join(advisory['patched']) or 'in no version'}. "
                f"https://rustsec.org/advisories/{advisory['id']}"
            )
            if entry:
                print(f"  it was accepted until {entry['until']}: {entry['reason']}")
    for unused in ignored.keys() - used - {STALE}:
        failed = True
        print(f"{unused} is ignored and no package has it: take it out of {IGNORED.name}")
    age = (today - datetime.date.fromisoformat(snapshot["date"])).days
    print(f"{len(seen)} packages of {len(locks)} lock files against {len(snapshot['advisories'])} advisories of {snapshot['date']}")
    return int(failed | is_stale(age, ignored.get(STALE), today))


def is_stale(age: int, accepted: dict | None, today: datetime.date) -> bool:
    """Whether a snapshot of this many days is too old; says so, also where that is accepted."""
    if age <= STALE_DAYS:
        return False
    print(
        f"\n!! The advisories are {age} days old. What has been found since is NOT checked.\n"
        f"!! With a network: git clone https://github.com/RustSec/advisory-db /tmp/advisory-db && "
        f"python3 .ci/advisories.py --refresh /tmp/advisory-db"
    )
    is_accepted = accepted is not None and accepted["until"] > today
    if accepted:
        print(f"!! Accepted until {accepted['until']}: {accepted['reason']}")
    return not is_accepted


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            sys.exit(main())
        case ["--test"]:
            sys.path.insert(0, str(HERE))
            sys.dont_write_bytecode = True
            import advisories_tests

            sys.exit(advisories_tests.run())
        case ["--refresh", clone]:
            refresh(clone)
        case _:
            sys.exit(__doc__)
