"""Learning rates over a run."""

from __future__ import annotations

import math

__all__ = ["cosine", "warm_up"]


def warm_up(step: int, steps: int) -> float:
    """Factor of gradient step ``step``, counted from 0: ``(step + 1) / steps`` up to 1; 1 where ``steps`` is 0."""
    return min(1.0, (step + 1) / steps) if steps else 1.0


def cosine(progress: float) -> float:
    """Factor from 1 at ``progress`` 0 to 0 at 1: ``(1 + cos(pi * progress)) / 2`` (arXiv:1608.03983, no restarts)."""
    return 0.5 * (1.0 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))
