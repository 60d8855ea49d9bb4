"""The classifiers: scikit-learn estimators around encoding, learners and networks."""

from marginbayes.estimators.aode import AODEClassifier
from marginbayes.estimators.bayesnet import BayesNetClassifier
from marginbayes.estimators.explain import Explanation
from marginbayes.estimators.stability import EdgeStrength, edge_strength

__all__ = ["AODEClassifier", "BayesNetClassifier", "EdgeStrength", "Explanation", "edge_strength"]
