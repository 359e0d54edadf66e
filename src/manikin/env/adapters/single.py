"""One row as an ordinary ``gymnasium.Env``: NumPy in, NumPy out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from torch import Tensor

from manikin.env.adapters.window import Window
from manikin.env.arrays import to_numpy
from manikin.env.layouts.env import batched
from manikin.env.task import Task

__all__ = ["SingleEnv"]


class SingleEnv(gymnasium.Env):
    """What ``gymnasium.make("manikin/PickCube-v2")`` returns. Options as for :class:`manikin.Env`.

    ``render_mode="human"`` shows every state in a window.

    The batched environment behind it is ``batched``. ``np_random`` is seeded as Gymnasium asks but nothing draws from
    it: every random number comes from the episode seed.
    """

    def __init__(self, task: type[Task] | Task, **options: Any) -> None:
        if "autoreset" in options or "num_envs" in options:
            raise TypeError("a single environment takes neither num_envs nor autoreset; use manikin.make")
        human = options.get("render_mode") == "human"
        self._window = Window() if human else None
        options = {**options, "render_mode": None} if human else options
        self.batched = batched(task, num_envs=1, autoreset="disabled", **options)
        self.observation_space = self.batched.single_observation_space
        self.action_space = self.batched.single_action_space
        self.render_mode = "human" if human else self.batched.render_mode
        self.metadata = {k: v for k, v in self.batched.metadata.items() if k != "autoreset_mode"}
        self.metadata |= {"render_modes": ["human", "rgb_array"], "render_fps": self.batched.control_hz}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; ``seed`` as in :meth:`manikin.Env.reset`."""
        super().reset(seed=seed)
        observation, info = self.batched.reset(seed=seed, options=options)
        self._show()
        return _arrays(observation), _row(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by one control step with an action (A,) in [-1, 1]."""
        observation, reward, terminated, truncated, info = self.batched.step(np.asarray(action)[None])
        self._show()
        return _arrays(observation), float(reward[0]), bool(terminated[0]), bool(truncated[0]), _row(info)

    def render(self) -> np.ndarray | None:
        """(H, W, 3) uint8 from the human camera; None without ``render_mode``, and with ``human``, which shows every
        state in a window by itself."""
        frames = self.batched.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
        self.batched.close()

    def _show(self) -> None:
        if self._window is not None:
            self._window.show(*self.batched.model_data(0))


def _arrays(tree: Any) -> Any:
    """Row 0 of tensors in nested dicts as arrays, single numbers too: their spaces ask for arrays."""
    if isinstance(tree, Mapping):
        return {name: _arrays(value) for name, value in tree.items()}
    return to_numpy(tree[0]).copy()


def _row(value: Any) -> Any:
    """Row 0 of tensors, nested dicts included; numbers as Python numbers, the rest as NumPy arrays."""
    if isinstance(value, Mapping):
        return {k: _row(v) for k, v in value.items()}
    if isinstance(value, Tensor):
        row = to_numpy(value[0])
        return row.item() if row.ndim == 0 else row.copy()
    return value
