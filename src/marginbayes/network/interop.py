"""Networks as objects of pgmpy and pyAgrum, and what every foreign format shares.

Other software knows less about a variable than a `Variable` holds, and some of it accepts few names. So a
network leaves with names that are accepted, and where that loses something (the name, the type of a level,
the cuts, which variable is the class) the rest travels along as a property called ``marginbayes`` that others
ignore and `assemble` reads back.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.schema import Schema, Variable
from marginbayes.graph import Dag
from marginbayes.network.json import MOST_PARENTS, parse_document, variable_from_dict, variable_to_dict
from marginbayes.network.network import Network

__all__ = [
    "KEY",
    "MOST_PARENTS",
    "ROW_SLACK",
    "Node",
    "assemble",
    "distinct",
    "from_pgmpy",
    "from_pyagrum",
    "numbers",
    "to_nodes",
    "to_pgmpy",
    "to_pyagrum",
]

KEY = "marginbayes"
# A file may hold probabilities of few digits; a row that misses one by more is taken for a mistake.
ROW_SLACK, ROW_EXACT = 1e-3, 1e-12
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Some readers abort the process on a token of tens of thousands of characters.
CHUNK = 100

Floats = NDArray[np.float64]
Clean = Callable[[str], str]


@dataclass(frozen=True)
class Node:
    """A variable and its table as a foreign format knows them.

    Parameters
    ----------
    name : str
    levels : tuple
    parents : tuple of str
        Foreign names.
    probabilities : array
        One axis for each parent, the variable's own levels last.
    carried : str or None
        What the format has no place for, as `to_nodes` encoded it.
    cuts : tuple of float or None
        As a `Variable` has them, if the format knows about cuts.
    """

    name: str
    levels: tuple[Hashable, ...]
    parents: tuple[str, ...]
    probabilities: Floats
    carried: str | None = None
    cuts: tuple[float, ...] | None = None


# -- out


def to_nodes(
    network: Network, clean_name: Clean = str, clean_level: Clean | None = str, fold: Clean = str
) -> list[Node]:
    """Nodes of a network under names and levels that a format accepts.

    Parameters
    ----------
    network : Network
    clean_name, clean_level : callable
        What the format makes of a name and of a level's text; None if levels of any type are fine.
    fold : callable
        Names that fold to the same string are the same to the format.
    """
    if not network.normalized:
        raise ValueError(
            "some rows of the network's tables sum to less than one; only JSON keeps such a network (to_json)"
        )
    names = distinct(network.dag.names, clean_name, fold)
    nodes = []
    for i, variable in enumerate(network.schema.variables):
        if not variable.levels:
            raise ValueError(f"{variable.name!r} has no levels; only JSON keeps such a variable (to_json)")
        levels = variable.levels if clean_level is None else _texts(variable, clean_level)
        carried = _carry(variable, i == 0, names[i], levels)
        parents = tuple(names[p] for p in network.dag.parents[i])
        nodes.append(Node(names[i], levels, parents, _probabilities(network.tables[i]), carried))
    return nodes


def distinct(texts: Iterable[str], clean: Clean, fold: Clean = str) -> list[str]:
    """Cleaned texts, no two the same: what is clean already stays, the rest is numbered where it collides."""
    texts = list(texts)
    cleaned = [clean(text) for text in texts]
    used: dict[str, int] = {}
    for i in sorted(range(len(texts)), key=lambda i: cleaned[i] != texts[i]):
        base = cleaned[i]
        while fold(cleaned[i]) in used:
            used[fold(base)] += 1
            cleaned[i] = f"{base}_{used[fold(base)]}"
        used[fold(cleaned[i])] = 1
    return cleaned


def _texts(variable: Variable, clean: Clean) -> tuple[str, ...]:
    return tuple(distinct(("missing" if level is None else str(level) for level in variable.levels), clean))


def _probabilities(logs: Floats) -> Floats:
    """exp(logs), as the shortest number whose logarithm is the same to the last bit, if there is one."""
    plain = np.exp(logs)
    rounded = np.array([float(f"{p:.15g}") for p in plain.ravel().tolist()]).reshape(plain.shape)
    with np.errstate(divide="ignore"):
        for candidate in (np.nextafter(plain, 1.0), np.nextafter(plain, 0.0), plain, rounded):
            plain = np.where(np.log(candidate) == logs, candidate, plain)
    return plain


def _carry(variable: Variable, is_target: bool, name: str, levels: tuple[Hashable, ...]) -> str | None:
    """What a foreign format would lose of a variable, in short words of harmless characters, or None."""
    entry = variable_to_dict(variable)
    if is_target:
        entry["target"] = True
    if entry == {"name": name, "levels": list(levels), "origin": "given"} and all(type(v) is str for v in levels):
        return None
    text = quote(json.dumps(entry, separators=(",", ":")), safe="[],:")
    return " ".join(text[i : i + CHUNK] for i in range(0, len(text), CHUNK))


# -- in


def assemble(
    nodes: Sequence[Node], target: str | None = None, clean_name: Clean = str, clean_level: Clean = str
) -> Network:
    """Network of foreign nodes, in their order but for the class, which comes first.

    The class is `target` if given, else the variable that carries the mark, else the first. Rows that sum to
    one within 1e-3 are scaled to do so; others are refused.
    """
    if not nodes:
        raise ValueError("there are no variables")
    restored = [_restore(node, clean_name, clean_level) for node in nodes]
    nodes, variables = _class_first(nodes, restored, target)
    index = {node.name: i for i, node in enumerate(nodes)}
    if len(index) < len(nodes):
        raise ValueError("two variables have the same name")
    parents = tuple(tuple(_known(index, p, node.name) for p in node.parents) for node in nodes)
    schema = Schema(tuple(variables))
    dag = Dag(schema.names, parents)
    tables = [_logs(i, variables, parents[i], node.probabilities) for i, node in enumerate(nodes)]
    return Network(schema, dag, tuple(tables))


def numbers(words: Sequence[str], what: str) -> list[float]:
    """Numbers of their decimal spellings; anything else, infinity and NaN included, is a ValueError."""
    for word in words:
        if not NUMBER.fullmatch(word):
            raise ValueError(f"{what}: {word[:30]!r} is not a number")
    return [float(word) for word in words]


def _restore(node: Node, clean_name: Clean, clean_level: Clean) -> tuple[Variable, bool]:
    """A node's variable as it was before it left, and whether it is marked as the class."""
    if node.carried is None:
        if not node.levels or len({*node.levels}) < len(node.levels):
            raise ValueError(f"{node.name!r} has no levels, or two that are equal")
        return Variable(node.name, node.levels, node.cuts), False
    entry = parse_document(unquote(re.sub(r"\s+", "", node.carried)).encode("utf-8", "replace"))
    is_target = isinstance(entry, dict) and entry.pop("target", False) is True
    variable = variable_from_dict(entry)
    # Other software may write the original names although the format has no way to quote them.
    known_levels = (variable.levels, _texts(variable, str), _texts(variable, clean_level))
    known_name = f"({re.escape(variable.name)}|{re.escape(clean_name(variable.name))})(_\\d+)?"
    if node.levels not in known_levels or not re.fullmatch(known_name, node.name):
        raise ValueError(
            f"{node.name!r} was renamed, or its levels changed, after marginbayes wrote it; "
            f"remove its property {KEY!r} to read it as it is now"
        )
    return variable, is_target


