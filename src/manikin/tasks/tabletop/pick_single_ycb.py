"""PickSingleYCB-v2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    Episode,
    Grasp,
    Handles,
    Marker,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Variable,
    VariantPart,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.math import norm, pose, quat_from_yaw, quat_mul, quat_rotate
from manikin.props.ycb import GRASPABLE, ycb
from manikin.toolkit import (
    ONE,
    ZERO,
    above,
    bonus,
    closeness,
    constant,
    first_valid,
    full_turn,
    is_still,
    noisy_rest,
    per_step,
    top_down,
    transport,
)

__all__ = ["PickSingleYCB", "across", "grip_point"]

_REACH = 0.035  # [m] how far below the top of a tall object the fingers take it


@dataclass
class PickSingleYCBHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    thing: VariantPart
    grasp: Grasp
    goal: Variable  # (3,) [m]
    marker: Marker


class PickSingleYCB(Task):
    """Pick up an everyday object, another one in every episode, and hold it at a goal in the air.

    Randomization: which of the YCB objects; its place, uniform in a square on the table, and its turn about the
    vertical; the goal's place over the same square and its height, never where the object is; the arm's joints, a
    little noise about a raised pose.
    Success: the middle of the object is within ``goal_radius`` of the goal and the arm stands still.

    Objects are the scanned meshes of ``MANIKIN_DATA/ycb``, or primitives of their size and mass where that folder is
    absent; ``manikin.make(...).fingerprint()`` and the hash of the model tell them apart. Numbers: ManiSkill3 3.0.1,
    which has 74 objects, among them some that no gripper of 80 mm can hold.
    """

    id = "PickSingleYCB-v2"
    horizon_s = 3.5
    instruction = "pick up the object and hold it at the green goal"
    robots = ("panda",)
    robot_needs = ("arm", "gripper", "keyframe raised")
    labels = transport()
    reward_max = 6.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "goal_pos": Quantity("m", "world"),
        "is_grasped": Quantity("0 or 1"),
        "object_pose": Quantity("m, quaternion wxyz", "world", "its middle"),
        "object_extents": Quantity("m", "object", "half the size of the box around it"),
        "tcp_to_object": Quantity("m", "world", "to where it is taken"),
        "object_to_goal": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to where the object is taken",
        "grasp": "1 while grasped",
        "place": "1 - tanh(5 d) while grasped, d from object to goal",
        "placed": "1 while grasped and at the goal",
        "still": "1 - tanh(5 s) while grasped and at the goal, s the norm of the arm's joint speeds",
        "success": "what is missing to 6, in success",
    }

    @dataclass(frozen=True)
    class Config:
        objects: tuple[str, ...] = GRASPABLE  # names of YCB objects
        spawn_half_size: float = 0.1  # [m]
        goal_height: float = 0.3  # [m] the goal is up to this far above the object's resting height
        goal_radius: float = 0.025  # [m]
        still_speed: float = 0.2  # [rad/s]

    def scene(self, b: SceneBuilder) -> PickSingleYCBHandles:
        table(b)
        robot = b.robot()
        thing = b.mesh("object", choice=ycb(tuple(self.config.objects)))
        return PickSingleYCBHandles(
            robot=robot,
            thing=thing,
            grasp=b.grasp(robot, thing),
            goal=b.variable("goal", (3,)),
            marker=b.marker("goal_marker", size=(self.config.goal_radius,), rgba=(0.1, 0.8, 0.2, 0.5)),
        )

    def start(self, h: PickSingleYCBHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep, keyframe="raised")
        spot = ep.rng.uniform("object/xy", -c.spawn_half_size, c.spawn_half_size, (2,))
        thing = torch.cat([spot, h.thing.extents[:, 2:]], 1)
        h.thing.set_pose(thing, full_turn(ep, "object/yaw"))
        # of a few goals the first that the object is not at already
        goals = ep.rng.uniform("goal", 0.0, 1.0, (8, 3))
        low, size = thing.new_tensor([-c.spawn_half_size] * 2 + [0.0]), thing.new_tensor([2 * c.spawn_half_size] * 2)
        goals = low + goals * torch.cat([size, size.new_tensor([c.goal_height])])
        goals[:, :, 2] += thing[:, 2:]
        goal = first_valid(goals, norm(goals - thing[:, None]) > 2 * c.goal_radius)
        h.goal.set(goal)
        h.marker.set_pose(goal)

    @per_step
    def tcp_to_grip(self, h: PickSingleYCBHandles) -> Tensor:
        return grip_point(h.thing) - h.robot.tcp_pos

    @per_step
    def object_to_goal(self, h: PickSingleYCBHandles) -> Tensor:
        return h.goal.value - h.thing.pos

    @per_step
    def distance_to_goal(self, h: PickSingleYCBHandles) -> Tensor:
        return norm(self.object_to_goal(h))

    def evaluate(self, h: PickSingleYCBHandles) -> dict[str, Tensor]:
        is_placed = self.distance_to_goal(h) <= self.config.goal_radius
        return {
            "success": is_placed & is_still(h.robot, self.config.still_speed),
            "is_placed": is_placed,
            "is_grasped": h.grasp.value,
        }

    def observe(self, h: PickSingleYCBHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "goal_pos": h.goal.value, "is_grasped": h.grasp.value},
            "privileged": {
                "object_pose": h.thing.pose,
                "object_extents": h.thing.extents,
                "tcp_to_object": self.tcp_to_grip(h),
                "object_to_goal": self.object_to_goal(h),
            },
        }

    def reward(self, h: PickSingleYCBHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        distances = norm(self.tcp_to_grip(h)), self.distance_to_goal(h), norm(h.robot.arm_qvel)
        reach, place, still = closeness(distances, 5.0)
        grasp = ev["is_grasped"].float()
        there = grasp * ev["is_placed"]
        terms = {"reach": reach, "grasp": grasp, "place": grasp * place, "placed": there, "still": there * still}
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: PickSingleYCBHandles) -> list[Waypoint]:
        grip, down = grip_point(h.thing), top_down(across(h.thing), h.robot, symmetry=2)
        goal = h.goal.value + h.robot.tcp_pos - h.thing.pos  # where the TCP is when the held object is at the goal
        return [
            Waypoint(name="above", pose=pose(above(grip, 0.07), down), gripper=1, pos_tol=0.02, speed=1.0),
            Waypoint(name="down", pose=pose(grip, down), gripper=1, pos_tol=0.006),
            Waypoint(name="close", pose=pose(grip, down), gripper=-1, pos_tol=0.01),
            Waypoint(name="lift", pose=pose(above(h.robot.tcp_pos, 0.03), h.robot.tcp_quat), gripper=-1, pos_tol=0.02),
            Waypoint(name="goal", pose=pose(goal, h.robot.tcp_quat), gripper=-1).hold(),
        ]


def grip_point(thing: VariantPart) -> Tensor:
    """(n, 3) where an upright object is taken from above: its middle, or near the top of a tall one."""
    lift = (thing.extents[:, 2] - constant(_REACH)).clamp_min(0.0)
    return thing.pos + quat_rotate(thing.quat, torch.stack([torch.zeros_like(lift)] * 2 + [lift], 1))


def across(thing: VariantPart) -> Tensor:
    """(n, 4) the object's turn, with y along the narrower of its horizontal sides."""
    narrow_x = thing.extents[:, 0] < thing.extents[:, 1]
    return quat_mul(thing.quat, quat_from_yaw(torch.where(narrow_x, ONE * (math.pi / 2), ZERO)))
