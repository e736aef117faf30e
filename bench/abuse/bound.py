"""Most resident memory that a server's configuration allows, as docs/operations.md ("Memory") has it."""

import re
import subprocess
import tomllib

MIB = 1 << 20
# What the process takes before anybody asks, without what the tables below say: code, threads, rings.
BASE_MIB = 64
# Who was limited, credentials, logins.
REMEMBERED_MIB = 32
# A log has a committer, a merge of indexes and its active index (four times while a full one is written).
MERGE_MIB = 96


def resident_mib(binary, flags):
    """MiB. What the server prints itself goes before what is reckoned here."""
    text = subprocess.run(
        [binary, "serve", *flags, "--print-config"], check=True, capture_output=True, text=True
    ).stdout
    # A comment, as it cannot be set; earlier versions had it in a table.
    printed = re.search(r"^(?:# )?memory_bound_bytes = (\d+)$", text, re.MULTILINE)
    if printed:
        return int(printed[1]) // MIB
    config = tomllib.loads(text)
    threads = config["threads"] or 2
    # The logs main and system are written.
    logs = 2
    parts = [
        config["max_connections"] * (32 * 1024 + config["max_buffer_bytes"]),
        config["body_memory_bytes"],
        logs * (2 * threads * config["ingest_partition_bytes"] + 2 * config["staged_bytes"]),
        config["max_long_reads"] * (2 * config["max_page_bytes"] + 2 * MIB),
        config["max_subscribers"] * (64 + 320) * 1024,
        logs * (4 * config["active_index_bytes"] + MERGE_MIB * MIB),
        config["sealed_index_bytes"],
        # Waiters: positions and leases of each log.
        logs * 2 * 65_536 * 48,
    ]
    return BASE_MIB + REMEMBERED_MIB + sum(parts) // MIB
