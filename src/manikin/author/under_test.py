"""A task under test: makes the environments, actions and whole episodes that the checks in
:mod:`manikin.author.contracts` and :mod:`manikin.author.checker` use."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import os
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.compat.torch import DispatchMode
from manikin.env.arrays import to_numpy
from manikin.env.env import Env
from manikin.env.interface import BatchEnv, LayoutRows
from manikin.env.layouts.env import batched
from manikin.env.task import Task
from manikin.plan.executor import Timeout, WaypointExecutor
from manikin.rng import EpisodeRng

__all__ = ["Broken", "CountCalls", "Expert", "WatchedEpisodes", "TaskUnderTest"]

Expert = Callable[[BatchEnv], Callable[[], Tensor]]
"""Given an environment, a function that gives the actions (N, A) for its present state."""


class Broken(Exception):
    """The task breaks a rule. The message says what to change."""


class TaskUnderTest:
    """A task with the options and seeds of its checks.

    Attributes:
        n: batch size of most checks.
        seeds: at least n.
        rows: the seeds of the first n rows.
    """

    def __init__(
        self, task: type[Task], options: dict[str, Any], n: int, seeds: Sequence[int], expert: Expert | None
    ) -> None:
        self.task, self.options, self.n, self.seeds, self.expert_of = task, options, n, list(seeds), expert
        self.rows = self.seeds[:n]
        self.has_reward = task.reward is not Task.reward
        self.has_expert = task.expert is not Task.expert

    def make(self, n: int | None = None, **options: Any) -> Env:
        """An environment of n rows that ends nothing by itself."""
        fixed = {"autoreset": "disabled", "terminate": False, "reward": "dense" if self.has_reward else "none"}
        return Env(self.task, num_envs=n or self.n, **{**fixed, **self.options, **options})

    def whole(self, n: int, **options: Any) -> BatchEnv:
        """The same with all of the task's layouts; :meth:`make` takes the first."""
        fixed = {"autoreset": "disabled", "terminate": False, "reward": "dense" if self.has_reward else "none"}
        return batched(self.task, num_envs=n, **{**fixed, **self.options, **options})

    def begun(self, steps: int = 0, **options: Any) -> Env:
        """An environment of n rows, some random steps into the first seeds."""
        env = self.make(**options)
        env.reset(seed=self.rows)
        for action in self.actions(env, steps):
            env.step(action)
        return env

    def actions(self, env: BatchEnv, steps: int, seeds: Sequence[int] | None = None) -> Tensor:
        """(steps, N, A) random; what a row gets depends on its seed alone."""
        seed = torch.tensor(self.rows if seeds is None else list(seeds), dtype=torch.int64)
        rng = EpisodeRng(seed, torch.zeros_like(seed))
        shape = (max(steps, 1), env.controller.card.size)
        return rng.uniform("check/actions", -1.0, 1.0, shape).transpose(0, 1)[:steps]

    @functools.cached_property
    def random_run(self) -> WatchedEpisodes:
        """Whole episodes of random actions, one for each seed."""

        def act_of(part: LayoutRows) -> Callable[[], Tensor]:
            moves = torch.zeros(part.env.horizon, part.env.num_envs, part.env.controller.card.size)
            seeds = [self.seeds[place] for place in part.places]
            moves[:, part.rows] = self.actions(part.env, part.env.horizon, seeds)
            return iter(moves).__next__

        return self._watched(self.seeds, act_of)

    @functools.cached_property
    def expert_run(self) -> WatchedEpisodes | None:
        """Whole episodes of the expert on the first 20 seeds; None without one."""
        expert = self.expert_of
        if expert is None or not self.has_expert:
            return None
        return self._watched(self.seeds[:20], lambda part: expert(part.env))

    def _watched(self, seeds: Sequence[int], act_of: Callable[[LayoutRows], Callable[[], Tensor]]) -> WatchedEpisodes:
        """Rows of one layout after the other, so that none waits for another's."""
        env = self.whole(len(seeds))
        env.reset(seed=seeds)
        parts = env.parts()
        runs = [WatchedEpisodes(part.env, act_of(part), part.rows) for part in parts]
        return WatchedEpisodes.joined([part.places for part in parts], runs)

    def blame(self, error: Exception) -> str:
        """The error, and the line of the task's own file that it came from."""
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        try:
            file = inspect.getfile(self.task)
        except (OSError, TypeError):
            return text
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if frame.filename == file:
                return f"{text} ({os.path.basename(file)}, line {frame.lineno}, in {frame.name})"
        return text


_AFTER = 1.0  # [s] watched once every row has succeeded or failed


