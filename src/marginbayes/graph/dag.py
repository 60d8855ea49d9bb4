"""The immutable directed acyclic graph that every network and structure learner speaks of."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from marginbayes.graph.walks import above

__all__ = ["Dag"]


@dataclass(frozen=True)
class Dag:
    """Directed acyclic graph over named variables; a cycle cannot be constructed.

    Parameters
    ----------
    names : sequence of str
        One distinct name for each variable. In a classifier the class is the first.
    parents : sequence of sequences of int
        For each variable the indices of its parents, in the order in which its table is indexed.

    Examples
    --------
    >>> dag = Dag.from_edges([("class", "a"), ("class", "b"), ("a", "b")])
    >>> dag.parents_of("b")
    ('class', 'a')
    """

    names: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    # Topological: parents before children, ties by index.
    order: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "parents", tuple(tuple(int(p) for p in pa) for pa in self.parents))
        _check_names(self.names)
        _check_parents(self.names, self.parents)
        object.__setattr__(self, "order", _topological_order(self.names, self.parents))

    def __repr__(self) -> str:
        return f"Dag({len(self.names)} variables, {len(self.edges)} edges)"

    # -- ways to make one

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]], names: Sequence[str] | None = None) -> Dag:
        """Dag with these (parent, child) edges; names default to the order in which they first occur."""
        edges = [(str(a), str(b)) for a, b in edges]
        names = None if names is None else [str(name) for name in names]
        if names is None:
            names = list(dict.fromkeys(name for edge in edges for name in edge))
        index = {name: i for i, name in enumerate(names)}
        unknown = [name for edge in edges for name in edge if name not in index]
        if unknown:
            raise ValueError(f"edge names the variable {unknown[0]!r}, which is not among the {len(names)} names")
        parents: list[list[int]] = [[] for _ in names]
        for parent, child in edges:
            parents[index[child]].append(index[parent])
        return cls(tuple(names), tuple(tuple(p) for p in parents))

    @classmethod
    def naive(cls, names: Sequence[str]) -> Dag:
        """Naive Bayes: the first variable is the only parent of every other."""
        return cls(tuple(names), ((), *(((0,),) * (len(names) - 1))))

    def reindexed(self, names: Sequence[str]) -> Dag:
        """The same graph with its variables in another order."""
        missing, extra = sorted(set(names) - set(self.names)), sorted(set(self.names) - set(names))
        if missing or extra:
            raise ValueError(f"the graph and the names differ: not in the graph {missing}, not in the names {extra}")
        new = {self.index(name): i for i, name in enumerate(names)}
        old = [self.index(name) for name in names]
        return Dag(tuple(names), tuple(tuple(new[p] for p in self.parents[i]) for i in old))

    # -- reading it

    def index(self, name: str) -> int:
        """Position of a variable."""
        try:
            return self._index[name]
        except KeyError:
            raise KeyError(f"no variable {name!r}; there are {', '.join(map(repr, self.names))}") from None

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each variable the indices of its children, ascending."""
        found: list[list[int]] = [[] for _ in self.names]
        for child, parents in enumerate(self.parents):
            for parent in parents:
                found[parent].append(child)
        return tuple(tuple(c) for c in found)

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All (parent, child) pairs of names, in the order of the children."""
        return tuple((self.names[p], self.names[c]) for c, pa in enumerate(self.parents) for p in pa)

    def parents_of(self, name: str) -> tuple[str, ...]:
        """Names of a variable's parents."""
        return tuple(self.names[p] for p in self.parents[self.index(name)])

    def children_of(self, name: str) -> tuple[str, ...]:
        """Names of a variable's children."""
        return tuple(self.names[c] for c in self.children[self.index(name)])

    def ancestors(self, nodes: Iterable[int]) -> set[int]:
        """Indices of the nodes and everything above them."""
        return above(self.parents, nodes)

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """Names of the parents, the children and the children's other parents of a variable."""
        node = self.index(name)
        blanket = {*self.parents[node], *self.children[node]}
        blanket.update(p for child in self.children[node] for p in self.parents[child])
        return tuple(self.names[i] for i in sorted(blanket - {node}))

    def d_separated(self, a: str | Iterable[str], b: str | Iterable[str], given: Iterable[str] = ()) -> bool:
        """Whether every path between a and b is blocked by the given variables.

        Uses the criterion of Lauritzen et al. (1990): a and b are d-separated exactly when the given variables
        separate them in the moral graph of the ancestors of all of them.
        """
        left, right = _indices(self, a), _indices(self, b)
        blocked = _indices(self, given)
        for name, side in (("a", left), ("b", right)):
            if side & blocked:
                raise ValueError(f"{name} and the given variables overlap: {self.names[min(side & blocked)]!r}")
        neighbours = moral_graph(self, self.ancestors(left | right | blocked))
        reached, todo = set(), list(left)
        while todo:
            node = todo.pop()
            if node not in reached:
                reached.add(node)
                todo.extend(neighbours[node] - blocked)
        return not reached & right

    def structural_hamming_distance(self, other: Dag) -> int:
        """Number of variable pairs whose edge differs (absent, forward or backward) between two graphs."""
        if set(self.names) != set(other.names):
            raise ValueError("the structural Hamming distance needs two graphs over the same variables")
        mine, theirs = set(self.edges), set(other.edges)
        return len({frozenset(edge) for edge in mine ^ theirs})

    def _repr_html_(self) -> str:
        from marginbayes.graph.svg import draw_svg

        return draw_svg(self)


