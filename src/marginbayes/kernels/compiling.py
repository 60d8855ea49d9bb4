"""The compiler, for files that can be written and for those that cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["inner", "lent", "njit"]


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As numba's; where no folder can be written to keep the result, a function is compiled anew in every process."""

    # Nothing calls a kernel by its address, and the code for that takes time to make.
    options = {"no_cfunc_wrapper": True, **options}

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:
            return numba.njit(**{**options, "cache": False})(function)
        except KeyError:
            if "_nrt" not in options:
                raise
            # An option of numba's own, which may go one day: references are counted then, as everywhere else.
            return njit(**{name: value for name, value in options.items() if name != "_nrt"})(function)

    return compiled


def lent(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `njit`, for a kernel that makes no arrays: it does not count references to those that it is given.

    For small steps with many arrays that takes a tenth of the time. A kernel called from it that does make arrays has
    to say ``_nrt=True``.
    """
    return njit(_nrt=False, **options)


def inner(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `lent`, and the kernel becomes a part of those that call it."""
    return lent(forceinline=True, **options)
