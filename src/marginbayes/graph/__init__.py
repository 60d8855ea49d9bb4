"""Directed acyclic graphs: reading, separating, comparing and drawing them."""

from marginbayes.graph.dag import Dag, moral_graph

__all__ = ["Dag", "moral_graph"]
