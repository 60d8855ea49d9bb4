"""The strong modes of the rows in compiled code: which they are, and their matrix.

The same as in `solvers.entropic_modes`, for few rows and one thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.margins import class_scores
from marginbayes.kernels.margins_groups import group_sums
from marginbayes.kernels.margins_system import (
    curvature_diagonal,
    curvature_matrix,
    group_matrix,
    leverages,
    mode_blocks,
)
from marginbayes.kernels.path_values import Floats, Given, Ints, Local, class_sums

__all__ = ["Modes", "system_matrix"]

# A mode is factorised if its curvature exceeds that of the diagonal by this factor.
STRONG = 1.0
# Adding a row to the matrix of all weights costs about so many times as much as factorising it, for each entry.
FILL = 8.0


class Modes(NamedTuple):
    """Rows and class pairs of the strong modes, and the inverse of everything else as diagonal and groups.

    There are none where the matrix of all weights is factorised; `scale` is that of the matrix.
    """

    rows: Ints
    first: Ints
    second: Ints
    starts: Ints
    inverse: Floats
    pull: Floats
    scale: Floats


@njit(cache=True, nogil=True)
def _count(values: Floats, others: Floats, bar: float) -> int:
    """How many values are above a bar."""
    count = 0
    for n in range(len(values)):
        if values[n] > bar:
            count += 1
        for c in range(others.shape[1]):
            if others[n, c] > bar:
                count += 1
    return count


@njit(cache=True, nogil=True)
def _pick(g: Given, sums: Floats, others: Floats, top: Ints, most: int) -> tuple[Ints, Ints, Ints, Ints]:
    """The strong modes in the order of their rows, that of the own class first, and where each row's begin."""
    bar = STRONG
    while _count(sums, others, bar) > most:
        bar *= 1.25
    count = _count(sums, others, bar)
    rows, first, second = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    starts, n_rows, at = np.empty(count + 1, np.int64), 0, 0
    for n in range(len(sums)):
        begin = at
        if sums[n] > bar:
            rows[at], first[at], second[at] = n, g.labels[n], top[n]
            at += 1
        for c in range(others.shape[1]):
            if others[n, c] > bar:
                rows[at], first[at], second[at] = n, top[n], c
                at += 1
        if at > begin:
            starts[n_rows] = begin
            n_rows += 1
    starts[n_rows] = at
    return rows, first, second, starts[: n_rows + 1]


@njit(cache=True, nogil=True)
def _leverages(g: Given, k: Local, diagonal: Floats) -> tuple[Floats, Floats, Ints]:
    """Curvature of each mode of a row in units of diagonal and h; and the top rival of each row."""
    softness, others, inverse = np.empty_like(k.theta), np.empty_like(k.theta), np.empty_like(k.h)
    sums, top = np.empty(len(k.tau)), np.empty(len(k.tau), np.int64)
    for i in range(len(inverse)):
        for c in range(inverse.shape[1]):
            inverse[i, c] = 1.0 / (k.h[i, c] + diagonal[i, c])
    class_scores(g.cells, inverse, softness)
    leverages(g.labels, k.theta, k.tau, k.total, softness, top, sums, others)
    return sums, others, top


@njit(cache=True, nogil=True)
def _choose(g: Given, k: Local, most: int) -> tuple[Modes, int]:
    """The strong modes at a point, at most so many, and how many there are; as the inverse, the diagonal of all rows.

    Modes that exceed h are chosen as long as these are not too many, else those that exceed all other rows, too.
    """
    by_row, none = np.empty_like(k.theta), np.zeros_like(k.h)
    curvature_diagonal(g.labels, k.theta, k.tau, k.total, by_row)
    diagonal = class_sums(g, by_row)
    for i in range(len(diagonal)):
        for c in range(diagonal.shape[1]):
            diagonal[i, c] = max(0.0, diagonal[i, c])
    sums, others, top = _leverages(g, k, none)
    strong = _count(sums, others, STRONG)
    if strong > most:
        sums, others, top = _leverages(g, k, diagonal)
    rows, first, second, starts = _pick(g, sums, others, top, most)
    return Modes(rows, first, second, starts, diagonal, none, np.empty(len(rows))), strong


