"""Flat pieces of many shapes, and blocks with a recess for each.

ManiSkill3's kits are scanned toys whose files are not part of manikin. These are a parametric family instead: every
piece is a prism on one of the outlines below, and a recess is its outline grown by a clearance, built of convex parts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from manikin.errors import UnknownNameError
from manikin.props.insertion.outlines import Outline, Point, best_grip, centred, convex_parts, grown
from manikin.spec.prop import Mesh, Prop, Shape

__all__ = ["DEPTH", "HEIGHT", "SHAPES", "TILE", "WOOD", "KitShape", "inlay", "kit_shape", "piece", "recess"]

HEIGHT = 0.025  # [m] of a piece
DEPTH = 0.008  # [m] of a recess
TILE = 0.06  # [m] half the side of the block around a recess
REACH = 0.036  # [m] from the middle of a piece to its farthest corner, at most
_WIDEST = 0.07  # [m] that the gripper takes
WOOD = (0.42, 0.33, 0.27, 1.0)
_ROUND = 16  # sides of a disc


@dataclass(frozen=True)
class KitShape:
    """A shape of the family.

    Attributes:
        outline: corners [m] about the middle of its area.
        order: how often it looks the same in a full turn; 0 for a disc.
        number: in :data:`SHAPES`.
    """

    outline: Outline
    order: int
    number: int

    @property
    def period(self) -> float:
        """[rad] by which it can be turned and look the same; 0 for a disc."""
        return 2 * math.pi / self.order if self.order else 0.0

    @functools.cached_property
    def grip(self) -> tuple[Point, float]:
        """Where the fingers take it (x, y) [m], and the direction [rad] in which they close."""
        return best_grip(self.outline, _WIDEST)

    @property
    def rgba(self) -> tuple[float, float, float, float]:
        """Neighbours in number differ in hue."""
        hue = (0.618034 * self.number) % 1.0
        channels = [0.45 + 0.4 * math.cos(2 * math.pi * (hue - k / 3)) for k in range(3)]
        return channels[0], channels[1], channels[2], 1.0


def kit_shape(name: str) -> KitShape:
    """The shape of this name. Raises :class:`UnknownNameError` listing all of :data:`SHAPES`."""
    if name not in _FAMILY:
        raise UnknownNameError("shape of a kit", name, SHAPES)
    return _shape(name)


@functools.cache
def _shape(name: str) -> KitShape:
    corners, order = _FAMILY[name]
    outline = centred([(1e-3 * x, 1e-3 * y) for x, y in corners])
    scale = min(1.0, REACH / max(math.hypot(x, y) for x, y in outline))
    return KitShape(tuple((scale * x, scale * y) for x, y in outline), order, SHAPES.index(name))


def piece(name: str) -> Prop:
    """The piece; its origin is the middle of its bottom."""
    shape = kit_shape(name)
    inside, _ = convex_parts(shape.outline, _square(REACH * 2))
    shapes = tuple(_prism(f"kit/{name}/piece{k}", part, 0.0, HEIGHT, shape.rgba) for k, part in enumerate(inside))
    return Prop(name=name, shapes=shapes, source="manikin.props.insertion.kit")


def recess(name: str, clearance: float) -> Prop:
    """A block with a recess that is wider than the piece by ``clearance`` [m] on each side and open at the bottom; the
    origin is the middle of the recess, at the bottom."""
    shape = kit_shape(name)
    grow = clearance
    if not shape.order:  # a disc fits however it is turned: the sides touch the circle through its corners
        far = max(math.hypot(x, y) for x, y in shape.outline)
        grow = far + clearance - far * math.cos(math.pi / len(shape.outline))
    _, outside = convex_parts(grown(shape.outline, grow), _square(TILE))
    word = f"kit/{name}/recess{round(1e6 * clearance)}"
    shapes = tuple(_prism(f"{word}/{k}", part, 0.0, DEPTH, WOOD) for k, part in enumerate(outside))
    return Prop(name=name, shapes=shapes, mass=0.1, source="manikin.props.insertion.kit")


def inlay(name: str) -> Prop:
    """What is seen of a piece in its recess in a solid board: its outline, level with the board. It meets nothing: what
    collides is a small box at the origin, to be put under the board."""
    shape = kit_shape(name)
    inside, _ = convex_parts(shape.outline, _square(REACH * 2))
    looks = tuple(_prism(f"kit/{name}/inlay{k}", part, 0.0, DEPTH, shape.rgba) for k, part in enumerate(inside))
    return Prop(name=name, shapes=(Shape(type="box", size=(1e-3,) * 3),), looks=looks, mass=0.1)


def _square(half: float) -> list[Point]:
    return [(-half, -half), (half, -half), (half, half), (-half, half)]


def _prism(name: str, part: Outline, low: float, high: float, rgba: tuple[float, float, float, float]) -> Shape:
    """A convex part between two heights; a box where it is an upright rectangle."""
    (x0, x1), (y0, y1) = ((min(values), max(values)) for values in zip(*part, strict=True))
    if len(part) == 4 and all(min(x - x0, x1 - x) < 1e-7 and min(y - y0, y1 - y) < 1e-7 for x, y in part):
        size, pos = ((x1 - x0) / 2, (y1 - y0) / 2, (high - low) / 2), ((x0 + x1) / 2, (y0 + y1) / 2, (low + high) / 2)
        return Shape(type="box", size=size, pos=pos, rgba=rgba)
    points = tuple(round(v, 9) for z in (low, high) for x, y in part for v in (x, y, z))
    return Shape(type="mesh", mesh=Mesh(name=name, points=points), rgba=rgba)


# ---- the family, in millimetres ------------------------------------------------------------------------------------


def _polar(radius: float, degrees: float) -> Point:
    return radius * math.cos(math.radians(degrees)), radius * math.sin(math.radians(degrees))


def _arc(radius: float, begin: float, end: float, count: int, at: Point = (0.0, 0.0)) -> list[Point]:
    """``count`` points from one angle to the other [deg], both included."""
    points = (_polar(radius, begin + (end - begin) * k / (count - 1)) for k in range(count))
    return [(at[0] + x, at[1] + y) for x, y in points]


def _regular(n: int, radius: float) -> list[Point]:
    return [_polar(radius, 360 * (k + 0.5) / n) for k in range(n)]


def _star(n: int, radius: float, inner: float) -> list[Point]:
    return [_polar(inner if k % 2 else radius, 180 * k / n) for k in range(2 * n)]


def _box(x: float, y: float) -> list[Point]:
    return [(-x, -y), (x, -y), (x, y), (-x, y)]


def _steps(*rows: tuple[float, float, float, float]) -> list[Point]:
    """The outline of rows of rectangles (low y, high y, low x, high x), stacked from below."""
    right = [p for low, high, _, x in rows for p in ((x, low), (x, high))]
    left = [p for low, high, x, _ in reversed(rows) for p in ((x, high), (x, low))]
    points = [p for k, p in enumerate(right + left) if p != (right + left)[k - 1]]
    around = zip([points[-1], *points], points, [*points[1:], points[0]], strict=False)
    return [b for a, b, c in around if not (a[0] == b[0] == c[0] or a[1] == b[1] == c[1])]


def _ellipse(a: float, b: float) -> list[Point]:
    return [(a * x, b * y) for x, y in _regular(16, 1.0)]


_U = [(-26, -26), (26, -26), (26, 26), (10, 26), (10, -8), (-10, -8), (-10, 26), (-26, 26)]
_H = [(-26, -28), (-10, -28), (-10, -8), (10, -8), (10, -28), (26, -28)]
_HEART = [*_arc(14.5, -20, 150, 7, (13, 10)), *_arc(14.5, 30, 200, 7, (-13, 10)), (0, -30)]

_FAMILY: dict[str, tuple[Sequence[Point], int]] = {
    "disc": (_regular(_ROUND, 28), 0),
    "square": (_box(24, 24), 4),
    "rectangle": (_box(32, 16), 2),
    "triangle": (_regular(3, 34), 3),
    "pentagon": (_regular(5, 32), 5),
    "hexagon": (_regular(6, 31), 6),
    "octagon": (_regular(8, 31), 8),
    "star4": (_star(4, 35, 16), 4),
    "star5": (_star(5, 35, 17), 5),
    "star6": (_star(6, 35, 21), 6),
    "cross": (_steps((-30, -10, -10, 10), (-10, 10, -30, 30), (10, 30, -10, 10)), 4),
    "L": (_steps((-26, -6, -22, 26), (-6, 32, -22, -2)), 1),
    "T": (_steps((-30, 8, -9, 9), (8, 26, -28, 28)), 1),
    "S": (_steps((-18, 0, -30, 12), (0, 18, -12, 30)), 2),
    "U": (_U, 1),
    "H": ([*_H, *((-x, -y) for x, y in _H)], 2),
    "stairs": (_steps((-26, -9, -27, 27), (-9, 8, -27, 9), (8, 25, -27, -9)), 1),
    "diamond": ([(34, 0), (0, 21), (-34, 0), (0, -21)], 2),
    "parallelogram": ([(-32, -16), (16, -16), (32, 16), (-16, 16)], 2),
    "trapezium": ([(-31, -18), (31, -18), (16, 18), (-16, 18)], 1),
    "house": ([(-22, -26), (22, -26), (22, 6), (0, 28), (-22, 6)], 1),
    "arrow": ([(-32, -9), (0, -9), (0, -25), (30, 0), (0, 25), (0, 9), (-32, 9)], 1),
    "half_disc": (_arc(33, -90, 90, 13), 1),
    "ring_sector": ([*_arc(44, 40, 140, 9), *_arc(22, 140, 40, 6)], 1),
    "ellipse": (_ellipse(34, 20), 2),
    "heart": (_HEART, 1),
}
SHAPES = tuple(_FAMILY)
"""Names of all shapes."""
