"""The linear system of an interior-point step over rows of cells: products, diagonals, and the strong modes.

Rows are deviations from the usual row, see `kernels.deviations`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = [
    "curvature_diagonal",
    "curvature_matrix",
    "curvature_product",
    "group_matrix",
    "leverages",
    "mode_blocks",
    "mode_products",
    "mode_scores",
    "mode_sums",
    "move_modes",
    "move_rows",
    "shrink_takers",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cells = NDArray[np.int32]


@njit(cache=True, nogil=True)
def curvature_product(
    starts: Ints,
    cells: Cells,
    rows: Ints,
    labels: Ints,
    theta: Floats,
    tau: Floats,
    total: Floats,
    changes: Floats,
    base: Floats,
    out: Floats,
    out_total: Floats,
) -> None:
    """Add the product of the rows' curvature with a direction (its changes and base score) to the output."""
    n_classes = changes.shape[1]
    s = np.empty(n_classes)
    for n in rows:
        for c in range(n_classes):
            s[c] = base[c]
        for k in range(starts[n], starts[n + 1]):
            cell = cells[k]
            for c in range(n_classes):
                s[c] += changes[cell, c]
        own, mean = s[labels[n]], 0.0
        for c in range(n_classes):
            mean += theta[n, c] * (own - s[c])
        mean /= total[n]
        for c in range(n_classes):
            s[c] = theta[n, c] * (mean - own + s[c])
        s[labels[n]] = mean * tau[n]
        for c in range(n_classes):
            out_total[c] += s[c]
        for k in range(starts[n], starts[n + 1]):
            cell = cells[k]
            for c in range(n_classes):
                out[cell, c] += s[c]


@njit(cache=True, nogil=True)
def curvature_diagonal(labels: Ints, theta: Floats, tau: Floats, total: Floats, out: Floats) -> None:
    """Diagonal of each row's curvature between classes, without the cancellation in theta - theta^2 / total."""
    n_classes = theta.shape[1]
    for n in range(len(theta)):
        for c in range(n_classes):
            others = total[n] - theta[n, c]
            if others < 0.5 * total[n]:
                others = tau[n]
                for d in range(n_classes):
                    if d != c:
                        others += theta[n, d]
            out[n, c] = theta[n, c] * others / total[n]
        out[n, labels[n]] = (total[n] - tau[n]) * tau[n] / total[n]


@njit(cache=True, nogil=True)
def curvature_matrix(
    cells: Cells, rows: Ints, labels: Ints, theta: Floats, tau: Floats, total: Floats, matrix: Floats
) -> None:
    """Add the curvature of these rows to the matrix of all weights (a cell's classes behind each other).

    Only the lower triangle is complete: the cells of a row ascend.
    """
    n_classes = theta.shape[1]
    between = np.empty((n_classes, n_classes))
    for n in rows:
        for c in range(n_classes):
            between[c, c] = 0.0
        for c in range(n_classes):
            v = tau[n] if c == labels[n] else theta[n, c]
            for d in range(c):
                value = v * (tau[n] if d == labels[n] else theta[n, d]) / total[n]
                between[c, d] = between[d, c] = -value
                between[c, c] += value
                between[d, d] += value
        for i in range(cells.shape[1]):
            for j in range(i + 1):
                a, b = cells[n, i], cells[n, j]
                if a >= 0 and b >= 0:
                    for c in range(n_classes):
                        for d in range(n_classes):
                            matrix[a * n_classes + c, b * n_classes + d] += between[c, d]


@njit(cache=True, nogil=True)
def group_matrix(blocks: Ints, chunks: Cells, h: Floats, kappa: Floats, matrix: Floats) -> None:
    """Add diag(h) and h h' / kappa of every group; in the first block all classes of a cell are one group."""
    n_cells, n_classes = h.shape
    for a in range(n_cells):
        for c in range(n_classes):
            matrix[a * n_classes + c, a * n_classes + c] += h[a, c]
        if blocks[a] == 0:
            for c in range(n_classes):
                for d in range(n_classes):
                    matrix[a * n_classes + c, a * n_classes + d] += h[a, c] * h[a, d] / kappa[chunks[a], c]
            continue
        b = a
        while b >= 0 and chunks[b] == chunks[a]:
            for c in range(n_classes):
                matrix[a * n_classes + c, b * n_classes + c] += h[a, c] * h[b, c] / kappa[chunks[a], c]
            b -= 1


