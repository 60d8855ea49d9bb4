"""Cut points of Fayyad and Irani's entropy discretisation with the MDL stop (IJCAI 1993, pages 1022-1027).

A cut of a set S into S1 and S2 is judged by N Ent(S1, S2): the sum over both sides of g(n) less the sum over
classes of g(n_c), where g(x) = x log2 x. Passing a row from the right side to the left changes the count of
one class only, so one running sum over the sorted rows judges every cut of S: no table of rows x classes is
made, and a thousand classes cost what two cost. The sets of several columns are scanned together, which small
data need.

Weights and values of g are rounded to multiples of small powers of two, such that every sum of them is exact.
So equal counts have equal scores whatever the order of the rows, and repeated rows give what integer weights
give, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray

__all__ = ["interval_labels", "mdlp_all", "mdlp_cuts"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Weights = NDArray[Any]  # and their sums: integers where all weights are, so that g can be looked up
XLogX = Callable[[Weights], Floats]

# A batch of columns fits the processor's cache, and its sums fit the bits that rounding leaves.
_BATCH_ITEMS = 1 << 15
_BATCH_COLUMNS = 64
# Sets are scanned together as long as their tables of class counts stay this small.
_SCANNED_COUNTS = 1 << 18


def mdlp_cuts(values: ArrayLike, y: ArrayLike, n_classes: int, weights: ArrayLike | None = None) -> Floats:
    """Ascending cut points of one column, often none; v lies in bin i when cut[i - 1] < v <= cut[i].

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        The column. NaN is missing and ignored.
    y : array-like of shape (n_rows,)
        Class codes 0 .. n_classes - 1.
    n_classes : int
        Number of classes.
    weights : array-like of shape (n_rows,) or None
        Non-negative weights. A weight is a number of rows: an integer weight equals that many copies, zero
        equals absence. What weighs less than two rows is not split, so weights that sum to 1 give no cut at
        all.

    Notes
    -----
    S is split at the cut of least class entropy if Gain > (log2(N - 1) + log2(3^k - 2) - k Ent(S) + k1
    Ent(S1) + k2 Ent(S2)) / N, with N the weight and k the number of classes present; then S1 and S2 in their
    turn. A cut is the midpoint of its neighbours, and of equally good cuts the lowest is taken.

    Weka and Orange do the same in plain floating point, and agree except where cuts are equally good and
    rounding rather than their order decides: rows in blocks of equal size, one class each, make such cases.

    Examples
    --------
    >>> mdlp_cuts([1.0, 2.0, 3.0, 10.0, 11.0, 12.0], [0, 0, 0, 1, 1, 1], 2)
    array([6.5])
    """
    return mdlp_all([values], y, n_classes, weights)[0]


def mdlp_all(
    columns: Sequence[ArrayLike] | Floats,
    y: ArrayLike,
    n_classes: int,
    weights: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> list[Floats]:
    """List of the cut points of each column, as `mdlp_cuts` finds them.

    Parameters
    ----------
    columns : sequence of array-like of shape (n_rows,)
        The columns; the transpose of a matrix is such a sequence.
    y, n_classes, weights
        As in `mdlp_cuts`.
    n_jobs : int or None
        Number of threads, as joblib counts them: None is 1, -1 is all cores.
    """
    target = _target(y, n_classes, weights)
    arrays = [np.asarray(column, np.float64) for column in columns]
    step = min(_BATCH_COLUMNS, max(1, _BATCH_ITEMS // (len(target.codes) + n_classes)))
    starts = range(0, len(arrays), step)

    def cuts_from(start: int) -> list[Floats]:
        return _batch_cuts(arrays[start : start + step], target, start)

    threads = min(int(effective_n_jobs(n_jobs)), len(starts))
    if threads <= 1:
        return [cuts for start in starts for cuts in cuts_from(start)]
    with ThreadPoolExecutor(threads) as pool:
        return [cuts for part in pool.map(cuts_from, starts) for cuts in part]


def interval_labels(cuts: ArrayLike) -> list[str]:
    """One label for each bin between ascending cuts, like "(-inf, 2.45]"; no two of them are equal.

    For people to read: cuts are rounded to the fewest digits, six or more, that tell all of them apart. A midpoint such
    as 3.3499999999999996 reads 3.35; the cuts themselves stay exact.

    Examples
    --------
    >>> interval_labels([2.45, 5.0])
    ['(-inf, 2.45]', '(2.45, 5]', '(5, inf)']
    """
    exact = np.asarray(cuts, np.float64).tolist()
    rounded = ([f"{cut:.{digits}g}" for cut in exact] for digits in range(6, 18))
    ends = ["-inf", *next(texts for texts in rounded if len(set(texts)) == len(exact))]
    return [*(f"({low}, {high}]" for low, high in pairwise(ends)), f"({ends[-1]}, inf)"]


# -- what all columns share


class _Target(NamedTuple):
    """The class and the weight of each row that counts, and g for sums of these weights."""

    n_rows: int
    kept: Indices | slice
    codes: Indices
    weights: Weights
    n_classes: int
    xlogx: XLogX


def _target(y: ArrayLike, n_classes: int, weights: ArrayLike | None) -> _Target:
    codes = np.asarray(y).astype(np.intp)
    if codes.size and not 0 <= codes.min() <= codes.max() < n_classes:
        wrong = codes.min() if codes.min() < 0 else codes.max()
        raise ValueError(f"y holds the class code {wrong}; codes must lie in 0 .. {n_classes - 1}")
    rounded = np.ones(len(codes), np.intp) if weights is None else _rounded(weights, len(codes))
    kept = slice(None) if rounded.all() else np.flatnonzero(rounded)
    xlogx = _xlogx(float(rounded.sum()), n_classes, rounded.dtype.kind == "i")
    return _Target(len(codes), kept, codes[kept], rounded[kept], n_classes, xlogx)


def _rounded(weights: ArrayLike, n_rows: int) -> Weights:
    """The weights in multiples of about 2^-46 of their total, such that 64 columns of them sum exactly."""
    weight = np.asarray(weights, np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(f"there are {n_rows} rows and weights of the shape {weight.shape}; give one for each row")
    total = float(weight.sum())
    if not math.isfinite(total) or (weight < 0).any():
        bad = next((w for w in weight.tolist() if not 0 <= w < math.inf), total)
        raise ValueError(f"weights hold or sum to {bad}; give finite weights >= 0")
    # Integers unless g would need too long a table.
    if total <= 4 * n_rows + 65536 and (weight == np.floor(weight)).all():
        return weight.astype(np.intp)
    exponent = math.frexp(total)[1] - 46
    return np.asarray(np.ldexp(np.rint(np.ldexp(weight, -exponent)), exponent))


def _xlogx(total: float, n_classes: int, whole: bool) -> XLogX:
    """g(x) = x log2 x in whole units, of which sums have about 50 bits; a table if x is always whole."""
    bound = total * math.log2(total + 2) + n_classes
    scale = math.ldexp(1.0, 50 - math.frexp(bound)[1])

    def xlogx(x: Weights) -> Floats:
        return np.asarray(np.rint(x * np.log2(np.maximum(x, np.finfo(np.float64).tiny)) * scale))

    return xlogx(np.arange(total + 1)).take if whole else xlogx


# -- columns


class _Column(NamedTuple):
    """A column in ascending order of value; an item is a row, or all rows of the same value and class."""

    values: Floats
    codes: Indices
    weights: Weights


def _column(values: Floats, target: _Target, index: int) -> _Column:
    if values.shape != (target.n_rows,):
        raise ValueError(
            f"column {index} has the shape {values.shape}; give one value for each of {target.n_rows} rows"
        )
    values = values[target.kept]
    order = np.argsort(values)
    ordered = values[order]
    n_known = int(np.searchsorted(ordered, np.nan))  # NaN is sorted last
    ordered, order = ordered[:n_known], order[:n_known]
    if n_known and np.isinf(ordered[[0, -1]]).any():
        raise ValueError(f"column {index} holds an infinite value; make it finite, or NaN if it is missing")
    return _merged(_Column(ordered, target.codes[order], target.weights[order]), target.n_classes)


def _merged(column: _Column, n_classes: int) -> _Column:
    """The column with items of equal value and class made one, where values are so few that it pays."""
    new = np.flatnonzero(column.values[1:] != column.values[:-1]) + 1
    n_levels = len(new) + 1
    if 2 * n_levels * n_classes > len(column.values):
        return column
    level = np.zeros(len(column.values), np.intp)
    level[new] = 1
    table = np.bincount(np.cumsum(level) * n_classes + column.codes, column.weights, n_levels * n_classes)
    filled = np.flatnonzero(table)
    values = np.concatenate([column.values[:1], column.values[new]])[filled // n_classes]
    return _Column(values, filled % n_classes, table[filled].astype(column.weights.dtype))


class _Batch(NamedTuple):
    """Several columns end to end, their items in two orders: by value, and by class and then value.

    The weight of a class in a range of values is the difference of two entries of `by_class`, the cumulative
    weight in the second order; `before` and `after` are its entries around each item.
    """

    values: Floats
    codes: Indices
    before: Weights
    after: Weights
    by_value: Weights
    by_class: Weights
    tied: NDArray[np.bool_]  # whether the next item has the same value, and no cut can come between


def _batch(columns: Sequence[_Column], n_classes: int) -> tuple[_Batch, _Sets]:
    """The columns as one batch, and as one set each."""
    values, codes, weights = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    sizes = np.array([len(column.codes) for column in columns])
    group = codes + np.repeat(np.arange(len(columns)) * n_classes, sizes)
    # The smallest type that holds the groups lets NumPy sort by radix.
    order = np.argsort(group.astype(np.min_scalar_type(len(columns) * n_classes)), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    by_value, by_class = _cumulative(weights), _cumulative(weights[order])
    tied = np.append(values[1:] == values[:-1], False)
    batch = _Batch(values, codes, by_class.take(place), by_class[1:].take(place), by_value, by_class, tied)
    starts = _cumulative(sizes)
    bounds = _cumulative(np.bincount(group, minlength=len(columns) * n_classes))
    first, last = bounds[:-1].reshape(-1, n_classes), bounds[1:].reshape(-1, n_classes)
    return batch, _sets(starts[:-1], starts[1:], first, last, by_class)


def _cumulative(steps: Weights) -> Weights:
    return np.concatenate([np.zeros(1, steps.dtype), np.cumsum(steps)])


def _batch_cuts(arrays: Sequence[Floats], target: _Target, start: int) -> list[Floats]:
    columns = [_column(array, target, start + j) for j, array in enumerate(arrays)]
    batch, sets = _batch(columns, target.n_classes)
    cuts = _chosen(sets, batch, target.xlogx)
    middles = _midpoints(batch.values[cuts - 1], batch.values[cuts])
    return np.split(middles, np.searchsorted(cuts, sets.start[1:]))


def _midpoints(lower: Floats, upper: Floats) -> Floats:
    """Midpoints, kept below the upper value: between neighbouring floats the cut is the lower value."""
    with np.errstate(over="ignore"):
        middle = (lower + upper) / 2
    middle = np.where(np.isinf(middle), lower / 2 + upper / 2, middle)
    return np.where(middle < upper, middle, lower) + 0.0  # + 0.0 turns -0.0 into 0.0


# -- sets of items, and their splitting


class _Sets(NamedTuple):
    """Disjoint sets S of neighbouring items, each a row of these arrays."""

    start: Indices
    stop: Indices
    first: Indices  # (n_sets, n_classes): from where ...
    last: Indices  # ... to where each class lies in the class order
    total: Weights
    entropy: Floats
    n_present: Indices


def _sets(start: Indices, stop: Indices, first: Indices, last: Indices, by_class: Weights) -> _Sets:
    counts = by_class[last] - by_class[first]
    total = counts.sum(axis=1)
    share = counts / np.where(total > 0, total, 1)[:, None]
    entropy = -(share * np.log2(np.where(share > 0, share, 1))).sum(axis=1)
    return _Sets(start, stop, first, last, total, entropy, np.count_nonzero(counts, axis=1))


def _chosen(sets: _Sets, batch: _Batch, xlogx: XLogX) -> Indices:
    """The accepted cuts, ascending; each is the index of the first item above it."""
    chosen, waiting = [np.empty(0, np.intp)], [sets]
    while waiting:
        sets = waiting.pop()
        sets = _kept(sets, _may_split(sets))
        half = len(sets.total) // 2
        if half and sets.first.size > _SCANNED_COUNTS:
            waiting += [_kept(sets, slice(half)), _kept(sets, slice(half, None))]
        elif len(sets.total):
            cut, left, right = _split(sets, batch, xlogx)
            paid = _pays(sets, left, right)
            chosen.append(cut[paid])
            waiting.append(_joined(_kept(left, paid), _kept(right, paid)))
    return np.sort(np.concatenate(chosen))


def _kept(sets: _Sets, chosen: NDArray[np.bool_] | slice) -> _Sets:
    return _Sets._make(part[chosen] for part in sets)


def _joined(left: _Sets, right: _Sets) -> _Sets:
    return _Sets._make(np.concatenate(parts) for parts in zip(left, right, strict=True))


class _Scan(NamedTuple):
    """The items of some sets, one set after the other."""

    item: Indices
    owner: Indices  # the set of each item
    group: Indices  # the set and the class of each item, as one number
    offset: Indices  # where each set starts


def _scan(sets: _Sets, batch: _Batch) -> _Scan:
    sizes = sets.stop - sets.start
    offset = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(sizes)), sizes)
    item = np.arange(len(owner)) + (sets.start - offset).take(owner)
    return _Scan(item, owner, owner * sets.first.shape[1] + batch.codes.take(item), offset)


def _split(sets: _Sets, batch: _Batch, xlogx: XLogX) -> tuple[Indices, _Sets, _Sets]:
    """The best cut of each set and its two sides; the left one is empty where no cut is possible."""
    scan = _scan(sets, batch)
    cut = sets.start + _best(_scores(sets, scan, batch, xlogx), sets, scan)
    moved = np.bincount(scan.group.compress(scan.item < cut.take(scan.owner)), minlength=sets.first.size)
    middle = sets.first + moved.reshape(sets.first.shape)
    left = _sets(sets.start, cut, sets.first, middle, batch.by_class)
    return cut, left, _sets(cut, sets.stop, middle, sets.last, batch.by_class)


def _scores(sets: _Sets, scan: _Scan, batch: _Batch, xlogx: XLogX) -> Floats:
    """N Ent(S1, S2) of the cut after each item, in units and up to a constant; infinite if there is none."""
    left = batch.by_value[1:].take(scan.item) - batch.by_value[sets.start].take(scan.owner)
    scores = xlogx(left)
    scores += xlogx(sets.total.take(scan.owner) - left)
    # A set ends with the sum with which it starts, so that one running sum serves all sets.
    scores -= np.cumsum(_changes(sets, scan, batch, xlogx))
    scores[batch.tied.take(scan.item)] = np.inf
    scores[np.append(scan.offset[1:], len(scores)) - 1] = np.inf
    return scores


def _changes(sets: _Sets, scan: _Scan, batch: _Batch, xlogx: XLogX) -> Floats:
    """What each item adds to the sum of g over classes and sides as it goes from right to left."""
    before, after = batch.before.take(scan.item), batch.after.take(scan.item)
    floor = batch.by_class[sets.first].take(scan.group)
    ceiling = batch.by_class[sets.last].take(scan.group)
    change = xlogx(after - floor)
    change -= xlogx(before - floor)
    change += xlogx(ceiling - after)
    change -= xlogx(ceiling - before)
    return change


def _best(scores: Floats, sets: _Sets, scan: _Scan) -> Indices:
    """The number of items below the lowest of each set's best cuts; 0 if the set has no cut."""
    least = np.minimum.reduceat(scores, scan.offset)
    # A score holds at most 2 k + 2 values of g, each off by less than a unit: a smaller difference is none.
    near = np.flatnonzero(scores <= (least + 4 * (sets.n_present + 1)).take(scan.owner))
    below = near[np.searchsorted(near, scan.offset)] + 1 - scan.offset
    return np.where(np.isfinite(least), below, 0)


# -- the minimum description length


def _may_split(sets: _Sets) -> NDArray[np.bool_]:
    """Whether a perfect cut, with Ent(S1) = Ent(S2) = 0, would pay."""
    heavy = (sets.total >= 2) & (sets.n_present > 1)
    return heavy & (sets.total * sets.entropy > _price(sets))


def _pays(sets: _Sets, left: _Sets, right: _Sets) -> NDArray[np.bool_]:
    gain = sets.total * sets.entropy - left.total * left.entropy - right.total * right.entropy
    sides = left.n_present * left.entropy + right.n_present * right.entropy
    return (left.total > 0) & (gain > _price(sets) + sides)


def _price(sets: _Sets) -> Floats:
    """log2(N - 1) + log2(3^k - 2) - k Ent(S): what a cut costs whatever its sides are."""
    k = sets.n_present
    # log2(3^k - 2) without 3^k, which no float holds from 647 classes on.
    encoding = k * math.log2(3) + np.log1p(-2 * 3.0 ** -np.maximum(k, 1)) / math.log(2)
    price: Floats = np.log2(np.maximum(sets.total - 1, 1)) + encoding - k * sets.entropy
    return price
