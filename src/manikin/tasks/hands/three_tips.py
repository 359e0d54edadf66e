"""How TriFinger drags a cube: joints that bring its tips to places, in closed form, and where the tips go.

The tips come down around the cube, press on it from three sides, and move on together, a little ahead of it. They
decide from where they are now, so they need no memory.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.math import atan2, norm

__all__ = ["drag_targets", "tip_joints"]

_TOP = 0.29  # [m] height of the first joints
_SIDE, _OUT, _LINK = 0.086, 0.0505, 0.16  # [m] of the tip beside its finger's axis; from there to the second; a link
_FINGERS = (0.0, -2 * math.pi / 3, -4 * math.pi / 3)  # [rad] how far each is turned
_FROM = tuple(turn + math.pi / 3 for turn in _FINGERS)  # [rad] from where its tip presses on the cube
_PRESSED, _ROUND = 0.042, 0.1  # [m] tip to the cube's middle: what is asked for, pressing, and on the way down
_OUTSIDE = 0.075  # [m] from there on it goes down beside the cube
_LOW, _HIGH = 0.03, 0.09  # [m] height of a tip that presses, and of one that is over the cube
_DOWN = 0.05  # [m] and below this it is down
_AHEAD = 0.012  # [m] the tips are asked to be so far ahead of the cube


def tip_joints(places: Tensor) -> Tensor:
    """(n, 9) [rad] joints in the robot's order for tips at ``places`` (n, 3 fingers, 3) [m] in the robot's frame, knees
    outward; what is out of reach is approached."""
    turn = torch.tensor(_FINGERS)
    cos, sin = torch.cos(turn), torch.sin(turn)
    x, y = places[..., 0] * cos + places[..., 1] * sin, places[..., 1] * cos - places[..., 0] * sin - _OUT
    down = _TOP - places[..., 2]
    along = torch.sqrt((x * x + down * down - _SIDE**2).clamp_min(1e-6))
    swing = atan2(down, x) - atan2(along, torch.full_like(along, _SIDE))
    far = (along * along + y * y).clamp_max((1.999 * _LINK) ** 2)
    cosine = (far / (2 * _LINK**2) - 1.0).clamp(-0.9999, 0.9999)
    bend = atan2(torch.sqrt(1.0 - cosine * cosine), cosine)
    return torch.stack([swing, atan2(y, along) + bend / 2, -bend], 2).flatten(1)


def drag_targets(tips: Tensor, cube: Tensor, goal: Tensor) -> Tensor:
    """(n, 3 fingers, 3) [m] where the tips go next, to bring the cube to a place on the table.

    Args:
        tips: (n, 3, 3) [m] where they are.
        cube: (n, 2) [m] its middle, along x and y.
        goal: (n, 2) [m] likewise.
    """
    sides = torch.tensor([(math.cos(angle), math.sin(angle)) for angle in _FROM])
    far = norm(tips[..., :2] - cube[:, None])
    down = tips[..., 2] < _DOWN
    left = goal - cube
    ahead = left * (_AHEAD / norm(left, keepdim=True).clamp_min(1e-6)) * down.all(1, keepdim=True)
    radius = torch.where(down, _PRESSED, _ROUND)
    height = torch.where(down | (far > _OUTSIDE), _LOW, _HIGH)
    flat = (cube + ahead)[:, None] + sides * radius[..., None]
    return torch.cat([flat, height[..., None]], 2)
