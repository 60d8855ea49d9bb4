"""The record of a search: made part by part or in bulk, packed and unpacked."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from marginbayes.structure.exact.bound import Multipliers
from marginbayes.structure.exact.packing import SETS, MultiplierBlocks
from marginbayes.structure.exact.proof import Proof, Subtree

N_OPTIONS = 11


def random_multipliers(rng) -> Multipliers:
    rows = np.flatnonzero(rng.random(300) < rng.choice([0.0, 0.1, 0.9]))
    return Multipliers.of(rows, rng.integers(0, 1 << 24, len(rows), endpoint=True))


def some_options(rng):
    options = rng.random(N_OPTIONS) < 0.4
    options[rng.integers(N_OPTIONS)] = True
    return options


def taken_out(feature: int, options: np.ndarray) -> np.ndarray:
    """Options of one feature among nine."""
    gone = np.zeros((9, N_OPTIONS), bool)
    gone[feature] = options
    return gone


def begun() -> tuple[Proof, Multipliers]:
    """A record with two whole problems, the second divided, and multipliers that it knows."""
    rng = np.random.default_rng(1)
    proof, given = Proof(N_OPTIONS), random_multipliers(rng)
    proof.add(-1, (0,), False)
    part = proof.add(-1, (1,), False)
    proof.fix(part, taken_out(3, some_options(rng)), given)
    for taken in (True, False):
        proof.add(part, (2 * N_OPTIONS, 2 * N_OPTIONS + 10), taken)
    proof.close(0, given)
    return proof, given


def plain(proof: Proof) -> dict[str, list]:
    """Everything in a record but blocks of multipliers, which follow from the multipliers."""
    kept = [proof.multipliers[k] for k in range(len(proof.multipliers))]
    columns = {name: array.tolist() for name, array in proof.arrays().items()}
    return {**columns, "multipliers": [(m.rows.tolist(), m.shares.tolist()) for m in kept]}


@pytest.mark.parametrize("seed", range(5))
def test_a_search_in_bulk_leaves_the_record_of_its_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, sets = 2 * int(rng.integers(1, 30)), int(rng.integers(0, 2 * SETS))
    own = [random_multipliers(rng) for _ in range(sets)]
    parent = np.repeat(np.r_[-1, rng.integers(0, np.arange(1, count))][: count // 2], 2).astype(np.int32)
    parent = np.minimum(parent, np.arange(count) - 1).astype(np.int32)
    feature, inside = rng.integers(0, 9, count), np.array([some_options(rng) for _ in range(count)])
    taken = np.arange(count) % 2 == 0
    fixes = int(rng.integers(0, 40))
    fix_part, fix_by = rng.integers(-1, count, fixes), rng.integers(-1, sets, fixes)
    fix_feature = rng.integers(0, 9, fixes)
    fix_options = np.array([some_options(rng) for _ in range(fixes)]).reshape(fixes, N_OPTIONS)
    closed_part = rng.permutation(np.arange(-1, count))[: int(rng.integers(count))]
    closed_by, listed = rng.integers(-1, sets, len(closed_part)), rng.random(len(closed_part)) < 0.3

    bulk, given = begun()
    start = np.cumsum([0, *(len(m.rows) for m in own)])
    rows, shares = (np.concatenate([[], *(getattr(m, name) for m in own)]) for name in ("rows", "shares"))
    numbers = (parent, feature, fix_part, fix_feature, fix_by, closed_part, closed_by, rows, shares)
    p, f, fp, ff, fb, cp, cb, r, s = (n.astype(np.int32) for n in numbers)
    first = bulk.extend(2, given, Subtree(p, taken, f, inside, fp, ff, fix_options, fb, cp, cb, listed, start, r, s))

    steps, given = begun()
    if (fix_by < 0).any() or (closed_by < 0).any():
        steps.position(given)
    for multipliers in own:
        steps.position(multipliers)
    of = [*own, given]
    for above, i, options, inner in zip(parent, feature, inside, taken, strict=True):
        slots = tuple((i * N_OPTIONS + np.flatnonzero(options)).tolist())
        steps.add(2 if above < 0 else first + int(above), slots, bool(inner))
    for part, i, options, by in zip(fix_part, fix_feature, fix_options, fix_by, strict=True):
        steps.fix(2 if part < 0 else first + int(part), taken_out(int(i), options), of[by])
    for part, by, looked in zip(closed_part, closed_by, listed, strict=True):
        steps.close(2 if part < 0 else first + int(part), of[by], bool(looked))
    assert first == 4
    assert plain(bulk) == plain(steps)
    assert bulk.evidence() == steps.evidence()
    assert plain(Proof.from_arrays(bulk.arrays())) == plain(bulk)


def test_evidence_can_be_pickled_and_stays_what_it_was() -> None:
    proof, _ = begun()
    evidence = proof.evidence()
    assert pickle.loads(pickle.dumps(evidence)) == evidence == dict(evidence)
    assert len(evidence) == len(list(evidence))


def test_multipliers_come_back_from_blocks_as_they_went_in() -> None:
    rng = np.random.default_rng(0)
    kept, own = MultiplierBlocks(), [random_multipliers(rng) for _ in range(2 * SETS + 7)]
    for multipliers in own:
        kept.append(multipliers)
    assert len(kept) == len(own)
    assert len(kept.blocks) == 2
    for place in rng.permutation(len(own)):
        np.testing.assert_array_equal(kept[place].rows, own[place].rows)
        np.testing.assert_array_equal(kept[place].shares, own[place].shares)


def test_multipliers_are_kept_once_while_somebody_holds_them() -> None:
    proof, given = begun()
    assert (proof.position(given), len(proof.multipliers)) == (0, 1)
    assert proof.known(Multipliers(given.rows, given.shares)) == -1
    other = proof.at(0)
    assert (proof.position(other), proof.known(other)) == (0, 0)
