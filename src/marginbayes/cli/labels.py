"""Class labels: with the type they have in the data, and found again by what is typed on a command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.cli.console import some

__all__ = ["by_spelling", "find_label", "label_array", "match_labels", "text_of"]

KINDS = "biuOf"  # booleans, integers, strings, and floats that are whole numbers


def text_of(value: Any) -> str:
    """A cell as it would be written in a file: a whole number without a decimal point."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def by_spelling(values: Iterable[Any]) -> dict[str, Any]:
    """Values by the ways in which a file may write them: a reader takes true, True and TRUE for the same."""
    found = {}
    for value in values:
        text = text_of(value)
        found[text] = value
        if isinstance(value, (bool, np.bool_)):
            found |= {text.lower(): value, text.upper(): value}
    return found


def label_array(column: Any, name: str) -> NDArray[Any]:
    """Labels of a pandas column without holes, with the type they have in the file.

    Whole numbers that pandas made floats because other rows have no label are integers again.
    """
    values = column.astype(object).infer_objects().to_numpy()
    if values.dtype.kind not in KINDS:
        raise ValueError(f"the target {name!r} holds {column.iloc[0]!r}, which is no class label")
    if values.dtype.kind == "O":
        return _check_strings(values, name)
    if values.dtype.kind == "f":
        return _check_whole(values, name)
    return np.asarray(values)


def _check_strings(values: NDArray[Any], name: str) -> NDArray[Any]:
    other = [v for v in values if not isinstance(v, str)]
    if other:
        raise ValueError(f"the target {name!r} mixes types, such as {other[0]!r}; write all labels as text")
    return values


def _check_whole(values: NDArray[np.float64], name: str) -> NDArray[np.int64]:
    broken = values[~np.isfinite(values) | (values != np.round(values))]
    if broken.size:
        raise ValueError(
            f"the target {name!r} holds numbers such as {broken[0]:g}, a quantity and no class; "
            "choose another column, or make classes of it first"
        )
    return values.astype(np.int64)


def find_label(text: str, classes: Iterable[Any], role: str) -> Any:
    """The class that is meant by a word of the command line: "1" is the label 1 and the label "1"."""
    known = list(classes)
    if text in (spelled := by_spelling(known)):
        return spelled[text]
    for label in known:
        if _is_number(label) and _number(text) == float(label):
            return label
    raise ValueError(f"{role} {text!r} is not a class; the classes are {_listed(known)}")


def match_labels(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Labels of another file with the type of these classes; those that are new to them as they are."""
    known = by_spelling(classes.tolist())
    matched = [known.get(text_of(label), label) for label in labels.tolist()]
    if classes.dtype.kind == "O":
        return np.array([str(label) for label in matched], object)
    texts = [label for label in matched if isinstance(label, str)]
    if texts:
        raise ValueError(
            f"the label {texts[0]!r} of the test rows is no class; the classes are {_listed(classes.tolist())}"
        )
    return np.array(matched)


def _listed(labels: list[Any]) -> str:
    return some([repr(text_of(label)) for label in labels], 12)


def _is_number(label: Any) -> bool:
    return isinstance(label, (int, float)) and not isinstance(label, bool)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