@njit(cache=True, nogil=True)
def _rest(g: Given, k: Local, modes: Modes, blocks: Floats) -> None:
    """Set the inverse of diagonal and groups without the modes; `inverse` holds the diagonal of all rows before."""
    by_row = np.zeros_like(k.theta)
    for i in range(len(modes.starts) - 1):
        for c in range(by_row.shape[1]):
            by_row[modes.rows[modes.starts[i]], c] = blocks[i, c]
    strong, inverse, pull = class_sums(g, by_row), modes.inverse, modes.pull
    for i in range(len(inverse)):
        for c in range(inverse.shape[1]):
            left = max(inverse[i, c] - strong[i, c], 1e-12 * inverse[i, c])
            inverse[i, c] = 1.0 / (k.h[i, c] + left)
            pull[i, c] = k.h[i, c] * inverse[i, c]
            strong[i, c] = k.h[i, c] * pull[i, c]
    scale = np.empty_like(k.kappa)
    group_sums(strong, g.chunks, g.pooled, scale)
    for i in range(len(pull)):
        for c in range(pull.shape[1]):
            pull[i, c] /= np.sqrt(k.kappa[g.chunks[i], c] + scale[g.chunks[i], c])


@njit(cache=True, nogil=True)
def _image(g: Given, modes: Modes, bounds: Ints, row: int, c: int, out: Floats) -> None:
    """Write the inverse of diagonal and groups times the cells of a row in one class; groups over classes apart."""
    for i in range(len(out)):
        out[i] = 0.0
    for f in range(g.cells.shape[1]):
        a = g.cells[row, f]
        if a < 0:
            continue
        chunk = g.chunks[a]
        if chunk >= g.pooled:
            own = modes.pull[a, c]
            for b in range(bounds[chunk], bounds[chunk + 1]):
                out[b] = -own * modes.pull[b, c]
        out[a] += modes.inverse[a, c]


@njit(cache=True, nogil=True)
def _members(g: Given, modes: Modes, c: int) -> tuple[Ints, Floats, Ints, Ints, NDArray[np.uint32]]:
    """Modes with a class, their signs, the places of their rows; these rows, and their cells.

    A missing cell is the one behind all others.
    """
    size = len(modes.rows)
    at, places, rows = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    signs = np.empty(size)
    count, n_rows = 0, 0
    for i in range(size):
        if modes.first[i] == c or modes.second[i] == c:
            if n_rows == 0 or rows[n_rows - 1] != modes.rows[i]:
                rows[n_rows] = modes.rows[i]
                n_rows += 1
            at[count], places[count] = i, n_rows - 1
            signs[count] = 1.0 if modes.first[i] == c else -1.0
            count += 1
    cells = np.empty((n_rows, g.cells.shape[1]), np.uint32)
    for r in range(n_rows):
        for f in range(g.cells.shape[1]):
            cell = g.cells[rows[r], f]
            cells[r, f] = cell if cell >= 0 else len(g.counts)
    return at[:count], signs[:count], places[:count], rows[:n_rows], cells


@njit(cache=True, nogil=True)
def _inner(image: Floats, cells: NDArray[np.uint32], out: Floats) -> None:
    """Sum of an image over the cells of each row, in four sums, of which none waits for the others."""
    size = cells.shape[1]
    for r in range(len(out)):
        row = cells[r]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        f = 0
        while f + 4 <= size:
            a += image[row[f]]
            b += image[row[f + 1]]
            c += image[row[f + 2]]
            d += image[row[f + 3]]
            f += 4
        while f < size:
            a += image[row[f]]
            f += 1
        out[r] = (a + b) + (c + d)


