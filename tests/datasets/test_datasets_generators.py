"""Generated data sets against their rules, written another way, and against the published files."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="data sets are pandas frames")

from marginbayes.datasets import Dataset, generators, load

RealSet = Callable[[str], Path]
Row = tuple[str, ...]


def rows_of(data: Dataset) -> list[Row]:
    """Rows as strings, class last, as a CSV file would have them."""
    return [(*row, str(label)) for row, label in zip(data.X.astype(str).to_numpy(), data.y, strict=True)]


def rows_in(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def corral_rule(row: Row) -> str:
    a0, a1, b0, b1 = row[:4]
    return "1" if (a0, a1) == ("1", "1") or (b0, b1) == ("1", "1") else "0"


def mofn_rule(row: Row) -> str:
    return "1" if "".join(row)[2:9].count("1") > 2 else "0"


def monks_rule(problem: int, row: Row) -> str:
    if problem == 1:
        return "1" if row[0] == row[1] or row[4] == "1" else "0"
    if problem == 2:
        return "1" if row.count("1") == 2 else "0"
    second = row[4] in "123" and row[1] in "12"
    return "1" if second or (row[3], row[4]) == ("1", "3") else "0"


def test_corral_follows_its_rule_and_its_decoy_is_right_in_three_quarters_of_the_rows() -> None:
    rows = rows_of(generators.corral())
    assert all(row[-1] == corral_rule(row) for row in rows)
    assert Counter(row[:5] for row in rows) == dict.fromkeys(product("01", repeat=5), 4)
    assert sum(row[5] == row[6] for row in rows) == 96


def test_generated_corral_has_exactly_the_published_rows(real_set: RealSet) -> None:
    published = rows_in(real_set("corral") / "data.csv")
    assert all(row[-1] == corral_rule(row) for row in published)
    assert Counter(published) == Counter(rows_of(generators.corral()))


def test_mofn_follows_its_rule_and_tests_on_the_whole_truth_table() -> None:
    data = generators.mofn_3_7_10()
    rows = rows_of(data)
    assert all(row[-1] == mofn_rule(row[:-1]) for row in rows)
    assert Counter(row[:-1] for row in rows[300:]) == dict.fromkeys(product("01", repeat=10), 1)
    assert len(set(rows[:300])) == 300
    assert [len(part) for part in data.split()] == [300, 300, 1024, 1024]


def test_generated_mofn_has_exactly_the_published_test_rows(real_set: RealSet) -> None:
    folder = real_set("mofn-3-7-10")
    published = rows_in(folder / "test.csv")
    assert Counter(published) == Counter(rows_of(generators.mofn_3_7_10())[300:])
    assert all(row[-1] == mofn_rule(row[:-1]) for row in [*published, *rows_in(folder / "train.csv")])


# The number of positive rows among the 432 is published with each problem.
@pytest.mark.parametrize(("problem", "size", "positive"), [(1, 124, 216), (2, 169, 142), (3, 122, 228)])
def test_monks_follow_their_rules(problem: int, size: int, positive: int) -> None:
    data = generators.monks(problem)
    rows = rows_of(data)
    table = rows[size:]
    assert Counter(row[:-1] for row in table) == dict.fromkeys(product("123", "123", "12", "123", "1234", "12"), 1)
    assert all(row[-1] == monks_rule(problem, row[:-1]) for row in table)
    assert sum(row[-1] == "1" for row in table) == positive
    wrong = sum(row[-1] != monks_rule(problem, row[:-1]) for row in rows[:size])
    assert wrong == (6 if problem == 3 else 0)
    assert len({row[:-1] for row in rows[:size]}) == size


def test_there_are_three_monks() -> None:
    with pytest.raises(ValueError, match="1, 2 and 3, not 4"):
        generators.monks(4)


def expected_waves() -> dict[int, list[float]]:
    """Class means, point by point, of Breiman's definition with its points counted from 1."""

    def h1(i: int) -> float:
        return max(6 - abs(i - 11), 0)

    def h2(i: int) -> float:
        return h1(i - 4)

    def h3(i: int) -> float:
        return h1(i + 4)

    pairs = {0: (h2, h3), 1: (h1, h3), 2: (h1, h2)}
    return {k: [(a(i) + b(i)) / 2 for i in range(1, 22)] for k, (a, b) in pairs.items()}


def assert_waves(data: Dataset) -> None:
    for label, expected in expected_waves().items():
        rows = data.X[data.y == label]
        error = rows.std() / np.sqrt(len(rows))
        # 63 means: five standard errors are exceeded once in 28000 times.
        assert ((rows.mean() - expected).abs() < 5 * error).all()
        # A uniform weight gives the mixture the variance (a - b)^2 / 12, at most 3; the noise adds 1.
        assert rows.var().max() < 1 + 36 / 12 + 0.5


def test_waveform_has_the_means_of_its_definition() -> None:
    data = generators.waveform(20000, n_train=300)
    assert_waves(data)
    assert abs(data.y.value_counts(normalize=True) - 1 / 3).max() < 0.02
    assert [len(part) for part in generators.waveform().split()] == [300, 300, 4700, 4700]


def test_the_published_waveform_rows_have_the_same_means(real_set: RealSet) -> None:
    assert_waves(load("waveform-21", home=real_set("waveform-21").parent))


def test_waveform_refuses_an_empty_part() -> None:
    with pytest.raises(ValueError, match="n_train should lie between 1 and n_samples - 1 = 9, not be 10"):
        generators.waveform(10, n_train=10)


@pytest.mark.parametrize(
    "generator",
    [
        generators.mofn_3_7_10,
        lambda **seed: generators.monks(3, **seed),
        lambda **seed: generators.waveform(**seed),
    ],
)
def test_the_seed_fixes_the_draw(generator: Callable[..., Any]) -> None:
    first, again, other = (rows_of(generator(random_state=seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", ["corral", "mofn-3-7-10", "waveform-21"])
def test_a_generated_set_looks_like_the_published_one(real_set: RealSet, name: str) -> None:
    published, generated = load(name, home=real_set(name).parent), load(name)
    assert published.X.dtypes.equals(generated.X.dtypes)
    assert published.y.dtype == generated.y.dtype
    assert published.X.shape == generated.X.shape
    assert set(published.classes) == set(generated.classes)
