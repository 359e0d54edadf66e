"""PlugCharger-v1."""

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
from manikin.math import norm, pose, pose_inv, pose_mul, quat_angle, quat_from_yaw, quat_mul, quat_rotate_inv
from manikin.props.insertion.charger import BASE, charger, receptacle
from manikin.toolkit import GRASP, above, along_x, bonus, closeness, constant, facing_down, noisy_rest, per_step

__all__ = ["PlugCharger"]

_LEAN = math.radians(15)  # by which the gripper leans away from the receptacle, so that its hand stays clear
_BACK = 0.025  # [m] from the charger's front to where it is held


@dataclass
class PlugChargerHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    charger: Part
    receptacle: Part
    grasp: Grasp
    goal: Variable  # (7,) the charger's pose when it is plugged in


class PlugCharger(Task):
    """Pick up a charger and plug its two prongs into the receptacle.

    Randomization: the charger's place in a rectangle and its turn; the place of the receptacle, which hangs in the air,
    in another rectangle, and its turn; the arm's joints, a little noise about rest.
    Success: the charger is within ``goal_tol`` and ``goal_angle`` of where it is plugged in. The prongs are longer than
    that, so they are in their holes.

    Numbers: ManiSkill3 3.0.1, whose reward is sparse; the dense one is manikin's own. ManiSkill3 paints the holes
    closer together than they are; here they are seen where they are. A charger that is plugged in upside down fits,
    too, but does not count, as there. Friction is 1. Physics has 100 steps per second, as there: prongs that hit the
    face faster than about 0.1 m/s and up to a millimetre off their holes slip in.
    """

    id = "PlugCharger-v1"
    horizon_s = 10.0
    labels = GRASP
    segments = (Segment("charger", until="gripper", after_s=0.5), Segment("goal", moves="charger"))
    instruction = "plug the charger into the receptacle"
    robots = ("panda",)
    physics = Physics(impratio=100)  # as PegInsertionSide
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the charger"),
        "charger_pose": Quantity("m, quaternion wxyz", "world", "x along the prongs, origin where they begin"),
        "receptacle_pose": Quantity("m, quaternion wxyz", "world", "x out of the face, origin between the holes"),
        "goal_pose": Quantity("m, quaternion wxyz", "world", "the charger's when it is plugged in"),
        "charger_to_goal": Quantity("m", "goal"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to where the charger is held",
        "grasp": "1 while grasped",
        "align": "while grasped, 2 (1 - tanh(5 a)) + (1 - tanh(r)), a how far the charger is off the line through the "
        "receptacle's middle, r the angle to its turn at the goal [rad]",
        "insert": "while grasped and a and r are within the tolerances of success: 4 (1 - tanh(10 d)), d from charger "
        "to goal",
        "success": "what is missing to 10, in success",
    }

    @dataclass(frozen=True)
    class Config:
        clearance: float = 0.0005  # [m] between prong and hole on each side
        charger_low: tuple[float, float] = (-0.1, -0.2)  # [m] place of the charger
        charger_high: tuple[float, float] = (-0.026, 0.2)  # [m]
        charger_turn: float = math.pi / 3  # [rad] either way from pointing away from the robot
        receptacle_low: tuple[float, float] = (0.01, -0.1)  # [m] place of the receptacle
        receptacle_high: tuple[float, float] = (0.1, 0.1)  # [m]
        receptacle_turn: float = math.pi / 8  # [rad] either way from facing the robot
        receptacle_height: float = 0.1  # [m] of its middle
        goal_tol: float = 0.005  # [m]
        goal_angle: float = 0.2  # [rad]

    def scene(self, b: SceneBuilder) -> PlugChargerHandles:
        c = self.config
        table(b, human_camera=((-0.2, 0.32, 0.26), (0.0, 0, 0.1)))
        self._half_turn = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
        self._hold = torch.tensor([-_BACK, 0.0, 0.0])
        robot = b.robot()
        plug = b.part("charger", charger(), rgba=(0.92, 0.93, 0.95, 1))
        return PlugChargerHandles(
            robot=robot,
            charger=plug,
            receptacle=b.part("receptacle", receptacle(c.clearance), kind="kinematic", rgba=(0.35, 0.4, 0.48, 1)),
            grasp=b.grasp(robot, plug),
            goal=b.variable("goal", (7,)),
        )

    def start(self, h: PlugChargerHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        spot = rng.uniform("charger/xy", torch.tensor(c.charger_low), torch.tensor(c.charger_high), (2,))
        turn = rng.uniform("charger/yaw", -c.charger_turn, c.charger_turn)
        h.charger.set_pose(torch.cat([spot, torch.full((h.n, 1), BASE[2])], 1), quat_from_yaw(turn))
        place = rng.uniform("receptacle/xy", torch.tensor(c.receptacle_low), torch.tensor(c.receptacle_high), (2,))
        place = torch.cat([place, torch.full((h.n, 1), c.receptacle_height)], 1)
        turn = rng.uniform("receptacle/yaw", -c.receptacle_turn, c.receptacle_turn)
        h.receptacle.set_pose(place, quat_from_yaw(turn + math.pi))
        h.goal.set(pose(place, quat_from_yaw(turn)))

    @per_step
    def to_goal(self, h: PlugChargerHandles) -> tuple[Tensor, Tensor]:
        """(n, 3) [m] from charger to goal in the goal's frame, and (n,) [rad] between them."""
        goal, plug = h.goal.value, h.charger.pose
        return quat_rotate_inv(goal[:, 3:], goal[:, :3] - plug[:, :3]), quat_angle(goal[:, 3:], plug[:, 3:])

    def evaluate(self, h: PlugChargerHandles) -> dict[str, Tensor]:
        away, angle = self.to_goal(h)
        turned = angle <= constant(self.config.goal_angle)
        return {
            "success": (norm(away) <= constant(self.config.goal_tol)) & turned,
            "is_aligned": (norm(away[:, 1:]) <= constant(self.config.goal_tol)) & turned,
            "is_grasped": h.grasp.value,
        }

    def observe(self, h: PlugChargerHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {
                "charger_pose": h.charger.pose,
                "receptacle_pose": h.receptacle.pose,
                "goal_pose": h.goal.value,
                "charger_to_goal": self.to_goal(h)[0],
            },
        }

    def reward(self, h: PlugChargerHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        away, angle = self.to_goal(h)
        grasped = ev["is_grasped"].float()
        hold = torch.sub(h.charger.pos, along_x(h.charger.quat), alpha=_BACK)
        reach, near = closeness((norm(hold - h.robot.tcp_pos), norm(away[:, 1:])), 5.0)
        terms = {
            "reach": reach,
            "grasp": grasped,
            "align": grasped * (constant(2.0) * near + closeness(angle, 1.0)),
            "insert": constant(4.0) * grasped * ev["is_aligned"] * closeness(norm(away), 10.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def frames(self, h: PlugChargerHandles) -> dict[str, Tensor]:
        return {"goal": h.goal.value}

    def expert(self, h: PlugChargerHandles) -> list[Waypoint]:
        plug, tcp, quat = h.charger.pose, h.robot.tcp_pos, h.robot.tcp_quat
        lean = torch.zeros(h.n, 4)
        lean[:, 0], lean[:, 2] = math.cos(_LEAN / 2), -math.sin(_LEAN / 2)
        hold = quat_mul(plug[:, 3:], quat_mul(lean, facing_down(h.robot)))
        place = above(h.charger.pos - _BACK * along_x(plug[:, 3:]), 0.002)  # the fingers' tips clear of the table
        in_hand = pose_mul(pose_inv(plug), h.robot.tcp_pose)

        def plugged(x: float) -> Tensor:  # TCP pose that brings the charger to x on the line through the goal
            shift = torch.zeros(h.n, 3)
            shift[:, 0] = x
            return pose_mul(pose_mul(h.goal.value, pose(shift)), in_hand)

        lift = (h.goal.value[:, 2] - plug[:, 2]).clamp_min(0.03)
        up = torch.cat([tcp[:, :2], (tcp[:, 2] + lift)[:, None]], 1)
        before, at = plugged(-0.03), pose(place, hold)
        clear = tcp + torch.tensor([-0.12, 0.0, 0.04])  # at the start the fingers may be above the receptacle
        return [
            Waypoint(name="clear", pose=pose(clear, quat), gripper=1, pos_tol=0.03, rot_tol=0.3, speed=1.0),
            Waypoint(
                name="above", pose=pose(above(place, 0.06), hold), gripper=1, pos_tol=0.02, rot_tol=0.2, speed=1.0
            ),
            Waypoint(name="down", pose=at, gripper=1, pos_tol=0.004, rot_tol=0.03, timeout_s=1.5),
            Waypoint(name="close", pose=at, gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=0.5),
            Waypoint(name="lift", pose=pose(up, quat), gripper=-1, pos_tol=0.03, timeout_s=1.0),
            Waypoint(name="before", pose=before, gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=3.0),
            Waypoint(name="align", pose=before, gripper=-1, pos_tol=0.0003, rot_tol=0.004, track=True, timeout_s=1.0),
            Waypoint(name="enter", pose=plugged(-0.01), gripper=-1, pos_tol=0.001, speed=0.05, timeout_s=0.8),
            Waypoint(name="insert", pose=plugged(0.0), gripper=-1, speed=0.05).hold(),
        ]
