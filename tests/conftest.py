"""Settings for all tests."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

# Read by SciPy at its import; lets scikit-learn's check of array-API input run instead of being skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Compiled kernels are kept by the file that they are in, but hold code of other files, too. So that tests never run
# what was compiled before a change, each state of the kernels has a place of its own.
_ROOT = Path(__file__).parents[1]
_KERNELS = sorted((_ROOT / "src" / "marginbayes" / "kernels").glob("*.py"))
_DIGEST = hashlib.sha256(b"".join(file.read_bytes() for file in _KERNELS)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(_ROOT / ".pytest_cache" / f"kernels-{_DIGEST}"))
# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
