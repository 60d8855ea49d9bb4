"""Networks as JSON: readable, bit-exact, and safe to load from anywhere.

Every number is written with the fewest digits that read back to the same bits; log 0 is ``"-inf"``, a string,
since JSON has no infinity. Whatever is wrong with a file that is read: one `ValueError` says so and names it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.schema import Schema, Variable
from marginbayes.graph import Dag
from marginbayes.network.network import Network
from marginbayes.writing import write_text

__all__ = [
    "check_header",
    "decode",
    "format_document",
    "network_from_dict",
    "network_to_dict",
    "parse_document",
    "read_document",
    "read_json",
    "read_source",
    "schema_from_dict",
    "schema_to_dict",
    "variable_from_dict",
    "variable_to_dict",
    "write_json",
]

FORMAT, VERSION = "marginbayes.network", 1
LINE = 110
# A hostile file's names can be of any length; a message that quotes them can't.
MESSAGE = 500
# Integers up to here are floats too.
LARGEST_INTEGER = 1 << 53
# NumPy's own limit on the axes of an array.
MOST_PARENTS = 63

T = TypeVar("T")
Floats = NDArray[np.float64]


# -- networks


def write_json(network: Network, path: str | os.PathLike[str] | None = None) -> str:
    """JSON text of a network; also written to `path` if one is given, whole or not at all."""
    text = format_document(network_to_dict(network))
    if path is not None:
        write_text(path, text)
    return text


def read_json(source: str | os.PathLike[str]) -> Network:
    """Network of a JSON file, or of JSON text (a str that starts with a brace)."""
    return read_document(source, network_from_dict)


def network_to_dict(network: Network) -> dict[str, Any]:
    """A network as nothing but dicts, lists, strings and numbers that JSON can hold."""
    names = network.dag.names
    return {
        "format": FORMAT,
        "version": VERSION,
        **schema_to_dict(network.schema),
        "tables": [
            {"variable": name, "parents": [names[p] for p in parents], "log_probabilities": _rows_of(table)}
            for name, parents, table in zip(names, network.dag.parents, network.tables, strict=True)
        ],
    }


def network_from_dict(document: Any) -> Network:
    """The network that `network_to_dict` described; anything amiss is a ValueError."""
    check_header(document, FORMAT, VERSION)
    _check_keys(document, "the network", ("format", "version", "variables", "tables"))
    schema = schema_from_dict({"variables": document["variables"]})
    entries = _list(document["tables"], "the tables")
    if len(entries) != len(schema.names):
        raise ValueError(f"there are {len(schema.names)} variables but {len(entries)} tables")
    index = {name: i for i, name in enumerate(schema.names)}
    parents = [_parents(entry, name, index) for entry, name in zip(entries, schema.names, strict=True)]
    dag = Dag(schema.names, tuple(parents))
    cards = schema.cardinalities
    tables = [
        _table(entry["log_probabilities"], name, (*(cards[p] for p in pa), cards[index[name]]))
        for entry, name, pa in zip(entries, schema.names, parents, strict=True)
    ]
    return Network(schema, dag, tuple(tables))


def _parents(entry: Any, name: str, index: Mapping[str, int]) -> tuple[int, ...]:
    _check_keys(entry, f"the table of {name!r}", ("variable", "parents", "log_probabilities"))
    if entry["variable"] != name:
        raise ValueError(
            f"the tables are not in the variables' order: {name!r} is due, not {_shown(entry['variable'])}"
        )
    parents = _list(entry["parents"], f"the parents of {name!r}")
    for parent in parents:
        if not isinstance(parent, str) or parent not in index:
            raise ValueError(f"{name!r} has the parent {_shown(parent)}, which is not a variable")
    return tuple(index[parent] for parent in parents)


def _rows_of(table: Floats) -> list[list[float | str]]:
    rows = table.reshape(math.prod(table.shape[:-1]), table.shape[-1]).tolist()
    return [["-inf" if value == -math.inf else value for value in row] for row in rows]


def _table(rows: Any, name: str, shape: tuple[int, ...]) -> Floats:
    if len(shape) > MOST_PARENTS + 1:
        raise ValueError(f"{name!r} has {len(shape) - 1} parents; the most is {MOST_PARENTS}")
    # Compared before anything is allocated: what a file declares may be larger than any memory.
    count = math.prod(shape[:-1])
    if len(_list(rows, f"the table of {name!r}")) != count:
        raise ValueError(f"the table of {name!r} has {len(rows)} rows where its parents' levels make {_shown(count)}")
    for row in rows:
        if len(_list(row, f"a row of the table of {name!r}")) != shape[-1]:
            raise ValueError(f"the table of {name!r} has a row of {len(row)} numbers where {shape[-1]} are due")
    values = [-math.inf if v == "-inf" else _number(v, f"the table of {name!r}") for row in rows for v in row]
    return np.array(values, np.float64).reshape(shape)


# -- schemas


def schema_to_dict(schema: Schema) -> dict[str, Any]:
    """A schema as nothing but dicts, lists, strings and numbers that JSON can hold."""
    return {"variables": [variable_to_dict(variable) for variable in schema.variables]}


def schema_from_dict(document: Any) -> Schema:
    """The schema that `schema_to_dict` described; anything amiss is a ValueError."""
    _check_keys(document, "the schema", ("variables",))
    variables = [variable_from_dict(entry) for entry in _list(document["variables"], "the variables")]
    if not variables:
        raise ValueError("there are no variables")
    return Schema(tuple(variables))


def variable_to_dict(variable: Variable) -> dict[str, Any]:
    """A variable as a dict that JSON can hold; levels other than str, int, float, bool, None are refused."""
    if variable.transformer is not None:
        raise ValueError(
            f"{variable.name!r} is discretised by a {type(variable.transformer).__name__}, which a file cannot hold; "
            'use discretizer="mdlp", or a discretizer with cut points'
        )
    entry: dict[str, Any] = {
        "name": variable.name,
        "levels": [_plain(v, variable.name) for v in variable.levels],
    }
    if variable.cuts is not None:
        entry["cuts"] = [float(cut) for cut in variable.cuts]
    entry["origin"] = variable.origin
    if variable.shares is not None:
        entry["shares"] = list(variable.shares)
    variable_from_dict(entry)  # what is written can be read
    return entry


def variable_from_dict(entry: Any) -> Variable:
    """The variable that `variable_to_dict` described; anything amiss is a ValueError."""
    _check_keys(entry, "a variable", ("name", "levels"), optional=("cuts", "origin", "shares"))
    name, origin = entry["name"], entry.get("origin", "given")
    if not isinstance(name, str) or not isinstance(origin, str):
        raise ValueError(f"a variable's name and origin are strings, not {_shown(name)} and {_shown(origin)}")
    levels = _list(entry["levels"], f"the levels of {name!r}")
    for level in levels:
        if not _is_plain(level):
            raise ValueError(
                f"{name!r} has the level {_shown(level)}; it takes strings, finite numbers, booleans or null"
            )
    if len(set(levels)) < len(levels):
        raise ValueError(f"{name!r} has two equal levels (1, 1.0 and true are equal)")
    shares = _shares(entry.get("shares"), name, levels)
    return Variable(name, tuple(levels), _cuts(entry.get("cuts"), name, levels), origin, shares=shares)


def _shares(shares: Any, name: str, levels: list[Any]) -> tuple[float, ...] | None:
    if shares is None:
        return None
    known = isinstance(shares, list) and len(shares) == len(levels) and all(_is_share(s) for s in shares)
    if not known or abs(sum(shares) - 1.0) > 1e-6:
        raise ValueError(f"the shares of {name!r} are not one number for each level that sum to one: {_shown(shares)}")
    return tuple(float(s) for s in shares)


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _cuts(cuts: Any, name: str, levels: list[Any]) -> tuple[float, ...] | None:
    if cuts is None:
        return None
    numbers = tuple(_number(cut, f"the cuts of {name!r}") for cut in _list(cuts, f"the cuts of {name!r}"))
    if any(a >= b for a, b in pairwise(numbers)):
        raise ValueError(f"the cuts of {name!r} do not increase")
    intervals = len(levels) - (levels[-1:] == [None])
    if intervals != len(numbers) + 1:
        raise ValueError(f"{name!r} has {intervals} levels, but its {len(numbers)} cuts make {len(numbers) + 1}")
    return numbers


def _plain(level: Hashable, name: str) -> Any:
    """A level as Python's own type; NumPy's scalars are equal to it."""
    value = level.item() if isinstance(level, np.generic) else level
    if not _is_plain(value):
        raise ValueError(
            f"{name!r} has the level {level!r} of type {type(level).__name__}, which a file cannot hold; "
            "convert the column to strings, numbers or booleans before fitting"
        )
    return value


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


# -- documents: files of one JSON object


def read_document(source: str | os.PathLike[str], build: Callable[[Any], T]) -> T:
    """What `build` makes of a JSON file (or of JSON text); a ValueError names the file."""
    return read_source(
        source, lambda text: text.lstrip().startswith("{"), lambda content: build(parse_document(content))
    )


def read_source(source: str | os.PathLike[str], is_text: Callable[[str], bool], build: Callable[[bytes], T]) -> T:
    """What `build` makes of a file's bytes, or of a source that is text itself; a ValueError names it."""
    given = isinstance(source, str) and is_text(source)
    content = str(source).encode("utf-8", "surrogatepass") if given else Path(source).read_bytes()
    try:
        return build(content)
    except ValueError as error:
        label = "the text" if given else os.fspath(source)
        raise ValueError(f"cannot read {label}: {str(error)[:MESSAGE]}") from None


