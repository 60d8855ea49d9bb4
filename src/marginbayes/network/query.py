"""One question at a time: P(any variables | evidence), the most probable explanation, the information on an edge.

Plain variable elimination on NumPy arrays in log space. For one target and many rows `evaluate` is much faster; the two
share no code but the elimination order's idea, and the tests hold them against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbayes.data.frame import is_missing
from marginbayes.network.logs import log_sum

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
    soft = _soft_evidence(network, likelihood, evidence)
    factors = _factors(network, evidence, {*asked, *(v for scope, _ in soft for v in scope)}) + soft
    factors, _ = _eliminate(factors, keep=set(asked), network=network, reduce_axis=log_sum)
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
    names, found, families = network.dag.names, {}, dict[int, Floats]()
    for child in network.dag.order:
        parents = network.dag.parents[child]
        joint = _family_joint(network, child, families)
        families[child] = joint
        for axis, parent in enumerate(parents):
            found[parent, child] = _conditional_information(joint, axis)
    return {(names[a], names[b]): found[a, b] for b, own in enumerate(network.dag.parents) for a in own}


def _family_joint(network: Network, child: int, families: Mapping[int, Floats]) -> Floats:
    """P(parents, child), given those of the families before it."""
    parents = network.dag.parents[child]
    if not network.normalized:  # what lies below has a say too
        return query(network, [network.dag.names[v] for v in (*parents, child)], {}, {})
    return np.asarray(_joint_of(network, parents, families)[..., None] * np.exp(network.tables[child]))


def _joint_of(network: Network, variables: tuple[int, ...], families: Mapping[int, Floats]) -> Floats:
    """P(variables), from the family of one of them that holds them all (as in trees), else by a question of its own."""
    if not variables:
        return np.ones(())
    for v in variables:
        scope = (*network.dag.parents[v], v)
        if set(variables) <= set(scope):
            joint = families[v].sum(axis=tuple(k for k, u in enumerate(scope) if u not in variables))
            left = [u for u in scope if u in variables]
            return np.asarray(joint.transpose([left.index(u) for u in variables]))
    return query(network, [network.dag.names[v] for v in variables], {}, {})


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
    steps: list[tuple[int, Factor]] = []
    logs = np.log(network.schema.cardinalities)
    live = dict(enumerate(factors))
    holders: dict[int, set[int]] = {}  # the factors that a variable is in
    for number, (scope, _) in live.items():
        for v in scope:
            holders.setdefault(v, set()).add(number)

    def cost(v: int) -> float:
        return float(logs[sorted({u for number in holders[v] for u in live[number][0]})].sum())

    costs = {v: cost(v) for v in holders if v not in keep}
    while costs:
        v = min(costs, key=lambda u: (costs[u], u))
        del costs[v]
        product = _multiply([live.pop(number) for number in sorted(holders[v])], network)
        scope, table = product
        rest, new = tuple(u for u in scope if u != v), len(factors) + len(steps)
        live[new] = (rest, reduce_axis(table, axis=scope.index(v)))
        for u in rest:
            holders[u] = (holders[u] - holders[v]) | {new}
        for u in rest:
            if u in costs:
                costs[u] = cost(u)
        steps.append((v, product))
    return list(live.values()), steps


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


# -- evidence


def _evidence(network: Network, given: Mapping[str, Any]) -> dict[int, int]:
    return {network.dag.index(name): _level(network, name, value) for name, value in given.items()}


def _level(network: Network, name: str, value: Any) -> int:
    variable = network.schema[name]
    if is_missing(value) and None not in variable.levels:
        raise ValueError(f"the value of {name!r} is missing ({value!r}); leave it out of what is given")
    value = None if is_missing(value) else value
    if value in variable.levels:
        return variable.levels.index(value)
    if variable.cuts is not None and isinstance(value, Real) and np.isfinite(float(value)):
        return int(np.searchsorted(variable.cuts, float(value)))
    raise ValueError(f"{name!r} has no level {value!r}; it has {', '.join(map(repr, variable.levels))}")


def _soft_evidence(
    network: Network, likelihood: Mapping[str, Sequence[float]], evidence: Mapping[int, int]
) -> list[Factor]:
    """What speaks for the levels of variables; of one that is given, only what speaks for the level given."""
    factors: list[Factor] = []
    for name, values in likelihood.items():
        weights, levels = np.asarray(values, float), network.schema[name].cardinality
        if weights.shape != (levels,) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
            raise ValueError(f"the likelihood of {name!r} needs {levels} finite numbers, none negative, not all zero")
        v = network.dag.index(name)
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        factors.append(((), np.asarray(logs[evidence[v]])) if v in evidence else ((v,), logs))
    return factors
