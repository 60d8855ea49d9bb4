"""Structure by dependency analysis: draft, thicken, thin, then direct the edges."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.scores.independence import Independence
from marginbayes.structure.base import StructureLearner, StructureResult
from marginbayes.structure.constraints import Constraints

__all__ = ["DependencyAnalysis"]

Matrix = NDArray[np.bool_]


class DependencyAnalysis(StructureLearner):
    """General network by conditional-independence tests (the three phases of Cheng & Greiner 1999).

    The class is a variable like any other: it may have parents, and features may depend on each other without it.

    1. Drafting: pairs by decreasing mutual information are joined unless a path joins them already.
    2. Thickening: a pair that no cut set makes independent is joined too.
    3. Thinning: an edge whose ends some cut set makes independent is removed, first with cut sets of neighbours, then
       with those of neighbours and their neighbours.

    A cut set is sought among the neighbours of either end that lie on paths to the other, dropping one variable after
    the other while that lowers the information. Edges are then directed: colliders by the cut sets, what follows from
    them, and the rest away from the class.

    Cost: one test for each pair and some more for those that are dependent; a test is one pass over the rows.

    Parameters
    ----------
    threshold : float, default=0.01
        Least (conditional) mutual information, in bits, that counts as dependence.
    alpha : float or None, default=0.05
        Level of a chi-squared test that a dependence must pass as well: with few rows, chance alone exceeds any small
        threshold. None leaves it out, as in the paper.
    power : float, default=1.0
        Rows for each degree of freedom that a test given other variables needs. With fewer, everything looks
        independent, so that such a test separates nothing, and a smaller cut set is sought. 0 leaves it out, as in the
        paper, which may leave the class with a single neighbour.
    max_table : float or None, default=None
        Most cells of a table; None means as many as there are rows. Edges that would lead beyond it whichever way they
        point are left out. Infinity allows all, as in the paper.
    constraints : Constraints or None
        Required edges are joined and directed so from the start; the class may have required parents here. A feature
        to be kept that ends up without an edge to the class gets one, from the class unless that closes a cycle.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbayes.data import Rows, Schema, Variable
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> a = np.where(rng.random(500) < 0.9, y, 1 - y)
    >>> b = np.where(rng.random(500) < 0.9, a, 1 - a)
    >>> schema = Schema(tuple(Variable(name, (0, 1)) for name in "yab"))
    >>> DependencyAnalysis().learn(schema, Rows(np.array([y, a, b], np.uint8), (2, 2, 2))).dag.edges
    (('y', 'a'), ('a', 'b'))
    """

    counts_pairs = True

    def __init__(
        self,
        threshold: float = 0.01,
        *,
        alpha: float | None = 0.05,
        power: float = 1.0,
        max_table: float | None = None,
        constraints: Constraints | None = None,
    ) -> None:
        self.threshold = threshold
        self.alpha = alpha
        self.power = power
        self.max_table = max_table
        self.constraints = constraints

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """Structure for these rows."""
        checks.not_negative("threshold", self.threshold, infinite=True)
        checks.number("alpha", self.alpha, lambda level: 0 < level < 1, "above 0 and below 1", none=True)
        checks.not_negative("power", self.power)
        checks.positive("max_table", self.max_table, infinite=True, none=True)
        given = Constraints.given(self.constraints)
        allowed, required = _orders(given, schema.names)
        skeleton = _Skeleton(Independence(rows, self.threshold, self.alpha, self.power), allowed, required)
        most = len(rows) if self.max_table is None else self.max_table
        directed = _directed(skeleton, allowed, required, _Room(rows.cardinalities, max(1.0, most)))
        for v in sorted({schema.names.index(name) for name in given.keep} - {0}):
            if not (directed[0, v] or directed[v, 0]):
                ends = [(a, b) for a, b in ((0, v), (v, 0)) if allowed[a, b] and not _leads(directed, b, a)]
                if not ends:
                    raise ValueError(f"{schema.names[v]!r} must be kept, yet no edge between it and the class may be")
                directed[ends[0]] = True
        parents = tuple(tuple(np.flatnonzero(directed[:, v]).tolist()) for v in range(len(schema.names)))
        return StructureResult(Dag(schema.names, parents))


def _orders(constraints: Constraints, names: tuple[str, ...]) -> tuple[Matrix, Matrix]:
    """Which edges may be there and which must, [parent, child]; here the class may have parents."""
    rules, _, forbidden = constraints.compile_below(names, len(names), drops=False)
    allowed, required = rules.allowed.copy(), np.zeros_like(rules.allowed)
    allowed[1:, 0] = True
    allowed[sorted(forbidden), 0] = False
    for parent, child in constraints.required:
        required[names.index(parent), names.index(child)] = True
    Dag(names, tuple(tuple(np.flatnonzero(required[:, v]).tolist()) for v in range(len(names))))  # names a cycle
    return allowed & ~required.T, required


class _Skeleton:
    """The undirected graph of the three phases, and the cut set of every pair that was separated."""

    def __init__(self, test: Independence, allowed: Matrix, required: Matrix) -> None:
        self.test = test
        n = len(allowed)
        self.joined = required | required.T
        self.cuts: dict[tuple[int, int], frozenset[int]] = {}
        possible = allowed | allowed.T
        pairs = [(i, j) for i, j in combinations(range(n), 2) if possible[i, j] and not self.joined[i, j]]
        strong = [p for p in pairs if test.dependent(*p)]
        self.cuts.update(dict.fromkeys(set(pairs) - set(strong), frozenset()))
        strong.sort(key=lambda p: (-test.information(*p), p))
        waiting = self._draft(strong)
        self._thicken(waiting)
        for wide in (False, True):
            self._thin(required | required.T, wide)

    def _draft(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Join what no path joins yet; return the other pairs."""
        waiting = []
        for i, j in pairs:
            if _leads(self.joined, i, j):
                waiting.append((i, j))
            else:
                self._join(i, j)
        return waiting

    def _thicken(self, pairs: list[tuple[int, int]]) -> None:
        for i, j in pairs:
            if not self._separated(i, j, wide=False):
                self._join(i, j)

    def _thin(self, fixed: Matrix, wide: bool) -> None:
        for i, j in combinations(range(len(self.joined)), 2):
            if not self.joined[i, j] or fixed[i, j]:
                continue
            self._join(i, j, False)
            if not (_leads(self.joined, i, j) and self._separated(i, j, wide)):
                self._join(i, j)

    def _join(self, i: int, j: int, yes: bool = True) -> None:
        self.joined[i, j] = self.joined[j, i] = yes

    def _separated(self, i: int, j: int, wide: bool) -> bool:
        """Whether some cut set makes the pair independent; it is remembered."""
        for candidates in sorted((self._cut(i, j, wide), self._cut(j, i, wide)), key=len):
            cut = self._shrunk(i, j, set(candidates))
            if cut is not None:
                self.cuts[min(i, j), max(i, j)] = cut
                return True
        return False

    def _cut(self, start: int, end: int, wide: bool) -> list[int]:
        """Neighbours of a variable that lie on a path to another one; with `wide` their neighbours on it as well."""
        without = self.joined.copy()
        without[start] = without[:, start] = False
        near = {v for v in np.flatnonzero(self.joined[start]).tolist() if v != end and _leads(without, v, end)}
        if wide:
            near |= {
                w for v in near for w in np.flatnonzero(without[v]).tolist() if w != end and _leads(without, w, end)
            }
        return sorted(near)

    def _shrunk(self, i: int, j: int, cut: set[int]) -> frozenset[int] | None:
        """A part of the cut set given which the pair is independent, found by dropping one variable at a time."""
        while not self.test.tells(i, j, cut):
            cut = cut - {min(sorted(cut), key=lambda v: min(self.test.information(v, i), self.test.information(v, j)))}
        if not self.test.dependent(i, j, cut):
            return frozenset(cut)
        least = self.test.information(i, j, cut)
        while cut:
            weakest = min(sorted(cut), key=lambda v: self.test.information(i, j, cut - {v}))
            cut = cut - {weakest}
            if not self.test.dependent(i, j, cut):
                return frozenset(cut)
            left = self.test.information(i, j, cut)
            if left > least:
                return None
            least = left
        return None


