"""Networks as BIF, the interchange format of bnlearn, pgmpy and pyAgrum.

The dialects differ: names quoted or bare (bare ones with blanks inside, too), lists with and without commas,
probability blocks before or after the variables, rows by the parents' levels or one table, a default for the
rows not listed. All are read. What is written is what both pgmpy and pyAgrum read: names of ASCII letters,
digits and ``_.-``, which differ by more than case, are no keywords and not too long. Only a variable of one level,
which is what becomes of a number that tells nothing, is too few for pyAgrum in BIF; it reads it from XMLBIF.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from marginbayes.network.interop import KEY, MOST_PARENTS, ROW_SLACK, Node, assemble, numbers, to_nodes
from marginbayes.network.json import decode, read_source
from marginbayes.network.network import Network
from marginbayes.writing import write_text

__all__ = ["read_bif", "write_bif"]

KEYWORDS = {"default", "discrete", "network", "probability", "property", "table", "type", "variable"}
LONGEST_NAME = 60
# A default can ask for far larger tables than the file spells out.
MOST_DEFAULT_CELLS = 1 << 24

Floats = NDArray[np.float64]


def write_bif(network: Network, path: str | os.PathLike[str] | None = None) -> str:
    """BIF text of a network; also written to `path` if one is given, whole or not at all."""
    nodes = to_nodes(network, _clean_name, _clean_level, fold=str.lower)
    levels = {node.name: node.levels for node in nodes}
    blocks = ["network marginbayes {\n}\n"]
    blocks += [_variable_block(node) for node in nodes]
    blocks += [_probability_block(node, levels) for node in nodes]
    text = "".join(blocks)
    if path is not None:
        write_text(path, text)
    return text


def read_bif(source: str | os.PathLike[str], target: str | None = None) -> Network:
    """Network of a BIF file, or of BIF text (a str of several lines).

    The class is `target` if given, else the variable that was the class when marginbayes wrote the file, else
    the first.
    """
    return read_source(source, lambda text: "\n" in text, lambda content: _network(decode(content), target))


# -- out


def _clean_name(text: str) -> str:
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "_", text)
    # pgmpy takes "table" and what follows for a row even inside a name, such as table1 or defaulted.
    clean = re.sub(r"(table|default)(?=[0-9eE.-])", r"\1_", clean)[:LONGEST_NAME]
    return clean if re.match("[A-Za-z_]", clean) and clean not in KEYWORDS else f"_{clean}"


def _clean_level(text: str) -> str:
    return text if re.fullmatch(f"-?[0-9]{{1,{LONGEST_NAME}}}", text) else _clean_name(text)


def _variable_block(node: Node) -> str:
    carried = "" if node.carried is None else f"  property {KEY} = {node.carried} ;\n"
    states = ", ".join(map(str, node.levels))
    return f"variable {node.name} {{\n  type discrete [ {len(node.levels)} ] {{ {states} }};\n{carried}}}\n"


def _probability_block(node: Node, levels: Mapping[str, Sequence[object]]) -> str:
    rows = [", ".join(map(repr, row)) for row in node.probabilities.reshape(-1, len(node.levels)).tolist()]
    if not node.parents:
        return f"probability ( {node.name} ) {{\n  table {rows[0]};\n}}\n"
    cells = np.ndindex(node.probabilities.shape[:-1])
    keys = (", ".join(str(levels[p][j]) for p, j in zip(node.parents, at, strict=True)) for at in cells)
    lines = "".join(f"  ({key}) {row};\n" for key, row in zip(keys, rows, strict=True))
    return f"probability ( {node.name} | {', '.join(node.parents)} ) {{\n{lines}}}\n"


# -- in: from text to blocks


@dataclass
class _Table:
    """A probability block as it stands in the text."""

    child: str
    parents: str | None
    rows: list[tuple[str, str]] = field(default_factory=list)  # levels of the parents, numbers
    whole: dict[str, str] = field(default_factory=dict)  # the numbers of "table" and of "default"


@dataclass
class _Blocks:
    """Everything a file says, names and numbers not yet matched to each other: blocks come in any order."""

    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    carried: dict[str, str] = field(default_factory=dict)
    tables: list[_Table] = field(default_factory=list)


@dataclass
class _Scanner:
    """A position in a text without comments; whatever it can't find is an error with its line."""

    text: str
    at: int = 0

    def take(self, pattern: str, what: str) -> re.Match[str]:
        found = re.compile(r"\s*" + pattern).match(self.text, self.at)
        if found is None:
            rest = self.text[self.at :].lstrip()
            line = self.text.count("\n", 0, len(self.text) - len(rest)) + 1
            seen = repr(rest.split(None, 1)[0][:30]) if rest else "the end of the file"
            raise ValueError(f"line {line}: {what} expected, not {seen}")
        self.at = found.end()
        return found

    def statements(self, keywords: str) -> Iterator[str]:
        """The keyword of each statement up to a block's closing brace; the caller takes the rest of it."""
        while (found := self.take(rf"({keywords}|\}})", "a statement or }")[1]) != "}":
            yield found


