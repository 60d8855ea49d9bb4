"""Short names of structure learners."""

from __future__ import annotations

import re

from marginbayes.structure.base import StructureLearner
from marginbayes.structure.classic import ChowLiuTAN, NaiveBayes
from marginbayes.structure.greedy import Greedy, SuperParent
from marginbayes.structure.orderbased import OrderBased

__all__ = ["STRUCTURE_NAMES", "named_structure"]

ORDERS = {"omi": "mi", "omisp": "mi_sp", "ocr": "cr", "ro": "random"}
SCORES = ("cr", "cl", "sm", "sbm")
STRUCTURE_NAMES = (
    "nb",
    "tan",
    *(f"{tree}-{score}" for tree in ("tan", "2tree") for score in SCORES),
    *(f"{tree}-superparent" for tree in ("tan", "2tree")),
    *(f"{tree}-{order}-{score}" for tree in ("tan", "2tree") for order in ORDERS for score in ("cr", "cl")),
)


def named_structure(name: str, random_state: int | None = None) -> StructureLearner:
    """The learner of a short name: "nb", "tan", "tan-cr", "2tree-omi-cr", "3tree-superparent" and so on.

    ``tan`` in front means one feature parent, ``2tree`` two, ``3tree`` three; then comes a score (greedy edge adding),
    or an order and a score, or ``superparent``.
    """
    if name == "nb":
        return NaiveBayes()
    if name == "tan":
        return ChowLiuTAN()
    match = re.fullmatch(r"(?:tan|([1-9]\d*)tree)-(?:(omi|omisp|ocr|ro)-)?(cr|cl|sm|sbm|superparent)", str(name))
    if match is None or (match[2] and match[3] == "superparent"):
        raise ValueError(
            f"structure={name!r} is not known; say for instance {', '.join(map(repr, STRUCTURE_NAMES[:4]))} "
            "or '2tree-omi-cr', or give a Dag or a StructureLearner"
        )
    k, order, score = int(match[1] or 1), match[2], match[3]
    if score == "superparent":
        return SuperParent(k=k)
    if order is None:
        return Greedy(score, k)
    return OrderBased(ORDERS[order], score, k, random_state=random_state)
