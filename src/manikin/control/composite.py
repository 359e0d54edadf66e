"""Several controllers as one: parts of a robot (base, torso, arm), or several robots, in one action and one carry."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from manikin.control.base import Controller, Drive, Reading
from manikin.control.joint import GripperMap
from manikin.moved import old_names
from manikin.spec.action import ActionCard, ActionDim

__all__ = ["Composite", "GroupController"]

__getattr__ = old_names(__name__)  # of Group, GroupChain, check_groups


@dataclasses.dataclass(frozen=True)
class GroupController:
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
    """Controllers side by side. The action is theirs one after the other, the gripper's number last unless
    ``gripper_at`` says otherwise; what no part commands stays as it was commanded.

    Args:
        name: the word for it.
        robot: what it is called on the card.
        parts: who commands what.
        gripper: of the robot, where no part has its own.
        gripper_at: how many parts come before the gripper in the action; None is all.
    """

    def __init__(
        self,
        name: str,
        robot: str,
        parts: Sequence[GroupController],
        gripper: GripperMap | None,
        *,
        gripper_at: int | None = None,
    ) -> None:
        self.name, self.parts, self._gripper = name, tuple(parts), gripper
        cards = [p.controller.card for p in parts]
        self._sizes, self._widths = [c.size for c in cards], [0] * len(cards)
        dims = [self._named(p.name, d) for p, c in zip(parts, cards, strict=True) for d in c.dims]
        fingers = gripper.dims() if gripper is not None else ()
        before = sum(self._sizes[:gripper_at])  # numbers before the gripper's
        self._fingers = slice(before, before + len(fingers))
        self.card = ActionCard(
            controller=name,
            robot=robot,
            dims=(*dims[:before], *fingers, *dims[before:]),
            when=" and ".join(sorted({c.when for c in cards})),
            notes=" ".join(f"{p.name}: {c.notes}." for p, c in zip(parts, cards, strict=True) if c.notes),
        )
        self.every_substep = any(p.controller.every_substep for p in parts)
        self.torques = any(p.controller.torques for p in parts)
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
        fingers = action[:, self._fingers]
        if self._fingers.stop < action.shape[1]:
            action = torch.cat([action[:, : self._fingers.start], action[:, self._fingers.stop :]], 1)
        at = 0
        for part, size, own in zip(self.parts, self._sizes, carry.split(self._widths, 1), strict=True):
            command, new = part.controller(own, part.reading, action[:, at : at + size])
            for k, column in enumerate(part.columns):
                ctrl[:, column] = command[:, k]
            carries.append(new)
            at += size
        if self._gripper is not None and self._gripper.size:
            goal = self._gripper(fingers)
            ctrl[:, ctrl.shape[1] - goal.shape[1] :] = goal
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
        joints, own = torch.cat(moves, 1), self._fingers
        fingers = like.new_zeros(len(like), own.stop - own.start).float()
        return torch.cat([joints[:, : own.start], fingers, joints[:, own.start :]], 1)
