import numpy as np
import pytest

from marginbayes.study.protocol import split, split_names, validation_folds


def test_folds_are_the_same_for_everyone_and_test_every_row_once():
    protocol = {"folds": 5}
    names = split_names(protocol, "iris")
    rows = [split(protocol, "iris", name, 1) for name in names]
    again = [split(protocol, "iris", name, 1) for name in names]
    assert sorted(np.concatenate([r.rows for r in rows])) == list(range(150))
    assert all(np.array_equal(a.rows, b.rows) for a, b in zip(rows, again, strict=True))


def test_a_seeded_test_set_has_the_size_asked_for():
    rows = split({"test": {"iris": 40}}, "iris", "test", 1)
    assert (len(rows.y_test), len(rows.y_train)) == (40, 110)


def test_training_sets_of_a_size_are_disjoint_where_there_are_rows_enough():
    protocol = {"sizes": [10], "repeats": 5}
    drawn = [split(protocol, "iris", name, 1) for name in split_names(protocol, "iris")]
    index = [set(r.X_train.index) for r in drawn]
    assert all(len(i) == 10 for i in index)
    assert len(set.union(*index)) == 50
    assert all(len(r.y_test) == 140 for r in drawn)


def test_generated_sets_are_drawn_anew_in_every_repetition():
    protocol = {"sizes": [30], "repeats": 2, "generate": {"n_test": 20}}
    first, second = (split(protocol, "informative-edge", f"30-{i}", 1) for i in range(2))
    assert (len(first.y_train), len(first.y_test)) == (30, 20)
    assert not first.X_train.equals(second.X_train)


def test_a_shortened_training_set_keeps_the_shares_of_the_classes():
    rows = split({"test": {"iris": 30}, "first": 60}, "iris", "test", 1)
    assert len(rows.y_train) == 60
    assert np.unique(rows.y_train, return_counts=True)[1] == pytest.approx([20, 20, 20], abs=3)


def test_validation_is_by_five_folds_or_by_a_fifth_of_many_rows():
    labels = np.tile([0, 1], 550)
    few, many = validation_folds(labels[:1000], 1), validation_folds(labels, 1)
    assert (len(few), len(many)) == (5, 1)
    train, test = many[0]
    assert len(test) == pytest.approx(220, abs=2)
    assert not set(train) & set(test)


def test_repeats_without_sizes_are_refused():
    with pytest.raises(ValueError, match="repeats = 3 says in sizes"):
        split_names({"repeats": 3}, "iris")


def test_training_sets_are_disjoint_until_all_rows_had_a_turn_and_then_dealt_anew():
    for size, turns in ((50, 3), (40, 3), (75, 2)):  # of 150 rows
        protocol = {"sizes": [size], "repeats": 5}
        drawn = [set(split(protocol, "iris", f"{size}-{k}", 1).X_train.index) for k in range(5)]
        assert all(len(rows) == size for rows in drawn)
        shared = [[len(a & b) for b in drawn] for a in drawn]
        for i in range(5):
            for j in range(i):
                if i // turns == j // turns:
                    assert shared[i][j] == 0
                else:  # about size^2 / 150 by chance, and never nearly all
                    assert shared[i][j] < 0.7 * size
