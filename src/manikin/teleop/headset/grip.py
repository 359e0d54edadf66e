"""A trigger closes a hand whose fingers are joints of the robot and have no command of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manikin.control.coupled import ToolFrames

__all__ = ["FingerGrip"]

# of what the joint does that presses most; one that presses less turns a finger aside, and stays
ASIDE = 0.1


class FingerGrip:
    """Of one tool. Open is the robot's rest. Closed is a fist where one is declared; else every joint that presses a
    pad as its finger closes is at its limit.

    Args:
        frames: of the tool, the first.
        fist: (joints,) [rad], those of all groups.

    Attributes:
        moves: (joints,) bool, those that close it; none for a tool without fingers.
    """

    def __init__(self, frames: ToolFrames, fist: Sequence[float] | None = None) -> None:
        low, high = frames.limits.T
        self._open = rest = np.clip(frames.rest, low, high)
        carries = np.abs(frames.jacobians(rest)[0]).max(0) > 1e-9  # the tool itself
        if fist is not None:
            self._closed = np.clip(np.where(carries, rest, fist), low, high)
            self.moves = self._closed != rest
            return
        presses = np.where(carries, 0.0, frames.pressing(frames.tools[0], rest))
        self.moves = np.abs(presses) > max(1e-6, ASIDE * float(np.abs(presses).max()))
        self._closed = np.where(self.moves, np.where(presses > 0, high, low), rest)

    def solve(self, grip: float, q: np.ndarray) -> np.ndarray:
        """(joints,) [rad] for a grip from -1 (closed) to 1; joints that do not close it stay as in ``q``."""
        share = (1.0 - grip) / 2.0
        return np.where(self.moves, self._open + share * (self._closed - self._open), q)
