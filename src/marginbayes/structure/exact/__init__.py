"""Exact structures: certified optima of the soft margin, the binary soft margin and decomposable scores."""
