"""What SIMPLER's four WidowX tasks share: put one thing on another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manikin import ContactForce, Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Variable, Waypoint
from manikin.errors import UnknownNameError
from manikin.math import norm, pose, quat_from_yaw
from manikin.props.simpler import BOXES
from manikin.robots.widowx_bridge import TABLE_BASE
from manikin.tasks.simpler.common import (
    BRIDGE_TABLE,
    LEAST_FORCE,
    SimplerTask,
    add_object,
    lies_in_box,
    longest,
    resting_height,
    rotated_half,
    table_top,
    touched,
)
from manikin.tasks.simpler.lamps import TABLE_LIGHTS
from manikin.toolkit import above, bearing, top_down, transport

__all__ = ["PutOnHandles", "PutOnTask", "corners"]

HALF_TURN = (0.0, 0.0, 0.0, 1.0)
_GRASPED_STEPS = 5  # in a row, for ``consecutive_grasp``
_MOVED = 0.03  # [m]
_FINGER = 0.0175  # [m] from the tool's centre to a table that the fingertips just do not touch


@dataclass
class PutOnHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    source: Part
    target: Part
    grasp: Grasp
    others: tuple[ContactForce, ...]  # of the source with what it may not rest on
    source_at: Variable  # (3,) [m] origin, once it had settled
    target_at: Variable  # (3,) [m]
    source_half: Variable  # (3,) [m] half its box, turned as it lay
    target_half: Variable  # (3,) [m]
    steps_held: Variable  # in a row
    was_grasped: Variable
    was_held: Variable


def corners(
    x: tuple[float, float], y: tuple[float, float]
) -> tuple[tuple[tuple[float, float], tuple[float, float]], ...]:
    """The 12 ordered pairs (place of the source, place of the target) [m] of a rectangle's corners."""
    four = [(a, b) for a in x for b in y]
    return tuple((one, other) for one in four for other in four if one != other)


