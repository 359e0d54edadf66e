"""Which of several stands before the open fridge leave the robot room on its way in: it is tried with the whole robot,
without moving any."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from manikin.control import Chain, IkSolver
from manikin.homes import VARIATIONS
from manikin.homes.episodes import home_of
from manikin.homes.starts import Touching
from manikin.math import Constant, pose, quat_from_yaw, quat_mul, quat_rotate
from manikin.robots import robot
from manikin.sim.device import on_host
from manikin.tasks.home.objects_at import TILTED

__all__ = ["REACH", "READY", "behind", "touched"]

REACH = 0.95  # [m] from the base to what the arm takes from the front
_BEHIND = 0.1  # [m] that the hand is behind what it takes before it goes there, and after it has let go
# torso [m] and arm [rad] of a hand 0.8 m ahead and 1.13 m high that points ahead and 30 degrees down, near rest
READY = Constant((0.04, -0.4, -1.2, 0.89, 0.9, -0.65, 0.99, 0.36))
_AWAY = np.array([0.7, 0.42, 0.28, 0.14, 0.0])  # [m] from where it reaches in, on its way
_ASIDE = np.array([0.0, -0.03, 0.03])  # [m] that it may be beside its line
_HIGH = 0.06  # [m] of the tool above the shelf
_STEPS = 12  # of inverse kinematics, between which the base goes back to where it is
_FORTH = Constant(((0.0, 0.0, 1.0),))


def touched(
    layout: str, opened: Mapping[str, Mapping[str, float]], place: np.ndarray, stands: np.ndarray
) -> np.ndarray:
    """(k,) how many poses on the ways in touch something, where the base stays on its line or is a little beside it.

    Args:
        layout: name of an apartment.
        opened: joints that are not at 0 [m or rad], by mechanism.
        place: (3,) [m] on a shelf.
        stands: (k, 3) x, y [m] and yaw [rad] from where the base goes straight there.
    """
    with on_host(torch.zeros(0).device):  # it is tried on the host
        places = torch.from_numpy(place).float().expand(len(stands), 3)
        return _touched(layout, opened, places, torch.from_numpy(stands).float())


@functools.lru_cache(maxsize=VARIATIONS)
def _tries(layout: str) -> tuple[Touching, IkSolver]:
    fetch = robot("fetch_mshab")
    tries = Touching(home_of(layout), (fetch.arm, fetch.gripper, False))
    return tries, IkSolver(Chain(fetch.arm, fetch.gripper, torch.device("cpu")))


def _touched(layout: str, opened: Mapping[str, Mapping[str, float]], places: Tensor, stands: Tensor) -> np.ndarray:
    tries, solver = _tries(layout)
    fetch = tries.robot
    yaw = stands[:, 2] - 2 * math.pi * torch.round(stands[:, 2] / (2 * math.pi))  # within the joint's range
    ahead = torch.stack([torch.cos(stands[:, 2]), torch.sin(stands[:, 2])], 1)
    left = torch.stack([-ahead[:, 1], ahead[:, 0]], 1)
    far = torch.linalg.vector_norm(places[:, :2] - stands[:, :2], dim=1)
    away = torch.minimum(torch.tensor(_AWAY).float() + REACH, far[:, None])  # (k, 5)
    on_line = places[:, None, :2] - away[..., None] * ahead[:, None]
    bases = on_line[:, :, None] + torch.tensor(_ASIDE).float()[:, None] * left[:, None, None]
    bases = torch.cat([bases, yaw[:, None, None, None].expand(*bases.shape[:3], 1)], 3).flatten(1, 2)
    joints = fetch.keyframe("rest").expand(*bases.shape[:2], -1).clone()
    joints[..., :3], joints[..., -8:] = bases, READY.like(joints)
    there = joints[:, -len(_ASIDE)]  # at the end of the line, on it
    turn = quat_from_yaw(stands[:, 2])
    hand = quat_mul(turn, TILTED.like(turn).expand(len(turn), 4))
    tool = pose(places + torch.tensor([0.0, 0.0, _HIGH]), hand)
    before = _reached(solver, there, behind(tool))
    all_ = torch.cat([joints, before[:, None], _reached(solver, before, tool)[:, None]], 1)
    flat = all_.flatten(0, 1)
    found = tries.touches(
        flat, {name: tries.home.mechanism(name).vector(one).expand(len(flat), -1) for name, one in opened.items()}
    )
    return found.reshape(all_.shape[:2]).sum(1)


def behind(tool: Tensor) -> Tensor:
    """(n, 7) poses of tools (n, 7) that are drawn back where they point."""
    ahead = quat_rotate(tool[:, 3:], _FORTH.like(tool).expand(len(tool), 3))
    return pose(tool[:, :3] - _BEHIND * ahead, tool[:, 3:])


def _reached(solver: IkSolver, start: Tensor, tool: Tensor) -> Tensor:
    """(k, joints) with the tool about at poses (k, 7), from ``start`` (k, joints), the base as there."""
    q = start.double()
    for _ in range(_STEPS):
        q = solver.solve(tool[:, :3], tool[:, 3:], q, iterations=20, posture=0.05).q
        q[:, :3] = start[:, :3].double()
    return q.float()
