"""Where the fixtures of a kitchen stand, from a layout as data: RoboCasa's format, in which the built-in kitchens are
written, too.

A layout is a mapping from groups to rows of fixtures; ``room`` has walls and floors. A fixture has a name, a type, a
size (width, depth, height; a number, None, or the name of another fixture) and either the position of its middle, or
``align_to``, ``side``, ``alignment`` and ``offset``. x runs to the right of who stands before the group, its front
faces -y. A group is turned and moved as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manikin.errors import DataError

__all__ = ["NATURAL", "Spot", "placed"]

NATURAL: dict[str, tuple[float, float, float]] = {
    "sink": (0.8, 0.53, 0.2),
    "stovetop": (0.76, 0.55, 0.03),
    "stove": (0.76, 0.66, 0.915),
    "stove_wide": (0.91, 0.70, 0.915),
    "oven": (0.75, 0.60, 0.68),
    "microwave": (0.76, 0.45, 0.42),
    "hood": (0.76, 0.50, 0.65),
    "dishwasher": (0.65, 0.60, 0.84),
    "fridge_french_door": (0.85, 0.80, 1.78),
    "fridge_side_by_side": (0.85, 0.80, 1.75),
    "fridge_bottom_freezer": (0.78, 0.80, 1.75),
    "stool": (0.36, 0.36, 0.65),
}
"""Width, depth and height [m] where a layout leaves them open. Those of stoves and fridges are RoboCasa's."""

_AXES = (("left", "right"), ("front", "back"), ("bottom", "top"))
_BUILT_IN = ("sink", "stovetop")  # which a counter puts into its top
_RIM = 0.02  # [m] of the worktop that stays around what is built in
_WHOLE = ("group_origin", "group_pos", "group_z_rot")


@dataclass(eq=False)
class Spot:
    """One fixture in its place.

    Attributes:
        name, type: of the fixture.
        config: what the layout says.
        size: width, depth, height [m].
        pos: its middle [m].
        yaw: [rad] about z; its front faces -y at 0.
        inside: what it has built in, for a counter or a housing.
        carrier: what it is built into.
    """

    name: str
    type: str
    config: Mapping[str, Any]
    size: np.ndarray
    pos: np.ndarray
    yaw: float = 0.0
    inside: Spot | None = None
    carrier: Spot | None = None


def placed(layout: Mapping[str, Any]) -> list[Spot]:
    """All fixtures of a layout that have a place, group by group.

    Raises:
        DataError: a fixture is placed beside one that does not exist before it, or its size is not known.
    """
    spots: list[Spot] = []
    for group, rows in layout.items():
        if group != "room":
            spots += _group(group, rows)
    return spots


def _group(group: str, rows: Mapping[str, Any]) -> list[Spot]:
    found: dict[str, Spot] = {}
    for config in _configs(rows):
        name = str(config["name"])
        try:
            size = _size(config, found)
            spot = Spot(f"{name}_{group}", str(config["type"]), config, size, np.zeros(3))
            _put(spot, found)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"fixture {name!r} of {group}: {error}; it needs a size and a place") from None
        found[name] = spot
    origin = np.array([*rows.get("group_origin", (0, 0)), 0.0])
    move, turn = np.array([*rows.get("group_pos", (0, 0)), 0.0]), float(rows.get("group_z_rot", 0.0))
    quarter = round(turn / (math.pi / 2)) * math.pi / 2
    turn = quarter if abs(turn - quarter) < 0.01 else turn  # layouts are traced, and a little askew
    cos, sin = math.cos(turn), math.sin(turn)
    for spot in found.values():
        x, y, z = spot.pos - origin
        spot.pos = np.array([cos * x - sin * y, sin * x + cos * y, z]) + move
        spot.yaw = turn + float(spot.config.get("z_rot", 0.0))
    return [spot for spot in found.values() if spot.carrier is not None or spot.type not in _BUILT_IN]


