"""One row as a PettingZoo parallel environment: a dictionary of actions and observations, one entry per robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from pettingzoo import ParallelEnv

from manikin.env import arguments
from manikin.env.arrays import to_numpy
from manikin.env.layouts.env import batched
from manikin.env.registry import task_class
from manikin.env.task import Task
from manikin.errors import ActionError, ConfigError

__all__ = ["ParallelTask"]


class ParallelTask(ParallelEnv):  # type: ignore[misc]
    """A task whose robots are agents: ``ParallelTask("TwoArmLift-v3")``. Needs ``pip install pettingzoo``.

    An agent is called as its robot is in the scene (``robot0``). Its action is its robot's part of the action card. It
    observes, as one flat vector, its own robot and what belongs to none (the objects), never another robot's own
    values; :attr:`observation_names` says what each number is. All agents get the task's reward and end together.
    ``state`` is the whole observation.

    Args:
        task: as for :func:`manikin.make`.
        options: as for :class:`manikin.Env`; ``observe`` is ``state`` or ``policy``.

    Attributes:
        batched: the environment behind it, of one row.
        observation_names, action_names: agent -> the name of every number.

    Raises:
        ConfigError: an option that makes no sense for one row, or an observation that is not flat.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "is_parallelizable": True}

    def __init__(self, task: str | type[Task], **options: Any) -> None:
        if "autoreset" in options or "num_envs" in options:
            raise ConfigError("a parallel environment takes neither num_envs nor autoreset; use manikin.make")
        self.batched = env = batched(task_class(task), num_envs=1, autoreset="disabled", **options)
        if env.observe not in ("state", "policy"):
            raise ConfigError(f"agents observe flat vectors: observe='state' or 'policy', not {env.observe!r}")
        self.metadata = {**self.metadata, "name": env.task.id, "render_fps": env.control_hz}
        self.render_mode = env.render_mode
        self.possible_agents = [robot.name for robot in env.robots]
        self.agents: list[str] = []
        shares = env.shares
        self.observation_names, self.action_names = shares.observation_names, shares.action_names
        self._columns = shares.columns
        box = gymnasium.spaces.Box
        self.observation_spaces = {a: box(-np.inf, np.inf, (len(c),), np.float32) for a, c in self._columns.items()}
        self.action_spaces = {a: box(-1.0, 1.0, (len(d),), np.float32) for a, d in shares.dims.items()}
        self._seen = np.zeros(len(env.observation_names), np.float32)

    def observation_space(self, agent: str) -> gymnasium.spaces.Space:
        """Box (D,) of the agent, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Space:
        """Box (A,) in [-1, 1] of the agent, always the same object."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Start an episode; ``seed`` as in :meth:`manikin.Env.reset`."""
        observation, info = self.batched.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._observed(observation), self._informed(info)

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Advance by one control step with an action (A,) in [-1, 1] of every agent.

        Raises:
            ActionError: an agent has none, or one of the wrong size.
        """
        if not self.agents:
            return {}, {}, {}, {}, {}
        if set(actions) != set(self.agents):
            raise ActionError(f"step needs an action of each of {self.agents}, got {sorted(actions)}")
        rows = {}
        for agent, space in self.action_spaces.items():
            action = arguments.as_array(actions[agent], f"action of {agent}", ActionError)
            if action.shape != space.shape:
                raise ActionError(f"the action of {agent} has shape {action.shape}, expected {space.shape}")
            rows[agent] = action[None]
        observation, reward, terminated, truncated, info = self.batched.step(rows)
        values = float(reward[0]), bool(terminated[0]), bool(truncated[0])
        rewards, ended, over = (dict.fromkeys(self.agents, value) for value in values)
        out = self._observed(observation), rewards, ended, over, self._informed(info)
        if values[1] or values[2]:
            self.agents = []
        return out

    def state(self) -> np.ndarray:
        """(D,) float32 what is observed of all robots and objects together."""
        return self._seen.copy()

    def render(self) -> np.ndarray | None:
        """(H, W, 3) uint8 from the human camera; None without ``render_mode``."""
        frames = self.batched.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Free the simulation."""
        self.batched.close()

    def _observed(self, observation: Any) -> dict[str, np.ndarray]:
        self._seen = to_numpy(observation[0])
        return {agent: self._seen[self._columns[agent]] for agent in self.agents}

    def _informed(self, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        known = {k: v[0].item() for k, v in info.items() if getattr(v, "ndim", None) == 1}
        return {agent: dict(known) for agent in self.agents}
