"""Synthetic networks of the papers, against their laws enumerated or counted."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

pytest.importorskip("pandas", reason="data sets are pandas frames")

from marginbayes.datasets import Dataset, synthetic
from marginbayes.graph import Dag

Cell = tuple[int, int, int, int]


def informative_law() -> dict[Cell, Fraction]:
    """P(class, x1, x2, x3) of the paper's section 3, summed over its ways to set X2 and X3."""
    half, law = Fraction(1, 2), dict.fromkeys(product((1, 2), (0, 1), (0, 1), (0, 1)), Fraction(0))
    for label, x1 in product((1, 2), (0, 1)):
        for x2, p2 in ((x1, half), (0, half / 2), (1, half / 2)):
            copy = x1 if label == 1 else 1 - x1
            ways = ((copy, Fraction(3, 10)), (x2, half), (0, Fraction(1, 10)), (1, Fraction(1, 10)))
            for x3, p3 in ways:
                law[label, x1, x2, x3] += half * half * p2 * p3
    return law


def expected_accuracy(law: dict[Cell, Fraction], blocks: list[tuple[int, ...]]) -> Fraction:
    """Accuracy of the network in which the first feature of each block has the others as its parents."""

    def marginal(label: int, features: tuple[int, ...], row: Cell) -> Fraction:
        return sum(
            (p for c, p in law.items() if c[0] == label and all(c[f] == row[f] for f in features)),
            Fraction(0),
        )

    def score(label: int, row: Cell) -> Fraction:
        total = marginal(label, (), row)
        for block in blocks:
            total *= marginal(label, block, row) / marginal(label, block[1:], row)
        return total

    total = Fraction(0)
    for row in {(0, *cell[1:]) for cell in law}:
        scores = {label: score(label, row) for label in (1, 2)}
        best = [label for label in (1, 2) if scores[label] == max(scores.values())]
        total += sum((law[(label, *row[1:])] for label in best), Fraction(0)) / len(best)
    return total


def test_informative_edge_has_the_accuracies_that_its_docstring_states() -> None:
    law = informative_law()
    assert sum(law.values()) == 1
    assert expected_accuracy(law, [(1,), (2,), (3,)]) == Fraction(50, 100)
    assert expected_accuracy(law, [(1,), (2, 1), (3, 2)]) == Fraction(575, 1000)
    assert expected_accuracy(law, [(1,), (2, 1), (3, 1)]) == Fraction(65, 100)
    assert expected_accuracy(law, [(1,), (2, 1), (3, 1, 2)]) == Fraction(65, 100)


def conditional_information(law: dict[Cell, Fraction], a: int, b: int) -> float:
    """I(X_a; X_b | class) in nats."""

    def p(cell: Cell, kept: tuple[int, ...]) -> float:
        return float(sum(q for c, q in law.items() if all(c[i] == cell[i] for i in kept)))

    return sum(
        float(q) * math.log(p(c, (0, a, b)) * p(c, (0,)) / (p(c, (0, a)) * p(c, (0, b)))) for c, q in law.items()
    )


def test_the_informative_edge_is_the_weakest_by_conditional_mutual_information() -> None:
    weights = {edge: conditional_information(informative_law(), *edge) for edge in ((1, 2), (2, 3), (1, 3))}
    assert min(weights, key=weights.__getitem__) == (1, 3)


def test_informative_edge_is_drawn_from_that_law() -> None:
    data = synthetic.informative_edge(99_000, 1000)
    cells = np.column_stack([data.y, data.X.astype(int)])
    law = informative_law()
    chi2 = 0.0
    for cell, p in law.items():
        count, expected = int((cells == cell).all(axis=1).sum()), 100_000 * float(p)
        chi2 += (count - expected) ** 2 / expected
    # 15 degrees of freedom: 37.7 is exceeded once in a thousand times, and the seed is fixed.
    assert chi2 < 37.7
    assert [len(part) for part in data.split()] == [99_000, 99_000, 1000, 1000]


def satisfies_proposition_2(dag: Dag) -> bool:
    """Whether the parents of every child of the class are pairwise adjacent."""
    edges = {frozenset(edge) for edge in dag.edges}
    return all(
        frozenset(pair) in edges
        for child in dag.children_of("class")
        for pair in combinations(dag.parents_of(child), 2)
    )


def test_one_of_the_two_skewed_networks_satisfies_proposition_2() -> None:
    assert satisfies_proposition_2(synthetic.MORAL)
    assert not satisfies_proposition_2(synthetic.IMMORAL)


