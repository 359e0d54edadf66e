"""The built-in apartment: a kitchen and a living room from primitives, another one for every seed."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from typing import Protocol, TypeVar

import torch

from manikin.errors import ConfigError
from manikin.homes.apartment import Apartment, Fixture, Mechanism
from manikin.homes.furniture import chair, rug, shelf, sofa, table, tv_stand
from manikin.homes.joinery import chest, counter, cupboard, fridge
from manikin.rng import EpisodeRng
from manikin.spec.links import RGBA
from manikin.spec.prop import Shape

__all__ = ["VARIATIONS", "apartment"]

VARIATIONS = 8
"""Seeds 0 to 7 are looked at; geometry and map of 0 to 11 are tested; others are made in the same way."""

_HEIGHT, _WALL = 2.4, 0.05  # [m] of walls, half thickness
_FRONTS: tuple[RGBA, ...] = ((0.9, 0.89, 0.85, 1), (0.45, 0.55, 0.5, 1), (0.3, 0.36, 0.46, 1), (0.72, 0.56, 0.4, 1))
_TOPS: tuple[RGBA, ...] = ((0.35, 0.34, 0.33, 1), (0.82, 0.8, 0.76, 1), (0.5, 0.36, 0.24, 1))
_WOODS: tuple[RGBA, ...] = ((0.62, 0.47, 0.33, 1), (0.42, 0.29, 0.2, 1), (0.8, 0.7, 0.55, 1), (0.88, 0.87, 0.84, 1))
_CLOTHS: tuple[RGBA, ...] = ((0.35, 0.42, 0.5, 1), (0.55, 0.32, 0.28, 1), (0.4, 0.45, 0.34, 1), (0.6, 0.57, 0.52, 1))
T = TypeVar("T", Fixture, Mechanism)


class _Draw:
    """One apartment's random numbers, each from a stream of its own."""

    def __init__(self, seed: int) -> None:
        self._rng = EpisodeRng(torch.tensor([seed], device="cpu"), torch.tensor([0], device="cpu"))

    def between(self, name: str, low: float, high: float) -> float:
        """A length in centimetres [m], which is easier to read in a model than one drawn bit for bit."""
        return round(float(self._rng.uniform(name, low, high)[0]), 2)

    def one_of(self, name: str, *options: RGBA) -> RGBA:
        return options[int(self._rng.integers(name, 0, len(options))[0])]

    def number(self, name: str, low: int, high: int) -> int:
        """A whole number, ``high`` included."""
        return int(self._rng.integers(name, low, high + 1)[0])


class _Place(Protocol):
    """Puts furniture where it stands: x, y [m] and yaw [rad]."""

    def __call__(self, thing: T, x: float, y: float, yaw: float, /) -> T: ...


def _at(thing: T, x: float, y: float, yaw: float) -> T:
    return replace(thing, pos=(x, y, 0.0), quat=(math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)))