def _class_first(
    nodes: Sequence[Node], restored: Sequence[tuple[Variable, bool]], target: str | None
) -> tuple[list[Node], list[Variable]]:
    marked = [i for i, (_, is_target) in enumerate(restored) if is_target]
    if target is not None:
        marked = [i for i, (variable, _) in enumerate(restored) if variable.name == target]
        if not marked:
            raise ValueError(
                f"there is no variable {target!r}; there are {', '.join(repr(v.name) for v, _ in restored)}"
            )
    if len(marked) > 1:
        raise ValueError(f"{nodes[marked[0]].name!r} and {nodes[marked[1]].name!r} are both marked as the class")
    order = sorted(range(len(nodes)), key=lambda i: i not in marked)
    return [nodes[i] for i in order], [restored[i][0] for i in order]


def _known(index: Mapping[str, int], parent: str, child: str) -> int:
    if parent not in index:
        raise ValueError(f"{child!r} has the parent {parent!r}, which is not a variable")
    return index[parent]


def _logs(i: int, variables: Sequence[Variable], parents: Sequence[int], probabilities: Floats) -> Floats:
    name = variables[i].name
    shape = (*(variables[p].cardinality for p in parents), variables[i].cardinality)
    if probabilities.shape != shape:
        raise ValueError(f"the table of {name!r} has the shape {probabilities.shape}, but its family needs {shape}")
    total = probabilities.sum(axis=-1, keepdims=True)
    wrong = ~(np.abs(total - 1.0) <= ROW_SLACK) | ~(probabilities >= 0.0).all(axis=-1, keepdims=True)
    if wrong.any():
        at = np.unravel_index(int(np.argmax(wrong)), shape[:-1]) if parents else ()
        given = [f"{variables[p].name}={variables[p].levels[j]!r}" for p, j in zip(parents, at, strict=True)]
        row = " | ".join([name, ", ".join(given)] if given else [name])
        values = probabilities[tuple(at)]
        raise ValueError(f"P({row}) is {values.tolist()}: not probabilities, or their sum {values.sum():g} is not one")
    # Rows that are right are left alone, so that what was written here comes back as it was.
    scaled = np.where(np.abs(total - 1.0) > ROW_EXACT, probabilities / total, probabilities)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(scaled))


