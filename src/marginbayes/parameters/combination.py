"""Convex combination of networks learned on parts of the data (Tschiatschek & Pernkopf 2012)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pickle import PicklingError
from typing import Any, ClassVar, Self

import joblib
import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.certified import as_network, check_married, check_normalize
from marginbayes.parameters.design import Design
from marginbayes.parameters.hybrid import MarginHybrid
from marginbayes.parameters.likelihood import MaximumLikelihood
from marginbayes.parameters.mixture import MarginMixture
from marginbayes.parameters.tuning import learn_tuned
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.interrupt import noticed_interrupt
from marginbayes.solvers.level import minimise_on_simplex

__all__ = ["CombinationResult", "ConvexCombination", "stratified_cover"]

Callback = Callable[[Moment], object]
# Parts, unless there are fewer rows.
PARTS = 20


@dataclass(frozen=True)
class CombinationResult(ParameterResult):
    """Also the networks that were combined, one for each part, and what they were learned by."""

    members: tuple[Network, ...] = ()
    recipe: str | None = field(default=None, repr=False)


class ConvexCombination(ParameterLearner):
    """Network whose log tables are the best convex combination of those of networks learned on parts of the rows.

    The rows are dealt into parts with the same shares of the classes, and a learner works on each part. The weights of
    the combination then minimise the soft margin problem of all rows, ``1 / (2 gamma^2) + B * sum of
    max(0, gamma - margin)`` with the best gamma, plus `D` times the distance of the weights from equal ones: problem
    (17)-(21) of Tschiatschek & Pernkopf (2012), with a certificate. The result is made a normalised network that
    decides alike for complete rows.

    Parameters
    ----------
    n_parts : int or None, default=None
        Number of parts (M); None is 20, or as many as there are rows if those are fewer.
    D : float, default=1e3
        Pull towards equal weights. From ``certificate.evidence["equal_from"]`` on, all weights are exactly equal.
    base : ParameterLearner or None, default=None
        What learns on each part; None is ``MarginHybrid()`` with this smoothing.
    B : float, default=1.0
        Cost of missing margin.
    tol : float, default=1e-6
        Relative gap of the certificate at which the weights are good enough.
    max_iter : int, default=1000
        Most steps of the search for weights.
    normalize : {"likeliest", "plain"}, default="likeliest"
        Of all networks with the same answers for complete rows the likeliest, or the one that scaling from the leaves
        up gives. They differ where features are missing.
    subnormal : bool, default=False
        Where two parents of a feature are not joined (Proposition 2 of Guo et al. 2005 fails), return tables whose rows
        sum to less than one, instead of refusing.
    smoothing : float, default=1.0
        Of the parts, where `base` is None, for which it must be positive; and of the maximum-likelihood tables
        (Laplace) that say which network is likeliest, and that families without the class have.
    tune : bool or dict, default=False
        Choose parameters by held-out accuracy: True takes the grid ``ConvexCombination.GRID`` of D, a dict maps names
        of parameters (``base__B``, say) to the values to try. For another D, B or way to normalise the parts are not
        learned again.
    n_jobs : int or None, default=None
        Parts at a time, as joblib counts them (threads, unless ``joblib.parallel_config`` says otherwise).
    random_state : int or None, default=None
        Seed of the deal.
    callback : callable or None, default=None
        Given a `Moment` after each part and each step.

    Notes
    -----
    A row of a class that has fewer rows than there are parts is in every part, with 1 / `n_parts` of its weight, so
    that every part knows every class. A row of weight two is dealt as one row, not as two. The same rows in another
    order are dealt into the same parts. A family with a missing member adds nothing to a row's margin. Ctrl-C keeps the
    parts that are done and combines them.

    Memory: one number for each distinct row, rival class and part.
    """

    GRID: ClassVar[Mapping[str, Sequence[Any]]] = {"D": (1e6, 1e3, 1e1, 0.0)}

    def __init__(
        self,
        n_parts: int | None = None,
        D: float = 1e3,
        base: ParameterLearner | None = None,
        *,
        B: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 1000,
        normalize: str = "likeliest",
        subnormal: bool = False,
        smoothing: float = 1.0,
        tune: bool | Mapping[str, Sequence[Any]] = False,
        n_jobs: int | None = None,
        random_state: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_parts = n_parts
        self.D = D
        self.base = base
        self.B = B
        self.tol = tol
        self.max_iter = max_iter
        self.normalize = normalize
        self.subnormal = subnormal
        self.smoothing = smoothing
        self.tune = tune
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def learn(self, schema: Schema, dag: Dag, rows: Rows, previous: ParameterResult | None = None) -> ParameterResult:
        """Network with this graph for these rows; Ctrl-C keeps the parts that are done.

        Parameters
        ----------
        previous : CombinationResult, default=None
            Of the same graph and rows: if its parts were learned alike, they are not learned again.
        """
        if self.tune:
            return learn_tuned(self, schema, dag, rows)
        start = time.perf_counter()
        n_parts = self._check(rows)
        check_normalize(self.normalize, self.smoothing)
        check_married("ConvexCombination", dag, self.subnormal)
        recipe = self._recipe(n_parts)
        if isinstance(previous, CombinationResult) and recipe is not None and previous.recipe == recipe:
            members, whole = list(previous.members), len(previous.members) == n_parts
        else:
            cover = stratified_cover(rows, n_parts, self.random_state)
            members, whole = self._members(schema, dag, cover, start)
        mixture = MarginMixture.of(Design.of(dag, rows), [m.tables for m in members], self.B)
        before = time.perf_counter() - start
        found = minimise_on_simplex(
            mixture.loss, len(members), pull=self.D, tol=self.tol, max_iter=self.max_iter, callback=self._later(before)
        )
        bound, evidence = mixture.proof(found, self.D)
        evidence["gap"] = self.tol
        status = found.status if whole else "interrupted"
        trace = [(before + seconds, value, low) for seconds, value, low in found.trace]
        reference = MaximumLikelihood(self.smoothing).learn(schema, dag, rows).network
        network, ended = as_network(schema, mixture.design, mixture.weights @ found.point, reference, self.normalize)
        seconds = time.perf_counter() - start
        certificate = Certificate("margin-combination", "min", found.value, bound, status, seconds, trace, evidence)
        path = tuple(value for _, value, _ in trace)
        return CombinationResult(network, certificate, path, ended, members=tuple(members), recipe=recipe)

    def _check(self, rows: Rows) -> int:
        """The number of parts."""
        known = int((rows.codes[0] < rows.cardinalities[0]).sum())
        n_parts = min(PARTS, known) if self.n_parts is None else self.n_parts
        checks.whole("n_parts", n_parts, 1, known, note=", the number of rows")
        checks.not_negative("D", self.D)
        checks.positive("B", self.B, note=": without slack there is no best margin")
        checks.not_negative("tol", self.tol, infinite=True)
        checks.whole("max_iter", self.max_iter)
        checks.jobs("n_jobs", self.n_jobs)
        checks.whole("random_state", self.random_state, none=True)
        return int(n_parts)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep` those of the base, too, the usual one where there is none."""
        own: dict[str, Any] = super().get_params(deep)
        usual = self._base().get_params() if deep and self.base is None else {}
        return own | {f"base__{name}": value for name, value in usual.items()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of the base (``base__B``) make it the usual one where there is none.

        What that one has in any case changes nothing, so that parameters of `get_params` can be given back.
        """
        nested = {name.removeprefix("base__"): value for name, value in params.items() if name.startswith("base__")}
        # First what the base is made of.
        super().set_params(**{name: value for name, value in params.items() if not name.startswith("base__")})
        if self.base is None:
            usual = self._base().get_params()
            nested = {name: value for name, value in nested.items() if name not in usual or usual[name] != value}
        if nested:
            self.base = self._base().set_params(**nested)
        return self

    def _base(self) -> ParameterLearner:
        if self.base is not None:
            return self.base
        return MarginHybrid(smoothing=self.smoothing)

    def _recipe(self, n_parts: int) -> str | None:
        """A digest of all that the members depend on besides graph and rows; None for a base that has none."""
        try:
            return str(joblib.hash((n_parts, self.random_state, self._base())))
        except (PicklingError, AttributeError, TypeError):  # a callback that is a function in a function, say
            return None

    def _members(self, schema: Schema, dag: Dag, parts: list[Rows], start: float) -> tuple[list[Network], bool]:
        """Networks of the parts that were finished, in the order of the parts, and whether these are all."""
        base, done = self._base(), dict[int, Network]()
        work = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator_unordered")
        results = work(delayed(_learn)(i, base, schema, dag, part) for i, part in enumerate(parts))
        with suppress(KeyboardInterrupt), noticed_interrupt() as pressed:
            for i, network in results:
                done[i] = network
                if self.callback is not None:
                    note = f"{len(done)} of {len(parts)} parts"
                    self.callback(Moment(time.perf_counter() - start, np.inf, -np.inf, note))
                if pressed.is_set():
                    break
        with warnings.catch_warnings():  # that parts were given up is what was wanted
            warnings.simplefilter("ignore", UserWarning)
            results.close()
        if not done:
            raise KeyboardInterrupt
        return [done[i] for i in sorted(done)], len(done) == len(parts) and not pressed.is_set()

    def _later(self, before: float) -> Callback | None:
        """The callback, with the seconds since the start of learning."""
        if self.callback is None:
            return None
        show = self.callback
        return lambda m: show(Moment(before + m.seconds, m.objective, m.bound, m.note))


def _learn(i: int, base: ParameterLearner, schema: Schema, dag: Dag, rows: Rows) -> tuple[int, Network]:
    return i, clone(base).learn(schema, dag, rows).network


def stratified_cover(rows: Rows, n_parts: int, random_state: int | None = None) -> list[Rows]:
    """Parts of the rows whose class is known, of the same size and with the same shares of the classes, or nearly so.

    The rows are shuffled, sorted by class, and dealt like cards. A row of a class that has fewer rows than there are
    parts is in every part, with its share of the weight. Rows of weight zero are in none.
    """
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    known = np.flatnonzero((rows.codes[0] < rows.cardinalities[0]) & (weights > 0))
    # Shuffled from an order of their own, so that the order in which they came does not matter.
    same = rows.take(known).merged()[1]
    ordered = known[np.lexsort((weights[known], same))]
    shuffled = np.random.default_rng(random_state).permutation(ordered)
    labels = rows.codes[0][shuffled]
    rare = (np.bincount(labels, minlength=rows.cardinalities[0]) < n_parts)[labels]
    dealt = shuffled[~rare][np.argsort(labels[~rare], kind="stable")]
    shared = rows.take(shuffled[rare]).reweighted(weights[shuffled[rare]] / n_parts)
    return [_joined(rows.take(dealt[i::n_parts]), shared) for i in range(n_parts)]


def _joined(one: Rows, two: Rows) -> Rows:
    if not len(two):
        return one
    weights = np.ones(len(one)) if one.weights is None else one.weights
    together = np.concatenate([weights, two.weights if two.weights is not None else np.ones(len(two))])
    return Rows(np.hstack([one.codes, two.codes]), one.cardinalities, together, one.n_jobs)
