"""Formulation (19) in SCIP, with order constraints or with cluster inequalities that are found while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes.structure.exact.clusters import violated_clusters

if TYPE_CHECKING:
    from marginbayes.structure.exact.milp import Formulation, MilpResult

__all__ = ["solve_scip"]

Set = tuple[int, ...]

STATUS = {"optimal": "optimal", "gaplimit": "optimal", "timelimit": "time limit", "infeasible": "infeasible"}


def solve_scip(
    form: Formulation, time_limit: float | None, gap: float, clusters: Sequence[Set], *, order: bool, lazy: bool
) -> MilpResult:
    """Solution by SCIP; `order`: with order constraints, `lazy`: with cluster inequalities as they are violated."""
    from marginbayes.structure.exact.milp import MilpResult

    model, columns = _model(form, clusters, order=order)
    model.setParam("limits/gap", gap)
    if time_limit is not None:
        model.setParam("limits/time", time_limit)
    if lazy:
        _include_clusters(model, columns[: form.sizes[0]], form)
    model.optimize()
    status, bound = STATUS.get(model.getStatus(), model.getStatus()), form.unit * float(model.getDualbound())
    parents, objective = None, -np.inf
    if model.getNSols():
        best = model.getBestSol()
        parents = form.parents(np.array([model.getSolVal(best, column) for column in columns]))
        objective = form.value(parents)
    bound = max(bound, objective)
    return MilpResult(parents, objective, bound, status, ((float(model.getTotalTime()), objective, bound),))


def _model(form: Formulation, clusters: Sequence[Set], *, order: bool) -> tuple[Any, list[Any]]:
    """The model, and its columns in the sequence of the formulation."""
    scip = _import_scip()
    model = scip.Model()
    model.hideOutput()
    options = form.sizes[0]
    columns = [
        model.addVar(vtype="B" if i < options else "C", lb=None if low == -np.inf else low, ub=high, obj=gain)
        for i, (low, high, gain) in enumerate(zip(*form.bounds, form.gain, strict=True))
    ]
    model.setMaximize()
    _add_rows(model, columns, form.choice, 1.0, 1.0)
    _add_rows(model, columns, form.margins, None, 0.0)
    if order:
        matrix, least = form.order
        _add_rows(model, columns, matrix, least, None)
    if clusters:
        _add_rows(model, columns, form.cuts(clusters), 1.0, None)
    return model, columns


def _import_scip() -> Any:
    try:
        import pyscipopt
    except ImportError:
        raise ImportError("solver='scip' needs PySCIPOpt; install it with: pip install pyscipopt") from None
    return pyscipopt


def _add_rows(model: Any, columns: Sequence[Any], matrix: Any, least: float | None, most: float | None) -> None:
    scip = _import_scip()
    for line in range(matrix.shape[0]):
        part = slice(matrix.indptr[line], matrix.indptr[line + 1])
        terms = zip(matrix.data[part], matrix.indices[part], strict=True)
        total = scip.quicksum(float(value) * columns[place] for value, place in terms)
        if least is not None:
            model.addCons(total >= least)
        if most is not None:
            model.addCons(total <= most)


def _include_clusters(model: Any, choices: Sequence[Any], form: Formulation) -> None:
    """Have SCIP call back where a solution violates a cluster inequality."""
    scip = _import_scip()
    starts = np.cumsum([0, *(len(own) for own in form.sets)])

    class Clusters(scip.Conshdlr):  # type: ignore[misc, name-defined]
        """Checks whole solutions for cycles; cuts fractional ones."""

        def _violated(self, solution: Any, *, thorough: bool) -> list[Set]:
            values = np.array([self.model.getSolVal(solution, v) for v in choices])
            shares = [values[a:b] for a, b in pairwise(starts)]
            return violated_clusters(form.sets, shares, thorough=thorough)

        def _add(self, clusters: Sequence[Set]) -> Any:
            for line in form.cuts(clusters):
                self.model.addCons(scip.quicksum(choices[place] for place in line.indices) >= 1.0)
            return scip.SCIP_RESULT.CONSADDED if clusters else scip.SCIP_RESULT.FEASIBLE

        def conscheck(self, _constraints: Any, solution: Any, *_: Any) -> dict[str, Any]:
            """Whether a whole solution is acyclic."""
            good = not self._violated(solution, thorough=False)
            return {"result": scip.SCIP_RESULT.FEASIBLE if good else scip.SCIP_RESULT.INFEASIBLE}

        def consenfolp(self, *_: Any) -> dict[str, Any]:
            """Cut off the solution of the linear program where it has a cycle."""
            return {"result": self._add(self._violated(None, thorough=False))}

        def conssepalp(self, *_: Any) -> dict[str, Any]:
            """Cut off a fractional solution."""
            found = self._violated(None, thorough=self.model.getDepth() == 0)
            return {"result": self._add(found) if found else scip.SCIP_RESULT.DIDNOTFIND}

        def conslock(self, _constraint: Any, _type: Any, up: int, down: int) -> None:
            """No choice may be rounded without asking."""
            for v in choices:
                self.model.addVarLocks(v, up + down, up + down)

    model.includeConshdlr(
        Clusters(), "clusters", "acyclic", sepapriority=0, enfopriority=-1, chckpriority=-1, sepafreq=1, needscons=False
    )
