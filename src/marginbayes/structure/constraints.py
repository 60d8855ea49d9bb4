"""What the user knows about the graph, checked for contradictions once and then obeyed by every learner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.graph import Dag

__all__ = ["Constraints", "Rules"]

Edge = tuple[str, str]


@dataclass(frozen=True)
class Constraints:
    """Edges and variables that are settled beforehand, by name.

    Parameters
    ----------
    required : sequence of (parent, child)
        Edges that must be there. The class as parent means that the feature must be kept.
    forbidden : sequence of (parent, child)
        Edges that must not be there. The class as parent means that the feature must be dropped; in networks in which
        the class is a variable like any other (`DependencyAnalysis`, `ExactScore` with ``max_parents``) it means that
        edge alone. An edge from a variable to itself, as a product of names has it, is never there: it is left out.
    tiers : sequence of sequences of names
        Features in the order in which they come about: no edge leads from a later tier to an earlier one. Features that
        are in no tier are free.
    keep : sequence of names
        Features that may not be dropped. The class never is.

    Examples
    --------
    >>> Constraints(required=[("age", "pressure")], tiers=[["age", "sex"], ["pressure"]])
    Constraints(required=(('age', 'pressure'),), forbidden=(), tiers=(('age', 'sex'), ('pressure',)), keep=())
    """

    required: Sequence[Edge] = ()
    forbidden: Sequence[Edge] = ()
    tiers: Sequence[Sequence[str]] = ()
    keep: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("required", "forbidden"):
            edges = [_names(edge, name) for edge in getattr(self, name)]
            object.__setattr__(self, name, tuple((a, b) for a, b in edges))
        object.__setattr__(self, "forbidden", tuple((a, b) for a, b in self.forbidden if a != b))
        object.__setattr__(self, "tiers", tuple(_names(tier, "tiers") for tier in self.tiers))
        object.__setattr__(self, "keep", _names(self.keep, "keep"))

    @staticmethod
    def given(value: Constraints | None) -> Constraints:
        """What a learner was given as its constraints; none if it was given None."""
        if value is None:
            return _none()
        if not isinstance(value, Constraints):
            raise ValueError(f"constraints={value!r} must be Constraints(...)")
        return value

    def to_evidence(self, names: Sequence[str]) -> dict[str, Any]:
        """The same by lists of names, for a graph over these names, the class first, which is not to be kept."""
        return {
            "required": self.required,
            "forbidden": self.forbidden,
            "tiers": self.tiers,
            "keep": tuple(name for name in self.keep if name != names[0]),
        }

    def compile(self, names: Sequence[str], k: int, *, drops: bool = True) -> Rules:
        """The rules for a graph over these names, the class first, with at most k feature parents.

        Contradictions are refused with the cycle or the pair they lie in. `drops` says whether a feature that must not
        be a child of the class is to be dropped.
        """
        index = self._known(names)
        allowed = ~np.eye(len(names), dtype=bool)
        allowed[:, 0] = False
        for earlier, later in combinations(self.tiers, 2):
            allowed[np.ix_([index[n] for n in later], [index[n] for n in earlier])] = False
        for a, b in self.forbidden:
            allowed[index[a], index[b]] = False
        self._check_pairs(names, index, allowed)
        required: list[tuple[int, ...]] = [()] * len(names)
        for a, b in dict.fromkeys(self.required):
            if index[a]:
                required[index[b]] += (index[a],)
        if any(required):
            Dag(tuple(names), tuple(required))  # names the cycle, if there is one
        for child, parents in enumerate(required):
            if len(parents) > k:
                raise ValueError(
                    f"{names[child]!r} has {len(parents)} required feature parents, but k={k} allows no more"
                )
        kept = {*(index[n] for n in self.keep), *(index[b] for a, b in self.required if not index[a])}
        dropped = frozenset(index[b] for a, b in self.forbidden if drops and not index[a])
        kept |= {v for child, parents in enumerate(required) for v in (child, *parents) if parents}
        for v in kept & dropped:
            raise ValueError(f"{names[v]!r} must be kept, yet the edge from the class to it is forbidden")
        return Rules(k, allowed, tuple(required), frozenset(kept - {0}), dropped)

    def compile_below(self, names: Sequence[str], k: int, *, drops: bool = True) -> tuple[Rules, set[int], set[int]]:
        """The same where the class may have parents: rules among the features, and the features that must, and must
        not, be parents of the class.
        """
        top, index = names[0], {name: i for i, name in enumerate(names)}
        above, below = [], []
        for edges in (self.required, self.forbidden):
            for name in (a for a, b in edges if b == top):
                if not index.get(name):
                    raise ValueError(f"the constraints have an edge {name!r} -> {top!r}, but {name!r} is not a feature")
            above.append({index[a] for a, b in edges if b == top})
            below.append([edge for edge in edges if edge[1] != top])
        among = replace(self, required=below[0], forbidden=below[1]) if any(above) else self
        return among.compile(names, k, drops=drops), above[0], above[1]

    def _known(self, names: Sequence[str]) -> dict[str, int]:
        index = {name: i for i, name in enumerate(names)}
        named = [n for edge in (*self.required, *self.forbidden) for n in edge]
        for n in (*named, *(n for tier in self.tiers for n in tier), *self.keep):
            if n not in index:
                raise ValueError(f"the constraints name {n!r}, which is not a variable")
        listed = [n for tier in self.tiers for n in tier]
        for n in listed:
            if listed.count(n) > 1:
                raise ValueError(f"{n!r} stands in two tiers")
            if not index[n]:
                raise ValueError(f"tiers order the features; {n!r} is the class")
        return index

    def _check_pairs(self, names: Sequence[str], index: dict[str, int], allowed: NDArray[np.bool_]) -> None:
        for a, b in self.required:
            if a == b:
                raise ValueError(f"the edge {a!r} -> {b!r} leads from a variable to itself")
            if not index[b]:
                raise ValueError(
                    f"the edge {a!r} -> {b!r} is required, but {names[0]!r} is the class and has no parents here"
                )
            if (a, b) in self.forbidden:
                raise ValueError(f"the edge {a!r} -> {b!r} is both required and forbidden")
            if not allowed[index[a], index[b]]:
                raise ValueError(f"the edge {a!r} -> {b!r} is required, but the tiers forbid it")


def _names(names: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"{what} holds the text {names!r} where a list of names is due")
    return tuple(map(str, names))


@dataclass(frozen=True)
class Rules:
    """Constraints by index: which feature may be a parent of which, and what is there from the start."""

    k: int
    allowed: NDArray[np.bool_]  # [parent, child]
    required: tuple[tuple[int, ...], ...]
    keep: frozenset[int]
    dropped: frozenset[int]

    @property
    def unsearched(self) -> list[tuple[int, ...] | None]:
        """Feature parents of every variable where no edges are but the required ones; None where it is dropped."""
        return [None if v in self.dropped else own for v, own in enumerate(self.required)]

    def parents_first(self, order: Sequence[int]) -> list[int]:
        """The order with required parents moved before their children, otherwise unchanged."""
        rank = {v: place for place, v in enumerate(order)}
        placed: dict[int, None] = {}
        for v in order:
            waiting = [v]
            while waiting:
                missing = [p for p in self.required[waiting[-1]] if p not in placed]
                if missing:
                    waiting.append(min(missing, key=rank.__getitem__))
                else:
                    placed[waiting.pop()] = None
        return list(placed)

    def restricted(self, candidates: NDArray[np.bool_]) -> Rules:
        """The same rules with fewer parents to choose from; required ones stay."""
        allowed = self.allowed & candidates
        for child, parents in enumerate(self.required):
            allowed[list(parents), child] = True
        return Rules(self.k, allowed, self.required, self.keep, self.dropped)


@cache
def _none() -> Constraints:
    return Constraints()
