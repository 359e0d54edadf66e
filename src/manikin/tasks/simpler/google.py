"""What SIMPLER's tasks of the Google Robot share: where the robot stands, its colours, and how scripted experts move.

The world is the original's: z is up, and the robot faces -x.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import Part, Physics, Robot, SceneBuilder, VariantPart
from manikin.errors import UnknownNameError
from manikin.math import (
    Constant,
    atan2,
    norm,
    quat_conj,
    quat_from_yaw,
    quat_mul,
    quat_rotate,
    quat_rotate_inv,
    quat_to_rotvec,
)
from manikin.robots.google_robot_rt1 import COLOURS
from manikin.tasks.simpler.common import COUNTER, SimplerTask, table_top
from manikin.tasks.simpler.lamps import TABLE_LIGHTS, Lights
from manikin.toolkit import constant, facing_down

__all__ = ["FORWARD", "GoogleTask", "counter", "grasping", "longest_axis", "motion", "pointing_down", "spoken"]

_BASE_Z = 0.07905  # [m] the robot's base above the floor
FORWARD = Constant((0.0, 0.0, 1.0))
"""Where the tool points, in its frame."""
_DEEP = 0.012  # [m] the tips go beyond the middle of what lies
_LEAN = Constant((math.cos(0.25), 0.0, -math.sin(0.25), 0.0))
_UNSAID = ("opened", "light", "generated", "modified", "objaverse", "bridge", "baked", "v2", "alt")
_PAINTED = ("shoulder", "bicep", "elbow", "forearm", "wrist", "gripper", "finger_right", "finger_left")


class GoogleTask(SimplerTask):
    """A task of the Google Robot: 3 Hz, planned motions, seen through the camera on its head.

    A control step has 30 physics steps, the original's has 171. At both rates the expert lifts as many cans; what
    lets a held can slip is soft friction, which ``impratio`` makes stiffer (docs/simpler.md has the figures).
    """

    robots = ("google_robot_rt1",)
    control = "ee_delta_pose_planned"
    control_hz = 3.0
    physics = Physics(hz=90.0, impratio=100.0)
    camera = "overhead_camera"
    lights: ClassVar[Mapping[str, Lights]] = TABLE_LIGHTS

    @dataclass(frozen=True)
    class Config:
        trials: str = "random"  # "grid": the episode's seed is the number of the trial
        look: str = "plain"  # "matched": the real photograph behind what is drawn (visual matching)
        arm_colour: str = "default"  # of visual matching's four: default, tabletop_1, tabletop_2, cabinet_1
        light: str = "default"  # of the task's ``lights``: brighter and darker are variant aggregation's

    def __init__(self, config: Any = None, **more: Any) -> None:
        super().__init__(config, **more)
        if self.config.light not in self.lights:
            raise UnknownNameError(f"light of {self.id}", self.config.light, self.lights)

    def stand(self, b: SceneBuilder, xy: tuple[float, float], yaw: float = 0.0) -> Robot:
        """The robot with its base at ``xy`` [m], turned by ``yaw`` [rad] from facing -x, in its colour.

        Raises:
            UnknownNameError: it has no such colour.
        """
        colour = self.config.arm_colour
        if colour not in COLOURS:
            raise UnknownNameError(f"arm_colour of {self.id}", colour, COLOURS)
        half = (math.pi + yaw) / 2
        robot = b.robot(pos=(*xy, _BASE_Z), quat=(math.cos(half), 0.0, 0.0, math.sin(half)))
        if robot.model.menagerie:
            robot.source = "the maker's meshes, in plain colours"
        arm, pads = ([*(x / 255 for x in rgb), 1.0] for rgb in COLOURS[colour])
        painted: dict[str, Any] = {f"link_{name}": arm for name in _PAINTED}
        painted |= {f"link_finger_tip_{side}": pads for side in ("right", "left")}
        for name, rgba in painted.items() if robot.model.menagerie or colour != "default" else ():
            for geom in b.spec.body(robot.prefix + name).geoms:
                geom.rgba = rgba
        return robot


def counter(b: SceneBuilder, lights: Lights) -> Part:
    """The counter of picking and of moving near: a box."""
    aim = (-0.2, 0.2, 0.9)
    return table_top(
        b,
        COUNTER,
        low=(-0.61, -0.6),
        high=(0.05, 1.0),
        rgba=(168 / 255, 120 / 255, 79 / 255, 1.0),
        base_camera=((0.7, 0.9, 1.7), aim),
        human_camera=((-1.1, 0.9, 1.7), aim),
        lights=lights,
    )


def pointing_down(robot: Robot, axis: Tensor) -> Tensor:
    """(n, 4) TCP orientation pointing down and, as the arm's wrist needs, 0.5 rad away from the robot; it opens across
    a horizontal ``axis`` (n, 3) in the world. The arm reaches all places on the counter with it."""
    base = robot.base_pose[3:].expand(len(axis), 4)
    along = quat_rotate_inv(base, axis)
    turn = atan2(along[:, 1], along[:, 0])
    turn = turn - torch.round((turn + 0.6) / math.pi) * math.pi  # of the two the one that keeps the last joint in range
    turn = torch.where(axis[:, 2].abs() > 0.7, constant(0.0), turn)
    down = quat_mul(_LEAN.like(base).expand_as(base), quat_mul(quat_from_yaw(turn), facing_down(robot)))
    return quat_mul(base, down)


def longest_axis(thing: VariantPart) -> tuple[Tensor, Tensor]:
    """(n, 3) the axis along which an object is longest, in the world, and (n,) half of that length [m]."""
    half, number = thing.extents.max(1)
    return quat_rotate(thing.quat, torch.nn.functional.one_hot(number, 3).to(half)), half


def grasping(
    robot: Robot,
    middle: Tensor,
    axis: Tensor,
    half: Tensor,
    grasped: Tensor,
    *,
    clear: float = 0.0,
    turn: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Where the tool goes next to grasp a thing: over it, down, then the gripper closes.

    Args:
        robot: whose.
        middle: (n, 3) of the thing [m].
        axis: (n, 3) along which it is longest, in the world.
        half: (n,) of its length along that [m].
        grasped: (n,) bool.
        clear: height of the tool on its way there, over what else is around [m].
        turn: (n, 4) orientation of the tool; by default the fingers close across the axis.

    Returns:
        position (n, 3) [m], orientation (n, 4), and (n,) bool whether the gripper closes.
    """
    down = pointing_down(robot, axis) if turn is None else turn
    tool = quat_rotate(down, FORWARD.like(middle).expand_as(middle))
    upright = axis[:, 2].abs() > 0.7
    grip = middle + torch.where(upright[:, None], constant(0.01), constant(_DEEP)) * tool
    higher = torch.where(upright, (half - constant(0.062)).clamp_min(0.0), constant(0.0))  # the palm needs room
    grip = torch.cat([grip[:, :2], (grip[:, 2] + higher)[:, None]], 1)
    way = robot.tcp_pos - grip
    depth = (way * tool).sum(1)  # along the tool, negative before the thing
    aside = norm(way - depth[:, None] * tool)
    turned = norm(quat_mul(down, quat_conj(robot.tcp_quat))[:, 1:])
    ready = (aside < 0.02) & (turned < 0.12)
    closes = (ready & (depth > -0.015)) | grasped | ((robot.opening < 0.97) & (aside < 0.03) & (depth > -0.03))
    near = (ready & (depth > -0.2)) | closes
    goal = grip - torch.where(near[:, None], constant(0.0), constant(0.13)) * tool
    high = torch.where(near | (norm(way[:, :2]) < 0.12), goal[:, 2], goal[:, 2].clamp_min(clear))
    return torch.cat([goal[:, :2], high[:, None]], 1), down, closes


def motion(robot: Robot, pos: Tensor, quat: Tensor, grip: Tensor) -> Tensor:
    """(n, 7) the action of ``ee_delta_pose_planned`` that moves the tool towards a pose in the world.

    Args:
        robot: whose.
        pos: (n, 3) [m].
        quat: (n, 4).
        grip: (n,) +1 opens, -1 closes.
    """
    base = robot.base_pose[3:].expand_as(quat)
    shift = quat_rotate_inv(base, pos - robot.tcp_pos) * 1.4
    turn = quat_mul(quat, quat_conj(robot.tcp_quat))
    turn = torch.where(turn[:, :1] < 0, -turn, turn)
    turn = quat_rotate_inv(base, quat_to_rotvec(turn)) * 1.4
    shift = shift * (0.15 / norm(shift).clamp_min(0.15))[:, None]
    turn = turn * (0.8 / norm(turn).clamp_min(0.8))[:, None]
    return torch.cat([shift, turn, grip[:, None]], 1)


def spoken(model: str) -> str:
    """The name of an object in an instruction: "opened_coke_can" is a "coke can"."""
    return " ".join(word for word in model.split("_") if word not in _UNSAID and not word.endswith("cm"))
