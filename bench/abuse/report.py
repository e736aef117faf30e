"""What run-abuse.sh left in its folder, as tables and verdicts."""

import json
import pathlib
import statistics

# An honest client is back to quiet within so long after an abuse has ended, s.
BACK_S = 2.0


def quantiles(path):
    """p99 in ns, successes, requests sent and p99 of the client's own lateness of each endpoint of a result of
    `wellspring bench`."""
    found = {}
    for step in json.loads(path.read_text())["steps"]:
        for run in step["runs"]:
            for endpoint in run["endpoints"]:
                counters = endpoint["counters"]
                nanos = endpoint["service"]["quantiles_ns"].get("p99")
                response = endpoint.get("response", endpoint["service"])["quantiles_ns"].get("p99")
                late = (endpoint.get("lateness") or {"quantiles_ns": {}})["quantiles_ns"].get("p99") or 0
                found[endpoint["name"]] = (response or nanos, counters["successes"], counters["sent"], late)
    return found


def keep(path, table, memory, bound_mib):
    """Leaves what the tables are made of as JSON lines."""
    rows = [{"phase": phase, "endpoint": name, "round": number, "value": p99 / 1_000}
            for phase, rounds in table.items() for number, found in enumerate(rounds)
            for name, (p99, *_) in found.items() if p99]
    rows.append({"phase": "all of them", "most_mib": max(memory.values()), "bound_mib": bound_mib})
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def run(folder, bound_mib, short, kept=None):
    """Prints them; gives 1 if something did not hold. What is short judges no times: a machine of CI has its own."""
    folder = pathlib.Path(folder)
    phases = (folder / "phases").read_text().split()
    table, memory, settled = {}, {}, {}
    for phase in phases:
        table[phase], memory[phase] = [], 0
        for rss in sorted(folder.glob(f"{phase}.*.rss")):
            label = rss.name.removesuffix(".rss")
            found = {}
            for path in sorted(folder.glob(f"{label}.*.json")):
                found.update(quantiles(path))
            table[phase].append(found)
            memory[phase] = max(memory[phase], max(map(int, rss.read_text().split())) / 2**20)
        settled[phase] = [json.loads(p.read_text())["back_after_s"] for p in folder.glob(f"{phase}.*.settled")]
    if kept:
        keep(kept, table, memory, bound_mib)
    times, failures = [], []
    names = sorted(table[phases[0]][0])
    print("| median of rounds (range) | " + " | ".join(f"{name} p99, µs" for name in names)
          + " | client late p99, µs | failed | back to quiet, s | resident MiB |")
    print("|---|" + "---:|" * (len(names) + 4))
    for phase in phases:
        print(f"| {phase} | " + " | ".join(row(phase, phases, table, names, times)), end="")
        failed = sum(sent - good for found in table[phase] for _, good, sent, _ in found.values())
        done = sum(good for found in table[phase] for _, good, _, _ in found.values())
        if failed or not done:
            failures.append(f"{phase}: {failed} requests of the honest client failed, {done} did not")
        if memory[phase] > bound_mib:
            failures.append(f"{phase}: {memory[phase]:.0f} MiB resident, bound {bound_mib:.0f}")
        back = max(settled[phase], default=0)
        if back > BACK_S and not phase.endswith("@decoy"):
            times.append(f"{phase}: {back:.1f} s until back to quiet")
        # The abuser takes time of the honest client's processor: what was sent late was answered late.
        late = statistics.median(max(one[3] for one in found.values()) for found in table[phase]) / 1_000
        print(f" | {late:.0f} | {failed} | {back:.1f} | {memory[phase]:.0f} |")
    print(f"\nBound of resident memory from the configuration: {bound_mib:.0f} MiB.\n")
    for phase in phases:
        for path in sorted(folder.glob(f"{phase}.*.abuse")):
            told = path.read_text().strip().splitlines()
            print(f"- {phase}: {told[-1] if told else 'nothing was said'}")
            if not told or not told[-1].startswith("{"):
                failures.append(f"{phase}: the abuser did not come to its end")
    if short and times:
        print("\nTimes, which a short run does not judge: " + "; ".join(times) + ".")
    verdict = failures if short else failures + times
    print("\n" + ("Held." if not verdict else "NOT HELD: " + "; ".join(verdict) + "."))
    return 1 if verdict else 0


def row(phase, phases, table, names, times):
    """The cells of the honest client's requests in a phase."""
    def middle(phase, name):
        found = [found[name][0] for found in table[phase] if name in found and found[name][0]]
        return statistics.median(found) if found else None

    # A phase with a server of its own has a quiet of its own.
    quiet = f"quiet-{phase}" if f"quiet-{phase}" in phases else phases[0]
    for name in names:
        values = [found[name][0] / 1_000 for found in table[phase] if name in found and found[name][0]]
        # So few requests have no p99.
        if not values or not middle(quiet, name):
            yield "-"
            continue
        ratio = middle(phase, name) / middle(quiet, name)
        cell = f"{ratio:.2f}×: {statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"
        decoy = f"{phase}@decoy"
        if decoy in phases and middle(decoy, name):
            cell += f"; {middle(phase, name) / middle(decoy, name):.2f}× decoy"
        if ratio > 2 and not phase.endswith("@decoy"):
            times.append(f"{phase}: {name} has {ratio:.2f} times its quiet p99")
        yield cell
