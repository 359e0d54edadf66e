"""A home task that plays written episodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from manikin import Task
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes.episodes import HomeEpisode, home_of
from manikin.homes.objects import home_objects
from manikin.tasks.home.doors.fronts import KINDS, behind
from manikin.tasks.home.handling import HandlingTask
from manikin.tasks.home.long.sequence import LongTask
from manikin.tasks.home.pick import HomePick
from manikin.tasks.home.place import HomePlace
from manikin.tasks.home.scene import made_by_caller
from manikin.tasks.home.written.handled import WrittenPick, WrittenPlace
from manikin.tasks.home.written.long import WrittenLong
from manikin.tasks.home.written.places import layout_of
from manikin.tasks.home.written.told import Part

__all__ = ["in_episodes"]

_HANDLED: dict[type[Task], type[HandlingTask]] = {HomePick: WrittenPick, HomePlace: WrittenPlace}
_WHERE = ("open", *KINDS)


def in_episodes(task: type[Task], episodes: Iterable[HomeEpisode], *, where: str = "open") -> type[Task]:
    """A task of this family in written episodes: their apartments, all of their objects, and their goals.

    A long task plays whole episodes. ``HomePick`` and ``HomePlace`` are about each of their targets: those that lie, or
    are brought, ``where`` it is said. With L layouts, which are the apartments in the order of the episodes, seed s is
    episode ``s // L`` of layout ``s % L``, counted round and round. What else is drawn is drawn as ever: where the
    robot starts, and its joints.

    Args:
        task: ``TidyHouse``, ``PrepareGroceries``, ``SetTable``, ``HomePick`` or ``HomePlace``.
        episodes: generated, or of a file (:func:`manikin.data.formats.homes.home_episodes`).
        where: of ``HomePick`` and ``HomePlace``: on open surfaces, in the open ``drawer``, in the open ``fridge``.

    The class belongs to the file or module that calls this, so that commands take it from there (``my_tasks.py``).

    Raises:
        ConfigError: another task; no episodes; an episode of another long task, or whose targets lie or are to be
            elsewhere than the task has them.
        UnknownNameError: another word for ``where``; an apartment, a receptacle or an object that is not there.
        AssetError: an episode is in ReplicaCAD, which is not there.
    """
    if where not in _WHERE:
        raise UnknownNameError("where", where, _WHERE)
    found = list(episodes)
    if not found:
        raise ConfigError(f"{task.id} needs at least one episode")
    home_objects(tuple(dict.fromkeys(lying.name for one in found for lying in one.objects)))
    about: dict[str, Any] = {}
    if task in _HANDLED:
        kind: type[Task] = _HANDLED[task]
        parts = [
            Part(one, (k,))
            for one in found
            for k, target in enumerate(one.targets)
            if (
                _behind(one, target.receptacle if task is HomePlace else one.objects[target.object].receptacle)
                or "open"
            )
            == where
        ]
        if not parts:
            verb = "is to be put" if task is HomePlace else "lies"
            raise ConfigError(f"in none of the {len(found)} episodes an object {verb} where={where!r}")
        about["Config"] = _config(task.Config, where)
    elif issubclass(task, LongTask):
        if where != "open":
            raise ConfigError(f"{task.id} plays whole episodes; where= is for HomePick and HomePlace")
        kind, parts = WrittenLong, [_whole(task, one) for one in found]
    else:
        names = "TidyHouse, PrepareGroceries, SetTable, HomePick, HomePlace"
        raise ConfigError(f"{task.id} has no written episodes; those have {names}")
    by_layout: dict[str, list[Part]] = {}
    for part in parts:
        by_layout.setdefault(layout_of(part), []).append(part)
    written = {layout: tuple(some) for layout, some in by_layout.items()}
    return made_by_caller((kind, task), {**about, "layouts": tuple(written), "written": written})


def _ends(episode: HomeEpisode) -> list[tuple[str, str]]:
    """The receptacle of each target and that of its goal."""
    return [(episode.objects[one.object].receptacle, one.receptacle) for one in episode.targets]


def _behind(episode: HomeEpisode, receptacle: str) -> str:
    return behind(home_of(episode.scene), receptacle)


def _config(base: Any, default: str) -> Any:
    @dataclass(frozen=True)
    class Config(base):  # type: ignore[misc]
        where: str = default

    return Config


def _whole(task: type[LongTask], episode: HomeEpisode) -> Part:
    """All targets of an episode that fits a task."""
    if episode.task != task.sequence:
        raise ConfigError(f"episode {episode.number} is one of {episode.task}, not of {task.sequence}")
    if len(episode.targets) != len(task.errands):
        raise ConfigError(
            f"episode {episode.number} has {len(episode.targets)} targets; {task.id} has {len(task.errands)}"
        )
    for k, (ends, errand) in enumerate(zip(_ends(episode), task.errands, strict=True)):
        for wanted, receptacle in zip((errand.start, errand.goal), ends, strict=True):
            if (wanted if wanted in KINDS else "") != _behind(episode, receptacle):
                there = f"in a {wanted}" if wanted in KINDS else "on something open"
                raise ConfigError(
                    f"target {k} of episode {episode.number} is at {receptacle}; {task.id} has it {there}"
                )
    return Part(episode, tuple(range(len(episode.targets))))
