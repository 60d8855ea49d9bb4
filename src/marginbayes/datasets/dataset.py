"""The value that every source of data sets returns, and the few column rules they share."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Dataset", "as_category", "as_labels", "category_frame", "pandas"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table ready to classify: features, labels, and everything that is neither, kept apart.

    Parameters
    ----------
    name : str
        Name under which it was loaded.
    X : pandas.DataFrame
        Features. A categorical one has the dtype `category`, any other is numeric; unknown cells are missing.
    y : pandas.Series
        Class labels: integers where every label is written as one, strings otherwise.
    description : str
        What the set is and how it departs from the original, if it does.
    source : str
        Where it was read, generated or fetched.
    train : ndarray of int, optional
        Row numbers of the training part, when the set comes with a split.
    test : ndarray of int, optional
        Row numbers of the test part.
    split_note : str
        How that split was made: an official one, or one of the same sizes.
    ids : pandas.DataFrame, optional
        Bookkeeping columns (record numbers, sequence ids, positions), which are not features.
    targets : pandas.DataFrame, optional
        Further targets, which would give the class away as features.
    """

    name: str
    X: pd.DataFrame
    y: pd.Series[Any]
    description: str = ""
    source: str = ""
    train: NDArray[np.intp] | None = None
    test: NDArray[np.intp] | None = None
    split_note: str = ""
    ids: pd.DataFrame | None = None
    targets: pd.DataFrame | None = None

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"Dataset({self.name!r}: {rows} rows, {features} features, {len(self.classes)} classes)"

    @property
    def kinds(self) -> dict[str, str]:
        """For each feature "categorical" or "numeric"."""
        categorical = pandas().CategoricalDtype
        return {
            str(name): "categorical" if isinstance(dtype, categorical) else "numeric"
            for name, dtype in self.X.dtypes.items()
        }

    @property
    def classes(self) -> NDArray[Any]:
        """Distinct labels, sorted."""
        return np.unique(self.y.to_numpy())

    @property
    def groups(self) -> pd.Series[Any] | None:
        """First bookkeeping column (record, speaker or sequence), for grouped cross-validation, or None."""
        return None if self.ids is None else self.ids.iloc[:, 0]

    def split(self) -> tuple[pd.DataFrame, pd.Series[Any], pd.DataFrame, pd.Series[Any]]:
        """Training features and labels, then test features and labels, of the split the set comes with."""
        if self.train is None or self.test is None:
            raise ValueError(
                f"the data set {self.name!r} comes without a train/test split; "
                "make one with sklearn.model_selection.train_test_split, or cross-validate"
            )
        parts = (self.train, self.test)
        X_train, X_test = (self.X.iloc[part].reset_index(drop=True) for part in parts)
        y_train, y_test = (self.y.iloc[part].reset_index(drop=True) for part in parts)
        return X_train, y_train, X_test, y_test

    def complete_cases(self) -> Dataset:
        """The same set without the rows in which a feature is missing; the split follows."""
        return self.take(np.flatnonzero(self.X.notna().all(axis=1).to_numpy()))

    def take(self, rows: NDArray[np.intp]) -> Dataset:
        """The same set with only these rows, in the order given; the split follows."""

        def part(frame: Any) -> Any:
            return None if frame is None else frame.iloc[rows].reset_index(drop=True)

        def positions(index: NDArray[np.intp] | None) -> NDArray[np.intp] | None:
            return None if index is None else np.flatnonzero(np.isin(rows, index))

        return replace(
            self,
            X=part(self.X),
            y=part(self.y),
            ids=part(self.ids),
            targets=part(self.targets),
            train=positions(self.train),
            test=positions(self.test),
        )


def pandas() -> Any:
    """The pandas module; where it is not installed, an ImportError that says how to get it."""
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError('data sets are pandas frames: pip install "marginbayes[data]"') from error


def as_category(column: pd.Series[Any]) -> pd.Series[Any]:
    """The column as `category` with string levels, numeric order if all are integers, else alphabetical."""
    text = column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
    levels = natural_order(text.dropna().unique())
    return text.astype(pandas().CategoricalDtype(levels))


def as_labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """The class column, as integers where every label is a whole number, otherwise as it is written."""
    if pandas().api.types.is_numeric_dtype(column):
        whole = bool((column == column.round()).all())
        return (column.astype(np.int64) if whole else column).rename("class")
    text = column.astype(str)
    if all(_is_integer(label) for label in text.unique()):
        return text.astype(np.int64).rename("class")
    return text.astype(object).rename("class")


def category_frame(codes: NDArray[Any], names: Iterable[str], levels: Iterable[Any]) -> pd.DataFrame:
    """Frame of `category` columns that share their levels, from a table of positions in the levels."""
    pd, text = pandas(), [str(level) for level in levels]
    dtype = pd.CategoricalDtype(text)
    columns = {name: pd.Categorical.from_codes(codes[:, i], dtype=dtype) for i, name in enumerate(names)}
    return pd.DataFrame(columns)


def natural_order(levels: Iterable[str]) -> list[str]:
    """Levels in numeric order when all are integers, otherwise in alphabetical order."""
    found = list(levels)
    return sorted(found, key=int) if all(_is_integer(level) for level in found) else sorted(found)


def _is_integer(text: str) -> bool:
    # The round trip keeps codes such as 007 or 1_000 as they are written.
    try:
        return str(int(text)) == text
    except ValueError:
        return False
