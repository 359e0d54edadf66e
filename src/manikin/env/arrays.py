"""From the device to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["to_numpy"]


def to_numpy(value: Any) -> np.ndarray:
    """A torch tensor (any device) or array-like as NumPy, without importing torch."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