def moral_graph(dag: Dag, nodes: Iterable[int] | None = None) -> dict[int, set[int]]:
    """Undirected neighbours of each node after marrying the parents, within the subgraph of `nodes`."""
    kept = set(range(len(dag.names))) if nodes is None else set(nodes)
    neighbours: dict[int, set[int]] = {i: set() for i in kept}
    for child in kept:
        family = [child, *(p for p in dag.parents[child] if p in kept)]
        for member in family:
            neighbours[member].update(m for m in family if m != member)
    return neighbours


def _indices(dag: Dag, names: str | Iterable[str]) -> set[int]:
    return {dag.index(n) for n in ([names] if isinstance(names, str) else names)}


def _check_names(names: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"variable names are strings, not {name!r}")
        if name in seen:
            raise ValueError(f"two variables are called {name!r}")
        seen.add(name)


def _check_parents(names: tuple[str, ...], parents: tuple[tuple[int, ...], ...]) -> None:
    if len(parents) != len(names):
        raise ValueError(f"{len(names)} names but {len(parents)} lists of parents")
    for child, pa in enumerate(parents):
        for p in pa:
            if not 0 <= p < len(names):
                raise ValueError(f"{names[child]!r} has the parent {p}, but there are {len(names)} variables")
        if len(set(pa)) < len(pa):
            raise ValueError(f"{names[child]!r} has the same parent twice")


def _topological_order(names: tuple[str, ...], parents: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Parents before children, smallest index first among those that are ready; raises on a cycle."""
    waiting = [len(pa) for pa in parents]
    children: list[list[int]] = [[] for _ in parents]
    for child, pa in enumerate(parents):
        for p in pa:
            children[p].append(child)
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for child in children[node]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, child)
    if len(order) < len(parents):
        raise ValueError(f"the edges form a cycle: {' -> '.join(_cycle(names, parents, set(order)))}")
    return tuple(order)


def _cycle(names: tuple[str, ...], parents: tuple[tuple[int, ...], ...], done: set[int]) -> list[str]:
    """One cycle among the nodes that no topological order reached, by walking up until a node repeats."""
    node = next(i for i in range(len(parents)) if i not in done)
    path: list[int] = []
    while node not in path:
        path.append(node)
        node = next(p for p in parents[node] if p not in done)
    return [names[i] for i in [node, *reversed(path[path.index(node) :])]]
