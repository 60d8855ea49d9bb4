"""The facts of an experiment: the grids that the page and the summary show, each in its own notation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from marginbayes.report.curves import curve_grid, curves
from marginbayes.report.gaps import gap_grid
from marginbayes.report.grid import Grid
from marginbayes.report.orders import order_grids
from marginbayes.report.pairs import published_wins_grid, rank_grid, significance_grid, times_grid, wins_grid
from marginbayes.report.results import Findings
from marginbayes.report.tables import accuracy_grid, beside_grid, train_grid
from marginbayes.study.records import Record
from marginbayes.study.statistics import Ranking, ranking

__all__ = ["facts", "members", "ranks"]

# Over fewer sets, how often a method wins and its mean rank say little.
FEWEST_SETS = 5


def facts(outcome: Findings) -> list[Grid]:
    """The grids of an experiment that have something in them, in the order in which they are shown."""
    return [grid for grid in _grids(outcome) if grid.entries]


def _grids(outcome: Findings) -> Iterator[Grid]:
    kind, curve = outcome.experiment.kind, curves(outcome)
    if kind == "orders":
        yield from order_grids(outcome)
    elif kind == "structure":
        yield times_grid(outcome)
    elif curve is not None:
        yield curve_grid(curve)
    else:
        yield from (accuracy_grid(outcome), beside_grid(outcome), train_grid(outcome), gap_grid(outcome))
        yield from (published_wins_grid(outcome), significance_grid(outcome))
        found = ranks(outcome)
        if found is not None:
            yield from (wins_grid(outcome), rank_grid(found, outcome))


def ranks(outcome: Findings) -> Ranking | None:
    """Ranks of the methods, None where there are too few methods or sets to speak of."""
    return ranking(outcome.table, outcome.methods) if len(outcome.shared()) >= FEWEST_SETS else None


def members(outcome: Findings) -> list[tuple[Record, str]]:
    """For each combination, what its weak members reach beside it; and tables that are not plainly optimal."""
    found = _unsolved(outcome)
    for record in outcome.records:
        weak = record.result.get("members")
        if weak:
            train, test = (100 * np.array(weak)).T
            own = 100 * record.result["train_accuracy"], 100 * record.result["accuracy"]
            text = (
                f"{len(weak)} members reach {train.min():.2f} to {train.max():.2f} % (mean {train.mean():.2f}) of the "
                f"training rows and {test.min():.2f} to {test.max():.2f} % (mean {test.mean():.2f}) of the test rows; "
                f"the combination {own[0]:.2f} % and {own[1]:.2f} %.{_weights(record)}"
            )
            found.append((record, text))
    return found


def _weights(record: Record) -> str:
    """How a combination weighs its members, where its record says so."""
    weights = record.result.get("weights")
    if weights is None:
        return ""
    if weights["equal"]:
        return f" All weights are equal, as they are from D = {weights['equal_from']:.3g} on."
    spread = f"{weights['least']:.3f} to {weights['most']:.3f}"
    return f" Weights are {spread}; from D = {weights['equal_from']:.3g} on all are equal."


def _unsolved(outcome: Findings) -> list[tuple[Record, str]]:
    """For each method and set whose tables are not plainly optimal, what its certificate says, once for all splits."""
    if "sizes" in outcome.experiment.protocol:
        return []
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in outcome.records:
        status = record.result.get("parameters_certificate", {}).get("status", "optimal")
        if status != "optimal":
            groups.setdefault((record.dataset, record.method, status), []).append(record)
    return [
        (own[0], f"certificate of the tables{f' (on {len(own)} splits)' if len(own) > 1 else ''}: {status}.")
        for (_, _, status), own in groups.items()
    ]
