"""Several robots read and commanded as one: groups and tools by name, as those of a robot with several arms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from manikin.scene.handles.robot import Robot

__all__ = ["CombinedRobot"]


class CombinedRobot:
    """The robots of a scene side by side: joints and commands of the first, then those of the second, and so on.

    Args:
        robots: bound to a world.

    Attributes:
        groups: ``ROBOT/GROUP``: where its joints are in ``arm_qpos``, as :attr:`Robot.groups` is of one robot.
        tools: ``ROBOT/TOOL``: a handle of each tool.
    """

    def __init__(self, robots: Sequence[Robot]) -> None:
        self.robots = tuple(robots)
        self.arm_joints = sum(len(r.arm.joints) for r in robots)
        starts = accumulate((r.arm_joints for r in robots), initial=0)
        self.groups = {
            f"{r.name}/{name}": slice(start + own.start, start + own.stop)
            for r, start in zip(robots, starts, strict=False)
            for name, own in r.groups.items()
        }
        self.tools = {f"{r.name}/{name}": tool for r in robots for name, tool in r.tools.items()}
        world = robots[0].scope.world
        self._ctrl = world.channel([piece for r in robots for piece in r.ctrl_pieces])

    @property
    def qpos(self) -> Tensor:
        """(n, joints) [rad or m]."""
        return torch.cat([r.qpos for r in self.robots], 1)

    @property
    def qvel(self) -> Tensor:
        """(n, joints) [rad/s or m/s]."""
        return torch.cat([r.qvel for r in self.robots], 1)

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
