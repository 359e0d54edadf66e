"""Which fingers touch which things, of tasks that count every touch as a grasp, however light.

:attr:`manikin.Grasp.value` is stricter: there a finger must press with a least force, in its closing direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manikin.scene.handles.grasp import Grasp

__all__ = ["all_fingers_touch", "fingers_touch"]


def fingers_touch(grasps: Sequence[Grasp]) -> Tensor:
    """(n, k, fingers) bool: which finger touches which of the k things.

    Args:
        grasps: one per thing, all of grippers with the same number of fingers.
    """
    return torch.stack([g.force for g in grasps], 1).count_nonzero(-1) > 0


def all_fingers_touch(grasps: Sequence[Grasp]) -> Tensor:
    """(n, k) bool: every finger touches the thing.

    Args:
        grasps: as for :func:`fingers_touch`.
    """
    return fingers_touch(grasps).all(-1)
