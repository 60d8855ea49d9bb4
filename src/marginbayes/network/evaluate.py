"""Log joint of many rows over one target: a gather where nothing has to be summed, elimination where it does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Block, Rows
from marginbayes.graph import Dag, moral_graph

if TYPE_CHECKING:
    from marginbayes.kernels.elimination import Plan

__all__ = ["Evaluator", "elimination_order", "normalise_logs"]

Floats = NDArray[np.float64]

# Gathered in pieces of this many bytes, which stay in the processor's second-level cache.
PIECE_BYTES = 1 << 18
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
        return np.concatenate(rows.map(self._block)) if len(rows) else np.empty((0, self._levels))

    def posterior(self, rows: Rows) -> Floats:
        """P(target = level | observed cells) for each row and level."""
        if not len(rows):
            return np.empty((0, self._levels))
        return np.concatenate(rows.map(lambda block: normalise_logs(self._block(block))))

    def expected_counts(self, rows: Rows, weights: Floats) -> tuple[Floats, float]:
        """Expected count of every table entry, flat, and the log-likelihood.

        `weights` (rows x target levels) says how much each row speaks for each level of the target.
        """
        from marginbayes.kernels import elimination

        codes, plan = _row_major(rows.codes), self._plan
        counts, likelihood, lacking = elimination.expected_counts(codes, weights, plan)
        while lacking:
            plan = self._larger(plan, lacking)
            counts, likelihood, lacking = elimination.expected_counts(codes, weights, plan)
        return counts, likelihood

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

    def _block(self, block: Block) -> Floats:
        summed = self._needs_sums(block)
        if summed is None:
            return self._gather(block.codes)
        joint = np.empty((len(block), self._levels))
        joint[~summed] = self._gather(block.codes[:, ~summed])
        joint[summed] = self._eliminate(block.codes[:, summed])
        return joint

    # -- rows in which nothing has to be summed

    def _needs_sums(self, block: Block) -> NDArray[np.bool_] | None:
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
    def _padded(self) -> list[tuple[list[tuple[int, int]], Floats]]:
        """For each family its members with strides, and its table as (assignments x target levels).

        Each member has one level more, for a missing cell, with the entry 0: a family whose child is missing adds
        nothing. (A missing parent of an observed child never comes here.)
        """
        arranged = []
        for child, table in enumerate(self.tables):
            members, table = self._target_last(child, table)
            table = np.pad(table, [(0, 1)] * len(members) + [(0, 0)])
            strides = np.cumprod([1, *(self.cardinalities[m] + 1 for m in members[:0:-1])])[::-1]
            arranged.append(
                (
                    list(zip(members, map(int, strides), strict=False)),
                    np.ascontiguousarray(table.reshape(-1, table.shape[-1])),
                )
            )
        return arranged

    def _target_last(self, child: int, table: Floats) -> tuple[list[int], Floats]:
        """A table's other members in order, and the table with the target's axis moved last (length 1 if absent)."""
        family = [*self.dag.parents[child], child]
        if self.target in family:
            return [m for m in family if m != self.target], np.moveaxis(table, family.index(self.target), -1)
        return family, table[..., None]

    def _gather(self, codes: NDArray[Any]) -> Floats:
        n = codes.shape[1]
        joint = np.zeros((n, self._levels))
        piece = max(64, PIECE_BYTES // (8 * self._levels))
        buffer = np.empty((min(n, piece), self._levels))
        for start in range(0, n, piece):
            part = slice(start, min(start + piece, n))
            self._gather_piece(codes[:, part], joint[part], buffer[: part.stop - start])
        return joint

    def _gather_piece(self, codes: NDArray[Any], joint: Floats, buffer: Floats) -> None:
        for members, table in self._padded:
            if not members:
                joint += table
                continue
            index = codes[members[0][0]].astype(np.intp)
            if members[0][1] != 1:
                index *= members[0][1]
            for member, stride in members[1:]:
                index += codes[member] if stride == 1 else codes[member].astype(np.intp) * stride
            if table.shape[1] == 1:
                joint += table.take(index, axis=0)
            else:
                np.take(table, index, axis=0, out=buffer, mode="clip")
                joint += buffer

    # -- rows in which something has to be summed

    def _eliminate(self, codes: NDArray[Any]) -> Floats:
        # Loaded here and not at import: the compiler is not needed by those who have no missing cell.
        from marginbayes.kernels import elimination

        plan, rows = self._plan, _row_major(codes)
        joint, lacking = elimination.eliminate(rows, plan)
        while lacking:
            plan = self._larger(plan, lacking)
            joint, lacking = elimination.eliminate(rows, plan)
        return np.asarray(joint)

    def _larger(self, plan: Plan, lacking: int) -> Plan:
        if lacking > LAST_CAPACITY:
            raise ValueError(
                "some row lacks so many features that depend on each other that summing them out would take "
                f"{lacking:.2g} table cells (the limit is {LAST_CAPACITY:.2g}); "
                "learn a network with fewer parents for each feature"
            )
        return plan._replace(capacity=min(2 * lacking, LAST_CAPACITY))

    @cached_property
    def _plan(self) -> Plan:
        from marginbayes.kernels.elimination import Plan

        order, width, cells = elimination_order(self.dag, self.cardinalities, self.target)
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
            order=np.array(order, np.int64),
            topo=np.array(self.dag.order, np.int64),
            child_at=np.cumsum([0, *map(len, children)], dtype=np.int64),
            child=np.array([c for line in children for c in line], np.int64),
            member_at=np.array(member_at, np.int64),
            member=np.array(member, np.int64),
            stride=np.array(stride, np.int64),
            tstride=np.array(tstride, np.int64),
            base=np.array(base, np.int64),
            low=np.array([_smallest(t) for t in flat]),
            logs=logs,
            prune=self.normalized,
            width=max(width, *(len(p) + 1 for p in self.dag.parents)),
            capacity=int(min(cells * self._levels + 1, FIRST_CAPACITY)),
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


def normalise_logs(logs: Floats) -> Floats:
    """exp(logs) with each row scaled to sum to one.

    A row that is impossible throughout has no posterior; it becomes uniform.
    """
    out = np.empty_like(logs)
    piece = max(64, PIECE_BYTES // (8 * logs.shape[1]))
    for start in range(0, len(logs), piece):
        _normalise_piece(logs[start : start + piece], out[start : start + piece])
    return out


def _normalise_piece(logs: Floats, out: Floats) -> None:
    top = logs.max(axis=1, keepdims=True)
    impossible = top[:, 0] == -np.inf
    top[impossible] = 0.0
    np.subtract(logs, top, out=out)
    np.exp(out, out=out)
    out[impossible] = 1.0
    out /= out.sum(axis=1, keepdims=True)


def _smallest(log_table: Floats) -> float:
    positive = log_table[np.isfinite(log_table)]
    return float(positive.min()) if positive.size else 0.0


def _row_major(codes: NDArray[Any]) -> NDArray[np.int32]:
    return np.ascontiguousarray(codes.T, dtype=np.int32)
