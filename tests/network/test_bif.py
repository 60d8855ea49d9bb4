"""BIF files: every dialect in, a text out that pgmpy and pyAgrum read, and no loss on our own round trip."""

from __future__ import annotations

import functools
import gzip
import importlib.resources
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marginbayes.data import Schema, Variable
from marginbayes.graph import Dag
from marginbayes.network import Network
from tests.network.test_json import awkward_networks, build, random_network, same_types

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pgmpy\.")
    warnings.filterwarnings("ignore", message="builtin type .* has no __module__", category=DeprecationWarning)
    import pyagrum
    from pgmpy.readwrite import BIFReader, BIFWriter


class Reader(BIFReader):
    """pgmpy's reader, its grammar built once for all files: that takes it a second."""

    @staticmethod
    @functools.cache
    def get_variable_grammar() -> object:
        return BIFReader.get_variable_grammar(None)

    @staticmethod
    @functools.cache
    def get_probability_grammar() -> object:
        return BIFReader.get_probability_grammar(None)


FUZZ = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def assert_close(a: Network, b: Network, tolerance: float = 1e-15) -> None:
    assert a.schema == b.schema
    assert a.dag == b.dag
    for x, y in zip(a.tables, b.tables, strict=True):
        np.testing.assert_allclose(np.exp(x), np.exp(y), rtol=tolerance, atol=0)


# -- our own round trip


@FUZZ
@given(awkward_networks())
def test_a_network_comes_back_from_bif_with_names_types_cuts_and_class(net: Network) -> None:
    back = Network.from_bif(net.to_bif())
    assert_close(back, net)
    assert [[type(v) for v in x.levels] for x in back.schema.variables] == [
        [type(v) for v in x.levels] for x in net.schema.variables
    ]


def test_probabilities_that_a_file_spelled_shortly_are_spelled_shortly_again() -> None:
    tables = (np.log([0.3, 0.7]), np.log([[0.1, 0.9], [1e-5, 0.99999]]))
    schema = Schema((Variable("a", ("x", "y")), Variable("b", ("p", "q"))))
    net = Network(schema, Dag(("a", "b"), ((), (0,))), tables)
    text = net.to_bif()
    assert "table 0.3, 0.7;" in text
    assert "(y) 1e-05, 0.99999;" in text
    assert same_types(Network.from_bif(text), net)


def test_the_class_comes_first_although_another_writer_sorted_the_variables(tmp_path: Path) -> None:
    schema = Schema((Variable("z", ("x", "y")), Variable("a", ("p", "q"))))
    net = Network(schema, Dag(("z", "a"), ((), (0,))), (np.log([0.3, 0.7]), np.log([[0.1, 0.9], [0.2, 0.8]])))
    net.to_bif(tmp_path / "net.bif")
    model = Reader(str(tmp_path / "net.bif"), include_properties=True).get_model()
    text = str(BIFWriter(model))
    assert text.index("variable a") < text.index("variable z")
    assert Network.from_bif(text) == net


def test_a_variable_that_was_renamed_elsewhere_is_refused_with_the_remedy() -> None:
    net = random_network(np.random.default_rng(0))
    text = re.sub(r"\bv0\b", "w0", net.to_bif())
    with pytest.raises(ValueError, match=r"'w0' was renamed.*remove its property 'marginbayes'"):
        Network.from_bif(text)
    text = re.sub(r"\bs1\b", "t1", net.to_bif())
    with pytest.raises(ValueError, match="its levels changed"):
        Network.from_bif(text)


def test_a_network_that_bif_cannot_hold_is_refused() -> None:
    net = Network(Schema((Variable("a", ("x", "y")),)), Dag(("a",), ((),)), (np.log([0.2, 0.3]),))
    with pytest.raises(ValueError, match="sum to less than one; only JSON"):
        net.to_bif()
    net = Network(Schema((Variable("a", ("x", (1, 2))),)), Dag(("a",), ((),)), (np.log([0.2, 0.8]),))
    with pytest.raises(ValueError, match=r"'a' has the level \(1, 2\) of type tuple"):
        net.to_bif()


# -- read by others


