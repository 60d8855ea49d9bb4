"""Sums over walks of every length where a label depends on the two before it.

Such a walk passes through pairs of labels, and a pair (a, b) has only the successors (b, c): the steps P between pairs
are labels^3 numbers, not the labels^4 of a matrix. What is asked for are sums f + s P f + s^2 P^2 f + ... . Their terms
are computed one after the other, by logarithms and without a subtraction, until one of two things is the case:

- Every entry grows by the same factor from one term to the next. That factor is the largest eigenvalue of P, and the
  rest of the sum a geometric series. The terms do not depend on s, so that one pass over them answers for all s.
- The rest is negligible. If no entry has grown by more than a factor q over the last m terms, it never will over any m:
  the rest is at most q / (1 - q) times the sum of the last m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from marginbayes.network.logs import log_sum
from marginbayes.sequence.model import ChainModel

__all__ = ["PairSteps", "UnsettledError"]

Floats = NDArray[np.float64]

# Entries grow by the same factor if its logarithms are this near to each other, plus what rounding does to them.
SETTLED, ROUNDING = 1e-12, 1e-15
# Sums of products of numbers up to one that exceed this have lost nothing to underflow.
SMALLEST = 1e-250
# Share of a sum that may be left out.
NEGLIGIBLE = 1e-16


class UnsettledError(Exception):
    """The terms did not come to grow by one factor: some pairs of labels are all but cut off, or take turns."""


class _Term(NamedTuple):
    """A term: logs, and a number to add to them; its growth is known only of the last one.

    Where the terms are twice as many as when it was last looked at, `rates` are the least and the greatest log of what
    entries grew by since, per term.
    """

    logs: Floats
    level: float
    growth: float
    rates: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class PairSteps:
    """Logs of all steps: `first[b, c]` from a first label b to the pair (b, c), `inner[a, b, c]` from (a, b) to it.

    A function of pairs is an array [a, b]. No more than `most` terms of a sum are computed.
    """

    first: Floats
    inner: Floats
    most: int

    @classmethod
    def of(cls, model: ChainModel, log_step: Floats, most: int) -> PairSteps:
        """The steps of a model of order 2, given by state and next label; an impossible one is not foreseen here."""
        if not np.isfinite(log_step).all():
            raise UnsettledError
        shaped = log_step.reshape(model.n_labels + 1, model.n_labels, model.n_labels)
        return cls(shaped[0], shaped[1:], most)

    def ahead(self, log_end: Floats, log_scale: float = 0.0) -> Floats:
        """log of (I - s M)^-1 f for all states, f given by its logs; infinite where the sum is."""
        end = log_end.reshape(-1, len(self.first))
        pairs = self._total(self._before, end[1:], log_scale)
        if np.isposinf(pairs).any():
            return np.full(log_end.shape, np.inf)
        return np.concatenate([np.logaddexp(end[0], log_sum(self.first + log_scale + pairs, axis=1)), pairs.ravel()])

    def behind(self, log_start: Floats) -> Floats:
        """log of the transposed (I - M)^-1 b for all states; `log_start` are the logs of b for the first labels."""
        pairs = self._total(self._after, log_start[:, None] + self.first, 0.0)
        return np.concatenate([log_start, pairs.ravel()])

    def scale_for(self, log_end: Floats, log_start: Floats, mean_length: float, nearest: float) -> float:
        """log s for which walks have this mean length; 1 - s * (largest eigenvalue) is at least exp(nearest)."""
        end = log_end.reshape(-1, len(self.first))
        begun = log_start[:, None] + self.first
        sizes = [float(log_sum(log_start + end[0]))]  # log of the sum over all walks of each length
        growth = np.nan
        for count, term in enumerate(self._terms(self._before, end[1:])):
            if term.rates is not None:
                log_scale = _without_rest(np.array(sizes), count // 2, term.rates[1], mean_length, nearest)
                if log_scale is not None:
                    return log_scale
            sizes.append(term.level + float(log_sum((begun + term.logs).ravel())))
            growth = term.growth
        return _with_rest(np.array(sizes), growth, mean_length, nearest)

    # -- terms

    def _total(self, apply: Callable[[Floats], Floats], vector: Floats, log_scale: float) -> Floats:
        nothing: Floats = np.full(vector.shape, -np.inf)
        total, recent = nothing, nothing
        for count, term in enumerate(self._terms(apply, vector)):
            least, most = (np.nan, np.nan) if term.rates is None else term.rates
            if least + log_scale >= 0.0 or term.growth + log_scale >= 0.0:
                return np.full(vector.shape, np.inf)
            if term.rates is not None:
                total = np.logaddexp(total, recent)
                if most + log_scale < 0.0 and _rest(recent - total, count // 2 * (most + log_scale)) < NEGLIGIBLE:
                    return total
                recent = nothing
            own = term.logs + (term.level + count * log_scale)
            recent = np.logaddexp(recent, own if np.isnan(term.growth) else own - _log_rest(term.growth + log_scale))
        return np.asarray(np.logaddexp(total, recent))

    def _terms(self, apply: Callable[[Floats], Floats], vector: Floats) -> Iterator[_Term]:
        level, (seen, seen_level) = 0.0, (vector, 0.0)
        for count in range(self.most):
            rates = None
            if count > 1 and count & (count - 1) == 0:
                grown = (vector - seen + (level - seen_level)) / (count // 2)
                rates = float(grown.min()), float(grown.max())
            if count & (count - 1) == 0:
                seen, seen_level = vector, level
            after = apply(vector)
            ratio = after - vector
            low, high = float(ratio.min()), float(ratio.max())
            settled = high - low <= SETTLED + ROUNDING * float(np.abs(vector).max())
            yield _Term(vector, level, 0.5 * (low + high) if settled else np.nan, rates)
            if settled:
                return
            top = float(after.max())
            vector, level = after - top, level + top
        raise UnsettledError

    @cached_property
    def _powers(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Steps relative to the largest from a pair, and to the largest into it; and logs of these."""
        out, into = self.inner.max(axis=2), self.inner.max(axis=0)
        return (np.exp(self.inner - out[:, :, None]), out), (np.exp(self.inner - into), into)

    def _before(self, values: Floats) -> Floats:
        """log of P x: for (a, b) the sum over c of the step to (b, c) times its value."""
        (power, tops), _ = self._powers
        top = values.max(axis=1, keepdims=True)
        sums = np.einsum("abc,bc->ab", power, np.exp(values - top))
        if sums.min() < SMALLEST:
            return log_sum(self.inner + values, axis=2)
        return np.asarray(np.log(sums) + tops + top[:, 0])

    def _after(self, values: Floats) -> Floats:
        """log of the transposed P x: for (b, c) the sum over a of the value of (a, b) times the step from it."""
        _, (power, tops) = self._powers
        top = values.max(axis=0)
        sums = np.einsum("abc,ab->bc", power, np.exp(values - top))
        if sums.min() < SMALLEST:
            return log_sum(self.inner + values[:, :, None], axis=0)
        return np.asarray(np.log(sums) + tops + top[:, None])


