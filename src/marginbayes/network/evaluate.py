"""Log joint of many rows over one target: a gather where nothing has to be summed, elimination where it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Block, Rows
from marginbayes.graph import Dag, moral_graph
from marginbayes.network.lookup import Lookup
from marginbayes.network.plain import eliminate_plainly

if TYPE_CHECKING:
    from marginbayes.kernels.layout import Memory, Plan

__all__ = ["Evaluator", "elimination_order", "normalise_logs"]

Floats = NDArray[np.float64]

# Gathered in pieces of this many bytes, which stay in the processor's second-level cache.
PIECE_BYTES = 1 << 19
# exp of anything between -SAFE_LOG and SAFE_LOG is a normal float64.
SAFE_LOG = 700.0
# Tables are added together up to this many cells, for calls with this many rows.
MERGED_CELLS, MERGED_ROWS = 1 << 17, 1 << 13
# Tables among which the partner of one is sought: to look at all would cost more than the rows save.
PARTNERS = 32
# Sums over so many cells are done plainly, in some hundredths of a second: less than loading the compiled sums takes.
PLAIN_CELLS = 1 << 21
# Cells for messages that are remembered from row to row.
REMEMBERED = 1 << 20
# Cells that the messages of one row may take: 64 MiB at first, 1 GiB at most.
FIRST_CAPACITY, LAST_CAPACITY = 1 << 22, 1 << 26


@dataclass(frozen=True)
class Evaluator:
    """The tables of a network, arranged for one target variable.

    A row is *simple* when no missing variable has an observed descendant: then every missing variable and its family
    drop out, and the log joint is a sum of table look-ups. Other rows go through variable elimination.
    """

    dag: Dag
    cardinalities: tuple[int, ...]
    tables: tuple[Floats, ...]
    target: int
    normalized: bool

    def log_joint(self, rows: Rows) -> Floats:
        """log P(target = level, observed cells) for each row and level; the target's own cell is not read."""
        return self._filled(rows, self._fill)

    def posterior(self, rows: Rows) -> Floats:
        """P(target = level | observed cells) for each row and level."""
        return self._filled(rows, self._fill_normalised)

    def log_joint_by_prefix(self, rows: Rows) -> Iterator[Floats]:
        """Log joint with no other variable seen, with the first in topological order, with the first two, and so on.

        Rows in which nothing has to be summed gain one table look-up at each step; the others are evaluated anew. What
        is yielded changes with the next step.
        """
        summed = np.ones(len(rows), bool)
        if self.normalized and not self.dag.parents[self.target]:  # else what is not seen matters
            found = self._needs_sums(rows)
            summed = ~summed if found is None else found
        codes = np.broadcast_to(np.array(self.cardinalities, rows.codes.dtype)[:, None], rows.codes.shape).copy()
        joint = np.empty((len(rows), self._levels))
        joint[:] = self.log_joint(Rows(codes[:, :1], self.cardinalities)) if len(rows) else 0.0
        yield joint
        simple, behind = rows.codes[:, ~summed], codes[:, summed]
        for i in self.dag.order:
            if i == self.target:
                continue
            own = Lookup.of(*self._target_last(i, self.tables[i]), self.cardinalities)
            joint[~summed] += own.table.take(own.index(simple), axis=0)
            if behind.size:
                behind[i] = rows.codes[i, summed]
                joint[summed] = self.log_joint(Rows(behind, self.cardinalities, n_jobs=rows.n_jobs))
            yield joint

    def _filled(self, rows: Rows, fill: Callable[[Block, Floats, list[Lookup], int], None]) -> Floats:
        out = np.empty((len(rows), self._levels))
        rows.fill(out, fill, self._merged if len(rows) >= MERGED_ROWS else self._padded, len(rows))
        return out

    def expected_counts(self, rows: Rows, weights: Floats) -> tuple[Floats, float]:
        """Expected count of every table entry, flat, and the log-likelihood.

        `weights` (rows x target levels) says how much each row speaks for each level of the target.
        """
        from marginbayes.kernels.elimination import add_derivatives

        codes, joint = _row_major(rows.codes), np.empty((len(rows), self._levels))
        self._gather(rows.codes, joint, self._padded)
        tables = len(self._plan.logs)
        # Where each row's messages are, and the derivative by every value: tables, then messages.
        finals = np.empty(int(rows.is_missing().sum()) + 1, np.int64), np.zeros(len(rows) + 1, np.int64)
        slope = np.zeros(tables)
        for first, last, plan, memory in self._sums(codes, joint, finals):
            whole = np.concatenate([slope, np.zeros(len(memory.values) - tables)])
            add_derivatives(codes, first, last, weights, plan, memory, *finals, whole)
            slope = whole[:tables]
        return slope, float((weights * joint)[weights > 0.0].sum())

    def unflatten(self, flat: Floats) -> list[Floats]:
        """Flat entries of all tables, back in the tables' own shapes."""
        tables, start = [], 0
        for child, table in enumerate(self.tables):
            family = [*self.dag.parents[child], child]
            part = flat[start : start + table.size].reshape(self._target_last(child, table)[1].shape)
            start += table.size
            tables.append(np.moveaxis(part, -1, family.index(self.target)) if self.target in family else part[..., 0])
        return tables

    @property
    def _levels(self) -> int:
        return self.cardinalities[self.target]

    def _fill(self, block: Block, out: Floats, lookups: list[Lookup], n_rows: int) -> None:
        """Log joint of one block of so many rows."""
        self._gather(block.codes, out, lookups)
        summed = self._needs_sums(block)
        if summed is None:
            return
        if self._is_small(np.count_nonzero(summed) * n_rows / len(block)):  # if all blocks are like this one
            out[summed] = self._eliminate_plainly(block.codes[:, summed])
        elif 2 * np.count_nonzero(summed) > len(block):  # the others are passed over faster than they are left out
            self._add_sums(block.codes, out)
        else:
            part = out[summed]
            self._add_sums(block.codes[:, summed], part)
            out[summed] = part

    def _fill_normalised(self, block: Block, out: Floats, lookups: list[Lookup], n_rows: int) -> None:
        self._fill(block, out, lookups, n_rows)
        normalise_logs(out, out)

    # -- rows in which nothing has to be summed

    def _needs_sums(self, block: Block | Rows) -> NDArray[np.bool_] | None:
        """Rows with a missing variable that has an observed descendant; None where there is no such row."""
        missing = {
            i: gone
            for i, card in enumerate(self.cardinalities)
            if i != self.target and (gone := block.codes[i] == card).any()
        }
        if not missing:
            return None
        nowhere = np.zeros(len(block), bool)
        below: dict[int, NDArray[np.bool_]] = {}
        for i in reversed(self.dag.order):
            below[i] = nowhere if self.normalized else ~nowhere
            for child in self.dag.children[i]:
                seen_child = below[child] | ~missing[child] if child in missing else ~nowhere
                below[i] = below[i] | seen_child
        summed: NDArray[np.bool_] = np.logical_or.reduce([gone & below[i] for i, gone in missing.items()])
        return summed if summed.any() else None

    @cached_property
    def _padded(self) -> list[Lookup]:
        """For each family its members with strides, and its table as (assignments x target levels).

        Each member has one level more, for a missing cell, with the entry 0: a family with a missing member adds
        nothing here. A table over the target alone comes last, as it has no index.
        """
        lookups = [Lookup.of(*self._target_last(i, table), self.cardinalities) for i, table in enumerate(self.tables)]
        return sorted(lookups, key=lambda lookup: not lookup.members)

    @cached_property
    def _merged(self) -> list[Lookup]:
        """The same with tables added together where the sum stays small: fewer look-ups, worth it for many rows."""
        waiting, done = list(self._padded), []
        while waiting:
            one = waiting.pop(0)
            sizes = [one.cells_with(other, self.cardinalities) for other in waiting[:PARTNERS]]
            if not waiting or min(sizes) * self._levels > MERGED_CELLS:
                done.append(one)
            else:
                waiting.append(one.with_other(waiting.pop(int(np.argmin(sizes))), self.cardinalities))
        return done

    def _target_last(self, child: int, table: Floats) -> tuple[list[int], Floats]:
        """A table's other members in order, and the table with the target's axis moved last (length 1 if absent)."""
        family = [*self.dag.parents[child], child]
        if self.target in family:
            return [m for m in family if m != self.target], np.moveaxis(table, family.index(self.target), -1)
        return family, table[..., None]

    def _gather(self, codes: NDArray[Any], out: Floats, lookups: list[Lookup]) -> None:
        """Sum of the tables of all families that have no missing member."""
        n = codes.shape[1]
        piece = max(64, PIECE_BYTES // (8 * self._levels))
        buffer = np.empty((min(n, piece), self._levels))
        for start in range(0, n, piece):
            part = slice(start, min(start + piece, n))
            self._gather_piece(codes[:, part], out[part], buffer[: part.stop - start], lookups)

    def _gather_piece(self, codes: NDArray[Any], out: Floats, buffer: Floats, lookups: list[Lookup]) -> None:
        for k, lookup in enumerate(lookups):
            place = out if k == 0 else buffer
            if lookup.table.shape[1] == 1 or not lookup.members:
                place[:] = lookup.table.take(lookup.index(codes), axis=0) if lookup.members else lookup.table
            else:
                np.take(lookup.table, lookup.index(codes), axis=0, out=place, mode="clip")
            if k:
                out += buffer

    # -- rows in which something has to be summed

    def _add_sums(self, codes: NDArray[Any], joint: Floats) -> None:
        """Complete the log joint of the wholly observed families by what the others sum to."""
        for _ in self._sums(_row_major(codes), joint):
            pass

    def _sums(
        self, rows: NDArray[np.int32], joint: Floats, finals: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    ) -> Iterator[tuple[int, int, Plan, Memory]]:
        """Complete the log joint; after each stretch of rows yields it and the messages made for it, before they go."""
        # Loaded here and not at import: the compiler is not needed by those who have no missing cell.
        from marginbayes.kernels.layout import new_memory
        from marginbayes.kernels.messages import sum_rows

        plan, nowhere = self._plan, np.empty(0, np.int64)
        done, with_tape = 0, finals is not None
        while done < len(rows):
            memory = new_memory(plan, with_tape)
            last, lacking = sum_rows(rows, done, joint, plan, memory, *(finals or (nowhere, nowhere)))
            if last > done:
                yield done, last, plan, memory
            done = last
            if lacking:
                plan = self._larger(plan, lacking)

    def _is_small(self, n_rows: float) -> bool:
        return n_rows * self._order[2] * max(self.cardinalities) * self._levels <= PLAIN_CELLS

    def _eliminate_plainly(self, codes: NDArray[Any]) -> Floats:
        families = [self._target_last(i, table) for i, table in enumerate(self.tables)]
        return eliminate_plainly(families, self.cardinalities, codes, self._order[0])

    def _eliminate(self, codes: NDArray[Any]) -> Floats:
        joint = np.empty((codes.shape[1], self._levels))
        self._gather(codes, joint, self._padded)
        self._add_sums(codes, joint)
        return joint

    def _larger(self, plan: Plan, lacking: int) -> Plan:
        if lacking > LAST_CAPACITY:
            raise ValueError(
                "some row lacks so many features that depend on each other that summing them out would take "
                f"{lacking:.2g} table cells (the limit is {LAST_CAPACITY:.2g}); "
                "learn a network with fewer parents for each feature"
            )
        return plan._replace(capacity=min(2 * lacking, LAST_CAPACITY))

    @cached_property
    def _order(self) -> tuple[list[int], int, float]:
        return elimination_order(self.dag, self.cardinalities, self.target)

    @cached_property
    def _plan(self) -> Plan:
        from marginbayes.kernels.layout import Plan

        order, width, cells = self._order
        member_at, member, stride, tstride, base = [0], [], [], [], []
        flat, size = [], 0
        for child, table in enumerate(self.tables):
            members, table = self._target_last(child, table)
            table = np.ascontiguousarray(table)
            member += members
            stride += [s // table.itemsize for s in table.strides[:-1]]
            member_at.append(len(member))
            tstride.append(int(self.target in (child, *self.dag.parents[child])))
            base.append(size)
            flat.append(table.reshape(-1))
            size += table.size
        logs = np.concatenate(flat)
        children = self.dag.children
        return Plan(
            cards=np.array(self.cardinalities, np.int64),
            target=self.target,
            order=np.array(order, np.uint64),
            upward=np.array([v for v in reversed(self.dag.order) if v != self.target], np.uint64),
            child_at=np.cumsum([0, *map(len, children)], dtype=np.int64),
            child=np.array([c for line in children for c in line], np.int64),
            member_at=np.array(member_at, np.int64),
            member=np.array(member, np.int64),
            stride=np.array(stride, np.int64),
            tstride=np.array(tstride, np.int64),
            base=np.array(base, np.int64),
            low=np.array([_smallest(t) for t in flat]),
            logs=logs,
            probs=np.exp(logs),
            prune=self.normalized,
            width=max(width, *(len(p) + 1 for p in self.dag.parents)),
            capacity=int(min(max(cells * self._levels + 1, REMEMBERED), FIRST_CAPACITY)),
        )


def elimination_order(dag: Dag, cardinalities: Sequence[int], target: int) -> tuple[list[int], int, float]:
    """Order in which to sum out all variables but the target, the largest scope it meets, and its message cells.

    Greedy: next comes the variable whose message has the fewest cells, ties by index. On a forest no message is then
    over more than one variable.
    """
    neighbours = moral_graph(dag)
    for others in neighbours.values():
        others.discard(target)
    del neighbours[target]
    cost = {v: sum(math.log(cardinalities[u]) for u in others) for v, others in neighbours.items()}
    order, width, cells = [], 0, 0.0
    while cost:
        v = min(cost, key=lambda u: (cost[u], u))
        others = neighbours.pop(v)
        cells += math.exp(min(cost.pop(v), 700.0))
        width = max(width, len(others))
        order.append(v)
        for u in others:
            neighbours[u].discard(v)
            neighbours[u].update(others - {u})
            cost[u] = sum(math.log(cardinalities[w]) for w in neighbours[u])
    return order, width, cells


def normalise_logs(logs: Floats, out: Floats | None = None) -> Floats:
    """exp(logs) with each row scaled to sum to one, written to `out` (which may be `logs` itself) if it is given.

    A row that is impossible throughout has no posterior; it becomes uniform.
    """
    out = np.empty_like(logs) if out is None else out
    piece = max(64, PIECE_BYTES // (8 * logs.shape[1]))
    for start in range(0, len(logs), piece):
        _normalise_piece(logs[start : start + piece], out[start : start + piece])
    return out


def _normalise_piece(logs: Floats, out: Floats) -> None:
    if logs.min() > -SAFE_LOG and logs.max() < SAFE_LOG:  # the largest of each row need not be found
        np.exp(logs, out=out)
    else:
        top = logs.max(axis=1, keepdims=True)
        impossible = top[:, 0] == -np.inf
        top[impossible] = 0.0
        np.subtract(logs, top, out=out)
        np.exp(out, out=out)
        out[impossible] = 1.0
    # A product with ones sums short rows ten times as fast as `sum`.
    out /= (out @ np.ones(out.shape[1]))[:, None]


def _smallest(log_table: Floats) -> float:
    positive = log_table[np.isfinite(log_table)]
    return float(positive.min()) if positive.size else 0.0


def _row_major(codes: NDArray[Any]) -> NDArray[np.int32]:
    return np.ascontiguousarray(codes.T, dtype=np.int32)
