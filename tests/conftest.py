"""Settings for all tests."""

from __future__ import annotations

import os

# Read by SciPy at its import; lets scikit-learn's check of array-API input run instead of being skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
