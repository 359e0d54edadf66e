"""What a row sees, by words: ``state``, ``policy``, ``state_dict``, or outputs of cameras joined by ``+``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from manikin.env.task import Task
from manikin.errors import UnknownNameError
from manikin.scene.handles import Robot

__all__ = ["CAMERA_WORDS", "STATE_WORDS", "Observer", "merge", "parse", "space_of"]

STATE_WORDS = {"state": ("policy", "privileged"), "policy": ("policy",), "state_dict": ("policy", "privileged")}
CAMERA_WORDS = ("rgb", "depth", "segmentation", "normals")


def parse(word: str) -> tuple[str, ...]:
    """The parts of an observation word. Raises :class:`UnknownNameError` listing what there is."""
    parts = tuple(word.split("+"))
    if len(parts) == 1 and word in STATE_WORDS:
        return parts
    for part in parts:
        if part not in (*CAMERA_WORDS, "state"):
            hint = "Join camera outputs, and state for privileged values beside them, with '+'."
            raise UnknownNameError("observation", word, (*STATE_WORDS, *CAMERA_WORDS), hint=hint)
    return parts


class Observer:
    """Makes observations of the rows in view; what it returns is owned by the receiver.

    ``state`` and ``policy`` are one flat float32 tensor; ``state_dict`` keeps the names. With cameras the observation
    is a dict: ``policy`` (named; joint positions, velocities and what a real robot knows), ``cameras`` (per camera the
    outputs asked for, with K and T), and ``privileged`` only with ``state``.
    """

    def __init__(self, word: str, task: Task, h: Any, robot: Robot, rig: Any = None) -> None:
        self.word, self.parts = word, parse(word)
        self._task, self._h, self._robot, self._rig = task, h, robot, rig
        self.flat = word in ("state", "policy")

    @property
    def names(self) -> list[str]:
        """The name of every column of a flat observation, ``group/name[i]``; empty for the others."""
        if not self.flat:
            return []
        out, groups = [], self.groups()
        for group in STATE_WORDS[self.word]:
            for name, value in groups[group].items():
                width = value[0].numel()
                out += [f"{group}/{name}"] if width == 1 else [f"{group}/{name}[{i}]" for i in range(width)]
        return out

    def groups(self) -> dict[str, Mapping[str, Tensor]]:
        """Named tensors of the rows in view, borrowed: ``policy`` and ``privileged``."""
        seen = self._task.observe(self._h)
        policy = {"qpos": self._robot.qpos, "qvel": self._robot.qvel, **seen.get("policy", {})}
        return {"policy": policy, "privileged": seen.get("privileged", {})}

    def __call__(self, rows: np.ndarray | None = None) -> Any:
        """Observe the rows in view, which are ``rows`` (None for all)."""
        groups = self.groups()
        if self.flat:
            return _flatten([v for group in STATE_WORDS[self.word] for v in groups[group].values()])
        named: dict[str, Any] = {g: {k: v.float().clone() for k, v in values.items()} for g, values in groups.items()}
        if self._rig is None:
            return named
        if "state" not in self.parts:
            del named["privileged"]
        named["cameras"] = self._rig.render(rows)
        return named


def _flatten(values: Sequence[Tensor]) -> Tensor:
    """One float32 tensor (n, D); a new tensor the caller owns."""
    columns = []
    for value in values:
        if value.dtype != torch.float32:
            value = value.float()
        columns.append(value if value.ndim == 2 else value.reshape(len(value), -1))
    return torch.cat(columns, 1)


def merge(whole: Any, part: Any, at: Tensor) -> Any:
    """``whole`` with the rows ``at`` replaced by ``part``, as new tensors; nested dicts alike."""
    if isinstance(whole, Mapping):
        return {k: merge(whole[k], part[k], at) for k in whole}
    out = whole.clone()
    out[at] = part
    return out


def space_of(observation: Any) -> gymnasium.Space:
    """Space of one row of a tensor (n, ...) or a nested dict of them."""
    if isinstance(observation, Mapping):
        return gymnasium.spaces.Dict({k: space_of(v) for k, v in observation.items()})
    shape, kind = tuple(observation.shape[1:]), observation.numpy().dtype
    if kind == np.uint8:
        return gymnasium.spaces.Box(0, 255, shape, np.uint8)
    if kind.kind in "iu":
        return gymnasium.spaces.Box(0, np.iinfo(kind).max, shape, kind.type)
    return gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
