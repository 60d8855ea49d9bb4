import numpy as np
import pytest

from marginbayes import BayesNetClassifier
from marginbayes.verification import CertificateError
from marginbayes.verification.table import encode


def test_codes_equal_those_of_the_library():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200)),
            "flag": rng.integers(0, 2, 200),
            "word": rng.choice(["a", "b", None], 200),
        }
    )
    y = np.where((frame["number"].fillna(0) > 0) ^ (rng.random(200) < 0.1), "yes", "no")
    for missing in ("available", "level"):
        clf = BayesNetClassifier("nb", missing=missing).fit(frame, y)
        schema = [{"name": v.name, "levels": v.levels, "cuts": v.cuts} for v in clf.schema_.variables]
        codes = encode(schema, {**{c: frame[c].tolist() for c in frame}, clf.schema_.names[0]: list(y)})
        np.testing.assert_array_equal(codes[1:], clf._rows(frame).codes[1:])
        np.testing.assert_array_equal(np.array(clf.classes_)[codes[0]], y)


def test_a_missing_column_and_a_word_among_numbers_are_named():
    schema = [{"name": "x", "levels": ["low", "high"], "cuts": [1.0]}]
    with pytest.raises(CertificateError, match="'x'"):
        encode(schema, {})
    with pytest.raises(CertificateError, match="'many'"):
        encode(schema, {"x": ["many"]})
