"""Where the time of a run goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Spent"]


class Spent:
    """Adds up seconds by name. Of blocks within one another, the inner one's time is not the outer one's.

    Args:
        clock: seconds since some instant.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        """Within this block time is spent on ``name``."""
        self._account()
        self._open.append(name)
        try:
            yield
        finally:
            self._account()
            self._open.pop()

    def _account(self) -> None:
        now = self._clock()
        if self._open:
            self._seconds[self._open[-1]] = self._seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now

    def taken(self) -> dict[str, float]:
        """``{"update_seconds": ...}`` since the last call."""
        found = {f"{name}_seconds": seconds for name, seconds in self._seconds.items()}
        self._seconds = {}
        return found
