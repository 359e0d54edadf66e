"""Floor plans: as a picture with where a robot can drive, and its way; and as a drawing of walls and furniture, with
where in it places are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import mujoco
import numpy as np

from manikin.homes.apartment import Apartment, Fixture, Mechanism
from manikin.homes.footprints import outlines
from manikin.homes.free_space import CELL, FreeSpace
from manikin.homes.furnish import furnish
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics

__all__ = ["FloorPlan", "drawn_plan", "floor_plan"]

_TAKEN, _TIGHT, _FREE, _APART = (70, 74, 82), (190, 194, 200), (245, 246, 242), (224, 214, 190)
_WAY, _END = (214, 69, 49), (32, 96, 180)
_FLOOR, _WALL, _FIXTURE, _MECHANISM, _EDGE, _WORD = "#f6f4ee", "#4a505a", "#dccfb8", "#c3cfd9", "#8d8678", "#5d5749"
_SCALE = 50.0  # [pixels/m] of a drawing
_MARGIN = 0.2  # [m] of a drawing around the floor; walls stand there
_LOW, _HIGH = 0.02, 1.3  # [m] what is between these heights is drawn: cupboards on the wall hang above
_FONT, _LETTER = 1 / 40, 0.5  # height of words, as a share of the drawing's width; and width of a letter, of that


@dataclass(frozen=True)
class FloorPlan:
    """A drawing of an apartment seen from above, x to the right and y up, and where in it places are.

    Attributes:
        svg: the drawing.
        corner: x and y of its upper left corner [m].
        size: its width and height [pixels].
        scale: [pixels/m].
    """

    svg: str
    corner: tuple[float, float]
    size: tuple[float, float]
    scale: float

    def at(self, points: np.ndarray) -> np.ndarray:
        """(n, 2) pixels from the upper left corner, to the right and down, of places (n, 2) in the world [m]."""
        return np.asarray((np.asarray(points, float) - self.corner) * (self.scale, -self.scale))


def drawn_plan(apartment: Apartment) -> FloorPlan:
    """Walls and furniture of an apartment, its doors and drawers shut, with the kinds of what is large."""
    b = SceneBuilder([], Physics())
    furnish(b, apartment)
    model = b.compile().model
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    (x0, y0), (x1, y1) = apartment.low, apartment.high
    corner, size = (x0 - _MARGIN, y1 + _MARGIN), ((x1 - x0 + 2 * _MARGIN) * _SCALE, (y1 - y0 + 2 * _MARGIN) * _SCALE)
    plan = FloorPlan("", corner, size, _SCALE)
    everything: tuple[Fixture | Mechanism, ...] = (*apartment.fixtures, *apartment.mechanisms)
    things = {one.name: one for one in everything}
    pieces: dict[str, list[np.ndarray]] = {}
    tops: dict[str, float] = {}
    for g, polygon in outlines(model, data, low=_LOW, high=_HIGH).items():
        body = model.body(model.geom_bodyid[g]).name
        name = next((name for name in things if body == name or body.startswith(f"{name}/")), "")  # else a wall
        pieces.setdefault(name, []).append(plan.at(polygon))
        tops[name] = max(tops.get(name, 0.0), float(data.geom_xpos[g, 2]))
    order = sorted(pieces, key=lambda name: (name == "", tops[name]))  # a table is above its chairs
    shapes, words = [], _Words(size[0] * _FONT)
    for name in order:
        one = things.get(name)
        colour = _WALL if one is None else _MECHANISM if isinstance(one, Mechanism) else _FIXTURE
        edge = colour if one is None else _EDGE
        path = "".join(f"M{' '.join(f'{u:.1f},{v:.1f}' for u, v in polygon)}Z" for polygon in pieces[name])
        shapes.append(f'<path d="{path}" fill="{colour}" stroke="{edge}" stroke-width="0.8"/>')
        if one is not None:
            words.add(one.kind.replace("_", " "), np.concatenate(pieces[name]))
    width, height = (f"{side:.1f}" for side in size)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<rect width="{width}" height="{height}" fill="{_FLOOR}"/>{"".join(shapes)}{"".join(words.drawn)}</svg>'
    )
    return replace(plan, svg=svg)


class _Words:
    """Words in a drawing, none on another."""

    def __init__(self, height: float) -> None:
        self._height = height  # [pixels]
        self._taken: list[np.ndarray] = []  # (2, 2) of each its lowest and highest corner
        self.drawn: list[str] = []

    def add(self, word: str, points: np.ndarray) -> None:
        """A word in the middle of what points (n, 2) [pixels] enclose, along its longer side; nothing where it is too
        small."""
        low, high = points.min(0), points.max(0)
        middle, room = (low + high) / 2, high - low
        length = len(word) * self._height * _LETTER
        upright = length > room[0]
        needs = np.array([self._height, length] if upright else [length, self._height])
        box = np.stack([middle - needs / 2, middle + needs / 2])
        if (needs > room).any() or any(
            (box[0] < other[1]).all() and (box[1] > other[0]).all() for other in self._taken
        ):
            return
        self._taken.append(box)
        u, v = middle
        turn = f' transform="rotate(-90 {u:.1f} {v:.1f})"' if upright else ""
        self.drawn.append(
            f'<text x="{u:.1f}" y="{v:.1f}" fill="{_WORD}" font-family="sans-serif" font-size="{self._height:.1f}" '
            f'text-anchor="middle" dominant-baseline="central"{turn}>{escape(word)}</text>'
        )


def floor_plan(free: FreeSpace, *, path: np.ndarray | None = None, scale: int = 2) -> np.ndarray:
    """The plan seen from above, x to the right and y up.

    Dark is what stands in the way, grey where the robot would touch it, white where the robot can drive, yellow where
    it fits and cannot get to.

    Args:
        free: the map.
        path: (k, 2) corners of a way [m], drawn in red with blue ends.
        scale: pixels per cell, each way.

    Returns:
        (H, W, 3) uint8.
    """
    image = np.empty((*free.clearance.shape, 3), np.uint8)
    image[:] = _TAKEN
    for where, colour in ((free.clearance > 0, _TIGHT), (free.clearance >= free.radius, _APART), (free.inside, _FREE)):
        image[where] = colour
    image = image.repeat(scale, 0).repeat(scale, 1)
    if path is not None:
        for a, b in itertools.pairwise(path):
            count = int(np.linalg.norm(b - a) / CELL * scale * 2) + 2
            for point in np.linspace(a, b, count):
                _dot(image, free, point, scale, 1.0, _WAY)
        for end in (path[0], path[-1]):
            _dot(image, free, end, scale, 4.0, _END)
    return np.ascontiguousarray(image.swapaxes(0, 1)[::-1])


def _dot(
    image: np.ndarray, free: FreeSpace, point: Sequence[float], scale: int, radius: float, colour: Sequence[int]
) -> None:
    x, y = (np.subtract(point, free.origin) / CELL + 0.5) * scale
    reach = int(radius * scale / 2)
    image[max(0, int(x) - reach) : int(x) + reach + 1, max(0, int(y) - reach) : int(y) + reach + 1] = colour
