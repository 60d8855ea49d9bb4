"""The way of an exact solver: what it had found and what it had proved, over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes.plotting.axes import dress, new_axes, title_of
from marginbayes.solvers import Certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BoundDisplay"]

SCALES = ("linear", "log")


@dataclass(eq=False)
class BoundDisplay:
    """Objective and bound of one or several certified results against time.

    The line is the best solution so far, the dashed line what was proved by then; the shaded gap between them is where
    the optimum lies. Make one with `from_result`, `from_certificate`, `from_certificates` or `from_estimator`; `plot`
    draws it.

    Parameters
    ----------
    certificates : mapping from label to Certificate
        What to draw; the labels are for the legend.
    scale : {"linear", "log"}
        Of the seconds.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of these axes.
    lines_ : dict from label to matplotlib line
        The best solution so far.
    bounds_ : dict from label to matplotlib line
        What was proved by then.

    Examples
    --------
    >>> from marginbayes.solvers import Certificate
    >>> way = [(0.1, 3.0, 9.0), (0.5, 4.0, 5.0), (2.0, 4.0, 4.0)]
    >>> found = Certificate("example", "max", 4.0, 4.0, "optimal", 2.0, way)
    >>> BoundDisplay({"example": found}).gaps("example")
    array([2.  , 0.25, 0.  ])
    """

    certificates: Mapping[str, Certificate]
    scale: str = "linear"

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale={self.scale!r} is not known; choose one of {', '.join(map(repr, SCALES))}")
        for label, certificate in self.certificates.items():
            if not certificate.trace:
                raise ValueError(f"the certificate of {label!r} has no trace: its solver did not say what came when")
        if len({certificate.sense for certificate in self.certificates.values()}) > 1:
            raise ValueError("some of these are maximised and others minimised; draw them apart")

    @classmethod
    def from_certificate(
        cls, certificate: Certificate, *, label: str = "objective", scale: str = "linear", ax: Axes | None = None
    ) -> BoundDisplay:
        """The display, drawn, of one certificate."""
        return cls({label: certificate}, scale).plot(ax)

    @classmethod
    def from_certificates(
        cls, certificates: Mapping[str, Certificate], *, scale: str = "linear", ax: Axes | None = None
    ) -> BoundDisplay:
        """The display, drawn, of several certificates about the same objective, by label."""
        return cls(certificates, scale).plot(ax)

    @classmethod
    def from_result(
        cls, result: Any, *, label: str = "objective", scale: str = "linear", ax: Axes | None = None
    ) -> BoundDisplay:
        """The display, drawn, of what a structure or parameter learner returned."""
        if getattr(result, "certificate", None) is None:
            raise ValueError(f"this {type(result).__name__} has no certificate: its learner proves nothing")
        return cls({label: result.certificate}, scale).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, scale: str = "linear", ax: Axes | None = None) -> BoundDisplay:
        """The display, drawn, of how a fitted classifier's structure, or else its parameters, was found."""
        if not hasattr(estimator, "structure_result_"):
            raise TypeError(f"{type(estimator).__name__} has no structure_result_; give a fitted BayesNetClassifier")
        structure = estimator.structure_result_.certificate is not None
        result = estimator.structure_result_ if structure else estimator.parameter_result_
        label = title_of(estimator.structure if structure else estimator.parameters)
        return cls.from_result(result, label=label, scale=scale, ax=ax)

    def points(self, label: str) -> Any:
        """Seconds, objectives and bounds, one line each; the best of each so far, where the solver also went back."""
        certificate = self.certificates[label]
        seconds, objectives, bounds = np.array(certificate.trace, float).T
        up, down = np.maximum.accumulate, np.minimum.accumulate
        if certificate.sense == "min":
            up, down = down, up
        return np.array([seconds, up(objectives), down(bounds)])

    def gaps(self, label: str) -> Any:
        """Gap at each point: the distance of objective and bound over max(1, |objective|)."""
        _, objectives, bounds = self.points(label)
        return np.abs(bounds - objectives) / np.maximum(1.0, np.abs(objectives))

    def plot(self, ax: Axes | None = None) -> BoundDisplay:
        """This display, after drawing it into these axes or into a new figure."""
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        ax = new_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: dict[str, Any] = {}
        self.bounds_: dict[str, Any] = {}
        for i, label in enumerate(self.certificates):
            self._draw(ax, label, f"C{i % 10}")
        ax.set_xscale(self.scale)
        if self.scale == "log":
            ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
            ax.xaxis.set_minor_formatter(NullFormatter())
        dress(ax, "seconds", "objective and bound", legend="best")
        return self

    def _draw(self, ax: Axes, label: str, colour: str) -> None:
        seconds, objectives, bounds = self.points(label)
        last = self.certificates[label]
        told = f"{label}: {last.objective:.6g}, {last.status}"
        (self.lines_[label],) = ax.plot(
            seconds, objectives, color=colour, linewidth=1.8, drawstyle="steps-post", label=told
        )
        bounded = np.isfinite(bounds)
        proved = f"bound: {last.bound:.6g}, gap {last.gap:.2g}"
        (self.bounds_[label],) = ax.plot(
            seconds[bounded],
            bounds[bounded],
            color=colour,
            linewidth=1.2,
            linestyle="--",
            drawstyle="steps-post",
            label=proved,
        )
        both = bounded & np.isfinite(objectives)
        ax.fill_between(seconds[both], objectives[both], bounds[both], step="post", color=colour, alpha=0.12)
        ax.plot(seconds[-1], objectives[-1], "o", color=colour, markersize=5)
