"""What the tasks after robosuite share: rates, proprioception, the grasp they ask for, and pieces of their experts.

Their numbers (sizes, placements, coefficients of rewards, rules of success) are those of robosuite's version 1.0. The
height of what things stand on is z = 0 here. Episodes last 500 control steps at 20 Hz and do not end on success.
``docs/robosuite.md`` says where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from manikin.env.task import Episode, Quantity, Task
from manikin.math import pose
from manikin.scene.handles import Robot
from manikin.scene.handles.grasp import Grasp
from manikin.spec.physics import Physics
from manikin.spec.plan import Waypoint
from manikin.toolkit import above, noisy_rest

__all__ = ["DROP", "TCP", "StagedTask", "held", "pick", "ready", "touching"]

TCP = {"tcp_pose": Quantity("m, quaternion wxyz", "world")}
POSE = Quantity("m, quaternion wxyz", "world")
OFFSET = Quantity("m", "world")
DROP = 0.01  # [m] cubes start this far above the table


class StagedTask(Task):
    """A task with robosuite's rates."""

    horizon_s = 25.0
    control_hz = 20.0
    physics = Physics(impratio=20)
    terminate = False
    robots: ClassVar[tuple[str, ...]] = ("panda",)


def ready(robot: Robot, ep: Episode) -> None:
    """The pose in which episodes begin, with normal noise of 0.02 rad on every arm joint; gripper open."""
    noisy_rest(robot, ep, keyframe="ready" if "ready" in robot.arm.keyframes else "rest")


def touching(grasps: Sequence[Grasp]) -> Tensor:
    """(n, things, fingers) bool: which finger touches which thing."""
    return torch.stack([g.force for g in grasps], 1).count_nonzero(-1) > 0


def held(grasps: Sequence[Grasp]) -> Tensor:
    """(n, things) bool: every finger touches the thing, however lightly."""
    return touching(grasps).all(-1)


def pick(place: Tensor, turn: Tensor, robot: Robot, *, clear: float, tag: str = "") -> list[Waypoint]:
    """Stages that grasp at TCP position ``place`` (n, 3) [m] and orientation ``turn`` (n, 4), from ``clear`` [m] above,
    and lift a little."""
    high = pose(above(place, clear), turn)
    up = pose(above(robot.tcp_pos, 0.05), robot.tcp_quat)
    return [
        Waypoint(name=f"above{tag}", pose=high, gripper=1, pos_tol=0.015, rot_tol=0.1, speed=1.0, timeout_s=3.0),
        Waypoint(name=f"down{tag}", pose=pose(place, turn), gripper=1, pos_tol=0.004, rot_tol=0.05, timeout_s=1.5),
        Waypoint(name=f"close{tag}", pose=pose(place, turn), gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=0.5),
        Waypoint(name=f"lift{tag}", pose=up, gripper=-1, pos_tol=0.02, timeout_s=1.0),
    ]
