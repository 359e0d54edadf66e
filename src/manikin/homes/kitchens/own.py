"""The built-in kitchens: along one wall, round a corner, between two walls, with an island. Sizes are chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from manikin.errors import UnknownNameError
from manikin.homes.apartment import Apartment
from manikin.homes.kitchens.assemble import Colours, assembled

__all__ = ["KITCHENS", "kitchen"]

KITCHENS = ("kitchen0", "kitchen1", "kitchen2", "kitchen3")
"""Names of the built-in kitchens."""

_TALL, _DEEP, _PLINTH = 0.92, 0.65, 0.05  # [m] of a counter, and of its plinth
_UP, _LONG, _FLAT = 1.39, 0.8, 0.38  # [m] wall cabinets: where they begin, height, depth
_COLOURS = (
    Colours(),
    Colours(front=(0.42, 0.52, 0.48, 1), top=(0.82, 0.8, 0.76, 1), base=(0.42, 0.52, 0.48, 1)),
    Colours(front=(0.3, 0.36, 0.46, 1), top=(0.55, 0.4, 0.27, 1), base=(0.3, 0.36, 0.46, 1)),
    Colours(front=(0.72, 0.56, 0.4, 1), base=(0.72, 0.56, 0.4, 1), wall=(0.86, 0.88, 0.87, 1)),
)
_Low = Sequence[tuple[str, float]]
_High = Sequence[tuple[str, float, float]]


def kitchen(name: str = "kitchen0") -> Apartment:
    """A built-in kitchen.

    Raises:
        UnknownNameError: none of :data:`KITCHENS`.
    """
    if name not in KITCHENS:
        raise UnknownNameError("built-in kitchen", name, KITCHENS)
    number = KITCHENS.index(name)
    return assembled(name, _LAYOUTS[number], _COLOURS[number])


def _row(low: _Low, high: _High = (), *, at: tuple[float, float] = (0, 0), turn: float = 0.0) -> dict[str, Any]:
    """Fixtures along a wall, from left to right.

    Args:
        low: what stands on the floor, and its width: ``drawers``, ``doors``, ``sink``, ``dishwasher``, ``stove``,
            ``fridge``, ``gap``. A worktop lies on what is no stove, fridge or gap.
        high: what hangs on the wall, where it begins and its width: ``left`` and ``right``, a door hinged there,
            ``doors``, ``shelves``, ``hood``, ``microwave`` with a cabinet above.
        at: where the wall begins on the floor [m].
        turn: of the wall about z [rad].
    """
    rows: list[dict[str, Any]] = []
    tops: list[tuple[float, float, float | None]] = []  # begin, end, middle of a sink
    x = 0.0
    for k, (kind, width) in enumerate(low):
        middle, name = x + width / 2, f"{kind}{k}"
        levels = {"drawers": ["drawer"] * 3, "doors": ["hinge_cabinet", "drawer"],
                  "sink": ["hinge_cabinet", "panel_cabinet"]}.get(kind)  # fmt: skip
        if levels:
            shares = [1 / 3] * 3 if kind == "drawers" else [0.72, 0.28]
            rows.append({"name": name, "type": "stack", "levels": levels, "percentages": shares,
                         "size": [width, 0.6, 0.84], "pos": [middle, -0.3, _PLINTH + 0.42]})  # fmt: skip
        elif kind == "dishwasher":
            rows.append({"name": name, "type": kind, "size": [width, 0.6, 0.88], "pos": [middle, -0.3, 0.44]})
        elif kind == "stove":
            rows.append({"name": kind, "type": kind, "size": [width, 0.66, _TALL], "pos": [middle, -0.33, _TALL / 2]})
        elif kind == "fridge":
            rows.append({"name": kind, "type": "fridge_bottom_freezer", "size": [width, 0.72, 1.8],
                         "pos": [middle, -0.36, 0.9]})  # fmt: skip
        if levels or kind == "dishwasher":
            basin = middle if kind == "sink" else None
            if tops and abs(tops[-1][1] - x) < 1e-6:
                tops[-1] = (tops[-1][0], x + width, tops[-1][2] if basin is None else basin)
            else:
                tops.append((x, x + width, basin))
        x += width
    for k, (begin, end, basin) in enumerate(tops):
        top: dict[str, Any] = {"name": f"counter{k}", "type": "counter", "size": [end - begin, _DEEP, _TALL],
               "pos": [(begin + end) / 2, -_DEEP / 2, _TALL / 2]}  # fmt: skip
        if basin is not None:
            rows.append({"name": "sink", "type": "sink", "size": [0.7, 0.5, None]})
            top |= {"interior_obj": "sink", "obj_x_percent": (basin - begin) / (end - begin), "obj_y_percent": 0.4}
        rows.append(top)
    for k, (kind, begin, width) in enumerate(high):
        rows += _hung(f"{kind}_up{k}", kind, begin + width / 2, width)
    return {"row": rows, "group_origin": [0, 0], "group_pos": list(at), "group_z_rot": turn}


def _hung(name: str, kind: str, middle: float, width: float) -> list[dict[str, Any]]:
    at = [middle, -_FLAT / 2, _UP + _LONG / 2]
    size = [width, _FLAT, _LONG]
    if kind in ("left", "right"):
        return [{"name": name, "type": "single_cabinet", "orientation": kind, "size": size, "pos": at}]
    if kind == "doors":
        return [{"name": name, "type": "hinge_cabinet", "size": size, "pos": at}]
    if kind == "shelves":
        return [{"name": name, "type": "open_cabinet", "num_levels": 3, "size": size, "pos": at}]
    if kind == "hood":
        return [{"name": name, "type": "hood", "size": [width, 0.48, 0.6], "pos": [middle, -0.24, 1.85]}]
    oven, deep = 0.4, 0.44
    rest = _LONG - oven
    return [
        {"name": "microwave", "type": kind, "size": [width, deep, oven], "pos": [middle, -deep / 2, _UP + oven / 2]},
        {"name": name, "type": "hinge_cabinet", "size": [width, _FLAT, rest],
         "pos": [middle, -_FLAT / 2, _UP + _LONG - rest / 2]},
    ]  # fmt: skip


def _room(width: float, depth: float) -> dict[str, Any]:
    """Four walls; the first row's wall is at y = 0, the room before it."""
    tall = 1.3
    walls = [
        {"name": "back", "type": "wall", "size": [width / 2, tall, 0.02], "pos": [width / 2, 0, tall]},
        {"name": "front", "type": "wall", "size": [width / 2, tall, 0.02], "pos": [width / 2, -depth, tall],
         "wall_side": "front"},
        {"name": "left", "type": "wall", "size": [depth / 2, tall, 0.02], "pos": [0, -depth / 2, tall],
         "wall_side": "left"},
        {"name": "right", "type": "wall", "size": [depth / 2, tall, 0.02], "pos": [width, -depth / 2, tall],
         "wall_side": "right"},
    ]  # fmt: skip
    return {"walls": walls}


