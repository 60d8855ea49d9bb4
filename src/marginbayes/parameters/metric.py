"""How the cells of a design go together: a metric in which gradients point nearer to the optimum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.parameters.design import Design

__all__ = ["inverse_correlation", "is_worth_it"]

Floats = NDArray[np.float64]

# Most cells: the matrix has a row and a column for each, and is inverted.
MOST_CELLS = 1500
# Rows that are looked at, for each cell, and how far correlations that were seen in them are believed.
ROWS_PER_CELL, BELIEF = 4, 0.8


def is_worth_it(design: Design) -> bool:
    """Whether a product with the matrix costs no more than a pass over the rows, or little more."""
    n_cells = design.shape[0]
    return n_cells <= MOST_CELLS and n_cells**2 <= 2 * len(design.deviations.cells)


def inverse_correlation(design: Design, curvature: Floats, l2: float) -> Floats:
    """Inverse of the correlations between cells (cells x cells), each row counting by its curvature.

    Cells of neighbouring pixels are mostly taken together, which makes steps along single cells short. All classes
    share one matrix; it comes from some of the rows, and it need not be exact: it changes the way, not the goal.
    """
    n_cells = design.shape[0]
    step = max(1, len(design.labels) // (ROWS_PER_CELL * n_cells))
    cells = design.cells[::step]
    # A column behind the others takes what is missing (-1), and is left out.
    hot = np.zeros((len(cells), n_cells + 1), np.float32)
    hot[np.arange(len(cells))[:, None], cells] = np.sqrt(curvature[::step, None])
    hot = hot[:, :n_cells]
    products = (hot.T @ hot).astype(np.float64) * step
    scale = 1.0 / np.sqrt(np.diagonal(products) + l2 + 1e-9)
    products *= BELIEF * scale[:, None] * scale
    np.fill_diagonal(products, 1.0)
    return np.asarray(np.linalg.inv(products), np.float64)