# -- pgmpy


def to_pgmpy(network: Network) -> Any:
    """pgmpy's DiscreteBayesianNetwork with the same variables, levels and tables."""
    models = _library("pgmpy.models", "pgmpy")
    tables = _library("pgmpy.factors.discrete", "pgmpy")
    nodes = to_nodes(network, clean_level=None)
    levels = {node.name: list(node.levels) for node in nodes}
    model = models.DiscreteBayesianNetwork()
    model.add_nodes_from([node.name for node in nodes])
    model.add_edges_from([(parent, node.name) for node in nodes for parent in node.parents])
    for node in nodes:
        if node.carried is not None:
            model.nodes[node.name][KEY] = node.carried
        family = (node.name, *node.parents)
        model.add_cpds(
            tables.TabularCPD(
                node.name,
                len(node.levels),
                node.probabilities.reshape(-1, len(node.levels)).T,
                evidence=list(node.parents),
                evidence_card=[len(levels[p]) for p in node.parents],
                state_names={member: levels[member] for member in family},
            )
        )
    return model


def from_pgmpy(model: Any, target: str | None = None) -> Network:
    """Network of a pgmpy model with tables.

    The class is `target` if given, else the variable that was the class before `to_pgmpy`, else the first.
    """
    if not hasattr(model, "get_cpds") or not hasattr(model, "nodes"):
        raise TypeError(f"from_pgmpy takes a DiscreteBayesianNetwork of pgmpy, not a {type(model).__name__}")
    tables = {name: model.get_cpds(name) for name in model.nodes}
    for name, table in tables.items():
        if table is None:
            raise ValueError(f"{name!r} has no table in the pgmpy model; fit it, or add one with add_cpds")
    nodes = []
    for name, table in tables.items():
        parents = list(table.variables[1:])
        # The table lists a parent's levels in an order of its own.
        at = [_positions(table.state_names[p], tables[p].state_names[p], p, name) for p in parents]
        values = np.moveaxis(np.asarray(table.values, np.float64), 0, -1)
        values = values[np.ix_(*at, range(values.shape[-1]))]
        levels = tuple(_python(v) for v in table.state_names[name])
        nodes.append(Node(str(name), levels, tuple(map(str, parents)), values, model.nodes[name].get(KEY)))
    return assemble(nodes, target)


