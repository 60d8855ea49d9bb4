"""Margin learners with one optimum: likelihood + margin, and the maximum-margin Markov network."""

from __future__ import annotations

from marginbayes import checks
from marginbayes.sequence.examples import Examples
from marginbayes.sequence.learners.base import Callback, WeightLearner, WeightResult, smoothed_counts
from marginbayes.sequence.learners.cuts import solve_by_cuts
from marginbayes.sequence.learners.multipliers import solve
from marginbayes.sequence.learners.regularizers import Ball, LikelihoodTables

__all__ = ["StructuredHybrid", "StructuredMarkov"]

SOLVERS = {"multipliers": solve, "cuts": solve_by_cuts}


class StructuredHybrid(WeightLearner):
    """Likelihood + margin over label vectors: proper tables of counts that the margins re-weight.

    Minimises ``- a . w + B * sum of structured hinge losses`` over log tables w whose rows sum to at most one, where a
    are the smoothed counts, and an example's hinge loss is how far its true labels fall short of leading every other
    labelling by ``target`` times the number of labels in which it is wrong (equations 19 and 20 of Guo, Wilkinson &
    Schuurmans 2005). At the optimum w = log(v / V) where v = a + B * (counts of the truth - counts expected under the
    labellings that compete with it): the tables of a Bayesian network.

    Parameters
    ----------
    B : float, default=1.0
        How many virtual copies of an example the margin may add at most.
    target : float, default=1.0
        Wanted lead of the truth for each wrong label, in nats.
    smoothing : float, default=1.0
        Added to every count (Laplace).
    method : {"multipliers", "cuts"}, default="multipliers"
        All labellings at once, smoothed; or constraint generation: the labellings that violate their margin most are
        added round by round. Both end at the same optimum, with certificates of different kinds.
    tol : float, default=1e-5
        Relative gap between objective and bound at which to stop.
    max_iter : int, default=2000
        Most steps of the solver, in all rounds.
    callback : callable, default=None
        Called with a `Moment` while the solver runs.
    """

    def __init__(
        self,
        B: float = 1.0,
        target: float = 1.0,
        *,
        smoothing: float = 1.0,
        method: str = "multipliers",
        tol: float = 1e-5,
        max_iter: int = 2000,
        callback: Callback | None = None,
    ) -> None:
        self.B = B
        self.target = target
        self.smoothing = smoothing
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback

    def learn(self, examples: Examples) -> WeightResult:
        """Log tables, proper unless a row's weight vanishes; Ctrl-C keeps the best so far."""
        for name in ("B", "target", "smoothing"):
            checks.positive(name, getattr(self, name))
        _check_solver(self.method, self.tol, self.max_iter)
        counts = smoothed_counts(examples, self.smoothing)
        regularizer = LikelihoodTables(counts, examples.rows)
        evidence = {"smoothing": float(self.smoothing)}
        return SOLVERS[self.method](
            examples,
            regularizer,
            float(self.B),
            float(self.target),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
            evidence=evidence,
        )


class StructuredMarkov(WeightLearner):
    """Maximum-margin Markov network (Taskar, Guestrin & Koller 2003): a structured support vector machine.

    Minimises ``|w|^2 / 2 + C * sum of structured hinge losses``, equation (11) of Guo, Wilkinson & Schuurmans (2005)
    with the margins of (19). The weights are those of an undirected model; renormalisation makes tables of them.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge losses.
    method : {"multipliers", "cuts"}, default="multipliers"
        All labellings at once, smoothed; or constraint generation: the labellings that violate their margin most are
        added round by round. Both end at the same optimum, with certificates of different kinds.
    tol : float, default=1e-5
        Relative gap between objective and bound at which to stop.
    max_iter : int, default=2000
        Most steps of the solver, in all rounds.
    callback : callable, default=None
        Called with a `Moment` while the solver runs.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        method: str = "multipliers",
        tol: float = 1e-5,
        max_iter: int = 2000,
        callback: Callback | None = None,
    ) -> None:
        self.C = C
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback

    def learn(self, examples: Examples) -> WeightResult:
        """Weights, not normalised; Ctrl-C keeps the best so far."""
        checks.positive("C", self.C)
        _check_solver(self.method, self.tol, self.max_iter)
        strength = float(self.C)
        regularizer = Ball(examples.true_features, strength)
        return SOLVERS[self.method](
            examples, regularizer, strength, 1.0, tol=self.tol, max_iter=self.max_iter, callback=self.callback
        )


def _check_solver(method: str, tol: float, max_iter: int) -> None:
    checks.one_of("method", method, SOLVERS)
    checks.not_negative("tol", tol, infinite=True)
    checks.whole("max_iter", max_iter)
