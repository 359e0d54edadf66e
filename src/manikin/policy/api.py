"""What a policy is: two methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from manikin.errors import ActionError

__all__ = ["Observation", "Policy", "check_actions"]

Observation = Any
"""What ``Env`` returns: one tensor (N, D), or nested dicts of tensors with a leading row dimension N."""


@runtime_checkable
class Policy(Protocol):
    """Anything that acts on N rows at a time.

    A policy may keep memory per row; ``reset(rows)`` says which rows begin a new episode. What it does in a row must
    depend on that row alone, so that a result does not depend on how many episodes run side by side. One that draws
    random numbers keys them by the row's episode (``info["episode_seed"]`` and ``info["episode_index"]``, also in
    ``env.save(rows).extra``), as :class:`manikin.policy.random_policy.RandomPolicy` does.

    Four optional attributes: ``name`` (str) for reports; ``stateless`` (bool): True promises that ``act`` keeps no
    memory and takes any number of rows, so that it need not be asked for rows that still have a chunk to execute;
    ``execution`` (:class:`~manikin.policy.chunk.Execution`): how its chunks are executed where the caller does not say;
    and ``finished``, (N,) bool of the last ``act``: in which rows the policy says that the task is done with the first
    action of its answer. An evaluation ends such an episode with that action (:meth:`manikin.Task.finished`).
    """

    def reset(self, rows: torch.Tensor) -> None:
        """Rows (n,) int64 begin a new episode. Called after the environment has reset them."""

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """Actions for all rows.

        Args:
            observation: of N rows; rows without a running episode hold stale but finite values.
            instruction: N sentences.

        Returns:
            (N, horizon, A) float32 in [-1, 1]: the next ``horizon`` control steps, the first to be executed now.
        """


def check_actions(actions: object, rows: int, dimensions: int) -> torch.Tensor:
    """Refuse what is not a chunk of actions; a policy that answers wrongly is named here and not in the physics.

    Raises:
        ActionError: not a float tensor (rows, horizon >= 1, dimensions).
    """
    if not isinstance(actions, torch.Tensor) or not actions.is_floating_point():
        kind = actions.dtype if isinstance(actions, torch.Tensor) else type(actions).__name__
        raise ActionError(f"the policy returned {kind}; it must be a float tensor (N, horizon, A)")
    if actions.ndim != 3 or actions.shape[0] != rows or actions.shape[1] < 1 or actions.shape[2] != dimensions:
        hint = " (one action per row is actions[:, None])" if tuple(actions.shape) == (rows, dimensions) else ""
        shape = tuple(actions.shape)
        raise ActionError(f"the policy returned shape {shape}; it must be ({rows}, horizon, {dimensions}){hint}")
    return actions
