"""Few demonstrations become many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manikin.data.multiply.carry import Carry
from manikin.data.multiply.pieces import read_pieces
from manikin.data.recorder import Recorder
from manikin.data.recording.format import PER_STEP, RecordedEpisode
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.environment import make_env
from manikin.data.replay.health import advice_for, unhealthy_words
from manikin.data.replay.play import play
from manikin.data.replay.verify import source_of
from manikin.env.interface import BatchEnv, SceneEnv
from manikin.errors import ConfigError

__all__ = ["MultiplyReport", "multiply"]


@dataclass(frozen=True, kw_only=True)
class MultiplyReport:
    """How new episodes came out.

    Attributes:
        path: the new recording.
        demonstrations: numbers of those whose pieces were carried over.
        tried, kept: episodes in all, with those of an interrupted run before; kept are those that succeeded.
        modes: how many of this run's episodes ended in each way.
        unhealthy: seeds and bits of health of those in which the physics broke down.
        interrupted: stopped before the end; ``resume`` goes on.
        advice: which budget to raise to what; else "".
    """

    path: Path
    demonstrations: tuple[int, ...]
    tried: int
    kept: int
    modes: Mapping[str, int]
    unhealthy: tuple[tuple[int, int], ...] = ()
    interrupted: bool = False
    advice: str = ""

    @property
    def share(self) -> float:
        """Of the episodes that were tried, how many succeeded: 0 to 1."""
        return self.kept / max(self.tried, 1)

    def summary(self) -> str:
        """A few lines for people."""
        count = len(self.demonstrations)
        lines = [
            f"{self.kept} of {self.tried} episodes succeeded ({self.share:.0%}), made of {count} "
            f"demonstration{'' if count == 1 else 's'}"
        ]
        lines += [f"  {number:6}  {mode}" for mode, number in sorted(self.modes.items()) if mode]
        lines += [unhealthy_words(self.unhealthy, self.advice)] if self.unhealthy else []
        return "\n".join(lines)


def multiply(
    path: str | Path,
    out: str | Path,
    *,
    episodes: int = 100,
    first_seed: int | None = None,
    demonstrations: int = 10,
    num_envs: int = 16,
    observations: bool = False,
    states: bool = True,
    resume: bool = False,
    on_episode: Callable[[], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> MultiplyReport:
    """Carry the segments of demonstrations over to new episodes, carry them out, and record those that succeed.

    The task says into which segments its demonstrations fall and what each is relative to (``Task.segments``). In every
    segment a piece of one of the demonstrations is moved to where its frame is now, and followed by the recorded
    controller. The new recording holds the actions that were sent; ``flags/segment`` and ``flags/source_episode`` say
    which piece each step came from.

    Args:
        path: the recording of demonstrations, with states.
        out: the new recording.
        episodes: how many new episodes to try.
        first_seed: episode k has the seed ``first_seed + k``; None takes the one after the demonstrations' last.
        demonstrations: take pieces of so many successful ones at most, those of the lowest numbers.
        num_envs: rows side by side. Never changes the result.
        observations: record what a policy is shown.
        states: record the physics state of every step.
        resume: go on with an interrupted recording.
        on_episode: called after each new episode.
        stop: asked once per control step; True leaves what is finished, to be resumed.
        **overrides: ``observe`` and ``reward`` as for ``manikin.make``; ``task`` and ``trust`` say where the task is.

    Raises:
        ConfigError: the task declares no segments, several robots or layouts, seeds of the demonstrations, or numbers
            that make no sense.
        DataError: nothing to take pieces from, or ``out`` exists.
        UnknownNameError: a segment names no part.
    """
    for name, value in (("episodes", episodes), ("demonstrations", demonstrations), ("num_envs", num_envs)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}")
    if unknown := sorted(set(overrides) - {"observe", "reward", "task", "trust"}):
        raise ConfigError(f"{', '.join(unknown)} cannot be changed: valid are observe, reward, task and trust")
    with EpisodeFile(path) as file:
        header = file.needed_header()
        used = {int(file.attributes(number)["seed"]) for number in file.numbers}
        first = max(used) + 1 if first_seed is None else first_seed
        if both := sorted(used & set(range(first, first + episodes))):
            raise ConfigError(f"seed {both[0]} is a demonstration's own; begin at {max(used) + 1} or later")
        env = make_env(header.fingerprint, min(num_envs, episodes), **overrides)
        try:
            scene = _one_robot(env)
            pieces = read_pieces(file, scene, most=demonstrations)
            numbers = tuple(piece.episode for piece in pieces[0])
            options = dict(file.episode(numbers[0], observations=False).options)
            about = source_of(path, header, how="multiply", demonstrations=list(numbers))
            recorder = Recorder(
                env,
                out,
                policy="multiply",
                observations=observations,
                states=states,
                keep="success",
                first_seed=first,
                resume=resume,
                source=about,
            )
            tally = _Tally(recorder, first, on_episode)
            with recorder:
                missing = [k for k in range(episodes) if k not in recorder.finished]
                for at in range(0, len(missing), env.num_envs):
                    some = [_blank(k, first + k, options) for k in missing[at : at + env.num_envs]]
                    play(env, some, Carry(scene, pieces), [tally], stop)
                    if stop():
                        break
            advice = advice_for(env, (bits for _, bits in tally.unhealthy))
        finally:
            env.close()
    return MultiplyReport(
        path=Path(out),
        demonstrations=numbers,
        tried=len(recorder.finished),
        kept=len(recorder.kept),
        modes=tally.modes,
        unhealthy=tuple(tally.unhealthy),
        interrupted=len(recorder.finished) < episodes,
        advice=advice,
    )


def _one_robot(env: BatchEnv) -> SceneEnv:
    if not isinstance(env, SceneEnv) or len(env.robots) != 1:
        raise ConfigError(f"{env.task.id} has several robots or layouts; multiply takes tasks with one of each")
    return env


def _blank(number: int, seed: int, options: Mapping[str, Any]) -> RecordedEpisode:
    """An episode that has yet to happen: where it starts, and that it has a step."""
    steps: dict[str, Any] = {
        name: np.zeros((1, 1) if name == "actions" else 1, dtype) for name, dtype in PER_STEP.items()
    }
    return RecordedEpisode(number=number, seed=seed, options=options, state_hash=np.zeros(2, np.int64), **steps)


class _Tally:
    """An observer: hands everything to the recorder, and counts how episodes end."""

    def __init__(self, recorder: Recorder, first: int, on_episode: Callable[[], None] | None) -> None:
        self._recorder, self._first, self._on_episode = recorder, first, on_episode
        self._numbers: dict[int, int] = {}
        self.modes: Counter[str] = Counter()
        self.unhealthy: list[tuple[int, int]] = []

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        self._numbers = dict(zip(rows.tolist(), numbers.tolist(), strict=True))
        self._recorder.start(rows, numbers, observation, options)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, Any]) -> None:
        self._recorder.step(rows, actions, observation, outcome)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        tracker = self._recorder.tracker
        self.modes.update(tracker.labels.label(tracker.story(row)) for row in rows.tolist())
        for row, bits in zip(rows.tolist(), health.tolist(), strict=True):
            if bits:
                self.unhealthy.append((self._first + self._numbers[row], int(bits)))
        self._recorder.finish(rows, health)
        if self._on_episode is not None:
            for _ in rows:
                self._on_episode()
