"""From a recording to the formats that trainers load."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manikin.data.formats.lerobot import LeRobotExport
from manikin.data.formats.maniskill import ManiSkillExport
from manikin.data.formats.minari import MinariExport
from manikin.data.formats.mshab import MSHABExport
from manikin.data.formats.robomimic import RobomimicExport
from manikin.data.recording.format import Header, RecordedEpisode
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.environment import OF_TASK, make_env, played_fingerprint
from manikin.data.replay.play import Completed, Show, batches, play
from manikin.data.replay.rerecord import check_way
from manikin.data.replay.verify import replay, source_of
from manikin.env.interface import BatchEnv
from manikin.env.observe import STATE_WORDS, parse
from manikin.errors import ConfigError, DataError

__all__ = ["Export", "to_lerobot", "to_maniskill", "to_minari", "to_mshab", "to_robomimic"]

log = logging.getLogger("manikin.data")


class Export(Protocol):
    """A format that episodes can be written to."""

    def finished(self) -> set[int]:
        """Numbers of the episodes that an interrupted export left, whole."""

    def write(self, episode: RecordedEpisode, place: int) -> None:
        """Add an episode, which has this place among all that are to be written. They come in any order."""

    def close(self) -> None:
        """Finish what was written. Raises :class:`DataError` when there is nothing."""

    def abandon(self) -> None:
        """Stop without finishing."""


def to_lerobot(
    recording: str | Path,
    root: str | Path,
    *,
    observe: str | None = None,
    way: str = "actions",
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    resume: bool = False,
    join: bool = True,
    on_episode: Callable[[], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Path:
    """Write a recording as a LeRobotDataset v3.0.

    Args:
        recording: a recording of manikin's.
        root: folder of the dataset.
        observe: play the episodes again and observe this (``state_dict``, ``rgb``, ...); None takes what was recorded.
        way: how they are played: ``actions`` simulates the recorded actions, which has to come out as recorded;
            ``states`` sets the recorded states one by one (see :func:`~manikin.data.replay.rerecord.rerecord`).
        numbers: which episodes; None for all.
        num_envs: rows side by side when playing again; never changes the result.
        resume: go on with an interrupted conversion.
        join: False leaves the episodes each for itself, as an interrupted conversion does: to be joined later, also
            with those of other folders.
        on_episode: called after each episode.
        stop: asked between steps; True leaves what is finished, to be resumed.
        **overrides: options of ``manikin.make`` for playing again (vision, looks), and ``task`` or ``trust``, where a
            task of one's own is (see :func:`~manikin.data.replay.environment.make_env`).

    Actions are written as the controller took them, within [-1, 1]. Depth and whatever else is neither a number nor an
    rgb picture is left out, with a warning in the log.

    Returns:
        ``root``.

    Raises:
        ConfigError: ``observe`` asks for what a LeRobot dataset cannot hold, or there are options for playing again
            and nothing to observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, no observations, playing again parts from the recording, or what is to be
            resumed was made of another recording or in another way.
    """
    foreign = [word for word in parse(observe) if word not in (*STATE_WORDS, "rgb")] if observe is not None else []
    if foreign:
        raise ConfigError(
            f"a LeRobot dataset holds numbers and rgb pictures, no {' or '.join(foreign)}: observe one of "
            f"{', '.join((*STATE_WORDS, 'rgb', 'rgb+state'))}, or convert to robomimic or maniskill"
        )
    run = _Run(observe, way, numbers, num_envs, on_episode, stop, overrides)
    with EpisodeFile(recording) as episodes:
        header = episodes.needed_header()
        chosen = {name: repr(value) for name, value in sorted(overrides.items()) if name not in OF_TASK}
        how = {"observe": observe, "options": chosen}
        source = source_of(episodes.path, header, how=way if observe else "recorded", **how)
        export = LeRobotExport(root, header, source=source, columns=run.columns(header), resume=resume)
        run.convert(episodes, export, join=join)
    return Path(root)


def to_robomimic(
    recording: str | Path,
    path: str | Path,
    *,
    observe: str | None = None,
    way: str = "actions",
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    valid: float = 0.0,
    on_episode: Callable[[], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Path:
    """Write a recording as robomimic's HDF5. The file appears when it is whole; an interrupted one leaves nothing.

    Args:
        recording: a recording of manikin's.
        path: the file.
        observe: as :func:`to_lerobot`; None takes the observations that were recorded, if any.
        valid: share of the episodes in ``mask/valid``, the others in ``mask/train``; 0 writes no masks.
        stop: asked between steps; True leaves no file.
        way: as :func:`to_lerobot`.
        numbers: as :func:`to_lerobot`.
        num_envs: as :func:`to_lerobot`.
        on_episode: as :func:`to_lerobot`.
        **overrides: as :func:`to_lerobot`.

    Actions are written as the controller took them, within [-1, 1].

    Returns:
        ``path``.

    Raises:
        ConfigError: options for playing again and nothing to observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, the file exists, or playing again parts from the recording.
    """
    run = _Run(observe, way, numbers, num_envs, on_episode, stop, overrides)

    def export(header: Header, env: BatchEnv) -> RobomimicExport:
        return RobomimicExport(path, header, env, columns=run.columns(header), valid=valid)

    run.to_files(export, recording)
    return Path(path)


def to_maniskill(
    recording: str | Path,
    path: str | Path,
    *,
    observe: str | None = None,
    way: str = "actions",
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    on_episode: Callable[[], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Path:
    """Write a recording as ManiSkill's trajectories: ``NAME.h5`` and ``NAME.json``, which appear when they are whole.

    Args:
        recording: a recording of manikin's, with states.
        path: the HDF5 file, ``NAME.h5``.
        observe: as :func:`to_lerobot`; None takes the observations that were recorded, if any.
        stop: asked between steps; True leaves no file.
        way: as :func:`to_lerobot`.
        numbers: as :func:`to_lerobot`.
        num_envs: as :func:`to_lerobot`.
        on_episode: as :func:`to_lerobot`.
        **overrides: as :func:`to_lerobot`.

    Actions are written as the controller took them, within [-1, 1] before they become ManiSkill's numbers.

    Returns:
        ``path``.

    Raises:
        ConfigError: the file is not called ``NAME.h5``, or there are options for playing again and nothing to observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, a file exists, no states, or playing again parts from the recording.
    """
    run = _Run(observe, way, numbers, num_envs, on_episode, stop, overrides)
    run.to_files(partial(ManiSkillExport, path), recording)
    return Path(path)


def to_mshab(
    recording: str | Path,
    path: str | Path,
    *,
    observe: str | None = None,
    way: str = "actions",
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    on_episode: Callable[[], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Path:
    """Write a recording of a home task as MS-HAB's demonstrations: ``NAME.h5`` and ``NAME.json``.

    Args:
        recording: a recording of manikin's.
        path: the HDF5 file, ``NAME.h5``.
        observe: as :func:`to_lerobot`; None takes the observations that were recorded.
        stop: asked between steps; True leaves no file.
        way: as :func:`to_lerobot`.
        numbers: as :func:`to_lerobot`.
        num_envs: as :func:`to_lerobot`.
        on_episode: as :func:`to_lerobot`.
        **overrides: as :func:`to_lerobot`.

    Returns:
        ``path``.

    Raises:
        ConfigError: the file is not called ``NAME.h5``, the task is no subtask of MS-HAB, or there are options for
            playing again and nothing to observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, a file exists, MS-HAB's numbers were not observed, or playing again parts from
            the recording.
    """
    run = _Run(observe, way, numbers, num_envs, on_episode, stop, overrides)
    run.to_files(partial(MSHABExport, path), recording)
    return Path(path)


def to_minari(
    recording: str | Path,
    root: str | Path,
    *,
    observe: str | None = None,
    way: str = "actions",
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    on_episode: Callable[[], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Path:
    """Write a recording as a Minari dataset. The folder appears when it is whole; an interrupted one leaves nothing.

    Args:
        recording: a recording of manikin's.
        root: the dataset's folder, ``NAME-vN``.
        observe: as :func:`to_lerobot`; None takes what was recorded.
        stop: asked between steps; True leaves no folder.
        way: as :func:`to_lerobot`.
        numbers: as :func:`to_lerobot`.
        num_envs: as :func:`to_lerobot`.
        on_episode: as :func:`to_lerobot`.
        **overrides: as :func:`to_lerobot`.

    Returns:
        ``root``.

    Raises:
        ConfigError: the folder is not called ``NAME-vN``, or there are options for playing again and nothing to
            observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, the folder exists, no observations, or playing again parts from the recording.
    """
    run = _Run(observe, way, numbers, num_envs, on_episode, stop, overrides)
    with EpisodeFile(recording) as episodes:
        header = episodes.needed_header()
        run.convert(episodes, MinariExport(root, header, columns=run.columns(header)))
    return Path(root)


@dataclass(frozen=True)
class _Run:
    """A conversion: the arguments that all of them have, see :func:`to_lerobot`.

    Raises:
        ConfigError: there are options for playing again, and nothing to observe.
        UnknownNameError: no such way.
    """

    observe: str | None
    way: str
    numbers: Iterable[int] | None
    num_envs: int
    on_episode: Callable[[], None] | None
    stop: Callable[[], bool]
    overrides: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_way(self.way)
        said = [f"way={self.way!r}"] if self.way != "actions" else []
        said += [name for name in self.overrides if name not in OF_TASK]
        if self.observe is None and said:
            raise ConfigError(
                f"{', '.join(said)} is only valid with observe=, which plays the episodes again; for example "
                "observe='state_dict'"
            )

    def made_env(self, header: Header, rows: int) -> BatchEnv:
        """An environment that shows what is to be observed."""
        seen = {"observe": self.observe} if self.observe else {}
        return make_env(header.fingerprint, rows, **{**self.overrides, **seen})

    def columns(self, header: Header) -> Callable[[], Sequence[str]]:
        """Gives the names of the numbers of a flat observation, which only an environment knows: made when first
        asked."""

        @cache
        def columns() -> Sequence[str]:
            env = self.made_env(header, 1)
            try:
                return tuple(env.observation_names)
            finally:
                env.close()

        return columns

    def to_files(self, made: Callable[[Header, BatchEnv], Export], recording: str | Path) -> None:
        """By an export that needs an environment."""
        with EpisodeFile(recording) as episodes:
            header = episodes.needed_header()
            env = self.made_env(header, 1)
            try:
                if self.observe:  # the file tells of the environment that shows what it holds
                    header = replace(header, fingerprint=played_fingerprint(env, header.fingerprint, self.way))
                self.convert(episodes, made(header, env))
            finally:
                env.close()

    def convert(self, episodes: EpisodeFile, export: Export, *, join: bool = True) -> None:
        """Hand the episodes to the export, as recorded or with what is observed when they are played again."""
        asked = list(dict.fromkeys(episodes.numbers if self.numbers is None else self.numbers))
        places = {number: place for place, number in enumerate(asked)}
        done = export.finished()
        if others := sorted(done - set(asked)):
            raise DataError(
                "the unfinished conversion contains episodes that are not selected now: "
                f"{', '.join(map(str, others))}. Select them too, or write to another folder"
            )
        wanted: Sequence[int] = [n for n in asked if n not in done]
        clipped, every = 0, 0

        def write(episode: RecordedEpisode) -> None:
            nonlocal clipped, every
            beyond = int(np.count_nonzero(np.abs(episode.actions) > 1.0))
            clipped, every = clipped + beyond, every + episode.actions.size
            taken = replace(episode, actions=np.clip(episode.actions, -1.0, 1.0)) if beyond else episode
            export.write(taken, places[episode.number])
            if self.on_episode is not None:
                self.on_episode()

        try:
            if self.observe is None:
                for number in wanted:
                    if self.stop():
                        break
                    write(episodes[number])
            elif wanted:
                self._play_again(episodes, wanted, write)
        except BaseException:
            export.abandon()
            raise
        if clipped:
            log.warning(
                "%d of %d numbers of actions were beyond [-1, 1]; written is what the controller took", clipped, every
            )
        if self.stop() or not join:
            export.abandon()
        else:
            export.close()

    def _play_again(
        self, episodes: EpisodeFile, wanted: Sequence[int], write: Callable[[RecordedEpisode], None]
    ) -> None:
        env = self.made_env(episodes.needed_header(), min(self.num_envs, len(wanted)))
        try:
            if self.way == "states":
                for batch in batches(episodes, wanted, env.num_envs):
                    play(env, batch, Show(), [Completed(episodes, write)], self.stop)
                    if self.stop():
                        break
            else:
                watch = Completed(episodes, write, env=env)
                replay(episodes.path, env, check=False, numbers=wanted, observers=[watch], stop=self.stop)
        finally:
            env.close()
