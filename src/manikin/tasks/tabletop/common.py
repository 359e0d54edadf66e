"""Small pieces that several table-top tasks share."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from manikin.env.task import Episode
from manikin.math import Constant, atan2, norm, quat_from_yaw, quat_mul, quat_rotate, quat_to_yaw
from manikin.scene.handles import Robot

__all__ = [
    "ONE",
    "ZERO",
    "OncePerStep",
    "above",
    "along_x",
    "base_yaw",
    "bearing",
    "bonus",
    "closeness",
    "constant",
    "facing_down",
    "finger_gap",
    "first_valid",
    "full_turn",
    "is_still",
    "lies_on",
    "noisy_rest",
    "top_down",
]

_DOWN = Constant((0.0, 1.0, 0.0, 0.0))  # gripper axis down, opening along y
ZERO, ONE = torch.tensor(0.0), torch.tensor(1.0)  # a Python number in torch.where costs a call of its own
_X = Constant(((1.0, 0.0, 0.0),))


@lru_cache(maxsize=256)
def constant(value: float) -> Tensor:
    """The number as a tensor, made once: in arithmetic it costs half of what a Python number does, on any device."""
    return torch.tensor(value, device="cpu")


class OncePerStep:
    """A function of the handles that evaluate, observe and reward share, computed once per step.

    It may use the state of the world and variables that only ``start`` sets.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function, self._seen = function, -1
        self._world: Any = None

    def __call__(self, h: Any) -> Any:
        scope = h.robot.scope
        if scope.target is not None:  # rows are being started, or a few are looked at
            return self._function(h)
        if self._world is not scope.world or self._seen != scope.world.version:
            self._value = self._function(h)
            self._world, self._seen = scope.world, scope.world.version
        return self._value


def noisy_rest(robot: Robot, ep: Episode, std: float = 0.02, *, turn: float = 0.0, keyframe: str = "rest") -> None:
    """Rest pose or another keyframe, the last joint turned on by ``turn`` [rad], with normal noise of ``std`` [rad] on
    every arm joint; gripper open.
    """
    rest = robot.keyframe(keyframe)
    rest[-1] += turn
    robot.set_qpos(rest + ep.rng.normal(f"{robot.name}/qpos", 0.0, std, (len(rest),)))


def full_turn(ep: Episode, name: str) -> Tensor:
    """(n, 4) turn about the vertical, uniform over the circle."""
    return quat_from_yaw(ep.rng.uniform(name, -math.pi, math.pi))


def first_valid(candidates: Tensor, valid: Tensor) -> Tensor:
    """Of each row's ``candidates`` (n, k, ...) the first with ``valid`` (n, k); the first of all where none is."""
    return candidates[torch.arange(len(valid), device=valid.device), valid.to(torch.uint8).argmax(1)]


def closeness(distance: Tensor, scale: float) -> Tensor:
    """1 - tanh(scale * distance): 1 at zero, falling to 0."""
    return ONE - torch.tanh(distance * constant(scale))


def lies_on(top: Tensor, bottom: Tensor, half_size: float, tol: float) -> Tensor:
    """(n,) bool: a cube at ``top`` (n, 3) lies on an equal one at ``bottom``: beside by no more than half its diagonal,
    and as high as it must be, both within ``tol`` [m]."""
    offset = top - bottom
    beside = norm(offset[:, :2]) <= constant(math.sqrt(2) * half_size + tol)
    return beside & ((offset[:, 2] - constant(2 * half_size)).abs() <= constant(tol))


def is_still(robot: Robot, speed: float = 0.2) -> Tensor:
    """(n,) bool: no arm joint moves faster than ``speed`` [rad/s]."""
    return torch.linalg.vector_norm(robot.arm_qvel, ord=math.inf, dim=1) <= constant(speed)


def bonus(terms: dict[str, Tensor], success: Tensor, total: float) -> dict[str, Tensor]:
    """Add the term ``success``: what is missing to ``total`` in rows that succeed, 0 elsewhere."""
    missing = constant(total) - torch.stack(list(terms.values()), -1).sum(-1)
    return {**terms, "success": torch.where(success, missing, ZERO)}


def top_down(quat: Tensor, robot: Robot, *, symmetry: int = 4, around: Tensor | float | None = None) -> Tensor:
    """(n, 4) TCP orientation pointing down, opening along the y axis of an upright object turned by ``quat`` (n, 4).

    Of the ``symmetry`` equivalent grasps about the vertical the one nearest to the turn ``around`` (n,) [rad] is taken;
    by default the way the robot faces, as the gripper does at rest; :func:`bearing` is where the arm's base joint
    brings it.
    """
    around = base_yaw(robot) if around is None else around
    period = 2 * math.pi / symmetry
    turn = quat_to_yaw(quat) - around
    turn = turn - torch.round(turn / period) * period
    return quat_mul(quat_from_yaw(turn + around), facing_down(robot))


def base_yaw(robot: Robot) -> float:
    """[rad] where the robot faces, about the vertical."""
    return float(quat_to_yaw(robot.base_pose[None, 3:])[0])


def bearing(robot: Robot, pos: Tensor) -> Tensor:
    """(n,) [rad] direction of ``pos`` (n, 3) seen from the robot's base, about the vertical."""
    return atan2(pos[:, 1] - robot.base_pose[1], pos[:, 0] - robot.base_pose[0])


def facing_down(robot: Robot) -> Tensor:
    """(n, 4) TCP orientation pointing down, opening along the world's y."""
    return _DOWN.like(robot.base_pose).expand(robot.scope.n, 4)


def finger_gap(robot: Robot) -> Tensor:
    """(n,) 0 where the fingers meet, 1 fully open; :attr:`Robot.opening` is 0 where a closed command goes."""
    spec = robot.gripper
    joint = next(j for link in (*spec.links, *robot.arm.links) for j in link.joints if j.name == spec.drivers[0])
    opened = spec.open_q[0]
    meet = min(max(spec.closed_q[0], joint.range[0]), joint.range[1])
    return (robot.qpos[:, len(robot.arm.joints)] - meet) * (1.0 / (opened - meet))


def above(pos: Tensor, height: Any) -> Tensor:
    """``pos`` (n, 3) raised by ``height`` [m]."""
    out = pos.clone()
    out[:, 2] += height
    return out


def along_x(quat: Tensor) -> Tensor:
    """(n, 3) the x axis of bodies turned by ``quat`` (n, 4), in the world."""
    return quat_rotate(quat, _X.like(quat))
