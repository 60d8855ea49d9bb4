"""Algebra of small matrices, and of those that go to the matrix library, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes.kernels.small_matrices import FEW, add_times, add_transposed, factorise, gram, solve

SIZES = [1, 3, 6, 7, FEW - 1, FEW, FEW + 5]


@pytest.mark.parametrize("p", SIZES)
def test_products_are_added_to_what_is_there(p: int) -> None:
    rng = np.random.default_rng(p)
    matrix, x, y = rng.normal(size=(9, p)), rng.normal(size=p), rng.normal(size=9)
    out, other = y.copy(), x.copy()
    add_times(matrix, x, out)
    np.testing.assert_allclose(out, y + matrix @ x, rtol=1e-12, atol=1e-12)
    add_transposed(matrix, y, other)
    np.testing.assert_allclose(other, x + matrix.T @ y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize("lines", [0, 1, 6, 60])
def test_the_lower_half_of_a_gram_matrix_is_that_of_its_lines(p: int, lines: int) -> None:
    matrix, out = np.random.default_rng(lines).normal(size=(lines, p)), np.full((p, p), np.nan)
    gram(matrix, out)
    np.testing.assert_allclose(np.tril(out), np.tril(matrix.T @ matrix), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", SIZES)
def test_a_factor_solves_its_system_and_an_indefinite_matrix_has_none(p: int) -> None:
    rng = np.random.default_rng(p)
    lines = rng.normal(size=(2 * p + 3, p))
    matrix, right = lines.T @ lines, rng.normal(size=p)
    factor, x = np.tril(matrix), right.copy()
    assert factorise(factor)
    solve(factor, x)
    np.testing.assert_allclose(matrix @ x, right, atol=1e-9)
    matrix[-1, -1] = -1.0
    assert not factorise(matrix)
