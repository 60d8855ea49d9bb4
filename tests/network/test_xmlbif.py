"""XMLBIF files: Weka's, pgmpy's and pyAgrum's in, a text out that all read, and nothing that expands or is fetched."""

from __future__ import annotations

import math
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
    from pgmpy.readwrite import XMLBIFReader, XMLBIFWriter

FUZZ = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

DTD = """<!DOCTYPE BIF [
    <!ELEMENT BIF ( NETWORK )*>
    <!ATTLIST BIF VERSION CDATA #REQUIRED>
    <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
    <!ELEMENT NAME (#PCDATA)>
    <!ELEMENT VARIABLE ( NAME, ( OUTCOME |  PROPERTY )* ) >
    <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
    <!ELEMENT OUTCOME (#PCDATA)>
    <!ELEMENT DEFINITION ( FOR | GIVEN | TABLE | PROPERTY )* >
    <!ELEMENT FOR (#PCDATA)>
    <!ELEMENT GIVEN (#PCDATA)>
    <!ELEMENT TABLE (#PCDATA)>
    <!ELEMENT PROPERTY (#PCDATA)>
]>
"""

# As Weka 3.9 writes a TAN network: its own quotes around a name and around a level with a blank, the class last.
WEKA = f"""<?xml version="1.0"?>
<!-- DTD for the XMLBIF 0.3 format -->
{DTD}

<BIF VERSION="0.3">
<NETWORK>
<NAME>t-weka.filters.supervised.attribute.Discretize-Rfirst-last-precision6</NAME>
<VARIABLE TYPE="nature">
<NAME>&apos;a b&lt;&amp;&apos;</NAME>
<OUTCOME>x</OUTCOME>
<OUTCOME>&apos;y z&apos;</OUTCOME>
<OUTCOME>&apos;q\\&apos;q&apos;</OUTCOME>
</VARIABLE>
<VARIABLE TYPE="nature">
<NAME>num</NAME>
<OUTCOME>&apos;\\&apos;(-inf-2.25]\\&apos;&apos;</OUTCOME>
<OUTCOME>&apos;\\&apos;(2.25-inf)\\&apos;&apos;</OUTCOME>
</VARIABLE>
<VARIABLE TYPE="nature">
<NAME>class</NAME>
<OUTCOME>no</OUTCOME>
<OUTCOME>yes</OUTCOME>
</VARIABLE>
<DEFINITION>
<FOR>&apos;a b&lt;&amp;&apos;</FOR>
<GIVEN>class</GIVEN>
<TABLE>
0.7333333333333333 0.2 0.06666666666666667
0.2 0.2 0.6
</TABLE>
</DEFINITION>
<DEFINITION>
<FOR>num</FOR>
<GIVEN>class</GIVEN>
<GIVEN>&apos;a b&lt;&amp;&apos;</GIVEN>
<TABLE>
0.9166666666666666 0.08333333333333333
0.75 0.25
0.5 0.5
0.25 0.75
0.25 0.75
0.1 0.9
</TABLE>
</DEFINITION>
<DEFINITION>
<FOR>class</FOR>
<TABLE>
0.5 0.5
</TABLE>
</DEFINITION>
</NETWORK>
</BIF>
"""


def assert_close(a: Network, b: Network, tolerance: float = 1e-15) -> None:
    assert a.schema == b.schema
    assert a.dag == b.dag
    for x, y in zip(a.tables, b.tables, strict=True):
        np.testing.assert_allclose(np.exp(x), np.exp(y), rtol=tolerance, atol=0)


# -- our own round trip


@FUZZ
@given(awkward_networks())
def test_a_network_comes_back_from_xmlbif_with_names_types_cuts_and_class(net: Network) -> None:
    back = Network.from_xmlbif(net.to_xmlbif())
    assert_close(back, net)
    assert [[type(v) for v in x.levels] for x in back.schema.variables] == [
        [type(v) for v in x.levels] for x in net.schema.variables
    ]


def test_the_file_is_the_text_in_utf_8(tmp_path: Path) -> None:
    net = build([Variable("größe", ("温", "é")), Variable("b", ("x", "y"))], [(), (0,)], np.random.default_rng(0))
    path = tmp_path / "net.xml"
    text = net.to_xmlbif(path)
    assert path.read_text("utf-8") == text
    assert "größe" in text
    assert same_types(Network.from_xmlbif(path), Network.from_xmlbif(text))


# -- read by others


