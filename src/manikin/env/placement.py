"""Places for things that must not overlap, drawn for all rows at once; a row never depends on its neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin.errors import SceneError
from manikin.math import pose, pose_mul, quat_from_yaw
from manikin.rng import EpisodeRng

__all__ = ["Place", "apart", "first_valid", "scatter"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one thing may start, in a frame of reference whose z is up.

    Attributes:
        low, high: corners of a rectangle [m].
        radius: [m] of the upright cylinder around the thing, a number or (n,) where rows differ.
        z: height of its origin [m], a number or (n,).
        turn: [rad] about z, uniform in this range; a number for one turn.
        inside: keep the whole cylinder inside the rectangle, not just its axis.
    """

    low: tuple[float, float]
    high: tuple[float, float]
    radius: float | Tensor = 0.0
    z: float | Tensor = 0.0
    turn: tuple[float, float] | float = (-math.pi, math.pi)
    inside: bool = False


def scatter(
    rng: EpisodeRng,
    places: Sequence[Place],
    *,
    gap: float = 0.0,
    around: Tensor | None = None,
    taken: tuple[Tensor, Tensor] | None = None,
    name: str = "scatter",
    candidates: int = 100,
) -> tuple[Tensor, Tensor]:
    """Poses (n, len(places), 7) in the world whose cylinders keep ``gap`` [m] between them, and the rows (n,) bool in
    which no candidate did.

    Args:
        rng: of the n rows.
        places: one per thing.
        gap: least distance between two cylinders [m].
        around: (7,) or (n, 7) pose of the frame that places are in; None is the world.
        taken: positions (n, k, 2) [m] in that frame and radii (n, k) [m] of what is there already.
        name: of the random stream.
        candidates: whole placements drawn per row, of which the first valid one is taken.

    Raises:
        SceneError: a rectangle is too small for its thing; names it.
    """
    n, k, device = rng.n, len(places), rng.device
    for i, p in enumerate(places):
        width = 2.0 * p.radius if p.inside and not isinstance(p.radius, Tensor) else 0.0
        if min(b - a for a, b in zip(p.low, p.high, strict=True)) < width:
            raise SceneError(
                f"{name}: thing {i}, {width:.3g} m wide, does not fit inside its rectangle {p.low} to {p.high}"
            )

    def column(value: float | Tensor) -> Tensor:
        return torch.as_tensor(value, dtype=torch.float32, device=device).expand(n)

    radius, height = (torch.stack([column(getattr(p, what)) for p in places], 1) for what in ("radius", "z"))  # (n, k)
    margin = radius * torch.tensor([float(p.inside) for p in places], device=device)
    low = torch.tensor([p.low for p in places], device=device) + margin[..., None]  # (n, k, 2)
    high = torch.tensor([p.high for p in places], device=device) - margin[..., None]
    share = rng.uniform(f"{name}/xy", 0.0, 1.0, (candidates, k, 2))
    spots = low[:, None] + share * (high - low)[:, None]
    if taken is None:
        valid = apart(spots, radius, gap)
    else:
        others, sizes = taken
        every = torch.cat([spots, others[:, None].expand(n, candidates, -1, 2)], 2)
        valid = apart(every, torch.cat([radius, sizes], 1), gap, moving=k)
    valid &= (low <= high).flatten(1).all(1)[:, None]
    start = torch.tensor([p.turn if isinstance(p.turn, tuple) else (p.turn, p.turn) for p in places], device=device)
    turn = start[:, 0] + rng.uniform(f"{name}/turn", 0.0, 1.0, (k,)) * (start[:, 1] - start[:, 0])
    spot = first_valid(spots, valid)
    local = pose(torch.cat([spot, height[..., None]], 2), quat_from_yaw(turn))
    if around is not None:
        local = pose_mul(around.reshape(-1, 1, 7).expand(n, k, 7), local)
    return local, ~valid.any(1)


def apart(spots: Tensor, radius: Tensor, gap: float, *, moving: int | None = None) -> Tensor:
    """(n, c) bool: which candidates have every two circles at least ``gap`` [m] apart.

    Args:
        spots: (n, c, k, 2) [m].
        radius: (n, k) [m].
        gap: [m].
        moving: only pairs with one of the first this many count; None for all.
    """
    k = spots.shape[2]
    offset = spots[:, :, :, None] - spots[:, :, None]
    least = radius[:, :, None] + radius[:, None] + gap  # (n, k, k)
    fine = (offset * offset).sum(-1) >= (least * least)[:, None]
    exempt = torch.eye(k, dtype=torch.bool, device=spots.device)
    if moving is not None:
        exempt[moving:, moving:] = True
    return (fine | exempt).flatten(2).all(-1)


def first_valid(spots: Tensor, valid: Tensor) -> Tensor:
    """Of each row's ``spots`` (n, c, ...) the first with ``valid`` (n, c); the first of all where none is."""
    return spots[torch.arange(len(valid), device=valid.device), valid.to(torch.uint8).argmax(1)]
