"""What the arm's share of an action means for a pose, and for stiffness and damping; both ways."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manikin.math import pose_inv, pose_mul, quat_conj, quat_from_rotvec, quat_mul, quat_rotate, quat_to_rotvec
from manikin.spec.action import ActionDim
from manikin.spec.control import Control

__all__ = ["GainActions", "PoseGoal"]

_AXES, _TURNS = ("x", "y", "z"), ("rx", "ry", "rz")


class PoseGoal:
    """Turns numbers of an action into a goal for the tool, and back.

    Args:
        frame: axes of the action: base, world or tcp.
        poses: frame of the tool's poses, given and found: base or world.
        reference: measured, commanded or absolute.
        pos, rot: [m], [rad] at +1.
        turns: whether the action has a rotation; else the one to add to is kept.
        base: (7,) pose of the base in the world.
        straight: whether its axes are the world's.
        rest: (4,) the tool's orientation in the base frame that absolute rotations start from.
    """

    def __init__(
        self,
        *,
        frame: str,
        poses: str,
        reference: str,
        pos: float,
        rot: float,
        turns: bool,
        base: Tensor,
        straight: bool,
        rest: Tensor,
    ) -> None:
        self.frame, self.reference, self.pos, self.rot, self.turns = frame, reference, pos, rot, turns
        self.size, self.absolute = 6 if turns else 3, reference == "absolute"
        self._base, self._rest = base, rest
        to_poses = base if poses == "world" else pose_inv(base)  # of what is in the other frame
        self._to_poses = to_poses if frame not in (poses, "tcp") else None
        self._turned = None if self._to_poses is None or straight else self._to_poses[3:]

    def dims(self) -> tuple[ActionDim, ...]:
        """Card entries."""
        kinds = [(a, "m", self.pos) for a in _AXES] + [(t, "rad", self.rot) for t in _TURNS if self.turns]
        return tuple(
            ActionDim(name=name, unit=unit, frame=self.frame, reference=self.reference, scale=scale)
            for name, unit, scale in kinds
        )

    def __call__(self, pos: Tensor, quat: Tensor, move: Tensor) -> tuple[Tensor, Tensor]:
        """Goal (n, 3) and (n, 4) from what a relative move (n, size) adds to, in the same frame."""
        shift = move[:, :3] * self.pos
        turn = move[:, 3:6] * self.rot if self.turns else None
        if self.absolute:
            start = self._start(pos)
            goal = torch.cat([shift, start if turn is None else quat_mul(quat_from_rotvec(turn), start)], 1)
            if self._to_poses is not None:
                goal = pose_mul(self._to_poses.to(pos).expand_as(goal), goal)
            return goal[:, :3], quat if turn is None else goal[:, 3:]
        axes = self._axes(pos, quat)
        if axes is not None:
            shift = quat_rotate(axes, shift)
            turn = None if turn is None else quat_rotate(axes, turn)
        return pos + shift, quat if turn is None else quat_mul(quat_from_rotvec(turn), quat)

    def inverse(self, pos: Tensor, quat: Tensor, to_pos: Tensor, to_quat: Tensor) -> Tensor:
        """The numbers (n, size), not limited, that ask for ``to_pos``, ``to_quat``."""
        if self.absolute:
            goal = torch.cat([to_pos, to_quat], 1)
            if self._to_poses is not None:
                goal = pose_mul(pose_inv(self._to_poses.to(pos)).expand_as(goal), goal)
            shift, turn = goal[:, :3], quat_mul(goal[:, 3:], quat_conj(self._start(pos)))
        else:
            shift, turn = to_pos - pos, quat_mul(to_quat, quat_conj(quat))
        parts = [shift, quat_to_rotvec(turn)] if self.turns else [shift]
        axes = None if self.absolute else self._axes(pos, quat)
        if axes is not None:
            parts = [quat_rotate(quat_conj(axes), part) for part in parts]
        return torch.cat([part / scale for part, scale in zip(parts, (self.pos, self.rot), strict=False)], 1)

    def _start(self, like: Tensor) -> Tensor:
        """(n, 4) the orientation that absolute rotations start from, in the frame of the action."""
        rest = self._rest.to(like).expand(len(like), 4)
        if self.frame == "world":
            rest = quat_mul(self._base[3:].to(like).expand_as(rest), rest)
        return rest

    def _axes(self, pos: Tensor, quat: Tensor) -> Tensor | None:
        """(n, 4) the action's axes in the frame of the poses; None where they are the same."""
        if self.frame == "tcp":
            return quat
        return None if self._turned is None else self._turned.to(pos).expand(len(pos), 4)


class GainActions:
    """Stiffness and damping of each direction, fixed or given by the action: damping ratios, then stiffness, before the
    goal; -1 and +1 are the ends of their ranges."""

    kp_range, ratio_range = (0.0, 300.0), (0.0, 10.0)  # robosuite's

    def __init__(self, control: Control, names: Sequence[str], frame: str, device: torch.device) -> None:
        kinds = {"fixed": (), "variable_kp": ("kp",), "variable": ("damping", "kp")}[control.impedance]
        self._k, self._kinds = len(names), kinds
        self.size = self._k * len(kinds)
        self._fixed = torch.tensor([control.damping_ratio] * self._k + [control.kp] * self._k, device=device)
        ranges = {"damping": self.ratio_range, "kp": self.kp_range}
        units = {"damping": "1", "kp": "1/s^2"}
        self.dims = tuple(
            ActionDim(
                name=f"{kind}_{name}",
                unit=units[kind],
                frame=frame,
                reference="absolute",
                scale=(ranges[kind][1] - ranges[kind][0]) / 2,
                offset=(ranges[kind][1] + ranges[kind][0]) / 2,
            )
            for kind in kinds
            for name in names
        )
        self._scale = torch.tensor([d.scale for d in self.dims], device=device)
        self._offset = torch.tensor([d.offset for d in self.dims], device=device)
        start = self._fixed[-self.size :] if self.size else self._fixed[:0]
        self.usual = (start - self._offset) / self._scale  # (size,) the action that gives the fixed gains

    def start(self, n: int) -> Tensor:
        """(n, 2k) damping ratios, then stiffness."""
        return self._fixed.expand(n, -1)

    def __call__(self, action: Tensor) -> Tensor:
        """(n, 2k) damping ratios, then stiffness, of an action."""
        if not self.size:
            return self.start(len(action))
        given = self._offset + self._scale * action[:, : self.size]
        return torch.cat([self.start(len(action))[:, : 2 * self._k - self.size], given], 1)
