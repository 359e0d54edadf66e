"""KitchenOpenCabinet-v1."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from manikin import SceneBuilder, Waypoint
from manikin.homes import Mechanism
from manikin.math import quat_from_yaw, quat_rotate
from manikin.tasks.kitchen.common import KitchenHandles, KitchenTask, across, hinge, moving
from manikin.toolkit import constant

__all__ = ["KitchenOpenCabinet"]

OPEN = 0.9 * math.pi / 2
"""[rad] a door that is open by 90 % of a right angle counts as open."""
_STEPS, _LEAD = 8, 0.12  # stages of the expert's way round the hinge; [rad] beyond what counts as open
_FACING, _AWAY = across(0.0), 0.72  # how the tool points; [m] from the middle of the base to it


class KitchenOpenCabinet(KitchenTask):
    """Open the door of a cabinet on the wall.

    Randomization: which of the built-in kitchens (by the episode's seed, see ``layouts``) and which cabinet with one
    door; where the robot stands before its handle, sideways by 0.15 m and forwards by 0.05 m; the arm's joints, a
    little noise.
    Success: the door is open by 90 % of a right angle.

    After RoboCasa's OpenCabinet, with its rule. There also cabinets with two doors are meant, and things lie in them
    and on the counter.
    """

    id = "KitchenOpenCabinet-v1"
    instruction = "open the door of the marked cabinet"
    labels = moving("door")
    kinds = ("cabinet",)
    keyframe = "forward"
    follow: ClassVar[float] = 0.4  # share of the door's turn that the gripper turns by; the rest it slides on the bar

    def scene(self, b: SceneBuilder) -> KitchenHandles:
        found = super().scene(b)
        self._hinge = torch.tensor([hinge(one, joint) for one, joint in self._targets])
        self._way = torch.tensor([float(one.model.joint(joint).axis[2]) for one, joint in self._targets])
        return found

    def joints(self, one: Mechanism) -> list[str]:
        return list(one.joints) if one.joints == ("door0",) else []

    def done(self, h: KitchenHandles) -> Tensor:
        return self.joint(h) >= constant(OPEN)

    def share(self, h: KitchenHandles) -> Tensor:
        return (self.joint(h) * (1.0 / OPEN)).clamp(0.0, 1.0)

    def expert(self, h: KitchenHandles) -> list[Waypoint]:
        return self.swing(h, 0.0, OPEN + _LEAD)

    def swing(self, h: KitchenHandles, begin: float, end: float) -> list[Waypoint]:
        """Take the handle of a door that is open by about ``begin`` [rad] and bring it to ``end``."""
        number = h.target.value.long()
        hinge, way, closed = self._hinge[number], self._way[number], self._first[number]

        def at(share: float, back: float = 0.0) -> Tensor:
            swing = (self.joint(h) if share == 0.0 else begin + share * (end - begin)) * way
            place = hinge + quat_rotate(quat_from_yaw(swing), closed - hinge)
            return self.tool(h, place, _FACING, back=back, turn=self.follow * swing)

        def to(name: str, tool: Tensor, gripper: float, **how: float) -> Waypoint:
            return Waypoint(name=name, pose=tool, base=self.behind(h, tool, _AWAY), gripper=gripper, **how)  # type: ignore[arg-type]

        arc = [
            to(f"swing {k}", at(k / _STEPS), -1, pos_tol=0.03, rot_tol=0.3, speed=0.3, timeout_s=1.5)
            for k in range(1, _STEPS + 1)
        ]
        return [
            self.stand(h, at(0.0, 0.1), _AWAY),
            to("before", at(0.0, 0.1), 1, pos_tol=0.015, timeout_s=5.0),
            to("around", at(0.0), 1, pos_tol=0.008, speed=0.2),
            to("close", at(0.0), -1, pos_tol=0.02),
            *arc,
            to("end", at(1.0), -1, speed=0.3).hold(),
        ]
