"""Observation and action spaces, made from the tensors and cards themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

__all__ = ["action_space", "box", "flatten", "names", "nested"]


def box(tensor: Tensor) -> gymnasium.spaces.Box:
    """Unbounded float32 box of one row of ``tensor`` (n, ...)."""
    return gymnasium.spaces.Box(-np.inf, np.inf, tuple(tensor.shape[1:]), np.float32)


def nested(observation: Any) -> gymnasium.Space:
    """Space of one row of a tensor or a nested dict of tensors."""
    if isinstance(observation, Mapping):
        return gymnasium.spaces.Dict({k: nested(v) for k, v in observation.items()})
    return box(observation)


def action_space(size: int) -> gymnasium.spaces.Box:
    """[-1, 1]^size, float32."""
    return gymnasium.spaces.Box(-1.0, 1.0, (size,), np.float32)


def flatten(groups: Mapping[str, Mapping[str, Tensor]], words: tuple[str, ...]) -> Tensor:
    """One float32 tensor (n, D) from the groups named, in order; a new tensor the caller owns."""
    columns = []
    for word in words:
        for value in groups.get(word, {}).values():
            if value.dtype != torch.float32:
                value = value.float()
            columns.append(value if value.ndim == 2 else value.reshape(len(value), -1))
    return torch.cat(columns, 1)


def names(groups: Mapping[str, Mapping[str, Tensor]], words: tuple[str, ...]) -> list[str]:
    """The name of every column of :func:`flatten`, ``group/name[i]``."""
    out = []
    for word in words:
        for name, value in groups.get(word, {}).items():
            width = value[0].numel()
            out += [f"{word}/{name}" if width == 1 else f"{word}/{name}[{i}]" for i in range(width)]
    return out
