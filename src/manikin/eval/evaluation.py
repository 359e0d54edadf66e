"""Evaluate a policy under a protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from manikin.data.replay.health import unhealthy_words
from manikin.env.make import make
from manikin.env.options import EnvOptions
from manikin.env.registry import task_versions
from manikin.errors import DivergedError
from manikin.eval.film import Film, Reel
from manikin.eval.journal import Journal, JournaledTask
from manikin.eval.protocol import SUCCESS_RULES, Protocol, setting_of, task_of
from manikin.eval.runner import EpisodeResult, Run, run_episodes
from manikin.eval.sequential import Answer, Sequential, anytime_interval
from manikin.eval.stats import Interval, wilson
from manikin.policy.api import Policy
from manikin.policy.chunk import Execution
from manikin.render.renderer import Renderer
from manikin.spec.budget import Budget

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["Evaluation", "OpenedTask", "TaskResult", "evaluate", "film_episodes"]


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """One task of an evaluation.

    Attributes:
        task: the word by which the protocol names it.
        results: one per episode that was run, in the protocol's order.
        fingerprint: of the environment.
        held_steps: control steps that the rule ``held`` asks for.
        confidence: of the intervals.
        seconds, env_steps: what it took.
        advice: which budget to raise to what, where contacts or constraints of an episode found no room.
        made_of: by the name of each thing in the scene where its shapes come from: meshes, or stand-ins.
        sequential: it was to stop as soon as its question was answered. ``answer`` is None where it never was.
    """

    task: str
    results: tuple[EpisodeResult, ...]
    fingerprint: Mapping[str, Any]
    held_steps: int
    confidence: float
    seconds: float
    env_steps: int
    advice: str = ""
    made_of: Mapping[str, str] = field(default_factory=dict)
    sequential: bool = False
    answer: Answer | None = None

    @property
    def id(self) -> str:
        """Id with version, also of a task that is named by its file."""
        return str(self.fingerprint.get("task", self.task))

    @property
    def title(self) -> str:
        """What people call it: its id, and its setting where it has several."""
        setting = setting_of(self.task)
        return f"{self.id}, {setting}" if setting else self.id

    @property
    def device(self) -> str:
        """The device word that it was simulated on."""
        return str(self.fingerprint.get("device", "cpu"))

    def rate(self, rule: str) -> Interval:
        """Success rate under ``once``, ``at_end`` or ``held``, with Wilson's interval.

        Of a sequential evaluation the interval is the one that holds at every number of episodes, because it may have
        stopped at any.
        """
        wins = sum(r.success(rule, self.held_steps) for r in self.results)
        interval = anytime_interval if self.sequential else wilson
        return interval(wins, len(self.results), confidence=self.confidence)

    @property
    def rates(self) -> dict[str, Interval]:
        return {rule: self.rate(rule) for rule in SUCCESS_RULES}

    @property
    def unhealthy(self) -> tuple[EpisodeResult, ...]:
        return tuple(r for r in self.results if r.health)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A finished or interrupted evaluation; tasks without a single finished episode are left out.

    ``error`` says what ended it before its end; "" where nothing did. ``inference_ms`` is what an answer of the policy
    took in simulated time [ms], ``policy_seed`` the seed that the policy was given, ``policy_sha256`` what a policy
    server says of its file.
    """

    protocol: Protocol
    policy: str
    tasks: tuple[TaskResult, ...]
    interrupted: bool
    created: str
    error: str = ""
    reels: Mapping[str, Sequence[Reel]] = field(default_factory=dict)
    inference_ms: float = 0.0
    policy_seed: int | None = None
    policy_sha256: str | None = None

    @property
    def healthy(self) -> bool:
        return not any(t.unhealthy for t in self.tasks)

    def raise_if_unhealthy(self) -> None:
        """A number computed from broken physics is no number.

        Raises:
            DivergedError: names the task, the seeds, what went wrong and, where there was no room, what to raise.
        """
        for task in self.tasks:
            if task.unhealthy:
                said = unhealthy_words([(r.seed, r.health) for r in task.unhealthy], task.advice)
                raise DivergedError(f"{task.title}: {said}")