_QUARTER = math.pi / 2
_LAYOUTS: tuple[Mapping[str, Any], ...] = (
    {
        "room": _room(4.6, 3.2),
        "main": _row(
            [("gap", 0.3), ("drawers", 0.6), ("sink", 0.9), ("dishwasher", 0.6), ("stove", 0.76), ("drawers", 0.5),
             ("fridge", 0.7)],
            [("left", 0.3, 0.5), ("doors", 0.8, 1.0), ("right", 1.8, 0.6), ("microwave", 2.4, 0.76),
             ("shelves", 3.16, 0.5)],
        ),
    },
    {
        "room": _room(4.2, 3.8),
        "main": _row(
            [("gap", 0.66), ("sink", 0.9), ("drawers", 0.7), ("stove", 0.76), ("drawers", 0.6)],
            [("left", 0.66, 0.55), ("doors", 1.21, 1.05), ("microwave", 2.26, 0.76), ("left", 3.02, 0.6)],
        ),
        "left": _row(
            [("fridge", 0.7), ("dishwasher", 0.6), ("doors", 0.8)], [("left", 0.7, 0.6), ("doors", 1.3, 0.8)],
            at=(0.0, -2.8), turn=_QUARTER,
        ),
    },
    {
        "room": _room(3.6, 3.4),
        "main": _row(
            [("gap", 0.3), ("drawers", 0.5), ("stove", 0.76), ("drawers", 0.8), ("fridge", 0.7)],
            [("left", 0.3, 0.5), ("microwave", 0.8, 0.76), ("shelves", 1.56, 0.3), ("right", 1.86, 0.5)],
        ),
        "front": _row(
            [("doors", 0.9), ("sink", 0.9), ("dishwasher", 0.6), ("drawers", 0.6)],
            [("left", 0.0, 0.5), ("shelves", 0.5, 0.8)],
            at=(3.3, -3.4), turn=2 * _QUARTER,
        ),
    },
    {
        "room": _room(5.0, 4.4),
        "main": _row(
            [("gap", 0.2), ("fridge", 0.75), ("drawers", 0.7), ("stove", 0.76), ("doors", 0.9), ("drawers", 0.6)],
            [("left", 1.05, 0.6), ("microwave", 1.65, 0.76), ("doors", 2.41, 0.9), ("left", 3.31, 0.6)],
        ),
        "island": _row(
            [("drawers", 0.5), ("sink", 0.9), ("dishwasher", 0.6)], at=(3.4, -3.0), turn=2 * _QUARTER
        ),
    },
)  # fmt: skip
