"""Of all tables that label complete observations alike, those under which the observations are likeliest.

A term g(x) that is added to the weight of a level x whatever the label changes no P(labels | observations). But it
changes the tables that renormalisation makes, and so what they say where an observation is missing. The proper models
of the same answers are an exponential family in g: minus the log-likelihood of the observations,

    F(g) = log Z(g) - sum over levels of (mean count of the level) * g(level),

is convex, and where it is least each level is expected as often as it was counted. Z(g) sums over all labels and all
observations of every length; given the labels observations are independent, so they enter by one factor for each label:
the product over the children of sum_x P(x | label) exp(g(x)).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.network.logs import log_sum
from marginbayes.sequence.model import ChainExamples, ChainModel
from marginbayes.sequence.pairs import PairSteps, UnsettledError
from marginbayes.sequence.renormalize import MANY_LABELS, renormalize_chain
from marginbayes.sequence.tree import TreeExamples, TreeModel
from marginbayes.solvers.lbfgs import lbfgs_or_best

__all__ = ["ProperWeights", "likeliest_chain", "likeliest_tree"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# From the logs of the factors of all labels to log Z and the expected number of uses of each label.
Sums = Callable[[list[Floats]], tuple[float, list[Floats]]]

# Levels are expected as often as they were counted up to this share.
TOL = 1e-7
MOST_STEPS = 500


@dataclass(frozen=True, eq=False)
class ProperWeights:
    """Logarithms of proper tables, and whether Ctrl-C ended the search for the likeliest of them."""

    weights: Floats
    interrupted: bool


def likeliest_chain(examples: ChainExamples, weights: Floats, mean_length: float) -> ProperWeights:
    """Proper tables of a chain with the P(labels | observations) of these weights, as likely as possible."""
    model = examples.model
    plain = renormalize_chain(model, weights, mean_length)
    start, steps, emission = model.tables(plain)
    counts = model.tables(examples.true_features)[2].sum(axis=1)
    levels = _Levels([emission], model.first_cells, [mean_length * _shares(counts, model.first_cells)])
    (terms,), interrupted = levels.best(lambda factors: _chain_sums(model, start, steps, factors[0]))
    found = renormalize_chain(model, model.flatten(start, steps, emission + terms[:, None]), mean_length)
    return ProperWeights(_likelier(examples.true_features, found, plain), interrupted)


def likeliest_tree(examples: TreeExamples, weights: Floats) -> ProperWeights:
    """Proper tables of a tree with the P(labels | features) of these weights, as likely as possible."""
    model = examples.model
    plain = model.renormalize(weights)
    tables, cells = model.tables(plain)
    counts = [c.sum(axis=1) for c in model.tables(examples.true_features)[1]]
    levels = _Levels(cells, model.first_cells, [_shares(c, model.first_cells) for c in counts])
    terms, interrupted = levels.best(lambda factors: _tree_sums(model, plain, factors))
    found = model.renormalize(model.flatten(tables, [c + g[:, None] for c, g in zip(cells, terms, strict=True)]))
    return ProperWeights(_likelier(examples.true_features, found, plain), interrupted)


def _likelier(counts: Floats, found: Floats, plain: Floats) -> Floats:
    return found if counts @ found > counts @ plain else plain


def _shares(counts: Floats, bounds: Integers) -> Floats:
    """Share of each level among those of its child; one more count is spread evenly, so that none is zero."""
    sizes = np.diff(bounds)
    totals = np.add.reduceat(counts, bounds[:-1])
    return np.asarray((counts + np.repeat(1.0 / sizes, sizes)) / np.repeat(totals + 1.0, sizes))


@dataclass(frozen=True, eq=False)
class _Levels:
    """Log emissions (cells x labels) of one or several label variables, bounds of the children, counts to meet."""

    emissions: list[Floats]
    bounds: Integers
    wanted: list[Floats]

    def best(self, sums: Sums) -> tuple[list[Floats], bool]:
        """Terms for which every level is expected as often as wanted, and whether Ctrl-C ended the search for them."""
        wanted = np.concatenate(self.wanted)

        def objective(point: Floats) -> tuple[float, Floats]:
            tilted = [self._tilted(e, g) for e, g in zip(self.emissions, self._split(point), strict=True)]
            log_z, uses = sums([factor for _, factor in tilted])
            expected = np.concatenate([np.exp(e) @ u for (e, _), u in zip(tilted, uses, strict=True)])
            return log_z - float(wanted @ point), expected - wanted

        found = lbfgs_or_best(
            objective,
            np.zeros(len(wanted)),
            tol=TOL * sum(float(w[: self.bounds[1]].sum()) for w in self.wanted),
            max_iter=MOST_STEPS,
            precondition=lambda gradient: gradient / wanted,
        )
        return self._split(found.point), found.status == "interrupted"

    def _split(self, point: Floats) -> list[Floats]:
        return np.split(point, np.cumsum([len(w) for w in self.wanted])[:-1])

    def _tilted(self, emission: Floats, terms: Floats) -> tuple[Floats, Floats]:
        """Log emissions with the terms, normalised, and for each label the log of its factor."""
        raised = emission + terms[:, None]
        totals = np.logaddexp.reduceat(raised, self.bounds[:-1], axis=0)
        return raised - np.repeat(totals, np.diff(self.bounds), axis=0), totals.sum(axis=0)


def _chain_sums(model: ChainModel, start: Floats, steps: Floats, factor: Floats) -> tuple[float, list[Floats]]:
    """Sums over chains of every length; infinite where the factors are too large."""
    if model.order == 2 and model.n_labels >= MANY_LABELS:
        with suppress(UnsettledError):
            return _pair_sums(model, start + factor, steps[:, :-1] + factor, steps[:, -1])
    n, state = model.n_states, np.arange(model.n_states)
    with np.errstate(over="ignore"):
        begin = np.zeros(n)
        begin[: model.n_labels] = np.exp(start + factor)
        matrix = np.zeros((n, n))
        matrix[state[:, None], model.successor] = np.exp(steps[:, :-1] + factor)
    if not (np.isfinite(matrix).all() and np.isfinite(begin).all()):
        return np.inf, [np.zeros(model.n_labels)]
    rest = np.eye(n) - matrix
    try:
        ahead, behind = np.linalg.solve(rest, np.exp(steps[:, -1])), np.linalg.solve(rest.T, begin)
    except np.linalg.LinAlgError:
        return np.inf, [np.zeros(model.n_labels)]
    # A positive solution exists only where the sum over all lengths is finite.
    if not (ahead > 0).all():
        return np.inf, [np.zeros(model.n_labels)]
    z = float(begin @ ahead)
    uses = np.bincount(model.label_of, behind * ahead / z, model.n_labels)
    return float(np.log(z)), [uses.astype(np.float64, copy=False)]


def _pair_sums(model: ChainModel, begin: Floats, log_step: Floats, log_end: Floats) -> tuple[float, list[Floats]]:
    """The same term by term, for as many terms as take no longer than a matrix would be factorised in."""
    walks = PairSteps.of(model, log_step, model.n_labels**3 // 4)
    ahead = walks.ahead(log_end)
    if not np.isfinite(ahead).all():
        return np.inf, [np.zeros(model.n_labels)]
    log_z = float(log_sum(begin + ahead[: model.n_labels]))
    uses = np.bincount(model.label_of, np.exp(walks.behind(begin) + ahead - log_z), model.n_labels)
    return log_z, [uses.astype(np.float64, copy=False)]


def _tree_sums(model: TreeModel, weights: Floats, factors: list[Floats]) -> tuple[float, list[Floats]]:
    pairs, log_z = model.marginals(weights, [factor[None] for factor in factors])
    return float(log_z[0]), [pair[0].sum(axis=0) for pair in pairs]
