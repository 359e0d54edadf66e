"""How D'Claw turns a valve: joints that bring its tips to places, in closed form, and a gait for each finger.

A finger goes round outside the arms' reach, comes in behind an arm, pushes it on until it reaches no further, draws
back, and starts again. It decides from where it is now, so it needs no memory.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.math import atan2, norm, wrap_to_pi
from manikin.robots.dclaw import PLACES

__all__ = ["finger_bases", "finger_joints", "push_targets"]

_SIDES = (-1.0, 1.0, 1.0)  # the first finger's joints turn the other way round ...
_ENDS = (-1.0, 1.0, -1.0)  # ... and so does the last joint of the third
_OUTWARD = tuple(math.radians(angle) for angle in (30, 150, 270))  # where the fingers are on the disc
_SHIFT = tuple(side * (PLACES[n][1][1] + PLACES[n][2][1]) for n, side in zip((1, 2, 3), _SIDES, strict=True))  # [m]
_LINKS = (0.0685, 0.0685, 0.0715)  # [m] from joint to joint, and to the middle of the tip
_LOW, _HIGH = 0.075, 0.088  # [m] height of a tip that pushes and of one that travels
_OUT, _STEP = 0.116, 0.017  # [m] from the axis: where it travels, and how far it leaves its circle before it does
_DEEP, _SHALLOW = (
    0.92,
    1.07,
)  # [1] of the arms' length: the circle on which it pushes, with room and without
_ROOMY = math.radians(110)  # between all arms
_FIRST, _LAST = math.radians(-78), math.radians(96)  # a finger's way along the circle, from its own direction
_LATEST = math.radians(31)  # beyond it, it no longer comes in
_LEAD = math.radians(32)  # the tip's target is so far ahead of it
_TIP = 0.0115  # [m] radius
_MARGIN = math.radians(4.5)
_NEAR, _WIDER = math.radians(13), math.radians(18)  # from its place behind an arm, outside and when nearly in


def finger_bases(base: Tensor) -> Tensor:
    """(n, 3, 3) [m] where the first joints of the fingers are, for a disc at ``base`` (n, 3), its fingers down."""
    first = torch.tensor([(z, y, -x) for x, y, z in (PLACES[n][0] for n in (1, 2, 3))])
    return base[:, None] + first


def finger_joints(places: Tensor) -> Tensor:
    """(n, 9) [rad] joints in the robot's order for tips at ``places`` (n, 3 fingers, 3) [m], from the fingers' bases in
    the axes of the world. The knees point outward; what is out of reach is approached.

    Good to 3 mm: it leaves out how the axes are tilted.
    """
    out = torch.tensor(_OUTWARD)
    cos, sin, side = torch.cos(out), torch.sin(out), torch.tensor(_SIDES)
    x, y, down = places[..., 0], places[..., 1], -places[..., 2]
    along = y * cos - x * sin - torch.tensor(_SHIFT)  # the way round, anticlockwise
    outward = x * cos + y * sin
    start, upper, lower = _LINKS
    far = torch.sqrt(along**2 + down**2) - start
    longest = 0.9995 * (upper + lower)
    cosine = ((far**2 + outward**2).clamp_max(longest**2) - upper**2 - lower**2) / (2 * upper * lower)
    cosine = cosine.clamp(-0.9999, 0.9999)
    sine = torch.sqrt(1.0 - cosine**2)
    swing, bend = atan2(along, down), atan2(sine, cosine)
    lean = atan2(-outward, far) - atan2(lower * sine, upper + lower * cosine)
    return torch.cat([-side * swing, side * lean, -torch.tensor(_ENDS) * bend], 1)


def push_targets(tips: Tensor, bases: Tensor, axis: Tensor, arms: Tensor, size: Tensor, sense: Tensor) -> Tensor:
    """(n, 3 fingers, 3) [m] where the tips go next, in the world.

    Args:
        tips: (n, 3, 3) [m] of the fingers, now.
        bases: (n, 3, 3) [m] of the fingers.
        axis: (n, 2) [m] the valve's.
        arms: (n, arms) [rad] their directions in the world; nan of arms that are not there.
        size: (n, 2) [m] length and radius of the arms.
        sense: (n,) 1 to turn it anticlockwise, -1 clockwise.
    """
    turn = sense[:, None]
    away, home = tips[..., :2] - axis[:, None], bases[..., :2] - axis[:, None]
    own = atan2(home[..., 1], home[..., 0])  # (n, 3) the fingers' directions
    far, at = norm(away), turn * wrap_to_pi(atan2(away[..., 1], away[..., 0]) - own)
    among = wrap_to_pi(arms[:, None] - arms[:, :, None]).abs().nan_to_num(math.pi)
    gap = (among + 2 * math.pi * torch.eye(arms.shape[1])).amin((1, 2))
    inner = size[:, 0] * torch.where(gap > _ROOMY, _DEEP, _SHALLOW)
    between, outer = (inner + _STEP)[:, None], (size.sum(1) + 0.014).clamp_min(_OUT)[:, None]
    # (n, 3, arms): where an arm is on a finger's way, and where a tip that pushes it
    wide = torch.asin(((size[:, 1] + _TIP) / inner).clamp_max(0.99))[:, None, None]
    there = turn[..., None] * (arms[:, None] - own[..., None])
    behind = wrap_to_pi(there - wide - _MARGIN)
    room = wrap_to_pi(behind[..., None] - there[:, :, None]).abs().nan_to_num(math.pi).amin(3) > 0.97 * wide
    fits = (behind > _FIRST) & (behind < _LATEST) & room  # nan fits nowhere
    goal = torch.where(fits, behind, math.inf).amin(2)
    goal = torch.where(torch.isinf(goal), at.clamp(-1.0, 0.7), goal)
    # the further it has come in, the more it may be beside the place: it does not turn back half-way
    beside = _NEAR + _WIDER * ((outer - far) / (outer - between)).clamp(0.0, 1.0)
    inside, done, near = far < between, at > _LAST, (goal - at).abs() < beside
    push = inside & ~done
    comes_in = push | (~inside & near & (torch.where(fits, 1.0, 0.0).amax(2) > 0))
    angle = torch.where(push, at + _LEAD, torch.where(inside, at, at + (goal - at).clamp(-_LEAD, _LEAD)))
    radius, height = torch.where(comes_in, inner[:, None], outer), torch.where(comes_in, _LOW, _HIGH)
    direction = own + turn * angle
    flat = torch.stack([torch.cos(direction), torch.sin(direction)], 2) * radius[..., None] + axis[:, None]
    return torch.cat([flat, height[..., None]], 2)