@FUZZ
@given(awkward_networks(fewest_levels=2))
def test_pgmpy_and_pyagrum_read_what_is_written_whatever_the_names(tmp_path: Path, net: Network) -> None:
    path = tmp_path / "net.bifxml"
    net.to_xmlbif(path)
    reader = XMLBIFReader(str(path))
    model = reader.get_model()
    names = reader.variables
    assert len(set(names)) == len(net.dag.names)
    bn = pyagrum.loadBN(str(path))
    assert [bn.variable(i).name() for i in range(bn.size())] == names
    for i, table in enumerate(net.tables):
        family = [names[i], *(names[p] for p in net.dag.parents[i])]
        cpd = model.get_cpds(names[i])
        assert cpd.variables == family
        assert list(bn.variable(i).labels()) == cpd.state_names[names[i]]
        # pyAgrum's reader turns the parents around, and its arrays have the first variable last.
        theirs = bn.cpt(i)
        axes = [theirs.names.index(name) for name in family]
        for values in (cpd.values, np.asarray(theirs.toarray()).T.transpose(axes)):
            with np.errstate(divide="ignore"):
                np.testing.assert_allclose(np.log(np.moveaxis(values, 0, -1)), table, rtol=1e-15, atol=1e-15)


# -- written by others


def test_a_file_of_weka_is_read_and_gives_wekas_answers() -> None:
    net = Network.from_xmlbif(WEKA, target="class")
    assert net.dag.names == ("class", "'a b<&'", "num")
    assert net.dag.parents == ((), (0,), (0, 1))
    low, high = net.schema["num"].levels
    # What Weka's distributionForInstance says.
    for level, number, yes in (
        ("x", low, 0.06923076923076926),
        ("x", high, 0.7105263157894737),
        ("'y z'", low, 0.25),
        (r"'q\'q'", high, 0.9418604651162791),
    ):
        answer = net.query("class", {"'a b<&'": level, "num": number})
        np.testing.assert_allclose(answer, [1 - yes, yes], rtol=1e-12)


def test_a_file_of_pgmpy_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        net = random_network(rng)
        path = tmp_path / "net.xml"
        XMLBIFWriter(net.to_pgmpy()).write(str(path))
        assert_close(Network.from_xmlbif(path), net)


def test_a_file_of_pyagrum_of_six_digits_is_read_and_scaled(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    for _ in range(5):
        net = random_network(rng)
        path = tmp_path / "net.bifxml"
        pyagrum.saveBN(net.to_pyagrum(), str(path))
        back = Network.from_xmlbif(path)
        assert (back.schema, back.dag) == (net.schema, net.dag)
        for x, y in zip(back.tables, net.tables, strict=True):
            np.testing.assert_allclose(np.exp(x), np.exp(y), atol=1e-5)
            np.testing.assert_allclose(np.exp(x).sum(axis=-1), 1.0, rtol=1e-14)


# -- what is wrong with a file

GOOD = """<?xml version="1.0" encoding="UTF-8"?>
<BIF VERSION="0.3"><NETWORK><NAME>n</NAME>
<VARIABLE TYPE="nature"><NAME> a </NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>
<VARIABLE><NAME>b</NAME><OUTCOME>p</OUTCOME><OUTCOME>q</OUTCOME><PROPERTY/></VARIABLE>
<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE>0.1 0.9 <!-- y --> 2e-1 .8</TABLE></DEFINITION>
<DEFINITION><FOR>a</FOR><TABLE>0.25 0.75</TABLE></DEFINITION>
</NETWORK></BIF>
"""


def test_comments_blanks_and_definitions_in_any_order_are_read() -> None:
    net = Network.from_xmlbif("\n" + GOOD)
    assert net.dag.edges == (("a", "b"),)
    np.testing.assert_allclose(net.probabilities("b"), [[0.1, 0.9], [0.2, 0.8]], rtol=1e-12)
    assert Network.from_xmlbif(GOOD, target="b").dag.names == ("b", "a")


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16"])
def test_a_file_is_read_in_the_encoding_that_it_declares(tmp_path: Path, encoding: str) -> None:
    text = GOOD.replace("UTF-8", encoding).replace(">x<", ">é<")
    path = tmp_path / "net.xml"
    path.write_bytes(text.encode(encoding))
    assert Network.from_xmlbif(path) == Network.from_xmlbif(text)
    assert Network.from_xmlbif(path).schema["a"].levels == ("é", "y")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.25 0.75", "0.25 0.7", r"P\(a\) is \[0.25, 0.7\].*0.95 is not one"),
        ("2e-1 .8", "2e-1 .7", r"P\(b \| a='y'\)"),
        ("2e-1 .8", "2e-1 nan", "'nan' is not a number"),
        ("2e-1 .8", "2e-1", "has 3 numbers, but its family needs 4"),
        ("2e-1 .8", "1.2 -0.2", r"P\(b \| a='y'\)"),
        ("<GIVEN>a", "<GIVEN>c", "'b' has the parent 'c'"),
        ("<GIVEN>a", "<GIVEN>b", "cycle"),
        ("<FOR>a", "<FOR>b", "two definitions, have the same name"),
        ("<NAME>b", "<NAME>a", "two variables, or"),
        ("<NAME>b", "<NAME>c", "'[bc]' has no (VARIABLE|DEFINITION)"),
        ("<OUTCOME>y", "<OUTCOME>x", "two that are equal"),
        ('TYPE="nature"', 'TYPE="utility"', "'a' is a utility variable"),
        ("<FOR>a</FOR>", "", "a DEFINITION has no FOR"),
        ("<TABLE>0.25 0.75</TABLE>", "", "a DEFINITION has no TABLE"),
        ("NETWORK>", "NET>", "no NETWORK"),
        ("</BIF>", "", "not valid XML, or cut short"),
        ("UTF-8", "klingon", "not valid XML"),
        ("<PROPERTY/>", "<PROPERTY>marginbayes = %7B</PROPERTY>", "not valid JSON"),
        ("<PROPERTY/>", "<PROPERTY>marginbayes = []</PROPERTY>", "a variable is not an object"),
        ("<PROPERTY/>", f"<PROPERTY>marginbayes = {'[' * 100_000}</PROPERTY>", "nested too deeply"),
        ("<PROPERTY/>", "<a>" * 1000 + "</a>" * 1000, "the XML is nested too deeply"),
    ],
)
def test_a_wrong_file_is_one_error_that_names_it(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "wrong.xml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ValueError, match=rf"cannot read .*wrong\.xml: .*{message}"):
        Network.from_xmlbif(path)


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    "doctype",
    [
        f'<!DOCTYPE BIF [<!ENTITY l0 "ha">{LAUGHS}]>',
        '<!DOCTYPE BIF [<!ENTITY l9 SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE BIF [<!ENTITY % remote SYSTEM "http://localhost:9/x.dtd"> %remote;]>',
        '<!DOCTYPE BIF SYSTEM "http://localhost:9/x.dtd">',
    ],
)
def test_entities_are_refused_whether_they_expand_or_are_fetched(doctype: str) -> None:
    text = GOOD.replace("<BIF", f"{doctype}<BIF").replace(">x<", ">&l9;<")
    with pytest.raises(ValueError, match="entities of its own, which is refused"):
        Network.from_xmlbif(text)


