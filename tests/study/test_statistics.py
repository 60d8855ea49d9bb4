import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm, sem, t, ttest_rel

from marginbayes.study.kinds import pack, unpack
from marginbayes.study.records import Record
from marginbayes.study.statistics import beats, cell, over_sets, ranking, weighted_mean


def record(correct, split="test", method="m"):
    correct = np.asarray(correct, bool)
    result = {"accuracy": float(correct.mean()), "tested": len(correct), "correct": pack(correct), "fit_seconds": 1.0}
    return Record(f"{method}{split}", "e", "d", method, split, "done", 1.0, result, 0, {})


def folds(rates, n=100):
    return cell([record(np.arange(n) < round(r * n), f"fold{i}") for i, r in enumerate(rates)])


def test_packed_booleans_come_back():
    rng = np.random.default_rng(0)
    for n in (1, 7, 8, 100):
        truth = rng.random(n) < 0.5
        np.testing.assert_array_equal(unpack(pack(truth), n), truth)


def test_the_interval_of_a_test_set_is_that_of_a_proportion():
    found = cell([record(np.arange(200) < 150)])
    assert found.accuracy == 75
    assert found.half_width == pytest.approx(100 * norm.ppf(0.975) * math.sqrt(0.75 * 0.25 / 200))


def test_the_interval_over_folds_is_students():
    rates = [0.9, 0.92, 0.95, 0.88, 0.9]
    found = folds(rates)
    low, high = t.interval(0.95, 4, loc=np.mean(rates), scale=sem(rates))
    assert found.half_width == pytest.approx(50 * (high - low))


def test_iris_as_published_four_folds_of_28_and_one_of_29_out_of_30():
    # 94.00 +- 1.85 in Table 2 of Peharz & Pernkopf (2012)
    found = cell([record(np.arange(30) < (29 if i == 0 else 28), f"fold{i}") for i in range(5)])
    assert (round(found.accuracy, 2), round(found.half_width, 2)) == (94.0, 1.85)


def test_folds_are_compared_by_a_one_sided_paired_t_test():
    a, b = [0.9, 0.92, 0.95, 0.88, 0.9], [0.88, 0.93, 0.9, 0.85, 0.86]
    assert beats(folds(a), folds(b)) == pytest.approx(ttest_rel(a, b, alternative="greater").pvalue)
    assert beats(folds(b), folds(a)) == pytest.approx(ttest_rel(b, a, alternative="greater").pvalue)
    assert beats(folds(a), folds(a)) == 1.0


def test_test_sets_are_compared_by_a_one_sided_binomial_test_of_the_rows_that_differ():
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 300)) < [[0.8], [0.7]]
    gained, lost = int((a & ~b).sum()), int((b & ~a).sum())
    wanted = binomtest(gained, gained + lost, alternative="greater").pvalue
    assert beats(cell([record(a)]), cell([record(b)])) == pytest.approx(wanted)


def test_methods_are_compared_over_sets_by_a_one_sided_paired_t_test():
    a, b = [0.9, 0.7, 0.85, 0.6], [0.8, 0.72, 0.8, 0.5]
    cells = [[cell([record(np.arange(100) < round(100 * r))]) for r in rates] for rates in (a, b)]
    assert over_sets(*cells) == pytest.approx(ttest_rel(a, b, alternative="greater").pvalue)


def test_different_splits_cannot_be_compared():
    with pytest.raises(ValueError, match="same splits"):
        beats(folds([0.5, 0.6]), folds([0.5, 0.6, 0.7]))


def test_a_weighted_mean_counts_rows():
    assert weighted_mean([cell([record([1] * 30)]), cell([record([0] * 10)])]) == 75


def test_ranks_share_places_and_the_critical_difference_is_nemenyis():
    table = {
        "a": {"x": folds([0.9, 0.9]), "y": folds([0.8, 0.8]), "z": folds([0.8, 0.8])},
        "b": {"x": folds([0.9, 0.9]), "y": folds([0.95, 0.95]), "z": folds([0.1, 0.1])},
    }
    found = ranking(table, ["x", "y", "z"])
    assert found.ranks == {"x": 1.5, "y": 1.75, "z": 2.75}
    # Demšar (2006), Table 5a: q = 2.343 for three classifiers
    assert found.critical == pytest.approx(2.343 * math.sqrt(3 * 4 / (6 * 2)), abs=1e-3)
    assert found.groups == [["x", "y", "z"]]


def test_equal_folds_in_another_order_are_equal():
    a, b = folds([0.1, 0.2, 0.3]), folds([0.3, 0.2, 0.1])
    assert a.accuracy != b.accuracy  # by the order of the sum alone
    assert over_sets([a, a], [b, b]) == over_sets([b, b], [a, a]) == 1.0
    found = ranking({"one": {"A": a, "B": b}, "two": {"A": a, "B": b}}, ["A", "B"])
    assert found.ranks == {"A": 1.5, "B": 1.5}
