"""Episodes of a trainer: where they start, how they went, and their state in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.parallel.ranks import Ranks
from manikin.learn.common.seeds import training_seeds
from manikin.learn.common.spent import Spent
from manikin.learn.common.starts.base import SavedStarts
from manikin.learn.common.tree import mapped

__all__ = ["Episodes", "Moved", "flat_size", "worth_after"]


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


@dataclass(frozen=True)
class Moved:
    """One step of all rows.

    Attributes:
        observation: (N, D), or what else the environment observes, where rows are now; of those that restarted, where
            they begin.
        following: the same where the step led, in the episode in which it was made.
        rewards: (N,).
        ended: (N,) bool, the task or the time limit ended the episode.
        cut: (N,) bool, the row was restarted to stagger the episodes, or where it failed.
        kept: (N,) bool, the value of ``following`` counts; see :func:`worth_after`.
    """

    observation: Any
    following: Any
    rewards: Tensor
    ended: Tensor
    cut: Tensor
    kept: Tensor

    @property
    def for_replay(self) -> dict[str, Tensor]:
        """What :meth:`~manikin.learn.common.data.replay.Replay.add` takes of it. A row that was cut ended there."""
        ended = self.ended | self.cut
        return {"rewards": self.rewards, "following": self.following, "ended": ended, "kept": self.kept}


class Episodes:
    """Starts and steps the rows of an environment, and adds up what happens in them.

    Args:
        env: with ``autoreset="same_step"``.
        seed: of the run; episode seeds follow from it and are never those of validation or test.
        spent: told how long the environment takes.
        stagger: while the first episodes run, rows restart one after another, so that later not all end together.
        bootstrap_at_success: see :func:`worth_after`.
        end_at_fail: rows that fail restart, also in an environment whose episodes go on.
        starts: where episodes begin, in place of the task's own starts.
        ranks: processes that train together: together they have the rows that one would have.
    """

    def __init__(
        self,
        env: BatchEnv,
        seed: int,
        spent: Spent,
        *,
        stagger: bool,
        bootstrap_at_success: bool,
        end_at_fail: bool = False,
        starts: SavedStarts | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        n, device = env.num_envs, env.device
        first, all_rows = (0, n) if ranks is None else (ranks.rank * n, ranks.size * n)
        self.env, self._bootstrap, self._end_at_fail = env, bootstrap_at_success, end_at_fail
        self.seeds = training_seeds(seed, all_rows)[first : first + n]
        self.starts, self.spent = starts, spent
        self._cut_at = torch.arange(first, first + n, device=device) * env.horizon // all_rows
        self._staggered = env.horizon if stagger and (starts is None or starts.own_at_first) else 0
        self._return = torch.zeros(n, dtype=torch.float64, device=device)
        self._success = torch.zeros(n, dtype=torch.bool, device=device)
        self._ended: list[Tensor] = []  # of each step in which rows ended: (k, 3) return, length, success

    def begin(self) -> Any:
        """The first observation of all rows."""
        observation = self.env.reset(seed=self.seeds)[0]
        return self._placed(observation, torch.ones_like(self._success), torch.zeros_like(self._success))

    def step(self, actions: Tensor, count: int) -> Moved:
        """Make the ``count``-th step of all rows, counted from 1, with these actions (N, A)."""
        with self.spent.on("environment"):
            observation, rewards, terminated, truncated, info = self.env.step(actions)
        ended = terminated | truncated
        succeeded_before = self._success
        success = self._account(rewards, ended, info)
        if self.starts is not None:
            self.starts.visit(success & ~succeeded_before & ~ended)
        following, kept, cut = observation, torch.ones_like(ended), torch.zeros_like(ended)
        if "final_obs" in info:
            final = info["final_info"]
            kept = worth_after(terminated, truncated, final, bootstrap_at_success=self._bootstrap) | ~ended
            following = mapped(
                lambda final, now: torch.where(ended.view(-1, *[1] * (now.ndim - 1)), final, now),
                info["final_obs"],
                observation,
            )
            observation = self._placed(observation, ended, success)
        if self._end_at_fail and "fail" in info and bool((failed := info["fail"] & ~ended).any()):
            cut, kept = failed, kept & ~failed
            self._keep(failed, info, success)
        if count <= self._staggered:
            cut = cut | (self._cut_at == count)
        if (self._end_at_fail or count <= self._staggered) and bool(cut.any()):
            observation = self._placed(self.env.reset(options={"reset_mask": cut})[0], cut, success)
            self._forget(cut)
        return Moved(observation, following, rewards, ended, cut, kept)

    def _placed(self, observation: Any, rows: Tensor, success: Tensor) -> Any:
        """The observation of all rows after those of ``rows`` (N,) bool began."""
        moved = None if self.starts is None else self.starts.begin(rows, success)
        return observation if moved is None else moved

    def _account(self, rewards: Tensor, done: Tensor, info: dict[str, Any]) -> Tensor:
        """Add up a step; returns (N,) bool, which episodes ever succeeded."""
        self._return += rewards
        of = info.get("final_info", info)
        success = self._success | of["success"]
        self._success = success.clone()
        if "_final_obs" in info or bool(done.any()):
            self._keep(done, of, self._success)
            self._forget(done)
        return success

    def _keep(self, rows: Tensor, info: Mapping[str, Tensor], success: Tensor) -> None:
        """Episodes of rows (N,) bool are over."""
        columns = (self._return[rows], info["elapsed"][rows].double(), success[rows].double())
        self._ended.append(torch.stack(columns, 1))

    def _forget(self, rows: Tensor) -> None:
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
        found = {"episodes": float(len(ended)), "return": mean[0], "length": mean[1], "success": mean[2]}
        return found if self.starts is None else {**found, **self.starts.summary}

    def state_dict(self) -> dict[str, Any]:
        starts = {} if self.starts is None else self.starts.state_dict()
        return {"env": self.env.save(), "return": self._return, "success": self._success, "starts": starts}

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Put all rows where they were; returns the observation."""
        observation, _ = self.env.load(state["env"])
        self._return = state["return"].to(self._return)
        self._success = state["success"].to(self._success)
        if self.starts is not None:
            self.starts.load_state_dict(state["starts"])
        return observation
