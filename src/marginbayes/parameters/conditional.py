"""Conditional likelihood: tables that make the classes of the training rows as probable as possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from marginbayes.parameters.discriminative import DiscriminativeLearner
from marginbayes.parameters.rowloss import CONDITIONAL, RowLoss
from marginbayes.solvers import Moment

__all__ = ["ConditionalLikelihood"]


class ConditionalLikelihood(DiscriminativeLearner):
    """Tables of greatest conditional likelihood, shrunk towards maximum likelihood.

    Parameters
    ----------
    l2 : float, default=10.0
        Strength of the shrinkage: half of it times the squared distance from the (scaled) maximum-likelihood log
        tables is added to minus the conditional log-likelihood of all rows. 0 leaves it out.
    pool : bool, default=True
        Whether the distance is measured so that what the cells of a table have in common costs less: the deviation of a
        cell is u(parents, child) + v(child) + v(one parent, child) and so on, with more such terms for intervals of
        neighbouring levels of discretised numbers, and the shrinkage is on all of them. False leaves u alone, and
        wants a smaller `l2`.
    form : {"auto", "concave", "softmax"}, default="auto"
        ``"concave"``: the log tables are free, ``s w_ML + U`` with the shrinkage on U and on what s
        exceeds 1; a concave problem with one optimum. The result is then renormalised, which needs that the parents of
        every feature are joined.
        ``"softmax"``: the tables are normalised throughout (section 4.2 of Pernkopf & Bilmes 2010); for every
        structure. ``"auto"`` takes the first where it can.
    solver : {"lbfgs", "cg"}, default="lbfgs"
        Limited-memory BFGS, or the Polak-Ribiere conjugate gradients of the paper.
    smoothing : float, default=1.0
        Of the maximum-likelihood tables, as in `MaximumLikelihood`.
    kind : {"laplace", "ess", "floor"}, default="laplace"
        Of that smoothing.
    max_iter : int, default=500
        Most steps of the solver.
    tol : float, default=1e-6
        The solver stops when no component of the gradient exceeds it, relative to the weight of the rows; for L-BFGS
        in variables scaled by their curvature.
    early_stopping : {None, "cv", "cv-accuracy"}, default=None
        Cross tuning (Greiner et al. 2005): in each of five folds note after how many steps the held-out rows lose
        least (have most right), and take the average number of steps on all rows. A fold ends when its best step is
        50 steps past, and as many as it took.
    normalize : {"likeliest", "plain"}, default="likeliest"
        How free log tables become a network: of all networks with the same answers for complete rows the likeliest, or
        the one that scaling from the leaves up gives. They differ where features are missing.
    tune : bool or dict, default=False
        Choose parameters by held-out accuracy: True takes the grid of l2 in ``ConditionalLikelihood.GRID``, a dict maps
        names of parameters to the values to try. See `Tuned` for more choices.
    n_jobs : int or None, default=None
        Threads over rows.
    random_state : int or None, default=None
        Seed of the folds of `early_stopping` and `tune`.
    callback : callable, default=None
        Given a `marginbayes.solvers.Moment` after each step.

    Notes
    -----
    A family with a missing member adds nothing to a row's score while learning. One evaluation costs two passes over
    the cells in which rows differ from the usual row, for every class; memory is two integers for each row and family.
    """

    GRID: ClassVar[Mapping[str, Sequence[Any]]] = {"l2": (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)}

    def __init__(
        self,
        l2: float = 10.0,
        *,
        pool: bool = True,
        form: str = "auto",
        solver: str = "lbfgs",
        smoothing: float = 1.0,
        kind: str = "laplace",
        max_iter: int = 500,
        tol: float = 1e-6,
        early_stopping: str | None = None,
        normalize: str = "likeliest",
        tune: bool | Mapping[str, Sequence[Any]] = False,
        n_jobs: int | None = None,
        random_state: int | None = None,
        callback: Callable[[Moment], None] | None = None,
    ) -> None:
        self.l2 = l2
        self.pool = pool
        self.form = form
        self.solver = solver
        self.smoothing = smoothing
        self.kind = kind
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.normalize = normalize
        self.tune = tune
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def row_loss(self) -> RowLoss:
        """-log P(class | row)."""
        return CONDITIONAL
