"""Threads for kernels, which release the lock of the interpreter."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import joblib

Part = TypeVar("Part")
Answer = TypeVar("Answer")

_POOL: ContextVar[tuple[ThreadPoolExecutor, int] | None] = ContextVar("threads", default=None)


def as_number(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` stands for: None is one, -1 is one per processor."""
    return int(joblib.effective_n_jobs(n_jobs))


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Let `run_all` use threads in this block, counted as scikit-learn counts them."""
    number = as_number(n_jobs)
    if number == 1:
        yield
        return
    with ThreadPoolExecutor(number, thread_name_prefix="maxmargin") as pool:
        token = _POOL.set((pool, number))
        try:
            yield
        finally:
            _POOL.reset(token)


def n_threads() -> int:
    """Return how many threads `run_all` uses here."""
    pool = _POOL.get()
    return 1 if pool is None else pool[1]


def run_all(function: Callable[[Part], Answer], parts: Sequence[Part]) -> list[Answer]:
    """Return the answers of ``function`` for all parts, in their order; the first error is raised."""
    pool = _POOL.get()
    if pool is None or len(parts) < 2:
        return [function(part) for part in parts]
    return list(pool[0].map(function, parts))
