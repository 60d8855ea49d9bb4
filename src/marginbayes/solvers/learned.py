"""Whether Ctrl-C cut a result short: asked of every learner's result, and answered in one place."""

from __future__ import annotations

from marginbayes.solvers.certificate import Certificate

__all__ = ["Learned"]


class Learned:
    """What every result of a learner has: its own status, and that of the solver if it gave a certificate."""

    certificate: Certificate | None
    status: str

    @property
    def interrupted(self) -> bool:
        """Whether this is the best so far, and not what a whole run would give."""
        solver = "" if self.certificate is None else self.certificate.status
        return self.status == "interrupted" or solver.startswith("interrupted")
