"""Sentences of the papers about their figures, and what the records say to the same question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from marginbayes.report.results import Findings
from marginbayes.study.records import Record
from marginbayes.study.statistics import paired_t

__all__ = ["judged"]

Claim = Mapping[str, Any]
Gains = Mapping[tuple[str, str], float]
NOTHING = "not finished yet"
# At which the papers call a difference significant.
LEVEL = 0.05
# Nats by which likelihoods of the same tables differ in rounding.
SAME = 1e-3
# From so many sets on they are what is repeated, else the draws of training rows are.
ENOUGH_SETS = 5


def judged(outcome: Findings) -> list[tuple[str, str]]:
    """Each claim with what is found here."""
    return [(claim["text"], MEASURES[claim["measure"]](outcome, claim)) for claim in outcome.experiment.claims]


def _wins(outcome: Findings, claim: Claim) -> str:
    """How often methods beat others on the sets for which the paper has numbers of both."""
    present = set(outcome.methods)
    pairs = [(a, b) for a in claim["rows"] for b in claim["columns"] if {a, b} <= present]
    if not pairs:
        return NOTHING
    counts = [
        f"{a} beats {b} {some} times at 68 % ({sure} at 95 %) on {len(outcome.comparable(a, b))} sets"
        for a, b in pairs
        for some, sure in [outcome.wins(a, b, as_published=True)]
    ]
    return "; ".join(counts)


def _order_wins(outcome: Findings, _claim: Claim) -> str:
    """On how many sets the order by most information gives a higher likelihood than the others."""
    wins, total, lost = 0, 0, []
    for dataset, cells in outcome.table.items():
        if not {"OMI-CL", "OMI-min-CL", "RO-CL"} <= cells.keys():
            continue
        most, least, drawn = (_likelihood(cells[m].records) for m in ("OMI-CL", "OMI-min-CL", "RO-CL"))
        total += 1
        won = most > max(least, drawn) + SAME
        wins += won
        if not won:
            lost.append(dataset)
    return f"on {wins} of {total} sets" + (f"; not on {', '.join(lost)}" if lost else "") if total else NOTHING


def _likelihood(records: tuple[Record, ...]) -> float:
    return float(sum(np.mean(r.result["train_cll"]) for r in records))


def _paired(outcome: Findings, claim: Claim) -> str:
    """A one-sided paired t-test for every size."""
    found, gains = [], _gains(outcome, claim["better"], claim["worse"])
    for size in outcome.experiment.protocol["sizes"]:
        own = np.array([gain for (_, split), gain in gains.items() if split.startswith(f"{size}-")])
        if len(own) > 1:
            found.append(f"{size}: {100 * own.mean():+.2f} points, p = {paired_t(own):.2g}")
    return "; ".join(found) or NOTHING


def _pairs(outcome: Findings, claim: Claim) -> str:
    """Mean difference over all sets, sizes and repetitions with its p-value, and how often either is ahead."""
    found = _gains(outcome, claim["better"], claim["worse"])
    if not found:
        return NOTHING
    gains, (p, over) = np.array([*found.values()]), _tested(found)
    return (
        f"{claim['better']} is {100 * gains.mean():+.2f} points apart on average (two-sided {p} over {over}); "
        f"ahead in {int((gains > 0).sum())}, behind in {int((gains < 0).sum())} of {len(gains)} training sets"
    )


def _gains(outcome: Findings, first: str, second: str) -> Gains:
    """How much more the first method has right than the second, by data set and split that both finished."""
    ours, theirs = ({(r.dataset, r.split): r.result["accuracy"] for r in outcome.of(m)} for m in (first, second))
    return {place: rate - theirs[place] for place, rate in ours.items() if place in theirs}


def _tested(gains: Gains) -> tuple[str, str]:
    """The two-sided p-value of gains, nobody having said beforehand which way they go, and what is repeated.

    That is sets where there are enough of them; else it is draws, over sets and sizes, because those of the same number
    share rows, or the tables that generate rows.
    """
    many = len({dataset for dataset, _ in gains}) >= ENOUGH_SETS
    units: dict[str, list[float]] = {}
    for (dataset, split), gain in gains.items():
        units.setdefault(dataset if many else split.rpartition("-")[2], []).append(gain)
    means, over = np.array([np.mean(own) for own in units.values()]), f"{len(units)} {'sets' if many else 'draws'}"
    p = min(1.0, 2 * min(paired_t(means), paired_t(-means))) if len(means) > 1 else 1.0
    return f"p = {p:.2g}", over


def _ranking(outcome: Findings, _claim: Claim) -> str:
    """Mean accuracies over the splits that all methods finished, the highest first, each tested against the next."""
    rates = _of_all(outcome, "accuracy")
    order = sorted(rates, key=lambda m: -float(np.mean([*rates[m].values()])))
    said = [f"{m} {100 * np.mean([*rates[m].values()]):.2f} %" for m in order]
    over = ""
    for i, (above, below) in enumerate(pairwise(order), 1):
        p, over = _tested({place: rate - rates[below][place] for place, rate in rates[above].items()})
        said[i] += f" ({p})"
    tested = f"; p: two-sided paired t-test against the one before, over {over}" if over else ""
    return ", ".join(said) + tested if said else NOTHING


def _of_all(outcome: Findings, key: str) -> dict[str, dict[tuple[str, str], float]]:
    """What each method has on record for the sets and splits that all methods finished."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for record in outcome.records:
        found.setdefault(record.method, {})[record.dataset, record.split] = record.result[key]
    shared = set.intersection(*(set(values) for values in found.values())) if found else set()
    return {m: {k: v for k, v in values.items() if k in shared} for m, values in found.items()} if shared else {}