@pytest.mark.parametrize("dag", [synthetic.MORAL, synthetic.IMMORAL])
def test_skewed_rows_have_the_frequencies_of_the_skewed_tables(dag: Dag) -> None:
    data = synthetic.skewed_network(dag, n_train=40_000, n_test=10, beta=0.85, random_state=3)
    tables = synthetic.skewed_tables(dag, beta=0.85, random_state=3)
    columns = {"class": data.y.to_numpy(), **{name: data.X[name].astype(int).to_numpy() for name in data.X}}
    for node, name in enumerate(dag.names):
        for values in product((0, 1), repeat=len(dag.parents[node])):
            chosen = np.ones(len(data.y), dtype=bool)
            for parent, value in zip(dag.parents_of(name), values, strict=True):
                chosen &= columns[parent] == value
            share, size = columns[name][chosen].mean(), chosen.sum()
            assert abs(share - tables[node][values][1]) < 5 * 0.5 / np.sqrt(size)


def test_a_skewness_of_one_makes_children_functions_and_a_half_makes_them_uniform() -> None:
    for table in synthetic.skewed_tables(synthetic.MORAL, beta=1.0)[1:]:
        assert set(np.unique(table)) == {0.0, 1.0}
        assert table[..., 0].sum() == table[..., 1].sum()
    for table in synthetic.skewed_tables(synthetic.MORAL, beta=0.5):
        assert (table == 0.5).all()
    data = synthetic.skewed_network(n_train=500, n_test=500, beta=1.0)
    assert len(data.X.assign(label=data.y).drop_duplicates()) == 2 * 2 ** sum(
        not p for p in synthetic.MORAL.parents[1:]
    )


@pytest.mark.parametrize("beta", [0.4, 1.1, float("nan")])
def test_a_skewness_out_of_range_is_refused(beta: float) -> None:
    with pytest.raises(ValueError, match=r"between 0\.5 and 1"):
        synthetic.skewed_network(beta=beta)


def test_a_chain_is_sequences_of_the_right_length_with_tied_skewed_tables() -> None:
    data = synthetic.skewed_chain(4000, 10, length=5, n_children=4, beta=0.85)
    assert data.X.shape == (4010 * 5, 4)
    assert data.ids is not None
    assert data.ids["position"].tolist()[:6] == [0, 1, 2, 3, 4, 0]
    assert data.ids.groupby("seq_id").size().eq(5).all()
    labels = data.y.to_numpy().reshape(-1, 5)
    same = [(labels[:, i] == labels[:, i + 1]).mean() for i in range(4)]
    favoured = 0.85 if same[0] > 0.5 else 0.15
    # Every step, and every feature against its class, agrees as often as beta says.
    assert all(abs(share - favoured) < 5 * 0.36 / np.sqrt(4010) for share in same)
    for name in data.X:
        agree = (data.X[name].astype(int).to_numpy() == data.y.to_numpy()).mean()
        assert min(abs(agree - 0.85), abs(agree - 0.15)) < 5 * 0.36 / np.sqrt(4010 * 5)
    assert len(data.split()[2]) == 50


def pair_law(data: Dataset, rows: slice) -> np.ndarray:
    """Joint frequencies of all features in some rows."""
    codes = data.X.iloc[rows].astype(int).to_numpy() @ (2 ** np.arange(data.X.shape[1]))
    return np.bincount(codes, minlength=2 ** data.X.shape[1]) / len(codes)


def test_class_trees_hide_half_of_each_later_class_in_the_first() -> None:
    unit = 4000
    data = synthetic.class_trees(4, n_unit=unit, n_levels=2, random_state=1)
    assert data.y.value_counts().to_dict() == {1: 8 * unit, **dict.fromkeys((2, 3, 4, 5), 4 * unit)}
    assert len(data.split()[0]) == len(data.split()[2]) == 12 * unit
    first = pair_law(data, slice(0, 4 * unit))
    for k in range(4):
        start = (4 + 2 * k) * unit
        confused, own = (
            pair_law(data, slice(start, start + unit)),
            pair_law(data, slice(start + unit, start + 2 * unit)),
        )
        # 16 cells of 4000 rows: sampling alone gives a total variation of about .025.
        assert np.abs(confused - first).sum() / 2 < 0.05
        assert np.abs(own - first).sum() / 2 > 0.1


def test_class_trees_have_the_size_of_the_paper_by_default() -> None:
    data = synthetic.class_trees(5)
    assert data.X.shape == (150_000, 5)
    assert data.y.iloc[:75_000].value_counts().to_dict() == {
        1: 25_000,
        2: 12_500,
        3: 12_500,
        4: 12_500,
        5: 12_500,
    }
    assert {len(data.X[name].cat.categories) for name in data.X} == {10}


def test_a_part_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="both parts need rows: n_train is 0"):
        synthetic.informative_edge(0, 10)


def test_a_random_distribution_gives_every_pattern_its_own_probability() -> None:
    data = synthetic.random_distribution(3, 200_000, 10, random_state=2)
    joint = np.random.default_rng(2).dirichlet(np.ones(8))
    X, y, *_ = data.split()
    pattern = y.to_numpy() + 2 * X["X1"].astype(int).to_numpy() + 4 * X["X2"].astype(int).to_numpy()
    np.testing.assert_allclose(np.bincount(pattern, minlength=8) / 200_000, joint, atol=0.005)
