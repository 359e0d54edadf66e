"""Where the time of a run goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Spent"]


class _Open(threading.local):
    """Blocks that a thread is in, and since when it is in the innermost."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.since = 0.0


class Spent:
    """Adds up seconds by name. Of blocks within one another, the inner one's time is not the outer one's. Threads are
    accounted for each on its own.

    Args:
        clock: seconds since some instant.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._mine, self._lock = _Open(), threading.Lock()

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        """Within this block time is spent on ``name``."""
        self._account()
        self._mine.names.append(name)
        try:
            yield
        finally:
            self._account()
            self._mine.names.pop()

    def _account(self) -> None:
        now, mine = self._clock(), self._mine
        if mine.names:
            with self._lock:
                self._seconds[mine.names[-1]] = self._seconds.get(mine.names[-1], 0.0) + now - mine.since
        mine.since = now

    def taken(self) -> dict[str, float]:
        """``{"update_seconds": ...}`` since the last call."""
        with self._lock:
            found = {f"{name}_seconds": seconds for name, seconds in self._seconds.items()}
            self._seconds = {}
        return found
