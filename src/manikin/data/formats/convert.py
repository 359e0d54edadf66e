"""From a recording to the formats that trainers load."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manikin.data.formats.lerobot import OWN, LeRobotWriter
from manikin.data.formats.maniskill import ManiSkillExport
from manikin.data.formats.minari import MinariExport
from manikin.data.formats.mshab import MSHABExport
from manikin.data.formats.robomimic import RobomimicExport
from manikin.data.recording.format import Header, RecordedEpisode, parted
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.environment import OF_TASK, make_env, played_fingerprint
from manikin.data.replay.play import Completed, Show, batches, play
from manikin.data.replay.rerecord import check_way
from manikin.data.replay.verify import replay, source_of
from manikin.env.interface import BatchEnv
from manikin.env.observe import STATE_WORDS, column_names, parse
from manikin.errors import ConfigError, DataError

__all__ = ["Export", "LeRobotExport", "to_lerobot", "to_maniskill", "to_minari", "to_mshab", "to_robomimic"]

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


class LeRobotExport:
    """Turns episodes with what was observed into frames of a LeRobot dataset.

    ``observation.state`` are the policy's numbers, in the order and by the names of ``observe="policy"``,
    ``observation.environment_state`` the privileged ones, ``observation.images.NAME`` a camera's pictures; ``next.*``
    is what a step led to. In the table of episodes ``manikin/...`` says which episode of the recording it is and how it
    went.

    Args:
        root, resume: as :class:`~manikin.data.formats.lerobot.LeRobotWriter`.
        header: of the recording.
        source: what the dataset is made of, plain values; one made of something else is not resumed.
        columns: gives the name of each number of a flat observation, ``policy/qpos[0]``; asked where there is one.
    """

    def __init__(
        self,
        root: str | Path,
        header: Header,
        *,
        source: Mapping[str, Any],
        columns: Callable[[], Sequence[str]],
        resume: bool = False,
    ) -> None:
        self._root, self._header, self._resume = Path(root), header, resume
        self._source, self._columns = dict(source), columns
        self._writer: LeRobotWriter | None = None
        self._warned = False

    def finished(self) -> set[int]:
        """Numbers of the episodes that are safe, their videos included.

        Raises:
            DataError: there is nothing to resume, or it was made of another recording or observed in another way.
        """
        if not self._resume or not self._root.exists():
            return set()
        return set(LeRobotWriter.reopen(self._root, source=self._source).finished)

    def write(self, episode: RecordedEpisode, place: int) -> None:
        """Make one episode durable. Those of a dataset are in the order of their numbers, whatever the place.

        Raises:
            DataError: it holds no observations.
        """
        if not episode.observations:
            raise DataError(
                f"episode {episode.number} holds no observations; convert with what to observe (--observe state, "
                "--observe rgb), which plays the actions again"
            )
        frames, names = self._frames(episode)
        if self._writer is None:
            features = {
                key: ("video" if value.dtype == np.uint8 else str(value.dtype), value.shape[1:], names.get(key))
                for key, value in frames.items()
            }
            fps, robot = float(self._header.fingerprint["control_hz"]), str(self._header.fingerprint["robot"])
            self._writer = LeRobotWriter(
                self._root, fps=fps, robot=robot, features=features, source=self._source, resume=self._resume
            )
        about = {f"{OWN}{name}": value for name, value in episode.summary.items() if name != "instruction"}
        self._writer.write(episode.number, episode.instruction, frames, about)

    def _frames(self, episode: RecordedEpisode) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
        length = len(episode)
        seen = {k: v[:length] for k, v in (episode.observations or {}).items()}
        seen = parted(seen, self._columns, self._header.task)
        frames: dict[str, np.ndarray] = {}
        names: dict[str, list[str]] = {"action": list(self._header.fingerprint.get("action_names", ())) or None}  # type: ignore[dict-item]
        written = set[str]()
        for key, prefix in (("state", "policy/"), ("environment_state", "privileged/")):
            parts = {k: v.reshape(length, -1) for k, v in seen.items() if k.startswith(prefix)}
            written |= parts.keys()
            if parts:
                frames[f"observation.{key}"] = np.concatenate(list(parts.values()), 1, dtype=np.float32)
                names[f"observation.{key}"] = [n for k, v in parts.items() for n in column_names(k, v.shape[1])]
        for name, value in seen.items():
            if name.startswith("cameras/") and name.endswith("/rgb"):
                frames[f"observation.images.{name.split('/')[1]}"] = value
                written.add(name)
        left = [name for name in seen if name not in written and not name.endswith(("/K", "/T"))]
        if left and not self._warned:
            log.warning("LeRobot datasets hold numbers and rgb pictures; left out: %s", ", ".join(left))
            self._warned = True
        frames["action"] = episode.actions
        frames["next.reward"] = episode.rewards[:, None]
        frames["next.success"] = episode.succeeded[:, None]
        frames["next.done"] = (episode.terminated | episode.truncated)[:, None]
        return frames, names

    def close(self) -> None:
        """Join what was written. Raises :class:`DataError` when there is nothing."""
        if self._writer is None and self._resume and self._root.exists():
            self._writer = LeRobotWriter.reopen(self._root, source=self._source)  # all that was left is joining
        if self._writer is None:
            raise DataError("no episode was converted, so there is no dataset")
        self._writer.close()

    def abandon(self) -> None:
        """Leave what is finished, to be resumed."""


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
    _check(observe, way, overrides)
    with EpisodeFile(recording) as episodes:
        header = episodes.needed_header()
        chosen = {name: repr(value) for name, value in sorted(overrides.items()) if name not in OF_TASK}
        how = {"observe": observe, "options": chosen}
        source = source_of(episodes.path, header, how=way if observe else "recorded", **how)
        columns = _columns(header, observe, overrides)
        export = LeRobotExport(root, header, source=source, columns=columns, resume=resume)
        _convert(episodes, export, observe, way, numbers, num_envs, on_episode, stop, overrides, join=join)
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
        way: as :func:`to_lerobot`.
        numbers: which episodes; None for all.
        num_envs: rows side by side when playing again; never changes the result.
        valid: share of the episodes in ``mask/valid``, the others in ``mask/train``; 0 writes no masks.
        on_episode: called after each episode.
        stop: asked between steps; True leaves no file.
        **overrides: options of ``manikin.make`` for playing again (vision, looks), and ``task`` or ``trust``, where a
            task of one's own is (see :func:`~manikin.data.replay.environment.make_env`).

    Actions are written as the controller took them, within [-1, 1].

    Returns:
        ``path``.

    Raises:
        ConfigError: options for playing again and nothing to observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, the file exists, or playing again parts from the recording.
    """

    def export(header: Header, env: BatchEnv) -> RobomimicExport:
        return RobomimicExport(path, header, env, columns=_columns(header, observe, overrides), valid=valid)

    _to_files(export, recording, observe, way, numbers, num_envs, on_episode, stop, overrides)
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
        way: as :func:`to_lerobot`.
        numbers: which episodes; None for all.
        num_envs: rows side by side when playing again; never changes the result.
        on_episode: called after each episode.
        stop: asked between steps; True leaves no file.
        **overrides: options of ``manikin.make`` for playing again (vision, looks), and ``task`` or ``trust``, where a
            task of one's own is (see :func:`~manikin.data.replay.environment.make_env`).

    Actions are written as the controller took them, within [-1, 1] before they become ManiSkill's numbers.

    Returns:
        ``path``.

    Raises:
        ConfigError: the file is not called ``NAME.h5``, or there are options for playing again and nothing to observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, a file exists, no states, or playing again parts from the recording.
    """
    made = partial(ManiSkillExport, path)
    _to_files(made, recording, observe, way, numbers, num_envs, on_episode, stop, overrides)
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
        way: as :func:`to_lerobot`.
        numbers: which episodes; None for all.
        num_envs: rows side by side when playing again; never changes the result.
        on_episode: called after each episode.
        stop: asked between steps; True leaves no file.
        **overrides: options of ``manikin.make`` for playing again (vision, looks), and ``task`` or ``trust``, where a
            task of one's own is (see :func:`~manikin.data.replay.environment.make_env`).

    Returns:
        ``path``.

    Raises:
        ConfigError: the file is not called ``NAME.h5``, the task is no subtask of MS-HAB, or there are options for
            playing again and nothing to observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, a file exists, MS-HAB's numbers were not observed, or playing again parts from
            the recording.
    """
    made = partial(MSHABExport, path)
    _to_files(made, recording, observe, way, numbers, num_envs, on_episode, stop, overrides)
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
        way: as :func:`to_lerobot`.
        numbers: which episodes; None for all.
        num_envs: rows side by side when playing again; never changes the result.
        on_episode: called after each episode.
        stop: asked between steps; True leaves no folder.
        **overrides: options of ``manikin.make`` for playing again (vision, looks), and ``task`` or ``trust``, where a
            task of one's own is (see :func:`~manikin.data.replay.environment.make_env`).

    Returns:
        ``root``.

    Raises:
        ConfigError: the folder is not called ``NAME-vN``, or there are options for playing again and nothing to
            observe.
        UnknownNameError: no such observation or way.
        DataError: nothing to convert, the folder exists, no observations, or playing again parts from the recording.
    """
    _check(observe, way, overrides)
    with EpisodeFile(recording) as episodes:
        header = episodes.needed_header()
        export = MinariExport(root, header, columns=_columns(header, observe, overrides))
        _convert(episodes, export, observe, way, numbers, num_envs, on_episode, stop, overrides)
    return Path(root)


def _to_files(
    made: Callable[[Header, BatchEnv], Export],
    recording: str | Path,
    observe: str | None,
    way: str,
    numbers: Iterable[int] | None,
    num_envs: int,
    on_episode: Callable[[], None] | None,
    stop: Callable[[], bool],
    overrides: Mapping[str, Any],
) -> None:
    """By an export that needs an environment."""
    _check(observe, way, overrides)
    with EpisodeFile(recording) as episodes:
        header = episodes.needed_header()
        env = make_env(then := header.fingerprint, 1, **{**overrides, **({"observe": observe} if observe else {})})
        try:
            if observe:  # the file tells of the environment that shows what it holds
                header = replace(header, fingerprint=played_fingerprint(env, then, way))
            _convert(episodes, made(header, env), observe, way, numbers, num_envs, on_episode, stop, overrides)
        finally:
            env.close()


def _columns(header: Header, observe: str | None, overrides: Mapping[str, Any]) -> Callable[[], Sequence[str]]:
    """Gives the names of the numbers of a flat observation, which only an environment knows: made when first asked."""

    @cache
    def columns() -> Sequence[str]:
        env = make_env(header.fingerprint, 1, **{**overrides, **({"observe": observe} if observe else {})})
        try:
            return tuple(env.observation_names)
        finally:
            env.close()

    return columns


def _check(observe: str | None, way: str, overrides: Mapping[str, Any]) -> None:
    """Raise for ways of playing again that are not there, or that have nothing to observe."""
    check_way(way)
    said = [*([f"way={way!r}"] if way != "actions" else []), *(name for name in overrides if name not in OF_TASK)]
    if observe is None and said:
        raise ConfigError(
            f"{', '.join(said)} is only valid with observe=, which plays the episodes again; for example "
            "observe='state_dict'"
        )


def _convert(
    episodes: EpisodeFile,
    export: Export,
    observe: str | None,
    way: str,
    numbers: Iterable[int] | None,
    num_envs: int,
    on_episode: Callable[[], None] | None,
    stop: Callable[[], bool],
    overrides: Mapping[str, Any],
    *,
    join: bool = True,
) -> None:
    """Hand the episodes to the export, as recorded or with what is observed when they are played again."""
    asked = list(dict.fromkeys(episodes.numbers if numbers is None else numbers))
    places = {number: place for place, number in enumerate(asked)}
    done = export.finished()
    if others := sorted(done - set(asked)):
        raise DataError(
            f"the unfinished conversion contains episodes that are not selected now: {', '.join(map(str, others))}. "
            "Select them too, or write to another folder"
        )
    wanted: Sequence[int] = [n for n in asked if n not in done]
    clipped, every = 0, 0

    def write(episode: RecordedEpisode) -> None:
        nonlocal clipped, every
        beyond = int(np.count_nonzero(np.abs(episode.actions) > 1.0))
        clipped, every = clipped + beyond, every + episode.actions.size
        taken = replace(episode, actions=np.clip(episode.actions, -1.0, 1.0)) if beyond else episode
        export.write(taken, places[episode.number])
        if on_episode is not None:
            on_episode()

    try:
        if observe is None:
            for number in wanted:
                if stop():
                    break
                write(episodes[number])
        elif wanted:
            then, rows = episodes.needed_header().fingerprint, min(num_envs, len(wanted))
            env = make_env(then, rows, **{**overrides, "observe": observe})
            try:
                if way == "states":
                    for batch in batches(episodes, wanted, env.num_envs):
                        play(env, batch, Show(), [Completed(episodes, write)], stop)
                        if stop():
                            break
                else:
                    watch = Completed(episodes, write, env=env)
                    replay(episodes.path, env, check=False, numbers=wanted, observers=[watch], stop=stop)
            finally:
                env.close()
    except BaseException:
        export.abandon()
        raise
    if clipped:
        log.warning(
            "%d of %d numbers of actions were beyond [-1, 1]; written is what the controller took", clipped, every
        )
    if stop() or not join:
        export.abandon()
    else:
        export.close()
