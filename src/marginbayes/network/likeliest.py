"""Of all networks that decide alike for complete rows, the one under which the data is likeliest.

Let a graph be renormalisable and its log tables w be given. A normalised network of the same graph gives every complete
row the same P(class | features) exactly if it is, for some terms g(family without the class),

    P(class, its children | its parents) = exp(sum over the class's families of w + g) / s(parents of the class).

(The renormalisation of Guo et al. 2005 is g = 0.) This is an exponential family in g: minus its log-likelihood is
convex, and where it is least the features of every family are distributed as in the data, which is what is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.network.logs import log_sum
from marginbayes.network.network import Network
from marginbayes.network.renormalize import aligned, heir, refuse_unmarried
from marginbayes.solvers.lbfgs import Minimum, lbfgs_or_best

__all__ = ["Likeliest", "likeliest"]

Floats = NDArray[np.float64]

# Pairs of steps that limited-memory BFGS remembers.
MEMORY = 30


@dataclass(frozen=True)
class Likeliest:
    """Normalised log tables, how far they are from optimal, and what they gained.

    Parameters
    ----------
    tables : list of arrays
    residual : float
        The largest difference between the probability of the features of a family under the network and under the
        reference; 0 at the optimum.
    gain : float
        Expected log-likelihood of a row, less that of plain renormalisation; never negative.
    iterations : int
    interrupted : bool, default=False
        Whether Ctrl-C ended it: the network decides as it should, but there may be likelier ones.
    """

    tables: list[Floats]
    residual: float
    gain: float
    iterations: int
    interrupted: bool = False


def likeliest(reference: Network, tables: Sequence[Floats], tol: float = 1e-8, max_iter: int = 1000) -> Likeliest:
    """The network nearest to the reference among those with the same P(class | features) for every complete row.

    Nearest means: rows drawn from the reference have the greatest expected log-likelihood. Where the reference is the
    maximum-likelihood network of complete rows, these are the rows themselves; where it is smoothed, so are they.

    Parameters
    ----------
    reference : Network
        Normalised and without zeros in the families of the class.
    tables : sequence of arrays
        Log weights of any size, shaped as the tables of the reference. Those of families without the class are not
        looked at: the reference's are likeliest.
    tol : float, default=1e-8
        It is done when `Likeliest.residual` is no larger.
    max_iter : int, default=1000
    """
    refuse_unmarried(reference.dag)
    family = _Family(reference, tables)
    plain, start = family.nothing(), family.near_reference()
    values = [family.objective(x)[0] for x in (plain, start)]
    scale = family.scale()
    if values[0] < values[1]:
        start = plain
    found = _minimise(family, start, scale, tol, max_iter)
    best = found.point / scale
    value, slope = family.objective(best)
    residual, interrupted = float(np.abs(slope).max(initial=0.0)), found.status == "interrupted"
    return Likeliest(family.tables(best), residual, values[0] - value, found.iterations, interrupted)


def _minimise(family: _Family, start: Floats, scale: Floats, tol: float, max_iter: int) -> Minimum:
    def objective(scaled: Floats) -> tuple[float, Floats]:
        value, slope = family.objective(scaled / scale)
        return value, slope / scale

    return lbfgs_or_best(objective, start * scale, tol=tol, max_iter=max_iter, memory=MEMORY)


class _Family:
    """The exponential family: from the terms g, in one vector, to objective, slope and tables."""

    def __init__(self, reference: Network, tables: Sequence[Floats]) -> None:
        self.dag, self.reference = reference.dag, reference.tables
        self.order = [i for i in self.dag.order if i == 0 or 0 in self.dag.parents[i]]
        self.weights = {i: np.asarray(tables[i], np.float64) for i in self.order}
        self.children = [i for i in self.order if i != 0]
        self.heirs = {i: heir(self.dag, i) for i in self.children}
        self.axis = {i: self.dag.parents[i].index(0) for i in self.children}
        parents = [self.dag.names[p] for p in self.dag.parents[0]]
        self.above = reference.query(parents) if parents else np.ones(())
        wanted = self._marginals({i: self.reference[i] for i in self.order})
        if any(not (w > 0).all() for w in wanted.values()):
            raise ValueError("the reference network gives something no probability; use one with smoothing > 0")
        self.joint, self.wanted = wanted, {i: wanted[i].sum(axis=self.axis[i]) for i in self.children}
        self.cuts = np.cumsum([self.wanted[i].size for i in self.children])[:-1]

    def nothing(self) -> Floats:
        """No terms: plain renormalisation."""
        return np.zeros(sum(w.size for w in self.wanted.values()))

    def near_reference(self) -> Floats:
        """What on average over the classes is missing to the reference's log tables."""
        return self._flat({i: self._gap(i) for i in self.children})

    def _gap(self, i: int) -> Floats:
        gap = self.joint[i] * (self.reference[i] - self.weights[i])
        return np.asarray(gap.sum(axis=self.axis[i]) / self.wanted[i])

    def scale(self) -> Floats:
        """Roots of the variances of what the terms stand for: in these units the problem is rounder."""
        return self._flat({i: np.sqrt(w * (1.0 - w) + 1e-12) for i, w in self.wanted.items()})

    def objective(self, flat: Floats) -> tuple[float, Floats]:
        """Minus the expected log-likelihood of a row, up to a constant, and its slope by the terms."""
        terms = self._shaped(flat)
        normal, size = self._normalised(terms)
        value = float((self.above * size).sum()) - sum(float((self.wanted[i] * g).sum()) for i, g in terms.items())
        found = self._marginals(normal)
        return value, self._flat({i: found[i].sum(axis=self.axis[i]) - self.wanted[i] for i in self.children})

    def tables(self, flat: Floats) -> list[Floats]:
        """All tables of the network with these terms."""
        normal, _ = self._normalised(self._shaped(flat))
        return [normal.get(i, table) for i, table in enumerate(self.reference)]

    def _normalised(self, terms: dict[int, Floats]) -> tuple[dict[int, Floats], Floats]:
        """Tables with the terms, renormalised from the leaves up, and the log of what the class's rows summed to."""
        tables = {0: self.weights[0].copy()}
        tables |= {i: self.weights[i] + np.expand_dims(g, self.axis[i]) for i, g in terms.items()}
        for i in reversed(self.order):
            size = log_sum(tables[i], -1)
            tables[i] -= size[..., None]
            if i != 0:
                h = self.heirs[i]
                tables[h] += aligned(size, self.dag.parents[i], [*self.dag.parents[h], h])
        return tables, size

    def _marginals(self, tables: dict[int, Floats]) -> dict[int, Floats]:
        """Probability of each cell of each family, from the class downwards."""
        found = {0: self.above[..., None] * np.exp(tables[0])}
        for i in self.children:
            h = self.heirs[i]
            above = _parents_only(found[h], [*self.dag.parents[h], h], self.dag.parents[i])
            found[i] = above[..., None] * np.exp(tables[i])
        return found

    def _flat(self, terms: dict[int, Floats]) -> Floats:
        return np.concatenate([terms[i].ravel() for i in self.children]) if self.children else np.zeros(0)

    def _shaped(self, flat: Floats) -> dict[int, Floats]:
        parts = np.split(flat, self.cuts) if self.children else []
        return {i: part.reshape(self.wanted[i].shape) for i, part in zip(self.children, parts, strict=True)}


def _parents_only(joint: Floats, family: list[int], parents: tuple[int, ...]) -> Floats:
    """The marginal of these members of a family, axes in their order."""
    rest = tuple(k for k, v in enumerate(family) if v not in parents)
    kept = [v for v in family if v in parents]
    return np.transpose(joint.sum(axis=rest), [kept.index(p) for p in parents])
