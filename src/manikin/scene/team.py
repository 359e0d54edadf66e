"""Several robots read and commanded as one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manikin.scene.handles import Robot

__all__ = ["Team"]


class Team:
    """The robots of a scene side by side: joints and commands of the first, then those of the second, and so on.

    Args:
        robots: bound to a world.
    """

    def __init__(self, robots: Sequence[Robot]) -> None:
        self.robots = tuple(robots)
        self.arm_joints = sum(len(r.arm.joints) for r in robots)
        world = robots[0].scope.world
        self._ctrl = world.channel([piece for r in robots for piece in r.ctrl_pieces])

    @property
    def qpos(self) -> Tensor:
        """(n, joints) [rad or m]."""
        return torch.cat([r.qpos for r in self.robots], 1)

    @property
    def arm_qpos(self) -> Tensor:
        """(n, arm joints) [rad or m]."""
        return torch.cat([r.arm_qpos for r in self.robots], 1)

    @property
    def ctrl(self) -> Tensor:
        """(n, actuators) what was commanded last."""
        return torch.cat([r.ctrl for r in self.robots], 1)

    @property
    def tcp_pose(self) -> Tensor:
        """(n, 7) of the first robot; a controller reads its own robot's."""
        return self.robots[0].tcp_pose
