"""`convert`: the same network in every format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marginbayes import Network
from tests.cli.conftest import Run


@pytest.mark.parametrize("middle", ["bif", "xmlbif", "xml", "json"])
def test_there_and_back_is_the_same_model(run: Run, model: Path, table: Path, tmp_path: Path, middle: str) -> None:
    there, back = tmp_path / f"there.{middle}", tmp_path / "back.json"
    assert "5 variables" in run("convert", model, there).stdout
    run("convert", there, back)
    first, last = Network.from_json(model), Network.from_json(back)
    assert (first.schema, first.dag) == (last.schema, last.dag)
    for a, b in zip(first.tables, last.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert run("predict", there, table).stdout == run("predict", model, table).stdout


def test_the_class_of_a_foreign_file_can_be_named(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "n.bif", tmp_path / "n.json"
    path.write_text(
        "network n { }\n"
        "variable rain { type discrete [ 2 ] { no, yes }; }\n"
        "variable wet { type discrete [ 2 ] { no, yes }; }\n"
        "probability ( rain ) { table 0.8, 0.2; }\n"
        "probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.2, 0.8; }\n"
    )
    run("convert", path, out)
    assert Network.from_json(out).schema.target.name == "rain"
    assert "class 'wet'" in run("convert", path, out, "--target", "wet").stdout
    assert Network.from_json(out).schema.target.name == "wet"


def test_impossible_wishes_get_a_sentence(fails: Run, run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    assert "should end in .json or .bif" in fails("convert", model, tmp_path / "n.txt")
    assert "cannot tell the format" in fails("convert", table, tmp_path / "n.bif")
    assert "--target is for .bif" in fails("convert", model, tmp_path / "n.bif", "--target", "age")
    run("convert", model, tmp_path / "n.bif")
    assert "no variable 'nope'" in fails("convert", tmp_path / "n.bif", tmp_path / "x.json", "--target", "nope")
    assert "there is no folder" in fails("convert", model, tmp_path / "nowhere" / "n.bif")
    run("fit", table, "-t", "outcome", "-s", "aode", "-m", tmp_path / "a.json")
    assert "AODE model" in fails("convert", tmp_path / "a.json", tmp_path / "a.bif")
