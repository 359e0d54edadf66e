"""The network of ``voxel``: from a voxel grid to the next keyframe, and from there to actions.

The next keyframe's place is a choice among all cells of the grid, its orientation a choice among angles, its gripper
open or closed (after PerAct, Shridhar et al., 2022, arXiv:2209.05451; here convolutions take the transformer's place).
The actions lead straight there. So the policy has no memory: asked again, it decides again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from manikin.control.goal import PoseGoal
from manikin.errors import ConfigError
from manikin.math import norm, quat_angle, quat_from_euler, quat_slerp, quat_to_euler
from manikin.policy.networks.scaling import Scaling, value_at
from manikin.sense.voxel import VoxelSpec

__all__ = ["VoxelKeyframes", "angle_bins", "angles_of", "cell_of", "place_of", "straight_way"]

_LEVELS = 2  # times that the grid is halved after the first layer


def cell_of(pos: Tensor, spec: VoxelSpec) -> tuple[Tensor, Tensor]:
    """The cell (B,) int64 that holds a place (B, 3) [m], counted with z fastest, and (B,) bool whether it is inside. A
    place outside gets the nearest cell."""
    low, cell = pos.new_tensor(spec.low), pos.new_tensor(spec.cell)
    size = torch.tensor(spec.resolution, device=pos.device)
    found = ((pos - low) / cell).floor().long()
    inside = ((found >= 0) & (found < size)).all(-1)
    i, j, k = torch.minimum(found.clamp(min=0), size - 1).unbind(-1)
    return (i * spec.resolution[1] + j) * spec.resolution[2] + k, inside


def _axes_of(cell: Tensor, spec: VoxelSpec) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers of cells (B,) along x, y and z."""
    _, y, z = spec.resolution
    rest = torch.div(cell, z, rounding_mode="floor")
    return torch.div(rest, y, rounding_mode="floor"), rest % y, cell % z


def place_of(cell: Tensor, spec: VoxelSpec) -> Tensor:
    """(B, 3) the middle of cells (B,) [m]."""
    at = torch.stack(_axes_of(cell, spec), -1)
    size = torch.tensor(spec.cell, device=cell.device)
    return torch.tensor(spec.low, device=cell.device) + (at + 0.5) * size


def angle_bins(quat: Tensor, bins: int) -> Tensor:
    """(B, 3) int64: roll, pitch and yaw about the world's axes, each the nearest of ``bins`` angles of a full turn."""
    turns = quat_to_euler(quat) / (2 * math.pi) + 0.5
    return (turns * bins).round().long() % bins


def angles_of(bins: Tensor, count: int) -> Tensor:
    """(B, 4) the orientation of bins (B, 3)."""
    return quat_from_euler((bins / count - 0.5) * (2 * math.pi))


def straight_way(start: Tensor, goal: Tensor, steps: int, reach: float, turn: float) -> Tensor:
    """Poses (B, steps, 7) on the straight way between poses (B, 7), at most ``reach`` [m] and ``turn`` [rad] apart.

    They stay at the goal once they are there. A row's poses depend on that row alone.
    """
    k = torch.arange(1, steps + 1, device=start.device, dtype=start.dtype)
    away = norm(goal[:, :3] - start[:, :3])
    angle = quat_angle(start[:, 3:], goal[:, 3:])
    share = (k * reach / away.clamp_min(1e-9).unsqueeze(1)).clamp(max=1.0).unsqueeze(2)
    part = (k * turn / angle.clamp_min(1e-9).unsqueeze(1)).clamp(max=1.0)
    a, b = start.unsqueeze(1).expand(-1, steps, -1), goal.unsqueeze(1).expand(-1, steps, -1)
    pos = a[..., :3] + share * (b[..., :3] - a[..., :3])
    return torch.cat([pos, quat_slerp(a[..., 3:], b[..., 3:], part)], -1)


def _block(inputs: int, outputs: int) -> nn.Sequential:
    layers = nn.Conv3d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU()
    return nn.Sequential(*layers)


