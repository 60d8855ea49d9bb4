"""Branch and bound, best first: the state of a search, and the loop that advances it."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import Multipliers, branch_bound, evaluate
from marginbayes.structure.exact.incumbent import Incumbent, objective_of, plain_choice, search_from
from marginbayes.structure.exact.instance import Instance, MemoryLimit
from marginbayes.structure.exact.node import Expansion, Node, Start, Task, bases_of, expand, plunge
from marginbayes.structure.exact.proof import Proof, Subtree
from marginbayes.structure.exact.trace import Point, noted
from marginbayes.structure.exact.watch import Outcome, Watch

if TYPE_CHECKING:
    from marginbayes.kernels.exact_dive import Dived

__all__ = ["Limits", "Search"]

Ints = NDArray[np.int64]

# Parts that are worked on before the results are put together; and depth first, parts that are chosen before the first
# one's result is known: one more for so many parts of the tree, and at most. Fixed: threads do not change the course.
BATCH, MORE_AHEAD, AHEAD = 4, 100, 64
# Seconds of work on a part from which threads pay: below, they wait for the interpreter more than they work.
WORTH_THREADS = 5e-3
# Every part climbs from its rounded shares up to this many parts, later every so many.
EAGER, SELDOM = 16, 8
# A tree of fewer parts is done before a longer search for good structures would pay; one that is not so many times as
# large, before searches that begin anew would. How many do so at a time.
SMALL, LATER, RESTARTS = 40, 64, 2
# Less than this, relative to the weight of the rows, is the rounding of a sum over them, which verification allows.
ROUNDING = 1e-9
# So many parts below one are worked on before others come, when there were this many times as many (or so many for each
# second that a part takes by its own, if that is more), and at most.
WIDE, SLOW, DEEP = 200, 15_000, 3000
# Depth first pays, what it needs being compiled at its first use, in searches of so many seconds; not with more rows.
PAYS, MANY_ROWS = 5.0, 100_000
NO_SLOTS, NO_SHARES = np.empty(0, np.int32), np.empty(0, np.float32)
NOTHING = Multipliers(np.empty(0, np.int32), np.empty(0, np.int32))


@dataclass(frozen=True)
class Limits:
    """When to stop: proved well enough, nodes, the clock (a moment of `time.perf_counter`), or a wish."""

    gap: float
    nodes: float = np.inf
    deadline: float = np.inf
    polish: float = np.inf  # seconds that the search for a better structure may take once the tree is no longer small
    wished: Callable[[], bool] = lambda: False

    def in_time(self) -> bool:
        """Whether work may go on."""
        return time.perf_counter() < self.deadline and not self.wished()


@dataclass(eq=False)
class Search:
    """A search under way. All of it is on record: `checkpoint` writes it, and reads it again."""

    instance: Instance
    incumbent: Incumbent
    record: InitVar[Proof | None] = None  # of an earlier run
    proof: Proof = field(init=False)
    heap: list[tuple[float, int, Node]] = field(default_factory=list)
    tasks: deque[Task] = field(default_factory=deque)  # parts that are off the heap, the first one's result comes next
    nodes: int = 0
    pruned: float = -np.inf  # no structure that was put aside is better than this, or than the incumbent
    trace: list[Point] = field(default_factory=list)
    seconds: float = 0.0  # of earlier runs
    started: float = field(default_factory=time.perf_counter)
    pace: float = 0.0  # seconds that a part of the last batch took
    dives: bool = False  # whether it goes depth first
    begun: deque[Future[Dived | None]] = field(default_factory=deque)  # what becomes of the first of these tasks
    doing: str = ""  # what takes time besides the search

    def __post_init__(self, record: Proof | None) -> None:
        self.proof = Proof(self.instance.n_options) if record is None else record
        self.pace = self._likely

    @classmethod
    def without_rivals(cls, instance: Instance, choice: NDArray[np.int64]) -> Search:
        """The end of a search where the class has one level only: every margin is enough, whatever the structure."""
        search = cls(instance, Incumbent(0, choice, instance.ceiling))
        for top in range(len(instance.tops)):
            search.proof.close(search.proof.add(-1, (top,), False), NOTHING)
        return search

    # -- where it stands

    @property
    def _likely(self) -> float:
        """Seconds that a part takes by its own, as a guess that does not hang on the clock."""
        return 1e-8 * self.instance.n_rows * self.instance.allowed.size

    @property
    def _should_dive(self) -> bool:
        return self.instance.n_rows <= MANY_ROWS and self.nodes >= SMALL and self.nodes * self._likely >= PAYS

    @property
    def elapsed(self) -> float:
        """Seconds of work, those before an interruption included."""
        return self.seconds + time.perf_counter() - self.started

    @property
    def bound(self) -> float:
        """No structure is better than this."""
        return max(self.incumbent.objective, self.pruned, self._open_bound)

    @property
    def _open_bound(self) -> float:
        """No structure in an open part is better than this."""
        return max((-self.heap[0][0] if self.heap else -np.inf, *(task.node.bound for task in self.tasks)))

    @property
    def n_open(self) -> int:
        """How many parts are open."""
        return len(self.heap) + len(self.tasks)

    @property
    def bytes(self) -> int:
        """Rough size in memory of the record and the open parts."""
        one = sum(n.packed.nbytes + n.start.bytes + 200 for _, _, n in self.heap[:1])
        return self.proof.bytes + one * len(self.heap)

    def tolerance(self, gap: float) -> float:
        """The absolute distance that a relative gap allows."""
        return gap * max(1.0, abs(self.incumbent.objective))

    # -- beginning

    def open_problems(self, limits: Limits, watch: Watch) -> None:
        """Open one part for each set of class parents; the first one's relaxation gives multipliers for all.

        All are on record before anything is worked on, which may end at any time.
        """
        shares = np.zeros(self.instance.allowed.shape)
        shares[np.arange(len(shares)), self.incumbent.choice] = 1.0
        nothing, own = Start.of(shares, NOTHING), self.incumbent.top
        tops = [own, *(top for top in range(len(self.instance.tops)) if top != own)]
        first, *others = (self._root(self.proof.add(-1, (top,), False), top, nothing) for top in tops)
        for node in others:
            self.push(node)
        if not others:
            self.push(first)
            return
        self._advance([first], limits, watch)
        advanced = [entry for entry in self.heap if entry[2].top == own]
        if advanced:
            seed = min(advanced)[2].start
            better = [self._root(node.part, node.top, seed) for node in others]
            self.heap = advanced + [(-node.bound, node.part, node) for node in better]
            heapq.heapify(self.heap)

    def adopt(self, top: int, choice: Ints) -> None:
        """Take a structure over, if it is better than the best one."""
        objective = objective_of(self.instance, top, choice)
        if objective > self.incumbent.objective:
            self.incumbent = Incumbent(top, choice, objective)

    def _polish(self, before: int, limits: Limits, watch: Watch) -> None:
        """Look longer for a good structure, now that there are more parts than before: what is cut off hangs on it.

        From the best one when the tree is no longer small; anew when it is large, and whenever it has grown fourfold.
        """
        age, best = _age(self.nodes), self.incumbent
        if age == _age(before) or (age > 1 and not self.dives):
            return
        begin, count = (best.choice, 1) if age == 1 else (plain_choice(self.instance, best.top), RESTARTS)
        seeds = range(self.instance.seed + RESTARTS * age - 1, self.instance.seed + RESTARTS * age - 1 + count)
        works = [partial(search_from, self.instance, best.top, begin, seed) for seed in seeds]
        for done in watch.run(works, apart=True, seconds=limits.polish):
            if done.result().objective > self.incumbent.objective:
                self.incumbent = done.result()

    def _root(self, part: int, top: int, start: Start) -> Node:
        """All structures of a set of class parents."""
        allowed = self.instance.root(top)
        found = evaluate(self.instance, top, start.multipliers)
        return Node.of(part, top, allowed, branch_bound(found, allowed), start)

    # -- the loop

    def run(self, limits: Limits, watch: Watch, tick: Callable[[], None]) -> str:
        """Work until a limit; why it ended. `tick` is called whenever everything is on record."""
        try:
            if not self.proof.parent:
                self.open_problems(limits, watch)
                tick()
            while (status := self._status(limits)) is None:
                before = self.nodes
                if not self.dives and self._should_dive:
                    self.doing = "compiling for a large search"
                    tick()
                    limits, self.doing = self._begin_to_dive(limits, watch), ""
                if self.dives:
                    self._dive(limits, watch)
                else:
                    self._step(limits, watch)
                self._polish(before, limits, watch)
                tick()
        except MemoryLimit as error:
            status = f"memory limit: {error}"
        except KeyboardInterrupt:  # from a callback
            status = "interrupted"
        if status in ("interrupted", "time limit"):  # else what is under way is done again, if the search goes on
            watch.stop()
            while self.tasks:
                with suppress(MemoryLimit):
                    self._land(self.tasks.popleft())
        return status

    def _begin_to_dive(self, limits: Limits, watch: Watch) -> Limits:
        """Have compiled what only larger searches need; no time limit is spent on that."""
        began = time.perf_counter()
        nothing_above = Task(self.open_nodes[0], np.inf, 1, True)
        plunge(self.instance, nothing_above, np.zeros(1, np.int64))
        limits = replace(limits, deadline=limits.deadline + time.perf_counter() - began)
        self.dives, watch.in_time = True, limits.in_time
        return limits

    def _status(self, limits: Limits) -> str | None:
        left = self.bound - self.incumbent.objective - self.tolerance(limits.gap)
        if left <= 0.0:
            return "optimal"
        # What was closed may be above the incumbent by rounding; only open parts can be worked on.
        if self._open_bound <= self._cutoff(limits):
            size = max(1.0, self.instance.samples.total, abs(self.incumbent.objective))
            return "optimal" if left <= ROUNDING * size else "stalled"
        if self.nodes >= limits.nodes:
            return "node limit"
        if limits.wished():
            return "interrupted"
        if time.perf_counter() >= limits.deadline:
            return "time limit"
        if self.bytes > self.instance.max_memory:
            return (
                f"memory limit: the record of the search takes {self.bytes:.2g} bytes, "
                f"more than max_memory={self.instance.max_memory:.2g}"
            )
        return None

    def _cutoff(self, limits: Limits) -> float:
        """Parts that hold nothing above this are of no interest."""
        return self.incumbent.objective + self.tolerance(limits.gap) / 2

    def _step(self, limits: Limits, watch: Watch) -> None:
        cutoff = self._cutoff(limits)
        batch: list[Node] = []
        while self.heap and len(batch) < BATCH and -self.heap[0][0] > cutoff:
            batch.append(self._pop())
        self._advance(batch, limits, watch)

    def _climbs(self, number: int) -> bool:
        return number < EAGER or number % SELDOM == 0

    def _advance(self, batch: list[Node], limits: Limits, watch: Watch) -> None:
        """Work on parts that are taken off the heap; whatever happens, what became of each is put back."""
        cutoff = self._cutoff(limits)

        def work(k: int, stop: Ints) -> tuple[Expansion | None, float]:
            began, node, climbs = time.perf_counter(), batch[k], self._climbs(self.nodes + k)
            if stop[0]:
                return None, 0.0
            out = expand(self.instance, node, cutoff, self.proof.parent[node.part] < 0, climbs, stop)
            return out, time.perf_counter() - began

        done: Sequence[Outcome[tuple[Expansion | None, float]]] = []
        try:
            done = watch.run([partial(work, k) for k in range(len(batch))], apart=self.pace > WORTH_THREADS)
            self.pace = sum(future.result()[1] for future in done) / len(batch)
        finally:
            fine = [future.result()[0] if future.exception() is None else None for future in done]
            for node, out in zip(batch, fine or [None] * len(batch), strict=True):
                if out is None:
                    self.push(node)
                else:
                    self._put(node, out, cutoff)

    def _dive(self, limits: Limits, watch: Watch) -> None:
        """Go depth first below the best parts, and put what becomes of one on record.

        The further the larger the tree is: few parts wait then, and a relaxation goes on from the one above. No thread
        has to wait for others, and all that is on record is never older than one of these tasks.
        """
        cutoff, ahead = self._cutoff(limits), min(BATCH + self.nodes // MORE_AHEAD, AHEAD)
        parts = min(1 + int(self.nodes / max(WIDE, SLOW * self._likely)), DEEP)
        while self.heap and len(self.tasks) < ahead and -self.heap[0][0] > cutoff:
            self.tasks.append(Task(self._pop(), cutoff, parts, self._climbs(self.nodes + len(self.tasks))))
        for task in list(self.tasks)[len(self.begun) :]:
            self.begun.append(watch.begin(partial(self._plunge, task)))
        watch.wait(self.begun[0])
        if not watch.stopped:
            self._land(self.tasks.popleft())

    def _plunge(self, task: Task, stop: Ints) -> Dived | None:
        return None if stop[0] else plunge(self.instance, task, stop)

    def _land(self, task: Task) -> None:
        """Put on record what became of the first task, which is off the list; whatever happens, no part is lost."""
        out = None
        try:
            out = self.begun.popleft().result() if self.begun else None
        finally:
            if out is None:
                self.push(task.node)
        if out is not None:
            self._put_below(task.node, out)
            if not out.fits:
                raise self.instance.memory_limit()

    def _put_below(self, node: Node, out: Dived) -> None:
        """Put what was made below a part on record."""
        place = len(self.proof.multipliers)
        first = self.proof.extend(
            node.part, node.start.multipliers, Subtree(*(getattr(out, f) for f in Subtree._fields))
        )
        if place < len(self.proof.multipliers) - len(out.start) + 1:
            place += 1  # those that were given came first
        self.nodes += out.nodes
        self.pruned = max(self.pruned, out.pruned)
        if out.objective > self.incumbent.objective:
            self.incumbent = Incumbent(node.top, out.choice, out.objective)
        starts = {-1: node.start}
        bases, opened = bases_of(out), zip(out.open_part, out.open_by, out.open_bound, out.open_allowed, strict=True)
        for (part, by, bound, allowed), basis in zip(opened, bases, strict=True):
            if by not in starts:
                rows = slice(out.start[by], out.start[by + 1])
                known = Multipliers(out.rows[rows].copy(), out.shares[rows].copy())
                self.proof.remember(known, place + int(by))
                starts[by] = Start(NO_SLOTS, NO_SHARES, known, out.clusters, basis)
            number = node.part if part < 0 else first + int(part)
            self.push(Node.of(number, node.top, allowed, float(bound), starts[by]))

    def _put(self, node: Node, out: Expansion, cutoff: float) -> None:
        """Put what became of a part on record."""
        for gone, multipliers in out.fixes:
            self.proof.fix(node.part, gone, multipliers)
        self.pruned = max(self.pruned, out.fixed_bound)
        if out.left is not None and out.start is not None:
            self.push(Node.of(node.part, node.top, out.left, out.bound, out.start))
            return
        self.nodes += 1
        if out.found is not None and out.found.objective > self.incumbent.objective:
            self.incumbent = out.found
        if out.start is None:
            self._close(node.part, out.multipliers, out.bound, out.listed)
        for child in out.children:
            assert out.start is not None
            part = self.proof.add(node.part, out.slots, child.taken)
            if child.bound <= cutoff:
                self._close(part, out.start.multipliers, child.bound)
                continue
            self.push(Node.of(part, node.top, child.allowed, child.bound, out.start))

    def _close(self, part: int, multipliers: Multipliers, bound: float, listed: bool = False) -> None:
        self.proof.close(part, multipliers, listed)
        self.pruned = max(self.pruned, bound)

    @property
    def open_nodes(self) -> list[Node]:
        """All open parts, those of the tasks first."""
        waiting = sorted(self.heap, key=lambda entry: entry[1])
        return [*(task.node for task in self.tasks), *(node for _, _, node in waiting)]

    def push(self, node: Node) -> None:
        """A part is open (again)."""
        heapq.heappush(self.heap, (-node.bound, node.part, node))

    def _pop(self) -> Node:
        return heapq.heappop(self.heap)[2]

    # -- the end

    def note(self) -> None:
        """Put time, objective and bound on the trace, thinned where it grows long."""
        self.trace = noted(self.trace, (self.elapsed, self.incumbent.objective, self.bound))

    def closed_proof(self) -> Proof:
        """The record with every open part closed by the multipliers that bound it so far."""
        for node in self.open_nodes:
            self.proof.close(node.part, node.start.multipliers)
        return self.proof


def _age(nodes: int) -> int:
    """0 while a tree is small; then 1, and one more when it is large, and whenever it has grown fourfold since."""
    return 0 if nodes < SMALL else 1 + ((nodes // (SMALL * LATER)).bit_length() + 1) // 2
