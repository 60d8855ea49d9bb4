from __future__ import annotations

import numpy as np
import pytest

from marginbayes.data import rows as rows_module
from marginbayes.data.counts import family_counts, gram, pair_tables, pairs_by_class, strips
from marginbayes.data.rows import Block, Rows, code_type
from marginbayes.data.schema import Schema, Variable
from marginbayes.graph import Dag
from marginbayes.parameters import MaximumLikelihood


def random_rows(seed: int, n: int = 200, weighted: bool = False, holes: float = 0.2) -> Rows:
    rng = np.random.default_rng(seed)
    cards = (3, 2, 4, 1, 5)
    codes = np.stack([rng.integers(0, c, n) for c in cards]).astype(np.uint8)
    gone = rng.random(codes.shape) < holes
    gone[0] = False
    codes[gone] = np.broadcast_to(np.array(cards)[:, None], codes.shape)[gone]
    return Rows(codes, cards, rng.random(n) if weighted else None)


def counted(rows: Rows, family: tuple[int, ...]) -> np.ndarray:
    table = np.zeros([rows.cardinalities[v] for v in family])
    for n, codes in enumerate(rows.codes.T):
        cell = tuple(int(codes[v]) for v in family)
        if all(x < rows.cardinalities[v] for x, v in zip(cell, family, strict=True)):
            table[cell] += 1.0 if rows.weights is None else rows.weights[n]
    return table


@pytest.mark.parametrize(("cardinality", "dtype"), [(2, "uint8"), (255, "uint8"), (256, "uint16"), (70000, "uint32")])
def test_the_code_type_is_the_smallest_that_holds_the_missing_mark(cardinality: int, dtype: str) -> None:
    assert code_type(cardinality) == dtype


@pytest.mark.parametrize("weighted", [False, True])
def test_family_counts_are_those_of_a_plain_loop(weighted: bool) -> None:
    rows = random_rows(0, weighted=weighted)
    families = [(0,), (0, 1), (0, 2, 4), (4, 0), (3, 2), (1, 2, 3, 4)]
    for family, table in zip(families, family_counts(rows, families), strict=True):
        np.testing.assert_allclose(table, counted(rows, family), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_of_counting_pairs_agree_with_a_plain_loop(weighted: bool) -> None:
    rows = random_rows(1, weighted=weighted)
    starts = np.cumsum([0, *rows.cardinalities[1:]])
    by_class = list(pairs_by_class(rows))
    for i in range(1, 5):
        for j, table in pair_tables(rows, i):
            np.testing.assert_allclose(table, counted(rows, (0, i, j)), rtol=1e-12)
            for c, matrix in enumerate(by_class):
                part = matrix[starts[i - 1] : starts[i], starts[j - 1] : starts[j]]
                np.testing.assert_allclose(part, counted(rows, (0, i, j))[c], rtol=1e-12)


@pytest.mark.parametrize("width", [1, 3, 5, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_of_two_strips_are_a_part_of_those_of_all_features(width: int, weighted: bool) -> None:
    rows = random_rows(3, weighted=weighted)
    parts = strips(rows.cardinalities, width)
    assert [part.place.start for part in parts] == [0, *(part.place.stop for part in parts[:-1])]
    assert parts[-1].place.stop == 4
    assert len(parts) > 1 or width == 100
    for label, matrix in enumerate(pairs_by_class(rows)):
        for first in parts:
            for second in parts:
                found = rows.sum(gram, label, first, second, 10)
                np.testing.assert_allclose(found, matrix[first.levels, second.levels], rtol=1e-12)


def test_a_class_without_rows_has_pair_counts_of_zero() -> None:
    rows = Rows(np.array([[0, 2], [0, 1]], np.uint8), (3, 2))
    assert [matrix.sum() for matrix in pairs_by_class(rows)] == [1, 0, 1]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_a_sum_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, n_jobs: int) -> None:
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", 16)
    one = random_rows(2, weighted=True)
    many = Rows(one.codes, one.cardinalities, one.weights, n_jobs=n_jobs)
    (whole,) = strips(one.cardinalities)
    assert np.array_equal(one.sum(gram, 1, whole, whole), many.sum(gram, 1, whole, whole))
    assert np.concatenate(many.map(lambda block: block.codes[1])).tolist() == one.codes[1].tolist()


def test_merging_keeps_the_counts_and_says_where_each_row_went() -> None:
    for weighted in (False, True):
        rows = random_rows(3, weighted=weighted)
        merged, place = rows.merged()
        assert len(merged) < len(rows)
        assert np.array_equal(merged.codes[:, place], rows.codes)
        assert len({tuple(c) for c in merged.codes.T}) == len(merged)
        for family in [(0, 1), (2, 4)]:
            np.testing.assert_allclose(counted(merged, family), counted(rows, family), rtol=1e-12)


def test_merging_works_where_a_row_does_not_fit_an_integer() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (90, 30)).astype(np.uint8)
    codes = np.concatenate([codes, codes[:, :10]], axis=1)
    merged, place = Rows(codes, (200,) * 90).merged()
    assert len(merged) == 30
    assert np.array_equal(merged.codes[:, place], codes)


def test_rows_without_a_class_or_a_weight_do_not_count() -> None:
    codes = np.array([[0, 1, 2, 1], [0, 0, 1, 2]], np.uint8)  # the class of the third row is missing
    assert np.array_equal(Rows(codes, (2, 2)).labelled().codes, codes[:, [0, 1, 3]])
    counted = Rows(codes, (2, 2), np.array([0.0, 1.0, 1.0, 0.5])).labelled()
    assert np.array_equal(counted.codes, codes[:, [1, 3]])
    assert np.array_equal(counted.weights, [1.0, 0.5])


def test_blocks_are_consecutive_and_complete() -> None:
    rows = random_rows(4)
    blocks = list(rows.blocks(size=64))
    assert [len(b) for b in blocks] == [64, 64, 64, 8]
    assert np.array_equal(np.concatenate([b.codes for b in blocks], axis=1), rows.codes)
    assert isinstance(blocks[0], Block)


def test_some_rows_of_others_lie_variable_by_variable_like_them() -> None:
    rows = random_rows(4)
    some = np.arange(0, 200, 3)
    for part in (rows.take(some), rows.take(rows.codes[1] == 0), rows.merged()[0]):
        assert part.codes.flags.c_contiguous
    np.testing.assert_array_equal(rows.take(some).codes, rows.codes[:, some])
    np.testing.assert_array_equal(rows.take(rows.codes[1] == 0).codes, rows.codes[:, rows.codes[1] == 0])


def test_the_sum_over_no_rows_has_the_shape_of_any_other() -> None:
    rows = random_rows(0).take(np.zeros(200, bool))
    assert [table.shape for table in family_counts(rows, [(0,), (0, 2)])] == [(3,), (3, 4)]
    schema = Schema(tuple(Variable(f"v{i}", tuple(range(c))) for i, c in enumerate(rows.cardinalities)))
    network = MaximumLikelihood().learn(schema, Dag.naive(list(schema.names)), rows).network
    np.testing.assert_allclose(network.probabilities("v2"), 0.25)


def test_rows_are_equal_to_themselves_alone() -> None:
    one, other = random_rows(0), random_rows(0)
    assert one in [other, one]
    assert one not in [other]
    assert len({one, other}) == 2
