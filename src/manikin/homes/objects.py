"""The YCB objects of MS-HAB's home tasks, as primitives of the right size and mass, and which task uses which.

Every object lies as Habitat's sampler puts it down, upright as it was scanned: the origin is the middle of the box
around it, z points up. Sizes and masses: Calli et al. 2015, "Benchmarking in Manipulation Research: The YCB Object and
Model Set". Sets: the generator configurations of Habitat's rearrangement challenge, which MS-HAB uses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from manikin.errors import UnknownNameError
from manikin.spec.links import RGBA, Vec3
from manikin.spec.prop import Prop, Shape

__all__ = ["FROM_FRONT", "HOME_OBJECTS", "OBJECT_SETS", "HomeObject", "ObjectSet", "home_objects"]

_DEPTH = 0.008  # [m] how far below an object's top the tool takes it; its palm begins 34 mm behind
_LOW = 0.045  # [m] of the tool above what the object lies on, so that tips 38.5 mm ahead do not touch that
# [m] likewise of a tool that points ahead and a little down: below the top, above what it lies on (least, most),
_FRONT_DEPTH, _FRONT_LOW, _FRONT_HIGH = 0.012, 0.036, 0.06
_FRONT_REACH = 0.03  # and how far behind an object's near side
# [rad] that such a tool points down; [m] of its palm behind it, and how high above it something meets that
_TILT, _PALM, _PALM_TOP = math.pi / 6, 0.031, 0.058
_SIDES = 12  # of the bowl
_OPEN = 0.1  # [m] that the gripper opens


@dataclass(frozen=True, kw_only=True)
class HomeObject:
    """An object that lies at rest on something level.

    Attributes:
        name: of the YCB set.
        size: of the box around it [m].
        mass: [kg].
        shapes: the origin is the middle of that box.
        aside: [m] where a gripper that points down takes it, from its middle, along x and y ...
        yaw: ... turned so far about z; at 0 the fingers close along y [rad] ...
        turns: ... or further by a full turn divided by this ...
        width: ... and how wide it is between the fingers there [m].
    """

    name: str
    size: Vec3
    mass: float
    shapes: tuple[Shape, ...]
    width: float
    aside: tuple[float, float] = (0.0, 0.0)
    yaw: float = 0.0
    turns: int = 2

    @property
    def height(self) -> float:
        """[m] of its middle above what it lies on."""
        return self.size[2] / 2

    @property
    def grip(self) -> Vec3:
        """[m] where the middle between the finger pads is when the gripper takes it from above, from its middle."""
        return (*self.aside, max(self.size[2] - _DEPTH, _LOW) - self.height)

    @property
    def front_grip(self) -> Vec3:
        """[m] where the middle between the finger pads is when a gripper takes it from the front, pointing ahead along
        x and a little down, from its middle; its far side may be out of reach of the pads."""
        deep = self.size[1] if self.yaw else self.size[0]
        up = min(max(self.size[2] - _FRONT_DEPTH, _FRONT_LOW), _FRONT_HIGH)
        return (min(_FRONT_REACH - deep / 2, 0.0), 0.0, up - self.height)

    @property
    def front_gap(self) -> float:
        """[m] by which that gripper stays behind there, as its palm meets the object's near side."""
        back, _, up = self.front_grip
        near = (self.size[1] if self.yaw else self.size[0]) / 2 + back
        above = min(self.height - up, _PALM_TOP)
        return max(near * math.cos(_TILT) + above * math.sin(_TILT) - _PALM, 0.0)

    @property
    def prop(self) -> Prop:
        """For ``b.mesh(choice=...)``."""
        return Prop(name=self.name, shapes=self.shapes, mass=self.mass, source="primitive stand-in")


@dataclass(frozen=True)
class ObjectSet:
    """Which objects a long task has.

    Attributes:
        targets: names of objects that are to be picked and placed.
        clutter: names of those that only lie there.
    """

    targets: tuple[str, ...]
    clutter: tuple[str, ...]


def _box(name: str, size: Vec3, mass: float, rgba: RGBA, side: str) -> HomeObject:
    """A box that is taken across its side ``x`` or ``y``."""
    x, y, z = size
    shape = Shape(type="box", size=(x / 2, y / 2, z / 2), rgba=rgba)
    across, yaw = (x, math.pi / 2) if side == "x" else (y, 0.0)
    return HomeObject(name=name, size=size, mass=mass, shapes=(shape,), width=across, yaw=yaw)


def _can(name: str, diameter: float, height: float, mass: float, rgba: RGBA, beside: float = 0.0) -> HomeObject:
    """An upright can that is taken across its middle, or where it is narrower, ``beside`` [m] along x; a finger is
    27 mm wide."""
    radius = diameter / 2
    shape = Shape(type="cylinder", size=(radius, height / 2), rgba=rgba)
    inner = max(beside - 0.0135, 0.0)
    return HomeObject(
        name=name,
        size=(diameter, diameter, height),
        mass=mass,
        shapes=(shape,),
        aside=(beside, 0.0),
        width=2 * math.sqrt(radius**2 - inner**2),
        turns=_SIDES,
    )


