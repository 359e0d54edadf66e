"""A task under test: makes the environments, actions and whole episodes that the checks in
:mod:`manikin.author.contracts` and :mod:`manikin.author.checker` use."""

from __future__ import annotations

import inspect
import os
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.compat.torch import TorchDispatchMode
from manikin.env.arrays import to_numpy
from manikin.env.env import Env
from manikin.env.interface import BatchEnv
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

    @cached_property
    def random_run(self) -> WatchedEpisodes:
        """Whole episodes of random actions, one for each seed."""
        env = self.whole(len(self.seeds))
        env.reset(seed=self.seeds)
        moves = iter(self.actions(env, env.horizon, self.seeds))
        return WatchedEpisodes(env, lambda: next(moves))

    @cached_property
    def expert_run(self) -> WatchedEpisodes | None:
        """Whole episodes of the expert on the first 20 seeds; None without one."""
        if self.expert_of is None or not self.has_expert:
            return None
        seeds = self.seeds[:20]
        env = self.whole(len(seeds))
        env.reset(seed=seeds)
        act = self.expert_of(env)
        run, executor = WatchedEpisodes(env, act), getattr(act, "__self__", None)
        if isinstance(executor, WaypointExecutor):
            run.waypoint, run.timeouts = executor.waypoint, executor.timeouts
        return run

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
    """Episodes of all rows, to their end or until a second after the last has succeeded or failed, with what was seen
    on the way.

    Attributes:
        succeeded: (N,) bool, at any time.
        first: mean time of the first success [s], NaN without one.
        finite: reward term -> whether it always was.
        largest, sum_error: of the reward; its largest deviation from the sum of the terms.
        health: bits of all rows together, of each until its task says ``fail``: its episode is over then.
        waypoint, timeouts: of each row, where an expert's waypoints are followed; see :class:`WaypointExecutor`.
    """

    waypoint: Sequence[str] = ()
    timeouts: Sequence[tuple[Timeout, ...]] = ()

    def __init__(self, env: BatchEnv, act: Callable[[], Tensor]) -> None:
        self.succeeded = torch.zeros(env.num_envs, dtype=torch.bool)
        self.finite: dict[str, bool] = {}
        self.largest, self.sum_error, self.health = -float("inf"), 0.0, 0
        first, failed = torch.zeros(env.num_envs), np.zeros(env.num_envs, bool)
        over_for = 0
        for k in range(env.horizon):
            _, reward, _, truncated, info = env.step(act())
            terms = info.get("reward_terms", {})
            for name, term in terms.items():
                self.finite[name] = self.finite.get(name, True) and bool(torch.isfinite(term).all())
            if terms:
                total = torch.stack([t.float() for t in terms.values()]).sum(0)
                self.sum_error = max(self.sum_error, float((total - reward).abs().max()))
            self.largest = max(self.largest, float(reward.max()))
            won = info["success"].cpu()
            first[won & ~self.succeeded] = (k + 1) / env.control_hz
            self.succeeded |= won
            self.health |= int(np.bitwise_or.reduce(np.where(failed, 0, to_numpy(info["health"]))))
            if "fail" in info:
                failed |= to_numpy(info["fail"]).astype(bool)
            over_for = over_for + 1 if bool((to_numpy(self.succeeded) | failed).all()) else 0
            # truncated at the end of the time are all rows; before it, the physics broke
            if bool(truncated.any()) or over_for > _AFTER * env.control_hz:
                break
        self.first = float(first[self.succeeded].mean()) if bool(self.succeeded.any()) else float("nan")


class CountCalls(TorchDispatchMode):
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
