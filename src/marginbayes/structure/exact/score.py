"""The structure of greatest decomposable score: exactly, with a certificate."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.scores.decomposable import FamilyScore
from marginbayes.solvers import Certificate, Moment
from marginbayes.structure.base import StructureLearner, StructureResult
from marginbayes.structure.constraints import Constraints
from marginbayes.structure.exact.branching import BranchingSearch, ClusterProof, best_forest
from marginbayes.structure.exact.clusters import LinearRelaxation, RelaxedFamilies, bound_of
from marginbayes.structure.exact.clustertree import ClusterTree, EdgeFix, Leaf, everything, tree_evidence
from marginbayes.structure.exact.families import Families, ParentSpace, complete_rows, score_families
from marginbayes.structure.exact.orders import OrderSearch
from marginbayes.structure.exact.subsets import MOST_VARIABLES, best_by_subsets

__all__ = ["ExactScore"]

Set = tuple[int, ...]

METHODS = ("auto", "subsets", "tree")
ROUNDING = 1e-12
# Beyond this equivalent sample size, what counts add to a score is lost in rounding.
LARGEST_PRIOR = 1e5
# From this share of rows on, those that are left out for a missing cell are worth a warning.
MANY = 0.1
# Most orders that are tried before the tree, which suggests better ones.
ROUNDS = 50


class ExactScore(StructureLearner):
    """The structure of best generative score among all that are allowed, with a certificate.

    By default a structure is what `ExactMargin` chooses from: a feature has no parent, or the class and at most `k`
    features; the class has at most `class_parents` features (Peharz & Pernkopf 2012, section 6). With `max_parents` any
    variable may have any parents, up to so many: a plain Bayesian network, in which the class is one variable of many.

    Scores are taken over the rows without a missing cell: sums over different rows cannot be compared. A parent set
    that scores no better than one of its subsets is never needed, and many are ruled out without counting (de Campos &
    Ji 2011).

    With at most one feature parent the optimum is a branching below each parent set of the class (Edmonds), in
    milliseconds. Else it is found by dynamic programming over all subsets of up to 20 variables, or, for more, by
    branch and bound with cluster inequalities (Jaakkola et al. 2010; Bartlett & Cussens 2013), which can take any time.

    Parameters
    ----------
    score : {"mdl", "bic", "aic", "bdeu", "ll"}, default="mdl"
        Description length in nats, which is minimised; or BIC (the same with the opposite sign), AIC, the log marginal
        likelihood with a uniform Dirichlet prior, the log likelihood.
    k : int, default=1
        Most feature parents of a feature.
    class_parents : int, default=0
        Most parents of the class. A parent of the class is no child of it.
    max_parents : int or None, default=None
        Most parents of any variable, where all sets of variables are allowed; `k` and `class_parents` then say nothing.
    ess : float, default=1.0
        Equivalent sample size of ``"bdeu"``.
    method : {"auto", "subsets", "tree"}, default="auto"
        How structures with larger parent sets are found: see above.
    constraints : Constraints or None, default=None
        Honoured exactly, edges to the class included. To keep a feature means an edge from the class to it.
    time_limit : float or None, default=None
        Seconds after which the best structure so far is returned with the bound so far. The scores of all families are
        computed in any case.
    gap : float, default=1e-6
        Stop when the bound is this near, relative to max(1, |score|).
    callback : callable or None, default=None
        Called with a `Moment` after each branching or node.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbayes.data import Rows, Schema, Variable
    >>> schema = Schema(tuple(Variable(name, (0, 1)) for name in ("y", "a", "b")))
    >>> codes = np.array([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]], np.uint8)
    >>> found = ExactScore("mdl").learn(schema, Rows(codes, (2, 2, 2)))
    >>> found.dag.edges, found.certificate.status
    ((('y', 'a'),), 'optimal')
    """

    def __init__(
        self,
        score: str = "mdl",
        k: int = 1,
        class_parents: int = 0,
        *,
        max_parents: int | None = None,
        ess: float = 1.0,
        method: str = "auto",
        constraints: Constraints | None = None,
        time_limit: float | None = None,
        gap: float = 1e-6,
        callback: Callable[[Moment], None] | None = None,
    ) -> None:
        self.score = score
        self.k = k
        self.class_parents = class_parents
        self.max_parents = max_parents
        self.ess = ess
        self.method = method
        self.constraints = constraints
        self.time_limit = time_limit
        self.gap = gap
        self.callback = callback

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """The best structure for these rows."""
        self._check()
        space = ParentSpace.of(schema.names, self.constraints, self.k, self.class_parents, self.max_parents)
        watch = _Watch(self.time_limit, -1.0 if self.score == "mdl" else 1.0, self.callback)
        whole = complete_rows(rows)
        _warn_of_holes(schema, rows)
        weights = np.ones(1) if whole.weights is None else whole.weights
        score = FamilyScore(self.score, whole.total, self.ess, bool((weights >= 1).all()))
        families = score_families(whole, space, score)
        found = self._solve(families, space, watch)
        evidence = {
            "score": self.score,
            "equivalent_sample_size": float(self.ess),
            "cardinalities": list(rows.cardinalities),
            "space": space.to_evidence(),
            "gap": self.gap,
            "parents": [list(own) for own in found.parents],
            **found.evidence,
        }
        certificate = watch.certificate(found, self.gap, evidence)
        dag = Dag(schema.names, found.parents)
        status = "interrupted" if watch.interrupted else "finished"
        return StructureResult(dag, certificate, certificate.objective, status=status)

    def _check(self) -> None:
        checks.number("ess", self.ess, lambda size: 0 < size <= LARGEST_PRIOR, f"above 0 and at most {LARGEST_PRIOR:g}")
        FamilyScore(self.score, 1.0, self.ess)
        checks.one_of("method", self.method, METHODS)
        checks.whole("k", self.k)
        checks.whole("class_parents", self.class_parents)
        checks.whole("max_parents", self.max_parents, none=True)
        checks.not_negative("time_limit", self.time_limit, infinite=True, none=True)
        checks.not_negative("gap", self.gap, infinite=True)

    def _solve(self, families: Families, space: ParentSpace, watch: _Watch) -> _Found:
        branching = space.max_parents is None and space.k <= 1
        if self.method == "auto" and branching:
            return _by_branchings(families, watch)
        if self.method == "auto" and all(len(s) <= 1 for own in families.sets for s in own):
            parents, proof = best_forest(families)
            return _proved(families, parents, [Leaf((), _bound(families, proof), proof)])
        if self.method == "subsets" and families.n > MOST_VARIABLES + 4:
            raise ValueError(
                f"method='subsets' takes at most {MOST_VARIABLES + 4} variables, not {families.n}; use method='tree'"
            )
        if self.method == "tree" or (self.method == "auto" and families.n > MOST_VARIABLES):
            return _by_tree(families, self.gap, watch)
        return _by_subsets(families, watch)


def _warn_of_holes(schema: Schema, rows: Rows) -> None:
    """Say so where many rows have a missing cell: the structure, and its proof, are about the others alone."""
    missing = rows.is_missing()
    some = missing.any(axis=0)
    if len(rows) and some.mean() >= MANY:
        shares = missing.mean(axis=1)
        worst = int(shares.argmax())
        warnings.warn(
            f"{int(some.sum())} of {len(rows)} rows have a missing cell, and exact scores leave them out; "
            f"{schema.names[worst]!r} is missing in {shares[worst]:.0%} of the rows: leave such columns out, or make "
            "missing cells a level of their own (missing='level', on the command line --missing level)",
            UserWarning,
            stacklevel=3,
        )


class _Found:
    """A structure, the bound, and the evidence for it; internal: greater is better."""

    def __init__(self, parents: tuple[Set, ...], value: float, bound: float, evidence: dict[str, Any]) -> None:
        self.parents, self.value, self.bound, self.evidence = parents, value, bound, evidence


class _Watch:
    """Time, progress and interruption of one run; `sign` turns internal values into those that are reported."""

    def __init__(self, limit: float | None, sign: float, callback: Callable[[Moment], None] | None) -> None:
        self.limit, self.sign, self.callback = limit, sign, callback
        self.started = time.perf_counter()
        self.trace: list[tuple[float, float, float]] = []
        self.interrupted = False

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    def stop(self) -> bool:
        """Whether the time is over."""
        return self.limit is not None and self.seconds >= self.limit

    def record(self, value: float, bound: float, note: str = "") -> Moment:
        """Put a moment on record."""
        moment = Moment(self.seconds, self.sign * value, self.sign * max(bound, value), note)
        if not self.trace or self.trace[-1][1:] != (moment.objective, moment.bound):
            self.trace.append((moment.seconds, moment.objective, moment.bound))
        return moment

    def tell(self, value: float, bound: float, note: str = "") -> None:
        """The same, and tell the caller, who may interrupt."""
        moment = self.record(value, bound, note)
        if self.callback is not None:
            self.callback(moment)

    def run(self, work: Callable[[], Any]) -> Any:
        """What the work returns; None after Ctrl-C."""
        try:
            return work()
        except KeyboardInterrupt:
            self.interrupted = True
            return None

    def certificate(self, found: _Found, gap: float, evidence: dict[str, Any]) -> Certificate:
        """The certificate of what was found."""
        self.record(found.value, found.bound)
        closed = found.bound - found.value <= gap * max(1.0, abs(found.value))
        status = "optimal" if closed else "interrupted" if self.interrupted else "time limit"
        # Sums in different orders differ in their last digits, which proves nothing.
        same = abs(found.bound - found.value) <= ROUNDING * max(1.0, abs(found.value))
        objective, bound = self.sign * found.value, self.sign * (found.value if same else max(found.bound, found.value))
        sense = "max" if self.sign > 0 else "min"
        return Certificate("exact-score", sense, objective, bound, status, self.seconds, self.trace, evidence)


def _by_branchings(families: Families, watch: _Watch) -> _Found:
    search = BranchingSearch(families)
    watch.run(lambda: search.run(watch.stop, lambda s: watch.tell(s.value, s.bound, f"{len(s.proofs)} branchings")))
    evidence = {"method": "branchings", "proofs": [_plain(proof) for proof in search.proofs]}
    return _Found(search.parents, search.value, search.bound, evidence)


def _by_subsets(families: Families, watch: _Watch) -> _Found:
    parents = watch.run(lambda: best_by_subsets(families, watch.stop))
    if parents is not None:
        value = families.total(parents)
        return _Found(parents, value, value, {"method": "subsets"})
    if not (watch.interrupted or watch.stop()):
        raise ValueError("no acyclic graph obeys the constraints")
    parents = _along_greedy_order(OrderSearch(families))
    return _proved(families, parents, [Leaf((), _bound(families, ClusterProof()), ClusterProof())])


def _by_tree(families: Families, gap: float, watch: _Watch) -> _Found:
    by_score = OrderSearch(families)

    seen: set[tuple[int, ...]] = set()

    def suggest(found: RelaxedFamilies) -> Sequence[tuple[Set, ...]]:
        order = tuple(OrderSearch(families, found.shares).greedy())
        if order in seen or by_score.parents(order) is None:
            return []
        seen.add(order)
        parents = by_score.parents(by_score.improved(order, watch.stop))
        return [] if parents is None else [parents]

    tree = ClusterTree(LinearRelaxation(families), _along_greedy_order(by_score), suggest, gap)

    def work() -> None:
        watch.tell(tree.value, tree.bound)
        for order in by_score.iterated(min(2 * families.n, ROUNDS), 0, watch.stop):
            tree.offer(by_score.parents(order))
            watch.tell(tree.value, tree.bound)
        tree.run(watch.stop, lambda t: watch.tell(t.value, t.bound, f"{t.nodes} nodes"))

    watch.run(work)
    return _proved(families, tree.parents, tree.leaves, tree.fixes)


def _along_greedy_order(search: OrderSearch) -> tuple[Set, ...]:
    parents = search.parents(search.greedy())
    if parents is None:
        raise ValueError("no acyclic graph obeys the constraints")
    return parents


def _bound(families: Families, proof: ClusterProof) -> float:
    """What a proof says about all structures."""
    return bound_of(*LinearRelaxation(families).raised(proof), everything(families))


def _proved(
    families: Families, parents: tuple[Set, ...], leaves: Sequence[Leaf], fixes: Sequence[EdgeFix] = ()
) -> _Found:
    """What is known of a structure from the parts of the space and their proofs."""
    value = families.total(parents)
    bound = max(leaf.bound for leaf in leaves)
    return _Found(parents, value, bound, {"method": "tree", **tree_evidence(leaves, fixes, _plain)})


def _plain(proof: ClusterProof) -> dict[str, Any]:
    return {"clusters": [list(c) for c in proof.clusters], "multipliers": list(proof.multipliers)}
