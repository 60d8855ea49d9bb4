"""Bad input: exit code 2, one line on stderr, nothing on stdout, whatever is wrong and whoever notices."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from marginbayes import Network
from marginbayes.cli.errors import sentence
from tests.cli.conftest import Run

GARBAGE = np.random.default_rng(0).bytes(4000)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.arff", "t.parquet", "t.csv.gz", "t.arff.gz"])
@pytest.mark.parametrize("content", [b"", GARBAGE, b"\x00" * 300], ids=["empty", "garbage", "zeros"])
def test_a_damaged_table_is_named(fails: Run, tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert name in fails("fit", path, "--target", "y")


@pytest.mark.parametrize("name", ["m.json", "m.bif", "m.xmlbif", "m.xml"])
@pytest.mark.parametrize("content", [b"", GARBAGE, b"{}", b"[1, 2", b"<x/>"])
@pytest.mark.parametrize("command", ["predict", "explain", "show", "convert"])
def test_a_damaged_model_is_named(
    fails: Run, table: Path, tmp_path: Path, name: str, content: bytes, command: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    more = {"predict": [table], "explain": [table], "show": [], "convert": [tmp_path / "out.json"]}[command]
    assert name in fails(command, path, *more)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("structure", ["tan", "aode"])
def test_a_truncated_model_is_named(
    run: Run, fails: Run, table: Path, tmp_path: Path, share: float, structure: str
) -> None:
    path = tmp_path / "m.json"
    run("fit", table, "-t", "outcome", "-s", structure, "-m", path)
    text = path.read_text("utf-8")
    path.write_text(text[: int(share * len(text))], "utf-8")
    assert "m.json" in fails("predict", path, table)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "nowhere.csv", "-t", "y"], "there is no file nowhere.csv"),
        (["fit", "some/where", "-t", "y"], "there is no file some/where"),
        (["fit", ".", "-t", "y"], ". is a folder"),
        (["fit", "irs"], "there is no file irs, and there is no data set 'irs'; did you mean 'iris'"),
        (["fit", "TABLE"], "say with --target which column"),
        (["fit", "TABLE", "-t", "outcom"], "has no column 'outcom'; did you mean 'outcome'?"),
        (["fit", "TABLE", "-t", "age"], "the target 'age' holds numbers such as"),
        (["fit", "TABLE", "-t", "outcome", "--jobs", "0"], "--jobs 0 leaves nobody to do the work"),
        (["fit", "TABLE", "-t", "outcome", "--drop", "xyz"], "has no column 'xyz'"),
        (["fit", "TABLE", "-t", "outcome", "--categorical", "xyz"], "has no column 'xyz'"),
        (["fit", "TABLE", "-t", "outcome", "--weight", "code"], "in 'code'; weights are numbers"),
        (["fit", "TABLE", "-t", "outcome", "--weight", "flag"], "has no weight in 'flag'"),
        (["fit", "TABLE", "-t", "outcome", "--separator", ";"], "seems to be separated by ',', not ';'"),
        (["fit", "TABLE", "-t", "outcome", "--encoding", "klingon"], "there is no encoding 'klingon'"),
        (["fit", "TABLE", "-t", "outcome", "--encoding", "utf-16"], "not utf-16 text"),
        (["fit", "TABLE", "-t", "outcome", "--encoding", "base64"], "there is no encoding 'base64'"),
        (["fit", "TABLE", "-t", "outcome", "-m", "m.pkl"], "should end in .json"),
        (["fit", "TABLE", "-t", "outcome", "-m", "no/m.json"], "there is no folder"),
        (["fit", "TABLE", "-t", "outcome", "--sequence", "outcome"], "'outcome' is the target; it cannot say which"),
        (
            ["evaluate", "TABLE", "-t", "outcome", "--sequence", "ward", "--drop", "ward"],
            "'ward' is left out by --drop; it cannot say which sequence a row belongs to",
        ),
        (
            ["fit", "TABLE", "-t", "outcome", "-s", "exact-sm", "--checkpoint", "TABLE"],
            "is no checkpoint of this program",
        ),
        (
            ["fit", "TABLE", "-t", "outcome", "-s", "exact-sm", "--set", "structure.k=2", "--checkpoint", "c.npz"],
            "checkpoint='c.npz' is not for k=2",
        ),
        (["fit", "TABLE", "-t", "outcome", "-s", "exact-sm", "--checkpoint", "no/c.npz"], "there is no folder"),
        (
            ["fit", "TABLE", "-t", "outcome", "-m", "x.json", "--certificate", "./x.json"],
            "--model and --certificate are both x.json; name two files",
        ),
        (
            ["fit", "TABLE", "-t", "outcome", "-s", "exact-sm", "-m", "x-parameters.json", "--certificate", "x.json"],
            "--model and --certificate are both x-parameters.json; name two files",
        ),
        (
            ["fit", "TABLE", "-t", "outcome", "-s", "exact-sm", "-m", "x.json", "--checkpoint", "x.json"],
            "--model and --checkpoint are both x.json",
        ),
        (["fit", "TABLE", "-t", "outcome", "--smoothing", "-1"], "--smoothing"),
        (["fit", "TABLE", "-t", "outcome", "--smoothing", "much"], "--smoothing"),
        (["fit", "TABLE", "-t", "outcome", "-s", "forest"], "--structure 'forest' is not known; say nb, tan, aode"),
        (["fit", "TABLE", "-t"], "requires an argument"),
        (["fit"], "missing argument 'DATA'"),
        (["fit", "TABLE", "--frobnicate"], "no such option: --frobnicate"),
        (["frobnicate"], "no such command 'frobnicate'"),
        (["--frobnicate"], "no such option: --frobnicate"),
        (["predict", "nowhere.json", "TABLE"], "there is no file nowhere.json"),
        (["predict", ".", "TABLE"], ". is a folder"),
        (["predict", "TABLE", "TABLE"], "cannot tell the format of"),
        (["show", "nowhere.json"], "there is no file nowhere.json"),
        (["data", "where"], "missing argument 'NAME'"),
    ],
)
def test_a_slip_gets_the_sentence_that_helps(fails: Run, table: Path, words: list[str], said: str) -> None:
    assert said in fails(*(str(table) if word == "TABLE" else word for word in words))


def test_a_table_without_rows_or_labels_is_named(fails: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n")
    assert "t.csv has no rows" in fails("fit", path, "-t", "y")
    path.write_text("x,y\n1,\n2,\n")
    assert "no row of" in fails("fit", path, "-t", "y")


def test_rows_of_another_length_are_named(fails: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,2\n1,2,3\n")
    assert "line 3: 3 cells, but the header names 2 columns" in fails("fit", path, "-t", "y")


def test_a_file_that_may_not_be_read_is_named(fails: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marginbayes import datasets

    def refused(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(datasets, "read_table", refused)
    assert fails("fit", table, "-t", "outcome") == f"Permission denied: {table}"


def test_a_failed_command_leaves_the_old_model_alone(fails: Run, model: Path, table: Path) -> None:
    before = model.read_bytes()
    fails("fit", table, "-t", "nothing", "-m", model)
    assert model.read_bytes() == before


def test_debug_shows_where_the_error_came_from(run: Run) -> None:
    result = run("--debug", "fit", "nowhere.csv", code=1)
    assert isinstance(result.exception, FileNotFoundError)


def test_an_interrupt_ends_with_130_and_a_sentence(run: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marginbayes import datasets

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "read_table", interrupted)
    result = run("fit", table, "-t", "outcome", code=130)
    assert result.stderr == "Error: interrupted; no file is left half-written\n"


def test_a_mistake_of_ours_keeps_its_traceback(run: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marginbayes import datasets

    def mistaken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(datasets, "read_table", mistaken)
    assert isinstance(run("fit", table, "-t", "outcome", code=1).exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("two\nlines  here"), "two lines here"),
        (KeyError("no column 'x'"), "no column 'x'"),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), "there is no file x.csv"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"), "this needs pyarrow: pip install"),
        (
            ModuleNotFoundError("No module named 'marginbayes.x'", name="marginbayes.x"),
            "the installation is damaged: marginbayes.x is missing; pip install --force-reinstall marginbayes",
        ),
        (MemoryError(), "there is not enough memory"),
        (ValueError(), "ValueError"),
        (ValueError("\x1b[2J"), "\\x1b[2J"),
    ],
)
def test_what_an_exception_says_is_one_printable_line(error: Exception, said: str) -> None:
    assert sentence(error).startswith(said)


def test_a_semicolon_file_is_told_from_an_empty_one_and_a_quoted_one_too(fails: Run, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    cells = [("age", "y"), *((30 + i, "ab"[i % 2]) for i in range(20))]
    for quote in ("", '"'):
        path.write_text("".join(f"{quote}{a}{quote};{quote}{b}{quote}\n" for a, b in cells))
        assert "seems to be separated by ';', not ',': say so by the separator (--separator ';')" in fails(
            "fit", path, "-t", "y"
        )
        run("fit", path, "-t", "y", "--separator", ";")
    path.write_text("\n\n" + "".join(f"{a},{b}\n" for a, b in cells))
    run("fit", path, "-t", "y")


def test_numbers_that_a_few_texts_or_a_comma_make_categories_are_noted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{i}.5;{i},25;{'<0.5' if i % 10 == 0 else i / 7:};{'ab'[i % 2]}\n" for i in range(40)]
    path.write_text("plain;comma;censored;y\n" + "".join(rows))
    said = run("fit", path, "-t", "y", "--separator", ";").stderr
    assert "'censored' is taken for a category because 4 of its 40 cells, such as '<0.5', are no numbers" in said
    assert "'comma' is taken for a category because its numbers, such as '0,25', have a comma; read it" in said
    assert "; read it with --decimal , or write a point for it, and it is cut like a number" in said
    assert "'plain'" not in said
    shown = run("fit", path, "-t", "y", "--separator", ";", "--decimal", ",", "--drop", "plain").stdout
    assert any(line.split()[:2] == ["comma", "number"] for line in shown.splitlines())


def test_test_labels_of_another_type_are_refused_in_a_sentence(fails: Run, tmp_path: Path) -> None:
    numbers, words, mixed = (tmp_path / f"{name}.csv" for name in ("numbers", "words", "mixed"))
    for path, labels in ((numbers, (0, 1)), (words, ("no", "yes")), (mixed, (0, "yes"))):
        path.write_text("a,y\n" + "".join(f"{i % 3},{labels[i % 2]}\n" for i in range(30)))
    assert "the label 'no' of the test rows is no class; the classes are '0', '1'" in fails(
        "evaluate", numbers, "-t", "y", "--test", words
    )
    assert "the label 'yes' of the test rows is no class" in fails("evaluate", numbers, "-t", "y", "--test", mixed)
    assert f"no label of {numbers} (0, 1) is a class of {words} (no, yes)" in fails(
        "evaluate", words, "-t", "y", "--test", numbers
    )


def test_a_bad_weight_is_named_by_its_row_in_the_file(fails: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,w,y\n1,1,\n2,1,\n3,1,u\n4,1,v\n5,1,u\n6,-3,v\n")
    assert fails("fit", path, "-t", "y", "--weight", "w").startswith("row 6 has the weight '-3' in 'w'")


def test_a_certificate_of_sequences_is_refused_before_anything_is_learned(fails: Run, tmp_path: Path) -> None:
    path, model = tmp_path / "s.csv", tmp_path / "m.json"
    path.write_text("id,x,y\n" + "".join(f"{i // 4},{'ab'[i % 2]},{'uv'[i % 2]}\n" for i in range(40)))
    words = ("fit", path, "-t", "y", "--sequence", "id", "-m", model, "--certificate", tmp_path / "c.json")
    said = fails(*words)
    assert "--sequence with --parameters ml comes without a proof" in said
    assert said.endswith("choose --parameters mm-hybrid, mm-convex, m3n")
    assert not model.exists()


def test_a_checkpoint_is_for_margins_alone(fails: Run, table: Path, tmp_path: Path) -> None:
    words = ("fit", table, "-t", "outcome", "-s", "exact-mdl", "--checkpoint", tmp_path / "c.npz")
    assert fails(*words) == "--checkpoint is not for --structure exact-mdl; it is for exact-sm and exact-sbm"


def test_a_pipe_is_no_table(fails: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is no ordinary file, and a table is read twice" in fails("fit", tmp_path / "pipe.csv", "-t", "y")


def test_what_cannot_be_written_is_known_before_anything_is_learned(
    fails: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shut"
    folder.mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder and may(path, mode))
    for command, *words in (
        ["fit", "-m", folder / "m.json"],
        ["evaluate", "--json", folder / "e.json"],
        ["evaluate", "--plot", folder / "plots"],
    ):
        assert "nothing can be written to the folder" in fails(command, table, "-t", "outcome", *words)


@pytest.mark.parametrize("ending", ["parquet", "tsv", "csv.gz"])
def test_predictions_are_not_written_under_a_name_that_promises_something_else(
    fails: Run, model: Path, table: Path, tmp_path: Path, ending: str
) -> None:
    assert "predictions are written as CSV" in fails("predict", model, table, "-o", tmp_path / f"a.{ending}")


def test_numbers_that_are_text_are_noted_with_what_keeps_them_so(run: Run, tmp_path: Path) -> None:
    numbers = 1000.5 + np.arange(180) % 60 * 13.25
    for name, cells, said in (
        ("thousands.csv", [f'"{x:,.2f}"' for x in numbers], "have commas between thousands"),
        ("small.csv", [f'"{x:,}"' for x in range(500, 20_000, 650)], "have commas between thousands"),
        ("points.csv", [f"{x:.2f}" for x in numbers], "such as '1000.50', have a point; write a comma for it, and it"),
        ("groups.csv", [f"{x:,}".replace(",", ".") for x in range(500, 20_000, 650)], "points between thousands; take"),
    ):
        path = tmp_path / name
        path.write_text("a,y\n" + "".join(f"{x},{'uv'[i % 2]}\n" for i, x in enumerate(cells)))
        words = ["--decimal", ",", "--separator", ";"] if name in ("points.csv", "groups.csv") else []
        if words:
            path.write_text(path.read_text().replace(",", ";"))
        assert said in run("fit", path, "-t", "y", "-s", "nb", *words).stderr.replace("\n", " ")


def test_a_column_of_which_the_model_knows_no_cell_is_noted(run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    frame = pd.read_csv(table, dtype={"code": str})
    frame.assign(code=[4, 5, 6] * (len(frame) // 3)).to_csv(path, index=False)
    said = run("predict", model, path).stderr.replace("\n", " ")
    assert "no cell of 'code', such as '4', is a level that the model knows" in said


def test_the_target_is_not_dropped_and_standard_input_is_no_file(fails: Run, table: Path) -> None:
    assert "'outcome' is the target; it cannot be dropped too" in fails(
        "fit", table, "-t", "outcome", "--drop", "outcome"
    )
    assert "not from standard input" in fails("fit", "-", "-t", "outcome")


def test_cells_that_the_model_does_not_know_are_counted_column_by_column(run: Run, model: Path, table: Path) -> None:
    frame = pd.read_csv(table, dtype={"code": str})
    frame.loc[[1, 5], "code"] = "Z9"
    frame.to_csv(table, index=False)
    count = frame["code"].notna().sum()
    said = run("predict", model, table).stderr.replace("\n", " ")
    assert f"2 of the {count} cells of 'code', such as 'Z9', are no level that the model knows, such as '007'" in said


def test_a_tab_may_be_typed_as_a_backslash_and_a_t(run: Run, fails: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age\ty\n" + "".join(f"{30 + i}\t{'ab'[i % 2]}\n" for i in range(20)))
    assert fails("fit", path, "-t", "y").endswith("(--separator '\\t')")
    assert "20 rows, 1 feature, 2 classes" in run("fit", path, "-t", "y", "--separator", "\\t").stdout


@pytest.mark.parametrize(("first", "second", "number"), [("007", "008", "7"), ("1E5", "2E5", "100000")])
def test_codes_that_look_like_numbers_are_noted_and_kept_as_written_if_categorical(
    run: Run, tmp_path: Path, first: str, second: str, number: str
) -> None:
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text("a code,x,y\n" + f"{first},1,u\n{second},2,v\n,1,u\n" * 10)
    said = run("fit", path, "-t", "y").stderr
    assert f"'a code' is read as numbers, so that '{first}' is {number}" in said
    assert "--categorical 'a code' keeps them" in said
    assert "'x' is read" not in said
    told = run("fit", path, "-t", "y", "--categorical", "a code", "--categorical", "x", "-m", model)
    assert told.stderr == ""
    levels = {v.name: v.levels for v in Network.from_json(model).schema.variables}
    assert levels == {"y": ("u", "v"), "a code": (first, second), "x": (1, 2)}
    assert run("predict", model, path).stdout.split()[1:3] == ["u", "v"]
    assert "accuracy" in run("evaluate", path, "-t", "y", "--categorical", "a code", "--test", path).stdout


def test_codes_are_noted_where_they_are_labels_and_not_where_they_name_sequences(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\n" + "".join(f"0{i // 4},{'ab'[i % 2]},0{i % 2}\n" for i in range(40)))
    said = run("fit", path, "-t", "y", "--sequence", "id").stderr
    assert said == (
        "Note: the class 'y' is read as numbers, so that '00' is 0 in all answers; put a letter in front of its labels "
        "if they are codes\n"
    )


def test_whole_numbers_that_a_hole_makes_floats_are_no_codes(run: Run, tmp_path: Path) -> None:
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text("ward,y\n" + "1.0,u\n2.0,v\n,u\n3.0,v\n" * 10)
    assert run("fit", path, "-t", "y", "--categorical", "ward", "-m", model).stderr == ""
    assert Network.from_json(model).schema["ward"].levels == (1, 2, 3)


def test_a_level_with_a_comma_does_not_look_like_two(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('x,y\n"a, b",u\nc,v\n' * 1 + '"a, b",u\nc,v\n' * 10)
    assert "'a, b', c" in run("fit", path, "-t", "y").stdout


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_is_doubted_once_with_a_remedy_that_the_file_allows(run: Run, tmp_path: Path, ending: str) -> None:
    path, n = tmp_path / f"t.{ending}", 60
    frame = pd.DataFrame(
        {
            "zip": [f"{1067 + i % 6:05d}" for i in range(n)],
            "comma": [f"{i % 9},5" for i in range(n)],
            "crp": ["<0.5", *(f"{i % 30 / 7}" for i in range(1, n))],
            "y": ["u", "v"] * (n // 2),
        }
    )
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    for command in ("fit", "evaluate"):
        said = run(command, path, "-t", "y", "-s", "nb", "--categorical", "zip").stderr
        assert "'zip'" not in said
        assert said.count("'crp' is taken for a category because 1 of its 60 cells, such as '<0.5', is no number") == 1
        assert said.count("taken for a category") == 2
        assert ("--decimal" in said) == (ending == "csv")
        assert "--categorical crp says so" in said
    meant = run("fit", path, "-t", "y", "--categorical", "crp", "--categorical", "comma", "--categorical", "zip").stderr
    assert "taken for a category" not in meant
    assert "convert" not in run("fit", path, "-t", "y").stderr


def test_whole_numbers_that_are_text_in_a_typed_file_are_noted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"age": [f"{20 + i % 9}" for i in range(40)], "y": ["u", "v"] * 20}).to_parquet(path)
    assert "'age' is taken for a category because its numbers, such as '20', are text; convert" in (
        run("fit", path, "-t", "y").stderr
    )


def test_a_column_of_lists_is_refused_by_its_name(fails: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"t": [[1, 2]] * 8, "y": ["u", "v"] * 4}).to_parquet(path)
    for command in ("fit", "evaluate"):
        assert fails(command, path, "-t", "y").startswith("column 't' holds array([1, 2])")


def test_infinity_is_named_by_its_row_in_the_file(fails: Run, run: Run, tmp_path: Path) -> None:
    path, whole, model = tmp_path / "t.csv", tmp_path / "whole.csv", tmp_path / "m.json"
    data = pd.DataFrame({"a": np.arange(60) % 7 / 2, "y": ["u", "v"] * 30})
    data.to_csv(whole, index=False)
    run("fit", whole, "-t", "y", "-s", "nb", "--model", model)
    data.loc[:9, "y"] = None  # which are left out
    data.assign(a=data["a"].where(data.index != 40, np.inf)).to_csv(path, index=False)
    for words in (
        ("fit", path, "-t", "y"),
        ("evaluate", path, "-t", "y"),
        ("evaluate", whole, "-t", "y", "--test", path),
        ("predict", model, path),
    ):
        said = "row 41 has infinity, or a number too large to tell from it, in 'a'; write a number, or leave the cell"
        assert said in fails(*words)


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            ["10,0", "0,5"],
            "its numbers, such as '0,5', have a comma (the first in row 3 of {}); read it with --decimal ,",
        ),
        (
            ["<0.5", "<0.5"],
            "2 of its 60 cells, such as '<0.5', are no numbers (the first in row 3 of {}); write a number",
        ),
        (["lost", "2.5"], "1 of its 60 cells, such as 'lost', is no number (the first in row 3 of {}); mend it"),
    ],
)
def test_texts_where_a_model_knows_numbers_are_refused_with_a_remedy_of_the_command_line(
    fails: Run, run: Run, tmp_path: Path, cells: list[str], told: str
) -> None:
    path, whole, model = tmp_path / "t.csv", tmp_path / "whole.csv", tmp_path / "m.json"
    numbers = [f"{i % 7}" for i in range(60)]
    pd.DataFrame({"a": [f"{x}.5" for x in numbers], "y": ["u", "v"] * 30}).to_csv(whole, index=False)
    pd.DataFrame({"a": [*numbers[:2], *cells, *numbers[4:]], "y": ["u", "v"] * 30}).to_csv(path, index=False)
    run("fit", whole, "-t", "y", "-s", "nb", "--model", model)
    for words in (("predict", model, path), ("explain", model, path), ("evaluate", whole, "-t", "y", "--test", path)):
        assert f"'a' was learned as a number, but {told.format(path)}" in fails(*words)


def test_an_identifier_is_noted_once_with_the_rows_of_the_table(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    data = pd.DataFrame({"id": [f"P{i}" for i in range(120)], "ward": np.arange(120), "x": np.arange(120) / 7})
    data.assign(y=["u", "v"] * 60).to_csv(path, index=False)
    told = "Note: {!r} has 120 different values in 120 rows, like an identifier; leave it out if it is one\n"
    cuts = "Note: 'x' has 120 different values in 120 rows, each number a level of its own; let a discretizer"
    for command in ("fit", "evaluate"):
        words = (command, path, "-t", "y", "-s", "nb", "--categorical", "ward")
        assert run(*words).stderr == told.format("id") + told.format("ward")
        said = run(*words, "--discretizer", "none").stderr
        assert said.startswith(told.format("id") + told.format("ward") + cuts)
        assert said.count("\n") == 3


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_a_categorical_column_that_is_no_feature_is_refused_by_what_it_is(
    fails: Run, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("code,w,a,outcome\n" + "".join(f"c{i % 3},1,{i % 4},{'uv'[i % 2]}\n" for i in range(30)))
    words = (command, path, "-t", "outcome", "--drop", "code", "--weight", "w", "--categorical")
    assert fails(*words, "outcome") == "'outcome' is the target; --categorical is for features"
    assert fails(*words, "code") == "'code' is left out by --drop; --categorical is for features"
    assert fails(*words, "w") == "'w' has the weights; --categorical is for features"
