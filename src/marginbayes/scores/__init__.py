"""Scores of structures: decomposable ones from counts, and mutual information."""

from marginbayes.scores.decomposable import aic, bdeu, bic, log_likelihood
from marginbayes.scores.information import conditional_mutual_information, mutual_information

__all__ = ["aic", "bdeu", "bic", "conditional_mutual_information", "log_likelihood", "mutual_information"]
