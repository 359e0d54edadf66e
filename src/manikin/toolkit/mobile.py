"""What subtasks of a robot that drives ask of it: whether it stands still, whether it rests, how hard it has pressed.

The numbers are those of MS-HAB's released code (Shukla et al. 2024, arXiv 2412.13211).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError
from manikin.math import Constant, norm, pose_inv, pose_mul
from manikin.robots.fetch_mshab import REST
from manikin.scene.handles import Robot, Variable
from manikin.toolkit.steps import constant

__all__ = [
    "LOOSE",
    "TIGHT",
    "Resting",
    "Still",
    "from_keyframe",
    "is_static",
    "press",
    "rests",
    "tool_from_base",
    "tool_rests",
]


@dataclass(frozen=True, kw_only=True)
class Still:
    """How slow joints are that stand still.

    Attributes:
        joints: [rad/s or m/s] of torso, head and arm.
        base: [m/s] along x and y, [rad/s] about z.
        one_sided: only positive velocities count, as in MS-HAB's paper and code. False counts both ways.
    """

    joints: float = 0.2
    base: float = 0.05
    one_sided: bool = True


@dataclass(frozen=True, kw_only=True)
class Resting:
    """How near joints are to a keyframe that rest.

    Attributes:
        joints: [rad or m] each joint of ``groups`` is nearer than this.
        torso: [m] the torso is nearer than this; 0 leaves it to ``joints``.
        groups: the groups of joints that count.
    """

    joints: float
    torso: float = 0.0
    groups: tuple[str, ...] = ("head", "torso", "arm")


LOOSE = Resting(joints=0.6)
"""Of a robot that holds something."""
TIGHT = Resting(joints=0.2, torso=0.01, groups=("head", "arm"))
"""Of a robot that holds nothing."""


def is_static(robot: Robot, limits: Still = Still()) -> Tensor:
    """(n,) bool: no joint of the robot, its gripper aside, is faster than ``limits``. By default a negative velocity
    always passes, as in MS-HAB; ``Still(one_sided=False)`` takes its size."""
    speed = robot.arm_qvel if limits.one_sided else robot.arm_qvel.abs()
    base = robot.arm.base.joints if robot.arm.base.drives else ()
    most = tuple(limits.base if joint in base else limits.joints for joint in robot.arm.joints)
    return (speed <= _numbers(most).like(speed)).all(1)


def rests(robot: Robot, limits: Resting = LOOSE, keyframe: str = "rest") -> Tensor:
    """(n,) bool: the joints of the groups that count are near a keyframe. A group that the robot has not does not
    count.

    Raises:
        ConfigError: the robot has none of the groups.
    """
    names = [name for name in limits.groups if name in robot.groups]
    if not names:
        raise ConfigError(
            f"{robot.arm.name} has none of the groups {', '.join(limits.groups)}; it has {', '.join(robot.groups)}"
        )
    most = [math.inf] * robot.arm_joints
    for name in names:
        at = robot.groups[name]
        most[at] = [limits.joints] * (at.stop - at.start)
    if limits.torso and "torso" in robot.groups:
        most[robot.groups["torso"]] = [limits.torso]
    away = from_keyframe(robot, keyframe).abs()
    return (away < _numbers(tuple(most)).like(away)).all(1)


def from_keyframe(robot: Robot, name: str = "rest") -> Tensor:
    """(n, joints) [rad or m] how far the robot's joints, its gripper aside, are from a keyframe. Raises
    UnknownNameError."""
    known = robot.arm.keyframes
    if name not in known:
        raise UnknownNameError(f"keyframe of {robot.arm.name}", name, known)
    return robot.arm_qpos - _numbers(tuple(known[name])).like(robot.arm_qpos)


@lru_cache(maxsize=256)
def _numbers(values: tuple[float, ...]) -> Constant:
    return Constant(values)


def tool_from_base(robot: Robot) -> Tensor:
    """(n, 7) pose of the tool seen from the base where that is now."""
    return pose_mul(pose_inv(robot.root_pose), robot.tcp_pose)


def tool_rests(robot: Robot, place: tuple[float, float, float] = REST, within: float = 0.05) -> Tensor:
    """(n,) bool: the tool is ``within`` [m] of a place [m] seen from the base."""
    tool = tool_from_base(robot)[:, :3]
    away = tool - _numbers(place).like(tool)
    return norm(away) <= constant(within)


def press(pressed: Variable, robot: Robot) -> Tensor:
    """Add the present step's force to ``pressed``, a variable of one number a row, and return it (n,) [N]: the sum over
    the robot's links, fingers aside, of the norm of the net contact force. Call it once per control step, in
    ``Task.advance``, and set the variable to 0 where a subtask begins."""
    total: Tensor = robot.forces.total
    pressed.set(pressed.value + total)
    return pressed.value
