"""Networks: graph and tables together, exact inference, files."""

from marginbayes.network.network import Network

__all__ = ["Network"]
