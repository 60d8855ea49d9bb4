"""Displays in scikit-learn's manner: `from_estimator` draws, `plot` draws again. They need matplotlib."""

from marginbayes.plotting.network import NetworkDisplay

__all__ = ["NetworkDisplay"]