class WatchedEpisodes:
    """Episodes of rows, each to its end or until a second after it has succeeded or failed, with what was seen on the
    way.

    Args:
        env: has begun them, ends none, and does not restart them.
        act: gives actions for all of its rows.
        rows: those that are watched, N of them; default all. The others stay where they are.

    Attributes:
        succeeded: (N,) bool, at any time.
        times: (N,) of the first success [s], NaN without one.
        finite: reward term -> whether it always was.
        largest, sum_error: of the reward; its largest deviation from the sum of the terms.
        health: bits of all rows together, of each until its task says ``fail``: its episode is over then.
        waypoint, timeouts: of each row, where an expert's waypoints are followed; see :class:`WaypointExecutor`.
    """

    def __init__(self, env: BatchEnv, act: Callable[[], Tensor], rows: np.ndarray | None = None) -> None:
        rows = np.arange(env.num_envs) if rows is None else rows
        n = len(rows)
        self.succeeded, self.times = torch.zeros(n, dtype=torch.bool), torch.full((n,), float("nan"))
        self.finite: dict[str, bool] = {}
        self.largest, self.sum_error, self.health = -float("inf"), 0.0, 0
        failed, over_for = np.zeros(n, bool), np.zeros(n, int)
        executor = getattr(act, "__self__", None)
        for k in range(env.horizon):
            going = over_for <= _AFTER * env.control_hz
            if not going.any():
                break
            active = np.zeros(env.num_envs, bool)
            active[rows[going]] = True
            action = executor.act(active) if isinstance(executor, WaypointExecutor) else act()
            _, reward, _, truncated, info = env.step(action, active=None if active.all() else active)
            moved = torch.from_numpy(active).to(reward.device)
            terms = info.get("reward_terms", {})
            for name, term in terms.items():
                self.finite[name] = self.finite.get(name, True) and bool(torch.isfinite(term[moved]).all())
            if terms:
                total = torch.stack([t.float() for t in terms.values()]).sum(0)
                self.sum_error = max(self.sum_error, float((total - reward)[moved].abs().max()))
            self.largest = max(self.largest, float(reward[moved].max()))
            won = info["success"].cpu()[torch.from_numpy(rows)]
            self.times[won & ~self.succeeded] = (k + 1) / env.control_hz
            self.succeeded |= won
            self.health |= int(np.bitwise_or.reduce(np.where(failed, 0, to_numpy(info["health"])[rows])))
            if "fail" in info:
                failed |= to_numpy(info["fail"])[rows].astype(bool)
            over = to_numpy(self.succeeded) | failed
            over_for = np.where(over, over_for + 1, 0)
            if bool(truncated.any()):  # at the end of the time; before it, the physics broke
                break
        self.waypoint: list[str] = []
        self.timeouts: list[tuple[Timeout, ...]] = []
        if isinstance(executor, WaypointExecutor):
            waypoint, timeouts = executor.waypoint, executor.timeouts
            self.waypoint, self.timeouts = [waypoint[row] for row in rows], [timeouts[row] for row in rows]

    @property
    def first(self) -> float:
        """Mean time of the first success [s], NaN without one."""
        return float(self.times[self.succeeded].mean()) if bool(self.succeeded.any()) else float("nan")

    @classmethod
    def joined(cls, places: Sequence[np.ndarray], runs: Sequence[WatchedEpisodes]) -> WatchedEpisodes:
        """All of ``runs`` as one, whose rows go to the ``places`` (n,) of each."""
        whole = copy.copy(runs[0])
        back = np.argsort(np.concatenate(places))
        whole.succeeded, whole.times = (
            torch.cat([getattr(run, name) for run in runs])[torch.from_numpy(back)] for name in ("succeeded", "times")
        )
        whole.finite = {name: all(run.finite.get(name, True) for run in runs) for run in runs for name in run.finite}
        whole.largest, whole.sum_error = (max(getattr(run, name) for run in runs) for name in ("largest", "sum_error"))
        whole.health = functools.reduce(operator.or_, (run.health for run in runs))
        for name in ("waypoint", "timeouts"):
            listed = [value for run in runs for value in getattr(run, name)]
            setattr(whole, name, [listed[k] for k in back] if listed else [])
        return whole


class CountCalls(DispatchMode):
    """Counts torch's operator calls: ``with CountCalls() as calls: ...; calls.count``, ``calls.by_name`` of each."""

    def __init__(self) -> None:
        super().__init__()
        self.by_name: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Of all operators together."""
        return self.by_name.total()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with self:  # below torch's layer of gradients nobody has taken apart yet what consists of other operators
            found = func.decompose(*args, **(kwargs or {}))
        if found is not NotImplemented:
            return found
        self.by_name[str(func)] += 1
        return func(*args, **(kwargs or {}))


def calls_of_a_step(env: Env, seed: int = 0) -> CountCalls:
    """The torch calls of a control step of an environment of one row, its second in an episode."""
    env.reset(seed=seed)
    action = torch.zeros(1, env.controller.card.size)
    env.step(action)
    with CountCalls() as calls:
        env.step(action)
    return calls
