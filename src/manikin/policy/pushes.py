"""Policies that are pushed off their way now and then, so that recordings show how to come back.

A policy that imitates is seldom exactly where its demonstrator was. Demonstrations that never leave the best way do not
show how to return to it. And because speed and action always agree in them, the policy learns to go on as it goes. A
disturbed demonstrator shows both (Laskey et al., 2017, arXiv:1703.09327). They add noise in every step; pushes let the
arm come to rest between them, which some tasks ask for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.policy.api import Observation, Policy
from manikin.policy.chunk import ChunkPolicy
from manikin.rng import EpisodeRng

__all__ = ["PushedPolicy", "Pushes"]


@dataclass(frozen=True)
class Pushes:
    """When episodes are pushed, and how much: a function of the episode's seed and index alone.

    Attributes:
        chance: that a push begins in a step without one, 0 to 1.
        strength: standard deviation of what it adds to each action but the gripper's, in units of an action.
        steps: how long it lasts [control steps]; it adds the same in each.

    Raises:
        ConfigError: a value out of its range.
    """

    chance: float
    strength: float = 0.4
    steps: int = 3

    def __post_init__(self) -> None:
        if not 0 < self.chance <= 1:
            raise ConfigError(f"the chance of a push must be above 0 and at most 1, got {self.chance}")
        if not (math.isfinite(self.strength) and self.strength > 0) or self.steps < 1:
            raise ConfigError(
                f"a push needs a strength above 0 and 1 step or more, got {self.strength} and {self.steps}"
            )

    @classmethod
    def of(cls, recorded: Mapping[str, Any]) -> Pushes | None:
        """What a recording's header says of its pushes; None where there were none."""
        return cls(**recorded["pushes"]) if recorded.get("pushes") else None

    @property
    def plain(self) -> dict[str, Any]:
        """As a recording's header has it: what :meth:`of` reads."""
        return asdict(self)

    def begins(self, seed: Tensor, index: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Of episodes (n,) and their first ``length`` steps, both (n, length): whether each step is pushed, and in
        which step that push began."""
        drawn = EpisodeRng(seed, index).uniform("policy/push", 0.0, 1.0, (length,)) < self.chance
        began = torch.full((len(seed),), -self.steps, dtype=torch.int64, device=drawn.device)
        pushed, since = [], []
        for t in range(length):
            free = began <= t - self.steps
            began = torch.where(free & drawn[:, t], torch.full_like(began, t), began)
            pushed.append(began > t - self.steps)
            since.append(began.clamp(min=0))
        return torch.stack(pushed, 1), torch.stack(since, 1)

    def offsets(self, seed: Tensor, index: Tensor, length: int, dimensions: int) -> Tensor:
        """(n, length, dimensions): what is added to the actions."""
        pushed, since = self.begins(seed, index, length)
        rng = EpisodeRng(seed, index)
        drawn = rng.normal("policy/push/offset", 0.0, self.strength, (length, dimensions))
        taken = torch.take_along_dim(drawn, since.unsqueeze(2), 1)
        return taken * pushed.unsqueeze(2)


class PushedPolicy:
    """Acts as another policy, and is pushed. The actions stay within [-1, 1].

    Args:
        policy: who acts.
        env: whose episodes are played.
        pushes: when, and how much.
    """

    def __init__(self, policy: Policy, env: BatchEnv, pushes: Pushes) -> None:
        self.env, self.pushes = env, pushes
        self._actions = env.single_action_space.shape[0]
        self._policy = ChunkPolicy(policy, env.num_envs, self._actions)
        self.name = f"{self._policy.name} (pushed)"
        self._keep = torch.ones(self._actions)
        self._keep[list(env.controller.card.grippers)] = 0.0
        self._offsets = torch.zeros(env.num_envs, env.horizon, self._actions)
        self._step = torch.zeros(env.num_envs, dtype=torch.int64)
        self._rows = torch.arange(env.num_envs)

    def reset(self, rows: Tensor) -> None:
        """Draw the pushes of the rows' episodes."""
        rows = rows.cpu()
        key = self.env.save(rows.numpy()).extra
        seed, index = torch.from_numpy(key["seed"]), torch.from_numpy(key["index"])
        self._offsets[rows] = self.pushes.offsets(seed, index, self.env.horizon, self._actions) * self._keep
        self._step[rows] = 0
        self._policy.reset(rows)

    def act(self, observation: Observation, instruction: Sequence[str]) -> Tensor:
        """(N, 1, A)."""
        action = self._policy.act(observation, instruction)[:, 0]
        offset = self._offsets[self._rows, self._step].to(action)
        # rows without an episode are not reset, so their step stays at the last one
        self._step = (self._step + 1).clamp(max=self.env.horizon - 1)
        pushed = (action + offset).clamp(-1.0, 1.0)
        return torch.where(offset.any(1, keepdim=True), pushed, action)[:, None]
