"""The long tasks as Habitat's generator has them: how many objects, from where to where, in which apartments.

Source: the generator configurations of Habitat's Home Assistant Benchmark, August 2025, which made MS-HAB's episodes.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from manikin.errors import SceneError, UnknownNameError
from manikin.homes import replicacad
from manikin.homes.apartment import Apartment
from manikin.homes.built_in import VARIATIONS, apartment
from manikin.homes.objects import OBJECT_SETS

__all__ = ["COLLECTIONS", "LONG_TASKS", "NEAR", "SPLITS", "Errand", "LongTask", "home_of", "places", "scene_names"]

# Patterns of receptacles' names: of the built-in apartments, then of ReplicaCAD.
_COUNTER = ("counter/left", "counter/right", "counter/worktop", "*_counter_left_*", "*_counter_right_*")
_TABLE = ("table/top", "*_Tbl1_Top1_*")
_OPEN = (
    *_COUNTER,
    *_TABLE,
    *("counter/sink", "chair*/seat", "low_table/top", "tv_stand/top", "sofa/seat"),
    *("*_aabb_sink_*", "*_Chr1_Top1_*", "*_Tbl2_Top1_*", "*_TvStnd1_Top1_*", "*_aabb_Sofa_*"),
)
_SHELF = ("fridge/middle", "*_aabb_middlefrl_apartment_refrigerator")
_DRAWER = ("counter/drawer*", "*_drawer_right_top_*")


NEAR = 1.5
"""[m] from an object or goal within which the robot can drive to a place."""


@dataclass(frozen=True)
class Errand:
    """One object's way.

    Attributes:
        names: of objects, of which one is drawn.
        start: patterns of the receptacles where it lies; goal: of those to which it is brought.
    """

    names: tuple[str, ...]
    start: tuple[str, ...]
    goal: tuple[str, ...]


@dataclass(frozen=True)
class LongTask:
    """A task.

    Attributes:
        errands: in their order.
        clutter: how many other objects there are, drawn of ``clutter_names``, on ``clutter_places`` (patterns).
        fridge: [rad] by which the fridge's upper door is open.
        near: [m] from an object or goal within which the robot can drive to a place.
        inner: share of each side of the fridge's shelf in whose middle things lie.
        least_way: [m] from an object to its goal, at least.
        settle: [s] for which all lie; moved: [m] by which none may move meanwhile.
    """

    errands: tuple[Errand, ...]
    clutter: int
    clutter_names: tuple[str, ...]
    clutter_places: tuple[str, ...]
    fridge: float = 0.0
    near: float = NEAR
    inner: float = 0.5
    least_way: float = 0.5
    settle: float = 5.0
    moved: float = 0.1

    @property
    def count(self) -> int:
        """How many objects an episode has."""
        return len(self.errands) + self.clutter

    @property
    def names(self) -> tuple[str, ...]:
        """All objects that may be drawn."""
        return tuple(dict.fromkeys([n for one in self.errands for n in one.names] + list(self.clutter_names)))


_TIDY, _GROCERIES = OBJECT_SETS["tidy_house"], OBJECT_SETS["prepare_groceries"]
LONG_TASKS: Mapping[str, LongTask] = MappingProxyType(
    {
        "tidy_house": LongTask((Errand(_TIDY.targets, _OPEN, _OPEN),) * 5, 25, _TIDY.clutter, _OPEN),
        "prepare_groceries": LongTask(
            (
                *(Errand(_GROCERIES.targets, _SHELF, _COUNTER),) * 2,
                Errand(_GROCERIES.targets, _COUNTER, _SHELF),
            ),
            27,
            _GROCERIES.clutter,
            (*_OPEN, *_SHELF),
            fridge=1.5,
        ),
        "set_table": LongTask(
            (Errand(("024_bowl",), _DRAWER, _TABLE), Errand(("013_apple",), _SHELF, _TABLE)),
            27,
            OBJECT_SETS["set_table"].clutter,
            (*_OPEN, *_SHELF),
        ),
    }
)
"""By name."""

SPLITS = ("train", "val")
COLLECTIONS = ("apartments", "replicacad")
"""Where scenes come from: the built-in apartments, or the data set."""
_VALIDATION = 4  # built-in apartments after those in which the tasks of the library play
_REPLICACAD = {"train": r"v3_sc[0-2]_staging_\d\d", "val": r"v3_sc3_staging_\d\d"}


def scene_names(split: str, collection: str = "apartments") -> tuple[str, ...]:
    """The scenes of a split.

    Of the built-in apartments 0 to 7, in which the library's tasks play, are for training, and 8 to 11 for validation.
    Of ReplicaCAD the staging scenes sc0 to sc2 are for training and sc3 for validation, as in MS-HAB.

    Raises:
        UnknownNameError: no such split or collection.
        AssetError: ReplicaCAD is not there.
    """
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS)
    if collection not in COLLECTIONS:
        raise UnknownNameError("collection of scenes", collection, COLLECTIONS)
    if collection == "replicacad":
        return tuple(name for name in replicacad.scenes() if re.fullmatch(_REPLICACAD[split], name))
    first, last = (0, VARIATIONS) if split == "train" else (VARIATIONS, VARIATIONS + _VALIDATION)
    return tuple(f"apartment{k}" for k in range(first, last))


def home_of(scene: str) -> Apartment:
    """The apartment of a name: ``apartment3`` is built in, others are ReplicaCAD's.

    A name may go on with a slash and a drawer, of which tasks are about that one: ``apartment3/counter/drawer1``.

    Raises:
        AssetError: ReplicaCAD is not there.
        UnknownNameError: it has no such scene.
    """
    scene = scene.partition("/")[0]
    found = re.fullmatch(r"apartment(\d+)", scene)
    return apartment(int(found[1])) if found else replicacad.load(scene)


def places(home: Apartment, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the receptacles that match; of the drawers of a built-in counter the highest ones alone.

    Raises:
        SceneError: there is none; names the patterns.
    """
    found = tuple(name for name in home.receptacles if any(fnmatch.fnmatchcase(name, p) for p in patterns))
    if not found:
        raise SceneError(f"{home.name} has no receptacle like {' or '.join(patterns)}")
    heights = {name: _height(home, name) for name in found if name.startswith("counter/drawer")}
    top = max(heights.values(), default=0.0)
    return tuple(name for name in found if name not in heights or heights[name] > top - 0.05)


def _height(home: Apartment, name: str) -> float:
    """[m] of what carries a receptacle of a built-in counter."""
    owner, receptacle = home.receptacle(name)
    return float(owner.model.body(receptacle.link).pos[2])  # type: ignore[union-attr]
