"""Displays in scikit-learn's manner: `from_estimator` draws, `plot` draws again. They need matplotlib."""

from marginbayes.plotting.evidence import EvidenceDisplay
from marginbayes.plotting.network import NetworkDisplay
from marginbayes.plotting.reliability import ReliabilityDisplay

__all__ = ["EvidenceDisplay", "NetworkDisplay", "ReliabilityDisplay"]
