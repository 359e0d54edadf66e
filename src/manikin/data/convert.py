"""From a recording to the formats that trainers load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manikin.data.format import Episode, Header
from manikin.data.lerobot import LeRobotWriter
from manikin.data.maniskill import ManiSkillExport
from manikin.data.play import Completed
from manikin.data.read import EpisodeFile
from manikin.data.replay import make_env, replay
from manikin.data.robomimic import RobomimicExport, scene_xml
from manikin.errors import DataError

__all__ = ["Export", "LeRobotExport", "to_lerobot", "to_maniskill", "to_robomimic"]


class Export(Protocol):
    """A format that episodes can be written to."""

    def finished(self) -> set[int]:
        """Numbers of the episodes that an interrupted export left, whole."""

    def write(self, episode: Episode) -> None:
        """Add an episode."""

    def close(self) -> None:
        """Finish what was written. Raises :class:`DataError` when there is nothing."""

    def abandon(self) -> None:
        """Stop without finishing."""


class LeRobotExport:
    """Turns episodes with what was observed into frames of a LeRobot dataset.

    ``observation.state`` are the policy's numbers in the order of the recording, ``observation.environment_state``
    the privileged ones, ``observation.images.NAME`` a camera's pictures; ``next.*`` is what a step led to.

    Args:
        root, resume: as :class:`~manikin.data.lerobot.LeRobotWriter`.
        header: of the recording.
    """

    def __init__(self, root: str | Path, header: Header, *, resume: bool = False) -> None:
        self._root, self._header, self._resume = Path(root), header, resume
        self._writer: LeRobotWriter | None = None

    def finished(self) -> set[int]:
        """Numbers of the episodes that are safe, their videos included."""
        return set(LeRobotWriter.reopen(self._root).finished) if self._resume and self._root.exists() else set()

    def write(self, episode: Episode) -> None:
        """Make one episode durable.

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
            self._writer = LeRobotWriter(self._root, fps=fps, robot=robot, features=features, resume=self._resume)
        self._writer.write(episode.number, episode.instruction, frames)

    def _frames(self, episode: Episode) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
        seen, length = {k: v[: len(episode)] for k, v in (episode.observations or {}).items()}, len(episode)
        frames: dict[str, np.ndarray] = {}
        names: dict[str, list[str]] = {"action": list(self._header.fingerprint.get("action_names", ())) or None}  # type: ignore[dict-item]
        for key, prefixes in (("state", ("policy/", "value")), ("environment_state", ("privileged/",))):
            parts = {k: v.reshape(length, -1) for k, v in seen.items() if k.startswith(prefixes)}
            if parts:
                frames[f"observation.{key}"] = np.concatenate(list(parts.values()), 1, dtype=np.float32)
                names[f"observation.{key}"] = [
                    f"{k.split('/', 1)[-1]}.{i}" for k, v in parts.items() for i in range(v.shape[1])
                ]
        for name, value in seen.items():
            if name.startswith("cameras/") and name.endswith("/rgb"):
                frames[f"observation.images.{name.split('/')[1]}"] = value
        frames["action"] = episode.actions
        frames["next.reward"] = episode.rewards[:, None]
        frames["next.success"] = episode.success[:, None]
        frames["next.done"] = (episode.terminated | episode.truncated)[:, None]
        return frames, names

    def close(self) -> None:
        """Join what was written. Raises :class:`DataError` when there is nothing."""
        if self._writer is None and self._resume and self._root.exists():
            self._writer = LeRobotWriter.reopen(self._root)  # all that was left to do is joining
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
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    resume: bool = False,
    on_episode: Callable[[], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Path:
    """Write a recording as a LeRobotDataset v3.0.

    Args:
        recording: a recording of manikin's.
        root: folder of the dataset.
        observe: play the actions again and observe this (``state_dict``, ``rgb``, ...); None takes what was recorded.
        numbers: which episodes; None for all.
        num_envs: rows side by side when playing again; never changes the result.
        resume: go on with an interrupted conversion.
        on_episode: called after each episode.
        stop: asked between steps; True leaves what is finished, to be resumed.
        **overrides: options of ``manikin.make`` for playing again (cameras, looks).

    Returns:
        ``root``.

    Raises:
        DataError: nothing to convert, no observations, or playing again parts from the recording.
    """
    with EpisodeFile(recording) as episodes:
        export = LeRobotExport(root, _header(episodes), resume=resume)
        _convert(episodes, export, observe, numbers, num_envs, on_episode, stop, overrides)
    return Path(root)


def to_robomimic(
    recording: str | Path,
    path: str | Path,
    *,
    observe: str | None = None,
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
        numbers: which episodes; None for all.
        num_envs: rows side by side when playing again; never changes the result.
        valid: share of the episodes in ``mask/valid``, the others in ``mask/train``; 0 writes no masks.
        on_episode: called after each episode.
        stop: asked between steps; True leaves no file.
        **overrides: options of ``manikin.make`` for playing again (cameras, looks).

    Returns:
        ``path``.

    Raises:
        DataError: nothing to convert, the file exists, or playing again parts from the recording.
    """
    with EpisodeFile(recording) as episodes:
        header = _header(episodes)
        env = make_env(header.fingerprint, 1, **overrides)
        try:
            export = RobomimicExport(path, header, valid=valid, model_file=scene_xml(env))
        finally:
            env.close()
        _convert(episodes, export, observe, numbers, num_envs, on_episode, stop, overrides)
    return Path(path)


def to_maniskill(
    recording: str | Path,
    path: str | Path,
    *,
    observe: str | None = None,
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
        numbers: which episodes; None for all.
        num_envs: rows side by side when playing again; never changes the result.
        on_episode: called after each episode.
        stop: asked between steps; True leaves no file.
        **overrides: options of ``manikin.make`` for playing again (cameras, looks).

    Returns:
        ``path``.

    Raises:
        ConfigError: the file is not called ``NAME.h5``.
        DataError: nothing to convert, a file exists, no states, or playing again parts from the recording.
    """
    with EpisodeFile(recording) as episodes:
        header = _header(episodes)
        env = make_env(header.fingerprint, 1, **overrides)
        try:
            export = ManiSkillExport(path, header, env)
            _convert(episodes, export, observe, numbers, num_envs, on_episode, stop, overrides)
        finally:
            env.close()
    return Path(path)


def _header(episodes: EpisodeFile) -> Header:
    if episodes.header is None:
        raise DataError(f"{episodes.path} has no finished episode")
    return episodes.header


def _convert(
    episodes: EpisodeFile,
    export: Export,
    observe: str | None,
    numbers: Iterable[int] | None,
    num_envs: int,
    on_episode: Callable[[], None] | None,
    stop: Callable[[], bool],
    overrides: Mapping[str, Any],
) -> None:
    """Hand the episodes to the export, as recorded or with what is observed when they are played again."""
    done = export.finished()
    wanted: Sequence[int] = [n for n in (episodes.numbers if numbers is None else numbers) if n not in done]

    def write(episode: Episode) -> None:
        export.write(episode)
        if on_episode is not None:
            on_episode()

    try:
        if observe is None:
            for number in wanted:
                if stop():
                    break
                write(episodes[number])
        elif wanted:
            fingerprint = _header(episodes).fingerprint
            env = make_env(fingerprint, min(num_envs, len(wanted)), **{**overrides, "observe": observe})
            try:
                watch = Completed(episodes, write)
                replay(episodes.path, env, check=False, numbers=wanted, observers=[watch], stop=stop)
            finally:
                env.close()
    except BaseException:
        export.abandon()
        raise
    if stop():
        export.abandon()
    else:
        export.close()
