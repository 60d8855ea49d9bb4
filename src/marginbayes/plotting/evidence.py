"""Evidence: what each feature of one row adds to the odds of its class, as a bar chart."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes.estimators.explain import Explanation
from marginbayes.graph.labels import shorten, shorten_all
from marginbayes.plotting.axes import fitted, inches, joined, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EvidenceDisplay", "percent", "statement"]

# Blue and orange, which the colour-blind tell apart; grey for what no feature says.
FOR, AGAINST, GIVEN, TOTAL = "#2f6fdb", "#d9730d", "#9aa0aa", "#3a3f4a"
LONGEST = 360.0  # width of a name or a level, in a font of 13
WIDTH, LEAST = 7.5, 5.0  # inches of a new figure, and of the bars in it at least
# The label of a level that is an interval between two cuts.
_INTERVAL = re.compile(r"\((-inf|[-+.0-9e]+), (inf|[-+.0-9e]+)[\])]")


@dataclass(eq=False)
class EvidenceDisplay:
    """Weights of evidence of one row: bars to the right speak for one class, bars to the left for the other.

    Make one with `from_explanation` or `from_estimator`; `plot` draws it.

    Parameters
    ----------
    names : tuple of str
        The features shown, the one that speaks loudest for `target` first.
    values : tuple
        The level observed of each.
    weights : tuple of float
        The weight of evidence of each, in nats.
    other : float
        Sum of the weights of the features that are not shown.
    n_other : int
        How many those are.
    n_missing : int
        How many features of the row are missing; they weigh nothing.
    prior : float
        Log-odds before any feature is seen.
    log_odds : float
        Log-odds after all of them: the prior, all weights and `other` together.
    target : class label
        Positive weights speak for it.
    against : class label
        Negative weights speak for it.
    among : tuple of str
        All features of the row: a long name is shortened so that it looks like none of these.
    """

    names: tuple[str, ...]
    values: tuple[Any, ...]
    weights: tuple[float, ...]
    other: float
    n_other: int
    n_missing: int
    prior: float
    log_odds: float
    target: Any
    against: Any
    among: tuple[str, ...] = ()

    @classmethod
    def from_explanation(cls, explanation: Explanation, row: int = 0, max_features: int = 15) -> EvidenceDisplay:
        """The display of one row of an explanation, not yet drawn.

        Parameters
        ----------
        explanation : Explanation
            What `BayesNetClassifier.explain` returned.
        row : int
            Position of the row in it.
        max_features : int
            The heaviest so many are shown, the others summed.
        """
        if not -len(explanation) <= row < len(explanation):
            raise IndexError(f"row={row} is not there: the explanation has {len(explanation)} rows")
        if max_features < 1:
            raise ValueError(f"max_features={max_features} should be at least 1")
        ranked = explanation.row(row)
        # A missing cell weighs nothing, unless missing="level" makes it a level like the others.
        present = [entry for entry in ranked if entry[1] is not None or entry[2] != 0]
        missing = [entry for entry in ranked if entry[1] is None and entry[2] == 0]
        shown = sorted(present[:max_features], key=lambda entry: -_sortable(entry[2]))
        return cls(
            names=tuple(name for name, _, _ in shown),
            values=tuple(value for _, value, _ in shown),
            weights=tuple(weight for _, _, weight in shown),
            other=float(sum(weight for _, _, weight in present[max_features:])),
            n_other=len(present[max_features:]),
            n_missing=len(missing),
            prior=float(explanation.prior[row]),
            log_odds=float(explanation.log_odds[row]),
            target=_plain(explanation.target[row]),
            against=_plain(explanation.against[row]),
            among=tuple(name for name, _, _ in ranked),
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        row: int = 0,
        *,
        target: Any = None,
        against: Any = None,
        max_features: int = 15,
        ax: Axes | None = None,
    ) -> EvidenceDisplay:
        """The display, drawn, of one row of a table; see `BayesNetClassifier.explain` for the classes."""
        if not hasattr(estimator, "explain"):
            raise TypeError(f"{type(estimator).__name__} explains no row; BayesNetClassifier does")
        explanation = estimator.explain(X, target=target, against=against)
        return cls.from_explanation(explanation, row, max_features).plot(ax=ax)

    @property
    def probability(self) -> float:
        """P(target | row, and it is `target` or `against`); with two classes simply P(target | row)."""
        return _logistic(self.log_odds)

    @property
    def prior_probability(self) -> float:
        """The same before any feature is seen."""
        return _logistic(self.prior)

    def bars(self) -> list[tuple[str, float, str]]:
        """(label, weight, colour) of each bar from top to bottom: prior, features, all others, total."""
        every = tuple(dict.fromkeys((*self.names, *self.among)))
        label = dict(zip(every, shorten_all(every, LONGEST), strict=True))
        features = [
            (statement(label[name], value), weight, FOR if weight >= 0 else AGAINST)
            for name, value, weight in zip(self.names, self.values, self.weights, strict=True)
        ]
        others = "1 other feature" if self.n_other == 1 else f"{self.n_other} other features"
        rest = [(others, self.other, GIVEN)] if self.n_other else []
        return [("prior", self.prior, GIVEN), *features, *rest, ("log-odds", self.log_odds, TOTAL)]

    def plot(self, ax: Axes | None = None) -> EvidenceDisplay:
        """This display, after drawing it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of a suitable height.
        """
        import matplotlib.pyplot as plt

        bars = self.bars()
        beside = max(inches(label, "small") for label, _, _ in bars)
        if ax is None:
            width = max(WIDTH, beside + LEAST)
            _, ax = plt.subplots(figsize=(width, 1.5 + 0.3 * len(bars)), layout="constrained")
            room = width - beside - 0.3
        else:
            room = width_of(ax)
        self.ax_, self.figure_ = ax, ax.figure
        reach = _reach([weight for _, weight, _ in bars])
        lengths = np.array([_length(weight, reach) for _, weight, _ in bars])
        places = np.arange(len(bars), dtype=float)
        places[1:] += 0.4  # the prior and the total stand a little apart
        places[-1] += 0.4
        self.bars_ = ax.barh(places, lengths, height=0.72, color=[color for _, _, color in bars], zorder=2)
        # A dollar sign in a name is not mathematics.
        ax.set_yticks(places, [label for label, _, _ in bars], parse_math=False)
        for place, length, (_, weight, _) in zip(places, lengths, bars, strict=True):
            _write_weight(ax, place, length, weight)
        self._label(ax, reach, float(places[-1]))
        self._write_title(ax, room)
        return self

    def _label(self, ax: Axes, reach: float, bottom: float) -> None:
        ax.set_ylim(bottom + 0.7, -0.7)
        lengths = [_length(weight, reach) for _, weight, _ in self.bars()]
        # Room for the number beside the longest bar on each side.
        ax.set_xlim(1.12 * min(lengths) - 0.22 * reach, 1.12 * max(lengths) + 0.22 * reach)
        ax.axvline(0, color=TOTAL, linewidth=0.9, zorder=3)
        missing = f"  (missing features, which weigh nothing: {self.n_missing})" if self.n_missing else ""
        ax.set_xlabel(f"weight of evidence, nats{missing}", fontsize="small")
        ax.tick_params(axis="y", length=0, labelsize="small")
        ax.tick_params(axis="x", labelsize="small")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.grid(visible=True, axis="x", color="#e4e6ea", linewidth=0.7)
        ax.set_axisbelow(True)

    def _write_title(self, ax: Axes, room: float) -> None:
        """What is decided and how it ends, above the two sides with the class that each speaks for."""
        sides = (self.target, self.against)
        target, against = fitted(sides, room - inches("against :", "medium"), "medium")
        chances = f" {percent(self.prior_probability)} before,  {percent(self.probability)} after"
        title = joined((f"P({target})", f"against {against}:", chances), room, "medium")
        ax.set_title(title, fontsize="medium", pad=20, parse_math=False)
        spare = room - 2 * inches("◀◀ for ", "small")
        # One of the two may take more than half where the other needs less.
        least = min(inches(str(name), "small") for name in sides)
        target, against = fitted(sides, max(spare / 2, spare - least), "small")
        for x, side, text, color in (
            (0.0, "left", f"◀ for {against}", AGAINST),
            (1.0, "right", f"for {target} ▶", FOR),
        ):
            ax.text(
                x,
                1.01,
                text,
                transform=ax.transAxes,
                ha=side,
                va="bottom",
                color=color,
                fontsize="small",
                parse_math=False,
            )


def statement(name: str, value: Any) -> str:
    """What was observed of a feature, for people: "age > 40", "2 < size ≤ 3", "colour = red"."""
    found = _INTERVAL.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return f"{name} = {_level(value)}"
    low, high = (float(end) for end in found.groups())
    # Labels are as short as they can be told apart; what is cut off here is rounding.
    left = "" if math.isinf(low) else f"{low:.12g} < "
    right = "" if math.isinf(high) else f" ≤ {high:.12g}"
    if left and not right:
        return f"{name} > {low:.12g}"
    return f"{left}{name}{right}" if right else f"{name}: any"


def _write_weight(ax: Axes, place: float, length: float, weight: float) -> None:
    side = "right" if length < 0 else "left"
    ax.annotate(
        f"{weight:+.2f}" if math.isfinite(weight) else {math.inf: "+∞", -math.inf: "-∞"}.get(weight, "undefined"),
        (length, place),
        xytext=(-3 if length < 0 else 3, 0),
        textcoords="offset points",
        ha=side,
        va="center",
        fontsize="x-small",
        color=TOTAL,
    )


def _reach(weights: list[float]) -> float:
    """Longest finite bar; something to draw infinite ones by even if there is none."""
    return max((abs(w) for w in weights if math.isfinite(w)), default=0.0) or 1.0


def _length(weight: float, reach: float) -> float:
    """Length of a bar: the weight; an infinite one is a little longer than all others."""
    if math.isnan(weight):
        return 0.0
    return max(-1.1 * reach, min(1.1 * reach, weight))


def _sortable(weight: float) -> float:
    return 0.0 if math.isnan(weight) else weight


def _logistic(log_odds: float) -> float:
    if math.isnan(log_odds):
        return math.nan
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def percent(probability: float) -> str:
    """A percentage that does not say 0 or 100 where it is neither."""
    if math.isnan(probability):
        return "undefined"
    text = f"{100 * probability:.1f} %"
    if text == "100.0 %" and probability < 1:
        return "> 99.9 %"
    return "< 0.1 %" if text == "0.0 %" and probability > 0 else text


def _level(value: Any) -> str:
    return "missing" if value is None else shorten(str(value), LONGEST)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
