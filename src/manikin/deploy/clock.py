"""Time for a control loop: the machine's, or one that moves only when somebody waits."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SteppedClock", "WallClock"]


class Clock(Protocol):
    """What a loop asks about time."""

    def now(self) -> float:
        """[s] since some moment."""

    def wait_until(self, moment: float) -> None:
        """Return once :meth:`now` is ``moment`` [s] or later."""


class WallClock:
    """The machine's own time."""

    def now(self) -> float:
        return time.monotonic()

    def wait_until(self, moment: float) -> None:
        left = moment - time.monotonic()
        if left > 0:
            time.sleep(left)


class SteppedClock:
    """Time that passes only in :meth:`wait_until` and :meth:`spend`, so that a run is the same on every machine."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def wait_until(self, moment: float) -> None:
        self._now = max(self._now, moment)

    def spend(self, seconds: float) -> None:
        """Let time pass, as a slow policy does."""
        self._now += seconds