@njit(cache=True, nogil=True)
def _add_class(g: Given, modes: Modes, bounds: Ints, c: int, matrix: Floats) -> None:
    """Add to the lower triangle the inner products of the modes in one class."""
    at, signs, places, rows, cells = _members(g, modes, c)
    image, inner, last = np.empty(len(g.counts) + 1), np.empty(len(rows)), -1
    for i in range(len(at)):
        place, line = places[i], matrix[at[i]]
        if place != last:
            last = place
            _image(g, modes, bounds, rows[place], c, image)
            _inner(image, cells, inner[: place + 1])
        for j in range(i + 1):
            line[at[j]] += signs[i] * signs[j] * inner[places[j]]


@njit(cache=True, nogil=True)
def _add_products(g: Given, modes: Modes, matrix: Floats) -> None:
    """Add to the lower triangle the inner products of the modes: first less second class."""
    bounds = np.zeros(g.chunks[-1] + 2, np.int64)
    for i in range(len(g.counts)):
        bounds[g.chunks[i] + 1] = i + 1
    for c in range(g.counts.shape[1]):
        _add_class(g, modes, bounds, c, matrix)
    # All classes of a cell in the first block are one group.
    pulls = np.zeros(len(modes.rows))
    for i in range(len(pulls)):
        cell = g.cells[modes.rows[i], 0]
        if cell >= 0:
            pulls[i] = modes.pull[cell, modes.first[i]] - modes.pull[cell, modes.second[i]]
        for j in range(i + 1):
            if g.cells[modes.rows[j], 0] == cell:
                matrix[i, j] -= pulls[i] * pulls[j]


@njit(cache=True, nogil=True)
def _prefers_whole(g: Given, strong: int) -> bool:
    """Whether the matrix of all weights costs less than one of so many modes."""
    weights, blocks = float(g.counts.size), float(g.cells.shape[1])
    cost = weights**3 / 3.0 + FILL * len(g.labels) * (blocks * g.counts.shape[1]) ** 2 / 2.0
    return bool(cost < strong**3 / 3.0 + strong**2 * blocks)


@njit(cache=True, nogil=True)
def _scaled(matrix: Floats, ridge: float, scale: Floats) -> None:
    """Scale the lower triangle to a diagonal of ones, and add the ridge to it."""
    for i in range(len(matrix)):
        scale[i] = 1.0 / np.sqrt(matrix[i, i])
        for j in range(i + 1):
            matrix[i, j] *= scale[i] * scale[j]
        matrix[i, i] += ridge


@njit(cache=True, nogil=True)
def system_matrix(g: Given, k: Local, most: int, ridge: float, memory: Floats) -> tuple[Modes, Floats]:
    """The lower triangle of what is to be factorised, in this memory: the strong modes, or all weights if that is less.

    It is scaled to a diagonal of ones, to which the ridge is added. At most so many modes are chosen.
    """
    modes, strong = _choose(g, k, most)
    whole = g.counts.size**2 <= len(memory) and _prefers_whole(g, strong)
    size = g.counts.size if whole else len(modes.rows)
    matrix = memory[: size * size].reshape(size, size)
    for i in range(size):
        for j in range(i + 1):
            matrix[i, j] = 0.0
    if whole:
        none = np.empty(0, np.int64)
        modes = Modes(none, none, none, none, modes.inverse, modes.pull, np.empty(size))
        curvature_matrix(g.cells, np.arange(len(g.labels)), g.labels, k.theta, k.tau, k.total, matrix)
        group_matrix(g.blocks, g.chunks, k.h, k.kappa, matrix)
    else:
        blocks = np.zeros((len(modes.starts) - 1, k.theta.shape[1]))
        mode_blocks(modes.starts, modes.rows, modes.first, modes.second, g.labels, k.theta, k.tau, matrix, blocks)
        _rest(g, k, modes, blocks)
        _add_products(g, modes, matrix)
    _scaled(matrix, ridge, modes.scale)
    return modes, matrix
