"""Images as tables of pixels."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.datasets.dataset import Dataset, category_frame, pandas

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["halved", "pixel_names", "read_images"]


def pixel_names(count: int) -> list[str]:
    """Names `pixel_row_column` of the pixels of a square image, row by row."""
    side = math.isqrt(count)
    if side * side != count:
        raise ValueError(f"{count} pixels do not make a square image")
    return [f"pixel_{row}_{column}" for row in range(side) for column in range(side)]


def read_images(path: Path, kinds: Mapping[str, str] | str) -> tuple[pd.DataFrame, int | None]:
    """Pixels and class of all images in an npz file, and the size of the training part if it is split."""
    if not isinstance(kinds, str):
        raise ValueError(f"the pixels in {path} share one kind: 'feature_kinds' in meta.json should be a sentence")
    arrays = _read_npz(path)
    parts = [part for part in ("train", "test") if f"x_{part}" in arrays]
    images = np.concatenate([arrays[f"x_{part}"].reshape(len(arrays[f"x_{part}"]), -1) for part in parts])
    labels = np.concatenate([arrays[f"y_{part}"] for part in parts])
    names = pixel_names(images.shape[1])
    frame = _categorical(images, names) if kinds == "categorical" else pandas().DataFrame(images, columns=names)
    frame.insert(len(names), "class", labels)
    return frame, len(arrays["x_train"]) if len(parts) == 2 else None


def halved(data: Dataset, name: str) -> Dataset:
    """The same images at half the resolution: each new pixel is the mean of a block of two by two."""
    count = data.X.shape[1]
    side = math.isqrt(count)
    pixels = data.X.to_numpy(dtype=np.float32).reshape(-1, side // 2, 2, side // 2, 2)
    small = pixels.mean(axis=(2, 4)).reshape(len(pixels), -1)
    X = pandas().DataFrame(small, columns=pixel_names(small.shape[1]))
    note = f"Means of 2x2 pixels: {side // 2}x{side // 2} = {small.shape[1]} features. "
    return replace(data, name=name, X=X, description=note + data.description)


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a readable npz file: {error}") from error
    for part in ("train", "test") if "x_test" in arrays or "y_test" in arrays else ("train",):
        _check_part(path, part, arrays.get(f"x_{part}"), arrays.get(f"y_{part}"))
    return arrays


def _check_part(path: Path, part: str, images: NDArray[Any] | None, labels: NDArray[Any] | None) -> None:
    if images is None or labels is None:
        raise ValueError(f"{path} lacks the array {'x' if images is None else 'y'}_{part}")
    if images.ndim < 2 or labels.shape != (len(images),):
        raise ValueError(f"{path}: x_{part} of shape {images.shape} does not go with y_{part} of shape {labels.shape}")


def _categorical(images: NDArray[Any], names: list[str]) -> pd.DataFrame:
    levels, codes = np.unique(images, return_inverse=True)
    return category_frame(codes.reshape(images.shape), names, levels)
