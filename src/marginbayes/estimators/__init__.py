"""The classifiers: scikit-learn estimators around encoding, learners and networks."""

from marginbayes.estimators.bayesnet import BayesNetClassifier

__all__ = ["BayesNetClassifier"]
