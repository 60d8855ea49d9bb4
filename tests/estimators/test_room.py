from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from marginbayes import AODEClassifier, BayesNetClassifier
from marginbayes.estimators import room
from marginbayes.structure import KDB, ChowLiuTAN, DependencyAnalysis

ADVICE = r"'code' has 12 levels; leave it out if it is an identifier, else merge its levels, or use naive Bayes"


@pytest.fixture
def table() -> pd.DataFrame:
    places = np.arange(60)
    return pd.DataFrame({"code": [f"c{i % 12}" for i in places], "b": [f"b{i % 5}" for i in places]})


@pytest.mark.parametrize("structure", [ChowLiuTAN, KDB, DependencyAnalysis])
def test_tables_of_two_columns_are_refused_before_they_are_counted(
    structure: type, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = np.arange(60) % 3 > 0
    monkeypatch.setattr(room, "MOST_CELLS", 2 * 12 * 5)
    BayesNetClassifier(structure()).fit(table, y)
    monkeypatch.setattr(room, "MOST_CELLS", 2 * 12 * 5 - 1)
    monkeypatch.setattr(structure, "learn", lambda *_: pytest.fail("it was learned all the same"))
    with pytest.raises(ValueError, match=r"the tables would have 1.2e\+02 cells, because " + ADVICE):
        BayesNetClassifier(structure()).fit(table, y)


def test_all_pairs_of_levels_are_refused_before_they_are_counted(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = np.arange(60) % 3 > 0
    monkeypatch.setattr(room, "MOST_CELLS", 2 * 17**2)
    AODEClassifier().fit(table, y)
    stream = BayesNetClassifier("tan").partial_fit(table, y)
    monkeypatch.setattr(room, "MOST_CELLS", 2 * 17**2 - 1)
    for call in (
        AODEClassifier().fit,
        AODEClassifier().partial_fit,
        stream.partial_fit,
        BayesNetClassifier("tan").partial_fit,
    ):
        with pytest.raises(ValueError, match=ADVICE):
            call(table, y)
    BayesNetClassifier("nb").partial_fit(table, y)