@njit(cache=True, nogil=True)
def leverages(
    labels: Ints, theta: Floats, tau: Floats, total: Floats, softness: Floats, top: Ints, sums: Floats, others: Floats
) -> None:
    """How much each mode of a row's curvature weighs against the diagonal; `softness` is the inverse of that per row.

    Modes of a row: its own class against its top rival (`sums`), and the top rival against each other (`others`).
    """
    n_classes = theta.shape[1]
    for n in range(len(theta)):
        label, best = labels[n], -1
        for c in range(n_classes):
            if c != label and (best < 0 or theta[n, c] > theta[n, best]):
                best = c
        top[n] = best
        rest = tau[n]
        for c in range(n_classes):
            if c != best:
                rest += theta[n, c]
        sums[n] = (softness[n, label] + softness[n, best]) * theta[n, best] * rest / total[n]
        for c in range(n_classes):
            if c in (label, best) or theta[n, c] == 0.0:
                others[n, c] = 0.0
            else:
                pair = theta[n, c] * theta[n, best] / (theta[n, c] + theta[n, best])
                others[n, c] = (softness[n, best] + softness[n, c]) * pair


@njit(cache=True, nogil=True)
def mode_blocks(
    starts: Ints,
    rows: Ints,
    first: Ints,
    second: Ints,
    labels: Ints,
    theta: Floats,
    tau: Floats,
    matrix: Floats,
    diagonal: Floats,
) -> None:
    """Add the inverse curvature of the chosen modes to the matrix, and set their diagonal between classes.

    The modes of a row stand behind each other, from `starts[i]` to `starts[i + 1]`. With s = 1 for the mode of the own
    class and -1 for others, and weights k, the inverse is s s' / theta_top + diag(1 / k).
    """
    for i in range(len(starts) - 1):
        begin, end = starts[i], starts[i + 1]
        n = rows[begin]
        label = labels[n]
        top = second[begin] if first[begin] == label else first[begin]
        left = theta[n].copy()
        left[top] = 0.0
        weights = np.empty(end - begin)
        for j in range(begin, end):
            if first[j] != label:
                weights[j - begin] = theta[n, second[j]]
                left[second[j]] = 0.0
        if first[begin] == label:
            weights[0] = tau[n] + left.sum()
        kept = weights.sum()
        whole = theta[n, top] + kept
        for j in range(begin, end):
            sign = 1.0 if first[j] == label else -1.0
            for k in range(begin, end):
                other = 1.0 if first[k] == label else -1.0
                matrix[j, k] += sign * other / theta[n, top]
            k = j - begin
            matrix[j, j] += 1.0 / weights[k]
            where = label if first[j] == label else second[j]
            diagonal[i, where] = weights[k] * (whole - weights[k]) / whole
        diagonal[i, top] = kept * theta[n, top] / whole


@njit(cache=True, nogil=True)
def _shared(a: Cells, b: Cells, chunks: Cells, inverse: Floats, pull: Floats, c: int) -> float:
    """Inner product of two rows of cells in one class, by the inverse of diagonal plus one vector for each chunk."""
    total = 0.0
    for f in range(len(a)):
        i, j = a[f], b[f]
        if i >= 0 and j >= 0 and chunks[i] == chunks[j]:
            total -= pull[i, c] * pull[j, c]
            if i == j:
                total += inverse[i, c]
    return total


@njit(cache=True, nogil=True)
def mode_products(
    cells: Cells,
    chunks: Cells,
    rows: Ints,
    first: Ints,
    second: Ints,
    inverse: Floats,
    pull: Floats,
    begin: int,
    end: int,
    matrix: Floats,
) -> None:
    """Add to the lower triangle (lines `begin` to `end`) the inner products of the modes: first less second class.

    In the first block all classes of a cell are one chunk.
    """
    for i in range(begin, end):
        a, p, m = cells[rows[i]], first[i], second[i]
        for j in range(i + 1):
            b, q, k = cells[rows[j]], first[j], second[j]
            total = 0.0
            if p == q:
                total += _shared(a, b, chunks, inverse, pull, p)
            if m == k:
                total += _shared(a, b, chunks, inverse, pull, m)
            if p == k:
                total -= _shared(a, b, chunks, inverse, pull, p)
            if m == q:
                total -= _shared(a, b, chunks, inverse, pull, m)
            cell = a[0]
            if cell >= 0 and cell == b[0]:
                if p != q:
                    total -= pull[cell, p] * pull[cell, q]
                if m != k:
                    total -= pull[cell, m] * pull[cell, k]
                if p != k:
                    total += pull[cell, p] * pull[cell, k]
                if m != q:
                    total += pull[cell, m] * pull[cell, q]
            matrix[i, j] += total


