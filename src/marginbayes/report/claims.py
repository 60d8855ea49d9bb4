"""Sentences of the papers about their figures, and what the records say to the same question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from marginbayes.report.results import Findings
from marginbayes.study.records import Record
from marginbayes.study.statistics import paired_t

__all__ = ["judged"]

Claim = Mapping[str, Any]
NOTHING = "not finished yet"
# At which the papers call a difference significant.
LEVEL = 0.05


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
        won = most > least and most > drawn
        wins += won
        if not won:
            lost.append(dataset)
    return f"on {wins} of {total} sets" + (f"; not on {', '.join(lost)}" if lost else "") if total else NOTHING


def _likelihood(records: tuple[Record, ...]) -> float:
    return float(sum(np.mean(r.result["train_cll"]) for r in records))


def _paired(outcome: Findings, claim: Claim) -> str:
    """A one-sided paired t-test for every size."""
    found = []
    for size in outcome.experiment.protocol["sizes"]:
        pairs = _matched(outcome, claim["better"], claim["worse"], f"{size}-")
        if len(pairs) > 1:
            gains = np.array([a - b for a, b in pairs])
            found.append(f"{size}: {100 * gains.mean():+.2f} points, p = {paired_t(gains):.2g}")
    return "; ".join(found) or NOTHING


def _pairs(outcome: Findings, claim: Claim) -> str:
    """Mean difference over all sets, sizes and repetitions, and how often either is ahead."""
    pairs = _matched(outcome, claim["better"], claim["worse"])
    if not pairs:
        return NOTHING
    gains = np.array([a - b for a, b in pairs])
    return (
        f"{claim['better']} is {100 * gains.mean():+.2f} points apart on average; ahead in {int((gains > 0).sum())}, "
        f"behind in {int((gains < 0).sum())} of {len(gains)} training sets"
    )


def _matched(outcome: Findings, first: str, second: str, start: str = "") -> list[tuple[float, float]]:
    """Accuracies of two methods on the same splits, those whose name begins so."""
    known = [r for r in outcome.records if r.split.startswith(start)]
    rates = {(r.method, r.dataset, r.split): r.result["accuracy"] for r in known}
    return [
        (rate, rates[second, dataset, split])
        for (method, dataset, split), rate in rates.items()
        if method == first and (second, dataset, split) in rates
    ]


def _ranking(outcome: Findings, _claim: Claim) -> str:
    """Mean accuracies over the splits that all methods finished, the highest first."""
    rates = _of_all(outcome, "accuracy")
    order = sorted(rates, key=lambda m: -float(np.mean([*rates[m].values()])))
    return ", ".join(f"{m} {100 * np.mean([*rates[m].values()]):.2f} %" for m in order) or NOTHING


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


def _trend(outcome: Findings, _claim: Claim) -> str:
    points = sorted(
        (int(r.method.split("-")[1]), r.result["train_accuracy"], r.result["accuracy"]) for r in outcome.records
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
