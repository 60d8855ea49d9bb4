"""Displays in scikit-learn's manner: `from_...` draws, `plot` draws again. They need matplotlib."""

from marginbayes.plotting.bound import BoundDisplay
from marginbayes.plotting.evidence import EvidenceDisplay
from marginbayes.plotting.network import NetworkDisplay
from marginbayes.plotting.path import ScorePathDisplay
from marginbayes.plotting.reliability import ReliabilityDisplay
from marginbayes.plotting.strength import EdgeStrengthDisplay

__all__ = [
    "BoundDisplay",
    "EdgeStrengthDisplay",
    "EvidenceDisplay",
    "NetworkDisplay",
    "ReliabilityDisplay",
    "ScorePathDisplay",
]
