"""Scripted policies of graded quality: another policy with declared faults, for trying a whole evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.policy.api import Observation, Policy
from manikin.policy.chunk import ChunkPolicy
from manikin.policy.delay import standing
from manikin.rng import EpisodeRng

__all__ = ["Grade", "GradedPolicy"]

OPEN_S = 0.5  # [s] that a gripper stays open once it drops out


@dataclass(frozen=True, kw_only=True)
class Grade:
    """Faults, all functions of the episode's seed and index alone.

    Attributes:
        noise: standard deviation of what each step adds to each number but the gripper's, in units of an action.
        bias: what every step adds to each number but the gripper's, the same in all episodes.
        delay: control steps by which actions are late; before the first one the robot stands still.
        drop: chance per control step that the gripper opens for half a second, 0 to 1.

    Raises:
        ConfigError: a value out of its range.
    """

    noise: float = 0.0
    bias: float = 0.0
    delay: int = 0
    drop: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise) and self.noise >= 0) or not math.isfinite(self.bias):
            raise ConfigError(f"noise must be 0 or more, and bias finite; got {self.noise} and {self.bias}")
        if self.delay < 0 or not 0 <= self.drop <= 1:
            raise ConfigError(f"delay must be 0 or more steps, and drop from 0 to 1; got {self.delay} and {self.drop}")

    @classmethod
    def read(cls, text: str) -> tuple[Grade, str]:
        """The grade that ``noise=0.3,delay=2,of=expert`` says, and the word of the policy that has it.

        Raises:
            ConfigError: an unknown fault, or a value that is none.
        """
        kinds: dict[str, type[float]] = {"noise": float, "bias": float, "delay": int, "drop": float}
        values: dict[str, float] = {}
        of = "expert"
        for part in filter(None, text.split(",")):
            name, _, said = part.partition("=")
            if name == "of" and said:
                of = said
                continue
            try:
                values[name] = kinds[name](said)
            except (KeyError, ValueError):
                raise ConfigError(
                    f"a graded policy takes noise, bias, delay, drop and of, written graded:noise=0.3,delay=2; got "
                    f"{part!r}"
                ) from None
        return cls(**values), of  # type: ignore[arg-type]


class GradedPolicy:
    """Acts as another policy with faults. Actions stay within [-1, 1].

    Args:
        policy: who acts.
        env: whose episodes are played.
        grade: the faults.
        seed: another one gives other faults in the same episode.
    """

    def __init__(self, policy: Policy, env: BatchEnv, grade: Grade, *, seed: int = 0) -> None:
        self.env, self.grade, self._seed = env, grade, seed
        n, self._a = env.num_envs, env.single_action_space.shape[0]
        self._policy = ChunkPolicy(policy, n, self._a)
        said = ",".join(f"{f.name}={getattr(grade, f.name):g}" for f in fields(grade) if getattr(grade, f.name))
        self.name = f"{self._policy.name} ({said or 'no fault'})"
        card = env.controller.card
        self._arm = torch.ones(self._a)
        self._arm[list(card.grippers)] = 0.0
        self._opens = torch.tensor([math.copysign(1.0, card.dims[k].scale) for k in card.grippers])
        self._offsets = torch.zeros(n, env.horizon, self._a)
        self._open = torch.zeros(n, env.horizon, len(card.grippers), dtype=torch.bool)
        self._late = torch.zeros(n, grade.delay, self._a)  # the oldest first
        self._step = torch.zeros(n, dtype=torch.int64)
        self._rows = torch.arange(n)

    def reset(self, rows: Tensor) -> None:
        """Draw the faults of the rows' episodes."""
        rows = rows.cpu()
        key = self.env.save(rows.numpy()).extra
        rng = EpisodeRng(torch.from_numpy(key["seed"]), torch.from_numpy(key["index"]))
        name = f"policy/graded/{self._seed}" if self._seed else "policy/graded"
        noise = rng.normal(f"{name}/noise", 0.0, self.grade.noise, self._offsets.shape[1:])
        self._offsets[rows] = (noise + self.grade.bias) * self._arm
        drops = rng.uniform(f"{name}/drop", 0.0, 1.0, self._open.shape[1:]) < self.grade.drop
        lasts = max(1, round(OPEN_S * self.env.control_hz))
        since = torch.cat([torch.zeros_like(drops[:, :1], dtype=torch.int64), drops.cumsum(1)], 1)  # (n, T + 1, G)
        first = (torch.arange(drops.shape[1]) + 1 - lasts).clamp(min=0)
        self._open[rows] = since[:, 1:] > since[:, first]
        self._late[rows] = standing(self.env).to(self._late)[rows, None]
        self._step[rows] = 0
        self._policy.reset(rows)

    def act(self, observation: Observation, instruction: Sequence[str]) -> Tensor:
        """(N, 1, A)."""
        action = self._policy.act(observation, instruction)[:, 0].to(self._offsets)
        if self.grade.delay:
            action, self._late = self._late[:, 0], torch.cat([self._late[:, 1:], action[:, None]], 1)
        out = (action + self._offsets[self._rows, self._step]).clamp(-1.0, 1.0)
        columns = list(self.env.controller.card.grippers)
        out[:, columns] = torch.where(self._open[self._rows, self._step], self._opens, out[:, columns])
        # rows without an episode are not reset, so their step stays at the last one
        self._step = (self._step + 1).clamp(max=self.env.horizon - 1)
        return out[:, None]
