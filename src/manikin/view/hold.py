"""A policy that asks for nothing: the arm stays where its episode began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from manikin.policy.api import Observation

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["HoldPolicy"]


class HoldPolicy:
    """Keeps the arm at the joint positions with which the episode began, the gripper open.

    Args:
        env: whose episodes are played.
    """

    name = "hold"

    def __init__(self, env: BatchEnv) -> None:
        self.env = env
        self._grippers = list(env.controller.card.grippers)
        self._goal: torch.Tensor | None = None

    def reset(self, rows: torch.Tensor) -> None:
        """Remember where the arm is."""
        now = self.env.arm_qpos
        if self._goal is None:
            self._goal = now.clone()
        self._goal[rows] = now[rows]

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """(N, 1, A)."""
        env = self.env
        action = env.towards(env.arm_qpos if self._goal is None else self._goal)
        action[:, self._grippers] = 1.0
        return action[:, None]