@FUZZ
@given(awkward_networks(fewest_levels=2))
def test_pgmpy_and_pyagrum_read_what_is_written_whatever_the_names(tmp_path: Path, net: Network) -> None:
    path = tmp_path / "net.bif"
    net.to_bif(path)
    reader = Reader(str(path))
    model = reader.get_model()
    names = reader.variable_names
    assert len(set(names)) == len(net.dag.names)
    bn = pyagrum.loadBN(str(path))
    assert [bn.variable(i).name() for i in range(bn.size())] == names
    for i, table in enumerate(net.tables):
        parents = [names[p] for p in net.dag.parents[i]]
        cpd = model.get_cpds(names[i])
        assert cpd.variables == [names[i], *parents]
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(np.log(np.moveaxis(cpd.values, 0, -1)), table, rtol=1e-15, atol=1e-15)
        theirs = bn.cpt(names[i])
        assert list(theirs.names) == [names[i], *parents]
        # pyAgrum reads BIF's numbers in single precision.
        np.testing.assert_allclose(np.asarray(theirs.toarray()).T, np.exp(np.moveaxis(table, -1, 0)), atol=1e-7)


# -- written by others


def test_a_file_of_pgmpy_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        net = random_network(rng)
        path = tmp_path / "net.bif"
        BIFWriter(_anonymous_pgmpy(net)).write(str(path))
        assert_close(Network.from_bif(path, target="v0"), net)


def test_bare_names_with_blanks_brackets_and_signs_are_read_as_pgmpy_writes_them() -> None:
    variables = [
        Variable("the class", ("no way", "yes  sir")),
        Variable("x-1.5/é", ("<5", ">=5", "[0;1[", "a|b")),
    ]
    net = build(variables, [(), (0,)], np.random.default_rng(1))
    text = str(BIFWriter(_anonymous_pgmpy(net)))
    assert "variable the class {" in text
    assert_close(Network.from_bif(text), net)


def test_a_file_of_pyagrum_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    for _ in range(5):
        net = random_network(rng)
        path = tmp_path / "net.bif"
        pyagrum.saveBN(net.to_pyagrum(), str(path))
        assert_close(Network.from_bif(path), net)


@pytest.mark.parametrize("name", ["asia", "cancer", "child", "sachs", "survey", "insurance", "alarm", "win95pts"])
def test_networks_of_the_bnlearn_repository_are_read_as_pgmpy_reads_them(name: str) -> None:
    text = gzip.decompress(
        (importlib.resources.files("pgmpy.utils") / "example_models" / f"{name}.bif.gz").read_bytes()
    )
    net = Network.from_bif(text.decode())
    reader = Reader(string=text.decode())
    assert list(net.dag.names) == reader.variable_names
    for variable, parents, table in zip(net.schema.variables, net.dag.parents, net.tables, strict=True):
        assert list(variable.levels) == reader.variable_states[variable.name]
        assert [net.dag.names[p] for p in parents] == reader.variable_parents[variable.name]
        theirs = reader.variable_cpds[variable.name]
        flat = np.exp(table).reshape(-1, table.shape[-1]).T
        np.testing.assert_allclose(flat, theirs / theirs.sum(axis=0), atol=1e-12)
    assert same_types(Network.from_bif(net.to_bif()), net)


# -- dialects

DOG = """
// a comment, with a "quote
network "Dog problem" { property author = "F. {Cozman}; x" ; }
/* a comment
   of two lines */
probability ( "dog-out" | "family out" ) { // rows, and a default
   default 0.97, 0.03;
   ("true") 0.9 0.1 ;
}
variable "family out" { //2 values
   type discrete[2] { "true" "false" };
   property "position = (112, 69)" ;
}
variable  "dog-out"{
   type discrete [ 2 ] {in out};
}
probability("family out"){ table 0.15 , 0.85 ; }
"""


def test_quotes_comments_defaults_and_blocks_in_any_order_are_read() -> None:
    net = Network.from_bif(DOG)
    assert net.dag.names == ("family out", "dog-out")
    assert net.dag.edges == (("family out", "dog-out"),)
    assert [v.levels for v in net.schema.variables] == [("true", "false"), ("in", "out")]
    np.testing.assert_allclose(net.probabilities("family out"), [0.15, 0.85])
    np.testing.assert_allclose(net.probabilities("dog-out"), [[0.9, 0.1], [0.97, 0.03]])


