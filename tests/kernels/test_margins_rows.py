from __future__ import annotations

import numpy as np
import pytest
from scipy.special import lambertw

from marginbayes.kernels.margins_rows import (
    advance,
    centre_rows,
    curvature,
    direction,
    hinge_sum,
    product_sum,
    products_ahead,
    right_side,
    row_steps,
    shortfalls,
    smooth_logs,
)

N, K = 7, 4


def point(seed: int, mu: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Shortfalls, labels, caps and the central rows."""
    rng = np.random.default_rng(seed)
    labels, caps, short = rng.integers(0, K, N), rng.random(N) + 0.2, rng.normal(size=(N, K)) * 3
    short[np.arange(N), labels] = 0.0
    rows = np.empty((N, K)), np.empty((N, K)), np.empty(N), np.empty(N)
    centre_rows(short, labels, caps, mu, *rows)
    return short, labels, caps, rows


def test_a_central_row_has_equal_products_and_uses_up_its_cap() -> None:
    short, labels, caps, (eta, room, spare, slack) = point(0)
    rival = np.arange(K) != labels[:, None]
    np.testing.assert_allclose((eta * room)[rival], 0.3, rtol=1e-10)
    np.testing.assert_allclose(spare * slack, 0.3, rtol=1e-10)
    np.testing.assert_allclose(eta.sum(axis=1) + spare, caps, rtol=1e-10)
    np.testing.assert_allclose(room[rival], (slack[:, None] - short)[rival], rtol=1e-10)
    assert product_sum(eta, room, spare, slack) == pytest.approx(0.3 * N * K)


def test_hinges_and_shortfalls_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    scores, labels, caps = rng.normal(size=(N, K)), rng.integers(0, K, N), rng.random(N)
    out = np.empty((N, K))
    shortfalls(scores, labels, 1.5, out)
    expected = [
        max(0.0, max(1.5 - scores[n, labels[n]] + scores[n, c] for c in range(K) if c != labels[n])) for n in range(N)
    ]
    assert hinge_sum(out, caps) == pytest.approx(caps @ expected)


def test_the_direction_solves_the_linearised_equations_of_the_rows() -> None:
    _, labels, _, rows = point(2)
    eta, room, spare, slack = rows
    rng = np.random.default_rng(3)
    moves = rng.normal(size=(N, K))  # change of the scores
    theta, tau, total = np.empty((N, K)), np.empty(N), np.empty(N)
    curvature(*rows, labels, theta, tau, total)
    change = np.zeros((N, K)), np.zeros((N, K)), np.zeros(N), np.zeros(N)
    fixed = np.empty((N, K))
    right_side(*rows, labels, theta, total, 0.1, 0.0, 0.3, *change, fixed)
    direction(*rows, labels, theta, tau, total, 0.1, 0.0, 0.3, moves, *change)
    d_eta, d_room, d_spare, d_slack = change
    rival = np.arange(K) != labels[:, None]
    np.testing.assert_allclose((eta * d_room + room * d_eta)[rival], (0.1 - eta * room)[rival], atol=1e-10)
    np.testing.assert_allclose(spare * d_slack + slack * d_spare, 0.1 - spare * slack, atol=1e-10)
    np.testing.assert_allclose(d_eta.sum(axis=1) + d_spare, 0.0, atol=1e-10)
    own = moves[np.arange(N), labels][:, None]
    np.testing.assert_allclose(d_room[rival], (d_slack[:, None] + own - moves)[rival], atol=1e-10)
    # Without a move the coefficients are those of `right_side`.
    still = tuple(np.zeros_like(part) for part in change)
    direction(*rows, labels, theta, tau, total, 0.1, 0.0, 0.3, np.zeros((N, K)), *still)
    np.testing.assert_allclose(-still[0][rival], fixed[rival], atol=1e-10)
    np.testing.assert_allclose(fixed.sum(axis=1), 0.0, atol=1e-10)


def test_advancing_keeps_everything_positive_and_arrives_where_it_was_foreseen() -> None:
    _, labels, caps, rows = point(4)
    rng = np.random.default_rng(5)
    rival = np.arange(K) != labels[:, None]
    change = tuple(5.0 * rng.normal(size=part.shape) for part in rows)
    for part in change[:2]:
        part[~rival] = 0.0
    steps = np.empty(N)
    row_steps(*rows, *change, steps)
    parts = [np.where(d < 0, -x / np.where(d < 0, d, -1.0), np.inf) for x, d in zip(rows, change, strict=True)]
    expected = np.minimum.reduce([np.where(rival, p, np.inf).min(axis=1) if p.ndim == 2 else p for p in parts])
    np.testing.assert_allclose(steps, np.minimum(expected, 1e300))
    change[2][:] = -change[0].sum(axis=1)  # the cap stays used up
    foreseen = products_ahead(0.7, 0.9, *rows, *change)
    advance(0.7, 0.9, labels, *rows, *change)
    eta, room, spare, slack = rows
    assert (eta[rival] > 0).all()
    assert (room[rival] > 0).all()
    assert (spare > 0).all()
    assert (slack > 0).all()
    np.testing.assert_allclose(eta.sum(axis=1) + spare, caps)
    assert product_sum(*rows) == pytest.approx(foreseen)


def test_the_smoothed_logarithm_solves_its_equation() -> None:
    logs = np.array([-200.0, -30.0, -1.0, 0.0, 3.0, 20.0])
    for mu in (1e-8, 1e-2, 5.0):
        amounts, excess = np.empty(6), np.empty(6)
        smooth_logs(logs, mu, amounts, excess)
        np.testing.assert_allclose(amounts * excess, mu, rtol=1e-12)
        np.testing.assert_allclose(np.log(amounts) - logs, excess, atol=1e-10, rtol=1e-10)
        usual = logs > -100  # beyond, the argument of Lambert's function overflows
        peer = mu / lambertw(mu * np.exp(-logs[usual])).real
        np.testing.assert_allclose(amounts[usual], peer, rtol=1e-9)