class _Room:
    """Whether the table of a child has room for one more parent."""

    def __init__(self, cardinalities: tuple[int, ...], most: float) -> None:
        self.logs, self.most = np.log(np.array(cardinalities, float)), np.log(most) + 1e-9

    def __call__(self, directed: Matrix, parent: int, child: int) -> bool:
        return bool(self.logs[directed[:, child]].sum() + self.logs[[parent, child]].sum() <= self.most)


def _directed(skeleton: _Skeleton, allowed: Matrix, required: Matrix, room: _Room) -> Matrix:
    """Edges with a direction, without a cycle: all but those for which no table has room."""
    joined, directed = skeleton.joined, required.copy()

    def point(parent: int, child: int) -> bool:
        free = joined[parent, child] and not (directed[parent, child] or directed[child, parent])
        if not free or not allowed[parent, child] or not room(directed, parent, child):
            return False
        if _leads(directed, child, parent):
            return False
        directed[parent, child] = True
        return True

    # Where only one direction is allowed, or the other one would close a cycle, there is no choice.
    for i, j in np.argwhere(joined & allowed & ~allowed.T).tolist():
        point(i, j)
    for a, b in combinations(range(len(joined)), 2):
        if not joined[a, b] and (a, b) in skeleton.cuts:
            for z in np.flatnonzero(joined[a] & joined[b]).tolist():
                if z not in skeleton.cuts[a, b]:
                    point(a, z)
                    point(b, z)
    _follow(joined, directed, point)
    # The rest leads away from the class: the order of a walk through the graph that starts there.
    order = _walk(joined)
    place = {v: k for k, v in enumerate(order)}
    for i, j in sorted(combinations(range(len(joined)), 2), key=lambda p: sorted(place[v] for v in p)):
        first, second = sorted((i, j), key=place.__getitem__)
        if point(first, second) or point(second, first):
            _follow(joined, directed, point)
    return directed


def _follow(joined: Matrix, directed: Matrix, point: Callable[[int, int], bool]) -> None:
    """Directions that follow: no new collider, and no cycle."""
    changed = True
    while changed:
        changed = False
        for y, z in np.argwhere(joined & ~directed & ~directed.T).tolist():
            strangers = directed[:, y] & ~joined[:, z]
            strangers[z] = False
            if strangers.any() or _leads(directed, y, z):
                changed |= point(y, z)


def _walk(joined: Matrix) -> list[int]:
    """All variables, the class first, each before those that it leads to."""
    order: list[int] = []
    for start in range(len(joined)):
        queue = [start]
        while queue:
            v = queue.pop(0)
            if v not in order:
                order.append(v)
                queue += np.flatnonzero(joined[v]).tolist()
    return order


def _leads(edges: Matrix, start: int, end: int) -> bool:
    """Whether a path along the edges leads from one variable to another."""
    seen, todo = {start}, [start]
    while todo:
        v = todo.pop()
        if v == end:
            return True
        new = set(np.flatnonzero(edges[v]).tolist()) - seen
        seen |= new
        todo += sorted(new)
    return False
