"""Make episodes: draw objects and receptacles, put all down, let it settle, reject what does not hold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
import torch

from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.homes.episodes.room import Room, Row
from manikin.homes.episodes.rules import LONG_TASKS, LongTask, home_of, places, scene_names
from manikin.homes.episodes.story import HomeEpisode, Lying, Target
from manikin.homes.objects import HOME_OBJECTS
from manikin.rng import EpisodeRng

__all__ = ["Rejections", "generate", "scene_of"]

_TRIES, _PAIRS = 50, 20  # places of an object in a receptacle, and receptacles, before an attempt is given up
_MOST = 100  # attempts of an episode
_UPRIGHT = 0.95  # cosine of how far an object may lean after settling
Rejections = Counter[str]
"""How often attempts were given up, by reason."""


class _Draw:
    """The random numbers of one attempt of one episode."""

    def __init__(self, task: str, split: str, seed: int, number: int, attempt: int) -> None:
        numbers = (torch.tensor([value], device="cpu") for value in (seed, number, attempt))
        self._rng = EpisodeRng(next(numbers), next(numbers)).derive(next(numbers))
        self._prefix = f"{task}/{split}"

    def one_of(self, name: str, options: Sequence[str]) -> str:
        return options[int(self._rng.integers(f"{self._prefix}/{name}", 0, len(options))[0])]

    def numbers(self, name: str) -> np.ndarray:
        """(tries, 3) uniform in [0, 1)."""
        return self._rng.uniform(f"{self._prefix}/{name}", shape=(_TRIES, 3))[0].numpy().astype(float)


class _Attempt:
    """One try at an episode.

    Args:
        room: where.
        draw: its random numbers.
    """

    def __init__(self, room: Room, draw: _Draw) -> None:
        self._room, self._draw = room, draw
        self._task: LongTask = room.task
        self.names = [draw.one_of("target", errand.names) for errand in self._task.errands]
        self.names += [draw.one_of("clutter", self._task.clutter_names) for _ in range(self._task.clutter)]
        self.receptacles: list[str] = []

    def lay_all(self, row: Row) -> str:
        """Put down all objects; an empty string, or why it is given up."""
        self.row = row
        row.look()
        self._poses = []
        for k in range(self._task.count):
            targeted = k < len(self._task.errands)
            patterns = self._task.errands[k].start if targeted else self._task.clutter_places
            laid = self._lay(k, patterns, "start", pairs=_PAIRS)
            if laid is None:
                return "no room for a target" if targeted else "no room for clutter"
            self.receptacles.append(laid[0])
            self._poses.append(laid[1])
        return ""

    def _lay(self, k: int, patterns: tuple[str, ...], word: str, *, pairs: int) -> tuple[str, np.ndarray] | None:
        options = places(self._room.home, patterns)
        for _ in range(pairs):
            receptacle = self._draw.one_of(f"{word}/receptacle", options)
            owner, _ = self._room.home.receptacle(receptacle)
            inner = self._task.inner if owner.kind == "fridge" else 1.0
            pose = self.row.lay(k, receptacle, self._draw.numbers(f"{word}/place"), inner=inner)
            if pose is not None:
                return receptacle, pose
        return None

    def held(self) -> str:
        """After settling: an empty string, or what did not hold."""
        self.row.look()
        for k, before in enumerate(self._poses):
            pose, matrix = self.row.pose(k), np.empty(9)
            mujoco.mju_quat2Mat(matrix, pose[3:])
            if np.linalg.norm(pose[:3] - before[:3]) > self._task.moved:
                return "an object moved"
            if matrix[8] < _UPRIGHT:
                return "an object fell over"
            if k < len(self._task.errands) and not self._room.drives_near(pose[:3]):
                return "no stand before a target"
            self._poses[k] = pose
        return ""

    def aim(self) -> str:
        """Find a goal for each target; an empty string, or why it is given up."""
        self.goals: list[tuple[str, np.ndarray]] = []
        for k, errand in enumerate(self._task.errands):
            for _ in range(_PAIRS):
                found = self._lay(k, errand.goal, "goal", pairs=1)
                self.row.put(k, self._poses[k])
                if found is not None and self._is_apart(k, found[1]):
                    self.goals.append(found)
                    break
            else:
                return "no room for a goal"
        return ""

    def _is_apart(self, k: int, goal: np.ndarray) -> bool:
        """Whether a goal is far enough from the object's start and does not overlap earlier goals."""
        if np.linalg.norm(goal[:3] - self._poses[k][:3]) < self._task.least_way:
            return False
        radii = [math.hypot(*HOME_OBJECTS[name].size[:2]) / 2 for name in self.names]
        return all(np.linalg.norm(goal[:3] - other[1][:3]) > radii[k] + radii[j] for j, other in enumerate(self.goals))

    def episode(self, task: str, split: str, number: int) -> HomeEpisode:
        lying = tuple(
            Lying(name=name, pose=_rounded(pose), receptacle=receptacle)
            for name, pose, receptacle in zip(self.names, self._poses, self.receptacles, strict=True)
        )
        targets = tuple(
            Target(object=k, goal=_rounded(pose), receptacle=receptacle)
            for k, (receptacle, pose) in enumerate(self.goals)
        )
        return HomeEpisode(
            task=task,
            split=split,
            number=number,
            scene=self._room.home.name,
            objects=lying,
            targets=targets,
            joints=self._room.joints,
        )


