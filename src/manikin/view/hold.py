"""A policy that asks for nothing: the arm stays where its episode began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from manikin.policy.api import Observation

__all__ = ["HoldPolicy"]


class HoldPolicy:
    """Keeps the arm at the joint positions with which the episode began, the gripper open.

    Args:
        env: whose episodes are played.
    """

    name = "hold"

    def __init__(self, env: Any) -> None:
        self.env = env
        self._joints = len(env.robot.arm.joints)
        self._grippers = [i for i, d in enumerate(env.controller.card.dims) if d.name == "gripper"]
        self._goal = torch.zeros(env.num_envs, self._joints)

    def reset(self, rows: torch.Tensor) -> None:
        """Remember where the arm is."""
        self._goal[rows] = self.env.robot.qpos[rows, : self._joints]

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """(N, 1, A)."""
        env = self.env
        action = env.controller.towards(env._carry, env._reading(), self._goal)
        action[:, self._grippers] = 1.0
        return action[:, None]
