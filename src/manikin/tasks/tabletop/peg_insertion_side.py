"""PegInsertionSide-v2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    Episode,
    Grasp,
    Handles,
    Part,
    Physics,
    Quantity,
    Robot,
    SceneBuilder,
    Segment,
    Task,
    Variable,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.math import norm, pose, pose_inv, pose_mul, quat_from_yaw, quat_to_matrix
from manikin.props.holed_box import holed_box, walls
from manikin.toolkit import GRASP, above, along_x, bonus, closeness, noisy_rest, per_step, top_down

__all__ = ["PegInsertionSide"]


@dataclass
class PegInsertionSideHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    peg: Part
    box: Part
    grasp: Grasp
    length: Variable  # (1,) [m] half the peg
    hole_pose: Variable  # (7,)
    hole_axes: Variable  # (3, 3)
    hole_radius: Variable  # [m]


class PegInsertionSide(Task):
    """Pick up a peg and push its head sideways into the hole of a box.

    Randomization: the peg's length and width, its place in a rectangle and its turn; the box's size (it follows from
    the peg's), the hole's place in its face, the box's place in another rectangle and its turn; the arm's joints, a
    little noise about rest, with the wrist turned so that the open fingers lie across the peg.
    Success: the peg's head is inside the hole and at most ``depth_tol`` short of the box's centre.

    Numbers: ManiSkill3 3.0.1. The point of the peg that counts for reaching is ``grasp_offset`` behind its centre. The
    box stands fast; peg and box have friction 1.
    """

    id = "PegInsertionSide-v2"
    family = "insertion"
    horizon_s = 5.0
    labels = GRASP
    segments = (Segment("peg", until="gripper", after_s=0.5), Segment("hole", moves="head"))
    instruction = "insert the peg into the hole of the box"
    robots = ("panda",)
    physics = Physics(impratio=100)  # 20 line searches are too few: held things sink into others
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1"),
        "peg_pose": Quantity("m, quaternion wxyz", "world", "x from tail to head"),
        "peg_half_size": Quantity("m", "peg"),
        "hole_pose": Quantity(
            "m, quaternion wxyz", "world", "x into the hole, origin in the middle of the box's depth"
        ),
        "hole_radius": Quantity("m", "", "half the hole's side"),
    }
    reward_terms = {
        "reach": "1 - tanh(4 d), d from TCP to the place to hold the peg",
        "grasp": "1 while grasped, the fingers' forces within 20 degrees of their closing direction",
        "align": "while grasped, 3 (1 - tanh((a + b) / 2 + 4.5 max(a, b))), a and b how far the peg's head and centre "
        "are off the hole's axis",
        "insert": "while grasped and a, b < 0.01 m: 5 (1 - tanh(5 d)), d from the peg's head to the hole's middle",
        "success": "what is missing to 10, in success",
    }

    @dataclass(frozen=True)
    class Config:
        half_length: tuple[float, float] = (0.085, 0.125)  # [m] of the peg; also half the side of the box
        half_width: tuple[float, float] = (0.015, 0.025)  # [m] of the peg
        clearance: float = 0.003  # [m] between peg and hole on each side
        peg_low: tuple[float, float] = (-0.1, -0.3)  # [m] place of the peg
        peg_high: tuple[float, float] = (0.1, 0.0)  # [m]
        peg_turn: float = math.pi / 3  # [rad] either way from pointing along y
        box_low: tuple[float, float] = (-0.05, 0.2)  # [m] place of the box
        box_high: tuple[float, float] = (0.05, 0.4)  # [m]
        box_turn: float = math.pi / 8  # [rad] either way
        grasp_offset: float = 0.06  # [m] from the peg's centre towards its tail
        grasp_angle: float = 20.0  # [deg]
        align_tol: float = 0.01  # [m]
        depth_tol: float = 0.015  # [m]

    def scene(self, b: SceneBuilder) -> PegInsertionSideHandles:
        c = self.config
        table(b, base_camera=((0, -0.3, 0.2), (0, 0, 0.1)))
        length, width = sum(c.half_length) / 2, sum(c.half_width) / 2
        robot = b.robot()
        peg = b.box("peg", half_size=(length, width, width), rgba=(0.93, 0.53, 0.2, 1), resizable=True)
        box = holed_box(length, width + c.clearance)
        return PegInsertionSideHandles(
            robot=robot,
            peg=peg,
            box=b.part("box", box, kind="kinematic", rgba=(0.9, 0.76, 0.56, 1), resizable=True),
            grasp=b.grasp(robot, peg, max_angle=c.grasp_angle),
            length=b.variable("half_length", (1,)),
            hole_pose=b.variable("hole_pose", (7,)),
            hole_axes=b.variable("hole_axes", (3, 3)),
            hole_radius=b.variable("hole_radius"),
        )

    def start(self, h: PegInsertionSideHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep, turn=-math.pi / 2)
        length = rng.uniform("peg/half_length", *c.half_length)
        width = rng.uniform("peg/half_width", *c.half_width)
        centre = 0.5 * (length - width)[:, None] * rng.uniform("hole/centre", -1.0, 1.0, (2,))
        spot = rng.uniform("peg/xy", torch.tensor(c.peg_low), torch.tensor(c.peg_high), (2,))
        turn = rng.uniform("peg/yaw", math.pi / 2 - c.peg_turn, math.pi / 2 + c.peg_turn)
        box = rng.uniform("box/xy", torch.tensor(c.box_low), torch.tensor(c.box_high), (2,))
        box_turn = rng.uniform("box/yaw", math.pi / 2 - c.box_turn, math.pi / 2 + c.box_turn)
        self.shape(h, length, width, centre)
        h.peg.set_pose(torch.cat([spot, width[:, None]], 1), quat_from_yaw(turn))
        self.stand(h, torch.cat([box, length[:, None]], 1), quat_from_yaw(box_turn), centre)

    def shape(self, h: PegInsertionSideHandles, length: Tensor, width: Tensor, centre: Tensor) -> None:
        """Give the rows pegs of these half lengths and widths (n,) [m] and boxes with a hole at ``centre`` (n, 2)."""
        h.peg.set_size(torch.stack([length, width, width], 1))
        sizes, places = walls(length, width + self.config.clearance, centre)
        h.box.set_size(sizes)
        h.box.set_offsets(places)
        h.length.set(length[:, None])
        h.hole_radius.set(width + self.config.clearance)

    def stand(self, h: PegInsertionSideHandles, pos: Tensor, quat: Tensor, centre: Tensor) -> None:
        """Put the box at pos (n, 3) and quat (n, 4), the hole with it."""
        h.box.set_pose(pos, quat)
        hole = torch.cat([torch.zeros(h.n, 1), centre], 1)
        h.hole_pose.set(pose_mul(pose(pos, quat), pose(hole)))
        h.hole_axes.set(quat_to_matrix(quat))

    @per_step
    def _geometry(self, h: PegInsertionSideHandles) -> tuple[Tensor, Tensor]:
        """The peg's axis (n, 3) in the world; its head and centre (n, 2, 3) in the frame of the hole."""
        axis, peg = along_x(h.peg.quat), h.peg.pos
        points = torch.stack([peg + h.length.value * axis, peg], 1) - h.hole_pose.value[:, None, :3]
        return axis, torch.bmm(points, h.hole_axes.value)

    def evaluate(self, h: PegInsertionSideHandles) -> dict[str, Tensor]:
        head = self._geometry(h)[1][:, 0]
        inside = head[:, 1:].abs().amax(1) <= h.hole_radius.value
        return {"success": inside & (head[:, 0] >= -self.config.depth_tol), "is_grasped": h.grasp.value}

    def observe(self, h: PegInsertionSideHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {
                "peg_pose": h.peg.pose,
                "peg_half_size": h.peg.size,
                "hole_pose": h.hole_pose.value,
                "hole_radius": h.hole_radius.value,
            },
        }

    def reward(self, h: PegInsertionSideHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        c, grasped = self.config, ev["is_grasped"]
        axis, points = self._geometry(h)
        off = norm(points[:, :, 1:])  # (n, 2) of head and centre from the hole's axis
        worst = off.amax(1)
        hold = torch.sub(h.peg.pos, axis, alpha=c.grasp_offset)
        ready = grasped & (worst < c.align_tol)
        terms = {
            "reach": closeness(norm(hold - h.robot.tcp_pos), 4.0),
            "grasp": grasped.float(),
            "align": 3.0 * grasped * closeness(torch.add(off.sum(1), worst, alpha=9), 0.5),
            "insert": 5.0 * ready * closeness(norm(points[:, 0]), 5.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def frames(self, h: PegInsertionSideHandles) -> dict[str, Tensor]:
        tip = torch.zeros(h.n, 3)
        tip[:, 0] = h.length.value[:, 0]
        return {"hole": h.hole_pose.value, "head": pose_mul(h.peg.pose, pose(tip))}

    def expert(self, h: PegInsertionSideHandles) -> list[Waypoint]:
        c, peg, tcp, quat = self.config, h.peg.pose, h.robot.tcp_pos, h.robot.tcp_quat
        down = top_down(h.peg.quat, h.robot, symmetry=2, around=math.pi / 2)
        hold = h.peg.pos - c.grasp_offset * along_x(h.peg.quat)
        in_hand = pose_mul(pose_inv(peg), h.robot.tcp_pose)

        def head_at(x: Tensor | float) -> Tensor:  # TCP pose that brings the peg's head to x on the hole's axis
            shift = torch.zeros(h.n, 3)
            shift[:, 0] = x - h.length.value[:, 0]
            return pose_mul(pose_mul(h.hole_pose.value, pose(shift)), in_hand)

        length = h.length.value[:, 0]
        before, entered, inside = head_at(-length - 0.02), head_at(-length + 0.02), head_at(0.01)
        caught = self._geometry(h)[1][:, 0, 0] < 0.01 - length  # the head met the edge of the hole
        again = torch.where(caught[:, None], before, h.robot.tcp_pose)
        lift = (h.hole_pose.value[:, 2] - h.peg.pos[:, 2]).clamp_min(0.03)
        up = torch.cat([tcp[:, :2], (tcp[:, 2] + lift)[:, None]], 1)
        return [
            Waypoint(name="above", pose=pose(above(hold, 0.05), down), gripper=1, pos_tol=0.02, rot_tol=0.3, speed=1.0),
            Waypoint(name="down", pose=pose(hold, down), gripper=1, pos_tol=0.006, rot_tol=0.05, timeout_s=1.0),
            Waypoint(name="close", pose=pose(hold, down), gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=0.5),
            Waypoint(name="lift", pose=pose(up, quat), gripper=-1, pos_tol=0.03, timeout_s=1.0),
            Waypoint(name="before", pose=before, gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=3.0),
            Waypoint(name="align", pose=before, gripper=-1, pos_tol=0.002, rot_tol=0.015, timeout_s=0.4),
            Waypoint(name="enter", pose=entered, gripper=-1, pos_tol=0.004, speed=0.15, timeout_s=0.6),
            Waypoint(name="back", pose=again, gripper=-1, pos_tol=0.01, timeout_s=0.5),
            Waypoint(name="align again", pose=again, gripper=-1, pos_tol=0.002, rot_tol=0.015, timeout_s=0.4),
            Waypoint(name="insert", pose=inside, gripper=-1, speed=0.2).hold(),
        ]
