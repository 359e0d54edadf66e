"""A door that counts as open only past a right angle: where the robot pulls it from, and how it is pushed on."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from manikin.math import atan2, quat_from_yaw, quat_mul, wrap_to_pi
from manikin.tasks.home.doors.approach import FRIDGE, Approach, aim, floor

__all__ = ["HANGS", "beside"]

HANGS = aim(45.0, 180.0)  # a hand that hangs down, about as at rest
_TURNED, _BACK = 0.2, 1.25  # [rad] of the line from where the door faces, and [m] where it ends, where there is room
_LINES = np.linspace(0.0, 0.9, 19)  # [rad] that are tried
_BACKS = np.linspace(0.7, 1.25, 12)  # [m] likewise
_NEAREST, _FARTHEST = 0.8, 0.95  # [m] from the handle where it is taken
_ROOM = 0.33  # [m] that the base wants around it
_TIGHT = 20.0  # [rad/m] likewise


def beside(layout: str, foot: Tensor, out: Tensor, sense: Tensor, base: Tensor) -> tuple[Approach, Tensor, Tensor]:
    """The line from which a door is pulled so that the robot comes round its edge later: from beside its handle, away
    from the hinge; with (n,) [m] from the handle where the base takes it, and where it has pulled it to.

    Args:
        layout: of an apartment.
        foot: (n, 3) [m] the handle.
        out: (n,) [rad] where the door faces, shut.
        sense: (n,) of its turn, 1 to the left, -1 to the right.
        base: (n, 3) x, y [m] and yaw of the base.
    """
    to = torch.linalg.vector_norm(base[:, :2] - foot[:, :2], dim=1)
    yaw = out[:, None] - sense[:, None] * torch.tensor(_LINES.tolist())  # (n, lines)
    way = torch.stack([torch.cos(yaw), torch.sin(yaw)], -1)
    near = to.clamp(_NEAREST, _FARTHEST)
    backs = torch.tensor(_BACKS.tolist())
    ends = torch.cat([near[:, None], backs.expand(len(to), -1)], 1)  # (n, 1 + backs)
    places = foot[:, None, None, :2] + ends[:, None, :, None] * way[:, :, None]
    free = floor(layout).clearance_at(places.numpy(force=True).reshape(-1, 2)).reshape(places.shape[:3])
    least = np.minimum(free[..., :1], free[..., 1:])
    cost = np.abs(_LINES[:, None] - _TURNED) + np.abs(_BACKS - _BACK) + _TIGHT * np.maximum(_ROOM - least, 0.0)
    best = cost.reshape(len(to), -1).argmin(1)
    line = torch.tensor((best // len(_BACKS)).tolist())
    end = torch.tensor((best % len(_BACKS)).tolist())
    facing = wrap_to_pi(yaw.gather(1, line[:, None])[:, 0] + math.pi)
    back = backs[end]
    hand = quat_mul(quat_from_yaw(facing), FRIDGE.like(foot))
    return Approach(foot, facing, hand), torch.minimum(near, back), back