class VoxelKeyframes(nn.Module):
    """Actions (B, predict, A) in [-1, 1] from an observation with a voxel grid.

    The grid is halved by the first layer, then twice more by an encoder; a decoder brings it back, and each of
    its cells scores the eight cells of the grid that lie in it.

    Args:
        grid: ``low``, ``high``, ``resolution`` of the :class:`~manikin.sense.voxel.VoxelSpec`.
        source: name of the observation's group with ``occupancy`` and ``rgb``.
        tool: path of the tool's pose (7) in the observation.
        told: of each path in the observation the columns that the network is told, ``[first, last)``.
        bins: angles of a full turn, for each of roll, pitch and yaw.
        width: channels of the finest level, a multiple of 4; each halving has twice as many.
        goal: how an absolute action is written: frame, pos, rot, straight, base and rest of a
            :class:`~manikin.control.goal.PoseGoal`.
        gripper: whether the action's last number opens and closes one.
        predict: actions of an answer.
        reach, turn: [m], [rad] that the tool moves in a control step at most.

    Raises:
        ConfigError: ``width`` or ``bins`` cannot be.
    """

    def __init__(
        self,
        *,
        grid: Mapping[str, Any],
        source: str,
        tool: str,
        told: Mapping[str, Sequence[int]],
        bins: int,
        width: int,
        goal: Mapping[str, Any],
        gripper: bool,
        predict: int,
        reach: float,
        turn: float,
    ) -> None:
        super().__init__()
        if width < 4 or width % 4 or bins < 4 or predict < 1:
            raise ConfigError(
                f"width must be a multiple of 4, bins 4 or more, predict 1 or more; got {width}, {bins}, {predict}"
            )
        self.spec = VoxelSpec(**{name: tuple(value) for name, value in grid.items()})
        self.source, self.tool, self.told = source, tool, {path: tuple(span) for path, span in told.items()}
        self.bins, self.gripper, self.predict, self.reach, self.turn = bins, gripper, predict, reach, turn
        columns = sum(last - first for first, last in self.told.values())
        self.scaling = Scaling(columns)
        fixed = {name: goal[name] for name in ("frame", "pos", "rot", "straight")}
        base, rest = torch.tensor(goal["base"]), torch.tensor(goal["rest"])
        self._goal = PoseGoal(poses="world", reference="absolute", turns=True, base=base, rest=rest, **fixed)
        sizes = [width << level for level in range(_LEVELS + 1)]
        self.stem = nn.Conv3d(4, width, 4, stride=2, padding=1)
        self.known = nn.Linear(columns, width)
        self.first = _block(width + 6, width)
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool3d(2), _block(a, b), _block(b, b)) for a, b in pairwise(sizes)
        )
        self.whole = nn.Linear(sizes[-1] + columns, sizes[-1])
        self.reduce = nn.ModuleList(nn.Conv3d(b, a, 1) for a, b in pairwise(sizes))
        self.mix = nn.ModuleList(_block(2 * a, a) for a, _ in pairwise(sizes))
        self.score = nn.Conv3d(width, 8, 1)
        about = width + sizes[1] + sizes[-1] + columns
        self.about = nn.Sequential(nn.Linear(about, 128), nn.ReLU(), nn.Linear(128, 3 * bins + 1))
        self._padded = tuple(-(-r // 2 ** (_LEVELS + 1)) * 2 ** (_LEVELS + 1) for r in self.spec.resolution)

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def take(self, observation: Mapping[str, Any]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Occupancy (B, X, Y, Z), colours (B, X, Y, Z, 3), the tool's pose (B, 7) and the numbers (B, K)."""
        seen = observation[self.source]
        numbers = [value_at(observation, path)[:, first:last] for path, (first, last) in self.told.items()]
        return seen["occupancy"], seen["rgb"], value_at(observation, self.tool), torch.cat(numbers, 1)

    def encode(
        self, occupancy: Tensor, rgb: Tensor, tool: Tensor, numbers: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Scores of all cells (B, cells), and features for :meth:`describe`."""
        there = occupancy.unsqueeze(1).float()
        seen = torch.cat([there, (rgb.permute(0, 4, 1, 2, 3).float() / 255.0 - 0.5) * there], 1)
        x, y, z = self.spec.resolution
        px, py, pz = self._padded
        seen = functional.pad(seen, (0, pz - z, 0, py - y, 0, px - x))
        known = self.scaling(numbers)
        fine = self.first(torch.cat([self.stem(seen) + _wide(self.known(known)), self._places(tool)], 1).relu())
        levels = [fine]
        for down in self.down:
            levels.append(down(levels[-1]))
        whole = self.whole(torch.cat([levels[-1].amax((2, 3, 4)), known], 1)).relu()
        out = levels[-1] + _wide(whole)
        second = out
        for level in reversed(range(_LEVELS)):
            below = self.reduce[level](out).repeat_interleave(2, 2).repeat_interleave(2, 3).repeat_interleave(2, 4)
            second, out = out, self.mix[level](torch.cat([levels[level], below], 1))
        scores = self.score(out).unflatten(1, (2, 2, 2)).permute(0, 4, 1, 5, 2, 6, 3)
        scores = scores.reshape(-1, px, py, pz)[:, :x, :y, :z].flatten(1)
        return scores, (out, second, whole, known)

    def describe(self, features: tuple[Tensor, ...], cell: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of the angles (B, 3, bins) and of an open gripper (B,), for keyframes in these cells (B,)."""
        fine, second, whole, known = features
        found = self.about(torch.cat([self._of_cell(fine, cell, 2), self._of_cell(second, cell, 4), whole, known], 1))
        return found[:, :-1].unflatten(1, (3, self.bins)), found[:, -1]

    def _of_cell(self, features: Tensor, cell: Tensor, size: int) -> Tensor:
        """(B, C) of features (B, C, ...) whose cells are ``size`` times as wide as the grid's."""
        i, j, k = (torch.div(one, size, rounding_mode="floor") for one in _axes_of(cell, self.spec))
        flat = (i * features.shape[3] + j) * features.shape[4] + k
        where = flat.view(-1, 1, 1).expand(-1, features.shape[1], 1)
        return features.flatten(2).gather(2, where).squeeze(2)

    def _places(self, tool: Tensor) -> Tensor:
        """(B, 6, ...) where each cell of the stem is in the grid, and how far from the tool, both about 1 at most."""
        low, cell = tool.new_tensor(self.spec.low), tool.new_tensor(self.spec.cell)
        axes = [
            low[a] + (2 * torch.arange(n // 2, device=tool.device, dtype=tool.dtype) + 1) * cell[a]
            for a, n in enumerate(self._padded)
        ]
        places = torch.stack(torch.meshgrid(*axes, indexing="ij")).unsqueeze(0)
        high = tool.new_tensor(self.spec.high)
        half = _wide(((high - low) / 2).max().expand(1, 3))
        centred = (places - _wide(((high + low) / 2).unsqueeze(0))) / half
        apart = (places - _wide(tool[:, :3])) / half
        return torch.cat([centred.expand(len(tool), -1, -1, -1, -1), apart], 1)

    # ---- what is done ------------------------------------------------------------------------------------------------

    def keyframe(self, observation: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """The next keyframe: the tool's pose (B, 7) in the world, and 1 or -1 (B,) for an open or closed gripper."""
        occupancy, rgb, tool, numbers = self.take(observation)
        scores, features = self.encode(occupancy, rgb, tool, numbers)
        cell = scores.argmax(1)
        angles, opened = self.describe(features, cell)
        pose = torch.cat([place_of(cell, self.spec), angles_of(angles.argmax(2), self.bins)], 1)
        return pose, torch.where(opened > 0, 1.0, -1.0)

    def forward(self, observation: Mapping[str, Any]) -> Tensor:
        goal, opened = self.keyframe(observation)
        tool = value_at(observation, self.tool)
        way = straight_way(tool, goal, self.predict, self.reach, self.turn).flatten(0, 1)
        now = torch.zeros_like(way)  # absolute goals do not depend on where the tool is
        arm = self._goal.inverse(now[:, :3], now[:, 3:], way[:, :3], way[:, 3:])
        action = arm.unflatten(0, (-1, self.predict))
        if self.gripper:
            action = torch.cat([action, opened.view(-1, 1, 1).expand(-1, self.predict, 1)], 2)
        return action.clamp(-1.0, 1.0)


def _wide(values: Tensor) -> Tensor:
    return values[:, :, None, None, None]
