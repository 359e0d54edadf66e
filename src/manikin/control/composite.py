"""Several controllers as one: parts of a robot (base, torso, arm), or several robots, in one action and one carry."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.control.base import Controller, Drive, Reading
from manikin.control.ik import Chain
from manikin.control.joint import GripperMap
from manikin.errors import ConfigError, UnknownNameError
from manikin.scene.handles import Robot
from manikin.spec.action import ActionCard, ActionDim
from manikin.spec.control import Whole
from manikin.spec.robot import ArmSpec, Gains

__all__ = ["Composite", "Group", "GroupChain", "Part", "check_groups"]


def check_groups(whole: Whole, arm: ArmSpec) -> dict[str, tuple[str, ...]]:
    """The joints of each group that ``whole`` names.

    Raises:
        UnknownNameError: the robot has no such group.
        ConfigError: a group is named twice.
    """
    groups = arm.groups or {"arm": arm.joints}
    names = [name for name, _ in whole.parts]
    for name in names:
        if name not in groups:
            raise UnknownNameError(f"joint group of {arm.name}", name, groups)
    if len(set(names)) < len(names):
        raise ConfigError(f"{whole.word!r} names a group twice")
    return {name: tuple(groups[name]) for name in names}


class Group:
    """Some joints of a robot, without its gripper, as a controller sees a robot."""

    def __init__(self, robot: Robot, name: str, joints: tuple[str, ...]) -> None:
        arm, self._robot = robot.arm, robot
        at = [arm.joints.index(j) for j in joints]
        self.columns = at  # in the robot's joints and commands

        def own(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[k] for k in at) if values else ()

        gains = arm.gains
        self.arm = dataclasses.replace(
            arm,
            name=f"{arm.name} {name}",
            joints=joints,
            gains=Gains(kp=own(gains.kp), kd=own(gains.kd), force=own(gains.force), source=gains.source),
            effort=own(arm.effort),
            joint_delta=own(arm.joint_delta),
            keyframes={k: own(v) for k, v in arm.keyframes.items()},
            groups={},
            ik_groups=(),
        )
        self.name, self.scope, self.prefix, self.model = f"{robot.name}/{name}", robot.scope, robot.prefix, robot.model
        self.gripper: Any = None
        self.drivers: tuple[str, ...] = ()
        self.limits, self.ranges, self.base_pose = robot.limits[at], robot.ranges[at], robot.base_pose
        self.stands_straight = robot.stands_straight

    @property
    def qpos(self) -> Tensor:
        """(n, joints) [rad or m]."""
        return torch.stack([self._robot.qpos[:, k] for k in self.columns], 1)

    @property
    def ctrl(self) -> Tensor:
        """(n, joints) commanded last."""
        return torch.stack([self._robot.ctrl[:, k] for k in self.columns], 1)

    @property
    def tcp_pose(self) -> Tensor:
        """(n, 7) of the robot's tool centre point in the world."""
        return self._robot.tcp_pose


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


@dataclasses.dataclass(frozen=True)
class Part:
    """A controller, what it reads, where its commands go in the whole's, and which of the whole's arm joints it moves
    (None: the same numbers)."""

    name: str
    controller: Controller
    reading: Reading
    columns: Sequence[int]
    joints: Sequence[int] | None = None

    @property
    def moves(self) -> Sequence[int]:
        return self.columns if self.joints is None else self.joints


class _Drives(Drive):
    def __init__(self, drives: Sequence[Drive | None], carries: Sequence[Tensor]) -> None:
        self._drives, self._carries = drives, carries

    def __call__(self, substep: int) -> None:
        for drive in self._drives:
            if drive is not None:
                drive(substep)

    @property
    def carry(self) -> Tensor:
        pairs = zip(self._drives, self._carries, strict=True)
        return torch.cat([carry if drive is None else drive.carry for drive, carry in pairs], 1)


class Composite:
    """Controllers side by side. The action is theirs one after the other, the gripper's number last; what no part
    commands stays as it was commanded.

    Args:
        name: the word for it.
        robot: what it is called on the card.
        parts: who commands what.
        gripper: of the robot, where no part has its own.
    """

    def __init__(self, name: str, robot: str, parts: Sequence[Part], gripper: GripperMap | None) -> None:
        self.name, self.parts, self._gripper = name, tuple(parts), gripper
        cards = [p.controller.card for p in parts]
        self._sizes, self._widths = [c.size for c in cards], [0] * len(cards)
        dims = [self._named(p.name, d) for p, c in zip(parts, cards, strict=True) for d in c.dims]
        self.card = ActionCard(
            controller=name,
            robot=robot,
            dims=(*dims, *(gripper.dims() if gripper is not None else ())),
            when=" and ".join(sorted({c.when for c in cards})),
            notes=" ".join(f"{p.name}: {c.notes}." for p, c in zip(parts, cards, strict=True) if c.notes),
        )
        self.every_substep = any(p.controller.every_substep for p in parts)
        self.rate = min((p.controller.rate for p in parts if p.controller.rate > 0), default=0.0)

    @staticmethod
    def _named(part: str, dim: ActionDim) -> ActionDim:
        return dataclasses.replace(dim, name=f"{part}/{dim.name}")

    def start(self, reading: Reading) -> Tensor:
        carries = [p.controller.start(p.reading) for p in self.parts]
        self._widths = [c.shape[1] for c in carries]
        return torch.cat(carries, 1)

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        ctrl, carries = reading.ctrl.clone(), []
        at = 0
        for part, size, own in zip(self.parts, self._sizes, carry.split(self._widths, 1), strict=True):
            command, new = part.controller(own, part.reading, action[:, at : at + size])
            for k, column in enumerate(part.columns):
                ctrl[:, column] = command[:, k]
            carries.append(new)
            at += size
        if self._gripper is not None and self._gripper.size:
            fingers = self._gripper(action)
            ctrl[:, ctrl.shape[1] - fingers.shape[1] :] = fingers
        return ctrl, torch.cat(carries, 1)

    def drive(self, carry: Tensor, rows: np.ndarray | None) -> Drive | None:
        if not self.every_substep:
            return None
        carries = carry.split(self._widths, 1)
        return _Drives([p.controller.drive(c, rows) for p, c in zip(self.parts, carries, strict=True)], carries)

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        parts = zip(self.parts, carry.split(self._widths, 1), strict=True)
        moves = [p.controller.towards(c, p.reading, qpos[:, list(p.moves)], within=within) for p, c in parts]
        return self._whole(moves, qpos)

    def hold(self, carry: Tensor, reading: Reading) -> Tensor:
        parts = zip(self.parts, carry.split(self._widths, 1), strict=True)
        return self._whole([p.controller.hold(c, p.reading) for p, c in parts], carry)

    def _whole(self, moves: list[Tensor], like: Tensor) -> Tensor:
        size = self._gripper.size if self._gripper is not None else 0
        return torch.cat([*moves, like.new_zeros(len(like), size).float()], 1)
