"""Keyframes of demonstrations: where the arm turns, rests or grips, and voxel grids that lead there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.data.dataset import Dataset
from manikin.data.recording.read import EpisodeFile
from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.data.demonstrations import check_file
from manikin.math import quat_angle
from manikin.sense.pointcloud import PointCloud
from manikin.sense.voxel import VoxelSpec

__all__ = ["KeyframeData", "keyframes", "load_keyframes", "next_keyframe"]

_AT_ONCE = 256  # frames read together
_SAME = 0.1  # of its range, by how much a number may differ from that of a keyframe


def keyframes(tool: Tensor, opened: Tensor, *, still: float, corner: float) -> list[int]:
    """Frames of an episode that tell what it does, in their order.

    A keyframe is where the gripper's command changes, where an arm that rested moves on, the last frame, and each
    corner: a frame that the straight line between the keyframes around it would miss.

    Args:
        tool: (T, 7) pose of the tool before each action.
        opened: (T,) bool, whether the action opens the gripper.
        still: [m] and [rad] per step below which the arm rests.
        corner: [m] by which a line may miss a frame; 0 or less finds no corners.
    """
    last = len(tool) - 1
    change = set((opened[1:] != opened[:-1]).nonzero()[:, 0].add(1).tolist())
    moved = (tool[1:, :3] - tool[:-1, :3]).norm(dim=1), quat_angle(tool[1:, 3:], tool[:-1, 3:])
    rests = ((moved[0] < still) & (moved[1] < still)).tolist()
    on = {t for t in range(1, last) if rests[t - 1] and not rests[t] and not all(rests[:t])}
    found = sorted({*change, *on, last})
    if corner > 0:
        for a, b in pairwise([0, *found]):
            found += _corners(tool[:, :3], a, b, corner)
    return sorted(set(found))


def _corners(pos: Tensor, a: int, b: int, most: float) -> list[int]:
    """Frames between a and b that the line misses, the farthest first, and those of the two parts (Douglas and
    Peucker, 1973)."""
    if b - a < 2:
        return []
    line, between = pos[b] - pos[a], pos[a + 1 : b] - pos[a]
    share = ((between @ line) / line.square().sum().clamp_min(1e-12)).clamp(0.0, 1.0)
    away = (between - share.unsqueeze(1) * line).norm(dim=1)
    if float(away.max()) <= most:
        return []
    middle = a + 1 + int(away.argmax())
    return [middle, *_corners(pos, a, middle, most), *_corners(pos, middle, b, most)]


def next_keyframe(found: Sequence[int], arrived: Tensor) -> list[int]:
    """For each of T frames the number in ``found`` of the keyframe that it leads to.

    That is the first one behind it; but a frame that has arrived there already, and stays until then, leads to the one
    after. So a policy that comes close enough goes on.

    Args:
        found: K frames in their order.
        arrived: (T, K) bool, whether the frame is as good as the keyframe.
    """
    out, last = [], len(found) - 1
    for t in range(len(arrived)):
        k = next((k for k, frame in enumerate(found) if frame > t), last)
        while k < last and bool(arrived[t : found[k], k].all()):
            k += 1
        out.append(k)
    return out


@dataclass(frozen=True)
class KeyframeData:
    """Frames of episodes that succeeded, each with the keyframe that it leads to.

    Attributes:
        cells: (F, P, 3) int16 occupied cells of the grid; those behind ``count`` (F,) have no meaning.
        rgb: (F, P, 3) uint8 their colours.
        tool: (F, 7) the tool's pose. numbers: (F, K) what else the network is told.
        goal: (F, 7) the keyframe's pose. opened: (F,) bool, whether the gripper is open on the way there.
        keyframes: in all episodes. episodes: how many. there: of how many in the recording. digest: SHA-256 of it all.
    """

    cells: Tensor
    rgb: Tensor
    count: Tensor
    tool: Tensor
    numbers: Tensor
    goal: Tensor
    opened: Tensor
    keyframes: int
    episodes: int
    there: int
    digest: str

    def __len__(self) -> int:
        return len(self.tool)

    def cloud(self, frames: Tensor, spec: VoxelSpec) -> PointCloud:
        """The middles of the occupied cells of these frames (B,), as points."""
        low, cell = (torch.tensor(v, device=self.tool.device) for v in (spec.low, spec.cell))
        xyz = low + (self.cells[frames].float() + 0.5) * cell
        valid = torch.arange(xyz.shape[1], device=xyz.device) < self.count[frames].unsqueeze(1)
        return PointCloud(xyz, valid, self.rgb[frames])


def load_keyframes(
    path: str | Path,
    env: BatchEnv,
    *,
    source: str,
    tool: str,
    told: Mapping[str, tuple[int, int]],
    gripper: int | None,
    most: int,
    still: float,
    corner: float,
    reach: float,
    turned: float,
) -> KeyframeData:
    """The successful episodes of a recording with voxel grids, those of the lowest numbers first.

    Args:
        path: of the recording.
        env: what the policy is for.
        source: group of the grid.
        tool: path of the tool's pose.
        told: columns by path, see :class:`~manikin.policy.networks.voxels.VoxelKeyframes`.
        gripper: the action's number that opens it; None for no gripper.
        most: take at most so many episodes; 0 for all.
        still: see :func:`keyframes`.
        corner: likewise.
        reach: [m] from a keyframe at which a frame has arrived.
        turned: [rad] likewise.

    Raises:
        ConfigError: demonstrations of another environment, or of validation or test episodes.
        DataError: no recording, damaged, without observations, or no episode in it succeeded.
    """
    with EpisodeFile(path) as file:
        there = check_file(path, file, env)
    names = [f"{source}/occupancy", f"{source}/rgb", tool, *told]
    parts: list[dict[str, Any]] = []
    with Dataset(path, batch_size=_AT_ONCE, keep="success", observations=names, shuffle=False) as data:
        for part in data:
            if most and len({number for one in parts for number in one["episode"].tolist()}) > most:
                break
            parts.append(_sparse(part, source, tool, told))
    widest = max(int(part["count"].max()) for part in parts)
    for part in parts:
        for name in ("cells", "rgb"):
            part[name] = torch.nn.functional.pad(part[name], (0, 0, 0, widest - part[name].shape[1]))
    joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    numbers = joined["episode"].unique()
    numbers = numbers[:most] if most else numbers
    kept = torch.isin(joined["episode"], numbers)
    joined = {name: value[kept] for name, value in joined.items()}
    episode, actions = joined.pop("episode"), joined.pop("actions")
    commands = torch.ones(len(actions), dtype=torch.bool) if gripper is None else actions[:, gripper] > 0
    span = (joined["numbers"].amax(0) - joined["numbers"].amin(0)).clamp_min(1e-6)
    goal, opened, total = torch.zeros_like(joined["tool"]), torch.ones_like(commands), 0
    for number in numbers.tolist():
        at = (episode == number).nonzero()[:, 0]
        poses, grips, known = joined["tool"][at], commands[at], joined["numbers"][at] / span
        found = keyframes(poses, grips, still=still, corner=corner)
        near = (poses[:, None, :3] - poses[None, found, :3]).norm(dim=2) <= reach
        near &= quat_angle(poses[:, None, 3:], poses[None, found, 3:]) <= turned
        near &= ((known[:, None] - known[None, found]).abs() <= _SAME).all(2)
        leads = torch.tensor(next_keyframe(found, near))
        places = torch.tensor(found)[leads]
        goal[at] = poses[places]
        opened[at] = grips[(places - 1).clamp(min=0)]
        total += len(found)
    digest = hashlib.sha256()
    made = {**joined, "goal": goal, "opened": opened}
    for value in made.values():
        digest.update(value.contiguous().numpy().tobytes())
    device = {name: value.to(env.device) for name, value in made.items()}
    return KeyframeData(**device, keyframes=total, episodes=len(numbers), there=there, digest=digest.hexdigest())


def _sparse(part: Mapping[str, Any], source: str, tool: str, told: Mapping[str, tuple[int, int]]) -> dict[str, Tensor]:
    """A part of the data with lists of occupied cells in place of grids."""
    seen = {name: value[:, 0] for name, value in part["observations"].items()}
    there = seen[f"{source}/occupancy"].numpy()
    count = there.reshape(len(there), -1).sum(1)
    row, *cell = np.nonzero(there)
    place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    cells, rgb = (np.zeros((len(there), int(count.max(initial=1)), 3), kind) for kind in (np.int16, np.uint8))
    cells[row, place] = np.stack(cell, 1)
    rgb[row, place] = seen[f"{source}/rgb"].numpy()[there]
    if len(there) and not count.all():
        raise ConfigError("a voxel grid of the demonstrations is empty: no camera sees into its box")
    numbers = [seen[path].float().reshape(len(there), -1)[:, first:last] for path, (first, last) in told.items()]
    return {
        "cells": torch.from_numpy(cells),
        "rgb": torch.from_numpy(rgb),
        "count": torch.from_numpy(count),
        "tool": seen[tool].float(),
        "numbers": torch.cat(numbers, 1),
        "actions": part["actions"][:, 0],
        "episode": part["episode"],
    }
