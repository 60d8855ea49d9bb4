"""Data sets that scikit-learn carries with it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginbayes.datasets.dataset import Dataset, as_labels, pandas

__all__ = ["BUNDLED", "Bundled", "read"]


@dataclass(frozen=True)
class Bundled:
    """A loader of scikit-learn and the size of what it loads."""

    loader: str
    rows: int
    features: int
    classes: int
    description: str


BUNDLED = {
    "iris": Bundled(
        "load_iris",
        150,
        4,
        3,
        "Fisher's iris; two rows differ from the UCI file, as they do in Fisher (1936).",
    ),
    "breast-cancer": Bundled(
        "load_breast_cancer",
        569,
        30,
        2,
        "Wisconsin diagnostic breast cancer: 30 measurements of cell nuclei.",
    ),
    "digits": Bundled("load_digits", 1797, 64, 10, "Handwritten digits: 8x8 pixels with values 0 to 16."),
    "wine": Bundled("load_wine", 178, 13, 3, "Chemical analysis of wines from three cultivars."),
}
# The columns and labels of the UCI file, so that iris is the same table wherever it comes from.
_IRIS_COLUMNS = ["sepallength", "sepalwidth", "petallength", "petalwidth"]


def read(name: str) -> Dataset:
    """Data set that scikit-learn carries under this name."""
    entry = BUNDLED[name]
    bunch = getattr(importlib.import_module("sklearn.datasets"), entry.loader)()
    columns = _IRIS_COLUMNS if name == "iris" else [str(name) for name in bunch.feature_names]
    return Dataset(
        name=name,
        X=pandas().DataFrame(bunch.data, columns=columns),
        y=as_labels(pandas().Series(_labels(name, bunch))),
        description=entry.description,
        source=f"scikit-learn, sklearn.datasets.{entry.loader}()",
    )


def _labels(name: str, bunch: Any) -> Any:
    labels = np.asarray(bunch.target_names, dtype=object)[bunch.target]
    return "Iris-" + labels if name == "iris" else labels
