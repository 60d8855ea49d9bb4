"""Checks of certificates by code of its own: NumPy and the standard library, nothing that found the solution.

A solver claims an objective and a bound; `verify` computes both anew from the data and the evidence in the certificate,
and refuses it if either differs, if the bound does not follow, or if anything in the file was changed.
"""

# Each of these modules registers its check.
from marginbayes.verification import (  # noqa: F401
    combination,
    convex,
    exact_margin,
    exact_margin_general,
    exact_score,
    hybrid,
    markov,
    sequences,
)
from marginbayes.verification.check import Report, verify, verify_table
from marginbayes.verification.document import CertificateError, read_document, write_document

__all__ = ["CertificateError", "Report", "read_document", "verify", "verify_table", "write_document"]
