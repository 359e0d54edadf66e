"""Outlines of flat shapes: what is inside and outside of them in convex parts, and how two jaws can take them.

An outline is a simple polygon, its corners (x, y) [m] one after another, counterclockwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["Outline", "area", "best_grip", "centred", "convex_parts", "grown"]

Point = tuple[float, float]
Outline = tuple[Point, ...]
_LEAST = 2e-7  # [m^2] parts smaller than this are left out
_ON = 1e-7  # [m] on a line
_PAD = 0.0115  # [m] half the width of a jaw, and a little
_NEAR = 0.0015  # [m] a jaw that touches no nearer to its middle sits in a notch
_TOUCH = 1.5e-4  # [m] how far inside the first contact a jaw counts as touching


def area(outline: Sequence[Point]) -> float:
    """[m^2], positive for a counterclockwise outline."""
    return sum(_cross(a, b) for a, b in _edges(outline)) / 2


def centred(outline: Sequence[Point]) -> Outline:
    """The outline, moved so that the middle of its area is the origin."""
    size = 6 * area(outline)
    x = sum((a[0] + b[0]) * _cross(a, b) for a, b in _edges(outline)) / size
    y = sum((a[1] + b[1]) * _cross(a, b) for a, b in _edges(outline)) / size
    return tuple((px - x, py - y) for px, py in outline)


def grown(outline: Sequence[Point], by: float) -> Outline:
    """The outline with every side moved outwards ``by`` [m]."""
    lines = []
    for (ax, ay), (bx, by_) in _edges(outline):
        length = math.hypot(bx - ax, by_ - ay)
        nx, ny = (by_ - ay) / length, (ax - bx) / length  # outwards
        lines.append((nx, ny, nx * ax + ny * ay + by))
    out = []
    for (a, b, c), (d, e, f) in zip([lines[-1], *lines[:-1]], lines, strict=True):
        det = a * e - b * d
        out.append(((c * e - b * f) / det, (a * f - c * d) / det))
    return tuple(out)


def convex_parts(outline: Sequence[Point], frame: Sequence[Point]) -> tuple[list[Outline], list[Outline]]:
    """Convex parts of what is inside the outline, and of what is outside of it but inside the convex ``frame``."""
    parts: tuple[list[Outline], list[Outline]] = ([], [])

    def divide(cell: list[Point], edges: list[tuple[Point, Point]]) -> None:
        a, b = min(edges, key=lambda edge: _cost(edge, edges))
        for inside in (True, False):
            sign = 1.0 if inside else -1.0
            piece = _kept(cell, a, b, sign)
            rest = [e for e in (_clipped(edge, a, b, sign) for edge in edges) if e is not None]
            if len(piece) < 3 or area(piece) < _LEAST:
                continue
            if rest:
                divide(piece, rest)
            else:  # no side runs through it, so it is all on one side of this one
                parts[0 if inside else 1].append(tuple(piece))

    divide(list(frame), _edges(outline))
    return parts


def best_grip(outline: Sequence[Point], widest: float) -> tuple[Point, float]:
    """Where two flat jaws take the shape, and the direction [rad] in which they close.

    Of all directions square to a side or through a corner the one where most of both jaws touches, near the middle of
    the shape, and rather flat on a side than in a notch.

    Raises:
        ValueError: no such place is narrower than ``widest`` [m].
    """
    sides = _edges(outline)
    spots = []
    for (ax, ay), (bx, by) in sides:
        count = max(2, int(math.hypot(bx - ax, by - ay) / 2.5e-4))
        share = np.arange(count)[:, None] / count
        spots.append(np.array([ax, ay]) + share * np.array([bx - ax, by - ay]))
    points = np.concatenate(spots)
    found: list[tuple[float, Point, float]] = []
    directions = [(by - ay, ax - bx) for (ax, ay), (bx, by) in sides] + list(outline)
    for theta in sorted({round(math.atan2(y, x) % math.pi, 6) for x, y in directions}):
        close = np.array([math.cos(theta), math.sin(theta)])
        along = np.array([-close[1], close[0]])
        s, p = points @ along, points @ close
        for t in np.arange(-0.014, 0.0141, 0.001):
            near = np.abs(s - t) <= _PAD
            if not near.any():
                continue
            high, low = p[near].max(), p[near].min()
            if high - low > widest:
                continue
            one, two = (s[near & touching] for touching in (p > high - _TOUCH, p < low + _TOUCH))
            both = max(one.min(), two.min()), min(one.max(), two.max())
            shared, middle = both[1] - both[0], (both[0] + both[1]) / 2
            wedged = max(np.abs(one - middle).min(), np.abs(two - middle).min()) > _NEAR  # stuck when it should open
            score = min(shared, 0.01) - 0.7 * abs(middle) - 0.2 * abs(middle - t) - 0.005 * wedged
            place = t * along + (high + low) / 2 * close
            found.append((round(score, 6), (float(place[0]), float(place[1])), theta))
    if not found:
        raise ValueError(f"the shape is nowhere narrower than {widest} m")
    _, place_, theta_ = max(found, key=lambda one: one[0])
    return place_, theta_


def _edges(outline: Sequence[Point]) -> list[tuple[Point, Point]]:
    return list(zip(outline, [*outline[1:], outline[0]], strict=True))


def _cross(a: Point, b: Point) -> float:
    return a[0] * b[1] - a[1] * b[0]


def _side(p: Point, a: Point, b: Point) -> float:
    """[m] to the left of the line from a to b."""
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    return ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])) / length


def _cost(edge: tuple[Point, Point], edges: Sequence[tuple[Point, Point]]) -> float:
    """Sides that the line of this one would cut, and how unequal the halves are."""
    cut, left, right = 0, 0, 0
    for one, two in edges:
        d, e = _side(one, *edge), _side(two, *edge)
        cut += d * e < 0 and min(abs(d), abs(e)) > _ON
        left += d + e > 2 * _ON
        right += d + e < -2 * _ON
    return cut + 0.01 * abs(left - right)


def _kept(cell: Sequence[Point], a: Point, b: Point, sign: float) -> list[Point]:
    """What of a convex cell lies left (sign 1) or right (-1) of the line from a to b."""
    out: list[Point] = []
    for p, q in _edges(cell):
        d, e = sign * _side(p, a, b), sign * _side(q, a, b)
        if d >= -_ON:
            out.append(p)
        if (d > _ON and e < -_ON) or (d < -_ON and e > _ON):
            out.append(_between(p, q, d, e))
    return out


def _clipped(edge: tuple[Point, Point], a: Point, b: Point, sign: float) -> tuple[Point, Point] | None:
    p, q = edge
    d, e = sign * _side(p, a, b), sign * _side(q, a, b)
    if max(d, e) <= _ON:
        return None
    if d < -_ON:
        p = _between(p, q, d, e)
    elif e < -_ON:
        q = _between(p, q, d, e)
    return p, q


def _between(p: Point, q: Point, d: float, e: float) -> Point:
    share = d / (d - e)
    return p[0] + share * (q[0] - p[0]), p[1] + share * (q[1] - p[1])
