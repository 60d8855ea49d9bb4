"""Conditional likelihood of naive Bayes beside scikit-learn's multinomial logistic regression on the one-hot matrix.

    python benchmarks/conditional.py                # MNIST 14x14, 60000 rows, if the data home has it
    python benchmarks/conditional.py --rows 10000   # a quick look

Both minimise the same objective: minus the conditional log-likelihood plus l2 / 2 times the squares of all weights (the
class has a column of ones and no free intercept). scikit-learn is stopped after more and more steps; the time is that
at which marginbayes is as low, everything from the encoded rows on included. What is wanted is wanted from 100 steps
on, where scikit-learn stops by default (it warns that it has not converged). The second table shrinks
towards maximum likelihood, as the learner does, and looks at the training loss alone. Memory is what tracemalloc sees
between the encoded rows and the result, the one-hot matrix included. On a busy machine read processor seconds.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _data import Table, random_tan
from scipy import sparse
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from marginbayes import BayesNetClassifier, Dag, Network, datasets
from marginbayes.data.rows import Rows
from marginbayes.parameters import MaximumLikelihood
from marginbayes.parameters.descent import descend
from marginbayes.parameters.design import Design
from marginbayes.parameters.parametrisation import Concave

STEPS = (10, 30, 100, 300)
DEFAULT_STEPS, WANTED = 100, 5.0


@dataclass(frozen=True)
class Reached:
    """A value of the objective, and when it was reached: on the clock and in processor time."""

    value: float
    clock: float
    cpu: float


def mnist(n: int) -> Table:
    """The first n training rows of MNIST in 14 x 14 pixels cut by MDLP; rows of that size where it is not there."""
    try:
        X, y, _, _ = datasets.load("mnist-14x14").split()
    except (ValueError, OSError) as error:
        print(f"MNIST is not there ({error})")
        return random_tan("generated", n, (10, *[5] * 196))
    clf = BayesNetClassifier("nb").fit(X[:n], y[:n])
    codes = clf._rows(X[:n]).codes.copy()
    codes[0] = np.searchsorted(clf.classes_, y[:n])
    return Table("MNIST 14x14", Rows(codes, clf.schema_.cardinalities), "data home")


def one_hot(table: Table) -> sparse.csr_matrix:
    """A column of ones for the class, and one column for each level of each feature."""
    levels = OneHotEncoder(dtype=np.float64).fit_transform(table.rows.codes[1:].T)
    return sparse.hstack([np.ones((levels.shape[0], 1)), levels], format="csr")


def their_loss(model: LogisticRegression, matrix: sparse.csr_matrix, labels: np.ndarray) -> float:
    """Minus the conditional log-likelihood of the training rows."""
    return -float(log_softmax(matrix @ model.coef_.T, axis=1)[np.arange(len(labels)), labels].sum())


def theirs(matrix: sparse.csr_matrix, labels: np.ndarray, l2: float, steps: int) -> tuple[Reached, LogisticRegression]:
    """scikit-learn after so many steps."""
    model = LogisticRegression(C=1 / l2, fit_intercept=False, max_iter=steps, tol=1e-12)
    clock, cpu = time.perf_counter(), time.process_time()
    # One thread of the matrix library: more only wait for each other here.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(matrix, labels)
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    return Reached(their_loss(model, matrix, labels) + 0.5 * l2 * float((model.coef_**2).sum()), clock, cpu), model


def ours(
    table: Table, reference: Callable[[Dag], Network], l2: float, n_jobs: int, with_penalty: bool
) -> list[Reached]:
    """marginbayes step by step: the objective, or the training loss alone. Everything from encoded rows on counts."""
    found: list[Reached] = []
    clock, cpu = time.perf_counter(), time.process_time()
    dag = Dag.naive(table.names)
    problem = Concave(Design.of(dag, table.rows, n_jobs), reference(dag), l2)
    paused = [0.0, 0.0]

    def note(point: np.ndarray) -> None:
        now, then = time.perf_counter(), time.process_time()
        value = problem.objective(point)[0] - (0.0 if with_penalty else 0.5 * l2 * float(point[1:] @ point[1:]))
        found.append(Reached(value, now - clock - paused[0], then - cpu - paused[1]))
        paused[0] += time.perf_counter() - now  # looking costs an evaluation that the learner does not need
        paused[1] += time.process_time() - then

    descend(problem, problem.start(), max_iter=500, tol=1e-7, watch=note)
    return found


def uniform(table: Table, dag: Dag) -> Network:
    """Tables that say nothing: shrinking towards them is shrinking towards zero, as logistic regression does."""
    cards = table.rows.cardinalities
    shapes = [tuple(cards[v] for v in (*parents, i)) for i, parents in enumerate(dag.parents)]
    return Network(table.schema, dag, tuple(np.full(shape, -np.log(shape[-1])) for shape in shapes))


def compare(title: str, peers: list[Reached], own: list[Reached]) -> float:
    """Print when each is as low as the other was; the least ratio of processor times from 100 steps on."""
    print(f"\n{title}")
    print(f"  {'':>34}{'scikit-learn':>20}{'marginbayes':>20}{'ratio':>16}")
    headings = f"{'value':>14}{'steps':>10}{'steps':>10}" + f"{'clock':>10}{'cpu':>10}" * 2 + f"{'clock':>8}{'cpu':>8}"
    print(f"  {headings}")
    ratios = []
    for steps, peer in zip(STEPS, peers, strict=True):
        at = next((k for k, r in enumerate(own) if r.value <= peer.value), None)
        line = f"  {peer.value:14.2f}{steps:10d}"
        if at is None:
            print(f"{line}{'never':>10}{peer.clock:10.2f}{peer.cpu:10.2f}   (lowest here {own[-1].value:.2f})")
            ratios.append(0.0)
            continue
        mine = own[at]
        ratios.append(peer.cpu / mine.cpu)
        times = f"{peer.clock:10.2f}{peer.cpu:10.2f}{mine.clock:10.2f}{mine.cpu:10.2f}"
        print(f"{line}{at + 1:10d}{times}{peer.clock / mine.clock:8.1f}{ratios[-1]:8.1f}", flush=True)
    return min(ratio for steps, ratio in zip(STEPS, ratios, strict=True) if steps >= DEFAULT_STEPS)


def peak(action: Callable[[], object]) -> float:
    """Peak megabytes of an action."""
    tracemalloc.start()
    action()
    megabytes = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return megabytes


def main() -> None:
    """Everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--l2", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=1, help="threads of marginbayes; scikit-learn uses one here")
    args = parser.parse_args()
    table = mnist(args.rows)
    print(f"{table.name}: {table.size}; l2 = {args.l2:g}, {args.jobs} thread(s)")
    matrix, labels = one_hot(table), table.labels
    ours(random_tan("warm-up", 500, (3, 4, 4)), lambda dag: uniform(random_tan("", 1, (3, 4, 4)), dag), 1.0, 1, True)
    peers = [theirs(matrix, labels, args.l2, steps) for steps in STEPS]
    same = ours(table, lambda dag: uniform(table, dag), args.l2, args.jobs, with_penalty=True)
    worst = compare("The same objective, both from zero", [r for r, _ in peers], same)
    losses = [Reached(their_loss(m, matrix, labels), r.clock, r.cpu) for r, m in peers]
    shrunk = ours(
        table,
        lambda dag: MaximumLikelihood().learn(table.schema, dag, table.rows).network,
        args.l2,
        args.jobs,
        with_penalty=False,
    )
    compare("Training loss; marginbayes from maximum likelihood and shrunk towards it", losses, shrunk)
    verdict = "reached" if worst >= WANTED else "MISSED"
    print(f"\nsame objective: at least {worst:.1f} times as fast, {WANTED:g} wanted: {verdict}")
    memory = peak(lambda: ours(table, lambda dag: uniform(table, dag), args.l2, args.jobs, True)[:0])
    theirs_memory = peak(lambda: theirs(one_hot(table), labels, args.l2, 5))
    print(f"peak memory: marginbayes {memory:.0f} MB, scikit-learn {theirs_memory:.0f} MB")


if __name__ == "__main__":
    main()
