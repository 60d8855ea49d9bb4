"""Samples that are looked at in every step of a simplex method, and room for the numbers of a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import inner, njit
from marginbayes.kernels.exact_lines import add_lines
from marginbayes.kernels.exact_space import Space, fill
from marginbayes.kernels.exact_vertex import Sheet, Vertex

__all__ = ["Near", "Room", "look_at", "make_near", "margins_near", "new_room"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Near(NamedTuple):
    """Samples that are looked at in every step, and what each column adds to the margins of their rows."""

    samples: Ints
    place: Ints  # of every sample, -1 for none
    number: Ints  # how many there are
    columns: Floats  # [column, place * rivals + rival]


class Room(NamedTuple):
    """Room for the numbers of a step."""

    shares: Floats
    by: Floats
    line: Floats
    change: Floats
    limits: Floats
    margins: Floats
    spare: Floats
    group: Floats
    option_weight: Floats  # of each tight option, and of each row that is looked at: Devex
    row_weight: Floats
    constant_weight: Floats  # of the constant of each sample that is looked at
    pivots: Floats
    amounts: Floats
    order: Ints  # 0, 1, 2 and so on
    owner: Ints  # sample of each free row, and of the one that comes in; -1 for none


@njit(cache=True, nogil=True)
def new_room(size: int, columns: int, near: int, samples: int) -> Room:
    """Room for so many variables, columns, rows that are looked at, and samples."""
    return Room(
        np.zeros(size),
        np.zeros(size),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(near),
        np.zeros(size),
        np.zeros(samples),
        np.ones(size),
        np.ones(near),
        np.ones(near),
        np.zeros(near),
        np.zeros(size),
        np.arange(size),
        np.zeros(size + 1, np.int64),
    )


@njit(cache=True, nogil=True)
def make_near(columns: int, samples: int, most: int, rivals: int) -> Near:
    """Room for so many samples."""
    return Near(
        np.zeros(most, np.int64),
        np.full(samples, -1),
        np.zeros(1, np.int64),
        np.empty((columns, most * rivals)),
    )


@njit(cache=True, nogil=True)
def look_at(space: Space, sheet: Sheet, near: Near, samples: Ints) -> bool:
    """Look at these samples, too, as many as there is room for; whether memory is enough."""
    rivals = space.rivals
    for m in samples:
        place, first = near.number[0], m * rivals
        if near.place[m] >= 0 or place == len(near.samples):
            continue
        if not fill(space, np.arange(first, first + rivals)):
            return False
        near.samples[place], near.place[m] = m, place
        near.number[0] += 1
        for r in range(rivals):
            dense = space.dense[first + r]
            for c in range(len(sheet.slots)):
                near.columns[c, place * rivals + r] = dense[sheet.slots[c]]
    return True


@inner(cache=True, nogil=True)
def margins_near(space: Space, sheet: Sheet, at: Vertex, near: Near, room: Room) -> None:
    """Margins of the rows of the samples that are looked at, from the shares in the room."""
    rivals, count, margins = space.rivals, near.number[0], room.margins
    for p in range(count):
        row = near.samples[p] * rivals
        for r in range(rivals):
            margins[p * rivals + r] = sheet.base[row + r]
    add_lines(near.columns, at.tight, room.shares, at.size[0], count * rivals, margins)
