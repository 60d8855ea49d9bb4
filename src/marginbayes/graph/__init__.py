"""Directed acyclic graphs: reading, separating, comparing and drawing them."""

from marginbayes.graph.dag import Dag, moral_graph
from marginbayes.graph.renormalize import is_renormalizable

__all__ = ["Dag", "is_renormalizable", "moral_graph"]
