"""`explain`: the numbers on the screen are those of the explanation, and sum to the log-odds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from marginbayes import BayesNetClassifier, Network, datasets
from tests.cli.conftest import Run

LINE = re.compile(r"^  (\S.*?) {2,}([+-]\d+\.\d\d) ")


def _weights(printed: str) -> dict[str, float]:
    found = (LINE.match(line) for line in printed.splitlines())
    return {match[1]: float(match[2]) for match in found if match}


def _classifier(model: Path) -> BayesNetClassifier:
    return BayesNetClassifier.from_network(Network.from_json(model))


@pytest.mark.parametrize("row", [1, 7, 240])
def test_weights_are_those_of_the_row(run: Run, model: Path, table: Path, row: int) -> None:
    printed = run("explain", model, table, "--row", row).stdout
    X = datasets.read_table(table).drop(columns="outcome")
    explanation = _classifier(model).explain(X.iloc[[row - 1]])
    weights = _weights(printed)
    assert weights["prior"] == pytest.approx(explanation.prior[0], abs=0.005)
    assert weights["log-odds"] == pytest.approx(explanation.log_odds[0], abs=0.005)
    shown = sorted(v for name, v in weights.items() if name not in ("prior", "log-odds"))
    present = [w for _, value, w in explanation.row(0) if value is not None]
    assert shown == pytest.approx(sorted(present), abs=0.005)
    assert "log-odds of well against sick" in printed


def test_the_classes_can_be_chosen_and_the_signs_turn(run: Run, model: Path, table: Path) -> None:
    one = _weights(run("explain", model, table, "--target", "sick").stdout)
    other = _weights(run("explain", model, table, "--against", "sick").stdout)
    assert one.keys() == other.keys()
    assert [one[k] for k in one] == pytest.approx([-other[k] for k in one])


def test_bars_point_to_the_side_of_their_sign_and_fit_the_width(run: Run, model: Path, table: Path) -> None:
    printed = run("explain", model, table, "--row", 3).stdout
    bars = [line for line in printed.splitlines() if "│" in line]
    assert bars
    for line in bars:
        left, right = line.split("│")
        sign = LINE.match(line)[2][0]  # type: ignore[index]
        assert ("█" in right) <= (sign == "+")
        assert ("█" in left) <= (sign == "-")
        assert len(line) <= 100
    assert any("█" in line for line in bars)


def test_what_the_table_says_is_told(run: Run, model: Path, table: Path) -> None:
    data = datasets.read_table(table)
    printed = run("explain", model, table, "--row", 5).stdout
    assert f"the table says {data['outcome'].iloc[4]}" in printed
    chance = _classifier(model).predict_proba(data.drop(columns="outcome").iloc[[4]])[0, 1]
    assert f"{100 * chance:.1f} % after" in printed


def test_missing_features_are_counted(run: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("age,code,flag,ward\n60,,,2\n")
    assert "2 features are missing and weigh nothing" in run("explain", model, path).stdout
    path.write_text("age,code,flag,ward\n60,007,,2\n")
    assert "1 feature is missing and weighs nothing" in run("explain", model, path).stdout


def test_the_rest_is_summed_when_few_are_asked_for(run: Run, table: Path, model: Path) -> None:
    row = int(datasets.read_table(table).notna().all(axis=1).to_numpy().argmax()) + 1
    weights = _weights(run("explain", model, table, "--row", row, "--max-features", 1).stdout)
    assert "3 other features" in weights
    assert "1 other feature" in _weights(run("explain", model, table, "--row", row, "--max-features", 3).stdout)
    parts = sum(v for name, v in weights.items() if name != "log-odds")
    assert parts == pytest.approx(weights["log-odds"], abs=0.03)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_chart_is_drawn(run: Run, model: Path, table: Path, tmp_path: Path, suffix: str, start: bytes) -> None:
    picture = tmp_path / f"row.{suffix}"
    assert f"drawn in {picture}" in run("explain", model, table, "--plot", picture).stdout
    assert picture.read_bytes().startswith(start)


def test_a_model_without_smoothing_can_be_explained(run: Run, tmp_path: Path) -> None:
    """A level never seen with a class makes a weight infinite."""
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text("x,z,y\n" + "a,p,0\nb,p,1\nb,q,0\nb,q,1\n" * 5)
    run("fit", path, "-t", "y", "-s", "nb", "--smoothing", 0, "-m", model)
    assert "-inf" in run("explain", model, path, "--row", 1).stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--row", "241"], "has 240 rows, so there is no row 241"),
        (["--row", "0"], "--row"),
        (["--target", "ill"], "--target 'ill' is not a class; the classes are 'sick', 'well'"),
        (["--target", "sick", "--against", "sick"], "the same class 'sick'"),
        (["--plot", "row.txt"], "should end in .png or .svg or .pdf"),
    ],
)
def test_impossible_wishes_get_a_sentence(fails: Run, model: Path, table: Path, options: list[str], words: str) -> None:
    assert words in fails("explain", model, table, *options)


def test_an_average_of_networks_cannot_be_explained(run: Run, fails: Run, table: Path, tmp_path: Path) -> None:
    run("fit", table, "-t", "outcome", "-s", "aode", "-m", tmp_path / "m.json")
    assert "not a sum over features" in fails("explain", tmp_path / "m.json", table)


def test_a_row_is_explained_as_it_is_predicted_whatever_else_is_in_the_table(run: Run, tmp_path: Path) -> None:
    path, model, new = tmp_path / "t.csv", tmp_path / "m.json", tmp_path / "new.csv"
    path.write_text("ok,x,y\n" + "TRUE,a,u\nFALSE,b,v\nTRUE,b,u\n" * 8)
    run("fit", path, "-t", "y", "-m", model)
    new.write_text("ok,x\nTrue,a\nfalse,b\n1,b\n")
    chances = run("predict", model, new, "--proba").stdout.splitlines()[1:]
    for row, line in enumerate(chances, 1):
        told = run("explain", model, new, "--row", row)
        assert f"{100 * float(line.split(',')[2]):.1f} % after" in told.stdout
        assert "1 of the 3 cells of 'ok', such as '1', is no level that the model knows" in told.stderr
    assert "ok = False" in run("explain", model, new, "--row", 2).stdout


@pytest.mark.parametrize(
    "name", ["x", "a rather long name of a measurement that was made", "\x1b[31mred\x1b[0m", "日本" * 6]
)
def test_bars_do_not_wrap_on_a_narrow_screen(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", "40")
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text(f"{name},z,y\n" + "a,c,u\nb,d,v\na,d,u\nb,c,v\n" * 12, encoding="utf-8")
    run("fit", path, "-t", "y", "-m", model)
    printed = run("explain", model, path).stdout
    lines = printed.splitlines()[1:-1]
    assert max(cell_len(line.rstrip()) for line in lines) <= 40
    assert sum("│" in line for line in lines) == 4  # the prior, two features, and the sum, each a whole bar
    assert sum("█" in line for line in lines) == sum("█" in line for line in lines if "│" in line)
