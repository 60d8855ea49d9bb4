"""Certificates of exact margins: true ones hold, changed ones do not, with or without a new digest."""

from __future__ import annotations

import base64
import copy
import json

import numpy as np
import pytest

from marginbayes.structure import Constraints
from marginbayes.structure.exact import node
from marginbayes.structure.exact.learner import ExactMargin
from marginbayes.verification import (
    CertificateError,
    exact_margin_bound,
    exact_margin_linear,
    exact_margin_record,
    verify,
)
from marginbayes.verification.document import seal
from tests.oracles import records
from tests.oracles.exact import random_problem

N_OPTIONS = 7  # of each of five features


@pytest.fixture(scope="module")
def proved():
    """A problem with a tree of some depth, its document, and the data."""
    schema, rows = random_problem(9, [3, 3, 3, 3, 2, 3], 80)
    constraints = Constraints(forbidden=[("v1", "v2")])
    with pytest.MonkeyPatch.context() as patch:  # a list would make the tree shallow
        patch.setattr(node, "MANY", 0)
        patch.setattr(node, "FEW", 0)
        patch.setattr(node, "LITTLE", 0)
        found = ExactMargin(p=0.8, class_parents=1, constraints=constraints).learn(schema, rows)
    assert found.certificate.status == "optimal"
    assert found.certificate.evidence["nodes"] > 20
    return found.certificate.to_document(), rows


@pytest.fixture(scope="module")
def earlier(proved):
    """The same with the record as lists, as earlier versions wrote it."""
    document, rows = proved
    return seal(records.with_lists(document)), rows


def changed(document, *path, to):
    """The document with one entry replaced, sealed anew as a forger would."""
    other = copy.deepcopy(document)
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    other.pop("digest")
    return seal(other)


def refuse(document, rows, match, weights=None) -> None:
    with pytest.raises(CertificateError, match=match):
        verify(document, rows.codes, weights)


def test_the_certificate_holds_for_its_data_in_any_order(proved) -> None:
    document, rows = proved
    order = np.random.default_rng(0).permutation(len(rows))
    report = verify(document, rows.codes[:, order])
    assert report.gap <= 1e-6


def test_any_changed_field_breaks_the_seal(proved) -> None:
    document, rows = proved
    others = {"format": "no certificate", "version": "this program reads 1", "evidence": "evidence of another type"}
    for key in document.keys() - {"digest"}:
        other = {**document, key: "x" if not isinstance(document[key], float) else document[key] + 1e-12 + 1e-15}
        refuse(other, rows, others.get(key, "its digest does not fit"))


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("objective",), 1e3, "the objective is .*, not 1000.0"),
        (("evidence", "gamma"), 1.2, "the objective is"),
        (("evidence", "smoothing"), 0.9, "the objective is"),
        (("evidence", "margin"), "sbm", "multipliers belong to rows that there are not"),
        (("evidence", "class_parents"), 2, "does not treat every set of class parents once"),
        (("evidence", "weight"), 81.0, "the rows weigh 80.0, not 81.0"),
        (("evidence", "cardinalities"), [3, 3, 3, 3, 3, 3], "the objective is"),
        (("evidence", "constraints", "forbidden"), [], "only the bound .* is proved"),
        (("evidence", "redundant"), [[0, 3, 1]], "option 3 of feature 0 was left out, but option 1 is not the same"),
        (("evidence", "extra"), 1, r"has besides what it should, \['extra'\]"),
        (("sense",), "min", "the sense of such a certificate is 'max', not 'min'"),
    ],
)
def test_a_forged_claim_is_refused_although_it_is_sealed(proved, path, to, said) -> None:
    document, rows = proved
    refuse(changed(document, *path, to=to), rows, said)


def test_a_bound_that_is_too_low_is_refused(proved) -> None:
    document, rows = proved
    objective = document["objective"]
    loose = ExactMargin(p=0.8, class_parents=1, node_limit=5).learn(*random_problem(9, [3, 3, 3, 3, 2, 3], 80))
    claim = loose.certificate.to_document()
    assert claim["bound"] > objective + 1e-3
    verify(claim, rows.codes)
    refuse(changed(claim, "bound", to=claim["bound"] - 1e-4), rows, "only the bound .* is proved")
    refuse(changed(claim, "status", to="optimal"), rows, "is more than that of an optimum")


