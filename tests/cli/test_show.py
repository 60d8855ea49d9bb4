"""`show`: the tree has every variable once, its numbers are those of the network."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from marginbayes import Dag, Network
from marginbayes.data.schema import Schema, Variable
from tests.cli.conftest import Run


def _network(dag: Dag, cards: dict[str, int] | None = None) -> Network:
    """A network with random tables over a graph."""
    rng = np.random.default_rng(0)
    sizes = cards or {}
    variables = tuple(Variable(name, tuple(f"{name}-{k}" for k in range(sizes.get(name, 2)))) for name in dag.names)
    schema = Schema(variables)
    tables = [
        np.log(rng.dirichlet(np.ones(card), tuple(schema.cardinalities[p] for p in parents)))
        for card, parents in zip(schema.cardinalities, dag.parents, strict=True)
    ]
    return Network(schema, dag, tuple(tables))


GENERAL = Dag.from_edges(
    [("a", "y"), ("b", "y"), ("y", "c"), ("a", "c"), ("b", "c"), ("c", "d"), ("b", "d")],
    ["y", "a", "b", "c", "d", "alone"],
)
CHAIN = Dag.from_edges(
    [("y", f"v{i}") for i in range(40)] + [(f"v{i}", f"v{i + 1}") for i in range(39)],
    ["y", *(f"v{i}" for i in range(40))],
)


@pytest.mark.parametrize("dag", [Dag.naive(["y", "a", "b"]), GENERAL, CHAIN], ids=["naive", "general", "chain"])
def test_every_variable_stands_once_below_a_parent_with_its_information(run: Run, tmp_path: Path, dag: Dag) -> None:
    network = _network(dag)
    network.to_json(tmp_path / "n.json")
    information = network.edge_information()
    lines = run("show", tmp_path / "n.json").stdout.splitlines()
    above: dict[int, str] = {}
    seen = []
    for line in lines[: len(dag.names)]:
        found = re.fullmatch(r"([ │├└─]*)(\w+) \(2\)(.*)", line.rstrip())
        assert found is not None, line
        depth, name, rest = len(found[1]) // 4, found[2], found[3].split()
        above[depth] = name
        seen.append(name)
        if depth:
            host = above[depth - 1]
            assert host in dag.parents_of(name)
            expected = [f"{information[host, name]:.3f}"]
            for parent in dag.parents_of(name):
                expected += [] if parent == host else [parent, f"{information[parent, name]:.3f}"]
            assert rest == expected
        else:
            assert dag.parents_of(name) == ()
    assert sorted(seen) == sorted(dag.names)
    sizes = f"{len(dag.names)} variables, {len(dag.edges)} edges, {network.n_parameters} free parameters"
    assert lines[len(dag.names)] == sizes


def test_a_variable_without_edges_is_said_to_be_unused(run: Run, tmp_path: Path) -> None:
    _network(GENERAL).to_json(tmp_path / "n.json")
    assert "alone (2)  not used" in run("show", tmp_path / "n.json").stdout


def test_tables_hold_every_probability_also_where_they_are_too_wide(run: Run, tmp_path: Path) -> None:
    network = _network(GENERAL, {"c": 12, "a": 3})
    network.to_json(tmp_path / "n.json")
    printed = run("show", tmp_path / "n.json", "--tables").stdout
    assert max(map(len, printed.split("P(y | a, b)")[1].splitlines())) <= 100
    numbers = sorted(re.findall(r"\b[01]\.\d{4}\b", printed))
    expected = sorted(f"{p:.4f}" for name in network.dag.names for p in network.probabilities(name).ravel())
    assert numbers == expected
    for title in ("P(y | a, b)", "P(a)", "P(c | y, a, b)"):
        assert printed.count(title) == 1


def test_the_picture_is_drawn_as_svg_and_png(run: Run, model: Path, tmp_path: Path) -> None:
    run("show", model, "--plot", tmp_path / "n.svg")
    text = (tmp_path / "n.svg").read_text("utf-8")
    assert text.startswith("<svg ")
    assert ">outcome<" in text
    assert f"drawn in {tmp_path / 'n.png'}" in run("show", model, "--plot", tmp_path / "n.png").stdout
    assert (tmp_path / "n.png").read_bytes()[:4] == b"\x89PNG"


def test_a_foreign_network_is_shown_too(run: Run, tmp_path: Path) -> None:
    _network(GENERAL).to_bif(tmp_path / "n.bif")
    assert "6 variables, 7 edges" in run("show", tmp_path / "n.bif").stdout


def test_an_average_of_networks_has_no_graph(run: Run, fails: Run, table: Path, tmp_path: Path) -> None:
    run("fit", table, "-t", "outcome", "-s", "aode", "-m", tmp_path / "m.json")
    printed = run("show", tmp_path / "m.json").stdout
    assert "AODE: the average of 4 networks" in printed
    assert "ward" in printed
    assert "no graph to draw" in fails("show", tmp_path / "m.json", "--plot", tmp_path / "n.svg")
    assert "no tables" in fails("show", tmp_path / "m.json", "--tables")
