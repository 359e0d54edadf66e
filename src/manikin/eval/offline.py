"""Ranking policies by the error of their actions on demonstrations, the usual way without a simulator or a robot.

SIMPLER (Li et al., 2024, arXiv:2405.05941) shows that this ranks worse than simulation: a policy may be near the
demonstrator in every state that the demonstrator visits, and fail in those that it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manikin.data.recording.read import read_episodes
from manikin.data.replay.environment import make_env
from manikin.data.replay.play import ControlStep, Follow, batches, play
from manikin.env.arrays import to_numpy
from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError, DataError
from manikin.eval.agreement.metrics import METRICS, why_undefined
from manikin.eval.agreement.trials import Metric, Trials
from manikin.eval.stats import Interval, bootstrap
from manikin.moved import old_names
from manikin.policy.api import Policy
from manikin.policy.chunk import ask

__all__ = ["OfflineResult", "action_errors", "agreement_of_errors"]


@dataclass(frozen=True)
class OfflineResult:
    """Of one policy: mean squared error of its actions, in units of an action, with its bootstrap interval over
    demonstrations; ``episodes`` has that of each."""

    policy: str
    error: Interval
    episodes: tuple[float, ...]


def action_errors(
    path: str | Path,
    makers: Mapping[str, Callable[[Any], Policy]],
    *,
    num_envs: int = 16,
    confidence: float = 0.95,
    on_episode: Callable[[], None] = lambda: None,
) -> tuple[str, list[OfflineResult]]:
    """Play the demonstrations again and ask every policy in every step what it would do.

    Args:
        path: a recording.
        makers: name of a policy -> what makes it for an environment.
        num_envs: demonstrations side by side.
        confidence: of the intervals.
        on_episode: called once per finished demonstration.

    Returns:
        The task's id, and the policies, the smallest error first.

    Raises:
        DataError: the recording cannot be read or played, or has no episode.
    """
    with read_episodes(path) as file:
        if file.header is None or not file.numbers:
            raise DataError(f"{path} has no finished episode")
        env = make_env(file.header.fingerprint, min(num_envs, len(file.numbers)))
        try:
            compare = _Compare({name: maker(env) for name, maker in makers.items()})
            for batch in batches(file, file.numbers, env.num_envs):
                play(env, batch, compare, (), lambda: False)
                for _ in batch:
                    on_episode()
            task = env.task.id
        finally:
            env.close()
    found = []
    for name, errors in compare.errors.items():
        interval = bootstrap(errors, confidence=confidence)
        found.append(OfflineResult(name, interval, tuple(errors)))
    return task, sorted(found, key=lambda one: one.error.estimate)


class _Compare(Follow):
    """The recorded actions, simulated, and beside them what policies would have done."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._policies = policies
        self.errors: dict[str, list[float]] = {name: [] for name in policies}

    def begin(self, env: BatchEnv, batch: Sequence[Any], observation: Any) -> Any:
        self._seen = super().begin(env, batch, observation)
        self._sums = {name: np.zeros(env.num_envs) for name in self._policies}
        for policy in self._policies.values():
            policy.reset(torch.arange(env.num_envs))
        return observation

    def move(self, active: np.ndarray) -> ControlStep:
        env, rows = self._env, np.flatnonzero(active)
        size = env.single_action_space.shape[0]
        for name, policy in self._policies.items():
            answer = ask(policy, torch.arange(env.num_envs), env.num_envs, size, self._seen, env.instruction)
            would = to_numpy(answer[:, 0]).astype(np.float64)
            for i in rows.tolist():
                self._sums[name][i] += np.mean((would[i] - self._batch[i].actions[self._at[i]]) ** 2)
        moved = super().move(active)
        self._seen = moved.observation
        for i in rows[moved.over[rows]].tolist():
            for name, sums in self._sums.items():
                self.errors[name].append(float(sums[i] / self._at[i]))
        return moved


def agreement_of_errors(
    found: Sequence[OfflineResult],
    real: Mapping[str, Trials],
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, Metric]:
    """MMRV and correlations of small errors with success in reality, with bootstrap intervals over demonstrations and
    real trials.

    Raises:
        ConfigError: other policies in reality; lists both.
    """
    names = [one.policy for one in found]
    if set(names) != set(real):
        raise ConfigError(
            f"real results are of the policies {', '.join(sorted(real))}; errors are of {', '.join(sorted(names))}"
        )
    rng = np.random.default_rng(seed)  # house: random, a stream of its own
    errors = np.array([one.episodes for one in found]).T  # (episodes, policies)
    counts = rng.multinomial(len(errors), np.full(len(errors), 1 / len(errors)), resamples)
    near = -counts @ errors / len(errors)
    rates = np.array([np.mean([np.mean(one) for one in real[name].values()]) for name in names])
    drawn = [
        np.mean([rng.binomial(len(one), float(np.mean(one)), resamples) / len(one) for one in real[name].values()], 0)
        for name in names
    ]
    tail, out = (1 - confidence) / 2, {}
    for metric, compute in METRICS.items():
        why = why_undefined(rates, -errors.mean(0), metric)
        values = compute(np.stack(drawn, -1), near)
        there = values[~np.isnan(values)]
        if why or not len(there):
            out[metric] = Metric(None, None, None, 1.0, why or "it is not defined in any resample")
            continue
        low, high = np.quantile(there, [tail, 1 - tail]).tolist()
        out[metric] = Metric(float(compute(rates, -errors.mean(0))), low, high, 1 - len(there) / resamples)
    return out


__getattr__ = old_names(__name__)
