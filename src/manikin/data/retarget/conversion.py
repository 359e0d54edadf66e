"""Recorded episodes in another action space: the new controller follows, in simulation, what the old one did.

The episodes are played as recorded, beside a second environment with the new controller;
:mod:`manikin.data.retarget.track` says how it follows. An episode that loses its success on the way is tried again in
other ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manikin.data.recorder import Recorder
from manikin.data.recording.format import RESIDUALS, RecordedEpisode
from manikin.data.recording.outside import reading
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.environment import OF_TASK, make_env
from manikin.data.replay.health import advice_for, unhealthy_words
from manikin.data.replay.play import Follow, batches, play
from manikin.data.replay.verify import source_of
from manikin.data.retarget.track import Trace, Track, ways_to_follow
from manikin.errors import ConfigError
from manikin.spec.control import Control, Whole, parse_control

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["ConversionReport", "EpisodeConversion", "retarget"]


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeConversion:
    """How one episode came out.

    Attributes:
        number, seed: of the episode.
        steps: control steps, recorded and now.
        success: whether it succeeded at any time, recorded and now.
        health: bits of :class:`manikin.sim.health.Health`, of the recorded actions played again and now; 0 is healthy.
        residual: name of :data:`RESIDUALS` -> (T,) after each new step.
    """

    number: int
    seed: int
    steps: tuple[int, int]
    success: tuple[bool, bool]
    health: tuple[int, int]
    residual: Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConversionReport:
    """How a recording came out with another controller.

    Attributes:
        path: the new recording.
        control: words of the old and of the new controller.
        commands: whether commands were handed over; else the motion was followed.
        episodes: one entry each.
        advice: which budgets to raise to what, where contacts or constraints found no room: playing the recorded
            actions again, and now.
    """

    path: Path
    control: tuple[str, str]
    commands: bool
    episodes: tuple[EpisodeConversion, ...]
    advice: tuple[str, str] = ("", "")

    @property
    def success(self) -> tuple[int, int]:
        """How many episodes succeeded when recorded, and how many of these do now."""
        then = [e for e in self.episodes if e.success[0]]
        return len(then), sum(e.success[1] for e in then)

    @property
    def unhealthy(self) -> tuple[EpisodeConversion, ...]:
        """In which the physics broke down or found no room, before or after the conversion."""
        return tuple(e for e in self.episodes if any(e.health))

    @property
    def steps(self) -> float:
        """New control steps per recorded one."""
        then, now = (sum(e.steps[k] for e in self.episodes) for k in (0, 1))
        return now / max(then, 1)

    def quantiles(self, name: str) -> np.ndarray:
        """(3,) median, 95 % quantile and largest of a residual, over all steps of all episodes."""
        values = [e.residual[name] for e in self.episodes]
        return np.quantile(np.concatenate(values), (0.5, 0.95, 1.0)) if values else np.full(3, np.nan)

    def summary(self) -> str:
        """A few lines for people."""
        then, now = self.success
        how = "commands handed over" if self.commands else "motion followed"
        lines = [
            f"{self.control[0]} -> {self.control[1]}: {how}; {now} of {then} successful episodes still succeed, "
            f"{self.steps:.2f} steps for one",
            "residual after a step: median, 95 %, largest",
        ]
        for name, unit in RESIDUALS.items():
            lines.append(f"  {name:6} ({unit}):  " + "  ".join(f"{value:.2g}" for value in self.quantiles(name)))
        for word, place, advice in zip(("played again", "converted"), (0, 1), self.advice, strict=True):
            bad = [(e.seed, e.health[place]) for e in self.episodes if e.health[place]]
            lines += [f"{word}, {unhealthy_words(bad, advice)}"] if bad else []
        return "\n".join(lines)


def retarget(
    path: str | Path,
    out: str | Path,
    *,
    control: str | Control | Whole,
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    stretch: float = 4.0,
    observations: bool | None = None,
    resume: bool = False,
    on_episode: Callable[[EpisodeConversion], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> ConversionReport:
    """Write a recording of the same episodes with another controller; numbers and seeds stay.

    Args:
        path: the recording.
        out: the new recording. Its steps hold the residuals as ``flags/residual_...`` and as ``flags/source_step``
            which recorded step each stands for.
        control: the new controller.
        numbers: which episodes; None for all.
        num_envs: rows side by side. Never changes the result.
        stretch: the new episodes may take so many times the horizon.
        observations: keep observations; None: where ``observe`` is given.
        resume: go on with an interrupted conversion.
        on_episode: called after each episode.
        stop: asked once per control step; True leaves what is finished, to be resumed.
        **overrides: options of ``manikin.make`` for the new recording (observe, reward, physics_hz, ...). Without
            ``physics_hz`` the rate is the recorded one, or the next multiple of it that the new controller needs.

    Raises:
        DataError: nothing to convert, ``out`` exists, or the episodes cannot be played.
        UnknownNameError: no such controller, or not on this robot.
        ConfigError: ``stretch`` below 1.
    """
    if not 1 <= stretch < math.inf:
        raise ConfigError(f"stretch must be at least 1, got {stretch}")
    with EpisodeFile(path) as file:
        header = file.needed_header()
        fingerprint = header.fingerprint
        wanted = list(file.numbers if numbers is None else numbers)
        rows = max(1, min(num_envs, len(wanted)))
        with reading(f"{path} does not say how long its episodes may last"):
            horizon = math.ceil(stretch * fingerprint["horizon"])
        options = {"control": parse_control(control), "horizon": horizon, **overrides}
        env = make_env(fingerprint, rows, **options)
        if options.get("physics_hz") is None and (needed := _needed_hz(env)) > env.physics_hz:
            env.close()
            faster = env.physics_hz * math.ceil(needed / env.physics_hz)  # a multiple: both have the same instants
            env = make_env(fingerprint, rows, **(options | {"physics_hz": faster}))
        try:
            whose = {name: overrides[name] for name in OF_TASK if name in overrides}
            source = make_env(fingerprint, rows, **whose, observe="policy", reward="none")
        except BaseException:
            env.close()
            raise
        try:
            both = (source.controller, env.controller)
            about = source_of(path, header, how="control", control=source.controller.name)
            keep = "observe" in overrides if observations is None else observations
            policy = header.policy
            recorder = Recorder(env, out, policy=policy, observations=keep, resume=resume, source=about)
            done: list[EpisodeConversion] = []
            with recorder:
                left = [number for number in wanted if number not in recorder.finished]
                commands = not any(one.torques for one in both)
                ways = ways_to_follow(commands, both[0].name == both[1].name)
                for batch in batches(file, left, rows):
                    trace = Trace(source)
                    if not play(source, batch, Follow(), [trace], stop).all():
                        break
                    for k, way in enumerate(ways):
                        tally = _Tally(batch, trace, recorder, on_episode, last=k == len(ways) - 1)
                        mover = Track(source, trace, way)
                        play(env, batch, mover, [tally], stop)
                        done += tally.done
                        if stop() or not tally.again:
                            break
                        batch, trace = [batch[i] for i in tally.again], trace.only(tally.again)
                    if stop():
                        break
            advice = (
                advice_for(source, (e.health[0] for e in done)),
                advice_for(env, (e.health[1] for e in done)),
            )
        finally:
            env.close()
            source.close()
    words = (source.controller.name, env.controller.name)
    return ConversionReport(path=Path(out), control=words, commands=commands, episodes=tuple(done), advice=advice)


def _needed_hz(env: BatchEnv) -> float:
    """The physics rate [Hz] that an environment's task, grippers and controllers would have by themselves."""
    from manikin.env.arguments import own_hz

    grippers = [robot.gripper for robot in env.robots if robot.gripper is not None]
    return own_hz(env.task.physics, grippers, torques=any(robot.model.torque_joints for robot in env.robots))