class PutOnTask(SimplerTask):
    """Put one thing on another.

    Class attributes:
        source_name, target_name: of the parts; source_model, target_model: names of the original's objects.
        places: (x, y) of source and target [m] in the world, of each trial before turns.
        turns: [rad] of the source about the vertical; they change faster than places.
        above: [m] that the source may be over the target beyond half of both boxes.
        alone: whether the source may touch nothing but target and robot.
        grips: in how many ways the source can be grasped alike, about the vertical.
        lift: [m] of the source's centre over the target's when the expert lets go.
        floor: [m] height of what both are laid on.
        keyframe: of the robot, where an episode begins.
    """

    source_name: ClassVar[str]
    target_name: ClassVar[str]
    source_model: ClassVar[str]
    target_model: ClassVar[str]
    places: ClassVar[tuple[tuple[tuple[float, float], tuple[float, float]], ...]]
    turns: ClassVar[tuple[float, ...]] = (0.0,)
    above: ClassVar[float] = 0.02
    alone: ClassVar[bool] = True
    grips: ClassVar[int] = 2
    lift: ClassVar[float] = 0.03
    floor: ClassVar[float] = BRIDGE_TABLE
    keyframe: ClassVar[str] = "table"

    robots = ("widowx_bridge",)
    control = "ee_target_delta_pose"
    control_hz = 5.0
    horizon_s = 12.0
    settle_s = 0.5
    trial_count = 24
    camera = "3rd_view_camera"
    photograph = "bridge_real_eval_1.png"
    labels = transport("src_on_target")
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1"),
        "source_pose": Quantity("m, quaternion wxyz", "world", "of what is moved"),
        "target_pose": Quantity("m, quaternion wxyz", "world", "of what it is put on"),
        "tcp_to_source": Quantity("m", "world"),
        "source_to_target": Quantity("m", "world", "between centres of mass"),
    }
    reward_terms = {"success": "1 in success"}
    reward_max = 1.0

    def scene(self, b: SceneBuilder) -> PutOnHandles:
        ground = self.arena(b)
        robot = self.robot(b)
        if self.keyframe not in robot.arm.keyframes:
            raise UnknownNameError(f"robot of {self.id}", robot.arm.name, self.robots)
        source, made = add_object(b, self.source_name, self.source_model)
        target = self.add_target(b)
        self._source_z = resting_height(made)
        rows = [(*one, turn, *other) for one, other in self.places for turn in self.turns]
        self.grid = torch.tensor(rows)
        others = tuple(b.contact_force(source, one) for one in ground) if self.alone else ()
        return PutOnHandles(
            robot=robot,
            source=source,
            target=target,
            grasp=b.grasp(robot, source, min_force=LEAST_FORCE, max_angle=60.0),
            others=others,
            source_at=b.variable("source_at", (3,)),
            target_at=b.variable("target_at", (3,)),
            source_half=b.variable("source_half", (3,)),
            target_half=b.variable("target_half", (3,)),
            steps_held=b.variable("steps_held"),
            was_grasped=b.variable("was_grasped"),
            was_held=b.variable("was_held"),
        )

    def arena(self, b: SceneBuilder) -> tuple[Part, ...]:
        """What things stand on."""
        return (
            table_top(
                b,
                BRIDGE_TABLE,
                low=(-0.75, -0.75),
                high=(0.35, 0.75),
                base_camera=((-0.65, 0.0, 1.35), (-0.1, 0.0, 0.9)),
                human_camera=((-0.75, 0.55, 1.45), (-0.05, 0.02, 0.95)),
                lights=TABLE_LIGHTS["default"],
            ),
        )

    def robot(self, b: SceneBuilder) -> Robot:
        """The robot at its place."""
        return b.robot(pos=TABLE_BASE, quat=HALF_TURN)

    def add_target(self, b: SceneBuilder) -> Part:
        """What the source is put on."""
        target, made = add_object(b, self.target_name, self.target_model)
        self._target_z = resting_height(made)
        return target

    def start(self, h: PutOnHandles, ep: Episode) -> None:
        h.robot.set_qpos(h.robot.keyframe(self.keyframe).expand(h.n, -1))
        row = self.grid[ep.trial(len(self.grid), self.config.trials)]
        heights = torch.ones_like(row[:, :1]) * torch.tensor([self.floor + self._source_z])
        h.source.set_pose(torch.cat([row[:, :2], heights], 1), quat_from_yaw(row[:, 2]))
        self.place_target(h, row[:, 3:])

    def place_target(self, h: PutOnHandles, spot: Tensor) -> None:
        """Lay the target at ``spot`` (n, 2) [m]."""
        height = torch.ones_like(spot[:, :1]) * torch.tensor([self.floor + self._target_z])
        h.target.set_pose(torch.cat([spot, height], 1))

    def settled(self, h: PutOnHandles) -> None:
        h.source_at.set(h.source.pos)
        h.target_at.set(h.target.pos)
        h.source_half.set(rotated_half(h.source.quat, BOXES[self.source_model]))
        h.target_half.set(rotated_half(h.target.quat, BOXES[self.target_model]))

    def advance(self, h: PutOnHandles) -> None:
        grasped = h.grasp.value
        steps = longest(h.steps_held.value, grasped)
        h.steps_held.set(steps)
        h.was_grasped.set(torch.maximum(h.was_grasped.value, grasped.float()))
        h.was_held.set(torch.maximum(h.was_held.value, (steps >= _GRASPED_STEPS).float()))

    def evaluate(self, h: PutOnHandles) -> dict[str, Tensor]:
        source, target = h.source.com, h.target.com
        lies = lies_in_box(source - target, h.target_half.value, h.source_half.value, above=self.above)
        if h.others:
            lies = lies & ~touched(h.others)
        moved = norm((source - h.source_at.value)[:, :2])
        other = norm((target - h.target_at.value)[:, :2])
        return {
            "success": lies,
            "src_on_target": lies,
            "is_grasped": h.grasp.value,
            "is_src_obj_grasped": h.was_grasped.value > 0,
            "consecutive_grasp": h.was_held.value > 0,
            "moved_correct_obj": (moved > _MOVED) & (moved > other),
            "moved_wrong_obj": (other > _MOVED) & (other > moved),
        }

    def observe(self, h: PutOnHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {
                "source_pose": h.source.pose,
                "target_pose": h.target.pose,
                "tcp_to_source": h.source.pos - h.robot.tcp_pos,
                "source_to_target": h.target.com - h.source.com,
            },
        }

    def reward(self, h: PutOnHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        return {"success": ev["success"].float()}

    def expert(self, h: PutOnHandles) -> list[Waypoint]:
        tcp, quat = h.robot.tcp_pos, h.robot.tcp_quat
        middle = h.source.com
        down = top_down(h.source.quat, h.robot, symmetry=self.grips, around=bearing(h.robot, middle))
        place = torch.cat([middle[:, :2], middle[:, 2:].clamp_min(self.floor + _FINGER)], 1)
        goal = h.target.com + torch.tensor([0.0, 0.0, self.lift]) + (tcp - middle)
        high = pose(above(place, 0.07), down)
        return [
            Waypoint(name="above", pose=high, gripper=1, pos_tol=0.015, rot_tol=0.15, timeout_s=3.0),
            Waypoint(name="down", pose=pose(place, down), gripper=1, pos_tol=0.006, rot_tol=0.1, speed=0.15),
            Waypoint(name="close", pose=pose(place, down), gripper=-1, pos_tol=0.02, rot_tol=0.2, dwell_s=0.8),
            Waypoint(name="lift", pose=pose(above(tcp, 0.09), quat), gripper=-1, pos_tol=0.03, speed=0.2),
            Waypoint(name="over", pose=pose(above(goal, 0.06), quat), gripper=-1, pos_tol=0.012, speed=0.2),
            Waypoint(name="lower", pose=pose(goal, quat), gripper=-1, pos_tol=0.008, speed=0.1),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1, pos_tol=0.03, dwell_s=0.6),
            Waypoint(name="up", pose=pose(above(tcp, 0.1), quat), gripper=1).hold(),
        ]