def _until(stop: str) -> str:
    """Pattern of text up to a delimiter, in which quoted strings may hold anything."""
    return rf'((?:"[^"]*"|[^"{stop}])*)'


def _blocks(text: str) -> _Blocks:
    scan = _Scanner(re.sub(r'"[^"]*"|/\*.*?\*/|//[^\n]*', _without_comment, text, flags=re.DOTALL))
    blocks = _Blocks()
    while not re.compile(r"\s*\Z").match(scan.text, scan.at):
        keyword = scan.take(r"(network|variable|probability)\b", "a network, variable or probability block")[1]
        if keyword == "network":
            scan.take(_until("{}") + r"\{", "the network's name and {")
            for _ in scan.statements(r"property\b"):
                scan.take(_until(";") + ";", "; after the property")
        elif keyword == "variable":
            _read_variable(scan, blocks)
        else:
            blocks.tables.append(_read_probability(scan))
    return blocks


def _without_comment(found: re.Match[str]) -> str:
    # The line breaks stay, for the line numbers of messages.
    return found[0] if found[0].startswith('"') else " " + "\n" * found[0].count("\n")


def _read_variable(scan: _Scanner, blocks: _Blocks) -> None:
    name = _unquoted(scan.take(_until("{}") + r"\{", "a variable's name and {")[1])
    if name in blocks.levels:
        raise ValueError(f"two variables are called {name!r}")
    for keyword in scan.statements(r"type\b|property\b"):
        if keyword == "property":
            key, _, value = _unquoted(scan.take(_until(";") + ";", "; after the property")[1]).partition("=")
            if key.strip() == KEY:
                blocks.carried[name] = value.strip()
            continue
        declared = scan.take(
            r"discrete\s*\[\s*([0-9]{1,9})\s*\]\s*\{" + _until("}") + r"\}\s*;?",
            "discrete [ number ] { levels };",
        )
        blocks.levels[name] = _listed(declared[2], int(declared[1]), f"the levels of {name!r}")
    if name not in blocks.levels:
        raise ValueError(f"{name!r} has no type")


def _read_probability(scan: _Scanner) -> _Table:
    header = scan.take(r"\(" + _until("|()") + r"(?:\|" + _until("()") + r")?\)\s*\{", "( variable | parents ) {")
    table = _Table(header[1], header[2])
    for keyword in scan.statements(r"table\b|default\b|property\b|\("):
        if keyword == "(":
            row = scan.take(_until(")") + r"\)([^;{}]*);", "levels in parentheses, numbers and ;")
            table.rows.append((row[1], row[2]))
        elif keyword == "property":
            scan.take(_until(";") + ";", "; after the property")
        elif keyword in table.whole:
            raise ValueError(f"the probabilities of {_unquoted(table.child)!r} have two entries {keyword!r}")
        else:
            table.whole[keyword] = scan.take("([^;{}]*);", "numbers and ;")[1]
    return table


# -- in: from blocks to nodes


def _network(text: str, target: str | None) -> Network:
    blocks = _blocks(text)
    nodes: dict[str, Node] = {}
    spare = MOST_DEFAULT_CELLS
    for table in blocks.tables:
        name, parents = _family(table, blocks.levels)
        if name in nodes:
            raise ValueError(f"{name!r} has two probability blocks")
        if len(parents) > MOST_PARENTS:
            raise ValueError(f"{name!r} has {len(parents)} parents; the most is {MOST_PARENTS}")
        family = [blocks.levels[member] for member in (*parents, name)]
        if "default" in table.whole:
            spare -= math.prod(map(len, family))
            if spare < 0:
                raise ValueError(f"the default entry of {name!r} asks for too large a table")
        nodes[name] = Node(name, family[-1], parents, _probabilities(name, table, family), blocks.carried.get(name))
    for name in blocks.levels:
        if name not in nodes:
            raise ValueError(f"{name!r} has no probability block")
    return assemble([nodes[name] for name in blocks.levels], target, _clean_name, _clean_level)


