"""Each method beside the paper: how far from its published numbers, how often above all of them, at what cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from marginbayes.evaluation.intervals import wilson_interval
from marginbayes.report.grid import APART
from marginbayes.report.results import Findings, mean_over_sets
from marginbayes.study.records import Record
from marginbayes.study.spec import Published
from marginbayes.study.statistics import Cell, weighted_mean

__all__ = ["CAPTION", "HEAD", "Line", "beside", "is_apart"]

HEAD = (
    *("method", "sets", "accuracy", "published", "difference", "above", "below", "above all published"),
    *("seconds of a fit", "parameters"),
)
CAPTION = (
    "Means are over the sets for which the paper has the method's number, else over all that are finished. Above and "
    f"below: sets where ours and the published number are further apart than {APART}; Wilson's interval where ours has "
    "no width."
)
# Published numbers have two digits.
HALF_DIGIT = 0.005


@dataclass(frozen=True)
class Line:
    """A method: over the sets for which the paper has its number, or over all finished ones where it has none or only
    an average (weighted by test rows if the paper's is).

    `above` and `below` count the published numbers that are apart from ours (`is_apart`), `best` the sets on which the
    method is above every number that the paper has for the set, out of `compared`.
    """

    method: str
    sets: int
    ours: float
    published: float | None
    above: int
    below: int
    best: int
    compared: int
    seconds: float | None
    parameters: float | None
    records: tuple[Record, ...]

    def texts(self) -> list[str]:
        """What is shown under `HEAD`."""
        known = self.published is not None
        return [
            self.method,
            str(self.sets),
            f"{self.ours:.2f}",
            f"{self.published:.2f}" if known else "",
            f"{self.ours - self.published:+.2f}" if self.published is not None else "",
            str(self.above) if self.compared and known else "",
            str(self.below) if self.compared and known else "",
            f"{self.best} of {self.compared}" if self.compared else "",
            "" if self.seconds is None else f"{self.seconds:.0f}" if self.seconds >= 100 else f"{self.seconds:.3g}",
            "" if self.parameters is None else f"{self.parameters:.0f}",
        ]


def beside(outcome: Findings) -> list[Line]:
    """A line for each method with a finished set; none where the paper has no numbers."""
    published = outcome.experiment.published
    return [_line(outcome, published, method) for method in outcome.methods] if published else []


def is_apart(found: Cell, published: tuple[float, float | None]) -> bool:
    """Whether our number and a published one, given with two digits, are further apart than their intervals explain.

    That is by more than the root of the sum of both squared half-widths; ours counts alone where the paper prints none.
    Rows that are all classified rightly, or all wrongly, give ours no width; Wilson's is asked instead.
    """
    number, theirs = published
    ours = found.half_width
    if ours == 0:
        low, high = wilson_interval(found.accuracy / 100 * found.tested, found.tested)
        end = float(high if number > found.accuracy else low)
        ours = abs(100 * end - found.accuracy) + HALF_DIGIT
    return abs(found.accuracy - number) > max(math.hypot(ours, theirs or 0.0), HALF_DIGIT)


def _line(outcome: Findings, published: Published, method: str) -> Line:
    finished = {dataset: cells[method] for dataset, cells in outcome.table.items() if method in cells}
    theirs = {d: n for d in finished if (n := published.get(d, method))}
    average, about = published.get("average", method), outcome.experiment.extra.get("average", {})
    ours = [finished[d] for d in theirs or finished]
    whole = about.get("weighted", False) and not theirs
    mean = weighted_mean(ours) if whole else float(np.mean([c.accuracy for c in ours]))
    own = average[0] if average and len(ours) == about.get("sets") else None
    outside = [finished[d].accuracy > n[0] for d, n in theirs.items() if is_apart(finished[d], n)]
    best = {d: max(n for n, _ in published.rows[d].values()) for d in finished if published.rows.get(d)}
    return Line(
        method,
        len(ours),
        mean,
        float(np.mean([n for n, _ in theirs.values()])) if theirs else own,
        sum(outside),
        len(outside) - sum(outside),
        sum(finished[d].accuracy > n + HALF_DIGIT for d, n in best.items()),
        len(best),
        mean_over_sets(ours, outcome.seconds.key),
        mean_over_sets(ours, "parameters"),
        tuple(outcome.of(method)),
    )
