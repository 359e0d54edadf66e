"""What is seen where nothing is: a soft gradient, paler towards the horizon."""

from __future__ import annotations

import numpy as np

__all__ = ["backdrop"]

_BELOW, _ABOVE = np.array([0.86, 0.88, 0.90], np.float32), np.array([0.52, 0.64, 0.78], np.float32)


def backdrop(up: np.ndarray) -> np.ndarray:
    """Colour (..., 3) in 0..1 seen in a unit direction whose vertical component is ``up`` (...)."""
    t = np.clip(0.35 + 0.65 * up, 0, 1)[..., None].astype(np.float32)
    return _BELOW + t * (_ABOVE - _BELOW)