def _likelihoods(outcome: Findings, _claim: Claim) -> str:
    """Mean conditional log-likelihood of the training rows, the highest first; and for each size the pairs of methods
    that do not differ significantly, by one-sided paired t-tests of all pairs.
    """
    found, said = _of_all(outcome, "train_cll"), []
    means = {m: float(np.mean([*values.values()])) for m, values in found.items()}
    if means:
        said.append(", ".join(f"{m} {means[m]:.0f}" for m in sorted(means, key=lambda m: -means[m])))
    for size in outcome.experiment.protocol["sizes"] if means else ():
        here = {
            m: [v for (_, split), v in sorted(values.items()) if split.startswith(f"{size}-")]
            for m, values in found.items()
        }
        order, alike = sorted(here, key=lambda m: -float(np.mean(here[m]))), []
        for first, second in combinations(order, 2):
            p = paired_t(np.subtract(here[first], here[second]))
            if not p < LEVEL:
                alike.append(f"{first} and {second} (p = {p:.2g})")
        said.append(f"{size}: {' > '.join(order)}, all apart but {', '.join(alike) or 'none'}")
    return "; ".join(said) or NOTHING


def _curves(outcome: Findings, _claim: Claim) -> str:
    """Where curves of accuracy against missing features cross."""
    found = []
    for dataset in outcome.experiment.sets:
        curves = {
            r.method: {point[0]: point[1] for point in r.result["curve"]}
            for r in outcome.records
            if r.dataset == dataset
        }
        for first, second in (("TAN-CR-ML", "TAN-CMI-ML"), ("TAN-CR-ML", "NB-CL")):
            if first in curves and second in curves:
                one, other = curves[first], curves[second]  # a curve may have ended early
                counts = [str(int(m)) for m, rate in one.items() if m in other and rate > other[m]]
                found.append(
                    f"{dataset}: {first} is ahead of {second} with {', '.join(counts) or 'no'} features missing"
                )
    return "; ".join(found) or NOTHING


def _members(outcome: Findings, claim: Claim) -> str:
    for record in outcome.records:
        if (record.dataset, record.method) == (claim["dataset"], claim["method"]) and record.result.get("members"):
            train, test = (100 * np.array(record.result["members"])).T
            gain_train = 100 * record.result["train_accuracy"] - train
            gain_test = 100 * record.result["accuracy"] - test
            return (
                f"{gain_train.min():.1f} to {gain_train.max():.1f} points on the training rows, "
                f"{gain_test.min():.1f} to {gain_test.max():.1f} on the test rows"
            )
    return NOTHING


def _trend(outcome: Findings, claim: Claim) -> str:
    """How the rates of some combinations go with their number of parts."""
    own = {m.name: m.options["parameters_options"]["n_parts"] for m in outcome.experiment.methods}
    points = sorted(
        (own[r.method], r.result["train_accuracy"], r.result["accuracy"])
        for r in outcome.records
        if r.method in claim["methods"]
    )
    if len(points) < 3:
        return NOTHING
    parts, train, test = np.array(points).T
    return (
        f"rank correlation with the number of parts {spearmanr(parts, train).statistic:+.2f} on the training rows, "
        f"{spearmanr(parts, test).statistic:+.2f} on the test rows"
    )


def _sizes(outcome: Findings, claim: Claim) -> str:
    """How many times more parameters one method has than another, set by set."""
    found = []
    for dataset, cells in outcome.table.items():
        if {claim["larger"], claim["smaller"]} <= cells.keys():
            large, small = (
                np.mean([r.result["parameters"] for r in cells[claim[which]].records])
                for which in ("larger", "smaller")
            )
            found.append(f"{dataset}: {large:.0f} against {small:.0f}, {large / small:.0f} times")
    return "; ".join(found) or NOTHING


MEASURES: Mapping[str, Callable[[Findings, Claim], str]] = {
    "wins": _wins,
    "order_wins": _order_wins,
    "paired": _paired,
    "pairs": _pairs,
    "ranking": _ranking,
    "likelihoods": _likelihoods,
    "curves": _curves,
    "members": _members,
    "trend": _trend,
    "sizes": _sizes,
}