def _log_rest(log_factor: float) -> float:
    """log of 1 - q."""
    return float(np.log(-np.expm1(log_factor)))


def _rest(log_shares: Floats, log_factor: float) -> float:
    """Greatest share that q / (1 - q) times these is."""
    return float(np.exp(log_shares.max() + log_factor - _log_rest(log_factor)))


def _with_rest(sizes: Floats, growth: float, mean_length: float, nearest: float) -> float:
    """log s for the logs of the sums over all walks of each length, which grow by one factor beyond the last."""
    counts, n = np.arange(len(sizes), dtype=np.float64), len(sizes) - 1
    log_counts = _logs(counts)

    def excess(log_rest: float) -> float:
        scaled = sizes + counts * (np.log1p(-np.exp(log_rest)) - growth)
        steps = scaled + log_counts
        # The last term and all behind it: sums of q^j and of (n + j) q^j for q = 1 - exp(log_rest).
        steps[n] = scaled[n] - log_rest + np.log(n + np.expm1(-log_rest))
        scaled[n] -= log_rest
        return float(np.log(mean_length - 1.0) - log_sum(steps) + log_sum(scaled))

    low, high = nearest, -1e-12
    # Where steps on are so improbable that no usable factor makes sequences that long, the longest have to do.
    found = low if excess(low) > 0 else high if excess(high) < 0 else brentq(excess, low, high, xtol=1e-12)
    return float(np.log1p(-np.exp(found)) - growth)


def _without_rest(sizes: Floats, half: int, most: float, mean_length: float, nearest: float) -> float | None:
    """log s for these sums alone, of which the later half grew by at most this; None where the rest may matter."""
    counts = np.arange(len(sizes), dtype=np.float64)
    log_counts = _logs(counts)

    def excess(log_rest: float) -> float:
        scaled = sizes + counts * (np.log1p(-np.exp(log_rest)) - most)
        return float(np.log(mean_length - 1.0) - log_sum(scaled + log_counts) + log_sum(scaled))

    if excess(nearest) > 0 or excess(-1e-12) < 0:
        return None
    log_factor = float(np.log1p(-np.exp(brentq(excess, nearest, -1e-12, xtol=1e-12))))
    steps = sizes + counts * (log_factor - most) + log_counts
    # Beyond, a length k of the half becomes k + j * half <= k (1 + j), and sum_j q^j (1 + j) <= 2 q / (1 - q)^2.
    grown = np.log(2.0) - _log_rest(half * log_factor)
    share = _rest(log_sum(steps[-half:]) + grown - log_sum(steps), half * log_factor)
    return log_factor - most if share < NEGLIGIBLE else None


def _logs(counts: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(counts)
