"""Optimisation in numbers only, without a Bayesian word: certificates and solvers."""

from marginbayes.solvers.certificate import Certificate
from marginbayes.solvers.learned import Learned
from marginbayes.solvers.moment import Moment

__all__ = ["Certificate", "Learned", "Moment"]
