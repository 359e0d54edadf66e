"""Executing chunks: a policy is asked once for several control steps, each row on its own clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from manikin.errors import ConfigError
from manikin.policy.api import Observation, Policy, check_actions

__all__ = ["ChunkPolicy", "select_rows"]


def select_rows(tree: Any, rows: torch.Tensor) -> Any:
    """Rows of a tensor or of nested dicts of tensors."""
    if isinstance(tree, Mapping):
        return {key: select_rows(value, rows) for key, value in tree.items()}
    return tree[rows]


class ChunkPolicy:
    """Asks ``policy`` for a chunk, executes its first ``execute`` actions one control step at a time, then asks again.

    A row asks when its own chunk is used up or its episode begins, never because of another row, so the actions of an
    episode do not depend on its neighbours. A policy that keeps memory is asked for all rows whenever any row needs a
    chunk; it should then keep its memory by episode step and not by call. A ``stateless`` one is asked only for the
    rows that need it.

    Args:
        policy: what to ask.
        num_envs: rows N.
        dimensions: numbers A per action.
        execute: how many actions of a chunk to execute; None for all. A shorter chunk is executed whole.

    Raises:
        ConfigError: ``execute`` below 1.
        ActionError: the policy's answer has the wrong shape.
    """

    def __init__(self, policy: Policy, num_envs: int, dimensions: int, *, execute: int | None = None) -> None:
        if execute is not None and execute < 1:
            raise ConfigError(f"execute must be at least 1 action of each chunk, got {execute}")
        self.policy, self.execute = policy, execute
        self.name = str(getattr(policy, "name", type(policy).__name__))
        self._n, self._a = num_envs, dimensions
        self._left = torch.zeros(num_envs, dtype=torch.int64)
        self._chunk = torch.zeros(num_envs, 0, dimensions)

    def reset(self, rows: torch.Tensor) -> None:
        """The rows begin a new episode: what is left of their chunks is dropped."""
        self._left[rows.cpu()] = 0
        self.policy.reset(rows)

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """The next action of each row, (N, 1, A)."""
        need = (self._left == 0).nonzero()[:, 0]
        if len(need):
            self._ask(need, observation, instruction)
        action = self._chunk[:, 0]
        # the chunk moves forward, so that the next action of every row is always first
        self._chunk = torch.cat([self._chunk[:, 1:], self._chunk[:, -1:]], dim=1)
        self._left = (self._left - 1).clamp(min=0)
        return action[:, None].clone()

    def _ask(self, need: torch.Tensor, observation: Observation, instruction: Sequence[str]) -> None:
        if getattr(self.policy, "stateless", False) and len(need) < self._n:
            words = [instruction[i] for i in need.tolist()]
            answer = check_actions(self.policy.act(select_rows(observation, need), words), len(need), self._a)
        else:
            answer = check_actions(self.policy.act(observation, instruction), self._n, self._a)[need]
        length = answer.shape[1] if self.execute is None else min(self.execute, answer.shape[1])
        if length > self._chunk.shape[1]:
            grown = torch.zeros(self._n, length, self._a, dtype=answer.dtype, device=answer.device)
            grown[:, : self._chunk.shape[1]] = self._chunk
            self._chunk = grown
        self._chunk = self._chunk.to(answer.device)
        self._chunk[need, :length] = answer[:, :length]
        self._left[need] = length
