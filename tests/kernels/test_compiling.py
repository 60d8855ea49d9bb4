"""Compiled functions where nothing can be kept on the disk."""

from typing import Any

import numba
import pytest

from marginbayes.kernels.compiling import lent, njit


def test_without_a_folder_to_keep_it_a_function_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, asked = numba.njit, []

    def nowhere(**options: Any) -> Any:
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'twice': no locator available")
        return compiler(**options)

    with monkeypatch.context() as patch:
        patch.setattr(numba, "njit", nowhere)

        @njit(cache=True, nogil=True)
        def twice(x: float) -> float:
            return 2.0 * x

    assert twice(3.0) == 6.0
    always = {"nogil": True, "no_cfunc_wrapper": True}
    assert asked == [{"cache": True, **always}, {"cache": False, **always}]


def test_a_compiler_that_always_counts_references_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = numba.njit

    def strict(**options: Any) -> Any:
        if odd := options.keys() - {"cache", "nogil", "no_cfunc_wrapper"}:
            raise KeyError(f"Unrecognized options: {odd}")
        return compiler(**options)

    monkeypatch.setattr(numba, "njit", strict)
    assert lent(nogil=True)(lambda x: 2.0 * x)(3.0) == 6.0
    with pytest.raises(KeyError, match="quick"):
        njit(quick=True)(lambda x: x)
