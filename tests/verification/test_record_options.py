"""Options of the parts of a record, in stretches, against what each part has by following its own line of parts."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes.verification.exact_margin_options import Options, flags
from marginbayes.verification.exact_margin_packed import Record


def packed(options):
    """Sets of options as lines of bytes."""
    return np.packbits(options, axis=-1, bitorder="little").reshape(-1, -(-options.shape[-1] // 8))


def random_record(rng, n, n_options, parts):
    """Problems, of which parts are divided at random, in any order, with fixes of the same feature and by the same."""
    parent, waiting = [-1, -1, -1], [0, 1, 2]
    while len(parent) < parts:
        above = waiting.pop(int(rng.integers(len(waiting))))
        waiting += [len(parent), len(parent) + 1]
        parent += [above, above]
    count = len(parent)
    taken = np.array([0, 0, 0, *[1, 0] * ((count - 3) // 2)], np.uint8)
    feature, inside = rng.integers(n, size=count), rng.random((count, n_options)) < 0.5
    feature[:3] = rng.permutation(3)
    feature[4::2], inside[4::2] = feature[3::2], inside[3::2]  # a division is noted with both pieces
    fixes = 3 * count
    return Record(
        parent=np.array(parent, np.int32),
        taken=taken,
        feature=feature.astype(np.int32),
        inside=packed(inside),
        closed=np.zeros(count, np.int32),
        listed=np.empty(0, np.int32),
        fix_part=rng.integers(count, size=fixes).astype(np.int32),
        fix_feature=rng.integers(n, size=fixes).astype(np.int32),
        fix_options=packed(rng.random((fixes, n_options)) < 0.1),
        fix_by=rng.integers(3, size=fixes).astype(np.int32),
        sets=3,
        block=lambda number: pytest.fail(f"block {number} was read"),
    )


def unpacked(lines, n_options):
    return np.unpackbits(lines, axis=-1, count=n_options, bitorder="little").astype(bool)


def followed(record, part, roots, n_options):
    """Problem of a part, and its options before its fixes."""
    above = int(record.parent[part])
    if above < 0:
        return record.feature[part], roots[record.feature[part]].copy()
    problem, options = followed(record, above, roots, n_options)
    for fix in np.flatnonzero(record.fix_part == above):
        options[record.fix_feature[fix]] &= ~unpacked(record.fix_options[fix], n_options)
    inside = unpacked(record.inside[part], n_options)
    options[record.feature[part]] &= inside if record.taken[part] else ~inside
    return problem, options


@pytest.mark.parametrize("seed", range(12))
def test_options_in_stretches_are_those_of_each_part_followed_by_itself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    n_options = int(rng.choice([n + 2, 63, 64, 65, 130]))
    record = random_record(rng, n, n_options, 80)
    roots = rng.random((3, n, n_options)) < 0.9
    options, step, count = Options(record, (n, n_options), lambda own: roots[own]), [1, 7, 30, 200][seed % 4], 81
    assert len(record.parent) == count
    for begin in range(0, count, step):
        end = min(begin + step, count)
        stretch = options.stretch(begin, end)
        left, before = flags(stretch.left, n_options), flags(stretch.before, n_options)
        out, group = flags(stretch.fix_out, n_options), 0
        for part in range(begin, end):
            problem, own = followed(record, part, roots, n_options)
            assert stretch.problem[part - begin] == problem
            last = None
            for fix in np.flatnonzero(record.fix_part == part):
                if record.fix_by[fix] != last:  # a group begins
                    last = record.fix_by[fix]
                    assert (stretch.group_part[group], stretch.group_by[group]) == (part - begin, last)
                    assert np.array_equal(before[group], own)
                    group += 1
                here = np.flatnonzero(stretch.fix_group == group - 1)
                gone = unpacked(record.fix_options[fix], n_options)
                assert any(stretch.fix_feature[f] == record.fix_feature[fix] and (out[f] == gone).all() for f in here)
                own[record.fix_feature[fix]] &= ~gone
            assert np.array_equal(left[part - begin], own)
        assert group == len(stretch.group_part)
    # Nothing is kept that has no pieces to come, and memory is that of what was open at a time.
    assert len(options.free) == len(options.kept) < count


def test_parts_that_have_no_pieces_to_come_make_room() -> None:
    rng = np.random.default_rng(0)
    count = 1001
    parent = np.append(-1, np.repeat(np.arange(0, count - 1, 2), 2))  # of every two pieces the second is divided
    record = random_record(rng, 3, 5, 9)._replace(
        parent=parent.astype(np.int32),
        taken=np.zeros(count, np.uint8),
        feature=np.zeros(count, np.int32),
        inside=np.zeros((count, 1), np.uint8),
    )
    options = Options(record, (3, 5), lambda own: np.ones((len(own), 3, 5), bool))
    for begin in range(0, count, 10):
        options.stretch(begin, min(begin + 10, count))
    assert len(options.kept) == 1
