"""What an episode of rearrangement is, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["HomeEpisode", "Lying", "Target"]

Pose = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Lying:
    """An object at the start.

    Attributes:
        name: of the object, see :data:`manikin.homes.objects.HOME_OBJECTS`.
        pose: (7,) position [m] and quaternion wxyz in the world.
        receptacle: what it lies on or in.
    """

    name: str
    pose: Pose
    receptacle: str


@dataclass(frozen=True, kw_only=True)
class Target:
    """An object that is to be brought somewhere.

    Attributes:
        object: its number among the episode's objects.
        goal: (7,) position [m] and quaternion wxyz in the world.
        receptacle: what the goal is on or in.
    """

    object: int
    goal: Pose
    receptacle: str


@dataclass(frozen=True, kw_only=True)
class HomeEpisode:
    """An episode.

    Attributes:
        task: ``tidy_house``, ``prepare_groceries`` or ``set_table``.
        split: ``train`` or ``val``.
        number: of the episode within its split.
        scene: name of the apartment.
        objects: what lies around, targets first.
        targets: in the order in which they are to be brought away.
        joints: positions [m, rad] of joints that are not at 0, by mechanism and joint.
    """

    task: str
    split: str
    number: int
    scene: str
    objects: tuple[Lying, ...]
    targets: tuple[Target, ...]
    joints: Mapping[str, Mapping[str, float]]

    @property
    def handles(self) -> tuple[str, ...]:
        """Name of each object as Habitat has it, with its number among those of one name: ``024_bowl_:0001``."""
        names = [one.name for one in self.objects]
        return tuple(f"{name}_:{names[:k].count(name):04d}" for k, name in enumerate(names))
