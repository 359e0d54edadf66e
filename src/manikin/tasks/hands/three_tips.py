"""How TriFinger brings a cube to a place: joints that bring its tips to places, in closed form, and where the tips go.

The tips come down around the cube, press on it from three sides, and carry it. Where it is to turn further than they
can, they let go and take it a quarter further round. They decide from where they are now, so they need no memory.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.math import atan2, norm, wrap_to_pi

__all__ = ["tip_joints", "tip_targets", "tip_torques"]

_TOP = 0.29  # [m] height of the first joints
_SIDE, _OUT, _LINK = 0.086, 0.0505, 0.16  # [m] of the tip beside its finger's axis; from there to the second; a link
_FINGERS = (0.0, -2 * math.pi / 3, -4 * math.pi / 3)  # [rad] how far each is turned
_FROM = tuple(turn + math.pi / 3 for turn in _FINGERS)  # [rad] from where its tip presses on an unturned cube
_PRESSED, _ROUND = 0.042, 0.1  # [m] tip to the cube's middle: what is asked for, pressing, and on the way down
_OUTSIDE = 0.075  # [m] from there on it goes down beside the cube, and around it
_LOW, _HIGH = 0.03, 0.09  # [m] height of a tip that presses, and of one that is over the cube
_DOWN = 0.05  # [m] and below this it is down
_HELD, _BESIDE = 0.055, 0.02  # [m] from the cube's middle to a tip that holds it, beside and above
_GRIP, _LIFT = 12.0, 1.5  # [N] with which a tip that holds it presses, and lifts
_ALONG, _UP = 0.004, 0.006  # [m] the cube moves so far in a step, along each axis of the table and up
_TURN = 0.1  # [rad] and turns so far
_BACK = 0.2  # a tip that has slipped goes back by this share of the way
_FARTHEST = 0.9  # [rad] the tips go round from where they press on an unturned cube; then they take it anew
_ANGLE = 0.25  # [rad] a tip that is so near to where it is to press goes inward
_STRAIGHT = 0.05  # [rad] so far from its orientation the cube is not turned


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


def tip_torques(places: Tensor, forces: Tensor) -> Tensor:
    """(n, 9) [N m] of the joints, with which tips at ``places`` (n, 3 fingers, 3) [m] push with ``forces`` (n, 3, 3)
    [N], in the robot's frame."""
    step, at = 1e-3, tip_joints(places).unflatten(1, (3, 3))
    moved = [tip_joints(places + step * axis).unflatten(1, (3, 3)) - at for axis in torch.eye(3)]
    places_by_joints = torch.linalg.inv(torch.stack(moved, 3) / step)  # (n, finger, axis, joint)
    return (places_by_joints * forces[..., None]).sum(2).flatten(1)


def tip_targets(tips: Tensor, cube: Tensor, goal: Tensor, yaw: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
    """Where the tips go next (n, 3 fingers, 3) [m], and with which forces (n, 3, 3) [N] they push besides, to bring
    the cube to a place on the table or above it, and to turn it.

    Args:
        tips: (n, 3, 3) [m] where they are.
        cube: (n, 3) [m] its middle, over the table.
        goal: (n, 3) [m] likewise.
        yaw: (n,) [rad] how far it is turned.
        turn: (n,) [rad] how much further it is to turn, either way.
    """
    first = torch.tensor(_FROM)
    apart = tips - cube[:, None]
    far, around = norm(apart[..., :2]), wrap_to_pi(atan2(apart[..., 1], apart[..., 0]) - first)
    ring, way, turns = around.mean(1), torch.sign(turn), turn.abs() > _STRAIGHT
    held = ((far < _HELD) & (apart[..., 2] < _BESIDE)).all(1)
    lets_go = held & turns & (ring * way > _FARTHEST)
    holds = (held & ~lets_go)[:, None, None]

    # to take it: round the cube to where its faces are, a quarter back from where they are to turn to; down; inward
    quarter = math.pi / 2
    faces = yaw - torch.round(yaw / quarter) * quarter
    back = faces - way * quarter
    wanted = torch.where(turns & (back.abs() < _FARTHEST), back, faces)[:, None]
    down, outside, comes = tips[..., 2] < _DOWN, far > _OUTSIDE, ~lets_go[:, None]
    there = comes & (wrap_to_pi(wanted - around).abs() < _ANGLE)
    angle = torch.where(there | (comes & outside), wanted, around)
    radius, height = torch.where(there & down, _PRESSED, _ROUND), torch.where(down | outside, _LOW, _HIGH)
    taking = torch.cat([cube[:, None, :2] + _on_ring(angle + first, radius), height[..., None]], 2)

    # to carry it: a tip moves as the cube is to move, and back to where it belongs on the cube
    limit, flat = torch.tensor([_ALONG, _ALONG, _UP]), torch.zeros_like(far)[..., None]
    left = torch.where(turns[:, None], 0.0, goal - cube)
    step = torch.minimum(torch.maximum(left, -limit), limit)
    turned = ring + turn.clamp(-_TURN, _TURN) * turns
    now, then = (torch.cat([_on_ring(one[:, None] + first, far), flat], 2) for one in (ring, turned))
    carrying = tips + step[:, None] + (then - now) + _BACK * (now - apart)

    inward = _on_ring(around + first, torch.full_like(far, -_GRIP))
    forces = torch.cat([inward, torch.full_like(flat, _LIFT)], 2)
    return torch.where(holds, carrying, taking), forces * holds


def _on_ring(angle: Tensor, radius: Tensor) -> Tensor:
    """(..., 2) points at angles (...) [rad]."""
    return torch.stack([torch.cos(angle), torch.sin(angle)], -1) * radius[..., None]
