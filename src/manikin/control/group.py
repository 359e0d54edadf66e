"""A group of a robot's joints as controllers see a robot, and its kinematics."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from manikin.control.ik import Chain, IkResult, IkSolver
from manikin.errors import ConfigError, UnknownNameError
from manikin.moved import old_names
from manikin.scene.handles import Robot
from manikin.scene.handles.tool import RobotTool
from manikin.spec.control import CONTROLLERS, GRIPPER, OPENING, Whole
from manikin.spec.robot import FULL_POSE, POSE_CONTROLLERS, Base, RobotSpec

POSES = ("ee_delta_pose", "ee_pose", "ik_pose")  # that groups with enough joints have where an arm alone has too few

__all__ = ["RobotGroup", "GroupChain", "GroupSolver", "check_groups"]


def check_groups(whole: Whole, arm: RobotSpec) -> dict[str, tuple[str, ...]]:
    """The joints of each group that ``whole`` names.

    Raises:
        UnknownNameError: the robot has no such group.
        ConfigError: a group is named twice, or has too few joints to bring a tool to a pose.
    """
    groups = {name: group.joints for name, group in arm.groups.items()}
    parts = [(name, control) for name, control in whole.parts if name != GRIPPER]
    names = [one for name, _ in parts for one in name.split("+")]
    for name in names:
        if name not in groups:
            hint = f"Each may have one of the controllers {', '.join(CONTROLLERS)}; several as one are base+arm."
            raise UnknownNameError(f"joint group of {arm.name}", name, (*groups, GRIPPER), hint)
    if len(set(names)) < len(names) or len(whole.parts) - len(parts) > 1:
        raise ConfigError(f"{whole.word!r} names a group twice")
    groups |= {name: tuple(j for one in name.split("+") for j in groups[one]) for name, _ in parts}
    needed = min(FULL_POSE, len(arm.ik_joints))
    for name, control in whole.parts:
        if (name == GRIPPER) != (control.name == OPENING):
            raise ConfigError(f"{whole.word!r}: {GRIPPER!r} takes {OPENING!r}, and nothing else does")
        if "+" in name and control.torques:
            raise ConfigError(
                f"{control.name} moves one group by torque, not {name!r}; use a controller of positions, such as "
                "ee_delta_pose or joint_delta_pos, or one controller per group"
            )
        if control.name in POSE_CONTROLLERS and len(groups[name]) < needed:
            raise ConfigError(
                f"{control.name} needs a group with at least {needed} joints, and {name!r} of {arm.name} has "
                f"{len(groups[name])}; use a joint controller, osc_position or ee_delta_pos"
            )
    return {name: groups[name] for name, _ in parts}


class RobotGroup:
    """One group of a robot's joints, or several as one (``base+arm``), without its grippers, as a controller sees a
    robot. Its tool is the one that is declared with the last of these groups that has one, else the robot's first."""

    def __init__(self, robot: Robot, name: str) -> None:
        arm, self._robot = robot.arm, robot
        self.groups = tuple(name.split("+"))
        own = {one: arm.groups[one] for one in self.groups}
        joints = tuple(j for group in own.values() for j in group.joints)
        self.columns = at = [arm.joints.index(j) for j in joints]  # in the robot's joints and commands
        drives = arm.base.drives and set(arm.base.joints) <= set(joints)
        self.arm = RobotSpec(
            name=f"{arm.name} {name}",
            title=arm.title,
            links=arm.links,
            groups=own,
            tools=arm.tools,
            keyframes={key: tuple(values[k] for k in at) for key, values in arm.keyframes.items()},
            ee_delta_pos=arm.ee_delta_pos,
            ee_delta_rot=arm.ee_delta_rot,
            controllers=tuple(
                dict.fromkeys((*arm.controllers, *(POSES if len(at) >= FULL_POSE > len(arm.ik_joints) else ())))
            ),
            base=arm.base if drives else Base(),
        )
        self.name, self.scope, self.prefix = f"{robot.name}/{name}", robot.scope, robot.prefix
        by_group = {tool.group: tool for tool in reversed(robot.tools.values())}
        tool = next((by_group[one] for one in reversed(self.groups) if one in by_group), None)
        self._acts: Robot | RobotTool = tool or robot  # where its tool is
        self.tool = tool.key if tool is not None else robot.model.tools[0].name
        self.carriers: tuple[str, ...] = arm.base.joints if arm.base.drives and not drives else ()
        self.model, self.tools = self._acts.model, dict[str, Any]()
        self.gripper: Any = None
        self.drivers: tuple[str, ...] = ()
        self.limits, self.ranges, self.base_pose = robot.limits[at], robot.ranges[at], robot.base_pose
        self.stands_straight = robot.stands_straight

    @property
    def qpos(self) -> Tensor:
        """(n, joints) [rad or m]."""
        return torch.stack([self._robot.qpos[:, k] for k in self.columns], 1)

    @property
    def qvel(self) -> Tensor:
        """(n, joints) [rad/s or m/s]."""
        return torch.stack([self._robot.qvel[:, k] for k in self.columns], 1)

    @property
    def ctrl(self) -> Tensor:
        """(n, joints) commanded last."""
        return torch.stack([self._robot.ctrl[:, k] for k in self.columns], 1)

    @property
    def tcp_pose(self) -> Tensor:
        """(n, 7) of the group's tool in the world."""
        return self._acts.tcp_pose


class GroupChain:
    """Forward kinematics of a robot of which some joints are given and the others are where they are."""

    def __init__(self, chain: Chain, robot: Robot, columns: Sequence[int]) -> None:
        self._chain, self._robot, self._columns = chain, robot, list(columns)

    @property
    def rest_pose(self) -> tuple[Tensor, Tensor]:
        """TCP position (3,) [m] and quaternion (4,) at rest, in the base frame."""
        return self._chain.rest_pose

    def fk(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """TCP position (n, 3) [m] and quaternion (n, 4) in the base frame, float64, for q (n, joints)."""
        whole = self._robot.arm_qpos.double().clone()
        whole[:, self._columns] = q.double()
        return self._chain.fk(whole)

    def solver(self, rotation_weight: float) -> GroupSolver:
        """Inverse kinematics that moves these joints alone."""
        return GroupSolver(self._chain.solver(rotation_weight), self._robot, self._columns)


class GroupSolver:
    """Inverse kinematics of some of a robot's joints; the others are where they are."""

    def __init__(self, solver: IkSolver, robot: Robot, columns: Sequence[int]) -> None:
        self._solver, self._robot, self._columns = solver, robot, list(columns)

    def solve(self, pos: Tensor, quat: Tensor, start: Tensor, **options: Any) -> IkResult:
        """As :meth:`IkSolver.solve`, of q (n, joints of the group)."""
        whole = self._robot.arm_qpos.double().clone()
        whole[:, self._columns] = start.double()
        found = self._solver.solve(pos, quat, whole, **options)
        return dataclasses.replace(found, q=found.q[:, self._columns])


__getattr__ = old_names(__name__)
