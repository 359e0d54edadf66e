"""Episodes of files as the tasks of homes take them."""

from __future__ import annotations

import functools
from pathlib import Path

import mujoco
import numpy as np

from manikin.data.formats.homes.check import check_episode, joints_in, nearest_receptacle
from manikin.data.formats.homes.names import in_file
from manikin.data.formats.rearrange import RearrangeEpisode, read_rearrange
from manikin.errors import DataError, UnknownNameError
from manikin.homes import Apartment, Fixture, Mechanism
from manikin.homes.episodes import LONG_TASKS, HomeEpisode, Lying, Target, home_of

__all__ = ["home_episode", "home_episodes"]


def home_episodes(path: str | Path, task: str, *, split: str = "train") -> list[HomeEpisode]:
    """The episodes of a file, generated or published, for :func:`manikin.tasks.home.written.in_episodes`.

    Args:
        path: ``.json`` or ``.json.gz``, with one episode or a list.
        task: which of :data:`manikin.homes.episodes.LONG_TASKS` they are of; files do not say.
        split: that they are of, which files do not say either.

    Raises:
        UnknownNameError: no such task or scene.
        AssetError: an episode is in ReplicaCAD, which is not there.
        DataError: the file cannot be read.
        See also :func:`home_episode`.
    """
    if task not in LONG_TASKS:
        raise UnknownNameError("long task", task, LONG_TASKS)
    homes = functools.lru_cache(maxsize=2)(home_of)
    return [home_episode(one, homes(one.scene), task, split=split) for one in read_rearrange(path)]


def home_episode(episode: RearrangeEpisode, home: Apartment, task: str, *, split: str = "train") -> HomeEpisode:
    """An episode of a file as :func:`manikin.homes.episodes.generate` makes them, targets first.

    Args:
        episode: of a file.
        home: the apartment of its scene.
        task: of the long tasks.
        split: ``train`` or ``val``.

    Raises:
        DataError: its number is none; it does not say what its targets lie on and where they are to be brought.
        See also :func:`~manikin.data.formats.homes.check_episode`.
    """
    check_episode(episode, home)
    if not episode.number.isdigit():
        raise DataError(f"episode {episode.number!r} has no number")
    for key, side in (
        ("target_receptacles", episode.start_receptacles),
        ("goal_receptacles", episode.goal_receptacles),
    ):
        if not side:
            raise DataError(f"episode {episode.number} lacks {key}, which say what is behind a door")
    joints, goals = joints_in(episode, home), list(episode.goals)
    names = _numbered(episode)
    order = [*goals, *(name for name in names if name not in goals)]
    owners = dict(zip(goals, (handle for handle, _ in episode.start_receptacles), strict=True))
    lying = []
    for name in order:
        pose = names[name]
        if name in owners:
            receptacle = nearest_receptacle(pose[:3, 3], home, owners[name], joints)
        else:
            receptacle = _under(pose[:3, 3], home, episode.lies_on.get(name, ""), joints)
        lying.append(Lying(name=name.partition("_:")[0], pose=_pose(pose), receptacle=receptacle))
    targets = [
        Target(
            object=k,
            goal=_pose(episode.goals[name]),
            receptacle=nearest_receptacle(episode.goals[name][:3, 3], home, handle, joints),
        )
        for k, (name, (handle, _)) in enumerate(zip(goals, episode.goal_receptacles, strict=True))
    ]
    return HomeEpisode(
        task=task,
        split=split,
        number=int(episode.number),
        scene=home.name,
        objects=tuple(lying),
        targets=tuple(targets),
        joints=joints,
    )


def _numbered(episode: RearrangeEpisode) -> dict[str, np.ndarray]:
    """The pose (4, 4) of each object, by its name with its number among those of one name."""
    found: dict[str, np.ndarray] = {}
    counts: dict[str, int] = {}
    for name, pose in episode.objects:
        counts[name] = counts.get(name, -1) + 1
        found[f"{name}_:{counts[name]:04d}"] = pose
    return found


def _under(place: np.ndarray, home: Apartment, said: str, joints: dict[str, dict[str, float]]) -> str:
    """The receptacle of something that is only in the way: of the furniture that the file names, or any."""
    handle = said.rpartition("|")[0]
    every: tuple[Fixture | Mechanism, ...] = (*home.fixtures, *home.mechanisms)
    handles = [handle] if handle else [in_file(one.name) for one in every if one.receptacles]
    names = [nearest_receptacle(place, home, one, joints) for one in handles]
    return min(names, key=lambda name: float(np.linalg.norm(home.middle(name)[:3] - place)))


def _pose(matrix: np.ndarray) -> tuple[float, ...]:
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, matrix[:3, :3].ravel())
    return (*(float(v) for v in matrix[:3, 3]), *(float(v) for v in quat))
