"""Observations as tensors: flat ones, their names, spaces, and rows of one put into another."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from manikin.scene.handles import Robot

__all__ = ["column_names", "flatten", "merge", "own_names", "space_of"]


def column_names(path: str, width: int) -> list[str]:
    """Names of the numbers of one observation: ``policy/qpos[0]``, or ``policy/angle`` where there is one number."""
    return [path] if width == 1 else [f"{path}[{i}]" for i in range(width)]


def own_names(robot: Robot, robots: Sequence[Robot]) -> tuple[str, str]:
    """Names of a robot's joint positions and velocities: ``qpos``, or ``robot0_qpos`` where there are several."""
    before = f"{robot.name}_" if len(robots) > 1 else ""
    return f"{before}qpos", f"{before}qvel"


def flatten(values: Sequence[Tensor], *, stacked: bool = False) -> Tensor:
    """One float32 tensor (n, D), of stacks (n, frames, D); a new tensor the caller owns."""
    columns, width = [], 3 if stacked else 2
    for value in values:
        if value.dtype != torch.float32:
            value = value.float()
        columns.append(value if value.ndim == width else value.reshape(*value.shape[: width - 1], -1))
    return torch.cat(columns, width - 1)


def merge(whole: Any, part: Any, at: Tensor) -> Any:
    """``whole`` with the rows ``at`` replaced by ``part``, as new tensors; nested dicts alike."""
    if isinstance(whole, Mapping):
        return {k: merge(whole[k], part[k], at) for k in whole}
    out = whole.clone()
    out[at] = part
    return out


def space_of(observation: Any) -> gymnasium.Space:
    """Space of one row of a tensor (n, ...) or a nested dict of them, whose order it keeps."""
    if isinstance(observation, Mapping):  # of a plain dict Gymnasium sorts the names, and so what it makes flat
        return gymnasium.spaces.Dict(OrderedDict((k, space_of(v)) for k, v in observation.items()))
    shape, kind = tuple(observation.shape[1:]), torch.empty(0, dtype=observation.dtype, device="cpu").numpy().dtype
    if kind == np.uint8:
        return gymnasium.spaces.Box(0, 255, shape, np.uint8)
    if kind.kind == "b":
        return gymnasium.spaces.MultiBinary(shape)
    if kind.kind in "iu":
        return gymnasium.spaces.Box(0, np.iinfo(kind).max, shape, kind.type)
    return gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
