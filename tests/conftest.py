"""Settings for all tests."""

from __future__ import annotations

import os
import signal

# Read by SciPy at its import; lets scikit-learn's check of array-API input run instead of being skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
