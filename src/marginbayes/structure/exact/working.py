"""Rows, options and clusters in use while a node is relaxed, and the numbers that the interior point makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import WHOLE, Evaluated, Multipliers
from marginbayes.structure.exact.instance import Instance

if TYPE_CHECKING:
    from marginbayes.kernels.exact_interior import Linear, Point, Program

__all__ = ["Working"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# New options of each feature in a round, at most, and how far a cluster must be violated to be used.
NEW_OPTIONS, VIOLATION = 4, 0.02
# Rows that are opened in a round because they went to the other side of the hinge, at most; the mark of an open sample.
MOST_FLIPPED, OPEN = 400, -2


class Working:
    """The part of a node's relaxation that is looked at. Mutable: it belongs to one relaxation."""

    def __init__(
        self,
        instance: Instance,
        top: int,
        allowed: Flags,
        shares: Floats,
        clusters: Iterable[frozenset[int]] = (),
    ) -> None:
        self.instance, self.top, self.allowed, self.shares = instance, top, allowed, shares
        self.clusters = list(clusters)
        self._member_lines: list[Floats] = []  # of the clusters, made when they are needed
        self.used = (shares > 0) & allowed
        self.firm = np.zeros(instance.n_rows, bool)
        self.side: Ints | None = None  # of each sample after the last round: see `open_flipped`
        self.model_value = np.inf

    # -- what is in use

    def open_rows(self, multipliers: Multipliers) -> None:
        """Keep the rows open that carry a part of their sample only."""
        self.firm[multipliers.rows[multipliers.shares < WHOLE]] = True

    def keep_rows(self) -> None:
        """Keep the rows of this round open in the next."""
        self.firm[self.rows] = True

    def select_rows(self, band: float) -> None:
        """Open the rows near the hinge at the present shares; `alone` carry all the weight of their sample."""
        from marginbayes.kernels.exact_margins import near_hinge, row_margins

        instance = self.instance
        features, options = np.divmod(np.flatnonzero(self.shares), instance.n_options)
        base = instance.base(self.top)
        self.margins = row_margins(instance.data, base, features, options, self.shares[features, options])
        self.rows, counts, self.alone = near_hinge(self.margins, instance.rivals, instance.gamma, band, self.firm)
        self.groups = np.flatnonzero(counts)
        self.start = np.concatenate([[0], np.cumsum(counts[self.groups])])

    def open_flipped(self, band: float) -> None:
        """Open the rows of samples that went from one side of the hinge to the other since the last round.

        Their multipliers were settled, on either side, so that rounds could go back and forth between the two.
        """
        side = np.full(len(self.instance.samples.weights), -1)
        side[self.alone // self.instance.rivals] = self.alone
        side[self.groups] = OPEN
        before, self.side = self.side, side
        if before is None:
            return
        flipped = (before != side) & (before != OPEN) & (side != OPEN)
        rows = np.concatenate([before[flipped], side[flipped]])
        rows = rows[rows >= 0]
        if len(rows):
            far = np.argsort(-np.abs(self.margins[rows] - self.instance.gamma), kind="stable")[:MOST_FLIPPED]
            self.firm[rows[far]] = True
            self.select_rows(band)

    def use_options(self, found: Evaluated, most: int) -> None:
        """Use, of each feature, the options whose choice would cost least."""
        from marginbayes.kernels.branching import option_bound

        reduced = np.empty_like(found.values)
        option_bound(found.values, self.allowed, np.empty(len(self.allowed), np.int64), reduced)
        np.put_along_axis(self.used, np.argsort(-reduced, axis=1, kind="stable")[:, :most], True, axis=1)
        self.used &= self.allowed

    def grow(self, point: Point, values: Floats, small: float) -> bool:
        """Use options that would enter the relaxation, and clusters that its shares violate; whether there are any."""
        from marginbayes.kernels.exact_clusters import violated_clusters

        everyone = np.arange(len(values))
        members, parents = self._members()
        # A share of an option costs its value the duals of all clusters that hold both the feature and its parent.
        net = values - (members.T * point.cut_dual) @ parents
        gain = net - net[everyone, self.reference][:, None]
        gain[self.active] -= point.rest_price[:, None]
        gain[~self.allowed | self.used] = -np.inf
        new = np.zeros_like(self.used)
        np.put_along_axis(new, np.argsort(-gain, axis=1, kind="stable")[:, :NEW_OPTIONS], True, axis=1)
        new &= gain > small / len(gain)
        self.used |= new
        found = [frozenset(np.flatnonzero(c).tolist()) for c in violated_clusters(self.shares, VIOLATION)]
        fresh = [c for c in found if c not in self.clusters]
        self.clusters += fresh
        return bool(new.any() or fresh)

    def tight_clusters(self, loose: float) -> tuple[frozenset[int], ...]:
        """Clusters whose inequality the shares come near to, or violate."""
        if not self.clusters:
            return ()
        members, parents = self._members()
        inside = ((members @ self.shares) * parents).sum(axis=1)
        near = members.sum(axis=1) - 1.0 - inside < loose
        return tuple(c for c, is_near in zip(self.clusters, near.tolist(), strict=True) if is_near)

    # -- the numbers

    def program(self) -> Program:
        """The numbers of the interior point, relative to the option with the greatest share of each feature."""
        from marginbayes.kernels.exact_interior import Program
        from marginbayes.kernels.exact_margins import gather, weighted_rows

        instance, everyone = self.instance, np.arange(len(self.used))
        self.reference = np.argmax(np.where(self.used, self.shares, -1.0), axis=1)
        others = self.used.copy()
        others[everyone, self.reference] = False
        self.feature, self.option = np.divmod(np.flatnonzero(others), instance.n_options)
        self.active, block = np.unique(self.feature, return_inverse=True)
        instance.rows(self.alone)
        self.dense = instance.rows(self.rows)
        slots = self.feature * instance.n_options + self.option
        at = everyone * instance.n_options + self.reference
        rows, base = gather(self.dense, instance.base(self.top), self.rows, slots, self.feature, at)
        weights = instance.samples.weights
        alone = weights[self.alone // instance.rivals]
        self.fixed = np.zeros(self.dense.shape[1])  # what the samples add whose multipliers are settled
        weighted_rows(self.dense, self.alone, alone, self.fixed)
        own = instance.base(self.top)
        self.constant = instance.gamma * (instance.samples.total - float(alone.sum())) + float(alone @ own[self.alone])
        self.slope = own[self.rows] - instance.gamma
        linear = self.fixed[slots] - self.fixed[at][self.feature]
        return Program(rows, base, self.start, weights[self.groups], instance.gamma, linear, block, *self._cuts())

    def _cuts(self) -> tuple[Floats, Floats]:
        """Within a cluster some feature has no parent from it; relative to the references."""
        members, parents = self._members()
        own = members * parents[:, self.reference]
        cuts = members[:, self.feature] * parents[:, self.option] - own[:, self.feature]
        # Of one layout whether there are clusters or not, or else everything would be compiled twice.
        return np.ascontiguousarray(cuts), members.sum(axis=1) - 1.0 - own.sum(axis=1)

    def _members(self) -> tuple[Floats, Floats]:
        """For each cluster 1 at the features it holds, and at the options whose parent it holds."""
        while len(self._member_lines) < len(self.clusters):
            line = np.zeros(len(self.allowed) + 2)
            line[[2 + i for i in self.clusters[len(self._member_lines)]]] = 1.0
            self._member_lines.append(line)
        parents = np.array(self._member_lines).reshape(-1, len(self.allowed) + 2)
        return parents[:, 2:], parents

    def linear(self) -> Linear:
        """What multipliers of the open rows, together with the settled ones, make of the whole problem."""
        from marginbayes.kernels.exact_interior import Linear

        return Linear(self.dense, self.rows, self.fixed, self.constant, self.slope, self.allowed)

    def take_shares(self, program: Program, point: Point, least: float) -> None:
        """Go to the shares of the interior point, and note what the rows in use say the soft margin is there."""
        shares = np.zeros(self.allowed.shape)
        shares[np.arange(len(shares)), self.reference] = 1.0
        np.subtract.at(shares, (self.feature, self.reference[self.feature]), point.x)
        shares[self.feature, self.option] = point.x
        self.shares = np.where(shares < least, 0.0, shares)
        self.shares /= self.shares.sum(axis=1, keepdims=True)
        margins = program.base + program.rows @ point.x
        lowest = np.minimum.reduceat(margins, program.start[:-1]) if len(margins) else margins
        lack = np.minimum(lowest - self.instance.gamma, 0.0) @ program.weight
        self.model_value = self.constant + float(lack) + float(self.fixed @ shares.reshape(-1))

    def true_value(self) -> float:
        """Soft margin of the present shares, over all rows."""
        lowest = self.margins.reshape(-1, self.instance.rivals).min(axis=1)
        return float(self.instance.samples.weights @ np.minimum(self.instance.gamma, lowest))
