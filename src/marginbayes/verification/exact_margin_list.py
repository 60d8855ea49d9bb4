"""Parts of a record that were finished off: structures that multipliers do not bound are looked at one by one.

Multipliers make a value of every option, and the sum of a structure's values bounds its soft margin. Whatever sum is
above the claimed bound belongs to a structure that has to be looked at.
A sum is at most that of the best branching less what each option costs (`OptionCosts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError
from marginbayes.verification.exact_margin_bound import Margins
from marginbayes.verification.exact_margin_branching import OptionCosts

__all__ = ["best_unbounded"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Numbers that are worked on at a time, and structures that are looked at, beyond which a record is refused.
AT_ONCE, MOST = 1 << 22, 5_000_000


@dataclass
class Begun:
    """Structures of which the first features have chosen: what is left of the budget, choices, margins of all rows."""

    left: Floats
    choice: Ints
    margins: Floats

    @classmethod
    def joined(cls, parts: Sequence[Begun]) -> Begun:
        """All of them."""
        return cls(
            np.concatenate([part.left for part in parts]),
            np.concatenate([part.choice for part in parts]),
            np.concatenate([part.margins for part in parts]),
        )

    def halves(self) -> list[Begun]:
        """The same in two parts."""
        middle = len(self.left) // 2
        return [
            Begun(self.left[part], self.choice[part], self.margins[part])
            for part in (slice(middle), slice(middle, None))
        ]


def best_unbounded(
    margins: Margins, top: tuple[int, ...], linear: tuple[float, Floats], options: Flags, claimed: float
) -> float:
    """Bound of the structures with these options: the claim, or the best soft margin of those it does not hold for."""
    (constant, values), rows = linear, np.arange(margins.n_rows)
    branching = OptionCosts(values[None], options[None])
    most, everything = constant + float(branching.totals[0]), np.arange(len(values))
    budget = most - claimed
    if not budget > 0:
        return most
    costs = branching.of(np.zeros_like(everything), everything)
    order = np.argsort((costs < budget).sum(axis=1), kind="stable")
    near = [np.flatnonzero(own < budget).tolist() for own in costs]
    columns = {(i, o): margins.column(i, o, rows) for i, own in enumerate(near) for o in own}
    # What the features that come later can add to each row at most.
    gains = [np.zeros(margins.n_rows)]
    for i in order[::-1].tolist():
        own = [column for (feature, _), column in columns.items() if feature == i]
        gains.insert(0, gains[0] + (np.max(own, axis=0) if own else -np.inf))
    found, seen = claimed, 0
    begun = Begun(np.array([budget]), np.full((1, len(values)), -1), margins.base(top)[None])
    waiting = [(0, begun)]
    while waiting:
        depth, part = waiting.pop()
        if depth == len(order):
            found = max(found, float(_hinges(margins, part.margins).max()))
            continue
        i = int(order[depth])
        own_options = [o for feature, o in columns if feature == i]
        if part.margins.size * len(own_options) > AT_ONCE and len(part.left) > 1:
            waiting += [(depth, half) for half in part.halves()]
            continue
        more = Begun.joined([_taking(part, i, o, costs[i, o], columns[i, o]) for o in own_options])
        hopeful = _hinges(margins, more.margins + gains[depth + 1]) > claimed
        seen += int(hopeful.sum())
        if hopeful.any():
            waiting.append((depth + 1, Begun(more.left[hopeful], more.choice[hopeful], more.margins[hopeful])))
        if seen > MOST:
            raise CertificateError(f"a part of the record leaves more than {MOST} structures to look at")
    return found


def _hinges(margins: Margins, of: Floats) -> Floats:
    """Soft margins of some structures, from the margins of all rows."""
    low = of.reshape(len(of), len(margins.weights), margins.rivals).min(axis=2, initial=np.inf)
    return np.asarray(np.minimum(margins.gamma, low) @ margins.weights)


def _taking(part: Begun, i: int, option: int, cost: float, column: Floats) -> Begun:
    """Structures whose next feature takes an option, without those that are beyond the budget or have a cycle."""
    fine = part.left > cost
    node = np.full(len(fine), option - 2)
    for _ in range(part.choice.shape[1]):
        fine &= node != i
        node = np.where(node >= 0, part.choice[np.arange(len(node)), node] - 2, -1)
    choice = part.choice[fine]
    choice[:, i] = option
    return Begun(part.left[fine] - cost, choice, part.margins[fine] + column)
