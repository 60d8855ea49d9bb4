"""JSON files: bit-exact out and in, and nothing but a ValueError for whatever is wrong."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
import os
import stat
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marginbayes.data import Schema, Variable
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.network.json import (
    format_document,
    network_from_dict,
    network_to_dict,
    read_document,
    schema_from_dict,
    schema_to_dict,
)
from marginbayes.writing import write_text

FUZZ = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# fmt: off
AWKWARD = [
    "", " ", " a ", "a b", "a  b", "a,b", '"', "'", '"q"', "a|b", "{", "}", "(x)", "[0;1[", ";", "a;b", "#",
    "\\", "é", "e\u0301", "温度", "😀", "\u00a0", "\u2028", "1st", "007", "-1", "1", "1.0", "1e5", "-", "+",
    ".", "x.", "<&>", "&#65;", "&amp;", "]]>", "<!--", "%20", "a=b", "=", "//", "/* x */", "http://x", "\n",
    "\t", "\r\n", "\x00", "\x1f", "\x7f", "\ud800", "\ufffe", "True", "None", "nan", "missing", "missing_2",
    "_", "_2", "__", "A", "a", "a_b", "a_2", "table", "Table", "default", "variable", "probability",
    "property", "x" * 300, "table1", "defaulted", "my table-2", "default 0.5", "property_type", "variables", "type",
]
# fmt: on


def random_network(rng: np.random.Generator, n: int = 6, most_parents: int = 3, most_levels: int = 4) -> Network:
    """A network with a random order, random parents and Dirichlet rows."""
    order = rng.permutation(n)
    parents: list[tuple[int, ...]] = [()] * n
    for place, i in enumerate(order):
        count = min(place, int(rng.integers(0, most_parents + 1)))
        parents[i] = tuple(int(p) for p in rng.choice(order[:place], count, replace=False))
    cards = [int(c) for c in rng.integers(2, most_levels + 1, n)]
    variables = [Variable(f"v{i}", tuple(f"s{j}" for j in range(c))) for i, c in enumerate(cards)]
    return build(variables, parents, rng)


def build(variables: list[Variable], parents: list[tuple[int, ...]], rng: np.random.Generator) -> Network:
    """A network of given variables and parents with random rows, some entries zero and some tiny."""
    cards = [v.cardinality for v in variables]
    tables = []
    for i, pa in enumerate(parents):
        rows = rng.dirichlet(np.full(cards[i], 0.4), size=tuple(cards[p] for p in pa))
        rows[rng.random(rows.shape) < 0.1] = 0.0
        rows[..., 0] += 1e-9
        with np.errstate(divide="ignore"):
            tables.append(np.log(rows / rows.sum(axis=-1, keepdims=True)))
    schema = Schema(tuple(variables))
    return Network(schema, Dag(schema.names, tuple(parents)), tuple(tables))


@st.composite
def awkward_networks(draw: st.DrawFn, fewest_levels: int = 1) -> Network:
    """Networks whose names and levels are what files stumble over."""
    texts = st.sampled_from(AWKWARD) | st.text(max_size=8)
    names = draw(st.lists(texts, min_size=1, max_size=5, unique=True))
    plain = texts | st.integers(-3, 3) | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False)
    variables = []
    for name in names:
        if draw(st.booleans()):
            levels = draw(st.lists(plain, min_size=fewest_levels, max_size=4, unique=True))
            variables.append(Variable(name, tuple(levels), origin=draw(st.sampled_from(["given", "dtype", "é;="]))))
        else:
            cuts = sorted(
                draw(st.lists(st.floats(-1e9, 1e9), min_size=max(0, fewest_levels - 1), max_size=3, unique=True))
            )
            levels = [f"level {i}, <= {c!r}" for i, c in enumerate([*cuts, math.inf])]
            levels += draw(st.sampled_from([[], [None]]))
            variables.append(Variable(name, tuple(levels), tuple(cuts), "discretised"))
    parents = [
        tuple(draw(st.lists(st.sampled_from(range(i)), max_size=2, unique=True))) if i else ()
        for i in range(len(names))
    ]
    return build(variables, parents, np.random.default_rng(draw(st.integers(0, 2**32))))


def same_types(a: Network, b: Network) -> bool:
    """Whether levels have the same types and tables the same bits; to == 1 is True, and 0.0 is -0.0."""
    levels = [[[(type(v), v) for v in x.levels] for x in net.schema.variables] for net in (a, b)]
    return levels[0] == levels[1] and all(x.tobytes() == y.tobytes() for x, y in zip(a.tables, b.tables, strict=True))


@pytest.fixture
def network() -> Network:
    rng = np.random.default_rng(5)
    variables = [
        Variable("class", (False, True), origin="dtype"),
        Variable("größe", ("≤ 2.5", "> 2.5", None), (2.5,), "discretised"),
        Variable("count", (0, 1, 7)),
        Variable("ratio", (0.5, 1.5)),
    ]
    return build(variables, [(), (0,), (0, 1), (2,)], rng)


# -- what comes back


@FUZZ
@given(awkward_networks())
def test_a_network_comes_back_from_json_bit_for_bit_with_its_types(net: Network) -> None:
    back = Network.from_json(net.to_json())
    assert back == net
    assert same_types(back, net)


def test_log_tables_of_every_magnitude_come_back_bit_for_bit() -> None:
    logs = np.array([-np.inf, -1e308, -745.2, -1.5, -1e-300, -5e-324, -0.0])
    tables = [np.stack([logs, np.full_like(logs, -np.inf)], axis=-1), np.log([[0.3, 0.7]] * 1)[0]]
    schema = Schema((Variable("x", tuple("abcdefg")), Variable("y", ("p", "q"))))
    row = np.full(7, -math.log(7))
    net = Network(schema, Dag(("x", "y"), ((), (0,))), (row, tables[0]))
    assert same_types(Network.from_json(net.to_json()), net)


def test_the_text_is_strict_json_with_one_line_for_each_row_of_a_table(network: Network) -> None:
    text = network.to_json()
    document = json.loads(text, parse_constant=pytest.fail)
    lines = [line.strip().rstrip(",") for line in text.splitlines()]
    for entry in document["tables"]:
        for row in entry["log_probabilities"]:
            assert json.dumps(row) in lines
    assert document["tables"][2]["parents"] == ["class", "größe"]
    assert "größe" in text


def test_the_rows_of_a_table_are_in_the_order_of_the_parents_levels(network: Network) -> None:
    rows = network_to_dict(network)["tables"][2]["log_probabilities"]
    expected = [network.tables[2][i, j].tolist() for i in range(2) for j in range(3)]
    assert [[-math.inf if v == "-inf" else v for v in row] for row in rows] == expected


def test_numpy_scalars_as_levels_come_back_as_equal_python_values() -> None:
    levels = (np.int64(3), np.float64(0.5), np.str_("x"))
    net = Network(Schema((Variable("a", levels),)), Dag(("a",), ((),)), (np.log(np.full(3, 1 / 3)),))
    assert Network.from_json(net.to_json()) == net


@pytest.mark.parametrize("level", [date(2020, 1, 1), (1, 2), b"x", math.inf, math.nan, 1j])
def test_a_level_that_json_cannot_hold_is_refused_by_the_variables_name(level: object) -> None:
    net = Network(Schema((Variable("when", ("x", level)),)), Dag(("when",), ((),)), (np.log([0.5, 0.5]),))
    with pytest.raises(ValueError, match=r"'when' has the level .* convert the column"):
        net.to_json()


def test_a_variable_with_a_transformer_is_refused_by_its_name() -> None:
    variable = Variable("size", (0, 1), transformer=object())
    net = Network(Schema((variable,)), Dag(("size",), ((),)), (np.log([0.5, 0.5]),))
    for write in (net.to_json, net.to_bif, net.to_xmlbif):
        with pytest.raises(ValueError, match="'size' is discretised by a object, which a file cannot hold"):
            write()


def test_a_network_with_one_level_or_with_rows_that_sum_to_less_than_one_is_kept_too() -> None:
    schema = Schema((Variable("a", ("x", "y")), Variable("b", ("only",))))
    net = Network(schema, Dag(("a", "b"), ((), (0,))), (np.log([0.2, 0.3]), np.log([[0.5], [1.0]])))
    assert Network.from_json(net.to_json()) == net


def test_schemas_come_back_alone(network: Network) -> None:
    text = format_document(schema_to_dict(network.schema))
    assert read_document(text, schema_from_dict) == network.schema


# -- files


def test_a_file_is_written_and_read_by_str_and_by_path(tmp_path: Path, network: Network) -> None:
    path = tmp_path / "net.json"
    text = network.to_json(path)
    assert path.read_text("utf-8") == text
    assert Network.from_json(path) == Network.from_json(str(path)) == Network.from_json("\n" + text) == network


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path, network: Network) -> None:
    path = tmp_path / "net.json"
    path.write_text(network.to_json(), "utf-8-sig")
    assert Network.from_json(path) == network


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net.json"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        network.to_json(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["net.json"]


def test_a_written_file_has_ordinary_permissions_and_a_link_stays_a_link(tmp_path: Path, network: Network) -> None:
    network.to_json(tmp_path / "net.json")
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "net.json").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    (tmp_path / "link").symlink_to("net.json")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "net.json").read_text() == "new"


def test_a_missing_file_or_folder_is_an_os_error(tmp_path: Path, network: Network) -> None:
    with pytest.raises(FileNotFoundError):
        Network.from_json(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        network.to_json(tmp_path / "none" / "net.json")


# -- what is wrong with a file


REMOVE = object()
ROW = ("tables", 1, "log_probabilities", 0)
WRONG = [
    (("version",), 2, "version 2, .* upgrade marginbayes"),
    (("version",), True, "version is True"),
    (("version",), 0, "version is 0"),
    (("version",), 10**400, "version a huge number"),
    (("version",), REMOVE, "version is None"),
    (("format",), "other", "not a marginbayes.network file"),
    (("tables",), REMOVE, 'has no "tables"'),
    (("extra",), 1, "'extra', which is unknown"),
    (("variables",), [], "no variables"),
    (("variables",), {}, "should be a list"),
    (("variables", 1, "name"), "class", "two variables are called 'class'"),
    (("variables", 1, "name"), 7, "strings, not 7"),
    (("variables", 1, "levels"), -3, "should be a list, not -3"),
    (("variables", 1, "levels"), 10**9, "should be a list, not 1000000000"),
    (("variables", 0, "levels"), [1, True], "two equal levels"),
    (("variables", 0, "levels"), [[1], 2], "'class' has the level a list of 1"),
    (("variables", 1, "cuts"), [2.5, 1.5], "do not increase"),
    (("variables", 1, "cuts"), [1.5, 2.5], "2 cuts make 3"),
    (("variables", 1, "cuts"), ["x"], "'x' in the cuts of 'größe'"),
    (("variables", 0, "colour"), "red", "'colour', which is unknown"),
    (("tables", 3), REMOVE, "4 variables but 3 tables"),
    (("tables", 1, "variable"), "count", "not in the variables' order"),
    (("tables", 1, "parents"), ["nobody"], "'nobody', which is not a variable"),
    (("tables", 1, "parents"), [["class"]], "a list of 1, which is not a variable"),
    (("tables", 1, "parents"), ["class", "class"], "same parent twice"),
    (("tables", 0, "parents"), ["ratio"], "the edges form a cycle"),
    (("tables", 1, "parents"), [], "has 2 rows where its parents' levels make 1"),
    (("tables", 1, "log_probabilities"), 0.5, "should be a list"),
    ((*ROW, 0), REMOVE, "row of 2 numbers where 3 are due"),
    (ROW, {}, "should be a list"),
    ((*ROW, 0), "inf", "'inf' in the table of 'größe'"),
    ((*ROW, 0), None, "None in the table of 'größe'"),
    ((*ROW, 0), True, "True in the table of 'größe'"),
    ((*ROW, 0), 10**400, "a huge number in the table of 'größe'"),
    ((*ROW, 0), 3, "sum to more than one"),
    ((*ROW, 0), 1e308, "sum to more than one"),
]


@pytest.mark.parametrize(("place", "value", "message"), WRONG)
def test_a_wrong_document_is_one_error_that_names_the_file(
    tmp_path: Path, network: Network, place: tuple[str | int, ...], value: object, message: str
) -> None:
    document = network_to_dict(network)
    holder = functools.reduce(operator.getitem, place[:-1], document)
    if value is REMOVE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(ValueError, match=rf"cannot read .*broken\.json: .*{message}"):
        Network.from_json(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"format": "marginbayes.network", "version": 1, "version": 1}', "'version' twice"),
        (b'{"format": "marginbayes.network", "version": NaN}', "NaN is not a number"),
        (b'{"format": "marginbayes.network", "version": -Infinity}', "-Infinity is not a number"),
        (b'{"format": "marginbayes.network", "version": ' + b"9" * 5000 + b"}", "digits"),
        (b"[1, 2]", "not a marginbayes.network file"),
        (b"null", "not a marginbayes.network file"),
        (b"\x80\x04\x95", "not UTF-8"),  # the first bytes of a pickle
        (b'{"format": "' + b"x" * 100_000 + b'"}', "not a marginbayes.network file"),
    ],
)
def test_a_file_that_is_no_network_is_one_error_of_limited_length(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"cannot read .*broken\.json: .*{message}") as caught:
        Network.from_json(path)
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 1000


def test_an_infinite_number_spelled_with_a_large_exponent_is_refused(network: Network) -> None:
    text = network.to_json().replace("2.5]", "1e999]", 1)
    with pytest.raises(ValueError, match="inf in the cuts"):
        Network.from_json(text)


def test_a_table_larger_than_any_memory_is_refused_before_it_is_allocated() -> None:
    levels = [f"s{i}" for i in range(1000)]
    names = [f"p{i}" for i in range(60)]
    variables = [{"name": name, "levels": levels} for name in names] + [{"name": "x", "levels": levels}]
    row = ["-inf"] * 1000
    tables = [{"variable": name, "parents": [], "log_probabilities": [row]} for name in names]
    tables.append({"variable": "x", "parents": names, "log_probabilities": [row]})
    document = {"format": "marginbayes.network", "version": 1, "variables": variables, "tables": tables}
    with pytest.raises(ValueError, match="1 rows where its parents' levels make a huge number"):
        network_from_dict(document)
    for entry in variables:
        entry["levels"] = ["one"]
    with pytest.raises(ValueError, match="64 parents; the most is 63"):
        network_from_dict(_more_parents(document, names))


def _more_parents(document: dict[str, list[dict[str, object]]], names: list[str]) -> dict[str, list[dict[str, object]]]:
    more = [f"q{i}" for i in range(4)]
    document["variables"][:0] = [{"name": name, "levels": ["one"]} for name in more]
    document["tables"] = [{"variable": n, "parents": [], "log_probabilities": [[0]]} for n in [*more, *names]]
    document["tables"].append({"variable": "x", "parents": [*more, *names], "log_probabilities": [[0]]})
    return document


# -- fuzzing: only a ValueError, or a network


def outcome(path: Path) -> Network | Exception:
    try:
        return Network.from_json(path)
    except ValueError as error:
        return error


def is_network_or_clear_error(result: Network | Exception, path: Path) -> bool:
    if isinstance(result, Network):
        return Network.from_json(result.to_json()) == result
    return type(result) is ValueError and str(path) in str(result)


@FUZZ
@given(cut=st.integers(0, 10**6))
def test_a_truncated_file_is_refused(tmp_path: Path, network: Network, cut: int) -> None:
    content = network.to_json().encode()
    path = tmp_path / "cut.json"
    path.write_bytes(content[: cut % (len(content) - 2)])
    with pytest.raises(ValueError, match=r"cut\.json"):
        Network.from_json(path)


@FUZZ
@given(changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=6))
def test_flipped_bytes_give_a_value_error_or_a_network(
    tmp_path: Path, network: Network, changes: list[tuple[int, int]]
) -> None:
    content = bytearray(network.to_json().encode())
    for at, byte in changes:
        content[at % len(content)] = byte
    path = tmp_path / "flipped.json"
    path.write_bytes(content)
    assert is_network_or_clear_error(outcome(path), path)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 0, 2**31, 2**63, 2**64, 10**30, 10**400])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "-inf", "class", "__proto__", "__class__", "__import__('os').abort()", "\ud800", "x" * 1000])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@FUZZ
@given(data=st.data())
def test_replaced_removed_and_repeated_nodes_give_a_value_error_or_a_network(
    tmp_path: Path, network: Network, data: st.DataObject
) -> None:
    document = network_to_dict(network)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = _random_place(document, data)
        action = data.draw(st.sampled_from(["replace", "remove", "repeat"]))
        if action == "replace":
            holder[key] = data.draw(JUNK)
        elif action == "remove":
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        if not document:
            return
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    assert is_network_or_clear_error(outcome(path), path)


def _random_place(document: dict[str, object], data: st.DataObject) -> tuple[object, object]:
    """A list or dict somewhere in the document, and a key or index in it."""
    node: object = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        below = node[key]
        if not isinstance(below, (dict, list)) or not below or data.draw(st.integers(0, 3)) == 0:
            return node, key
        node = below


def test_a_file_that_is_replaced_keeps_who_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "private"
    write_text(path, "old")
    path.chmod(0o600)
    write_text(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to() -> None:
    read, write = os.pipe()
    write_text(f"/dev/fd/{write}", "through")
    os.close(write)
    with os.fdopen(read) as end:
        assert end.read() == "through"


def test_the_error_names_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, *_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(PermissionError) as caught:
        write_text(tmp_path / "x.json", "text")
    assert caught.value.filename == str(tmp_path / "x.json")
