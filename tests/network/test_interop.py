"""pgmpy's and pyAgrum's objects: the same network there and back, and the same answers as their own inference."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from marginbayes.data import Rows, Schema, Variable
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.network.interop import distinct
from tests.network.test_json import awkward_networks, build, random_network, same_types

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pgmpy\.")
    warnings.filterwarnings("ignore", message="builtin type .* has no __module__", category=DeprecationWarning)
    import pyagrum
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork

FUZZ = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def questions(net: Network, rng: np.random.Generator, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Variables to ask for, each with possible evidence on some of the others."""
    asked = []
    for codes in net.sample(count, rng).codes.T:
        name = str(rng.choice(net.dag.names))
        evidence = {
            v.name: v.levels[c]
            for v, c in zip(net.schema.variables, codes, strict=True)
            if v.name != name and rng.random() < 0.5
        }
        asked.append((name, evidence))
    return asked


# -- the same answers


def test_the_answers_are_those_of_pgmpys_variable_elimination() -> None:
    rng = np.random.default_rng(11)
    for _ in range(8):
        net = random_network(rng, 7)
        model = net.to_pgmpy()
        assert model.check_model()
        engine = VariableElimination(model)
        for name, evidence in questions(net, rng, 4):
            theirs = engine.query([name], evidence, show_progress=False)
            assert theirs.state_names[name] == list(net.schema[name].levels)
            np.testing.assert_allclose(net.query(name, evidence), theirs.values, atol=1e-12)


def test_the_answers_are_those_of_pyagrums_lazy_propagation() -> None:
    rng = np.random.default_rng(12)
    for _ in range(15):
        net = random_network(rng, 8)
        bn = net.to_pyagrum()
        for name, evidence in questions(net, rng, 6):
            theirs = pyagrum.getPosterior(bn, target=name, evs=evidence).toarray()
            np.testing.assert_allclose(net.query(name, evidence), theirs, atol=1e-12)


def test_the_posterior_of_rows_with_holes_is_that_of_both_libraries() -> None:
    rng = np.random.default_rng(13)
    net = random_network(rng, 7)
    cards = np.array(net.schema.cardinalities)[:, None]
    codes = net.sample(20, rng).codes
    codes = np.where(rng.random(codes.shape) < 0.4, cards, codes).astype(codes.dtype)
    posterior = net.posterior(Rows(codes, net.schema.cardinalities))
    engine, bn = VariableElimination(net.to_pgmpy()), net.to_pyagrum()
    for row, answer in zip(codes.T, posterior, strict=True):
        evidence = {v.name: v.levels[c] for v, c in zip(net.schema.features, row[1:], strict=True) if c < v.cardinality}
        theirs = engine.query([net.dag.names[0]], evidence, show_progress=False)
        np.testing.assert_allclose(answer, theirs.values, atol=1e-12)
        np.testing.assert_allclose(answer, pyagrum.getPosterior(bn, target=0, evs=evidence).toarray(), atol=1e-12)


def test_a_model_made_by_pgmpy_gives_pgmpys_answers() -> None:
    rng = np.random.default_rng(14)
    for seed in range(5):
        model = DiscreteBayesianNetwork.get_random(n_nodes=6, edge_prob=0.4, n_states=3, seed=seed)
        net = Network.from_pgmpy(model)
        engine = VariableElimination(model)
        for name, evidence in questions(net, rng, 4):
            theirs = engine.query([name], evidence, show_progress=False).values
            np.testing.assert_allclose(net.query(name, evidence), theirs, atol=1e-12)


def test_a_model_made_by_pyagrum_gives_pyagrums_answers() -> None:
    rng = np.random.default_rng(15)
    pyagrum.initRandom(15)
    for _ in range(5):
        bn = pyagrum.randomBN(n=8, ratio_arc=1.5, domain_size=3)
        net = Network.from_pyagrum(bn)
        for name, evidence in questions(net, rng, 6):
            theirs = pyagrum.getPosterior(bn, target=name, evs=evidence).toarray()
            np.testing.assert_allclose(net.query(name, evidence), theirs, atol=1e-12)


# -- there and back


@FUZZ
@given(awkward_networks())
def test_a_network_comes_back_from_pgmpy_with_its_types_whatever_the_names(net: Network) -> None:
    model = net.to_pgmpy()
    assert list(model.nodes) == list(net.dag.names)
    back = Network.from_pgmpy(model)
    assert (back.schema, back.dag) == (net.schema, net.dag)
    assert same_levels(back, net)
    for x, y in zip(back.tables, net.tables, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-15, atol=1e-15)


@FUZZ
@given(awkward_networks())
def test_a_network_comes_back_from_pyagrum_with_its_types_whatever_the_names(net: Network) -> None:
    back = Network.from_pyagrum(net.to_pyagrum())
    assert (back.schema, back.dag) == (net.schema, net.dag)
    assert same_levels(back, net)
    for x, y in zip(back.tables, net.tables, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-15, atol=1e-15)


def same_levels(a: Network, b: Network) -> bool:
    return [[type(v) for v in x.levels] for x in a.schema.variables] == [
        [type(v) for v in x.levels] for x in b.schema.variables
    ]