def _configs(rows: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key, row in rows.items():
        if key in _WHOLE or not isinstance(row, Sequence):
            continue
        for config in row:
            if config.get("enable", True) and "placement" not in config:
                yield config


def _size(config: Mapping[str, Any], found: Mapping[str, Spot]) -> np.ndarray:
    """Width, depth and height; what is left open grows with what is given."""
    kind = str(config["type"])
    given = config.get("size")
    if kind == "housing_cabinet":
        return _around(given, config, found)
    natural = NATURAL.get(kind)
    if given is None:
        return np.array(natural if natural is not None else _missing(kind))
    size = [found[v].size[i] if isinstance(v, str) else v for i, v in enumerate(given)]
    if config.get("stack_height") is not None:
        size[2] = config["stack_height"] - sum(found[name].size[2] for name in config.get("stack_fixtures", ()))
    if any(v is None or v < 0 for v in size):
        shape = natural if natural is not None else _missing(kind)
        share = [None if v is None or v < 0 else v / n for v, n in zip(size, shape, strict=True)]
        wide = share[0] or share[2] or share[1] or 1.0
        size = [wide * n if s is None else s * n for s, n in zip(share, shape, strict=True)]
        if kind in ("sink", "stovetop"):
            size[2] = shape[2]
    return np.array(size, float)


def _missing(kind: str) -> tuple[float, float, float]:
    raise ValueError(f"the size of a {kind} is not known")


def _around(given: Any, config: Mapping[str, Any], found: Mapping[str, Spot]) -> np.ndarray:
    """Of a housing: what is built in and the padding around it, where no size is given."""
    inner = found[config["interior_obj"]].size
    size = list(given) if given is not None else [None] * 3
    for i, (pad, room) in enumerate(zip(config["padding"], inner, strict=True)):
        if isinstance(word := size[i], str):
            size[i] = found[word].size[i]
        if size[i] is None:
            size[i] = room + sum(value or 0.0 for value in pad or (0.0, 0.0))
    return np.array(size, float)


def _put(spot: Spot, found: Mapping[str, Spot]) -> None:
    """Set where a fixture's middle is, and where that of what it has built in is."""
    config = spot.config
    if spot.type not in _BUILT_IN and (inner := config.get("interior_obj")) is not None:
        spot.inside = found[inner]
        spot.inside.carrier = spot
    if "align_to" in config:
        spot.pos = _beside(spot, found[config["align_to"]])
    elif "pos" in config:
        spot.pos = np.array(config["pos"], float)
    elif spot.type not in (*_BUILT_IN, "microwave", "oven") and not spot.type.startswith("fridge"):
        raise ValueError("it has neither pos nor align_to")
    if spot.inside is None:
        return
    if spot.type == "counter":
        _into_top(spot, spot.inside)
    else:
        _into_housing(spot, spot.inside)


def _beside(spot: Spot, other: Spot) -> np.ndarray:
    config = spot.config
    side, alignment = str(config["side"]).lower(), str(config.get("alignment", "")).lower()
    pos = other.pos.copy()
    for axis, (low, high) in enumerate(_AXES):
        reach = (other.size[axis] + spot.size[axis]) / 2
        flush = (other.size[axis] - spot.size[axis]) / 2
        if side in (low, high):
            pos[axis] += reach if side == high else -reach
        elif low in alignment or high in alignment:
            pos[axis] += -flush if low in alignment else flush
    return pos + np.array(config.get("offset", (0, 0, 0)), float)


def _into_top(counter: Spot, inner: Spot) -> None:
    for axis, key in ((0, "obj_x_percent"), (1, "obj_y_percent")):
        width, own = counter.size[axis], inner.size[axis]
        if own > width - 2 * _RIM:
            inner.size[axis] = own = width - 2 * _RIM
        most = 1 - (_RIM + own / 2) / width
        share = float(np.clip(counter.config.get(key, 0.5), 1 - most, most))
        inner.pos[axis] = counter.pos[axis] + (share - 0.5) * width
    inner.pos[2] = counter.pos[2] + counter.size[2] / 2 - inner.size[2] / 2


def _into_housing(housing: Spot, inner: Spot) -> None:
    for axis, pad in enumerate(housing.config["padding"]):
        low, high = pad or (None, None)
        rest = housing.size[axis] - inner.size[axis]
        if low is None:
            low = rest / 2 if high is None else rest - high
        inner.pos[axis] = housing.pos[axis] - housing.size[axis] / 2 + low + inner.size[axis] / 2
