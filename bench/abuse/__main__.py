"""Abuses a server on loopback, for bench/run-abuse.sh.

    python3 -m abuse prepare ADDRESS [--short] [--token-file F]      puts in what the attacks ask for
    python3 -m abuse accounts ADDRESS FOLDER                         makes a reader and a writer, and keeps tokens of
                                                                     them there; WELLSPRING_ADMIN_PASSWORD is set
    python3 -m abuse hold ADDRESS KIND[=NUMBER]... --seconds S       abuses until S seconds are over or standard
                                                                     input ends
    python3 -m abuse settle ADDRESS FOLDER LABEL                     how long until it answers as before
    python3 -m abuse bound BINARY FLAG...                            most resident memory, MiB, by --print-config
    python3 -m abuse report FOLDER --bound-mib M [--rows F] [--short]   tables and verdicts of what was left there

Kinds with a number are those of `held`; those without are the attacks of `attacks`, and take theirs from there.
Nothing but the standard library. Bounded in connections, requests and time; loopback only.
"""

import ipaddress
import json
import resource
import select
import sys

from . import attacks, bound, held, report, settle
from .wire import Server


def option(words, name, default=None):
    """Takes an option and its value out of the words."""
    if name not in words:
        return default
    at = words.index(name)
    value = words[at + 1]
    del words[at:at + 2]
    return value


def flag(words, name):
    found = name in words
    if found:
        words.remove(name)
    return found


def server_of(text, token_file=None):
    host, port = text.rsplit(":", 1)
    if not ipaddress.ip_address(host).is_loopback:
        sys.exit(f"{host} is not a loopback address")
    token = open(token_file, encoding="ascii").read().strip() if token_file else None
    return Server((host, int(port)), token)


def input_is_over():
    return bool(select.select([sys.stdin], [], [], 0)[0]) and not sys.stdin.buffer.raw.read(1)


def hold(words):
    seconds = min(float(option(words, "--seconds", "60")), 600.0)
    short = flag(words, "--short")
    token_file = option(words, "--token-file")
    server, kinds = server_of(words[0], token_file), words[1:]
    numbered = {kind: int(number) for kind, _, number in (kind.partition("=") for kind in kinds) if number}
    named = [kind for kind in kinds if "=" not in kind]
    if set(numbered) - held.KINDS or set(named) - set(attacks.ALL):
        sys.exit(f"kinds are {', '.join(sorted(held.KINDS))} with a number, and {', '.join(attacks.ALL)}")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = sum(numbered.values()) + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        sys.exit(f"{needed} descriptors are needed and {hard} allowed (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    counts = {}
    if numbered:
        counts |= held.Abuse(server.address, numbered).run(seconds, input_is_over)
    if named:
        counts |= attacks.run(server, named, seconds, input_is_over, short)
    print(json.dumps(counts), flush=True)


def main(words):
    match words:
        case ["prepare", *rest]:
            short, token_file = flag(rest, "--short"), option(rest, "--token-file")
            attacks.prepare(server_of(rest[0], token_file), short)
        case ["accounts", address, folder]:
            attacks.make_accounts(server_of(address), folder)
        case ["hold", *rest]:
            hold(rest)
        case ["settle", address, folder, label, *rest]:
            settle.run(server_of(address, option(rest, "--token-file")), folder, label)
        case ["bound", binary, *flags]:
            print(bound.resident_mib(binary, flags))
        case ["report", folder, *rest]:
            bound_mib, rows = float(option(rest, "--bound-mib")), option(rest, "--rows")
            sys.exit(report.run(folder, bound_mib, flag(rest, "--short"), rows))
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
