"""A Bayesian network: graph, log tables, and exact answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbayes import checks
from marginbayes.data.rows import Rows, code_type
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.network.evaluate import Evaluator
from marginbayes.writing import write_text

__all__ = ["Network"]

Floats = NDArray[np.float64]

# A row of a table may miss 1 by this much: what a file with 8 digits leaves.
ROW_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Network:
    """Bayesian network with categorical variables; a frozen value.

    Parameters
    ----------
    schema : Schema
        The variables; for a classifier the class is the first.
    dag : Dag
        Over the same names in the same order.
    tables : sequence of arrays
        ``tables[i][j1, ..., jk, x]`` is log P(variable i = x | its parents = j1, ..., jk), the parents in the order of
        ``dag.parents[i]``. Rows may sum to less than one (a *subnormalised* network), never to more.
    """

    schema: Schema
    dag: Dag
    tables: tuple[Floats, ...]
    _evaluators: dict[int, Evaluator] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(_frozen(t) for t in self.tables))
        if self.schema.names != self.dag.names:
            raise ValueError(f"schema and graph name different variables: {self.schema.names} and {self.dag.names}")
        if len(self.tables) != len(self.dag.names):
            raise ValueError(f"{len(self.dag.names)} variables but {len(self.tables)} tables")
        with np.errstate(over="ignore"):
            for i, table in enumerate(self.tables):
                self._check_table(i, table)

    def _check_table(self, i: int, table: Floats) -> None:
        cards, name = self.schema.cardinalities, self.dag.names[i]
        shape = (*(cards[p] for p in self.dag.parents[i]), cards[i])
        if table.shape != shape:
            raise ValueError(f"the table of {name!r} has the shape {table.shape}, but its family needs {shape}")
        if not np.exp(table).sum(axis=-1).max(initial=0.0) <= 1.0 + ROW_TOLERANCE:  # also where a sum is NaN
            raise ValueError(
                f"the table of {name!r} has a row whose probabilities sum to more than one or are undefined"
            )

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: not the plans for answers, which are larger and soon made again."""
        return {**self.__dict__, "_evaluators": {}}

    def __eq__(self, other: object) -> bool:
        """Same variables, same graph, and tables that agree to the last bit."""
        if not isinstance(other, Network) or (self.schema, self.dag) != (other.schema, other.dag):
            return False
        return all(np.array_equal(a, b) for a, b in zip(self.tables, other.tables, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        variables, edges = len(self.dag.names), len(self.dag.edges)
        return f"Network({variables} variables, {edges} edges, {self.n_parameters} free parameters)"

    def _repr_html_(self) -> str:
        return self.to_svg()

    # -- what it is

    @cached_property
    def normalized(self) -> bool:
        """Whether every row of every table sums to one."""
        return all(bool((np.abs(np.exp(t).sum(axis=-1) - 1.0) <= ROW_TOLERANCE).all()) for t in self.tables)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: rows times levels less one."""
        return sum(t.size // t.shape[-1] * (t.shape[-1] - 1) for t in self.tables)

    def probabilities(self, name: str) -> Floats:
        """Table of P(variable | parents), the variable's own levels last."""
        return np.exp(self.tables[self.dag.index(name)])

    # -- answers for many rows

    def log_joint(self, rows: Rows, target: str | None = None) -> Floats:
        """log P(target = level, observed features) for each row and level of the target (the class by default)."""
        return self._evaluator(target).log_joint(rows)

    def log_joint_by_prefix(self, rows: Rows) -> Iterator[Floats]:
        """Log joint of each row and class with no feature seen, then with one more in topological order at a time.

        What is yielded changes with the next step.
        """
        return self._evaluator(None).log_joint_by_prefix(rows)

    def posterior(self, rows: Rows, target: str | None = None) -> Floats:
        """P(target = level | observed cells) for each row, missing cells summed out exactly."""
        return self._evaluator(target).posterior(rows)

    def log_likelihood(self, rows: Rows) -> float:
        """Weighted sum over the rows of log P(observed cells)."""
        joint = self.log_joint(rows)
        observed = rows.codes[0] < self.schema.cardinalities[0]
        values = logsumexp(joint, axis=1)
        values[observed] = joint[observed, rows.codes[0][observed]]
        return float(values.sum() if rows.weights is None else values @ rows.weights)

    def _evaluator(self, target: str | None) -> Evaluator:
        i = 0 if target is None else self.dag.index(target)
        if i not in self._evaluators:
            self._evaluators[i] = Evaluator(self.dag, self.schema.cardinalities, self.tables, i, self.normalized)
        return self._evaluators[i]

    # -- answers for one question

    def query(
        self,
        variables: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        likelihood: Mapping[str, Sequence[float]] | None = None,
    ) -> Floats:
        """P(variables | given), one axis for each variable, in the order asked.

        Parameters
        ----------
        variables : name or names
            What is asked for.
        given : mapping from name to level
            Hard evidence.
        likelihood : mapping from name to one non-negative number for each level
            Soft evidence: how probable the evidence is under each level (Pearl's virtual evidence).
        """
        from marginbayes.network.query import query

        asked = [variables] if isinstance(variables, str) else list(variables)
        return query(self, asked, _evidence(given), _evidence(likelihood))

    def most_probable(self, given: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], float]:
        """The most probable explanation: the best level of every variable given the evidence, and its log joint."""
        from marginbayes.network.query import most_probable

        return most_probable(self, _evidence(given))

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Rows:
        """Rows drawn from the network by ancestral sampling."""
        checks.whole("n", n)
        if not self.normalized:
            raise ValueError(
                "rows can only be drawn from tables whose rows sum to one, and those of this network do not; learn it "
                "without subnormal=True"
            )
        rng = np.random.default_rng(random_state)
        cards = self.schema.cardinalities
        codes = np.empty((len(cards), n), code_type(max(cards)))
        for i in self.dag.order:
            codes[i] = _drawn(self.tables[i], [codes[p] for p in self.dag.parents[i]], rng.random(n))
        return Rows(codes, cards)

    def edge_information(self) -> dict[tuple[str, str], float]:
        """For each edge I(child; parent | the child's other parents) under the network, in nats."""
        from marginbayes.network.query import edge_information

        return edge_information(self)

    # -- files

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """SVG drawing, edges as wide as the information they carry; also written to `path` if one is given."""
        from marginbayes.graph.svg import draw_svg

        text = draw_svg(self.dag, widths=self.edge_information())
        if path is not None:
            write_text(path, text)
        return text

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """JSON text of the network, bit-exact; also written to `path` if one is given."""
        from marginbayes.network.json import write_json

        return write_json(self, path)

    @classmethod
    def from_json(cls, path: str | PathLike[str]) -> Network:
        """Network from a JSON file (or JSON text)."""
        from marginbayes.network.json import read_json

        return read_json(path)

    def to_bif(self, path: str | PathLike[str] | None = None) -> str:
        """BIF text of the network, which pgmpy and pyAgrum read; also written to `path` if one is given."""
        from marginbayes.network.bif import write_bif

        return write_bif(self, path)

    @classmethod
    def from_bif(cls, path: str | PathLike[str], target: str | None = None) -> Network:
        """Network from a BIF file (or text); the class is `target`, or as the file says, or the first."""
        from marginbayes.network.bif import read_bif

        return read_bif(path, target)

    def to_xmlbif(self, path: str | PathLike[str] | None = None) -> str:
        """XMLBIF text of the network, which pgmpy and pyAgrum read; also written to `path` if given."""
        from marginbayes.network.xmlbif import write_xmlbif

        return write_xmlbif(self, path)

    @classmethod
    def from_xmlbif(cls, path: str | PathLike[str], target: str | None = None) -> Network:
        """Network from an XMLBIF file (or text); the class is `target`, or as the file says, or the first."""
        from marginbayes.network.xmlbif import read_xmlbif

        return read_xmlbif(path, target)

    def to_pgmpy(self) -> Any:
        """pgmpy's DiscreteBayesianNetwork with the same variables, levels and tables."""
        from marginbayes.network.interop import to_pgmpy

        return to_pgmpy(self)

    @classmethod
    def from_pgmpy(cls, model: Any, target: str | None = None) -> Network:
        """Network from a pgmpy model with tables; the class is `target`, or as marked, or the first."""
        from marginbayes.network.interop import from_pgmpy

        return from_pgmpy(model, target)

    def to_pyagrum(self) -> Any:
        """pyAgrum's BayesNet with the same variables and tables; a level is its text."""
        from marginbayes.network.interop import to_pyagrum

        return to_pyagrum(self)

    @classmethod
    def from_pyagrum(cls, bn: Any, target: str | None = None) -> Network:
        """Network from a pyAgrum BayesNet; the class is `target`, or as marked, or the first."""
        from marginbayes.network.interop import from_pyagrum

        return from_pyagrum(bn, target)


def _evidence(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """A dictionary, also of a row of a pandas frame."""
    return {} if given is None else dict(given)


def _drawn(table: Floats, parents: Sequence[NDArray[Any]], heights: Floats) -> NDArray[np.intp]:
    """The level that each height between 0 and 1 falls into, given the levels of the parents: one search for each row.

    Rows with the same parents are dealt with together, so that memory does not grow with rows times levels.
    """
    flat = table.reshape(-1, table.shape[-1])
    given = np.zeros(len(heights), np.intp)
    if parents:
        given += np.ravel_multi_index(tuple(parents), table.shape[:-1])
    order = np.argsort(given, kind="stable")
    starts = np.flatnonzero(np.diff(given[order], prepend=-1))
    found = np.empty(len(heights), np.intp)
    for rows in np.split(order, starts)[1:]:
        steps = np.cumsum(np.exp(flat[given[rows[0]]]))
        found[rows] = np.searchsorted(steps, heights[rows] * steps[-1], side="right")
    return found


def _frozen(table: Any) -> Floats:
    """A table that nobody can change, its cells in the order that files have: sums come out the same, bit for bit."""
    plain = isinstance(table, np.ndarray) and table.dtype == np.float64 and table.base is None
    if plain and table.flags.c_contiguous and not table.flags.writeable:
        return np.asarray(table)
    array = np.array(table, np.float64, order="C")
    array.setflags(write=False)
    return array
