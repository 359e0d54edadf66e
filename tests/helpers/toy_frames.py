"""Made-up frames of a LeRobot dataset. Imports no torch, so that a process that uses it starts quickly."""

from __future__ import annotations

import numpy as np

FEATURES = {
    "observation.state": ("float32", (3,), ["x", "y", "z"]),
    "observation.images.top": ("video", (32, 48, 3), None),
    "action": ("float32", (2,), None),
    "next.done": ("bool", (1,), None),
}


def frames(number: int, length: int) -> dict[str, np.ndarray]:
    draw = np.random.Generator(np.random.Philox(number))
    rows, columns, t = np.ogrid[:32, :48, :length]
    shade = ((rows * 3 + columns * 2 + t * 7 + number * 40) % 256).transpose(2, 0, 1).astype(np.uint8)
    return {
        "observation.state": draw.normal(number, 2, (length, 3)).astype(np.float32),
        "observation.images.top": np.repeat(shade[..., None], 3, 3),
        "action": draw.uniform(-1, 1, (length, 2)).astype(np.float32),
        "next.done": (np.arange(length) == length - 1)[:, None],
    }
