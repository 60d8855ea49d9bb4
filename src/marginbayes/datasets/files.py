"""Table files (CSV, TSV, Parquet, ARFF) read strictly into pandas frames."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from marginbayes.datasets.arff import parse_arff
from marginbayes.datasets.dataset import pandas

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING", "SEPARATORS", "read_delimited", "read_table", "read_texts", "suffix_of"]

# "None" is left out on purpose: it is a level of many columns.
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "<NA>", "NULL", "null")

SEPARATORS = {".csv": ",", ".tsv": "\t"}
# What may stand between cells.
LIKELY = (",", ";", "\t", "|")
_FORMATS = ".csv, .tsv, .arff (each also with .gz) or .parquet"


def read_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    missing: Sequence[str] = MISSING,
    encoding: str = "utf-8",
    decimal: str = ".",
) -> pd.DataFrame:
    """Frame of a CSV, TSV, Parquet or ARFF file, chosen by the end of its name.

    Parameters
    ----------
    path : path
        File that ends in .csv, .tsv, .arff (each also with .gz) or .parquet.
    separator : str, optional
        What separates the cells of a text file; a comma in .csv, a tab in .tsv. Not used otherwise.
    missing : sequence of str
        Cells of a CSV or TSV file that mean "unknown". In ARFF that is an unquoted question mark.
    encoding : str
        Encoding of a text file.
    decimal : str
        Decimal point of a CSV or TSV file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged or of another format; the message names the file and the line.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    suffix = suffix_of(file)
    if suffix in (".parquet", ".pq"):
        return _read_parquet(file)
    if suffix == ".arff":
        with open_text(file, encoding) as text:
            return parse_arff(text, str(file))
    if suffix not in SEPARATORS:
        raise ValueError(f"cannot tell the format of {file}: its name should end in {_FORMATS}")
    frame = read_delimited(
        file,
        separator=SEPARATORS[suffix] if separator is None else separator,
        missing=missing,
        encoding=encoding,
        decimal=decimal,
    )
    return _with_nullable_booleans(frame)


def read_delimited(
    path: Path,
    *,
    separator: str = ",",
    missing: Sequence[str] = MISSING,
    encoding: str = "utf-8",
    decimal: str = ".",
    text_columns: Sequence[str] = (),
) -> pd.DataFrame:
    """Frame of a text file with one header row; the text columns stay strings whatever they look like."""
    if len(separator) != 1:
        raise ValueError(f"the separator {separator!r} (--separator) must be one character")
    if decimal not in (".", ",") or decimal == separator:
        raise ValueError(
            f"the decimal point {decimal!r} (--decimal) must be '.' or ',', and not the separator {separator!r}"
        )
    with open_text(path, encoding) as file:
        header = _check_rows(file, path, separator)
    return _parsed(
        path,
        separator,
        encoding,
        decimal=decimal,
        na_values=list(missing),
        dtype={name: str for name in text_columns if name in header},
        low_memory=False,
    )


def read_texts(
    path: Path,
    names: Sequence[str],
    *,
    separator: str = ",",
    missing: Sequence[str] = MISSING,
    encoding: str = "utf-8",
    n_rows: int | None = None,
) -> pd.DataFrame:
    """Cells of some columns as they are written in a text file, which was checked before; of all or the first rows."""
    return _parsed(
        path,
        separator,
        encoding,
        na_values=list(missing),
        dtype=str,
        usecols=list(names),
        nrows=n_rows,
    )


def _parsed(path: Path, separator: str, encoding: str, **options: Any) -> pd.DataFrame:
    """What pandas reads, and takes for missing only what it is told."""
    return pandas().read_csv(
        path,
        compression="gzip" if path.suffix.lower() == ".gz" else None,
        sep=separator,
        encoding=_without_mark(encoding),
        keep_default_na=False,
        **options,
    )


@contextmanager
def open_text(path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """Text of a plain or gzipped file; what cannot be decoded is a ValueError that names the file."""
    try:
        opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
        with opener(path, "rt", encoding=_without_mark(encoding), newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not {encoding} text (byte {error.start}): name its encoding (--encoding)"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a complete gzip file: {error}") from error


def suffix_of(file: Path) -> str:
    """End of the name that tells the format, without a final .gz."""
    return Path(file.stem).suffix.lower() if file.suffix.lower() == ".gz" else file.suffix.lower()


def _without_mark(encoding: str) -> str:
    # A byte order mark would otherwise become part of the first column's name.
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _check_rows(file: TextIO, path: Path, separator: str) -> list[str]:
    """Header, after checking that every row has its width: pandas pads short rows without a word."""
    before, first = next(
        ((k, line) for k, line in enumerate(file) if line.strip()), (0, "")
    )  # pandas skips empty lines
    likely = max(LIKELY, key=first.count)
    if (separator == "," and likely == ";") or first.count(likely) > first.count(separator) == 0:
        shown, said = ("a tab", "'\\t'") if likely == "\t" else (repr(likely), repr(likely))
        raise ValueError(
            f"{path} seems to be separated by {shown}, not {separator!r}: say so by the separator (--separator {said})"
        )
    rows = csv.reader(chain([first], file), delimiter=separator, strict=True)
    try:
        header = next(rows, [])
        _check_header(header, path)
        for row in rows:
            if row and len(row) != len(header):
                place = f"{path}, line {before + rows.line_num}"
                raise ValueError(f"{place}: {len(row)} cells, but the header names {len(header)} columns")
    except csv.Error as error:
        raise ValueError(f"{path}, line {before + rows.line_num}: {error}{_remedy(error)}") from error
    return header


def _remedy(error: csv.Error) -> str:
    if "field larger than field limit" not in str(error):
        return ""
    return "; a quote may be open that is never closed, else leave out a column with so long a text"


def _check_header(header: list[str], path: Path) -> None:
    if not header:
        raise ValueError(f"{path} is empty: its first line should name the columns")
    for position, name in enumerate(header, 1):
        if not name.strip():
            raise ValueError(
                f"{path}: column {position} has no name; name it in the first line, or write the file without it if it "
                "only numbers the rows (in pandas: to_csv(path, index=False))"
            )
        if name in header[: position - 1]:
            raise ValueError(f"{path}: two columns are called {name!r}")


def _with_nullable_booleans(frame: pd.DataFrame) -> pd.DataFrame:
    """True / False columns with holes as `boolean`, which pandas would leave as objects of mixed type."""
    pd = pandas()
    objects = [c for c in frame if frame[c].dtype == object]
    mixed = [c for c in objects if pd.api.types.infer_dtype(frame[c], skipna=True) == "boolean"]
    return frame.astype(dict.fromkeys(mixed, "boolean"))


def _read_parquet(file: Path) -> pd.DataFrame:
    try:
        frame = pandas().read_parquet(file, engine="pyarrow")
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow: pip install "marginbayes[data]"') from error
    except (ValueError, OSError) as error:
        raise ValueError(f"{file} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    # What somebody made the index of a frame is a column to us; one without a name only numbers the rows.
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame
