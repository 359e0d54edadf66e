"""Episodes of a trainer: where they start, how they went, and their state in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.seeds import training_seeds

__all__ = ["Episodes", "Stagger", "flat_size", "worth_after"]


def flat_size(env: BatchEnv) -> int:
    """Columns of a flat observation.

    Raises:
        ConfigError: the observation has parts; says which option makes it flat.
    """
    shape = env.single_observation_space.shape
    if shape is None or len(shape) != 1:
        raise ConfigError("this algorithm learns from flat observations: observe='state' or 'policy'")
    return int(shape[0])


def worth_after(
    terminated: Tensor, truncated: Tensor, final: Mapping[str, Tensor], *, bootstrap_at_success: bool
) -> Tensor:
    """(N,) bool, of rows that ended, whether their last observation's value counts.

    It does where time ran out and the task had not ended the episode. By option it does where it succeeded, too: else
    a policy that is paid per step does better to hover at the goal than to reach it. It never does after a fail.

    Args:
        terminated: (N,) bool, the task ended it.
        truncated: (N,) bool, time ran out.
        final: ``success`` and, where the task has it, ``fail`` (N,) bool of the last step.
        bootstrap_at_success: the option.
    """
    kept = truncated | final["success"] if bootstrap_at_success else truncated & ~terminated
    return kept & ~final["fail"] if "fail" in final else kept


class Episodes:
    """Starts the rows of an environment, and adds up what happens in them.

    Args:
        env: with ``autoreset="same_step"``.
        seed: of the run; episode seeds follow from it and are never those of validation or test.
    """

    def __init__(self, env: BatchEnv, seed: int) -> None:
        self.env, self._seeds = env, training_seeds(seed, env.num_envs)
        n, device = env.num_envs, env.device
        self._return = torch.zeros(n, dtype=torch.float64, device=device)
        self._success = torch.zeros(n, dtype=torch.bool, device=device)
        self._ended: list[Tensor] = []  # of each step in which rows ended: (k, 3) return, length, success

    def begin(self) -> Any:
        """The first observation of all rows."""
        return self.env.reset(seed=self._seeds)[0]

    def step(self, reward: Tensor, terminated: Tensor, truncated: Tensor, info: dict[str, Any]) -> None:
        """Account for a step of all rows."""
        self._return += reward
        done = terminated | truncated
        of = info.get("final_info", info)
        self._success |= of["success"]
        if "_final_obs" in info or bool(done.any()):
            columns = (self._return[done], of["elapsed"][done].double(), self._success[done].double())
            self._ended.append(torch.stack(columns, 1))
            self.forget(done)

    def forget(self, rows: Tensor) -> None:
        """Rows (N,) bool begin anew."""
        self._return[rows] = 0.0
        self._success[rows] = False

    def summary(self) -> dict[str, float]:
        """Of the episodes that ended since the last call: number, mean return, length, share that ever succeeded."""
        if not self._ended:
            return {"episodes": 0.0}
        ended = torch.cat(self._ended)
        self._ended = []
        mean = ended.mean(0).tolist()
        return {"episodes": float(len(ended)), "return": mean[0], "length": mean[1], "success": mean[2]}

    def state_dict(self) -> dict[str, Any]:
        return {"env": self.env.save(), "return": self._return, "success": self._success}

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Put all rows where they were; returns the observation."""
        observation, _ = self.env.load(state["env"])
        self._return = state["return"].to(self._return)
        self._success = state["success"].to(self._success)
        return observation


class Stagger:
    """Restarts rows one after another while the first episodes run, so that later not all end in the same step.

    Attributes:
        end: control steps of all rows after which nothing is restarted any more.
    """

    def __init__(self, env: BatchEnv) -> None:
        self.env, self.end = env, env.num_envs * env.horizon
        self._at = torch.arange(env.num_envs, device=env.device) * env.horizon // env.num_envs

    def step(self, observation: Any, count: int) -> tuple[Any, Tensor]:
        """After the ``count``-th step of each row: the observation, of restarted rows their first one, and which rows
        those are (N,) bool."""
        cut = self._at == count
        if bool(cut.any()):
            observation, _ = self.env.reset(options={"reset_mask": cut})
        return observation, cut
