"""Reliability: how often what is said to happen with probability p does happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.evaluation.intervals import wilson_interval
from marginbayes.plotting.axes import fitted, inches, joined, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReliabilityDisplay"]

Floats = NDArray[np.float64]

COLOR = "#2f6fdb"  # blue on white, apart from grey also for the colour-blind
STRATEGIES = ("uniform", "quantile")
WIDTH, BESIDE = 5.4, 0.75  # inches of a new figure, and of what stands to the left of its axes


@dataclass(eq=False)
class ReliabilityDisplay:
    """Calibration curve with Wilson intervals, above a histogram of the predicted probabilities.

    Make one with `from_predictions` or `from_estimator`.

    Parameters
    ----------
    prob_pred : array of shape (n_bins,)
        Mean predicted probability in each bin that holds predictions.
    prob_true : array of shape (n_bins,)
        Share of those for which the event did happen.
    low : array of shape (n_bins,)
        Lower end of the interval of that share.
    high : array of shape (n_bins,)
        Its upper end.
    counts : array of shape (n_bins,)
        Predictions in each bin.
    y_prob : array of shape (n_samples,)
        The predicted probabilities, for the histogram.
    brier : float
        Mean squared distance between prediction and outcome.
    name : str or None
        Name of what was predicted by, for the legend.
    event : str
        What the probabilities are probabilities of, for the labels of the axes.
    confidence : float
        Of the intervals.
    repeats : float
        How many predictions there are of each row: intervals and histogram count rows, as repeating tells no more of
        them.
    score : str
        What the legend calls `brier`.
    """

    prob_pred: Floats
    prob_true: Floats
    low: Floats
    high: Floats
    counts: NDArray[np.intp]
    y_prob: Floats
    brier: float
    name: str | None = None
    event: str = "the event"
    confidence: float = 0.95
    repeats: float = 1.0
    score: str = "Brier score"

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        event: str | None = None,
        confidence: float = 0.95,
        ax: Axes | None = None,
    ) -> ReliabilityDisplay:
        """The display, drawn, of probabilities for one class.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels; where they are more than two, `pos_label` is one class against the rest.
        y_prob : array-like of shape (n_samples,)
            Predicted probability of `pos_label`.
        n_bins : int
            Number of bins.
        strategy : {"uniform", "quantile"}
            Bins of the same width, or of the same number of predictions.
        pos_label : label
            By default the larger of two labels, and 1 where there are only 0 or only 1. With more than two it must be
            said.
        name : str or None
            Name of what was predicted by, for the legend.
        event : str or None
            What the probabilities are probabilities of, for the labels of the axes.
        confidence : float
            Of the intervals.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        """
        display = cls.compute(
            y_true,
            y_prob,
            n_bins=n_bins,
            strategy=strategy,
            pos_label=pos_label,
            name=name,
            event=event,
            confidence=confidence,
        )
        return display.plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        event: str | None = None,
        confidence: float = 0.95,
        ax: Axes | None = None,
    ) -> ReliabilityDisplay:
        """The display, drawn, of what a fitted classifier says about one class; see `from_predictions`.

        With two classes it is the second by default; with more, `pos_label` says which one against the rest.
        """
        classes = estimator.classes_.tolist()
        if pos_label is None and len(classes) != 2:
            raise ValueError(
                f"the classifier has {len(classes)} classes; say with pos_label which one, {_some(classes)}"
            )
        positive = classes[1] if pos_label is None else pos_label
        if positive not in classes:
            raise ValueError(f"pos_label={positive!r} is not a class; the classes are {_some(classes)}")
        labels = np.asarray(y)
        if not np.isin(labels, classes).any():
            raise ValueError(
                f"no label of y, such as {_plain(labels[0])}, is a class; the classes are {_some(classes)}"
            )
        return cls.from_predictions(
            labels == positive,
            estimator.predict_proba(X)[:, classes.index(positive)],
            n_bins=n_bins,
            strategy=strategy,
            pos_label=True,
            name=type(estimator).__name__ if name is None else name,
            event=f"class {_plain(positive)}" if event is None else event,
            confidence=confidence,
            ax=ax,
        )

    @classmethod
    def compute(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        event: str | None = None,
        confidence: float = 0.95,
        repeats: float = 1.0,
        score: str = "Brier score",
    ) -> ReliabilityDisplay:
        """The display without drawing it, which needs no matplotlib; see `from_predictions` and the class."""
        labels, chances = np.asarray(y_true), _check_probabilities(y_prob)
        positive = _positive(labels, pos_label)
        if len(labels) != len(chances):
            raise ValueError(f"{len(labels)} labels but {len(chances)} probabilities")
        outcome = labels == positive
        bins = np.searchsorted(_edges(chances, n_bins, strategy)[1:-1], chances, side="left")
        counts = np.bincount(bins, minlength=n_bins)
        used = counts > 0
        happened = np.bincount(bins, outcome, n_bins)[used]
        low, high = wilson_interval(happened / repeats, counts[used] / repeats, confidence)
        return cls(
            prob_pred=np.bincount(bins, chances, n_bins)[used] / counts[used],
            prob_true=happened / counts[used],
            low=low,
            high=high,
            counts=counts[used],
            y_prob=chances,
            brier=float(np.mean((chances - outcome) ** 2)),
            name=name,
            event=f"class {_plain(positive)}" if event is None else event,
            confidence=confidence,
            repeats=repeats,
            score=score,
        )

    @property
    def calibration_error(self) -> float:
        """Mean distance between predicted and observed, each bin weighing as much as it holds predictions."""
        return float(np.average(np.abs(self.prob_pred - self.prob_true), weights=self.counts))

    def plot(self, ax: Axes | None = None, *, color: str = COLOR, histogram: bool = True) -> ReliabilityDisplay:
        """This display, after drawing it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw the curve alone; by default a new figure.
        color : str
            Of the curve and the histogram.
        histogram : bool
            Whether a new figure shows below how many predictions there are of each probability.
        """
        import matplotlib.pyplot as plt

        below = None
        room = WIDTH - BESIDE if ax is None else width_of(ax)
        if ax is None:
            figure = plt.figure(figsize=(WIDTH, 6.4 if histogram else 5.2), layout="constrained")
            grid = figure.add_gridspec(2 if histogram else 1, 1, height_ratios=[4.2, 1][: 1 + histogram])
            ax = figure.add_subplot(grid[0])
            below = figure.add_subplot(grid[1], sharex=ax) if histogram else None
        self.ax_, self.histogram_ax_, self.figure_ = ax, below, ax.figure
        self._draw_curve(ax, color, room)
        if below is not None:
            self._draw_histogram(ax, below, color)
        return self

    def _draw_curve(self, ax: Axes, color: str, room: float) -> None:
        ax.plot([0, 1], [0, 1], color="#8a8f98", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        self.errorbar_ = ax.errorbar(
            self.prob_pred,
            self.prob_true,
            yerr=np.stack([self.prob_true - self.low, self.high - self.prob_true]),
            color=color,
            linewidth=1.6,
            elinewidth=1.0,
            capsize=2.5,
            marker="o",
            markersize=5,
            label=self._legend(room - 0.45).replace("$", r"\$"),  # no formula
            zorder=2,
            clip_on=False,
        )
        ax.set(xlim=(0, 1), ylim=(0, 1))
        (event,) = fitted([self.event], room, "medium")
        ax.set_xlabel(joined(["predicted probability of", event], room, "medium"), parse_math=False)
        ax.set_ylabel(f"observed share, with {self.confidence:.0%} interval")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize="small", handlelength=1.6)
        _clean(ax)

    def _legend(self, room: float) -> str:
        """Name and scores, in two lines where they are longer than this many inches."""
        (name,) = fitted([self.name or ""], room - inches(":", "small"), "small")
        scores = f"{self.score} {self.brier:.3f}, calibration error {self.calibration_error:.3f}"
        return joined([f"{name}:", scores] if name else [scores], room, "small")

    def _draw_histogram(self, ax: Axes, below: Axes, color: str) -> None:
        below.hist(
            self.y_prob,
            bins=np.linspace(0, 1, 21).tolist(),
            weights=np.full(len(self.y_prob), 1 / self.repeats),
            color=color,
            alpha=0.75,
            edgecolor="white",
            linewidth=0.6,
        )
        below.set_xlabel(ax.get_xlabel(), parse_math=False)
        below.set_ylabel("rows")
        ax.set_xlabel("")
        ax.tick_params(axis="x", labelbottom=False)
        below.locator_params(axis="y", nbins=3, integer=True)
        _clean(below)


def _plain(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _some(labels: Any, most: int = 6) -> str:
    """Labels in a sentence: 'a' and 'b'."""
    shown = [_plain(label) for label in labels[:most]]
    if len(labels) > most:
        return f"{', '.join(shown)} and {len(labels) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _clean(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="#e4e6ea", linewidth=0.7)
    ax.set_axisbelow(True)


def _check_probabilities(y_prob: Any) -> Floats:
    chances = np.asarray(y_prob, np.float64)
    if chances.ndim != 1 or not chances.size:
        raise ValueError(f"y_prob should be one probability for each row, not an array of shape {chances.shape}")
    outside = ~((chances >= 0) & (chances <= 1 + 1e-9))
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"y_prob[{row}] is {chances[row]}, which is no probability")
    return np.minimum(chances, 1.0)


def _positive(labels: NDArray[Any], pos_label: Any) -> Any:
    found = np.unique(labels)
    if pos_label is None and len(found) > 2:
        raise ValueError(
            f"y_true holds {len(found)} different labels; say with pos_label which one is predicted, {_some(found)}"
        )
    if pos_label is None and len(found) == 1 and found[0] in (0, 1):
        return found.dtype.type(1)  # nothing, or everything, happened
    if pos_label is None and len(found) == 1:
        raise ValueError(f"y_true holds the label {_plain(found[0])} alone; say with pos_label what is predicted")
    if pos_label is not None and len(found) > 1 and pos_label not in found:
        raise ValueError(f"pos_label={pos_label!r} is none of the labels {_some(found)}")
    return found[-1] if pos_label is None else pos_label


def _edges(chances: Floats, n_bins: int, strategy: str) -> Floats:
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins} should be at least 1")
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy={strategy!r} is not known; say 'uniform' or 'quantile'")
    if strategy == "uniform":
        return np.linspace(0, 1, n_bins + 1)
    return np.asarray(np.quantile(chances, np.linspace(0, 1, n_bins + 1)), np.float64)