def two_variables(header: str, body: str) -> str:
    return (
        "network n {\n}\n"
        "variable a { type discrete [ 2 ] { x, y }; }\nvariable b { type discrete [ 3 ] { p, q, r }; }\n"
        f"probability ( b ) {{ table 0.2, 0.3, 0.5; }}\nprobability {header} {{ {body} }}\n"
    )


@pytest.mark.parametrize("header", ["( a | b )", "(a|b)", '( "a" "b" )', "( a b )", "( a, b )", "(a | b,)"])
@pytest.mark.parametrize(
    "body",
    [
        "(p) 0.1, 0.9; (q) 0.2, 0.8; (r) 0.3, 0.7;",
        "( r ) .3 .7; (p) 1e-1 9E-1; (q) 0.2, 0.8;",
        '("p") 0.1 0.9; default 0.2 0.8; (r) 0.3 0.7;',
        "table 0.1, 0.2, 0.3, 0.9, 0.8, 0.7;",
        "table 0.1 0.9 0.2 0.8 0.3 0.7;",
    ],
)
def test_headers_rows_and_tables_of_either_order_mean_the_same(header: str, body: str) -> None:
    net = Network.from_bif(two_variables(header, body))
    assert net.dag.edges == (("b", "a"),)
    np.testing.assert_allclose(net.probabilities("a"), [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]], rtol=1e-12)


def test_a_table_is_read_in_the_formats_order_as_pgmpy_does_where_both_orders_sum_to_one() -> None:
    text = """network n {
}
variable a {
  type discrete [ 2 ] { x, y };
}
variable b {
  type discrete [ 2 ] { p, q };
}
variable c {
  type discrete [ 2 ] { s, t };
}
probability ( b ) {
  table 0.5, 0.5;
}
probability ( c ) {
  table 0.5, 0.5;
}
probability ( a | b, c ) {
  table 0.1, 0.9, 0.2, 0.8, 0.9, 0.1, 0.8, 0.2;
}
"""
    theirs = Reader(string=text).get_model().get_cpds("a").values
    np.testing.assert_allclose(np.moveaxis(Network.from_bif(text).probabilities("a"), -1, 0), theirs, rtol=1e-15)


def test_the_class_is_the_first_variable_or_the_one_asked_for() -> None:
    text = two_variables("( a | b )", "default 0.5, 0.5;")
    assert Network.from_bif(text).dag.names == ("a", "b")
    assert Network.from_bif(text, target="b").dag.names == ("b", "a")
    with pytest.raises(ValueError, match="there is no variable 'c'; there are 'a', 'b'"):
        Network.from_bif(text, target="c")


def test_rows_of_few_digits_are_scaled_to_sum_to_one() -> None:
    net = Network.from_bif(two_variables("( a | b )", "(p) 0.333, 0.666; default 0.5, 0.5;"))
    np.testing.assert_allclose(net.probabilities("a")[0], [1 / 3, 2 / 3], rtol=1e-12)


