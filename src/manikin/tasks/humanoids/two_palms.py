"""How experts bring a humanoid's two palms to the sides of a box, hold it between them, and move it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin import Robot
from manikin.math import pose, quat_from_yaw, quat_rotate, quat_slerp, quat_to_yaw
from manikin.toolkit import Palm

__all__ = ["HANDS", "SIDES", "TwoPalms", "between"]

HANDS = ("right", "left")
SIDES = (-1.0, 1.0)  # on which side of the box each is, along its x
_ASIDE = (-0.45, -0.3, -0.15, 0.0, 0.15, 0.3, 0.45)  # [rad] turns of the torso to choose from, from facing the box


def between(one: Tensor, two: Tensor, share: float) -> Tensor:
    """(n, 7) poses so far on the way from one (n, 7) to the other."""
    turn = quat_slerp(one[:, 3:], two[:, 3:], torch.full((len(one),), share))
    return pose(torch.lerp(one[:, :3], two[:, :3], share), turn)


class TwoPalms:
    """The palms of a robot with a torso that turns, and a box that has them on its sides: its y points to the robot.

    Args:
        robot: whose; its tools are ``right`` and ``left``, their grippers declare palms, and its keyframe ``palms``
            has the arms hang so that they are flat.
        half_width: of the box, along its x [m].
        grip: where on the box's sides the palms lie, along its y and z [m].
    """

    def __init__(self, robot: Robot, *, half_width: float, grip: tuple[float, float]) -> None:
        joints = robot.arm.joints
        self.robot, self._half, self._grip = robot, half_width, grip
        self.tools = tuple(robot.tools[side] for side in HANDS)
        self.torso = joints.index(robot.arm.groups["torso"].joints[0])  # number of the joint that turns the torso
        rolls = (next(name for name in joints if name.startswith(f"{side}_shoulder_roll")) for side in HANDS)
        self.rolls = tuple(joints.index(name) for name in rolls)
        self._flat = torch.tensor(robot.arm.keyframes["palms"])
        self._held: dict[tuple[float, float, float], Tensor] = {}
        self._palms = [Palm(robot, side, flat=True) for side in HANDS]

    def hanging(self, turn: Tensor) -> Tensor:
        """(n, joints) [rad] arms hanging, elbows bent, the torso turned by ``turn`` (n,) [rad]."""
        q = self._flat.repeat(len(turn), 1)
        q[:, self.torso] = turn
        return q

    def spread(self, q: Tensor, angle: float) -> Tensor:
        """(n, joints) [rad] as ``q`` (n, joints), the shoulders rolled outward by ``angle`` [rad]."""
        q = q.clone()
        for joint, side in zip(self.rolls, SIDES, strict=True):
            q[:, joint] += side * angle
        return q

    def turns(self, box: Tensor) -> Tensor:
        """(n, k) [rad] turns of the torso from which the palms may come to a box at ``box`` (n, 7)."""
        return (quat_to_yaw(box[:, 3:]) - math.pi / 2)[:, None] + torch.tensor(_ASIDE)

    def around(self, box: Tensor, depth: float, start: Tensor, *, weight: float = 0.2) -> tuple[Tensor, Tensor]:
        """Joints for which the palms lie on the sides of a box.

        Args:
            box: (n, 7) where it is.
            depth: how deep in its sides the palms are [m]; outside where it is negative.
            start: (n, joints) [rad] where the search begins, and where joints of neither arm stay.
            weight: as for :meth:`Palm.at`.

        Returns:
            (n, joints) [rad], and (n,) [m] how far off the worse palm is.
        """
        q, n, offs = start.clone(), len(box), []
        for palm, side in zip(self._palms, SIDES, strict=True):
            at = torch.tensor([side * (self._half - depth), *self._grip]).expand(n, 3)
            normal = torch.tensor([-side, 0.0, 0.0]).expand(n, 3)
            place, way = box[:, :3] + quat_rotate(box[:, 3:], at), quat_rotate(box[:, 3:], normal)
            q, off = palm.at(place, way, q, weight=weight)
            offs.append(off)
        return q, torch.maximum(*offs)

    def before(self, turn: Tensor, ahead: float, height: float) -> Tensor:
        """(n, 7) the pose of a box so far before [m] a robot whose torso is turned by ``turn`` (n,) [rad], so high
        [m]."""
        way = torch.stack([torch.cos(turn), torch.sin(turn)], 1)
        place = torch.full((len(turn), 3), height)
        place[:, :2] = self.robot.base_pose[:2] + ahead * way
        return pose(place, quat_from_yaw(turn + math.pi / 2))

    def holding(self, turn: Tensor, ahead: float, height: float, depth: float) -> Tensor:
        """(n, joints) [rad] as :meth:`around` a box that is :meth:`before` the robot. The arms' joints are the same
        for every turn of the torso, and worked out once."""
        key = (ahead, height, depth)
        if key not in self._held:
            none = torch.zeros(1)
            self._held[key] = self.around(self.before(none, ahead, height), depth, self.hanging(none))[0]
        q = self._held[key].repeat(len(turn), 1)
        q[:, self.torso] = turn
        return q
