"""KitchenCloseDrawer-v1."""

from __future__ import annotations

import torch
from torch import Tensor

from manikin import Waypoint
from manikin.homes import Mechanism
from manikin.math import quat_rotate
from manikin.tasks.kitchen.common import KitchenHandles, KitchenTask, across, moving
from manikin.toolkit import constant

__all__ = ["KitchenCloseDrawer"]

CLOSED = 0.05
"""Share of its travel up to which a drawer counts as closed."""
_FACING, _AWAY = across(1.0), 0.75  # how the tool points; [m] from the middle of the base to it


class KitchenCloseDrawer(KitchenTask):
    """Push an upper drawer of the counter shut.

    Randomization: which of the built-in kitchens (by the episode's seed, see ``layouts``) and which upper drawer; how
    far it is open, 90 to 100 % of its travel; where the robot stands before it, sideways by 0.15 m and forwards by
    0.05 m; the arm's joints, a little noise.
    Success: the drawer is open by at most 5 % of its travel.

    After RoboCasa's CloseDrawer, with its rule. There the robot begins beside the drawer, and things lie in it and on
    the counter; here it begins before it, and the drawer is empty.
    """

    id = "KitchenCloseDrawer-v1"
    instruction = "push the marked drawer shut"
    labels = moving("drawer")
    kinds = ("cabinet",)
    opened = (0.9, 1.0)
    backs = 0.45

    def joints(self, one: Mechanism) -> list[str]:
        drawers = sorted(joint for joint in one.joints if joint.startswith("drawer"))
        return drawers[-1:]

    def done(self, h: KitchenHandles) -> Tensor:
        return self.joint(h) <= constant(CLOSED) * self.limit(h)

    def share(self, h: KitchenHandles) -> Tensor:
        return 1.0 - (self.joint(h) / self.limit(h)).clamp(0.0, 1.0)

    def expert(self, h: KitchenHandles) -> list[Waypoint]:
        handle = self.handle(h)
        out = quat_rotate(self.front(h), torch.tensor([[1.0, 0.0, 0.0]]).expand(h.n, 3))
        shut = handle - self.joint(h)[:, None] * out

        def push(at: Tensor, name: str, back: float, speed: float) -> Waypoint:
            tool = self.tool(h, at, _FACING, back=back)
            return Waypoint(name=name, pose=tool, base=self.behind(h, tool, _AWAY), gripper=-1, pos_tol=0.03,
                            rot_tol=0.4, speed=speed)  # fmt: skip

        first = self.tool(h, handle, _FACING, back=0.1)
        return [
            self.stand(h, first, _AWAY),
            push(handle, "before", 0.1, 0.5),
            push(handle, "touch", 0.02, 0.2),
            push(shut, "push", 0.0, 0.25),
            push(shut, "end", 0.0, 0.25).hold(),
        ]