def _bowl(name: str, diameter: float, height: float, mass: float, rgba: RGBA) -> HomeObject:
    """A flat bottom and twelve leaning sides; it is taken by its rim."""
    wall, lean = 0.004, 0.2  # [m], [rad]
    bottom = 0.003
    rim = diameter / 2 - wall / 2 * math.cos(lean)  # [m] of the middle of a side's upper edge
    length = (height - 2 * bottom) / math.cos(lean)
    middle = rim - length / 2 * math.sin(lean)
    half = (rim * math.tan(math.pi / _SIDES), wall / 2, length / 2)
    shapes = [
        Shape(
            type="cylinder",
            size=(rim - length * math.sin(lean), bottom),
            pos=(0, 0, bottom - height / 2),
            rgba=rgba,
        )
    ]
    for k in range(_SIDES):
        turn, tip = math.pi * k / _SIDES, -lean / 2  # half angles, about z and then about the side's own x
        z, w = math.sin(turn), math.cos(turn)
        y, x = math.cos(2 * turn), -math.sin(2 * turn)
        quat = (w * math.cos(tip), w * math.sin(tip), z * math.sin(tip), z * math.cos(tip))
        shapes.append(Shape(type="box", size=half, pos=(middle * x, middle * y, bottom), quat=quat, rgba=rgba))
    return HomeObject(
        name=name,
        size=(diameter, diameter, height),
        mass=mass,
        shapes=tuple(shapes),
        aside=(0.0, middle),
        width=wall + length * math.sin(lean),
        turns=_SIDES,
    )


def _apple(name: str, diameter: float, mass: float, rgba: RGBA) -> HomeObject:
    """A ball that stands on a flat base, as an apple does."""
    radius = diameter / 2
    shapes = (
        Shape(type="sphere", size=(radius,), rgba=rgba),
        Shape(type="cylinder", size=(0.4 * radius, radius), rgba=rgba),
    )
    return HomeObject(name=name, size=(diameter,) * 3, mass=mass, shapes=shapes, width=diameter, turns=_SIDES)


_ALL = (
    _can("002_master_chef_can", 0.102, 0.139, 0.414, (0.15, 0.25, 0.55, 1), beside=0.03),
    _box("003_cracker_box", (0.06, 0.158, 0.21), 0.411, (0.75, 0.12, 0.1, 1), "x"),
    _box("004_sugar_box", (0.038, 0.089, 0.175), 0.514, (0.9, 0.8, 0.25, 1), "x"),
    _can("005_tomato_soup_can", 0.066, 0.101, 0.349, (0.8, 0.2, 0.15, 1)),
    _can("007_tuna_fish_can", 0.085, 0.033, 0.171, (0.2, 0.4, 0.7, 1)),
    _box("008_pudding_box", (0.089, 0.11, 0.035), 0.187, (0.45, 0.25, 0.15, 1), "x"),
    _box("009_gelatin_box", (0.073, 0.085, 0.028), 0.097, (0.85, 0.3, 0.35, 1), "x"),
    _box("010_potted_meat_can", (0.097, 0.05, 0.082), 0.37, (0.2, 0.3, 0.6, 1), "y"),
    _apple("013_apple", 0.075, 0.068, (0.75, 0.15, 0.12, 1)),
    _bowl("024_bowl", 0.159, 0.053, 0.147, (0.8, 0.25, 0.2, 1)),
)
HOME_OBJECTS: Mapping[str, HomeObject] = MappingProxyType({one.name: one for one in _ALL})
"""By name."""

_NINE = tuple(name for name in HOME_OBJECTS if name != "013_apple")
OBJECT_SETS: Mapping[str, ObjectSet] = MappingProxyType(
    {
        "tidy_house": ObjectSet(_NINE, _NINE),
        "prepare_groceries": ObjectSet(_NINE, _NINE),
        "set_table": ObjectSet(("024_bowl", "013_apple"), _NINE),
    }
)
"""By name of the long task."""


FROM_FRONT = tuple(name for name, one in HOME_OBJECTS.items() if min(one.size[:2]) < _OPEN)
"""Names of those that are narrow enough for the gripper that comes from the front."""


def home_objects(names: tuple[str, ...]) -> list[HomeObject]:
    """Objects by name.

    Raises:
        UnknownNameError: there is none of a name; lists the names.
    """
    for name in names:
        if name not in HOME_OBJECTS:
            raise UnknownNameError("object of a home", name, HOME_OBJECTS)
    return [HOME_OBJECTS[name] for name in names]