def apartment(seed: int = 0) -> Apartment:
    """The built-in apartment of a seed.

    The kitchen is at x > 0 for even seeds and at x < 0 for odd ones. The rest is drawn: sizes of rooms, doorway, order
    of fridge and counter, modules of the counter, table and chairs, which side the sofa is on, a chest or a shelf.

    Args:
        seed: a whole number from 0 on.

    Raises:
        ConfigError: the seed is no whole number, is below 0, or has more than 63 bits.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 2**63:
        raise ConfigError(f"an apartment's seed is a whole number from 0 on, with at most 63 bits, not {seed!r}")
    seed = number
    draw = _Draw(seed)
    side = 1.0 if seed % 2 == 0 else -1.0
    kitchen, living = draw.between("kitchen", 4.2, 4.8), draw.between("living", 3.8, 4.6)
    depth = draw.between("depth", 4.8, 5.6)

    def place(thing: T, x: float, y: float, yaw: float, /) -> T:
        """``x`` counts from the wall between the rooms into the kitchen; an odd apartment turns that round."""
        return _at(thing, side * x, y, yaw if side > 0 else math.pi - yaw)

    fixtures, mechanisms = [], _kitchen(draw, place, kitchen, depth)
    fixtures += _dining(draw, place, kitchen)
    more, mechanism = _living(draw, place, living, depth)
    fixtures += more
    mechanisms += mechanism
    low, high = (-living, kitchen) if side > 0 else (-kitchen, living)
    x, y, size = (low + high) / 2, depth / 2, max(high - low, depth)
    return Apartment(
        name=f"apartment{seed}",
        low=(low, 0.0),
        high=(high, depth),
        walls=_walls(draw, low, high, depth),
        fixtures=tuple(fixtures),
        mechanisms=tuple(mechanisms),
        view=((x, y - 0.25 * size, 1.05 * size), (x, y, 0.0)),  # as tasks of released versions show it
    )


def _walls(draw: _Draw, low: float, high: float, depth: float) -> tuple[Shape, ...]:
    """Four outer walls, and one between the rooms with a doorway."""
    middle, wide = draw.between("doorway", 2.45, 2.65), draw.between("doorway width", 1.2, 1.5)

    def block(x0: float, x1: float, y0: float, y1: float) -> Shape:
        half = ((x1 - x0) / 2, (y1 - y0) / 2, _HEIGHT / 2)
        return Shape(type="box", size=half, pos=((x0 + x1) / 2, (y0 + y1) / 2, _HEIGHT / 2))

    t = 2 * _WALL
    return (
        block(low - t, high + t, -t, 0.0),
        block(low - t, high + t, depth, depth + t),
        block(low - t, low, 0.0, depth),
        block(high, high + t, 0.0, depth),
        block(-_WALL, _WALL, 0.0, middle - wide / 2),
        block(-_WALL, _WALL, middle + wide / 2, depth),
    )


def _kitchen(draw: _Draw, place: _Place, kitchen: float, depth: float) -> list[Mechanism]:
    """Fridge, counter and cupboard along the wall at y = depth."""
    front, top = draw.one_of("front", *_FRONTS), draw.one_of("top", *_TOPS)
    modules: list[str] = ["drawers", "drawer_over_door", "panel"][: draw.number("modules", 2, 3)]
    modules.insert(draw.number("sink", 1, len(modules) - 1), "sink")
    if draw.number("order", 0, 1):
        modules.reverse()
    modules.append("drawers" if len(modules) < 4 else "drawer_over_door")
    width, count = draw.between("module", 0.55, 0.62), len(modules)
    cold = 0.68
    run = cold + 0.04 + count * width
    begin = draw.between("kitchen begin", 0.35, max(0.36, kitchen - run - 0.3))
    first = bool(draw.number("fridge first", 0, 1))
    fridge_x = begin + cold / 2 if first else begin + run - cold / 2
    counter_x = begin + cold + 0.04 + count * width / 2 if first else begin + count * width / 2
    down = -math.pi / 2
    doors = max(2, count - 1)
    fridge_hinge = 1.0 if draw.number("hinge", 0, 1) else -1.0
    return [
        place(fridge("fridge", width=cold, hinge=fridge_hinge), fridge_x, depth - 0.33, down),
        place(counter("counter", modules, width=width, front=front, top=top), counter_x, depth - 0.31, down),
        place(cupboard("cupboard", doors, width=width, front=front), counter_x, depth - 0.17, down),
    ]


def _dining(draw: _Draw, place: _Place, kitchen: float) -> list[Fixture]:
    """A table with two to four chairs, near the wall at y = 0."""
    wood = draw.one_of("wood", *_WOODS)
    half = (draw.between("table x", 0.55, 0.75), draw.between("table y", 0.38, 0.45))
    x, y = kitchen - draw.between("table from wall", 1.5, 1.7), draw.between("table at", 1.2, 1.35)
    out = [place(table("table", half=half, rgba=wood), x, y, 0.0)]
    seats = [(sx * half[0] * 0.5, sy) for sy in (1, -1) for sx in (-1, 1)]
    for i, (dx, s) in enumerate(seats[: draw.number("chairs", 2, 4)]):
        turn = draw.between(f"chair {i}", -0.15, 0.15)
        out.append(place(chair(f"chair{i}", rgba=wood), x + dx, y + s * (half[1] + 0.28), -s * math.pi / 2 + turn))
    return out


def _living(draw: _Draw, place: _Place, living: float, depth: float) -> tuple[list[Fixture], list[Mechanism]]:
    """Sofa and TV stand opposite each other, a low table between them, a chest or a shelf at the far wall."""
    wood, cloth = draw.one_of("living wood", *_WOODS), draw.one_of("cloth", *_CLOTHS)
    x = -draw.between("sofa at", living / 2 - 0.1, living / 2 + 0.2)
    up, down = math.pi / 2, -math.pi / 2
    screen_low = bool(draw.number("screen", 0, 1))
    stand_y, sofa_y = (0.24, depth - 0.47) if screen_low else (depth - 0.24, 0.47)
    low_y = (sofa_y - 1.25) if screen_low else (sofa_y + 1.25)
    fixtures = [
        place(rug("rug", half=(1.1, 0.8), rgba=(*cloth[:3], 1.0)), x, low_y, 0.0),
        place(
            sofa("sofa", half_width=draw.between("sofa", 0.85, 1.05), rgba=cloth), x, sofa_y, down if screen_low else up
        ),
        place(tv_stand("tv_stand", rgba=wood), x, stand_y, up if screen_low else down),
        place(table("low_table", half=(0.45, 0.27), height=0.42, rgba=wood, kind="low_table"), x, low_y, 0.0),
    ]
    far, along = -living, draw.between("chest at", depth / 2 - 0.3, depth / 2 + 0.3)
    if draw.number("shelf", 0, 1):
        fixtures.append(place(shelf("shelf", rgba=wood), far + 0.16, along, 0.0))
        return fixtures, []
    return fixtures, [place(chest("chest", draw.number("drawers", 3, 4), front=wood), far + 0.23, along, 0.0)]
