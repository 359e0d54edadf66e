"""A policy that tosses a coin: the lower bound of every evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from manikin.policy.api import Observation
from manikin.rng import EpisodeRng

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["RandomPolicy"]


class RandomPolicy:
    """Actions uniform in [-1, 1), a function of the row's episode (seed, index) and step alone.

    Args:
        env: whose episodes are played.
        seed: another one gives other actions in the same episode.
    """

    name = "random"

    def __init__(self, env: BatchEnv, *, seed: int = 0) -> None:
        self.env, self._stream = env, f"policy/random/{seed}" if seed else "policy/random"
        self._actions = torch.zeros(env.num_envs, env.horizon, env.single_action_space.shape[0])
        self._step = torch.zeros(env.num_envs, dtype=torch.int64)
        self._rows = torch.arange(env.num_envs)

    def reset(self, rows: torch.Tensor) -> None:
        """Draw the whole episode of the rows."""
        rows = rows.cpu()
        key = self.env.save(rows.numpy()).extra
        seed, index = torch.from_numpy(key["seed"]), torch.from_numpy(key["index"])
        self._actions[rows] = EpisodeRng(seed, index).uniform(self._stream, -1.0, 1.0, self._actions.shape[1:])
        self._step[rows] = 0

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """(N, 1, A)."""
        action = self._actions[self._rows, self._step]
        # rows without an episode are not reset, so their step stays at the last one
        self._step = (self._step + 1).clamp(max=self.env.horizon - 1)
        return action[:, None]