def evaluate(
    protocol: Protocol,
    policy: Callable[[Any], Policy],
    *,
    num_envs: int = 64,
    execution: Execution | None = None,
    device: str = "cpu",
    budget: Budget | None = None,
    deterministic: bool = False,
    film: int = 0,
    renderer: Renderer | None = None,
    on_task: Callable[[str], None] | None = None,
    on_result: Callable[[str, EpisodeResult], None] | None = None,
    on_error: Callable[[Evaluation], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    journal: Journal | None = None,
    until: Callable[[str], Sequential] | None = None,
    inference_ms: float = 0.0,
    whole_films: bool = False,
    without: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> Evaluation:
    """Run every episode of a protocol exactly once, or until its question is answered.

    Args:
        protocol: what to run.
        policy: makes the policy for an environment.
        num_envs: rows side by side; the result does not depend on it.
        execution: how the policy's chunks are executed; None for the policy's own choice.
        device: where to simulate, as for :func:`manikin.make`. It is no part of the protocol and stands in the report:
            physics on a Warp device is in float32, and the results are not those of the CPU to the bit.
        budget: on a Warp device, room for contacts and constraints in every task; None finds it for each.
        deterministic: on a Warp device, the same bits in every run, at a price.
        film: of each task, this many episodes, and one of every mode, are run once more with pictures taken.
        renderer: makes the pictures; needed when ``film`` is not 0.
        on_task: called with the id of a task that begins.
        on_result: called with the task's id and each finished episode.
        on_error: called with what is finished where an error ends the evaluation, which is then raised.
        stop: asked once per control step; True ends the evaluation with what is finished.
        journal: keeps each episode on disk as it finishes; those that it holds already are not run again.
        until: makes the sequential test of a task from the protocol's word for it. Once it knows its answer, the task
            ends, and only the episodes that the answer rests on count.
        inference_ms: what the policy needs for an answer, while the world goes on [ms]; see
            :class:`manikin.policy.delay.LatePolicy`. It stands in the report.
        whole_films: take a picture of every control step of the filmed episodes, and not six of each.
        without: of a task numbers of episodes that are not run, because they cannot be.

    Raises:
        DataError: the journal cannot be written, or holds episodes of other environments.
        ConfigError: the protocol names tasks that do not exist, or options that cannot work.
        UnknownNameError, AssetError, ConfigError: no such device here; see :func:`manikin.sim.torch_device`.
    """
    protocol.check_tasks(task_versions())
    for task in protocol.tasks:
        protocol.make_options(task)  # what cannot be shown is refused before anything runs
    _ = protocol.hash  # of the code of own tasks as it is now, and not when the report is written
    ran = _Ran(protocol, journal, until, inference_ms)
    try:
        for task in protocol.tasks:
            rows = min(num_envs, len(protocol.seeds_of(task)))
            if on_task is not None:
                on_task(task)
            options = protocol.make_options(
                task, num_envs=rows, device=device, budget=budget, deterministic=deterministic
            )
            opened = OpenedTask(protocol, task, options, policy, execution=execution, inference_ms=inference_ms)
            try:
                missing = [n for n in ran.begin(task, opened.env) if n not in without.get(task, ())]
                ran.policy, ran.policy_sha256 = opened.policy, opened.policy_sha256
                run = opened.run(missing, partial(ran.add, on_result), lambda: stop() or ran.answered)
                ran.end(run.seconds, run.env_steps, run.advice)
            finally:
                opened.env.close()
            if (run.interrupted and not ran.answered) or stop():
                ran.interrupted |= run.interrupted or task != protocol.tasks[-1]
                break
            if film and renderer is not None:
                chosen = film_episodes(
                    protocol,
                    ran.tasks[-1],
                    policy,
                    renderer,
                    options,
                    count=film,
                    pictures=options.horizon or opened.env.horizon if whole_films else 6,
                    execution=execution,
                    inference_ms=inference_ms,
                )
                ran.reels[task] = chosen
    except BaseException as error:
        if on_error is not None:
            on_error(ran.fail(error))
        raise
    return ran.evaluation()


class OpenedTask:
    """A task of a protocol with a policy for it, ready to run episodes.

    Args:
        protocol: which.
        task: the protocol's word for it.
        options: of the environment, from :meth:`~manikin.eval.protocol.Protocol.make_options`.
        policy: makes the policy for an environment.
        execution: as for :func:`evaluate`.
        inference_ms: as for :func:`evaluate`.

    Attributes:
        env: the environment. policy: the policy's name. policy_sha256: of its file, where it says so.
    """

    def __init__(
        self,
        protocol: Protocol,
        task: str,
        options: EnvOptions,
        policy: Callable[[Any], Policy],
        *,
        execution: Execution | None = None,
        inference_ms: float = 0.0,
    ) -> None:
        self._protocol, self._task = protocol, task
        self._execution, self._inference_ms = execution, inference_ms
        self.env = make(task_of(task), options=options)
        try:
            self._acting = policy(self.env)
        except BaseException:
            self.env.close()
            raise
        self.policy = str(getattr(self._acting, "name", type(self._acting).__name__))
        self.policy_sha256: str | None = getattr(self._acting, "sha256", None)

    def run(
        self,
        numbers: Sequence[int],
        on_result: Callable[[EpisodeResult], None],
        stop: Callable[[], bool] = lambda: False,
    ) -> Run:
        """Run the episodes of these numbers, as :func:`~manikin.eval.runner.run_episodes`."""
        return run_episodes(
            self.env,
            self._acting,
            self._protocol.seeds_of(self._task),
            numbers=numbers,
            paraphrases=self._protocol.paraphrases,
            execution=self._execution,
            on_result=on_result,
            stop=stop,
            inference_ms=self._inference_ms,
            heed_finished=True,
        )


class _Ran:
    """What an evaluation has so far, also in the middle of a task."""

    def __init__(
        self,
        protocol: Protocol,
        journal: Journal | None,
        until: Callable[[str], Sequential] | None,
        inference_ms: float,
    ) -> None:
        self.protocol, self.journal, self.until, self.inference_ms = protocol, journal, until, inference_ms
        self._test: Sequential | None = None
        self.policy, self.interrupted = "", False
        self.policy_sha256: str | None = None
        self.tasks: list[TaskResult] = []
        self.reels: dict[str, Sequence[Reel]] = {}
        self._about: dict[str, Any] | None = None  # the task that runs
        self._finished, self._new, self._began = JournaledTask(), list[EpisodeResult](), 0.0

    def begin(self, task: str, env: BatchEnv) -> list[int]:
        """Numbers of the episodes that are to be run."""
        printed = env.fingerprint()
        self._finished = JournaledTask() if self.journal is None else self.journal.begin(task, printed)
        self._new, self._began = [], time.perf_counter()
        self._about = {
            "task": task,
            "fingerprint": printed,
            "made_of": env.sources,
            "held_steps": self.protocol.held_steps(env.control_hz),
            "confidence": self.protocol.confidence,
        }
        self._test = None if self.until is None else self.until(task)
        for result in self._finished.results.values():
            self._ask(result)
        if self.answered:
            return []
        return [n for n in range(len(self.protocol.seeds_of(task))) if n not in self._finished.results]

    @property
    def answered(self) -> bool:
        """The task's question has an answer."""
        return self._test is not None and self._test.answer is not None

    def _ask(self, result: EpisodeResult) -> None:
        if self._test is not None and self._about is not None:
            self._test.add(result.number, result.success(self.protocol.success, self._about["held_steps"]))

    def add(self, on_result: Callable[[str, EpisodeResult], None] | None, result: EpisodeResult) -> None:
        assert self._about is not None
        self._new.append(result)
        self._ask(result)
        if self.journal is not None:
            self.journal.add(result, time.perf_counter() - self._began)
        if on_result is not None:
            on_result(self._about["task"], result)

    def end(self, seconds: float, env_steps: int, advice: str) -> None:
        """The task is through, or was stopped; what the journal had of it counts."""
        kept = self._finished.results.values()
        results = sorted([*kept, *self._new], key=lambda r: r.number)
        answer = self._test.answer if self._test is not None else None
        if answer is not None:
            results = results[: answer.episodes]  # the first ones of the protocol are finished, without a gap
        if results and self._about is not None:
            self.tasks.append(
                TaskResult(
                    **self._about,
                    results=tuple(results),
                    seconds=seconds + self._finished.seconds,
                    env_steps=env_steps + sum(r.length for r in kept),
                    advice=advice,
                    sequential=self._test is not None,
                    answer=answer,
                )
            )
        self._about = None

    def fail(self, error: BaseException) -> Evaluation:
        """What is finished when an error ends it."""
        self.end(time.perf_counter() - self._began, sum(r.length for r in self._new), "")
        self.interrupted = True
        return self.evaluation(str(error) or type(error).__name__)

    def evaluation(self, error: str = "") -> Evaluation:
        return Evaluation(
            protocol=self.protocol,
            policy=self.policy,
            tasks=tuple(self.tasks),
            interrupted=self.interrupted,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            error=error,
            reels=self.reels,
            inference_ms=self.inference_ms,
            policy_sha256=self.policy_sha256,
        )


def film_episodes(
    protocol: Protocol,
    result: TaskResult,
    policy: Callable[[Any], Policy],
    renderer: Renderer,
    options: EnvOptions,
    *,
    count: int,
    pictures: int = 6,
    width: int = 288,
    height: int = 288,
    execution: Execution | None = None,
    inference_ms: float = 0.0,
) -> list[Reel]:
    """Run a few episodes once more with the same ``options`` and take ``pictures`` of each: failures first. They
    come out the same, on a GPU that is not ``deterministic`` up to the order of its sums."""
    chosen = _worth_seeing(result.results, protocol.success, result.held_steps, count)
    env = make(task_of(result.task), min(count, len(chosen)), options=options)
    try:
        every = max(1, min(r.length for r in chosen) // max(1, pictures - 1))
        numbers = {r.number for r in chosen}
        film = Film(env, renderer, numbers=numbers, every=every, width=width, height=height)
        run_episodes(
            env,
            policy(env),
            protocol.seeds_of(result.task),
            numbers=sorted(numbers),
            observers=[film],
            execution=execution,
            paraphrases=protocol.paraphrases,
            inference_ms=inference_ms,
            heed_finished=True,
        )
    finally:
        env.close()
    return [film.reels[r.number] for r in chosen]


def _worth_seeing(results: Sequence[EpisodeResult], rule: str, held_steps: int, count: int) -> list[EpisodeResult]:
    """One of every mode, failures first, even if these are more than ``count``; then further failures, up to half (all
    of them say something), and successes: the slowest and the first ones.
    """
    failed = [r for r in results if r.health or not r.success(rule, held_steps)]
    good = [r for r in results if r not in failed]
    modes = list({r.mode: r for r in reversed([*failed, *good]) if r.mode}.values())[::-1]
    slowest = sorted(good, key=lambda r: -(r.first_success or 0))[:1]
    few = failed[: max(1, count // 2)] if good else failed[:count]
    rest = [*[r for r in good if r not in slowest][: max(0, count - len(few) - len(slowest))], *slowest]
    more = [r for r in [*few, *rest] if r not in modes]
    chosen = [*modes, *more[: max(0, count - len(modes))]]
    return sorted(chosen, key=lambda r: r not in failed)