def test_another_structure_is_refused(proved) -> None:
    document, rows = proved
    parents = document["evidence"]["parents"]
    for v in range(1, len(parents)):
        other = copy.deepcopy(parents)
        other[v] = [] if parents[v] else [0]
        impossible = v in other[0] and 0 in other[v]
        said = f"the feature 'v{v}' cannot have the parents" if impossible else "the objective is"
        refuse(changed(document, "evidence", "parents", to=other), rows, said)
    forbidden = [[], [0], [0, 1], [0], [0], [0]]
    refuse(changed(document, "evidence", "parents", to=forbidden), rows, "the feature 'v2' cannot have the parents")
    cyclic = [[], [0, 3], [0], [0, 1], [0], [0]]
    refuse(changed(document, "evidence", "parents", to=cyclic), rows, "the structure has a cycle")


def test_a_record_of_lists_that_leaves_something_out_is_refused(earlier) -> None:
    document, rows = earlier
    proof = document["evidence"]["proof"]
    wholes = [p for p, parent in enumerate(proof["parent"]) if parent < 0]
    assert len(wholes) == 6  # no parent of the class, or one of five
    children = {p: [c for c, q in enumerate(proof["parent"]) if q == p] for p in range(len(proof["parent"]))}

    def altered(field, part, to, origin=document):
        return changed(origin, "evidence", "proof", field, part, to=to)

    for part, own in list(children.items())[:: max(1, len(children) // 25)]:
        if own:
            uncovered = rf"the parts \[{own[0]}, {own[1]}\] of the record do not cover the part they divide"
            refuse(altered("taken", own[0], not proof["taken"][own[0]]), rows, uncovered)
            refuse(altered("slots", own[0], [0, 1]), rows, uncovered)
            slots = proof["slots"][own[0]]
            two = [*slots, (slots[0] + N_OPTIONS) % (5 * N_OPTIONS)]
            for other, said in (([], "options that there are not"), (two, "options of several features")):
                pair = altered("slots", own[1], other, altered("slots", own[0], other))
                refuse(pair, rows, f"part {part} of the record is divided by {said}")
        elif proof["closed"][part] >= 0:
            refuse(altered("closed", part, -1), rows, "multipliers that bound a part of the record is -1, not")
    once = "does not treat every set of class parents once"
    refuse(altered("slots", wholes[0], proof["slots"][wholes[1]]), rows, once)
    last = len(proof["parent"]) - 1
    refuse(altered("parent", last, last + 1), rows, f"part {last} of the record comes before the part it belongs to")


def repacked(document, change):
    """The document with a record that was changed number by number."""
    columns = records.unpacked(document["evidence"]["proof"], N_OPTIONS)
    change(columns)
    return changed(document, "evidence", "proof", to=records.packed(columns, N_OPTIONS))


def test_a_record_that_leaves_something_out_is_refused(proved) -> None:
    document, rows = proved
    proof = records.unpacked(document["evidence"]["proof"], N_OPTIONS)
    count, sets, fixes = len(proof["parent"]), len(proof["multipliers"]), len(proof["fix_part"])
    children = {p: [c for c, q in enumerate(proof["parent"]) if q == p] for p in range(count)}

    def altered(said, *changes) -> None:
        def change(columns) -> None:
            for field, part, to in changes:
                columns[field][part] = to

        refuse(repacked(document, change), rows, said)

    for part, own in list(children.items())[:: max(1, count // 25)]:
        if not own:
            for to in (-1, sets, 2**30):
                altered(f"multipliers that bound a part of the record is {to}, not", ("closed", part, to))
            continue
        uncovered = rf"the parts \[{own[0]}, {own[1]}\] of the record do not cover the part they divide"
        altered(uncovered, ("taken", own[0], 1 - proof["taken"][own[0]]))
        altered(uncovered, ("taken", own[0], 2))
        altered(uncovered, ("inside", own[0], proof["inside"][own[0]] ^ 2))
        altered(uncovered, ("feature", own[0], (proof["feature"][own[0]] + 1) % 5))
        for field, to in (("inside", 0), ("inside", 1 << N_OPTIONS), ("feature", 5), ("feature", -1)):
            said = f"part {part} of the record is divided by options that there are not"
            altered(said, (field, own[0], to), (field, own[1], to))
    once = "does not treat every set of class parents once"
    wholes = [p for p, parent in enumerate(proof["parent"]) if parent < 0]
    altered(once, ("feature", wholes[0], proof["feature"][wholes[1]]))
    altered(once, ("feature", wholes[0], 6))
    for to in (count, -2):
        altered(f"part {count - 1} of the record comes before the part it", ("parent", count - 1, to))
    altered("do not cover the part they divide", ("parent", count - 1, next(p for p, c in children.items() if not c)))
    for fix in range(0, fixes, max(1, fixes // 10)):
        for to in (-1, count):
            altered(f"the part of a fix is {to}, not a whole number", ("fix_part", fix, to))
        for to in (-1, 5):
            altered(rf"the feature of a fix in part \d+ of the record is {to}", ("fix_feature", fix, to))
        for to in (-1, sets):
            altered(f"multipliers that bound a part of the record is {to}, not", ("fix_by", fix, to))
        altered("takes out options that there are not", ("fix_options", fix, 1 << N_OPTIONS))


def outcome(document, rows) -> str | float:
    """The bound, or the first words of why it is refused."""
    try:
        return verify(document, rows.codes).bound
    except CertificateError as error:
        return " ".join(str(error).split()[:3])


def test_multipliers_are_found_in_any_block(proved) -> None:
    document, rows = proved

    def later(columns) -> None:
        columns["multipliers"] = [([], [])] * 600 + columns["multipliers"]
        for field in ("closed", "fix_by"):
            columns[field] = [by + 600 if by >= 0 else by for by in columns[field]]

    moved = repacked(document, later)
    assert verify(moved, rows.codes) == verify(document, rows.codes)
    lists = seal(records.with_lists(moved))
    assert verify(lists, rows.codes) == verify(document, rows.codes)
    damaged = [*moved["evidence"]["proof"]["multipliers"]]
    damaged[1] = damaged[0][:-4]  # that nobody asks for
    refuse(changed(moved, "evidence", "proof", "multipliers", to=damaged), rows, "cannot be unpacked")


def test_what_is_kept_or_computed_together_changes_no_bound(proved, monkeypatch: pytest.MonkeyPatch) -> None:
    document, rows = proved
    found = verify(document, rows.codes)
    for module, name, value in (
        (exact_margin_linear, "AT_ONCE", 1),
        (exact_margin_linear, "BLOCK_BYTES", 0),
        (exact_margin_linear, "FIRST_BYTES", 0),
        (exact_margin_linear, "BASE_BYTES", 0),
        (exact_margin_bound, "KEPT_BYTES", 0),
        (exact_margin_record, "OPTIONS", 1),
        (exact_margin_record, "PARTS", 1),
        (exact_margin_record, "PARTS", 7),
    ):
        monkeypatch.setattr(module, name, value)
        assert verify(document, rows.codes).bound == pytest.approx(found.bound, rel=1e-12)
        loose = changed(document, "bound", to=found.bound - 1e-4)
        refuse(loose, rows, "only the bound .* is proved")


def test_progress_is_told_up_to_the_last_part(proved, monkeypatch: pytest.MonkeyPatch) -> None:
    document, rows = proved
    monkeypatch.setattr(exact_margin_record, "PARTS", 5)
    told: list[tuple[int, int]] = []
    assert verify(document, rows.codes, progress=lambda *done: told.append(done)) == verify(document, rows.codes)
    count = told[-1][1]
    assert told == [(min(done, count), count) for done in range(5, count + 5, 5)]
    assert len(told) > 2


def test_a_packed_record_is_short(proved, earlier) -> None:
    proof, lists = (document["evidence"]["proof"] for document, _ in (proved, earlier))
    columns = records.unpacked(proof, N_OPTIONS)
    entries = sum(len(rows) for rows, _ in columns["multipliers"])
    # Three bytes of a share are as good as random, and four characters long.
    assert sum(map(len, proof["multipliers"])) < 5 * entries
    assert len(json.dumps(proof)) < 0.7 * len(json.dumps(lists))


def test_options_that_are_taken_out_for_nothing_are_refused(proved) -> None:
    document, rows = proved
    bound = document["bound"]
    proof = records.unpacked(document["evidence"]["proof"], N_OPTIONS)
    refused = 0
    for feature in range(5):

        def change(columns, feature=feature) -> None:
            for field, to in (("part", 0), ("feature", feature), ("options", (1 << N_OPTIONS) - 1), ("by", 0)):
                columns[f"fix_{field}"].insert(0, to)

        refuse(repacked(document, change), rows, "only the bound")
    for fix in range(0, len(proof["fix_part"]), 3):

        def more(columns, fix=fix) -> None:
            columns["fix_options"][fix] = (1 << N_OPTIONS) - 1

        said = outcome(repacked(document, more), rows)
        assert said in ("only the bound", bound)
        refused += said != bound
    assert refused > 0


@pytest.mark.parametrize("name", [*records.NUMBERS, *records.OPTIONS, "taken", "multipliers", "sets", "format"])
def test_a_column_that_is_lost_or_damaged_is_refused(proved, name: str) -> None:
    document, rows = proved
    proof = document["evidence"]["proof"]
    without = {key: value for key, value in proof.items() if key != name}
    refuse(changed(document, "evidence", "proof", to=without), rows, "the record lacks")
    other = {"sets": [-1, 10**9, None, proof["sets"] - 256], "format": ["packed-2", 3]}
    if name in other:
        for to in other[name]:
            refuse(changed(document, "evidence", "proof", name, to=to), rows, "do not hold|this program reads")
        return
    texts = proof[name] or [records.text_of(b"")]
    damaged = [
        ["no text"],
        [7],
        [None],
        [base64.b64encode(b"not compressed").decode()],
        [texts[0][:-8]],
        [records.text_of(b"\0" * 4 * 9999 + b"\1")],
        "abc",
        None,
        *([[], [*texts, records.text_of(b"\2" * 4)]] if name != "listed" else []),
    ]
    for to in damaged:
        refuse(changed(document, "evidence", "proof", name, to=to), rows, "record|lists|multipliers|cannot be read")


@pytest.mark.parametrize(
    ("rows", "shares", "said"),
    [
        ([0], [-1], "multipliers are negative, or a row has two"),
        ([0, 0], [1, 1], "multipliers are negative, or a row has two"),
        ([0], [(1 << 24) + 1], "multipliers exceed the weight of their sample"),
        ([0, 1], [1 << 23, (1 << 23) + 1], "multipliers exceed the weight of their sample"),
        ([10**6], [1], "multipliers belong to rows that there are not"),
        ([-1], [1], "multipliers belong to rows that there are not"),
        ([5, 2], [1, 1], "rows are out of order|rows that there are not"),
    ],
)
def test_multipliers_outside_their_range_are_refused(proved, earlier, rows, shares, said) -> None:
    document, data = proved
    sets = len(records.unpacked(document["evidence"]["proof"], N_OPTIONS)["multipliers"])
    for place in (0, sets // 2, sets - 1):

        def change(columns, place=place) -> None:
            columns["multipliers"][place] = rows, shares

        refuse(repacked(document, change), data, said)
        text = records.one_text(rows, shares)
        refuse(changed(earlier[0], "evidence", "proof", "multipliers", place, to=text), data, said)


def test_other_data_are_refused(proved) -> None:
    document, rows = proved
    codes = rows.codes.copy()
    codes[1, 0] = (codes[1, 0] + 1) % 3
    with pytest.raises(CertificateError, match="the objective is"):
        verify(document, codes)
    refuse(document, rows, "the rows weigh 120.0, not 80.0", np.full(len(rows), 1.5))


def test_records_are_read_as_earlier_versions_wrote_them(proved, earlier) -> None:
    document, rows = earlier
    assert verify(document, rows.codes) == verify(proved[0], rows.codes)
    assert verify(repacked(proved[0], lambda _: None), rows.codes) == verify(proved[0], rows.codes)
    proof = document["evidence"]["proof"]
    assert proof["listed"] == []
    older = {name: part for name, part in proof.items() if name != "listed"}
    assert verify(changed(document, "evidence", "proof", to=older), rows.codes).gap <= 1e-6
