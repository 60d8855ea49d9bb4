"""The compiler, for files that can be written and for those that cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["njit"]


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As numba's; where no folder can be written to keep the result, a function is compiled anew in every process."""

    # Nothing calls a kernel by its address, and the code for that takes time to make.
    options = {"no_cfunc_wrapper": True, **options}

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:
            return numba.njit(**{**options, "cache": False})(function)

    return compiled
