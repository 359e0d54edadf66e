"""Parametric furniture without joints: table, chair, sofa, TV stand, shelf, rug.

x points out of the front, z = 0 is the floor, and the origin is the middle of the footprint. Sizes are chosen, in [m].
"""

from __future__ import annotations

from manikin.homes.apartment import Fixture, Receptacle
from manikin.spec.links import RGBA, Vec3
from manikin.spec.prop import Shape

__all__ = ["chair", "rug", "shelf", "sofa", "table", "tv_stand"]

_WOOD, _DARK = (0.62, 0.47, 0.33, 1.0), (0.12, 0.12, 0.14, 1.0)


def _block(half: Vec3, pos: Vec3, rgba: RGBA) -> Shape:
    return Shape(type="box", size=half, pos=pos, rgba=rgba)


def _on(name: str, x: float, y: float, height: float, half: tuple[float, float], clear: float = 0.15) -> Receptacle:
    """A receptacle that begins at ``height`` and is twice ``clear`` high."""
    return Receptacle(name=name, pos=(x, y, height + clear), half=(*half, clear))


def table(
    name: str, *, half: tuple[float, float] = (0.4, 0.7), height: float = 0.74, rgba: RGBA = _WOOD, kind: str = "table"
) -> Fixture:
    """A top on four legs; ``half`` are half lengths along x and y."""
    thick, leg = 0.018, 0.025
    legs = [
        _block((leg, leg, height / 2 - thick), (sx * (half[0] - 0.05), sy * (half[1] - 0.05), height / 2 - thick), rgba)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    top = _block((*half, thick), (0, 0, height - thick), rgba)
    return Fixture(
        name=name,
        kind=kind,
        shapes=(top, *legs),
        receptacles=(_on(f"{name}/top", 0, 0, height, (half[0] - 0.04, half[1] - 0.04)),),
    )


def chair(name: str, *, seat: float = 0.45, rgba: RGBA = _WOOD) -> Fixture:
    """A chair; who sits on it looks along x."""
    half, leg = 0.21, 0.018
    legs = [
        _block((leg, leg, seat / 2 - 0.015), (sx * (half - leg), sy * (half - leg), seat / 2 - 0.015), rgba)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    shapes = (
        _block((half, half, 0.015), (0, 0, seat - 0.015), rgba),
        _block((0.015, half, 0.22), (-half + 0.015, 0, seat + 0.22), rgba),
        *legs,
    )
    return Fixture(
        name=name, kind="chair", shapes=shapes, receptacles=(_on(f"{name}/seat", 0.02, 0, seat, (0.16, 0.18)),)
    )


def sofa(name: str, *, half_width: float = 0.95, rgba: RGBA = (0.35, 0.42, 0.5, 1)) -> Fixture:
    """A sofa; who sits on it looks along x."""
    depth, seat, arm = 0.42, 0.42, 0.1
    shapes = (
        _block((depth, half_width, seat / 2 - 0.03), (0, 0, seat / 2 + 0.03), rgba),
        _block((0.1, half_width, 0.19), (-depth + 0.1, 0, seat + 0.19), rgba),
        *(_block((depth, arm, 0.1), (0, s * (half_width - arm), seat + 0.1), rgba) for s in (-1, 1)),
        *(_block((depth - 0.05, 0.03, 0.03), (0, s * (half_width - 0.1), 0.03), _DARK) for s in (-1, 1)),
    )
    place = _on(f"{name}/seat", 0.1, 0, seat, (depth - 0.14, half_width - 2 * arm - 0.03))
    return Fixture(name=name, kind="sofa", shapes=shapes, receptacles=(place,))


def tv_stand(name: str, *, half_width: float = 0.75, rgba: RGBA = _WOOD) -> Fixture:
    """A low stand with a screen at its back edge; things lie before the screen."""
    depth, height = 0.22, 0.5
    shapes = (
        _block((depth, half_width, height / 2), (0, 0, height / 2), rgba),
        _block((0.06, 0.2, 0.01), (-0.12, 0, height + 0.01), _DARK),
        _block((0.015, 0.02, 0.04), (-0.12, 0, height + 0.06), _DARK),
        _block((0.015, half_width * 0.8, 0.33), (-0.12, 0, height + 0.42), _DARK),
    )
    place = _on(f"{name}/top", 0.06, 0, height, (0.13, half_width - 0.04))
    return Fixture(name=name, kind="tv_stand", shapes=shapes, receptacles=(place,))


def shelf(name: str, *, half_width: float = 0.4, levels: int = 4, rgba: RGBA = _WOOD) -> Fixture:
    """An open shelf of ``levels`` boards, 0.4 m apart."""
    depth, board, step = 0.15, 0.012, 0.4
    height = step * levels
    shapes = [_block((depth, board, height / 2), (0, s * (half_width - board), height / 2), rgba) for s in (-1, 1)]
    shapes += [_block((board, half_width, height / 2), (-depth + board, 0, height / 2), rgba)]
    boards = [0.06 + i * step for i in range(levels)]
    shapes += [_block((depth, half_width - 2 * board, board), (0, 0, z), rgba) for z in (*boards, height - board)]
    places = tuple(
        _on(f"{name}/board{i}", 0.012, 0, z + board, (depth - 0.03, half_width - 0.05), clear=0.15)
        for i, z in enumerate(boards)
    )
    return Fixture(name=name, kind="shelf", shapes=tuple(shapes), receptacles=places)


def rug(name: str, *, half: tuple[float, float], rgba: RGBA) -> Fixture:
    """A rug that is only seen: robots drive over it."""
    return Fixture(name=name, kind="rug", looks=(_block((*half, 0.003), (0, 0, 0.003), rgba),))
