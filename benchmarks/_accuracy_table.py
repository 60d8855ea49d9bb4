"""Tables of the lines that `accuracy.py` writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["print_tables"]

Line = Mapping[str, Any]
Column = tuple[str, str]  # structure, method
CHOSEN = "chosen"


def print_tables(lines: Sequence[Line], methods: Sequence[str], structures: Sequence[str], uci: Sequence[str]) -> None:
    """One row for each method and structure: mean over the UCI sets, time, size; then every set, by structure."""
    cells = _cells([*lines, *_chosen(lines, structures)])
    columns = sorted({column for _, column in cells}, key=lambda c: _place(c, methods, structures))
    sets = sorted({name for name, _ in cells}, key=[*uci, *(n for n, _ in cells)].index)
    _print_means(cells, columns, [name for name in sets if name in uci])
    for name in (name for name in sets if name not in uci):
        _print_one([line for line in lines if line["data"] == name and "right" in line], methods, structures)
    for shown in ((CHOSEN, "-"), *((structure,) for structure in structures)):
        own = [column for column in columns if column[0] in shown]
        if own:
            _print_sets(cells, own, [name for name in sets if any((name, column) in cells for column in own)])
    for line in lines:
        if "refused" in line:
            print(f"{line['data']}, {line['structure']}, {line['method']}: {line['refused']}")


def _cells(lines: Sequence[Line]) -> dict[tuple[str, Column], Line]:
    """All folds of a cell together; a cell of which a fold is lacking is left out."""
    groups = defaultdict(list)
    for line in lines:
        if "right" in line:
            groups[line["data"], (line["structure"], line["method"])].append(line)
    return {key: _together(group) for key, group in groups.items() if len(group) == group[0]["folds"]}


def _together(group: Sequence[Line]) -> Line:
    # Fold by fold, as the papers average them.
    rates = [100 * line["right"] / line["rows"] for line in group]
    sums = {
        key: float(np.mean([line.get(key, np.nan) for line in group])) for key in ("cpu", "tuning_cpu", "parameters")
    }
    return {"rate": float(np.mean(rates)), **sums}


def _chosen(lines: Sequence[Line], structures: Sequence[str]) -> list[Line]:
    """For each fold and method the structure that did best in validation; a tie goes to the simpler one."""
    groups = defaultdict(list)
    for line in sorted((line for line in lines if line["structure"] in structures and "right" in line), key=_size):
        groups[line["data"], line["fold"], line["method"]].append(line)
    chosen = []
    for group in groups.values():
        best = max(group, key=lambda line: line["validation"])
        work = sum(line.get("tuning_cpu", np.nan) for line in group)
        chosen.append({**best, "structure": CHOSEN, "tuning_cpu": work})
    return chosen


def _size(line: Line) -> float:
    return float(line["parameters"])


def _place(column: Column, methods: Sequence[str], structures: Sequence[str]) -> tuple[int, int]:
    return methods.index(column[1]), [*structures, CHOSEN, "-"].index(column[0])


def _print_means(cells: Mapping[tuple[str, Column], Line], columns: Sequence[Column], sets: Sequence[str]) -> None:
    """Means over the UCI sets of each column, and over those that all long columns have; times where they are known."""
    long = [column for column in columns if 2 * sum((name, column) in cells for name in sets) > len(sets)]
    shared = [name for name in sets if all((name, column) in cells for column in long)]
    print(f"\nMean over the UCI sets: all that a row has, and the {len(shared)} that every row with most sets has.")
    print("| method | structure | sets | accuracy % | on the shared | fit cpu s | tuning cpu s | parameters |")
    print("|---|---|---|---|---|---|---|---|")
    for column in columns:
        own = [cells[name, column] for name in sets if (name, column) in cells]
        if own:
            common = [cells[name, column]["rate"] for name in shared] if column in long else []
            both = f"{_mean(own, 'rate'):.2f} | {np.mean(common):.2f}" if common else f"{_mean(own, 'rate'):.2f} | -"
            costs = " | ".join(_shown(_mean(own, cost)) for cost in ("cpu", "tuning_cpu", "parameters"))
            print(f"| {column[1]} | {column[0]} | {len(own)} | {both} | {costs} |")


def _print_one(lines: Sequence[Line], methods: Sequence[str], structures: Sequence[str]) -> None:
    """One set with one test part: what was chosen, time and size beside the accuracy."""
    print(f"\n{lines[0]['data']}, {lines[0]['rows']} test rows.")
    print("| method | structure | accuracy % | setting | fit cpu s | tuning cpu s | parameters |")
    print("|---|---|---|---|---|---|---|")
    for line in sorted(lines, key=lambda line: _place((line["structure"], line["method"]), methods, structures)):
        setting = ", ".join(f"{key} {value:g}" for key, value in line["setting"].items()) or "-"
        costs = " | ".join(_shown(line.get(cost, float("nan"))) for cost in ("cpu", "tuning_cpu", "parameters"))
        rate = 100 * line["right"] / line["rows"]
        print(f"| {line['method']} | {line['structure']} | {rate:.2f} | {setting} | {costs} |")


def _mean(lines: Sequence[Line], key: str) -> float:
    known = [line[key] for line in lines if not np.isnan(line[key])]
    return float(np.mean(known)) if known else float("nan")


def _shown(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _print_sets(cells: Mapping[tuple[str, Column], Line], columns: Sequence[Column], sets: Sequence[str]) -> None:
    print("\nAccuracy in %, set by set.")
    print(f"| set | {' | '.join(f'{method}, {structure}'.removesuffix(', -') for structure, method in columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for name in sets:
        shown = [f"{cells[name, c]['rate']:.2f}" if (name, c) in cells else "-" for c in columns]
        print(f"| {name} | {' | '.join(shown)} |")
