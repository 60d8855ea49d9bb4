"""Parts of the rows, and threads that work on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import effective_n_jobs

__all__ = ["in_threads", "row_parts"]

T = TypeVar("T")

# Rows below which threads cost more than they save.
MANY = 20_000


def row_parts(n: int, count: int) -> list[slice]:
    """Consecutive parts of n rows: so many where there are many rows, whatever the number of threads.

    So sums over the parts do not depend on the number of threads.
    """
    step = max(1, n if n < MANY else -(-n // count))
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]


def in_threads(work: Callable[[slice], T], parts: Sequence[slice], n_jobs: int | None) -> list[T]:
    """What the work makes of each part, on as many threads as are wanted."""
    workers = min(effective_n_jobs(n_jobs), len(parts)) if len(parts) > 1 else 1
    if workers <= 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, parts))
