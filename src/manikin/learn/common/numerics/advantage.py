"""Generalized advantage estimation (Schulman et al., 2016, arXiv:1506.02438)."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["advantages"]


def advantages(
    *, rewards: Tensor, values: Tensor, next_values: Tensor, dones: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    """Advantages (T, N) of T steps of N rows.

    ``delta = reward + gamma * next_value - value``, and ``A_t = delta_t + gamma * lambda * A_(t+1)``, where the second
    term is left out behind a step that ended an episode. What an ended episode is worth afterwards is the caller's to
    say, in ``next_values``: the value of its last observation where only time ran out, 0 where the task ended it.

    Args:
        rewards: (T, N).
        values: (T, N) of the observations before each step.
        next_values: (T, N) of the observations after it, of the same episode.
        dones: (T, N) bool, whether the step ended its episode, for whatever reason.
        gamma: discount per step.
        gae_lambda: weight of longer returns, 0 to 1.
    """
    found = torch.empty_like(rewards)
    ahead = torch.zeros_like(rewards[0])
    delta = rewards + gamma * next_values - values
    going = gamma * gae_lambda * (~dones).to(rewards.dtype)
    for t in range(len(rewards) - 1, -1, -1):
        ahead = delta[t] + going[t] * ahead
        found[t] = ahead
    return found
