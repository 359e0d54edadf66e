"""A home task that plays written episodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import make_dataclass
from typing import Any

from manikin import Task
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes.episodes import HomeEpisode
from manikin.homes.objects import home_objects
from manikin.tasks.home.doors.close import HomeClose
from manikin.tasks.home.doors.fronts import KINDS, WHERE, behind
from manikin.tasks.home.doors.mechanisms import MechanismTask
from manikin.tasks.home.doors.open import HomeOpen
from manikin.tasks.home.long.sequence import LongTask
from manikin.tasks.home.navigate import BEFORE, HomeNavigate
from manikin.tasks.home.pick import HomePick
from manikin.tasks.home.place import HomePlace
from manikin.tasks.home.scene import made_by_caller
from manikin.tasks.home.written.handled import WrittenPick, WrittenPlace
from manikin.tasks.home.written.long import WrittenLong
from manikin.tasks.home.written.navigated import WrittenNavigate
from manikin.tasks.home.written.opened import WrittenClose, WrittenOpen
from manikin.tasks.home.written.places import layout_of
from manikin.tasks.home.written.told import Part

__all__ = ["in_episodes"]

_KINDS: dict[type[Task], type[Task]] = {
    HomePick: WrittenPick,
    HomePlace: WrittenPlace,
    HomeOpen: WrittenOpen,
    HomeClose: WrittenClose,
    HomeNavigate: WrittenNavigate,
}


def in_episodes(
    task: type[Task], episodes: Iterable[HomeEpisode], *, where: str = "open", before: str = "pick"
) -> type[Task]:
    """A task of this family in written episodes: their apartments, all of their objects, and their goals.

    A long task plays whole episodes. ``HomePick`` and ``HomePlace`` are about each of their targets: those that lie, or
    are brought, ``where`` it is said; ``HomeOpen`` and ``HomeClose`` about the drawer or the fridge in which each lies.
    ``HomeNavigate`` leads to what the subtask that it comes ``before`` is about, which is all that is open then.
    With L layouts, which are the apartments in the order of the episodes, seed s is episode ``s // L`` of layout
    ``s % L``, counted round and round. What else is drawn is drawn as ever: where the robot starts, and its joints.

    Args:
        task: ``TidyHouse``, ``PrepareGroceries``, ``SetTable``, ``HomePick``, ``HomePlace``, ``HomeOpen``,
            ``HomeClose`` or ``HomeNavigate``.
        episodes: generated, or of a file (:func:`manikin.data.formats.homes.home_episodes`).
        where: of subtasks: on ``open`` surfaces, in the ``drawer``, in the ``fridge``.
        before: of ``HomeNavigate``: ``pick``, ``place``, ``open`` or ``close``.

    The class belongs to the file or module that calls this, so that commands take it from there (``my_tasks.py``).

    Raises:
        ConfigError: another task; no episodes; an episode of another long task, or whose targets lie or are to be
            elsewhere than the task has them.
        UnknownNameError: another word for ``where`` or ``before``; an apartment, a receptacle or an object that is
            not there.
        AssetError: an episode is in ReplicaCAD, which is not there.
    """
    if where not in WHERE:
        raise UnknownNameError("where", where, WHERE)
    if before not in BEFORE:
        raise UnknownNameError("before", before, BEFORE)
    drives = task is HomeNavigate
    if before != "pick" and not drives:
        raise ConfigError(f"before= is for HomeNavigate; {task.id} is about one subtask or all")
    found = list(episodes)
    if not found:
        raise ConfigError(f"{task.id} needs at least one episode")
    home_objects(tuple(dict.fromkeys(lying.name for one in found for lying in one.objects)))
    # which end of an object's way a subtask is about
    about, end = dict[str, Any](), int(task is HomePlace or (drives and before == "place"))
    if task in _KINDS:
        kind, opens = _KINDS[task], issubclass(task, MechanismTask)
        if (opens or before in ("open", "close")) and where not in KINDS:
            raise ConfigError(f"{task.id} is about the drawer or the fridge: say where='drawer' or where='fridge'")
        parts = [
            Part(one, (k,))
            for one in found
            for k, ends in enumerate(_ends(one))
            if (behind(one.scene, ends[end]) or "open") == where
        ]
        if not parts:
            verb = ("lies", "is to be put")[end]
            raise ConfigError(f"in none of the {len(found)} episodes an object {verb} where={where!r}")
        defaults = {"mechanism" if opens else "where": where, **({"before": before} if drives else {})}
        about["Config"] = _config(task.Config, defaults)
    elif issubclass(task, LongTask):
        if where != "open":
            raise ConfigError(f"{task.id} plays whole episodes; where= is for the subtasks")
        kind, parts = WrittenLong, [_whole(task, one) for one in found]
    else:
        names = ", ".join(["TidyHouse", "PrepareGroceries", "SetTable", *(one.__name__ for one in _KINDS)])
        raise ConfigError(f"{task.id} has no written episodes; those have {names}")
    by_layout: dict[str, list[Part]] = {}
    for part in parts:
        ends = [_ends(part.episode)[k] for k in part.targets]
        places = [ends[0][end]] if task in _KINDS else [place for both in ends for place in both]
        by_layout.setdefault(layout_of(part.episode.scene, places), []).append(part)
    written = {layout: tuple(some) for layout, some in by_layout.items()}
    return made_by_caller((kind, task), {**about, "layouts": tuple(written), "written": written})


def _ends(episode: HomeEpisode) -> list[tuple[str, str]]:
    """The receptacle of each target and that of its goal."""
    return [(episode.objects[one.object].receptacle, one.receptacle) for one in episode.targets]


def _config(base: Any, defaults: Mapping[str, str]) -> Any:
    """A task's options with other defaults for some of them."""
    fields = [(name, str, default) for name, default in defaults.items()]
    return make_dataclass("Config", fields, bases=(base,), frozen=True)


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
            if (wanted if wanted in KINDS else "") != behind(episode.scene, receptacle):
                there = f"in a {wanted}" if wanted in KINDS else "on something open"
                raise ConfigError(
                    f"target {k} of episode {episode.number} is at {receptacle}; {task.id} has it {there}"
                )
    return Part(episode, tuple(range(len(episode.targets))))