@njit(cache=True, nogil=True)
def mode_scores(
    starts: Ints, cells: Cells, rows: Ints, first: Ints, second: Ints, changes: Floats, base: Floats, out: Floats
) -> None:
    """Set `out[i]` to the score of the first class less that of the second in the mode's row."""
    for i in range(len(rows)):
        p, m = first[i], second[i]
        total = base[p] - base[m]
        for k in range(starts[rows[i]], starts[rows[i] + 1]):
            total += changes[cells[k], p] - changes[cells[k], m]
        out[i] = total


@njit(cache=True, nogil=True)
def mode_sums(
    starts: Ints, cells: Cells, rows: Ints, first: Ints, second: Ints, amounts: Floats, out: Floats, total: Floats
) -> None:
    """The transpose of `mode_scores`."""
    for i in range(len(rows)):
        p, m, amount = first[i], second[i], amounts[i]
        total[p] += amount
        total[m] -= amount
        for k in range(starts[rows[i]], starts[rows[i] + 1]):
            out[cells[k], p] += amount
            out[cells[k], m] -= amount


@njit(cache=True, nogil=True)
def move_modes(
    starts: Ints,
    rows: Ints,
    first: Ints,
    second: Ints,
    labels: Ints,
    theta: Floats,
    tau: Floats,
    amounts: Floats,
    d_eta: Floats,
    d_spare: Floats,
) -> None:
    """Take the modes' amounts away from the changes of multipliers; the sum over a row and its spare stays the same.

    What the own class's mode takes from the top rival goes to the spare and the rivals without a mode, by their
    curvature.
    """
    for i in range(len(starts) - 1):
        n = rows[starts[i]]
        label = labels[n]
        top = second[starts[i]] if first[starts[i]] == label else first[starts[i]]
        left = theta[n].copy()
        left[top] = 0.0
        for j in range(starts[i], starts[i + 1]):
            if first[j] != label:
                d_eta[n, second[j]] -= amounts[j]
                d_eta[n, top] += amounts[j]
                left[second[j]] = 0.0
        if first[starts[i]] == label:
            amount = amounts[starts[i]]
            whole = tau[n] + left.sum()
            d_eta[n, top] -= amount
            d_spare[n] += amount * tau[n] / whole
            for c in range(len(left)):
                d_eta[n, c] += amount * left[c] / whole


@njit(cache=True, nogil=True)
def move_rows(
    labels: Ints, theta: Floats, tau: Floats, total: Floats, scores: Floats, d_eta: Floats, d_spare: Floats
) -> None:
    """Take the curvature's image of these scores away from the changes of multipliers; rows' sums stay the same."""
    n_classes = theta.shape[1]
    for n in range(len(theta)):
        own, mean = scores[n, labels[n]], 0.0
        for c in range(n_classes):
            mean += theta[n, c] * (own - scores[n, c])
        mean /= total[n]
        for c in range(n_classes):
            if c != labels[n]:
                d_eta[n, c] += theta[n, c] * (mean - own + scores[n, c])
        d_spare[n] += mean * tau[n]


@njit(cache=True, nogil=True)
def shrink_takers(cells: Cells, labels: Ints, factors: Floats, eta: Floats) -> None:
    """Multiply each rival's multiplier by the smallest factor among the cells that it takes from."""
    for n in range(len(eta)):
        for c in range(eta.shape[1]):
            if c != labels[n] and eta[n, c] > 0.0:
                least = 1.0
                for f in range(cells.shape[1]):
                    if cells[n, f] >= 0:
                        least = min(least, factors[cells[n, f], c])
                eta[n, c] *= least
