"""The kernels of the search against loops over tables; also run with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from marginbayes.kernels.families import Usual, add_family, table_of
from marginbayes.kernels.search import (
    BINARY,
    HIGHEST,
    LIKELIHOOD,
    LOWEST,
    MARGIN,
    RATE,
    STEPS,
    leads,
    losses,
    score_candidates,
)

CARDS = np.array([3, 2, 3, 2])  # class, child, first parent, second parent
MEMBERS, SIZES = CARDS[1:], CARDS[1:] + 1


def sample(seed: int, n: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes with missing cells (not in the class), labels and weights."""
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(0, c + (i > 0), n) for i, c in enumerate(CARDS)], np.uint8)
    return codes, codes[0].astype(np.int64), rng.choice([0.5, 1.0, 2.0], n)


def index_of(codes: np.ndarray, members: int) -> np.ndarray:
    """Cell of each row in the table of the child and its first parents."""
    index = codes[1].astype(np.uint32)
    for k in range(2, 1 + members):
        index = index * np.uint32(CARDS[k] + 1) + codes[k]
    return index


def chances(parts: list[float], floor: bool, amount: float) -> list[float]:
    total = sum(parts)
    shares = [n / total if n > 0 else amount for n in parts] if floor else [n + amount for n in parts]
    return [s / sum(shares) if sum(shares) > 0 else 1 / len(parts) for s in shares]


def slow_log_chance(
    sample: tuple[np.ndarray, np.ndarray, np.ndarray], cell: tuple[int, ...], of: set[int], floor: bool, amount: float
) -> float:
    """log P(child | known parents, class in a set) of a cell (child, parents)."""
    codes, labels, weights = sample
    parts = [0.0] * int(CARDS[1])
    for row, label, weight in zip(codes.T, labels, weights, strict=True):
        known = all(x == CARDS[k] or row[k] == x for k, x in enumerate(cell[1:], start=2))
        if known and label in of and row[1] < CARDS[1]:
            parts[row[1]] += weight
    return math.log(chances(parts, floor, amount)[cell[0]])


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("floor", "amount"), [(False, 1.0), (False, 0.2), (True, 1e-3)])
def test_tables_leave_missing_parents_out_of_the_condition(binary: bool, floor: bool, amount: float) -> None:
    data = sample(0)
    counts, table = np.zeros(3 * math.prod(SIZES)), np.empty(3 * math.prod(SIZES))
    for at, label, weight in zip(index_of(data[0], 3), *data[1:], strict=True):
        counts[int(at) * 3 + label] += weight
    table_of(counts, MEMBERS, SIZES, 3, binary, int(floor), amount, table)
    found = table.reshape(*SIZES, 3)
    for cell in product(*map(range, SIZES)):
        for c in range(3):
            expected = 0.0
            if cell[0] < CARDS[1]:
                expected = slow_log_chance(data, cell, {c}, floor, amount)
                if binary:
                    expected -= slow_log_chance(data, cell, {0, 1, 2} - {c}, floor, amount)
            assert found[(*cell, c)] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("smoothing", [0, 1])
def test_a_condition_that_never_occurs_leaves_the_levels_equal(smoothing: int) -> None:
    table = np.empty(3 * 3 * 2)
    counts = np.zeros(3 * 3 * 2)
    table_of(counts, np.array([2, 2]), np.array([3, 3]), 2, False, smoothing, 0.0, table)
    assert table.reshape(3, 3, 2)[:2] == pytest.approx(np.log(0.5))


@pytest.mark.parametrize("binary", [False, True])
def test_a_family_adds_its_entries_and_takes_them_away(binary: bool) -> None:
    data = sample(1, 12)
    codes, labels, weights = data
    state = np.zeros((12, 1 if binary else 3))
    add_family(state, index_of(codes, 3), MEMBERS, SIZES, labels, weights, 3, binary, 0, 0.5, 1.0)
    for n, row in enumerate(codes.T):
        for c in [int(labels[n])] if binary else range(3):
            expected = 0.0
            if row[1] < CARDS[1]:
                expected = slow_log_chance(data, tuple(row[1:]), {c}, False, 0.5)
                expected -= slow_log_chance(data, tuple(row[1:]), {0, 1, 2} - {c}, False, 0.5) if binary else 0.0
            assert state[n, 0 if binary else c] == pytest.approx(expected, abs=1e-12)
    add_family(state, index_of(codes, 3), MEMBERS, SIZES, labels, weights, 3, binary, 0, 0.5, -1.0)
    np.testing.assert_allclose(state, 0.0, atol=1e-12)


