"""Whether Ctrl-C or a limit cut a result short: asked of every learner's result, and answered in one place."""

from __future__ import annotations

import re

from marginbayes.solvers.certificate import Certificate

__all__ = ["Learned"]


class Learned:
    """What every result of a learner has: its own status, and that of the solver if it gave a certificate.

    A learner has not finished if its solver ended early: the status is then that of the solver.
    """

    certificate: Certificate | None
    status: str

    def __post_init__(self) -> None:
        if self.status == "finished" and self.certificate is not None:
            early = re.match(r"interrupted|\w+ limit", self.certificate.status)
            if early is not None:
                object.__setattr__(self, "status", early[0])  # results are frozen

    @property
    def interrupted(self) -> bool:
        """Whether this is the best so far, and not what a whole run would give."""
        solver = "" if self.certificate is None else self.certificate.status
        return self.status == "interrupted" or solver.startswith("interrupted")