ROWS = "(p) 0.1, 0.9; (q) 0.2, 0.8; (r) 0.3, 0.7;"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            two_variables("( a | b )", ROWS.replace("0.8", "0.7")),
            r"P\(a \| b='q'\) is \[0.2, 0.7\].*0.9 is not one",
        ),
        (two_variables("( a | b )", ROWS.replace("0.8", "-0.8")), r"P\(a \| b='q'\)"),
        (two_variables("( a | b )", ROWS.replace("0.8", "nan")), "'nan' is not a number"),
        (two_variables("( a | b )", ROWS.replace("0.8", "1e999")), r"P\(a \| b='q'\)"),
        (two_variables("( a | b )", ROWS.replace("(q)", "(p)")), r"the row \(p\) of 'a' is given twice"),
        (two_variables("( a | b )", ROWS.replace("(q)", "(z)")), r"the row \(z\) of 'a' does not name"),
        (two_variables("( a | b )", "(p) 0.1, 0.9; (r) 0.3, 0.7;"), r"'a' have no row \(q\) and no default"),
        (two_variables("( a | b )", "(p) 0.1, 0.2, 0.7; default 0.1, 0.9;"), "3 numbers where 2 are due"),
        (two_variables("( a | b )", "table 0.1, 0.9;"), "2 numbers where 6 are due"),
        (two_variables("( a | b )", "table 0.5, 0.5; default 0.5, 0.5;"), "given twice"),
        (two_variables("( a | b )", "default 0.5, 0.5; default 0.5, 0.5;"), "two entries 'default'"),
        (two_variables("( a | c )", ROWS), "names 'c', which is not a variable"),
        (two_variables("( a b | b )", ROWS), "2 variables before the bar"),
        (two_variables("( b )", "table 0.2, 0.3, 0.5;"), "'b' has two probability blocks"),
        (two_variables("( a | a )", "(x) 0.5, 0.5; (y) 0.5, 0.5;"), "cycle"),
        (two_variables("( a | b )", ROWS).replace("[ 3 ]", "[ 4 ]"), "the levels of 'b' should be 4"),
        (two_variables("( a | b )", ROWS).replace("[ 3 ]", "[ 999999999 ]"), "should be 999999999"),
        (two_variables("( a | b )", ROWS).replace("[ 3 ]", "[ 9999999999 ]"), "line 4: discrete .* expected"),
        (two_variables("( a | b )", ROWS).replace("[ 3 ]", "[ -3 ]"), "line 4: discrete .* expected"),
        (
            two_variables("( a | b )", "default 0.5, 0.5;").replace("p, q, r", "p, p, r"),
            "'b' has no levels, or two that are equal",
        ),
        (
            two_variables("( a | b )", ROWS).replace("variable b", "variable a"),
            "two variables are called 'a'",
        ),
        (two_variables("( a | b )", ROWS).replace("type discrete [ 3 ] { p, q, r };", ""), "'b' has no type"),
        (
            two_variables("( a | b )", ROWS) + "variable c { type discrete [ 1 ] { x }; }",
            "'c' has no probability block",
        ),
        (
            two_variables("( a | b )", ROWS) + "what { }",
            "line 7: a network, variable or probability .* not 'what'",
        ),
        (two_variables("( a | b )", ROWS)[:-5], "expected, not"),
        ("network n {\n}\n", "there are no variables"),
        ('{"format": "marginbayes.network"}\n', "line 1: a network, variable or probability block expected"),
    ],
)
def test_a_wrong_file_is_one_error_that_says_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.bif"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"cannot read .*wrong\.bif: .*{message}"):
        Network.from_bif(path)


def test_a_default_that_asks_for_a_table_larger_than_any_memory_is_refused() -> None:
    levels = ", ".join(f"s{i}" for i in range(100))
    names = [f"p{i}" for i in range(30)]
    text = "".join(f"variable {n} {{ type discrete [ 100 ] {{ {levels} }}; }}\n" for n in [*names, "x"])
    numbers = ", ".join(["0.01"] * 100)
    text += "".join(f"probability ( {n} ) {{ table {numbers}; }}\n" for n in names)
    text += f"probability ( x | {', '.join(names)} ) {{ default {numbers}; }}\n"
    with pytest.raises(ValueError, match="default entry of 'x' asks for too large a table"):
        Network.from_bif(text)
    with pytest.raises(ValueError, match=r"'x' have no row \(s0, s0, "):
        Network.from_bif(text.replace("default", f"({', '.join(['s1'] * 30)})"))


@FUZZ
@given(data=st.data())
def test_cut_and_changed_files_give_a_value_error_or_a_network(data: st.DataObject) -> None:
    text = data.draw(
        st.sampled_from([DOG, two_variables("( a | b )", ROWS), random_network(np.random.default_rng(2)).to_bif()])
    )
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 20))
        text = (
            text[:start]
            + data.draw(st.sampled_from(['"', "{", "}", "(", ")", ";", ",", "|", "//", "0", "-", ""]))
            + text[start + length :]
        )
    try:
        net = Network.from_bif(text + "\n")
    except ValueError:
        return
    assert_close(Network.from_bif(net.to_bif()), net)


def _anonymous_pgmpy(net: Network) -> object:
    """The network as a pgmpy model that never heard of marginbayes."""
    model = net.to_pgmpy()
    for name in model.nodes:
        model.nodes[name].pop("marginbayes", None)
    return model
