"""The one runner behind evaluating and collecting: a list of episodes, each run exactly once.

Episodes are handed to rows in the order of the list; a row that finishes takes the next one, and when none is left it
is frozen. What an episode does depends on its key alone (design of ``rng.py``) and rows are stepped independently, so
the results do not depend on the number of environments, the order, or which row ran what.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium
import numpy as np
import torch

from manikin.data.collect import outcome_of
from manikin.data.recorder import Recorder
from manikin.data.recording.labels import Tracker
from manikin.data.replay.health import advice_for, unhealthy_words
from manikin.env.arrays import to_numpy
from manikin.errors import ConfigError
from manikin.policy.api import Policy
from manikin.policy.chunk import ChunkPolicy, Execution
from manikin.policy.delay import LatePolicy, late_steps
from manikin.spec.labels import PLAIN

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["EpisodeResult", "Observer", "Run", "Stop", "interruptible", "run_episodes"]

log = logging.getLogger("manikin.eval")

_COUNTERS = ("elapsed", "episode_seed", "episode_index", "health", "clipped", "layout")  # the environment's, in info


@dataclass(frozen=True, kw_only=True)
class EpisodeResult:
    """What one episode came to.

    Attributes:
        number: its place in the list of episodes.
        seed, index: the key of its randomness.
        instruction: what the policy was told.
        length: control steps.
        return_: sum of rewards, added in float64. max_reward: the largest of them.
        success_once: successful after at least one step. success_at_end: after the last one.
        first_success: the step after which it was first successful (counted from 1), None if never.
        longest_success: most steps in a row that were successful.
        terminated, truncated: how it ended. fail: whether it failed at any step; success after that does not count.
        said_finished: the policy said that it had finished, and that ended the episode.
        health: bits of :class:`manikin.sim.health.Health`; 0 is healthy.
        reached: the task's stage flags (``is_grasped``, ...): whether each was ever true. Says where failures stop.
        at_end: what the task says of the last step by name: the stage flags, counts and measures, as ``info`` has them.
        events: what happened, in order; mode: how it succeeded or failed (see :mod:`manikin.spec.labels`).
        force_sum: contact force of the robots in all (``total``) and on each link [N], sampled once per control step
            and added up. force_peak: the largest of them [N]. See :mod:`manikin.scene.handles.forces`.
    """

    number: int
    seed: int
    index: int
    instruction: str
    length: int
    return_: float
    max_reward: float
    success_once: bool
    success_at_end: bool
    first_success: int | None
    longest_success: int
    terminated: bool
    truncated: bool
    fail: bool
    health: int
    reached: Mapping[str, bool] = field(default_factory=dict)
    at_end: Mapping[str, bool | int | float] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    mode: str = ""
    said_finished: bool = False
    force_sum: Mapping[str, float] = field(default_factory=dict)
    force_peak: Mapping[str, float] = field(default_factory=dict)

    def success(self, rule: str, held_steps: int = 1) -> bool:
        """Whether it counts as a success under ``once``, ``at_end`` or ``held`` (``held_steps`` in a row)."""
        if rule == "once":
            return self.success_once
        if rule == "at_end":
            return self.success_at_end
        if rule == "held":
            return self.longest_success >= held_steps
        raise ConfigError(f"success rule {rule!r} is none of once, at_end, held")


@dataclass(frozen=True, kw_only=True)
class Run:
    """Results in the order of the list.

    ``interrupted``: stopped before every episode was run. ``advice``: which budget to raise to what, where contacts or
    constraints of an episode found no room; else "".
    """

    results: tuple[EpisodeResult, ...]
    interrupted: bool
    seconds: float
    env_steps: int
    advice: str = ""

    @property
    def unhealthy(self) -> tuple[EpisodeResult, ...]:
        return tuple(r for r in self.results if r.health)

    def unhealthy_words(self) -> str:
        """How many were not healthy, what went wrong in which of them, and what to do."""
        return unhealthy_words([(r.seed, r.health) for r in self.unhealthy], self.advice)


class Observer(Protocol):
    """Sees every step of every episode. :class:`manikin.data.recorder.Recorder` is one."""

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        """Episodes ``numbers`` (n,) begin in ``rows`` (n,); ``observation`` is that of all N rows."""

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, np.ndarray]) -> None:
        """``rows`` made one control step. actions (N, A); ``outcome`` has rewards, terminated, truncated, success and
        fail, each (N,), and as ``flags/NAME`` whatever else the task says of a step.
        """

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        """The episodes in ``rows`` (n,) have ended, with these bits of health (n,)."""


class Stop:
    """A flag that a signal or another thread may set; the runner looks at it once per control step."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self) -> bool:
        return self.requested