def decode(content: bytes) -> str:
    """Text of UTF-8 bytes, with or without a byte order mark; anything else is a ValueError."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text (byte {error.start})") from None


def parse_document(content: bytes) -> Any:
    """Value of strict JSON: no NaN, no Infinity, no name twice in an object; else a ValueError."""
    text = decode(content)
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON, or cut short ({error})") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def check_header(document: Any, format: str, newest: int) -> int:
    """Version of a document, after checking that it has this format and a version that is known."""
    if not isinstance(document, dict) or document.get("format") != format:
        raise ValueError(f'not a {format} file (it has no "format": "{format}")')
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"the version is {_shown(version)}, not a positive whole number")
    if version > newest:
        raise ValueError(
            f"it has version {_shown(version)}, this marginbayes reads up to {newest}; upgrade marginbayes"
        )
    return version


def format_document(value: Any) -> str:
    """JSON text of a value, a line for each list of plain values (a row of a table) and each short object."""
    return _formatted(value, "") + "\n"


def _formatted(value: Any, indent: str) -> str:
    if not isinstance(value, (dict, list)):
        return _scalar(value)
    line = None if _holds_rows(value) else _one_line(value)
    if line is not None and (len(indent) + len(line) < LINE or isinstance(value, list)):
        return line
    inner = indent + "  "
    parts = (
        (f"{_scalar(k)}: {_formatted(v, inner)}" for k, v in value.items())
        if isinstance(value, dict)
        else (_formatted(v, inner) for v in value)
    )
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "\n" + ",\n".join(inner + part for part in parts) + "\n" + indent + closing


def _holds_rows(value: Any) -> bool:
    """Whether a list holds lists or dicts, or a dict holds dicts or such lists: it takes several lines."""
    if isinstance(value, list):
        return any(isinstance(v, (dict, list)) for v in value)
    return any(isinstance(v, dict) or (isinstance(v, list) and _holds_rows(v)) for v in value.values())


def _one_line(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(k)}: {_one_line(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_one_line, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    # Half of a surrogate pair cannot be written as UTF-8: only such a string is escaped.
    escape = isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)
    return json.dumps(value, ensure_ascii=escape, allow_nan=False)


# -- checks


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"not valid JSON: {name} is not a number")


def _distinct(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"an object has {_shown(key)} twice")
        found[key] = value
    return found


def _check_keys(entry: Any, what: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    if not isinstance(entry, dict):
        raise ValueError(f"{what} is not an object but {_shown(entry)}")
    for key in required:
        if key not in entry:
            raise ValueError(f'{what} has no "{key}"')
    for key in entry:
        if key not in required and key not in optional:
            raise ValueError(f"{what} has {_shown(key)}, which is unknown")


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} should be a list, not {_shown(value)}")
    return value


def _number(value: Any, what: str) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and abs(value) <= LARGEST_INTEGER:
        return float(value)
    raise ValueError(f"{_shown(value)} in {what} is not a finite number")


def _shown(value: object, most: int = 60) -> str:
    """A value for a message, cut short; never the whole of what a hostile file holds."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "a huge number"
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."
