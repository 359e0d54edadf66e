"""Door-v2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Articulation, Episode, Handles, Quantity, Robot, SceneBuilder, Variable, Waypoint
from manikin.arenas.square_table import square_table
from manikin.env.placement import Place
from manikin.math import norm, pose, pose_mul, quat_from_axis_angle, quat_from_yaw, quat_mul, quat_rotate
from manikin.props.door import HINGE, LEVER, PULL, door
from manikin.tasks.robosuite.common import OFFSET, TCP, StagedTask, ready
from manikin.toolkit import bonus, closeness, constant, per_step

__all__ = ["Door"]

_Y, _Z = torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 0.0, 1.0])


@dataclass
class DoorHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    door: Articulation
    place: Variable  # (7,) pose of the closed panel [m, quaternion]


class Door(StagedTask):
    """Open a door by its lever. With ``latch`` the lever must be turned first, or the door does not move.

    Randomization: the door's place and turn; the arm's joints, a little noise.
    Success: the hinge is open by more than ``open_angle``.

    Numbers: robosuite 1.0.
    """

    id = "Door-v2"
    family = "cabinets"
    instruction = "turn the lever and pull the door open"
    robot_needs = ("arm", "tool", "held base")
    reward_max = 1.0
    observations = {
        **TCP,
        "door_pos": Quantity("m", "world", "middle of the panel"),
        "handle_pos": Quantity("m", "world"),
        "tcp_to_door": OFFSET,
        "tcp_to_handle": OFFSET,
        "hinge": Quantity("rad"),
        "latch": Quantity("rad", note="how far the lever is turned; 0 without a latch"),
    }
    reward_terms = {
        "reach": "0.25 (1 - tanh(10 d)), d from TCP to handle",
        "turn": "0.25 times the lever's turn over 90 degrees, either way",
        "success": "what is missing to 1, in success",
    }

    @dataclass(frozen=True)
    class Config:
        latch: bool = True  # whether a lever holds the door shut
        open_angle: float = 0.3  # [rad]
        place: tuple[float, float] = (-0.12, -0.35)  # [m] of the frame's origin, which is beside the door
        spread: tuple[float, float] = (0.01, 0.01)  # [m] it varies by
        turn: tuple[float, float] = (-math.pi / 2 - 0.25, -math.pi / 2)  # [rad]

    def scene(self, b: SceneBuilder) -> DoorHandles:
        latch = self.config.latch
        robot = square_table(
            b, size=(0.8, 0.3), centre=(-0.2, -0.35), human_camera=((0.55, 0.65, 0.7), (-0.25, -0.2, 0.25))
        )
        # from the frame's origin to the middle of the closed door, which is turned by a quarter
        self._middle = pose(torch.tensor([0.0, -0.08, 0.3]), quat_from_yaw(torch.tensor(-math.pi / 2)))
        self._unlatched = torch.zeros(1, 1)
        keep = [("lever", "frame")] if latch else []
        return DoorHandles(
            robot=robot,
            door=b.articulation("door", door(latch), collide=keep),
            place=b.variable("door_place", (7,)),
        )

    def start(self, h: DoorHandles, ep: Episode) -> None:
        c = self.config
        ready(h.robot, ep)
        low, high = [tuple(p + s * d for p, d in zip(c.place, c.spread, strict=True)) for s in (-1, 1)]
        origin = ep.scatter([Place(low=low, high=high, turn=c.turn)], name="door")[:, 0]
        place = pose_mul(origin, self._middle.expand_as(origin))
        h.place.set(place)
        h.door.set_base(place[:, :3], place[:, 3:])
        h.door.set_qpos(torch.zeros(len(h.door.joints)))

    @per_step
    def _geometry(self, h: DoorHandles) -> tuple[Tensor, Tensor, Tensor]:
        """Offsets from the TCP to door and handle (n, 2, 3) [m], distance to the handle [m], joints (n, 2) [rad]."""
        offset = h.door.places - h.robot.tcp_pos[:, None]
        joints = h.door.qpos
        if not self.config.latch:
            joints = torch.cat([joints, self._unlatched.expand(h.n, 1)], 1)
        return offset, norm(offset[:, 1]), joints

    def evaluate(self, h: DoorHandles) -> dict[str, Tensor]:
        joints = self._geometry(h)[2]
        return {
            "success": joints[:, 0] > constant(self.config.open_angle),
            "is_turned": joints[:, 1].abs() > constant(1.15),
        }

    def observe(self, h: DoorHandles) -> dict[str, dict[str, Tensor]]:
        offset, _, joints = self._geometry(h)
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {
                "door_pos": h.door.places[:, 0],
                "handle_pos": h.door.places[:, 1],
                "tcp_to_door": offset[:, 0],
                "tcp_to_handle": offset[:, 1],
                "hinge": joints[:, :1],
                "latch": joints[:, 1:],
            },
        }

    def reward(self, h: DoorHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        _, distance, joints = self._geometry(h)
        terms = {
            "reach": constant(0.25) * closeness(distance, 10.0),
            "turn": (joints[:, 1].abs() * constant(0.5 / math.pi)).clamp_max(0.25),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: DoorHandles) -> list[Waypoint]:
        def at(hinge: float, turn: float, back: float = 0.0) -> Tensor:
            """TCP pose that holds the lever when the door is open by ``hinge`` and the lever turned by ``turn``."""
            return pose_mul(_lever(h.place.value, hinge, turn), _hold(back).expand(h.n, 7))

        turned = 1.4 if self.config.latch else 0.0
        arc = [(0.0, turned * k / 4) for k in range(1, 5)] if turned else []
        arc += [(0.08 * k, turned) for k in range(1, 6)]
        moves = [
            Waypoint(name=f"hinge {a:.2f} lever {b:.2f}", pose=at(a, b), gripper=-1, pos_tol=0.015, rot_tol=0.15,
                     speed=0.25, timeout_s=1.5) for a, b in arc
        ]  # fmt: skip
        return [
            Waypoint(name="before", pose=at(0.0, 0.0, 0.15), gripper=1, pos_tol=0.015, rot_tol=0.1, timeout_s=5.0),
            Waypoint(name="reach", pose=at(0.0, 0.0), gripper=1, pos_tol=0.006, rot_tol=0.1, speed=0.3),
            Waypoint(name="close", pose=at(0.0, 0.0), gripper=-1, pos_tol=0.02, rot_tol=0.2, timeout_s=0.5),
            *moves,
            Waypoint(name="end", pose=at(0.4, turned), gripper=-1).hold(),
        ]


def _lever(place: Tensor, hinge: float, turn: float) -> Tensor:
    """(n, 7) pose of the lever of doors at ``place`` (n, 7)."""
    swing = quat_from_axis_angle(_Z, torch.tensor(hinge))
    about = torch.tensor(HINGE)
    panel = pose(about - quat_rotate(swing, about), swing)
    lever = pose(torch.tensor(LEVER), quat_from_axis_angle(_Y, torch.tensor(turn)))
    return pose_mul(place, pose_mul(panel, lever).expand_as(place))


def _hold(back: float) -> Tensor:
    """(7,) TCP pose in the lever's frame, ``back`` [m] before it: pointing at the door, opening up and down."""
    into = quat_from_axis_angle(torch.tensor([1.0, 0.0, 0.0]), torch.tensor(-math.pi / 2))
    into = quat_mul(into, quat_from_yaw(torch.tensor(math.pi)))
    return pose(torch.tensor([PULL[0] - 0.02, PULL[1] - back, PULL[2]]), into)