def test_short_probabilities_survive_both_libraries_to_the_last_bit() -> None:
    tables = (np.log([0.3, 0.7]), np.log([[0.1, 0.2, 0.7], [1e-5, 0.5, 0.49999]]))
    schema = Schema((Variable("a", (True, False)), Variable("b", ("p", "q", "r"))))
    net = Network(schema, Dag(("a", "b"), ((), (0,))), tables)
    assert same_types(Network.from_pgmpy(net.to_pgmpy()), net)
    assert same_types(Network.from_pyagrum(net.to_pyagrum()), net)


def test_a_parent_whose_levels_the_childs_pgmpy_table_lists_in_another_order_is_read_rightly() -> None:
    model = DiscreteBayesianNetwork([("a", "b")])
    a = TabularCPD("a", 2, [[0.3], [0.7]], state_names={"a": ["no", "yes"]})
    states = {"b": [0, 1], "a": ["yes", "no"]}
    b = TabularCPD("b", 2, [[0.1, 0.6], [0.9, 0.4]], ["a"], [2], state_names=states)
    model.add_cpds(a, b)
    net = Network.from_pgmpy(model, target="b")
    assert net.dag.names == ("b", "a")
    assert net.schema["b"].levels == (0, 1)
    np.testing.assert_allclose(net.probabilities("b"), [[0.6, 0.4], [0.1, 0.9]])


def test_pyagrums_kinds_of_variables_keep_their_meaning() -> None:
    bn = pyagrum.BayesNet()
    bn.add(pyagrum.RangeVariable("range", "", -1, 1))
    bn.add(pyagrum.IntegerVariable("integer", "", [1, 5, 7]))
    bn.add(pyagrum.NumericalDiscreteVariable("number", "", [0.5, 2.0]))
    bn.add(pyagrum.DiscretizedVariable("cut", "", [0, 1, 2.5, 4]))
    bn.generateCPTs()
    net = Network.from_pyagrum(bn, target="cut")
    assert net.dag.names[0] == "cut"
    assert net.schema["range"].levels == (-1, 0, 1)
    assert net.schema["integer"].levels == (1, 5, 7)
    assert net.schema["number"].levels == (0.5, 2.0)
    assert net.schema["cut"].levels == bn.variable("cut").labels()
    # A number on a cut belongs to the interval above it there, and so it must here.
    for number in (0.3, 1.0, 1.7, 2.5, 3.0):
        ours = int(np.searchsorted(net.schema["cut"].cuts or (), number))
        assert ours == bn.variable("cut").index(str(number))


# -- what is refused


def test_a_missing_library_is_one_sentence_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    net = random_network(np.random.default_rng(0))
    monkeypatch.setitem(sys.modules, "pgmpy.models", None)
    with pytest.raises(ImportError, match=r"needs pgmpy .*pip install pgmpy"):
        net.to_pgmpy()
    monkeypatch.setitem(sys.modules, "pyagrum", None)
    with pytest.raises(ImportError, match=r"needs pyagrum .*pip install pyagrum"):
        net.to_pyagrum()


def test_objects_of_another_kind_and_models_without_tables_are_refused() -> None:
    with pytest.raises(TypeError, match="from_pgmpy takes a DiscreteBayesianNetwork of pgmpy, not a dict"):
        Network.from_pgmpy({})
    with pytest.raises(TypeError, match=r"from_pyagrum takes a pyagrum\.BayesNet, not a dict"):
        Network.from_pyagrum({})
    with pytest.raises(ValueError, match="'a' has no table in the pgmpy model"):
        Network.from_pgmpy(DiscreteBayesianNetwork([("a", "b")]))
    bn = pyagrum.fastBN("a->b")
    bn.cpt("b").fillWith(0)
    with pytest.raises(ValueError, match=r"P\(b \| a='?0'?\) is \[0.0, 0.0\]"):
        Network.from_pyagrum(bn)


def test_a_network_whose_rows_sum_to_less_than_one_is_refused_by_both() -> None:
    net = Network(Schema((Variable("a", ("x", "y")),)), Dag(("a",), ((),)), (np.log([0.2, 0.3]),))
    for convert in (net.to_pgmpy, net.to_pyagrum):
        with pytest.raises(ValueError, match="sum to less than one"):
            convert()


def test_cleaned_names_are_distinct_and_clean_ones_stay() -> None:
    names = ["a b", "a_b", "a,b", "a_b_2", "A_B", "c"]
    cleaned = distinct(names, lambda text: text.replace(" ", "_").replace(",", "_"), str.lower)
    assert len({name.lower() for name in cleaned}) == len(names)
    assert [cleaned[i] for i in (1, 3, 5)] == ["a_b", "a_b_2", "c"]


def test_thousands_of_levels_that_clean_to_the_same_text_are_told_apart() -> None:
    cleaned = distinct([chr(0x4E00 + i) for i in range(20_000)], lambda _: "_")
    assert len(set(cleaned)) == 20_000


def test_a_mixed_network_agrees_after_two_libraries_in_a_row() -> None:
    variables = [Variable("class", (0, 1)), Variable("x y", ("a", None)), Variable("z", ("≤ 1", "> 1"), (1.0,), "cut")]
    net = build(variables, [(), (0,), (1, 0)], np.random.default_rng(8))
    back = Network.from_pyagrum(Network.from_pgmpy(net.to_pgmpy()).to_pyagrum())
    assert back.schema == net.schema
    assert back.schema["z"].cuts == (1.0,)