def test_a_table_for_more_parents_than_an_array_has_axes_is_refused() -> None:
    names = [f"p{i}" for i in range(64)]
    one = "".join(f"<VARIABLE><NAME>{n}</NAME><OUTCOME>x</OUTCOME></VARIABLE>" for n in [*names, "y"])
    roots = "".join(f"<DEFINITION><FOR>{n}</FOR><TABLE>1</TABLE></DEFINITION>" for n in names)
    given = "".join(f"<GIVEN>{n}</GIVEN>" for n in names)
    child = f"<DEFINITION><FOR>y</FOR>{given}<TABLE>1</TABLE></DEFINITION>"
    with pytest.raises(ValueError, match="'y' has 64 parents; the most is 63"):
        Network.from_xmlbif(f"<BIF><NETWORK>{one}{roots}{child}</NETWORK></BIF>")


def test_a_network_that_xmlbif_cannot_hold_is_refused() -> None:
    net = Network(Schema((Variable("a", ("x", "y")),)), Dag(("a",), ((),)), (np.log([0.2, 0.3]),))
    with pytest.raises(ValueError, match="sum to less than one; only JSON"):
        net.to_xmlbif()


def test_levels_that_changed_since_the_file_was_written_are_refused_with_the_remedy() -> None:
    net = build([Variable("a", (1, 2, 3))], [()], np.random.default_rng(0))
    text = re.sub("<OUTCOME>2<", "<OUTCOME>5<", net.to_xmlbif())
    with pytest.raises(ValueError, match="'a' was renamed, or its levels changed"):
        Network.from_xmlbif(text)
    without = re.sub("<PROPERTY>.*</PROPERTY>", "", text)
    assert Network.from_xmlbif(without).schema["a"].levels == ("1", "5", "3")


@FUZZ
@given(data=st.data())
def test_cut_and_changed_files_give_a_value_error_or_a_network(tmp_path: Path, data: st.DataObject) -> None:
    texts = [GOOD, WEKA, random_network(np.random.default_rng(2)).to_xmlbif()]
    content = bytearray(data.draw(st.sampled_from(texts)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start, length = data.draw(st.integers(0, len(content))), data.draw(st.integers(0, 12))
        content[start : start + length] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"<", b">", b"&", b"</", b"0"])
        )
    path = tmp_path / "changed.xml"
    path.write_bytes(content)
    try:
        net = Network.from_xmlbif(path)
    except ValueError:
        return
    back = Network.from_xmlbif(net.to_xmlbif())
    assert all(math.isfinite(t.max()) for t in back.tables)
    assert_close(back, net)
