"""How the experts of Open and Close stand before a handle, and how their hand takes it."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manikin import Waypoint
from manikin.homes import VARIATIONS, FreeSpace, free_space
from manikin.homes.episodes import home_of
from manikin.math import Constant, atan2, pose, quat_from_yaw, quat_mul, quat_rotate, wrap_to_pi

__all__ = ["FRIDGE", "Approach", "aim", "approach", "backed", "drive", "floor", "ready", "room_on"]


def aim(pitch: float, roll: float) -> Constant:
    """The tool of a hand that points forward and ``pitch`` [degrees] down, and opens sideways, turned by ``roll``
    [degrees] about where it points."""
    p, r = math.radians(90 + pitch) / 2, math.radians(roll) / 2
    c, s = math.cos(p), math.sin(p)
    return Constant(((c * math.cos(r), s * math.sin(r), s * math.cos(r), c * math.sin(r)),))


FRIDGE = aim(40.0, 180.0)
_AIM = {"drawer": aim(45.0, 90.0), "fridge": FRIDGE}
# torso [m] and arm [rad] of a hand before the shoulder that points like that
_READY = {
    "drawer": Constant((0.04, -0.974, -1.06, 1.87, 1.555, -1.024, 1.269, -0.679)),
    "fridge": Constant((0.135, -0.181, -1.169, 0.633, 0.476, -0.468, 1.448, 0.144)),
}
_AHEAD = Constant(((0.0, 0.0, 1.0),))
_LINES = 17  # that are tried between the outermost two
_ROOM = 0.32  # [m] that the base wants around it
_TIGHT = 20.0  # [rad/m] a line that is turned by so much more is as good as one with so much less room
_SHORT = 2.0  # [rad/m] and as good as one on which the base comes back so much less


@dataclass(frozen=True)
class Approach:
    """A line on the floor from a handle, on which the base comes and goes.

    Attributes:
        foot: (n, 3) [m] the handle where it is when all is shut.
        yaw: (n,) [rad] heading of the base on its way to the handle.
        facing: (n, 4) how the hand takes the handle.
        back: (n,) [m] from the handle, how far the base comes back.
    """

    foot: Tensor
    yaw: Tensor
    facing: Tensor
    back: Tensor

    def base(self, away: float | Tensor) -> Tensor:
        """(n, 3) x, y [m] and yaw [rad] of the base, ``away`` [m] from the handle."""
        return torch.cat([self.behind(self.foot, away)[:, :2], self.yaw[:, None]], 1)

    def behind(self, place: Tensor, away: float | Tensor) -> Tensor:
        """(n, 3) level with places (n, 3), ``away`` [m] nearer to where the base comes from."""
        way = torch.stack([torch.cos(self.yaw), torch.sin(self.yaw), torch.zeros_like(self.yaw)], 1)
        off = away[:, None] if isinstance(away, Tensor) else away
        return place - off * way

    @property
    def ahead(self) -> Tensor:
        """(n, 3) unit vector of where the hand points."""
        return quat_rotate(self.facing, _AHEAD.like(self.facing).expand(len(self.facing), 3))

    def hand(self, place: Tensor, back: float = 0.0) -> Tensor:
        """(n, 7) pose of the tool, ``back`` [m] behind places (n, 3)."""
        return pose(place - back * self.ahead, self.facing)


@functools.lru_cache(maxsize=VARIATIONS)
def floor(layout: str) -> FreeSpace:
    """Where the base can drive in an apartment."""
    return free_space(home_of(layout), radius=_ROOM)


def approach(
    layout: str,
    cold: Tensor,
    foot: Tensor,
    out: Tensor,
    base: Tensor,
    right: Tensor,
    left: Tensor,
    away: Tensor,
    *backs: Tensor,
) -> Approach:
    """The line that is nearest to where the base is, of those on which the base has room to come back far.

    Args:
        layout: of an apartment.
        cold: (n,) bool, whether it is a fridge's handle, which is upright.
        foot: (n, 3) [m] the handle.
        out: (n,) [rad] where the drawer or the door faces.
        base: (n, 3) x, y [m] and yaw of the base.
        right: (n,) [rad] from where it faces, the line is turned to the left by this at least,
        left: and by this at most.
        away: (n,) [m] from the handle the base drives on the line,
        backs: and from there to one of these distances (n,) [m], the last if it has room.
    """
    to = base[:, :2] - foot[:, :2]
    bearing = wrap_to_pi(atan2(to[:, 1], to[:, 0]) - out)
    share = torch.linspace(0.0, 1.0, _LINES)
    lines = right[:, None] + share * (left - right)[:, None]
    nearest = torch.minimum(torch.maximum(bearing, right), left)[:, None]
    lines = torch.cat([nearest, lines], 1)
    facing = out[:, None] + lines
    ends = torch.stack(backs, 1)  # (n, backs)
    lack = np.maximum(_ROOM - room_on(layout, foot, facing, away, ends), 0.0)
    short = (ends[:, -1:] - ends).numpy(force=True)[:, None]
    turned = (lines - nearest).abs().numpy(force=True)[:, :, None]
    best = torch.tensor((turned + _TIGHT * lack + _SHORT * short).reshape(len(foot), -1).argmin(1).tolist())
    line, end = (best // len(backs))[:, None], (best % len(backs))[:, None]
    yaw = wrap_to_pi(facing.gather(1, line)[:, 0] + math.pi)
    aim = torch.where(cold[:, None], _AIM["fridge"].like(foot), _AIM["drawer"].like(foot))
    return Approach(foot, yaw, quat_mul(quat_from_yaw(yaw), aim), ends.gather(1, end)[:, 0])


def room_on(layout: str, foot: Tensor, out: Tensor, away: Tensor, backs: Tensor) -> np.ndarray:
    """(n, lines, backs) [m] around a base, where it has least on its way.

    Args:
        layout: of an apartment.
        foot: (n, 3) [m] the handle.
        out: (n, lines) [rad] from there to the base.
        away: (n,) [m] from the handle it drives there,
        backs: (n, backs) [m] and from there to here.
    """
    way = torch.stack([torch.cos(out), torch.sin(out)], -1)[:, :, None]
    ends = torch.cat([away[:, None], backs], 1)
    places = foot[:, None, None, :2] + ends[:, None, :, None] * way
    room = floor(layout).clearance_at(places.numpy(force=True).reshape(-1, 2)).reshape(places.shape[:3])
    return np.asarray(np.minimum(room[..., :1], room[..., 1:]))


def backed(base: Tensor, by: float | Tensor) -> Tensor:
    """(n, 3) bases (n, 3) that have driven back by a length or (n, 1) lengths [m]."""
    ahead = torch.stack([torch.cos(base[:, 2]), torch.sin(base[:, 2])], 1)
    return torch.cat([base[:, :2] - by * ahead, base[:, 2:]], 1)


def ready(cold: Tensor, keyframe: Tensor) -> Tensor:
    """(n, joints) the keyframe (joints,), with the arm ready to reach."""
    arm = torch.where(cold[:, None], _READY["fridge"].like(keyframe), _READY["drawer"].like(keyframe))
    return torch.cat([keyframe[:-8].expand(len(cold), -1), arm], 1)


def drive(base: Tensor, joints: Tensor, gripper: float) -> Waypoint:
    """The way of the base to (n, 3) x, y [m] and yaw [rad], with the arm (n, joints) ready to reach."""
    return Waypoint(
        name="drive",
        base=base,
        joints=joints,
        gripper=gripper,
        pos_tol=0.03,
        rot_tol=0.25,
        speed=0.9,
        turn=2.5,
        timeout_s=3.0,
    )
