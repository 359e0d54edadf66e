"""The batched environment in NumPy's arrays, in the shapes that Gymnasium's vector wrappers work on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorWrapper
from torch import Tensor

from manikin.env.arrays import to_numpy
from manikin.env.interface import BatchEnv

__all__ = ["NumpyEnv"]


class NumpyEnv(VectorWrapper):
    """What ``gymnasium.make_vec`` and ``manikin.make(..., arrays="numpy")`` give: an environment's rows as arrays.

    The environment itself, with tensors and everything else that it can do, is ``unwrapped``.

    As in Gymnasium, each value of ``info`` is an array of N entries or a dictionary of such, and ``final_obs`` is an
    array of objects: the last observation of each row that has ended, None for the others.

    Args:
        env: of N rows, on any device.
    """

    env: BatchEnv

    def __init__(self, env: BatchEnv) -> None:
        super().__init__(env)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes, as :meth:`manikin.Env.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        return _arrays(observation), self._info(info)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance by one control step with actions (N, A) in [-1, 1], as :meth:`manikin.Env.step`."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        ends = to_numpy(terminated), to_numpy(truncated)
        return _arrays(observation), to_numpy(reward), *ends, self._info(info)

    def _info(self, info: Mapping[str, Any]) -> dict[str, Any]:
        made = {name: self._info_value(value) for name, value in info.items() if name != "final_obs"}
        if "final_obs" in info:
            last, ended = _arrays(info["final_obs"]), made["_final_obs"]
            made["final_obs"] = np.empty(self.num_envs, object)
            for row in np.flatnonzero(ended).tolist():
                made["final_obs"][row] = _row(last, row)
        return made

    def _info_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self._info(value)
        return to_numpy(value) if isinstance(value, Tensor) else np.full(self.num_envs, value)


def _arrays(tree: Any) -> Any:
    """Tensors in nested dicts as arrays."""
    return {name: _arrays(value) for name, value in tree.items()} if isinstance(tree, Mapping) else to_numpy(tree)


def _row(tree: Any, row: int) -> Any:
    """One row of arrays in nested dicts, copies."""
    if isinstance(tree, Mapping):
        return {name: _row(value, row) for name, value in tree.items()}
    return np.array(tree[row])  # an array also where it is one number, as its space asks for
