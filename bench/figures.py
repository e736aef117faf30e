#!/usr/bin/env python3
"""Figures from the rows of a driver, by the definitions in goals.toml. `figures.py PART FILE` prints them as a
table; run-all and page use the rest. Needs Python 3.11.

A figure of goals.toml selects rows by their members (patterns as of a shell; an absent member is empty) and takes
one number of each: `ours`, and usually `peer`, or further names. Numbers of a round that are selected for the same
server are represented by their median; of several servers the best counts. `ratio` combines the names, within each
round; its median is what the goal is for. Without a ratio the goal is for `ours` itself."""
import ast
import fnmatch
import json
import operator
import pathlib
import statistics
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def goals():
    """The parts by name, and the figures in order, those for `each` value one by one."""
    with open(HERE / "goals.toml", "rb") as file:
        told = tomllib.load(file)
    figures = []
    for part, of_part in told["part"].items():
        for figure in of_part["figure"]:
            values = figure.pop("each", [None])
            figures += [json.loads(json.dumps(figure | {"part": part}).replace("{each}", str(value))) for value in values]
    for figure in figures:
        limit(figure)
    return told["part"], figures


def limit(figure):
    """The goal: whether a value meets it, or nothing if the figure has none."""
    if "goal" not in figure:
        return None
    sign, number = figure["goal"].split()
    return {"≤": operator.le, "≥": operator.ge}[sign], float(number.replace(",", ""))


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def selected(rows, selector, unit):
    """The number of each round."""
    take = selector.get("take", "value")
    wanted = {name: str(pattern) for name, pattern in selector.items() if name != "take"}
    rounds = {}
    for row in rows:
        if take in row and all(fnmatch.fnmatchcase(str(row.get(name, "")), wanted[name]) for name in wanted):
            by_server = rounds.setdefault(row.get("round", 0), {})
            by_server.setdefault(row.get("server", ""), []).append(row[take])
    # Rates are better when higher, times and sizes when lower. The best is chosen for all rounds together.
    middles = {}
    for by_server in rounds.values():
        for server, values in by_server.items():
            middles.setdefault(server, []).append(statistics.median(values))
    if not middles:
        return {}
    best = (max if unit.endswith("/s") else min)(middles, key=lambda server: statistics.median(middles[server]))
    return {number: statistics.median(found[best]) for number, found in rounds.items() if best in found}


def computed(formula, values):
    def of(node):
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](of(node.left), of(node.right))
        return node.value if isinstance(node, ast.Constant) else values[node.id]
    return of(ast.parse(formula, mode="eval").body)


def results():
    """What run-all has left of each part."""
    paths = sorted((HERE / "results").glob("*.json"))
    return [json.loads(path.read_text()) for path in paths if path.name != "history.json"]


def read_history():
    """The ratios of the plot, of this build and earlier ones."""
    path = HERE / "results/history.json"
    return json.loads(path.read_text()) if path.exists() else []


def key_ratios(figures, commit):
    """The rows of the figures in the plot, as measured on this commit."""
    wanted = {(figure["part"], figure["name"]) for figure in figures if figure.get("history")}
    return {f"{result['part']}: {row['name']}": row for result in results() if result["commit"] == commit
            for row in result["rows"] if (result["part"], row["name"]) in wanted}


def spread(values):
    values = list(values)
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)} if values else None


def folded(rows, figure):
    """A figure as it stands in a result."""
    unit = figure["unit"]
    named = {name: selected(rows, figure[name], unit) for name in figure if isinstance(figure[name], dict)}
    rounds = sorted(set.intersection(*(set(found) for found in named.values())))
    each = [{name: found[number] for name, found in named.items()} for number in rounds]
    formula = figure.get("ratio", "ours / peer" if "peer" in named else None)
    ratios = [computed(formula, values) for values in each] if formula else []
    beside = [computed(figure.get("beside", "peer"), values) for values in each] if "peer" in named else []
    busy = selected(rows, figure["ours"] | {"take": "client_busy"}, unit).values()
    row = {"name": figure["name"], "unit": unit, "ours": spread(named["ours"].values()), "peer": spread(beside),
           "ratio": spread(ratios), "goal": figure.get("goal"), "rounds": len(rounds)}
    # The client's core is the limit, which flatters the slower.
    row["client_limited"] = bool(busy) and statistics.median(busy) > 0.8
    judged, goal = row["ratio"] if formula else row["ours"], limit(figure)
    if judged is None or not rounds:
        return row | {"verdict": "untested"}
    return row | {"verdict": "no goal" if goal is None else "met" if goal[0](judged["median"], goal[1]) else "missed"}


def figure_text(value):
    """Three digits that count, with thousands set apart."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.2f} M"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def spread_text(found, text=figure_text):
    if found is None:
        return ""
    low, high = text(found["lowest"]), text(found["highest"])
    return text(found["median"]) + ("" if low == high else f" ({low} … {high})")


VERDICTS = {"met": "met", "missed": "**missed**", "untested": "untested", "no goal": ""}


def table(rows):
    lines = ["| | Wellspring | beside it | ratio (lowest … highest) | goal | |", "|---|---|---|---|---|---|"]
    for row in rows:
        ours, peer = (spread_text(row[side]) for side in ("ours", "peer"))
        unit = row["unit"] if ours else ""
        ratio = spread_text(row["ratio"], lambda value: f"{value:.2f}")
        verdict = VERDICTS[row["verdict"]] + (", client-limited" if row["client_limited"] else "")
        goal = f"{row['goal']}{'' if row['ratio'] or not ours else ' ' + unit}" if row["goal"] else ""
        lines.append(f"| {row['name']} | {ours} {unit} | {peer} | {ratio} | {goal} | {verdict} |")
    return "\n".join(" ".join(line.split()) for line in lines)


def main():
    part, path = sys.argv[1:]
    rows, (_, figures) = read(path), goals()
    print(table([folded(rows, figure) for figure in figures if figure["part"] == part]))


if __name__ == "__main__":
    main()
