"""A trail of marks on a surface: a random walk that turns now and then, and at the edge."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.math import atan2
from manikin.rng import EpisodeRng

__all__ = ["trail"]

_TURNS = 16  # directions tried where a trail meets the edge


def trail(rng: EpisodeRng, edge: Tensor, *, marks: int, step: float, bend: float, bend_std: float) -> Tensor:
    """(n, marks, 2) [m] places on a rectangle around the origin, ``step`` [m] apart.

    Args:
        rng: of the episodes that begin.
        edge: (2,) half size of the rectangle [m].
        marks: how many.
        step: from mark to mark [m].
        bend: chance that the trail turns at a mark.
        bend_std: by how much, standard deviation [rad].
    """
    at = rng.uniform("trail/start", -edge, edge, (2,))
    direction = rng.uniform("trail/direction", -math.pi, math.pi)
    bends = (rng.uniform("trail/bend", 0.0, 1.0, (marks,)) < bend) * rng.normal("trail/angle", 0.0, bend_std, (marks,))
    turns = rng.normal("trail/turn", 0.0, bend_std, (marks, _TURNS)).cumsum(2)
    row, out = torch.arange(rng.n), [at]
    for k in range(1, marks):
        direction = direction + bends[:, k]
        tried = direction[:, None] + torch.cat([torch.zeros(rng.n, 1), turns[:, k]], 1)
        tried = torch.cat([tried, atan2(-at[:, 0], -at[:, 1])[:, None]], 1)
        way = at[:, None] + step * torch.stack([torch.sin(tried), torch.cos(tried)], 2)
        first = (way.abs() <= edge).all(2).to(torch.uint8).argmax(1)
        direction, at = tried[row, first], way[row, first]
        out.append(at)
    return torch.stack(out, 1)