class _Tally:
    """An observer: what the report says of each episode; hands to the recorder what need not be tried again.

    Attributes:
        done: of the episodes that are recorded.
        again: places in the batch of those that have lost their success.
    """

    def __init__(
        self,
        batch: Sequence[RecordedEpisode],
        trace: Trace,
        recorder: Recorder,
        on_episode: Callable[[EpisodeConversion], None] | None,
        *,
        last: bool,
    ) -> None:
        self._batch, self._trace, self._recorder = batch, trace, recorder
        self._on_episode, self._last = on_episode, last
        self._success = [False] * len(batch)
        self._residual: list[dict[str, list[float]]] = [{name: [] for name in RESIDUALS} for _ in batch]
        self.done: list[EpisodeConversion] = []
        self.again: list[int] = []

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        self._recorder.start(rows, numbers, observation, options)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, np.ndarray]) -> None:
        self._recorder.step(rows, actions, observation, outcome)
        for row in rows.tolist():
            self._success[row] |= bool(outcome["success"][row]) and not self._recorder.tracker.failed[row]
            for name, values in self._residual[row].items():
                values.append(float(outcome[f"flags/residual_{name}"][row]))

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        lost = np.array([self._batch[row].success_once and not self._success[row] for row in rows.tolist()])
        if not self._last:
            self.again += rows[lost].tolist()
            rows, health = rows[~lost], health[~lost]
        if len(rows):
            self._recorder.finish(rows, health)
        for row, bits in zip(rows.tolist(), health.tolist(), strict=True):
            episode, residual = self._batch[row], self._residual[row]
            one = EpisodeConversion(
                number=episode.number,
                seed=episode.seed,
                steps=(len(episode), len(residual["tool"])),
                success=(episode.success_once, self._success[row]),
                health=(max(self._trace.health[row], default=0), int(bits)),
                residual={name: np.array(values) for name, values in residual.items()},
            )
            self.done.append(one)
            if self._on_episode is not None:
                self._on_episode(one)
