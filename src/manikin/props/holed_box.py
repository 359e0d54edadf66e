"""Boxes with a rectangular hole through them, made of four walls whose sizes may differ per row: a cube with a hole
along x, and a frame with one along z."""

from __future__ import annotations

import torch
from torch import Tensor

from manikin.spec.prop import Shape

__all__ = ["bars", "frame", "holed_box", "walls"]


def holed_box(outer: float, hole: float) -> list[Shape]:
    """Shapes of a cube of half side ``outer`` with a centred hole of half side ``hole`` [m]."""
    outers, holes = (torch.tensor([half], device="cpu") for half in (outer, hole))
    return _shapes(*walls(outers, holes, torch.zeros(1, 2, device="cpu")))


def frame(outer: tuple[float, float], opening: tuple[float, float], height: float) -> list[Shape]:
    """Shapes of a frame that stands on z = 0, with its opening in the middle; else as :func:`bars`."""
    return _shapes(*bars(outer, opening, height, torch.zeros(1, 2, device="cpu")))


def walls(outer: Tensor, hole: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """Half sizes and places (n, 4, 3) [m] of the four walls of a cube of half side ``outer`` (n,) with a square hole
    of half side ``hole`` (n,) along x, centred at y and z ``centre`` (n, 2).
    """
    thick, shift = (outer - hole) / 2, centre / 2
    middle, zero = thick + hole, torch.zeros_like(outer)
    y, z = shift[:, 0], shift[:, 1]
    sizes = [
        (outer, thick - y, outer),
        (outer, thick + y, outer),
        (outer, outer, thick - z),
        (outer, outer, thick + z),
    ]
    places = [(zero, middle + y, zero), (zero, y - middle, zero), (zero, zero, middle + z), (zero, zero, z - middle)]
    return _stacked(sizes), _stacked(places)


def bars(
    outer: tuple[float, float], opening: tuple[float, float], height: float, centre: Tensor
) -> tuple[Tensor, Tensor]:
    """Half sizes and places (n, 4, 3) [m] of the four bars of a frame that stands on z = 0. Two are as long as the
    frame, the others fill the gap between them.

    Args:
        outer: half its size along x and y [m].
        opening: half the size of what is open [m].
        height: of the frame [m].
        centre: (n, 2) of the opening [m].
    """
    (x, y), (a, b), (u, v) = outer, opening, centre.unbind(1)
    zero = torch.zeros_like(u)
    full, half, tall = zero + y, zero + a, zero + height / 2
    sizes = [
        ((x - a - u) / 2, full, tall),
        ((x - a + u) / 2, full, tall),
        (half, (y - b - v) / 2, tall),
        (half, (y - b + v) / 2, tall),
    ]
    places = [
        ((x + a + u) / 2, zero, tall),
        ((u - a - x) / 2, zero, tall),
        (u, (y + b + v) / 2, tall),
        (u, (v - b - y) / 2, tall),
    ]
    return _stacked(sizes), _stacked(places)


def _shapes(sizes: Tensor, places: Tensor) -> list[Shape]:
    """Of the first row."""
    pairs = zip(sizes[0].tolist(), places[0].tolist(), strict=True)
    return [Shape(type="box", size=tuple(size), pos=tuple(place)) for size, place in pairs]


def _stacked(rows: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    return torch.stack([torch.stack(row, 1) for row in rows], 1)
