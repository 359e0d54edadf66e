"""Stack-v2."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from manikin import ContactForce, Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Segment, Waypoint
from manikin.arenas.square_table import square_table
from manikin.env.placement import Place
from manikin.math import norm, pose, quat_mul, quat_rotate_inv
from manikin.moved import old_names
from manikin.tasks.robosuite.common import DROP, TCP, StagedTask, ready
from manikin.toolkit import ONE, ZERO, above, closeness, constant, fingers_touch, pick, top_down

__all__ = ["RobosuiteStack"]


@dataclass
class StackHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    red: Part
    green: Part
    grasp: Grasp
    contact: ContactForce  # of the red cube on the green one


class RobosuiteStack(StagedTask):
    """Put the small red cube on the larger green cube and let go.

    Randomization: the places of both cubes in a square, never touching, and their turn about the vertical; the arm's
    joints, a little noise.
    Success: the red cube is off the table and touches the green one, and no finger touches the red one.

    Numbers: robosuite 1.0. The reward is the largest of three stages, so its terms exclude one another.
    """

    id = "Stack-v2"
    instruction = "stack the small red cube on the green cube"
    segments = (Segment("red", until="is_lifted", after_s=0.2), Segment("green", moves="red"))
    reward_max = 2.0
    observations = {
        **TCP,
        "red_pose": Quantity("m, quaternion wxyz", "world"),
        "green_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_red": Quantity("m", "world"),
        "tcp_to_green": Quantity("m", "world"),
        "red_to_green": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "0.25 (1 - tanh(10 d)), d from TCP to red cube, plus 0.25 while both fingers touch it",
        "lift": "while the red cube is off the table: 1 + 0.5 (1 - tanh(d)), d the cubes' horizontal distance",
        "stack": "2 in success",
    }

    @dataclass(frozen=True)
    class Config:
        red_half_size: float = 0.02  # [m]
        green_half_size: float = 0.025  # [m]
        spawn_half_size: float = 0.08  # [m]
        lift_height: float = 0.04  # [m] the red cube's centre, when off the table

    def scene(self, b: SceneBuilder) -> StackHandles:
        c = self.config
        robot = square_table(b)
        red = b.box("red", half_size=(c.red_half_size,) * 3, rgba=(0.85, 0.1, 0.1, 1))
        green = b.box("green", half_size=(c.green_half_size,) * 3, rgba=(0.1, 0.65, 0.15, 1))
        self._quarter = torch.tensor([sqrt(0.5), 0.0, 0.0, sqrt(0.5)])
        return StackHandles(
            robot=robot,
            red=red,
            green=green,
            grasp=b.grasp(robot, red),
            contact=b.contact_force(red, green),
        )

    def start(self, h: StackHandles, ep: Episode) -> None:
        c, r = self.config, self.config.spawn_half_size
        ready(h.robot, ep)
        sizes = (c.red_half_size, c.green_half_size)
        places = [Place(low=(-r, -r), high=(r, r), radius=sqrt(2) * s, z=s + DROP) for s in sizes]
        spots = ep.scatter(places, name="cubes")
        h.red.set_pose(spots[:, 0, :3], spots[:, 0, 3:])
        h.green.set_pose(spots[:, 1, :3], spots[:, 1, 3:])

    def evaluate(self, h: StackHandles) -> dict[str, Tensor]:
        fingers = fingers_touch([h.grasp])[:, 0]
        lifted = h.red.pos[:, 2] > constant(self.config.lift_height)
        rests = h.contact.value.count_nonzero(1) > 0
        return {
            "success": lifted & rests & ~fingers.any(1),
            "is_grasped": fingers.all(1),
            "is_lifted": lifted,
        }

    def observe(self, h: StackHandles) -> dict[str, dict[str, Tensor]]:
        red, green, tcp = h.red.pos, h.green.pos, h.robot.tcp_pos
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {
                "red_pose": h.red.pose,
                "green_pose": h.green.pose,
                "tcp_to_red": red - tcp,
                "tcp_to_green": green - tcp,
                "red_to_green": green - red,
            },
        }

    def reward(self, h: StackHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        offset = h.red.pos - h.green.pos
        reach = constant(0.25) * (closeness(norm(h.red.pos - h.robot.tcp_pos), 10.0) + ev["is_grasped"])
        lift = ONE + constant(0.5) * closeness(norm(offset[:, :2]), 1.0)
        stacked, lifted = ev["success"], ev["is_lifted"]
        return {
            "reach": torch.where(lifted, ZERO, reach),
            "lift": torch.where(lifted & ~stacked, lift, ZERO),
            "stack": stacked * constant(2.0),
        }

    def expert(self, h: StackHandles) -> list[Waypoint]:
        c, tcp, quat = self.config, h.robot.tcp_pos, h.robot.tcp_quat
        in_hand = tcp - h.red.pos
        on = above(h.green.pos, c.green_half_size + c.red_half_size) + in_hand
        return [
            *pick(h.red.pos, self._grasp(h), h.robot, clear=0.1),
            Waypoint(name="over", pose=pose(above(on, 0.06), quat), gripper=-1, pos_tol=0.006, timeout_s=3.0),
            Waypoint(name="lower", pose=pose(above(on, 0.002), quat), gripper=-1, pos_tol=0.003, speed=0.15),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1, pos_tol=0.02, rot_tol=0.2, dwell_s=0.3),
            Waypoint(name="up", pose=pose(above(tcp, 0.1), quat), gripper=1, pos_tol=0.0, timeout_s=1e9, speed=0.3),
        ]

    def _grasp(self, h: StackHandles) -> Tensor:
        """The grasp that turns the gripper least, or the next where an open finger would meet the green cube."""
        first = top_down(h.red.quat, h.robot)
        other = quat_mul(first, self._quarter)

        def blocked(quat: Tensor) -> Tensor:
            local = quat_rotate_inv(quat, h.green.pos - h.red.pos).abs()
            return (local[:, 0] < 0.05) & (local[:, 1] < 0.11)

        return torch.where((blocked(first) & ~blocked(other))[:, None], other, first)


__getattr__ = old_names(__name__)
