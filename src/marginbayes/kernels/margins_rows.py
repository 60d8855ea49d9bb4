"""Row by row: the hinge of a row over its rivals, as an interior-point method sees it.

A row with the cap B pays B times the slack xi >= 0, where every rival's room q = xi - (target - margin) is to stay
positive. Its multipliers: eta for each rival (positive), t = B - sum of eta (positive). On the central path
eta q = t xi = mu. A rival's curvature is theta = eta / q, the slack's tau = t / xi; eliminating the slack leaves
diag(theta) - theta theta' / (tau + sum of theta) between the rivals.

The entry of the row's own class is not used in any of the arrays (rows x classes); it stays zero.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = [
    "advance",
    "centre_rows",
    "curvature",
    "direction",
    "hinge_sum",
    "product_sum",
    "products_ahead",
    "right_side",
    "row_steps",
    "shortfalls",
    "smooth_logs",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# A correction moves a product of the central path by at most this many times its mean.
CORRECTION = 10.0


@njit(cache=True, nogil=True)
def shortfalls(scores: Floats, labels: Labels, target: float, out: Floats) -> None:
    """Set `out[n, c]` to target less the margin of the own class over rival c, 0 at the own class."""
    for n in range(len(scores)):
        own = scores[n, labels[n]]
        for c in range(scores.shape[1]):
            out[n, c] = target - own + scores[n, c]
        out[n, labels[n]] = 0.0


@njit(cache=True, nogil=True)
def hinge_sum(short: Floats, caps: Floats) -> float:
    """Sum over the rows of cap times the largest shortfall, where that is positive."""
    total = 0.0
    for n in range(len(short)):
        top = 0.0
        for c in range(short.shape[1]):
            top = max(top, short[n, c])
        total += caps[n] * top
    return total


@njit(cache=True, nogil=True)
def _centred_slack(short: Floats, label: int, cap: float, mu: float) -> float:
    """The slack xi with mu / xi + sum over rivals of mu / (xi - shortfall) = cap."""
    top = 0.0
    for c in range(len(short)):
        top = max(top, short[c])
    slack, most = top + mu / cap, top + len(short) * mu / cap
    for _ in range(100):
        total, slope = mu / slack, mu / (slack * slack)
        for c in range(len(short)):
            if c != label:
                part = mu / (slack - short[c])
                total += part
                slope += part / (slack - short[c])
        # Newton on 1 / total, which is nearly linear in the slack
        new = min(most, slack + (total - cap) * total / (slope * cap))
        if new <= top:
            new = 0.5 * (slack + top)
        if abs(total - cap) <= 1e-13 * cap or new == slack:
            break
        slack = new
    return slack


@njit(cache=True, nogil=True)
def centre_rows(
    short: Floats, labels: Labels, caps: Floats, mu: float, eta: Floats, room: Floats, spare: Floats, slack: Floats
) -> None:
    """The central point of every row for given shortfalls: all products are mu."""
    for n in range(len(short)):
        slack[n] = _centred_slack(short[n], labels[n], caps[n], mu)
        for c in range(short.shape[1]):
            room[n, c] = slack[n] - short[n, c]
            eta[n, c] = mu / room[n, c]
        eta[n, labels[n]] = 0.0
        room[n, labels[n]] = 0.0
        spare[n] = mu / slack[n]


@njit(cache=True, nogil=True)
def product_sum(eta: Floats, room: Floats, spare: Floats, slack: Floats) -> float:
    """Sum of all products eta q and t xi."""
    total = 0.0
    for n in range(len(eta)):
        part = spare[n] * slack[n]
        for c in range(eta.shape[1]):
            part += eta[n, c] * room[n, c]
        total += part
    return total


@njit(cache=True, nogil=True)
def curvature(
    eta: Floats,
    room: Floats,
    spare: Floats,
    slack: Floats,
    labels: Labels,
    theta: Floats,
    tau: Floats,
    total: Floats,
) -> None:
    """Set theta, tau and tau + sum of theta for each row."""
    for n in range(len(eta)):
        tau[n] = spare[n] / slack[n]
        total[n] = tau[n]
        for c in range(eta.shape[1]):
            theta[n, c] = 0.0 if c == labels[n] else eta[n, c] / room[n, c]
            total[n] += theta[n, c]


@njit(inline="always")
def _wanted(product: float, goal: float, change: float, limit: float) -> float:
    """By how much a product should change: to the goal, less a bounded second-order correction."""
    change = min(limit, max(-limit, change))
    return max(goal - change, 0.5 * min(goal, product)) - product


@njit(cache=True, nogil=True)
def right_side(
    eta: Floats,
    room: Floats,
    spare: Floats,
    slack: Floats,
    labels: Labels,
    theta: Floats,
    total: Floats,
    goal: float,
    scale: float,
    mu: float,
    d_eta: Floats,
    d_room: Floats,
    d_spare: Floats,
    d_slack: Floats,
    out: Floats,
) -> None:
    """Coefficients (see `add_coefficients`) of the change of eta if the weights did not move.

    `scale` times the products of the last direction is the second-order correction.
    """
    limit = CORRECTION * mu
    for n in range(len(eta)):
        label = labels[n]
        free = _wanted(spare[n] * slack[n], goal, scale * d_spare[n] * d_slack[n], limit) / slack[n]
        for c in range(eta.shape[1]):
            if c != label:
                change = scale * d_eta[n, c] * d_room[n, c]
                out[n, c] = _wanted(eta[n, c] * room[n, c], goal, change, limit) / room[n, c]
                free += out[n, c]
        own = 0.0
        for c in range(eta.shape[1]):
            if c != label:
                out[n, c] = theta[n, c] * free / total[n] - out[n, c]
                own -= out[n, c]
        out[n, label] = own


@njit(cache=True, nogil=True)
def direction(
    eta: Floats,
    room: Floats,
    spare: Floats,
    slack: Floats,
    labels: Labels,
    theta: Floats,
    tau: Floats,
    total: Floats,
    goal: float,
    scale: float,
    mu: float,
    scores: Floats,
    d_eta: Floats,
    d_room: Floats,
    d_spare: Floats,
    d_slack: Floats,
) -> None:
    """Set the change of every row's variables for the scores of the weights' change.

    The old direction, for the correction, is read from the same arrays.
    """
    limit = CORRECTION * mu
    for n in range(len(eta)):
        label, own = labels[n], scores[n, labels[n]]
        spare_part = _wanted(spare[n] * slack[n], goal, scale * d_spare[n] * d_slack[n], limit) / slack[n]
        free = spare_part
        for c in range(eta.shape[1]):
            if c != label:
                change = scale * d_eta[n, c] * d_room[n, c]
                d_eta[n, c] = _wanted(eta[n, c] * room[n, c], goal, change, limit) / room[n, c]
                free += d_eta[n, c] - theta[n, c] * (own - scores[n, c])
        d_slack[n] = free / total[n]
        d_spare[n] = spare_part - tau[n] * d_slack[n]
        for c in range(eta.shape[1]):
            if c != label:
                d_room[n, c] = d_slack[n] + own - scores[n, c]
                d_eta[n, c] -= theta[n, c] * d_room[n, c]


@njit(inline="always")
def _shorter(longest: float, value: float, change: float) -> float:
    return -value / change if change * longest < -value else longest


@njit(inline="always")
def _row_step(step: float, nearly: float, eta: Floats, spare: float, d_eta: Floats, d_spare: float) -> float:
    """How far the multipliers of a row can go along with the others."""
    longest = _shorter(1e300, spare, d_spare)
    for c in range(len(eta)):
        longest = _shorter(longest, eta[c], d_eta[c])
    return step if step < nearly * longest else nearly * longest


@njit(inline="always")
def _row_lift(step: float, nearly: float, room: Floats, slack: float, d_room: Floats, d_slack: float) -> float:
    """How much more slack a row needs so that neither it nor the room of a rival gets lost."""
    lift = (1.0 - nearly) * slack - (slack + step * d_slack)
    for c in range(len(room)):
        lift = max(lift, (1.0 - nearly) * room[c] - (room[c] + step * d_room[c]))
    return max(0.0, lift)


@njit(cache=True, nogil=True)
def row_steps(
    eta: Floats,
    room: Floats,
    spare: Floats,
    slack: Floats,
    d_eta: Floats,
    d_room: Floats,
    d_spare: Floats,
    d_slack: Floats,
    out: Floats,
) -> None:
    """For each row the step at which the first of its variables reaches zero."""
    for n in range(len(eta)):
        longest = _shorter(1e300, spare[n], d_spare[n])
        longest = _shorter(longest, slack[n], d_slack[n])
        for c in range(eta.shape[1]):
            longest = _shorter(longest, eta[n, c], d_eta[n, c])
            longest = _shorter(longest, room[n, c], d_room[n, c])
        out[n] = longest


@njit(cache=True, nogil=True)
def products_ahead(
    step: float,
    nearly: float,
    eta: Floats,
    room: Floats,
    spare: Floats,
    slack: Floats,
    d_eta: Floats,
    d_room: Floats,
    d_spare: Floats,
    d_slack: Floats,
) -> float:
    """Sum of all products after `advance`, without going there."""
    total = 0.0
    for n in range(len(eta)):
        own = _row_step(step, nearly, eta[n], spare[n], d_eta[n], d_spare[n])
        lift = _row_lift(step, nearly, room[n], slack[n], d_room[n], d_slack[n])
        part = (spare[n] + own * d_spare[n]) * (slack[n] + step * d_slack[n] + lift)
        for c in range(eta.shape[1]):
            part += (eta[n, c] + own * d_eta[n, c]) * (room[n, c] + step * d_room[n, c] + lift)
        total += part
    return total


@njit(cache=True, nogil=True)
def advance(
    step: float,
    nearly: float,
    labels: Labels,
    eta: Floats,
    room: Floats,
    spare: Floats,
    slack: Floats,
    d_eta: Floats,
    d_room: Floats,
    d_spare: Floats,
    d_slack: Floats,
) -> int:
    """Move every row's variables by a step along the direction; return how many rows could not go all the way.

    A row whose multipliers would leave goes with them as far as it can; one whose room would get lost takes more slack,
    which is always allowed. So a few rows do not hold up all others.
    """
    held = 0
    for n in range(len(eta)):
        own = _row_step(step, nearly, eta[n], spare[n], d_eta[n], d_spare[n])
        lift = _row_lift(step, nearly, room[n], slack[n], d_room[n], d_slack[n])
        if own < step or lift > 0.0:
            held += 1
        for c in range(eta.shape[1]):
            eta[n, c] += own * d_eta[n, c]
            if c != labels[n]:
                room[n, c] += step * d_room[n, c] + lift
        spare[n] += own * d_spare[n]
        slack[n] += step * d_slack[n] + lift
    return held


@njit(cache=True, nogil=True)
def smooth_logs(logs: Floats, mu: float, amounts: Floats, excess: Floats) -> None:
    """Solve amount (log(amount) - logs) = mu for every entry; `excess` is log(amount) - logs = mu / amount.

    For large logs the amount is exp(logs) + mu, for very negative ones about mu / |logs|: it is never zero.
    """
    base = math.log(mu)
    for i in range(len(logs)):
        level = base - logs[i]  # excess + log(excess) = level
        x = level - math.log(level) if level > 1.0 else math.exp(level) / (1.0 + math.exp(level))
        for _ in range(30):
            # An iteration of fourth order (Fritsch, Shafer & Crowley 1973)
            error = level - x - math.log(x)
            near = 2.0 * (1.0 + x) * (1.0 + x + error / 1.5)
            x *= 1.0 + error / (1.0 + x) * (near - error) / (near - 2.0 * error)
            if abs(error) <= 1e-4 * (1.0 + abs(level)):
                break
        excess[i] = x
        amounts[i] = mu / x
