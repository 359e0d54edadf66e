"""Several robots as agents: dictionaries of actions and observations, one entry per robot, beside the flat ones."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError

__all__ = ["AgentsEnv"]


class AgentsEnv(VectorWrapper):
    """N rows of a task whose robots are agents: ``manikin.make("TwoArmLift-v3", 64, agents=True)``.

    Actions are ``{"robot0": (N, A0), "robot1": (N, A1)}`` in [-1, 1], observations a dictionary of the same names. An
    agent observes its own robot and what belongs to none, never another robot's own values. Rewards (N,) and ends (N,)
    are the task's and so of all agents. The environment with one flat action, and all that it can do, is ``unwrapped``.

    Args:
        env: of N rows, on any device; one robot is one agent.

    Attributes:
        shares: which numbers belong to whom.
        agents: names of the robots.
    """

    env: BatchEnv

    def __init__(self, env: BatchEnv) -> None:
        if not hasattr(env, "robots"):
            raise ConfigError(
                f"agents need a manikin environment, not a {type(env).__name__}; make one with manikin.make(..., "
                "agents=True)"
            )
        super().__init__(env)
        self.shares = env.shares
        self.agents = self.shares.agents
        spaces, sizes = gymnasium.spaces, {a: len(dims) for a, dims in self.shares.dims.items()}
        self.single_action_space = spaces.Dict({a: spaces.Box(-1.0, 1.0, (n,), np.float32) for a, n in sizes.items()})
        self.single_observation_space = spaces.Dict(self.shares.spaces(env.single_observation_space))
        self.action_space = batch_space(self.single_action_space, env.num_envs)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    @property
    def instruction(self) -> list[str]:
        """What each row is asked to do, in words."""
        return self.env.instruction

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start episodes, as :meth:`manikin.Env.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.shares.parted(observation), self._info(info)

    def step(
        self, actions: Any, *, active: Any = None
    ) -> tuple[dict[str, Any], Tensor, Tensor, Tensor, dict[str, Any]]:
        """Advance by one control step with actions of every agent, as :meth:`manikin.Env.step`.

        Raises:
            ActionError: an agent has none, or of the wrong shape.
        """
        whole = self.shares.whole(actions, self.env.num_envs, self.env.device)
        observation, reward, terminated, truncated, info = self.env.step(whole, active=active)
        return self.shares.parted(observation), reward, terminated, truncated, self._info(info)

    def _info(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "final_obs": self.shares.parted(info["final_obs"])} if "final_obs" in info else info