def test_losses_are_errors_lost_likelihood_and_lacking_margin() -> None:
    state = np.log([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [0.4, 0.4, 0.2]])
    labels = np.array([2, 0, 0, 1])
    # The first of two equal classes wins.
    np.testing.assert_array_equal(losses(RATE, state, labels, 1.0), [1, 0, 0, 1])
    np.testing.assert_allclose(losses(LIKELIHOOD, state, labels, 1.0), -np.log([0.3, 0.6, 0.4, 0.4]), atol=1e-14)
    lacking = [1 + math.log(5 / 3), 1 - math.log(2), 1.0, 1.0]
    np.testing.assert_allclose(losses(MARGIN, state, labels, 1.0), lacking, atol=1e-14)
    np.testing.assert_allclose(losses(MARGIN, state, labels, 0.5)[1], 0.0)
    np.testing.assert_allclose(losses(BINARY, np.array([[0.4], [-2.0], [3.0]]), labels[:3], 1.0), [0.6, 3.0, 0.0])


@pytest.mark.parametrize("binary", [False, True])
def test_leads_say_how_far_the_best_other_class_is_ahead_and_how_far_any_row_behind(binary: bool) -> None:
    rng = np.random.default_rng(4)
    state, labels = rng.normal(size=(20, 1 if binary else 3)), rng.integers(0, 3, 20)
    weights = rng.choice([0.5, 1.0, 2.0], 20)
    order, lead, rival, ahead, least, passed = leads(state, labels, weights, binary)
    np.testing.assert_allclose(passed, np.append(0.0, np.cumsum(weights[order])))
    for t, n in enumerate(order):
        others = {c: state[n, c] for c in range(3) if c != labels[n]} if not binary else {}
        best = max(others.values()) - state[n, labels[n]] if others else -state[n, 0]
        assert lead[t] == pytest.approx(best)
        assert ahead[t] == lead[t:].max()
        assert least[t] == lead[: t + 1].min()
        assert binary or others[int(rival[t])] == max(others.values())


@pytest.mark.parametrize("binary", [False, True])
def test_rows_in_doubt_come_in_the_order_of_their_leads_up_to_a_step(binary: bool) -> None:
    rng = np.random.default_rng(6)
    state, labels = 20 * rng.normal(size=(200, 1 if binary else 3)), rng.integers(0, 3, 200)
    order, lead, *_ = leads(state, labels, np.ones(200), binary)
    assert sorted(order.tolist()) == list(range(200))
    assert (np.diff(np.clip(lead, LOWEST, HIGHEST)) <= (HIGHEST - LOWEST) / (STEPS - 1)).all()


def usual_of(codes: np.ndarray) -> Usual:
    """The most frequent code of each variable, and the rows that have another one."""
    code = np.array([np.bincount(column).argmax() for column in codes])
    others = [np.flatnonzero(column != x).astype(np.uint32) for column, x in zip(codes, code, strict=True)]
    return Usual(code, np.cumsum([0, *map(len, others)]), np.concatenate(others))


@pytest.mark.parametrize("by_difference", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("spread", [1.0, 8.0])
@pytest.mark.parametrize("kind", [RATE, LIKELIHOOD, MARGIN, BINARY])
def test_candidates_have_the_loss_after_adding_them_unless_it_is_above_the_limit(
    kind: int, spread: float, weighted: bool, missing: bool, by_difference: bool
) -> None:
    codes, labels, weights = sample(2)
    if not missing:
        codes = np.minimum(codes, CARDS[:, None] - 1).astype(np.uint8)
    radix = CARDS + np.array([0, 1, 1, 1]) * missing
    weights = weights if weighted else np.ones(30)
    rng = np.random.default_rng(5)
    state = spread * rng.normal(size=(30, 1 if kind == BINARY else 3))
    candidates, amount = np.array([2, 3]), 0.5
    usual = usual_of(codes)
    if not by_difference:
        usual = usual._replace(code=np.full(4, -1))
    expected = []
    for j in candidates:
        after, index = state.copy(), codes[1].astype(np.uint32) * np.uint32(radix[j]) + codes[j]
        family = [1, j]
        add_family(after, index, CARDS[family], radix[family], labels, weights, 3, kind == BINARY, 0, amount, 1.0)
        expected.append(float(weights @ losses(kind, after, labels, 1.0)))

    def found(limit: float) -> np.ndarray:
        ahead = leads(state, labels, weights, kind == BINARY)
        given = np.array([1]), codes[1].astype(np.uint32), candidates, 0, amount, limit, 1e-12
        some = weights if weighted else np.empty(0)
        return score_candidates(kind, 1.0, state, *ahead, some, usual, codes, CARDS, radix, *given)

    best = int(np.argmin(expected))
    for limit in (np.inf, min(expected) + 1e-9):
        losses_found = found(limit)
        assert losses_found[best] == pytest.approx(expected[best], abs=1e-10)
        assert np.isinf(losses_found[1 - best]) or losses_found[1 - best] == pytest.approx(expected[1 - best])
    assert np.isinf(found(min(expected) - 1e-9)).all()
    # The better one comes too late to stop one before it.
    assert np.isfinite(found(np.inf)[: best + 1]).all()
