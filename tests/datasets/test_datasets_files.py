"""CSV, TSV, Parquet and ARFF files."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import arff as scipy_arff

pd = pytest.importorskip("pandas", reason="tables are pandas frames")
pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")

from marginbayes.datasets import read_table  # noqa: E402
from marginbayes.datasets.arff import parse_arff  # noqa: E402

FRAME = pd.DataFrame(
    {
        "age": [31, 45, 52],
        "weight": [70.5, None, 81.25],
        "blood group": ["A", np.nan, "None"],
        "smokes": [True, False, True],
    }
)


def arff(text: str) -> Any:
    return parse_arff(io.StringIO(text), "toy.arff")


# -- delimited text


@pytest.mark.parametrize(
    ("name", "separator"), [("t.csv", ","), ("t.csv.gz", ","), ("t.tsv", "\t"), ("T.CSV", ","), ("T.CSV.GZ", ",")]
)
def test_delimited_text_round_trips(tmp_path: Path, name: str, separator: str) -> None:
    packing = "gzip" if name.lower().endswith(".gz") else None
    FRAME.to_csv(tmp_path / name, sep=separator, index=False, compression=packing)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), FRAME)


def test_the_usual_marks_of_a_missing_cell_are_missing_and_the_word_none_is_not(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n?,NA\n,\n4,None\n", encoding="utf-8")
    frame = read_table(path)
    assert frame["a"].isna().tolist() == [False, True, True, False]
    assert frame["b"].isna().tolist() == [False, True, True, False]
    assert frame["b"][3] == "None"
    assert read_table(path, missing=[""])["a"].tolist()[:2] == ["1", "?"]


def test_a_true_false_column_with_holes_stays_boolean(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\nTrue,1\n,2\nFalse,3\n", encoding="utf-8")
    column = read_table(path)["a"]
    assert str(column.dtype) == "boolean"
    assert column.isna().tolist() == [False, True, False]


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    assert list(read_table(path)) == ["a", "b"]


def test_quoted_cells_may_hold_separators_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"x, y","two\nlines"\nz,w\n', encoding="utf-8")
    assert read_table(path)["a"].tolist() == ["x, y", "z"]


def test_another_encoding_or_separator_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;b\n1;2\n".encode("latin-1"))
    assert list(read_table(path, encoding="latin-1", separator=";")) == ["größe", "b"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a,b\n1,2\n3\n", r"t\.csv, line 3: 1 cells, but the header names 2 columns"),
        ("a,b\n1,2,3\n", r"t\.csv, line 2: 3 cells"),
        ("\n\na,b\n1,2\n1,2,3\n", r"t\.csv, line 5: 3 cells"),
        (f"a,b\n1,{'x' * 200_000}\n", r"t\.csv, line 2: field larger .* leave out a column"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        (",a\n0,1\n", "column 1 has no name"),
        ("", r"t\.csv is empty"),
        ("a;b\n1;2\n", "seems to be separated by ';'"),
        ("a\tb\n1\t2\n", r"seems to be separated by a tab, not ','.*--separator '.t'"),
        ('a,b\n"open,2\n', r"t\.csv, line 2: "),
    ],
)
def test_a_bad_delimited_file_is_one_sentence_with_its_line(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=match) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"separator": ";"}, "seems to be separated by ',', not ';'"),
        ({"separator": ";;"}, "the separator ';;' .* must be one character"),
        ({"separator": ""}, "the separator '' .* must be one character"),
        ({"decimal": "x"}, "the decimal point 'x' .* must be '.' or ','"),
        ({"decimal": ","}, "and not the separator ','"),
    ],
)
def test_a_file_is_not_read_by_rules_that_make_no_sense(tmp_path: Path, options: dict[str, str], match: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=match):
        read_table(path, **options)


def test_text_in_an_unnamed_encoding_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a\ngröße\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"t\.csv is not utf-8 text \(byte 4\): name its encoding"):
        read_table(path)


def test_an_absent_file_and_an_unknown_ending_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent\.csv"):
        read_table(tmp_path / "absent.csv")
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(ValueError, match=r"cannot tell the format of .*t\.xlsx: its name should end in \.csv"):
        read_table(tmp_path / "t.xlsx")


# -- Parquet


def test_parquet_round_trips_with_its_categories(tmp_path: Path) -> None:
    frame = FRAME.drop(columns="blood group").assign(
        level=pd.Categorical(["low", "high", None], categories=["low", "high"])
    )
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet"), frame)


def test_a_bad_parquet_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read as Parquet") as caught:
        read_table(tmp_path / "t.parquet")
    assert "\n" not in str(caught.value)


# -- ARFF

HEADER = "@relation t\n@attribute a numeric\n@attribute b {x, y}\n@data\n"


def test_arff_nominal_columns_keep_the_declared_order() -> None:
    frame = arff("@RELATION t\n@ATTRIBUTE size {small,large,'very large'}\n@DATA\nlarge\n?\n'very large'\n")
    assert list(frame["size"].cat.categories) == ["small", "large", "very large"]
    assert frame["size"].cat.codes.tolist() == [1, -1, 2]


def test_arff_types_become_pandas_types() -> None:
    header = "@attribute i integer\n@attribute j INTEGER\n@attribute r Real\n@attribute s string\n@data\n"
    frame = arff(header + "1,1,1,hello\n2,?,2.5,'?'\n-3,4,?,?\n")
    assert frame["i"].tolist() == [1, 2, -3]
    assert str(frame["i"].dtype) == "int64"
    assert frame["j"].isna().tolist() == [False, True, False]
    assert frame["r"].tolist()[:2] == [1.0, 2.5]
    assert frame["s"].tolist() == ["hello", "?", None]


def test_arff_quotes_escapes_comments_and_blank_lines_are_understood() -> None:
    frame = arff(
        "% comment\n\n@relation 'a b'\n@attribute 'first name' string\n"
        '@attribute "it\'s" {\'a,b\', "c\\"d", e\\ f}  \n@attribute char_%3B real % a share\n@data\n'
        "% more\n'O\\'Brien', 'a,b', 1\n\n"
        '"tab\\there" , "c\\"d" ,2\n  plain words,?, 3e2\n\'\\u00e9\',?,4\n'
    )
    assert list(frame) == ["first name", "it's", "char_%3B"]
    assert frame["first name"].tolist() == ["O'Brien", "tab\there", "plain words", "é"]
    assert frame["it's"].tolist()[:2] == ["a,b", 'c"d']
    assert frame["char_%3B"].tolist() == [1, 2, 300, 4]


def test_arff_with_no_rows_is_an_empty_frame() -> None:
    assert arff(HEADER).shape == (0, 2)


def test_arff_blocks_are_joined_in_order() -> None:
    n = 3000
    frame = arff(HEADER + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(n)))
    assert frame["a"].tolist() == list(range(n))
    assert frame["b"].cat.codes.tolist() == [i % 2 for i in range(n)]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (HEADER + "1,x\n1,z\n", "line 6: attribute 'b' does not declare the value 'z'"),
        (HEADER + "one,x\n", "line 5: attribute 'a' is numeric, but the value is 'one'"),
        (HEADER + "1,x\n1_0,x\n", "line 6: attribute 'a' is numeric, but the value is '1_0'"),
        (HEADER + "1,x,2\n", "line 5: 3 values, but 2 attributes are declared"),
        (HEADER + "1\n", "line 5: 1 values, but 2"),
        (HEADER + "1,\n", "line 5: value 2 is empty; a missing value is written ?"),
        (HEADER + "{0 1, 1 x}\n", "line 5: this is a sparse ARFF file"),
        (HEADER + "1,x,{5}\n", "line 5: the row carries an instance weight"),
        (HEADER + "1,'x\n", "line 5: cannot read the value that starts at"),
        (HEADER + "1,it's\n", "line 5: cannot read the value"),
        (
            "@relation t\n@attribute d date 'yyyy'\n@data\n",
            "line 2: attribute 'd' has the type \"date 'yyyy'\"",
        ),
        ("@relation t\n@attribute d relational\n@data\n", "line 2: attribute 'd' has the type 'relational'"),
        (
            "@relation t\n@attribute a numeric\n@attribute a real\n@data\n",
            "line 3: a second attribute is called 'a'",
        ),
        ("@relation t\n@attribute b {x,y,x}\n@data\n", "line 2: attribute 'b' declares the value 'x' twice"),
        (
            "@relation t\n@attribute b {x,y\n@data\n",
            "line 2: the list of values of attribute 'b' does not end",
        ),
        ("@relation t\n@attribute\n@data\n", "line 2: cannot read the attribute declaration"),
        ("@relation t\n@data\n1\n", "line 2: @data comes before any @attribute"),
        ("@relation t\n@attribute a numeric\n", r"toy\.arff has no @data line"),
        ("a,b\n1,2\n", "line 1: expected @relation, @attribute or @data, found 'a,b'"),
        ("", r"toy\.arff has no @data line"),
    ],
)
def test_a_bad_arff_file_is_one_sentence_with_its_line(text: str, match: str) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        arff(text)
    assert "toy.arff" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_arff_file_may_be_gzipped(tmp_path: Path) -> None:
    (tmp_path / "t.arff.gz").write_bytes(gzip.compress((HEADER + "1,x\n").encode()))
    assert read_table(tmp_path / "t.arff.gz").shape == (1, 2)


def test_arff_agrees_with_scipy_where_scipy_can_read() -> None:
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal():.6g},{rng.integers(9)},{rng.choice(['u', 'v', 'w'])}" for _ in range(200)]
    lines[7] = "?,3,u"
    text = "@relation t\n@attribute a real\n@attribute b integer\n@attribute c {u,v,w}\n@data\n" + "\n".join(lines)
    theirs, _ = scipy_arff.loadarff(io.StringIO(text))
    ours = arff(text)
    np.testing.assert_array_equal(ours["a"], theirs["a"])
    np.testing.assert_array_equal(ours["b"], theirs["b"])
    assert ours["c"].tolist() == [value.decode() for value in theirs["c"]]


def quoted(value: str) -> str:
    """A value as Weka writes one that needs quotes."""
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        value = value.replace(plain, escaped)
    return f"'{value}'"


# Line ends other than \n and \r would split the row for any reader of lines.
words = st.text(st.characters(codec="utf-8", exclude_characters="\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=8)


@given(st.lists(st.one_of(st.none(), words.filter(bool)), min_size=1, max_size=6))
def test_any_string_survives_being_quoted(values: list[str | None]) -> None:
    cells = ["?" if value is None else quoted(value) for value in values]
    assert arff("@attribute s string\n@data\n" + "\n".join(cells))["s"].tolist() == values


@given(st.lists(words.filter(bool), min_size=1, max_size=6, unique=True))
def test_any_names_and_levels_survive_being_quoted(values: list[str]) -> None:
    levels = ",".join(map(quoted, values))
    text = "".join(f"@attribute {quoted(name)} {{{levels}}}\n" for name in values)
    frame = arff(f"{text}@data\n{levels}\n")
    assert list(frame) == values
    assert frame.iloc[0].tolist() == values
    assert list(frame.iloc[:, 0].cat.categories) == values


@pytest.mark.parametrize("names", [["pid"], ["pid", "visit"]])
def test_a_named_index_of_a_parquet_file_is_read_as_columns(tmp_path: Path, names: list[str]) -> None:
    frame = pd.DataFrame({"pid": ["P1", "P2"], "visit": [1, 2], "x": [0.5, 1.5]})
    frame.set_index(names).to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet"), frame)
    frame.set_axis([7, 9]).to_parquet(tmp_path / "t.parquet")
    assert list(read_table(tmp_path / "t.parquet")) == ["pid", "visit", "x"]
