"""Short names of structure learners."""

from __future__ import annotations

import re
from typing import Any

from marginbayes.structure.base import StructureLearner
from marginbayes.structure.classic import ChowLiuTAN, NaiveBayes
from marginbayes.structure.dependency import DependencyAnalysis
from marginbayes.structure.exact.learner import ExactMargin
from marginbayes.structure.exact.score import ExactScore
from marginbayes.structure.greedy import Greedy, SuperParent
from marginbayes.structure.kdb import KDB
from marginbayes.structure.localsearch import LocalSearch
from marginbayes.structure.orderbased import OrderBased
from marginbayes.structure.wrappers import BackwardJoin, ForwardJoin, SelectiveNaiveBayes

__all__ = ["STRUCTURE_NAMES", "named_structure"]

ORDERS = {"omi": "mi", "omisp": "mi_sp", "ocr": "cr", "ro": "random"}
SCORES = ("cr", "cl", "sm", "sbm")
DECOMPOSABLE, MARGINS = ("mdl", "bic", "aic", "bdeu"), ("sm", "sbm")
PLAIN: dict[str, type[StructureLearner]] = {
    "nb": NaiveBayes,
    "tan": ChowLiuTAN,
    "snb": SelectiveNaiveBayes,
    "fssj": ForwardJoin,
    "bsej": BackwardJoin,
    "dependency": DependencyAnalysis,
}
STRUCTURE_NAMES = (
    *PLAIN,
    "kdb2",
    *(f"exact-{score}" for score in (*DECOMPOSABLE, *MARGINS)),
    *(f"{tree}-{score}" for tree in ("tan", "2tree") for score in SCORES),
    *(f"{tree}-superparent" for tree in ("tan", "2tree")),
    *(f"{tree}-{order}-{score}" for tree in ("tan", "2tree") for order in ORDERS for score in ("cr", "cl")),
    *(f"{tree}-{score}-search" for tree in ("tan", "2tree") for score in SCORES),
)
PATTERN = r"(?:tan|([1-9]\d*)tree)-(?:(omi|omisp|ocr|ro)-)?(cr|cl|sm|sbm|superparent)(-search)?"


def named_structure(
    name: str, random_state: int | None = None, smoothing: float = 1.0, n_jobs: int | None = None
) -> StructureLearner:
    """The learner of a short name: "nb", "tan", "kdb2", "tan-cr", "2tree-omi-cr", "tan-sm-search" and so on.

    ``tan`` in front means one feature parent, ``2tree`` two, ``3tree`` three; then comes a score (greedy edge adding),
    an order and a score, ``superparent``, or a score and ``search`` (iterated local search). Without such a front:
    selective naive Bayes (``snb``), k-dependence Bayes (``kdb2``), Pazzani's joins (``fssj``, ``bsej``), and ``exact-``
    with a score for the structure that is proved to have the best one. What is searched for, or proved, is about tables
    with this smoothing. What a learner does not take is left out.
    """
    learner = _named(name)
    wanted: dict[str, Any] = {"smoothing": smoothing, "n_jobs": n_jobs}
    if random_state is not None:
        wanted["random_state"] = random_state
    taken = learner.get_params(deep=False)
    found: StructureLearner = learner.set_params(**{k: v for k, v in wanted.items() if k in taken})
    return found


def _named(name: str) -> StructureLearner:
    if name in PLAIN:
        return PLAIN[name]()
    if match := re.fullmatch(r"kdb([1-9]\d*)", str(name)):
        return KDB(int(match[1]))
    if match := re.fullmatch(r"exact-(mdl|bic|aic|bdeu)", str(name)):
        return ExactScore(match[1])
    if match := re.fullmatch(r"exact-(sm|sbm)", str(name)):
        return ExactMargin(match[1])
    match = re.fullmatch(PATTERN, str(name))
    if match is None or (match[3] == "superparent" and (match[2] or match[4])) or (match[2] and match[4]):
        raise ValueError(
            f"structure={name!r} is not known; say for instance 'nb', 'tan', 'tan-cr' or '2tree-omi-cr', "
            "or give a Dag or a StructureLearner"
        )
    k, order, score = int(match[1] or 1), match[2], match[3]
    if score == "superparent":
        return SuperParent(k=k)
    if match[4]:
        return LocalSearch(score, k=k)
    if order is None:
        return Greedy(score, k)
    return OrderBased(ORDERS[order], score, k)
