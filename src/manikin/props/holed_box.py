"""A cube with a square hole through it along x, made of four walls whose sizes may differ per row."""

from __future__ import annotations

import torch
from torch import Tensor

from manikin.spec.prop import Shape

__all__ = ["holed_box", "walls"]


def holed_box(outer: float, hole: float) -> list[Shape]:
    """Shapes of a cube of half side ``outer`` with a centred hole of half side ``hole`` [m]."""
    outers, holes = (torch.tensor([half], device="cpu") for half in (outer, hole))
    sizes, places = walls(outers, holes, torch.zeros(1, 2, device="cpu"))
    pairs = zip(sizes[0].tolist(), places[0].tolist(), strict=True)
    return [Shape(type="box", size=tuple(size), pos=tuple(place)) for size, place in pairs]


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


def _stacked(rows: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    return torch.stack([torch.stack(row, 1) for row in rows], 1)
