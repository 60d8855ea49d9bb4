"""Maximum margin by gradients: CG-MMBN of Pernkopf, Wohlmayr & Tschiatschek (2012)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from marginbayes import checks
from marginbayes.graph import Dag
from marginbayes.parameters.discriminative import DiscriminativeLearner
from marginbayes.parameters.rowloss import MarginLoss, RowLoss
from marginbayes.solvers import Moment

__all__ = ["MarginGradient"]


class MarginGradient(DiscriminativeLearner):
    """Tables whose rows have a large log-margin, normalised throughout or afterwards.

    The log-margin of a row is the log joint of its class less a smooth maximum of those of the other classes,
    ``log(sum exp(sharpness * log P(c, x))) / sharpness``. A row whose margin reaches the target costs nothing; one
    whose margin is not positive costs in proportion, and a parabola joins the two.

    Parameters
    ----------
    target : float, default=5.0
        The margin that is enough, in nats; one over the paper's lambda.
    sharpness : float, default=1.0
        The paper's eta: the larger, the more only the best rival counts.
    l2 : float, default=0.3
        Strength of the shrinkage: half of it times the squared distance from the maximum-likelihood log tables is added
        to the loss of all rows. 0 leaves it out, as the paper does.
    form : {"softmax", "concave", "auto"}, default="softmax"
        ``"softmax"``: the tables are normalised throughout, as in the paper; for every structure. ``"concave"``: the
        log tables are ``s w_ML + U`` with the shrinkage on U and on what s exceeds 1, a convex problem with one
        optimum, and the result is renormalised, which needs that the parents of every feature are joined. ``"auto"``
        takes the second where it can.
    solver : {"lbfgs", "cg"}, default="lbfgs"
        Limited-memory BFGS, or the conjugate gradients of the paper.
    pool : bool, default=False
        See `ConditionalLikelihood`.
    smoothing : float, default=1.0
        As in `ConditionalLikelihood`.
    kind : {"laplace", "ess", "floor"}, default="laplace"
        As in `ConditionalLikelihood`.
    max_iter : int, default=500
        As in `ConditionalLikelihood`.
    tol : float, default=1e-6
        As in `ConditionalLikelihood`.
    early_stopping : {None, "cv", "cv-accuracy"}, default=None
        As in `ConditionalLikelihood`.
    normalize : {"likeliest", "plain"}, default="likeliest"
        As in `ConditionalLikelihood`.
    tune : bool or dict, default=False
        As in `ConditionalLikelihood`; True takes the grid ``MarginGradient.GRID`` of target and l2.
    n_jobs : int or None, default=None
        As in `ConditionalLikelihood`.
    random_state : int or None, default=None
        As in `ConditionalLikelihood`.
    callback : callable, default=None
        As in `ConditionalLikelihood`.
    """

    GRID: ClassVar[Mapping[str, Sequence[Any]]] = {"target": (1.0, 5.0, 20.0), "l2": (10.0, 1.0, 0.1, 0.01)}

    def __init__(
        self,
        target: float = 5.0,
        sharpness: float = 1.0,
        *,
        l2: float = 0.3,
        pool: bool = False,
        form: str = "softmax",
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
        self.target = target
        self.sharpness = sharpness
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
        """Smoothed hinge of the log-margin."""
        return MarginLoss(float(self.target), float(self.sharpness))

    def _check(self, dag: Dag) -> None:
        super()._check(dag)
        checks.positive("target", self.target)
        checks.positive("sharpness", self.sharpness)
