from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from marginbayes import BayesNetClassifier, datasets
from marginbayes.parameters import MarginHybrid
from marginbayes.structure import ExactMargin
from marginbayes.verification import read_document, verify_table


def columns(X: pd.DataFrame, y: pd.Series, target: str) -> dict[str, list[object]]:
    return {name: X[name].tolist() for name in X} | {target: y.tolist()}


def test_structure_and_parameters_are_written_with_all_that_a_check_needs(tmp_path: Path) -> None:
    data = datasets.load("iris")
    clf = BayesNetClassifier(ExactMargin("sm", p=0.9), MarginHybrid()).fit(data.X, data.y)
    written = clf.save_certificates(tmp_path / "proof.json")
    assert [path.name for path in written] == ["proof.json", "proof-parameters.json"]
    table = columns(data.X, data.y, clf.schema_.target.name)
    for path, certificate in written.items():
        report = verify_table(read_document(path), table)
        assert report.objective == pytest.approx(certificate.objective, rel=1e-9)
        assert report.bound == pytest.approx(certificate.bound, rel=1e-9)


def test_parameters_alone_get_the_name_that_was_given(tmp_path: Path) -> None:
    data = datasets.load("iris")
    clf = BayesNetClassifier("nb", MarginHybrid()).fit(data.X, data.y)
    written = clf.save_certificates(str(tmp_path / "proof.json"))
    assert list(written) == [tmp_path / "proof.json"]
    verify_table(read_document(tmp_path / "proof.json"), columns(data.X, data.y, clf.schema_.target.name))


def test_where_nothing_is_proved_nothing_is_written(tmp_path: Path) -> None:
    data = datasets.load("iris")
    clf = BayesNetClassifier("nb").fit(data.X, data.y)
    with pytest.raises(ValueError, match="come with a proof"):
        clf.save_certificates(tmp_path / "proof.json")
    assert not list(tmp_path.iterdir())
