"""What policies see of a subtask: MS-HAB's 42 numbers, or joints from rest where nothing is handled."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from manikin import Quantity, Robot
from manikin.math import pose_inv, pose_mul, quat_rotate_inv
from manikin.robots import fetch_mshab
from manikin.tasks.home.predicates import Seen
from manikin.toolkit import tool_from_base

__all__ = ["STATE", "from_rest", "goal_from_base", "numbers"]

STATE: Mapping[str, Quantity] = {
    "joints": Quantity("m, rad", "joint", "torso, head, arm and fingers, in MS-HAB's order"),
    "joint_speeds": Quantity("m/s, rad/s", "joint", "likewise"),
    "tcp_from_base": Quantity("m, quaternion wxyz", "base"),
    "object_from_base": Quantity("m, quaternion wxyz", "base"),
    "goal_from_base": Quantity("m", "base", "0 without a goal"),
    "is_grasped": Quantity("0 or 1"),
}
"""MS-HAB's 42 numbers, in their order."""


def goal_from_base(robot: Robot, goal: Tensor) -> Tensor:
    """(n, 3) [m] goals (n, 3) in the world, seen from the robot's base."""
    root = robot.root_pose
    return quat_rotate_inv(root[:, 3:], goal - root[:, :3])


def from_rest(robot: Robot, seen: Seen, goal: Tensor) -> dict[str, Tensor]:
    """What Open, Close and Navigate show in place of the 42 numbers; goals (n, 3) in the frame of the base."""
    return {
        "joints_from_rest": seen.joints,
        "joint_speeds": seen.joint_speeds,
        "tcp_from_base": tool_from_base(robot),
        "goal_from_base": goal,
    }


def numbers(robot: Robot, thing: Tensor | None, goal: Tensor | None, grasped: Tensor) -> dict[str, Tensor]:
    """MS-HAB's 42 numbers of objects at poses (n, 7) in the world, with goals (n, 3) in the frame of the base; 0 where
    there is no object, or no goal."""
    n = len(grasped)
    order = [robot.joints.index(name) for name in fetch_mshab.QPOS[3:]]
    return {
        "joints": torch.stack([robot.qpos[:, k] for k in order], 1),
        "joint_speeds": torch.stack([robot.qvel[:, k] for k in order], 1),
        "tcp_from_base": tool_from_base(robot),
        "object_from_base": torch.zeros(n, 7) if thing is None else pose_mul(pose_inv(robot.root_pose), thing),
        "goal_from_base": torch.zeros(n, 3) if goal is None else goal,
        "is_grasped": grasped,
    }
