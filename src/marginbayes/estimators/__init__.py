"""The classifiers: scikit-learn estimators around encoding, learners and networks."""

from marginbayes.estimators.aode import AODEClassifier
from marginbayes.estimators.bayesnet import BayesNetClassifier
from marginbayes.estimators.explain import Explanation

__all__ = ["AODEClassifier", "BayesNetClassifier", "Explanation"]