def _family(table: _Table, known: Mapping[str, object]) -> tuple[str, tuple[str, ...]]:
    """Names of a table's variable and parents; without a bar the first of several names is the variable."""
    first = _names(table.child, known)
    if table.parents is None:
        return first[0], tuple(first[1:])
    if len(first) > 1:
        raise ValueError(f"a probability block has {len(first)} variables before the bar: {', '.join(first)}")
    return first[0], tuple(_names(table.parents, known)) if table.parents.strip() else ()


def _names(text: str, known: Mapping[str, object]) -> list[str]:
    for names in _split(text):
        if names and all(name in known for name in names):
            return names
    raise ValueError(f"a probability block names {text.strip()!r}, which is not a variable")


def _probabilities(name: str, table: _Table, family: Sequence[Sequence[str]]) -> Floats:
    shape = tuple(map(len, family))
    if "table" not in table.whole:
        return _from_rows(name, table, family)
    if table.rows or "default" in table.whole:
        raise ValueError(f"the probabilities of {name!r} are given twice, by a table and by rows")
    values = np.array(_numbers(name, table.whole["table"], math.prod(shape)))
    # The format's own order: the variable's level changes slowest. Some writers let it change fastest.
    spelled = np.moveaxis(values.reshape(shape[-1], *shape[:-1]), 0, -1)
    swapped = values.reshape(shape)
    return swapped if _sums_to_one(swapped) and not _sums_to_one(spelled) else spelled


def _sums_to_one(table: Floats) -> bool:
    return bool((np.abs(table.sum(axis=-1) - 1.0) <= ROW_SLACK).all())


def _from_rows(name: str, table: _Table, family: Sequence[Sequence[str]]) -> Floats:
    index = [{level: j for j, level in enumerate(levels)} for levels in family[:-1]]
    found: dict[tuple[int, ...], list[float]] = {}
    for key, text in table.rows:
        at = _row_index(name, key, index)
        if at in found:
            raise ValueError(f"the row ({key.strip()}) of {name!r} is given twice")
        found[at] = _numbers(name, text, len(family[-1]))
    if "default" in table.whole:
        default = _numbers(name, table.whole["default"], len(family[-1]))
        values = [found.get(at, default) for at in product(*(range(len(levels)) for levels in family[:-1]))]
    else:
        values = _complete(name, found, family)
    return np.array(values).reshape([len(levels) for levels in family])


def _complete(
    name: str, found: Mapping[tuple[int, ...], list[float]], family: Sequence[Sequence[str]]
) -> list[list[float]]:
    values = []
    # Ends at the first row that is missing, so that a file can't ask for more rows than it holds.
    for at in product(*(range(len(levels)) for levels in family[:-1])):
        if at not in found:
            row = ", ".join(levels[j] for levels, j in zip(family[:-1], at, strict=True))
            raise ValueError(f"the probabilities of {name!r} have no row ({row}) and no default")
        values.append(found[at])
    return values


def _row_index(name: str, key: str, index: Sequence[Mapping[str, int]]) -> tuple[int, ...]:
    for levels in _split(key):
        if len(levels) == len(index) and all(level in known for level, known in zip(levels, index, strict=True)):
            return tuple(known[level] for level, known in zip(levels, index, strict=True))
    raise ValueError(f"the row ({key.strip()}) of {name!r} does not name one level of each of its {len(index)} parents")


def _numbers(name: str, text: str, count: int) -> list[float]:
    values = numbers(text.replace(",", " ").split(), f"the probabilities of {name!r}")
    if len(values) != count:
        raise ValueError(f"the probabilities of {name!r} have {len(values)} numbers where {count} are due")
    return values


# -- in: lists


def _listed(text: str, count: int, what: str) -> tuple[str, ...]:
    for items in _split(text):
        if len(items) == count:
            return tuple(items)
    raise ValueError(f"{what} should be {count}, not {{{text.strip()}}}")


def _split(text: str) -> tuple[list[str], list[str]]:
    """Items of a list, first as commas separate them (blanks inside), then as blanks and quotes do."""
    parts = [_unquoted(part) for part in re.findall(r'(?:"[^"]*"|[^",])+|(?<=,)(?=,|\Z)|\A(?=,)', text)]
    words = [_unquoted(word) for word in re.findall(r'"[^"]*"|[^\s,"]+', text)]
    return parts, words


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if re.fullmatch('"[^"]*"', text) else text