@contextmanager
def interruptible() -> Iterator[Stop]:
    """Within this block the first Ctrl-C asks to stop after the present step; a second one interrupts at once.

    Outside the main thread, where Python allows no signal handlers, Ctrl-C keeps its usual meaning.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        if stop.requested:
            raise KeyboardInterrupt
        stop.requested = True

    signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def run_episodes(
    env: BatchEnv,
    policy: Policy,
    episodes: Sequence[int | tuple[int, int]],
    *,
    numbers: Iterable[int] | None = None,
    observers: Sequence[Observer] = (),
    on_result: Callable[[EpisodeResult], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    execution: Execution | None = None,
    options: Mapping[str, Any] | None = None,
    paraphrases: Mapping[str, Sequence[str]] | None = None,
    inference_ms: float = 0.0,
    heed_finished: bool = False,
) -> Run:
    """Run each episode exactly once.

    Args:
        env: made with ``autoreset="disabled"``; any number of rows.
        policy: acts; a chunk of several actions is executed row by row.
        episodes: seeds, or (seed, episode index) pairs.
        numbers: which places of the list to run (to continue an interrupted run); None for all.
        observers: see every step, for example a recorder.
        on_result: called once per finished episode, in the order in which they finish.
        stop: asked once per control step; True drops the episodes in flight and returns what is finished.
        execution: how its chunks are executed; None for the policy's own choice.
        options: reach ``Task.start`` of every episode as ``ep.options``; recorded with it.
        paraphrases: by instruction, what the policy is told instead: the sentence whose place is the episode's seed,
            modulo their number.
        inference_ms: what the policy needs for an answer, while the world goes on; see
            :class:`manikin.policy.delay.LatePolicy`.
        heed_finished: a policy's word that it has finished (its attribute ``finished``) reaches the task, which ends
            the episode with that step or begins its next part. Recordings have no place for it: not for them.

    Raises:
        ConfigError: an environment that restarts rows on its own, or no episodes.
        ActionError: the policy's actions have the wrong shape, are not finite, or out of range.
    """
    if env.metadata.get("autoreset_mode") != gymnasium.vector.AutoresetMode.DISABLED:
        raise ConfigError(
            "the runner starts episodes itself, but this environment restarts rows on its own; make it with "
            'autoreset="disabled"'
        )
    keys = [_key(e) for e in episodes] if isinstance(episodes, Iterable) else []
    queue = list(range(len(keys)) if numbers is None else numbers)
    if not keys:
        raise ConfigError("episodes is empty; give at least one seed")
    if wrong := [number for number in queue if not 0 <= number < len(keys)]:
        raise ConfigError(f"numbers must be from 0 to {len(keys) - 1}, the episodes of this run; got {wrong}")
    began = time.perf_counter()
    if not queue:
        return Run(results=(), interrupted=False, seconds=0.0, env_steps=0)
    chunked: ChunkPolicy | LatePolicy
    if late := late_steps(inference_ms, env.control_hz):
        chunked = LatePolicy(policy, env, late, execution=execution)
    else:
        chunked = ChunkPolicy(policy, env.num_envs, env.single_action_space.shape[0], execution=execution)
    rows = _Rows(env, keys, queue, chunked, observers, dict(options or {}), paraphrases or {})
    results: list[EpisodeResult] = []
    observation, steps = rows.begin_all(), 0
    looks = chunked if isinstance(chunked, ChunkPolicy) and not observers else None  # and nobody else does
    try:
        while rows.running:
            if stop():
                break
            actions = chunked.act(observation, rows.told)[:, 0]
            if looks is not None:
                env.watch(looks.asks)
            active = rows.active
            ended = rows.ended(chunked.finished) if heed_finished else None
            observation, reward, terminated, truncated, info = env.step(
                actions, active=None if active.all() else torch.from_numpy(active)
            )
            steps += int(active.sum())
            for result in rows.account(actions, observation, reward, terminated, truncated, info, ended):
                results.append(result)
                if on_result is not None:
                    on_result(result)
            observation = rows.hand_out(observation)
    finally:
        env.watch(None)
    results.sort(key=lambda r: r.number)
    return Run(
        results=tuple(results),
        interrupted=rows.running or rows.waiting,
        seconds=time.perf_counter() - began,
        env_steps=steps,
        advice=advice_for(env, (r.health for r in results)),
    )


def _key(episode: Any) -> tuple[int, int]:
    """Seed and index of an episode."""
    pair = (episode, 0) if isinstance(episode, int | np.integer) else episode
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(v, int | np.integer) for v in pair):
        raise ConfigError(f"an episode is a seed, or a seed and an index, whole numbers; got {episode!r:.80}")
    return int(pair[0]), int(pair[1])


class _Rows:
    """Which episode runs in which row, and its running totals."""

    def __init__(
        self,
        env: BatchEnv,
        keys: list[tuple[int, int]],
        queue: list[int],
        policy: ChunkPolicy | LatePolicy,
        observers: Sequence[Observer],
        options: dict[str, Any],
        paraphrases: Mapping[str, Sequence[str]],
    ) -> None:
        n = env.num_envs
        self.options, self.paraphrases = options, paraphrases
        self.env, self.keys, self.queue, self.policy, self.observers = env, keys, queue, policy, observers
        self.number = np.full(n, -1)
        self.length = np.zeros(n, np.int64)
        self.total = np.zeros(n, np.float64)
        self.streak = np.zeros(n, np.int64)
        self.longest = np.zeros(n, np.int64)
        self.first = np.zeros(n, np.int64)  # 0: not yet
        self.best = np.zeros(n, np.float64)
        self.reached: dict[str, np.ndarray] = {}
        self.flags: dict[str, np.ndarray] = {}  # of the last step
        self.labels = getattr(getattr(env, "task", None), "labels", PLAIN)
        # a recorder follows what happens by itself; nobody else needs to
        following = [observer.tracker for observer in observers if isinstance(observer, Recorder)]
        self.tracker, self.follows = following[0] if following else Tracker(self.labels, n), not following
        self.force_sum = np.zeros((n, len(env.force_names)))
        self.force_peak = np.zeros_like(self.force_sum)

    @property
    def active(self) -> np.ndarray:
        """(N,) bool: rows with an episode."""
        return self.number >= 0

    @property
    def told(self) -> Sequence[str]:
        """N sentences: the instructions, or their paraphrases."""
        said = self.env.instruction
        return [self._told(row, one) for row, one in enumerate(said)] if self.paraphrases else said

    def _told(self, row: int, said: str) -> str:
        others = self.paraphrases.get(said)
        return others[self.keys[self.number[row]][0] % len(others)] if others else said

    @property
    def running(self) -> bool:
        return bool(self.active.any())

    @property
    def waiting(self) -> bool:
        return bool(self.queue)

    def begin_all(self) -> Any:
        n = self.env.num_envs
        first, self.queue = self.queue[:n], self.queue[n:]
        self.number[: len(first)] = first
        # rows without an episode start as a copy of the last one and are frozen at once
        keys = [self.keys[i] for i in first + first[-1:] * (n - len(first))]
        observation, _ = self.env.reset(
            seed=[seed for seed, _ in keys],
            options={**self.options, "episode_index": torch.tensor([i for _, i in keys], dtype=torch.int64)},
        )
        self._started(np.arange(len(first)), observation)
        return observation

    def hand_out(self, observation: Any) -> Any:
        """Give waiting episodes to free rows; returns the observation of all rows."""
        rows = np.flatnonzero(~self.active)[: len(self.queue)]
        if not len(rows):
            return observation
        given, self.queue = self.queue[: len(rows)], self.queue[len(rows) :]
        self.number[rows] = given
        seeds: list[int] = [0] * self.env.num_envs
        index = torch.zeros(self.env.num_envs, dtype=torch.int64)
        mask = torch.zeros(self.env.num_envs, dtype=torch.bool)
        for row, number in zip(rows.tolist(), given, strict=True):
            seeds[row], mask[row] = self.keys[number][0], True
            index[row] = self.keys[number][1]
        options = {**self.options, "reset_mask": mask, "episode_index": index}
        observation, _ = self.env.reset(seed=seeds, options=options)
        self._started(rows, observation)
        return observation

    def _started(self, rows: np.ndarray, observation: Any) -> None:
        for totals in (self.length, self.total, self.streak, self.longest, self.first):
            totals[rows] = 0
        self.force_sum[rows] = self.force_peak[rows] = 0.0
        self.best[rows] = -np.inf
        for flags in self.reached.values():
            flags[rows] = False
        if self.follows:
            self.tracker.reset(rows.tolist())
        self.policy.reset(torch.from_numpy(rows))
        for observer in self.observers:
            observer.start(rows, self.number[rows], observation, self.options)

    def ended(self, said: torch.Tensor | None) -> np.ndarray | None:
        """(N,) bool: rows whose episode ends with the next step because the policy says that it has finished."""
        if said is None or not bool(said.any()):
            return None
        return to_numpy(self.env.finished(said & torch.from_numpy(self.active)))

    def account(
        self,
        actions: torch.Tensor,
        observation: Any,
        reward: torch.Tensor,
        terminated: torch.Tensor,
        truncated: torch.Tensor,
        info: Mapping[str, Any],
        ended: np.ndarray | None,
    ) -> list[EpisodeResult]:
        """Add one control step to the totals of the active rows; finished ones become results and free their row."""
        rows = np.flatnonzero(self.active)
        outcome = outcome_of(reward, terminated, truncated, info)
        said = np.zeros(len(self.number), bool) if ended is None else ended
        outcome["terminated"] = outcome["terminated"] | said
        self.length[rows] += 1
        self.total[rows] += outcome["rewards"][rows].astype(np.float64)
        self.best[rows] = np.maximum(self.best[rows], outcome["rewards"][rows])
        prefix = "flags/"
        flags = {k.removeprefix(prefix): v for k, v in outcome.items() if k.startswith(prefix)}
        self.flags = {name: value for name, value in flags.items() if name not in _COUNTERS}
        for name, value in flags.items():
            if value.dtype == bool:
                self.reached.setdefault(name, np.zeros(len(self.number), bool))[rows] |= value[rows]
        if self.follows:
            self.tracker.step(rows, {**flags, "success": outcome["success"], "fail": outcome["fail"]})
        for observer in self.observers:
            observer.step(rows, actions, observation, outcome)
        # failure is final: where the protocol lets an episode go on after it, later success does not count
        success = outcome["success"][rows] & ~self.tracker.failed[rows]
        forces = to_numpy(self.env.forces)[rows]
        self.force_sum[rows] += forces
        self.force_peak[rows] = np.maximum(self.force_peak[rows], forces)
        self.streak[rows] = np.where(success, self.streak[rows] + 1, 0)
        self.longest[rows] = np.maximum(self.longest[rows], self.streak[rows])
        self.first[rows] = np.where(success & (self.first[rows] == 0), self.length[rows], self.first[rows])
        health = to_numpy(info["health"])
        done = rows[(outcome["terminated"] | outcome["truncated"])[rows]]
        results = [self._result(row, outcome, int(health[row]), bool(said[row])) for row in done.tolist()]
        for observer in self.observers if len(done) else ():
            observer.finish(done, health[done])
        self.number[done] = -1
        return results

    def _result(self, row: int, outcome: Mapping[str, np.ndarray], health: int, said: bool) -> EpisodeResult:
        number = int(self.number[row])
        seed, index = self.keys[number]
        story = self.tracker.story(row)
        return EpisodeResult(
            number=number,
            seed=seed,
            index=index,
            instruction=self._told(row, self.env.instruction[row]),
            length=int(self.length[row]),
            return_=float(self.total[row]),
            max_reward=float(self.best[row]),
            success_once=bool(self.first[row]),
            success_at_end=bool(outcome["success"][row]) and not self.tracker.failed[row],
            first_success=int(self.first[row]) or None,
            longest_success=int(self.longest[row]),
            terminated=bool(outcome["terminated"][row]),
            truncated=bool(outcome["truncated"][row]),
            fail=bool(self.tracker.failed[row]),
            health=health,
            reached={name: bool(flags[row]) for name, flags in self.reached.items()},
            at_end={name: flags[row].item() for name, flags in self.flags.items()},
            events=story.events,
            mode=self.labels.label(story),
            said_finished=said,
            force_sum=dict(zip(self.env.force_names, self.force_sum[row].tolist(), strict=True)),
            force_peak=dict(zip(self.env.force_names, self.force_peak[row].tolist(), strict=True)),
        )