def _rounded(pose: np.ndarray) -> tuple[float, ...]:
    """To a micrometre, which is short in a file."""
    return tuple(round(float(v), 6) for v in pose)


def scene_of(task: str, number: int, *, split: str = "train", collection: str = "apartments", seed: int = 0) -> str:
    """The scene of an episode, for arguments as of :func:`generate`."""
    return _Draw(task, split, seed, number, 0).one_of(f"{collection}/scene", scene_names(split, collection))


def generate(
    task: str,
    numbers: Sequence[int],
    *,
    split: str = "train",
    collection: str = "apartments",
    seed: int = 0,
    rows: int = 8,
    rejections: Rejections | None = None,
) -> Iterator[HomeEpisode]:
    """Make episodes of a long task.

    An episode depends on task, split, collection, seed and its number alone: not on how many are made, in which order
    or side by side.

    Args:
        task: one of :data:`LONG_TASKS`.
        numbers: of the episodes.
        split: ``train`` or ``val``.
        collection: ``apartments`` (built in) or ``replicacad``.
        seed: of the data set.
        rows: how many are made side by side.
        rejections: counts why attempts were given up.

    Yields:
        The episodes, apartment by apartment.

    Raises:
        UnknownNameError: no such task, split or collection.
        ConfigError: no rows, or a number below 0.
        AssetError: ReplicaCAD is not there.
        SceneError: an apartment lacks a receptacle that the task needs, or 100 attempts of an episode fail; says why.
    """
    if task not in LONG_TASKS:
        raise UnknownNameError("long task", task, LONG_TASKS)
    if rows < 1:
        raise ConfigError(f"episodes are made in at least 1 row, not {rows}")
    if wrong := [number for number in numbers if number < 0]:
        raise ConfigError(f"episodes have numbers from 0 on, not {wrong[0]}")
    rejected: Rejections = Counter() if rejections is None else rejections
    scenes = scene_names(split, collection)
    of_scene: dict[str, list[int]] = {}
    for number in numbers:
        scene = scene_of(task, number, split=split, collection=collection, seed=seed)
        of_scene.setdefault(scene, []).append(number)
    for scene in sorted(of_scene, key=scenes.index):
        yield from _in_scene(scene, task, of_scene[scene], split, seed, rows, rejected)


def _in_scene(
    scene: str, task: str, numbers: list[int], split: str, seed: int, rows: int, rejected: Rejections
) -> Iterator[HomeEpisode]:
    room = Room(home_of(scene), LONG_TASKS[task], min(rows, len(numbers)))
    try:
        waiting = [(number, 0) for number in numbers]
        reasons: dict[int, Rejections] = {number: Counter() for number in numbers}
        while waiting:
            jobs, waiting = waiting[: room.world.num_worlds], waiting[room.world.num_worlds :]
            attempts = [_Attempt(room, _Draw(task, split, seed, *job)) for job in jobs]
            words = [
                one.lay_all(row) for one, row in zip(attempts, room.choose([a.names for a in attempts]), strict=True)
            ]
            laid = [one for one, word in zip(attempts, words, strict=True) if not word]
            diverged = room.settle([one.row for one in laid]) if laid else ()
            words_after = {
                id(one): "diverged" if bad else one.held() or one.aim() for one, bad in zip(laid, diverged, strict=True)
            }
            for (number, attempt), one, word in zip(jobs, attempts, words, strict=True):
                reason = word or words_after[id(one)]
                if not reason:
                    yield one.episode(task, split, number)
                    continue
                rejected[reason] += 1
                reasons[number][reason] += 1
                if attempt + 1 == _MOST:
                    said = ", ".join(f"{why} ({count})" for why, count in reasons[number].most_common())
                    raise SceneError(f"{task} has no episode {number} in {scene} in {_MOST} attempts: {said}")
                waiting.insert(0, (number, attempt + 1))
    finally:
        room.world.close()
