"""One question at a time: P(any variables | evidence), the most probable explanation, the information on an edge.

Plain variable elimination on NumPy arrays in log space. For one target and many rows `evaluate` is much faster; the two
share no code but the elimination order's idea, and the tests hold them against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

if TYPE_CHECKING:
    from marginbayes.network.network import Network

__all__ = ["edge_information", "most_probable", "query"]

Floats = NDArray[np.float64]
Factor = tuple[tuple[int, ...], Floats]  # variables, and one axis for each

MOST_CELLS = 1 << 27


def query(
    network: Network, variables: Sequence[str], given: Mapping[str, Any], likelihood: Mapping[str, Sequence[float]]
) -> Floats:
    """P(variables | given, likelihood) as an array with one axis for each variable asked for."""
    asked = [network.dag.index(name) for name in variables]
    if len(set(asked)) < len(asked) or not asked:
        raise ValueError(f"ask for one or more different variables, not {list(variables)}")
    evidence = _evidence(network, given)
    overlap = set(asked) & set(evidence)
    if overlap:
        raise ValueError(f"{network.dag.names[min(overlap)]!r} is both asked for and given")
    soft = _soft_evidence(network, likelihood)
    factors = _factors(network, evidence, {*asked, *(v for (v,), _ in soft)}) + soft
    factors, _ = _eliminate(factors, keep=set(asked), network=network, reduce_axis=_log_sum)
    joint = _aligned(_multiply(factors, network), asked, network)
    total = logsumexp(joint)
    if not np.isfinite(total):
        raise ValueError("the evidence is impossible: its probability under the network is zero")
    return np.asarray(np.exp(joint - total))


def most_probable(network: Network, given: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """The best level of each variable, evidence included, and the log joint of them all."""
    evidence = _evidence(network, given)
    factors = _factors(network, evidence, range(len(network.dag.names)))
    factors, steps = _eliminate(factors, keep=set(), network=network, reduce_axis=np.max)
    value = float(sum(table.item() for _, table in factors))
    if not np.isfinite(value):
        raise ValueError("the evidence is impossible: its probability under the network is zero")
    best = dict(evidence)
    for v, (scope, table) in reversed(steps):
        at = tuple(slice(None) if u == v else best[u] for u in scope)
        best[v] = int(np.argmax(table[at]))
    variables = network.schema.variables
    return {variables[i].name: variables[i].levels[best[i]] for i in range(len(variables))}, value


def edge_information(network: Network) -> dict[tuple[str, str], float]:
    """For each edge I(child; parent | the child's other parents), in nats."""
    names, found = network.dag.names, {}
    for child, parents in enumerate(network.dag.parents):
        if not parents:
            continue
        joint = query(network, [names[p] for p in parents], {}, {})[..., None] * np.exp(network.tables[child])
        for axis, parent in enumerate(parents):
            found[names[parent], names[child]] = _conditional_information(joint, axis)
    return found


def _conditional_information(joint: Floats, axis: int) -> float:
    """I(last axis; axis | the other axes) of a joint table."""
    entropies = [_entropy(joint.sum(axis=drop)) for drop in ((axis,), (-1,), (axis, joint.ndim - 1), ())]
    without_parent, without_child, without_both, full = entropies
    return max(0.0, without_parent + without_child - without_both - full)


def _entropy(p: Floats) -> float:
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


# -- elimination


def _factors(network: Network, evidence: Mapping[int, int], asked: Iterable[int]) -> list[Factor]:
    """Families restricted to the evidence; only ancestors count, since a network's other rows sum to one."""
    wanted = {*asked, *evidence}
    kept = network.dag.ancestors(wanted) if network.normalized else range(len(network.dag.names))
    factors = []
    for child in sorted(kept):
        family = [*network.dag.parents[child], child]
        at = tuple(evidence.get(v, slice(None)) for v in family)
        factors.append((tuple(v for v in family if v not in evidence), np.asarray(network.tables[child][at])))
    return factors


def _eliminate(
    factors: list[Factor], keep: set[int], network: Network, reduce_axis: Callable[..., Any]
) -> tuple[list[Factor], list[tuple[int, Factor]]]:
    """Reduce every variable that is not kept, cheapest message first; also the products, for tracing back."""
    steps = []
    todo = {v for scope, _ in factors for v in scope} - keep
    while todo:
        v = min(todo, key=lambda u: (_cost(u, factors, network), u))
        todo.remove(v)
        product = _multiply([f for f in factors if v in f[0]], network)
        factors = [f for f in factors if v not in f[0]]
        scope, table = product
        factors.append((tuple(u for u in scope if u != v), reduce_axis(table, axis=scope.index(v))))
        steps.append((v, product))
    return factors, steps


def _cost(v: int, factors: list[Factor], network: Network) -> float:
    scope = {u for f in factors if v in f[0] for u in f[0]}
    return float(np.log([network.schema.cardinalities[u] for u in scope]).sum())


def _multiply(factors: list[Factor], network: Network) -> Factor:
    scope = sorted({v for f in factors for v in f[0]})
    shape = [network.schema.cardinalities[v] for v in scope]
    if float(np.prod(shape, dtype=float)) > MOST_CELLS:
        raise ValueError(
            f"the question needs a table of {np.prod(shape, dtype=float):.2g} cells; ask for fewer variables"
        )
    total = np.zeros(shape)
    for f in factors:
        total += _aligned(f, scope, network, broadcast=True)
    return tuple(scope), total


def _aligned(factor: Factor, scope: Sequence[int], network: Network, broadcast: bool = False) -> Floats:
    """A factor with its axes in the order of `scope`, length 1 (or full length) where it lacks a variable."""
    own, table = factor
    table = np.transpose(table, sorted(range(len(own)), key=lambda k: scope.index(own[k])))
    table = table.reshape([network.schema.cardinalities[v] if v in own else 1 for v in scope])
    return table if broadcast else np.broadcast_to(table, [network.schema.cardinalities[v] for v in scope])


def _log_sum(table: Floats, axis: int) -> Floats:
    return np.asarray(logsumexp(table, axis=axis))


# -- evidence


def _evidence(network: Network, given: Mapping[str, Any]) -> dict[int, int]:
    return {network.dag.index(name): _level(network, name, value) for name, value in given.items()}


def _level(network: Network, name: str, value: Any) -> int:
    variable = network.schema[name]
    if value in variable.levels:
        return variable.levels.index(value)
    if variable.cuts is not None and isinstance(value, (int, float)):
        return int(np.searchsorted(variable.cuts, value))
    raise ValueError(f"{name!r} has no level {value!r}; it has {', '.join(map(repr, variable.levels))}")


def _soft_evidence(network: Network, likelihood: Mapping[str, Sequence[float]]) -> list[Factor]:
    factors: list[Factor] = []
    for name, values in likelihood.items():
        weights, levels = np.asarray(values, float), network.schema[name].cardinality
        if weights.shape != (levels,) or not (weights >= 0).all() or not weights.any():
            raise ValueError(f"the likelihood of {name!r} needs {levels} non-negative numbers, not all zero")
        with np.errstate(divide="ignore"):
            factors.append(((network.dag.index(name),), np.log(weights)))
    return factors