def _positions(listed: Sequence[Any], own: Sequence[Any], parent: object, child: object) -> list[int]:
    if len(listed) != len(own) or {*listed} != {*own}:
        raise ValueError(
            f"the pgmpy table of {child!r} has other levels for its parent {parent!r} than {parent!r} itself"
        )
    return [list(listed).index(level) for level in own]


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# -- pyAgrum


def to_pyagrum(network: Network) -> Any:
    """pyAgrum's BayesNet with the same variables and tables; a level is its text."""
    gum = _library("pyagrum", "pyagrum")
    nodes = to_nodes(network, _pyagrum_text, _pyagrum_text)
    bn = gum.BayesNet()
    for node in nodes:
        bn.add(gum.LabelizedVariable(node.name, "", list(node.levels)))
        if node.carried is not None:
            bn.setProperty(f"{KEY}:{node.name}", node.carried)
    for node in nodes:
        for parent in node.parents:
            bn.addArc(parent, node.name)
        bn.cpt(node.name).fillWith(_reversed_parents(node.probabilities).ravel().tolist())
    return bn


def from_pyagrum(bn: Any, target: str | None = None) -> Network:
    """Network of a pyAgrum BayesNet.

    The class is `target` if given, else the variable that was the class before `to_pyagrum`, else the first.
    """
    if not hasattr(bn, "cpt") or not hasattr(bn, "variable"):
        raise TypeError(f"from_pyagrum takes a pyagrum.BayesNet, not a {type(bn).__name__}")
    gum = _library("pyagrum", "pyagrum")
    nodes = []
    for i in sorted(bn.nodes()):
        variable, table = bn.variable(i), bn.cpt(i)
        name, parents = variable.name(), tuple(table.names[1:])
        values = _reversed_parents(np.asarray(table.toarray(), np.float64))
        carried = bn.propertyWithDefault(f"{KEY}:{name}", "") or None
        levels, cuts = _pyagrum_levels(variable, gum)
        nodes.append(Node(name, levels, parents, values, carried, cuts))
    return assemble(nodes, target, _pyagrum_text, _pyagrum_text)


def _pyagrum_text(text: str) -> str:
    # C++ ends a string at a zero byte, and half of a surrogate pair crashes the process.
    return re.sub("[\x00\ud800-\udfff]", "_", text)


def _pyagrum_levels(variable: Any, gum: Any) -> tuple[tuple[Hashable, ...], tuple[float, ...] | None]:
    """Levels with the type that pyAgrum's kind of variable has, and the cuts of a discretised one."""
    kind, labels = variable.varType(), tuple(variable.labels())
    if kind in (gum.VarType_INTEGER, gum.VarType_RANGE):
        return tuple(int(label) for label in labels), None
    if kind == gum.VarType_NUMERICAL:
        return tuple(float(variable.numerical(i)) for i in range(len(labels))), None
    if kind == gum.VarType_DISCRETIZED:
        # pyAgrum's intervals hold their lower end, ours the upper one.
        inner = variable.asDiscretizedVar().ticks()[1:-1]
        return labels, tuple(math.nextafter(tick, -math.inf) for tick in inner)
    return labels, None


def _reversed_parents(table: Floats) -> Floats:
    """A table with the parents' axes in reverse: in pyAgrum the first axis runs fastest, here the last."""
    last = table.ndim - 1
    return table.transpose([*reversed(range(last)), last])


def _library(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {package} ({error}); install it with: pip install {package}") from error
