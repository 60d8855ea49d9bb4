import numpy as np
import pytest

from marginbayes import Dag
from marginbayes.solvers import Certificate, Moment
from marginbayes.structure import StructureResult
from marginbayes.verification import CertificateError, read_document, verify, write_document
from marginbayes.verification.check import CHECKS


def claim(**changes):
    fields = {"kind": "sum", "sense": "max", "objective": 3.0, "bound": 4.0, "status": "time limit", "seconds": 1.0}
    return Certificate(
        **{
            **fields,
            "trace": [(0.5, 1.0, 9.0)],
            "evidence": {"extra": np.array([1.0]), "cardinalities": [3]},
            **changes,
        }
    )


@pytest.fixture(autouse=True)
def sum_check(monkeypatch):
    """A kind whose objective is the sum of the codes and whose bound is that plus the evidence."""

    def check(document, codes, weights):
        value = float((codes * weights).sum())
        return value, value + sum(document["evidence"]["extra"])

    monkeypatch.setitem(CHECKS, "sum", check)


def test_the_gap_is_relative_to_an_objective_above_one():
    assert claim(objective=-10.0, bound=-5.0).gap == 0.5
    assert claim(objective=0.1, bound=0.2).gap == pytest.approx(0.1)
    assert Moment(0.0, -10.0, -5.0).gap == 0.5


@pytest.mark.parametrize(("sense", "bound"), [("max", 2.0), ("min", 4.0)])
def test_a_bound_on_the_wrong_side_is_refused(sense, bound):
    with pytest.raises(ValueError, match="proves nothing"):
        claim(sense=sense, bound=bound)


def test_a_true_certificate_passes(tmp_path):
    path = tmp_path / "c.json"
    write_document(claim().to_document(), path)
    report = verify(read_document(path), [[1, 2]])
    assert (report.objective, report.bound) == (3.0, 4.0)


def test_a_false_objective_and_a_bound_that_does_not_follow_are_refused():
    with pytest.raises(CertificateError, match="objective is"):
        verify(claim(objective=3.5).to_document(), [[1, 2]])
    with pytest.raises(CertificateError, match="is proved"):
        verify(claim(bound=3.5).to_document(), [[1, 2]])


def test_a_change_of_any_field_is_noticed():
    document = claim().to_document()
    for key in document:
        changed = {**document, key: [document[key]]}
        with pytest.raises(CertificateError):
            verify(changed, [[1, 2]])
        del changed[key]
        with pytest.raises(CertificateError):
            verify(changed, [[1, 2]])


def test_an_infinite_bound_survives_the_file(tmp_path):
    path = tmp_path / "c.json"
    write_document(claim(bound=float("inf")).to_document(), path)
    assert verify(read_document(path), [[1, 2]]).bound == float("inf")


def test_certificates_that_say_the_same_are_equal():
    assert claim() == claim()
    assert hash(claim()) == hash(claim())
    assert claim() != claim(bound=5.0)
    assert claim() != claim(evidence={"extra": np.array([2.0]), "cardinalities": [3]})
    assert claim() != "a certificate"


@pytest.mark.parametrize(
    ("solver", "status"),
    [
        ("optimal", "finished"),
        ("stalled", "finished"),
        ("iteration limit; rows were scaled", "iteration limit"),
        ("time limit within |u| <= 3", "time limit"),
        ("interrupted within |u| <= 3", "interrupted"),
    ],
)
def test_a_result_has_not_finished_if_its_solver_ended_early(solver, status):
    found = StructureResult(Dag.naive(["y", "x"]), claim(status=solver))
    assert (found.status, found.interrupted) == (status, status == "interrupted")
    assert StructureResult(found.dag, claim(status=solver), status="interrupted").status == "interrupted"
