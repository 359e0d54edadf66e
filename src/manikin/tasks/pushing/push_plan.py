"""Where to push a flat thing on a table, and how far: quasi-static pushing with a contact that sticks.

A thing that slides slowly resists with a force and a moment that lie on an ellipsoid (Goyal, Ruina and Papadopoulos
1991; Lynch, Maekawa and Tanie 1992). Its ratio of axes is one length: the largest moment by the largest force. From it
follows how the thing moves with the point that pushes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin.math import atan2, wrap_to_pi, yaw_rotate

__all__ = ["FlatThing", "Push"]

_STEPS = (0.002,) * 6 + (0.004,) * 5 + (0.008,) * 6 + (0.015,) * 8  # [m] 0.2 m in all; short ones end a push exactly
_RUN, _GAP = 0.015, 0.005  # [m] a push begins so far before the contact, and so far beside every edge
_AT_ONCE = 8  # rows whose pushes are compared at once: so many fit into a processor's cache
_ASLANT = tuple(math.radians(a) for a in range(-40, 41, 8))  # [rad] of a push to the edge's normal


@dataclass(frozen=True)
class Push:
    """One push in each of n rows.

    Attributes:
        contact: (n, 2) where to touch the thing, in the world [m].
        start: (n, 2) where the pusher's middle begins, beside the thing [m].
        outward: (n, 2) away from the thing, from all edges that the pusher is near.
        ahead: (n, 2) the direction to push in.
        way: (n,) how far [m]; 0 where no push makes it better.
        off: (n,) [m] how far the thing should be from its goal afterwards, see :meth:`FlatThing.best`.
    """

    contact: Tensor
    start: Tensor
    outward: Tensor
    ahead: Tensor
    way: Tensor
    off: Tensor


class FlatThing:
    """A thing with straight edges that is pushed along a table.

    Args:
        corners: (x, y) of its outline in turn, anticlockwise, in its own frame [m].
        centre: of its friction, in its own frame [m].
        length: the largest moment of its friction by the largest force [m].
        turn_length: what a turn counts [m/rad], beside what a way does.
        radius: of the round pusher [m].
        spacing: of the places on its edges that may be pushed [m].
        inset: how far these stay from corners [m].
    """

    def __init__(
        self,
        corners: Sequence[tuple[float, float]],
        *,
        centre: tuple[float, float],
        length: float,
        turn_length: float,
        radius: float,
        spacing: float = 0.012,
        inset: float = 0.006,
    ) -> None:
        self.length, self.turn_length, self.radius = length, turn_length, radius
        self._start = torch.tensor(corners) - torch.tensor(centre)  # (edges, 2), about the centre of friction
        along = self._start.roll(-1, 0) - self._start
        self._centre, self._long = torch.tensor(centre), along.norm(dim=1)
        self._along = along / self._long[:, None]
        self._outward = torch.stack([self._along[:, 1], -self._along[:, 0]], 1)
        places, normals = [], []
        for start, unit, out, long in zip(self._start, self._along, self._outward, self._long.tolist(), strict=True):
            count = max(2, round((long - 2 * inset) / spacing) + 1)
            at = torch.linspace(inset, long - inset, count)
            places.append(start + at[:, None] * unit)
            normals.append(out.expand(count, 2))
        self._places, self._normals = torch.cat(places), torch.cat(normals)
        inward = atan2(-self._normals[:, 1], -self._normals[:, 0])
        self._ahead = inward[:, None] + torch.tensor(_ASLANT)  # (places, directions)
        unit = torch.stack([torch.cos(self._ahead), torch.sin(self._ahead)], -1)
        beside = (self._places + radius * self._normals)[:, None]
        self._starts = beside - _RUN * unit
        free = self._distances(torch.stack([(beside + 0.001 * self._normals[:, None]).expand_as(unit), self._starts]))
        self._has_room = (free[0].amin(-1) >= radius) & (free[1].amin(-1) >= radius + _GAP)
        self._paths = self._path(self._places[:, None].expand_as(unit), self._ahead)[:, None]

    def moved(self, turn: Tensor, arm: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """How the thing moves while the point that pushes it makes a short step and does not slip.

        Args:
            turn: (...) of the thing [rad].
            arm: (..., 2) from its centre of friction to the point, in its own frame [m].
            step: (..., 2) of the point, in the world [m].

        Returns:
            (..., 2) the step of its centre [m], and (...) by how much it turns [rad].
        """
        x, y = yaw_rotate(arm, turn).unbind(-1)
        more = (x * step[..., 1] - y * step[..., 0]) / (self.length**2 + (x * x + y * y))
        return step - more[..., None] * torch.stack([-y, x], -1), more

    def best(self, pos: Tensor, turn: Tensor, goal: Tensor, goal_turn: float, allowed: Tensor) -> Push:
        """The straight push after which the thing is nearest to its goal: the way to it and the turn, as lengths.

        Args:
            pos: (n, 2) the thing's origin [m].
            turn: (n,) the thing's turn [rad].
            goal: (2,) where its origin should be [m].
            goal_turn: how it should be turned [rad].
            allowed: (n, places) bool, which of :meth:`places` can be reached.
        """
        n, count = len(pos), len(_ASLANT)
        ways, offs = self._stops(self._paths, pos, turn, goal, goal_turn)  # (n, places, directions)
        offs = torch.where(allowed[:, :, None] & self._has_room, offs, torch.inf)
        # a steeper push slips more easily: of equals the straight one
        chosen = (offs * (1.0 + 0.02 * torch.tensor(_ASLANT).abs())).flatten(1).argmin(1)
        row, place, slant = torch.arange(n), chosen // count, chosen % count
        contact, outward = self.places(pos, turn)
        start = yaw_rotate(self._starts[place, slant] + self._centre, turn) + pos
        angle = turn + self._ahead[place, slant]
        unit = torch.stack([torch.cos(angle), torch.sin(angle)], 1)
        return Push(
            contact[row, place], start, outward[row, place], unit, ways[row, place, slant], offs[row, place, slant]
        )

    def onward(self, pos: Tensor, turn: Tensor, tip: Tensor, goal: Tensor, goal_turn: float) -> Push:
        """The best push from where the pusher is.

        Args:
            tip: (n, 2) the pusher's middle [m]; it touches the nearest point of the outline, or will.
            pos: (n, 2) the thing's origin [m].
            turn: (n,) the thing's turn [rad].
            goal: (2,) where its origin should be [m].
            goal_turn: how it should be turned [rad].
        """
        n, row = len(pos), torch.arange(len(pos))
        local = yaw_rotate(tip - pos, -turn) - self._centre
        nearest, away = self._nearest(local), self._distances(local)  # (n, edges, 2), (n, edges)
        edge = away.argmin(1)
        arm, normal = nearest[row, edge], self._outward[edge]
        ahead = atan2(-normal[:, 1], -normal[:, 0])[:, None] + torch.tensor(_ASLANT)
        path = self._path(arm[:, None].expand(n, len(_ASLANT), 2), ahead)
        ways, offs = self._stops(path, pos, turn, goal, goal_turn)
        chosen = offs.argmin(1)
        near = (away < self.radius + _GAP) | (torch.arange(len(self._start)) == edge[:, None])
        out = (near[..., None] * self._outward).sum(1)
        out = yaw_rotate(out / out.norm(dim=1, keepdim=True).clamp_min(1e-6), turn)
        angle = turn + ahead[row, chosen]
        unit = torch.stack([torch.cos(angle), torch.sin(angle)], 1)
        contact = yaw_rotate(arm + self._centre, turn) + pos
        return Push(contact, tip, out, unit, ways[row, chosen], offs[row, chosen])

    def _nearest(self, points: Tensor) -> Tensor:
        """(..., edges, 2) of each edge the point nearest to ``points`` (..., 2), about the centre of friction [m]."""
        at = ((points[..., None, :] - self._start) * self._along).sum(-1).clamp_min(0.0).minimum(self._long)
        return self._start + at[..., None] * self._along

    def _distances(self, points: Tensor) -> Tensor:
        """(..., edges) [m] from ``points`` (..., 2) to the edges."""
        return (points[..., None, :] - self._nearest(points)).norm(dim=-1)

    def places(self, pos: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
        """(n, places, 2) where the thing may be pushed, in the world [m], and the edges' normals there, outwards."""
        spots = yaw_rotate(self._places + self._centre, turn[:, None]) + pos[:, None]
        return spots, yaw_rotate(self._normals.expand_as(spots), turn[:, None])

    def off(self, pos: Tensor, turn: Tensor, goal: Tensor, goal_turn: float) -> Tensor:
        """(...) [m] how far the thing is from its goal, with a turn counted as a length."""
        x, y = (pos - goal).unbind(-1)
        return self._size(x, y, turn - goal_turn)

    def _size(self, x: Tensor, y: Tensor, rest: Tensor) -> Tensor:
        """(...) [m] how far that is: a way (x, y) [m] and a turn [rad], of any number of rounds."""
        rest = wrap_to_pi(rest).mul_(self.turn_length)
        return (x * x).add_(y * y).add_(rest.mul_(rest)).sqrt_()

    def _path(self, arm: Tensor, ahead: Tensor) -> Tensor:
        """(3, ..., steps) where pushes bring the thing after each of the steps: its origin's x and y [m] and its turn
        [rad], as seen from where it begins.

        Args:
            arm: (..., 2) from the centre of friction to the contact [m].
            ahead: (...) direction of the push [rad], likewise in the thing's own frame.
        """
        unit = torch.stack([torch.cos(ahead), torch.sin(ahead)], -1)
        turn, centre, path = torch.zeros_like(ahead), self._centre.expand_as(unit), []
        for step in _STEPS:
            shift, more = self.moved(turn, arm, step * unit)
            centre, turn = centre + shift, turn + more
            x, y = (centre - yaw_rotate(self._centre.expand_as(unit), turn)).unbind(-1)
            path.append(torch.stack([x, y, turn]))
        return torch.stack(path, -1)

    def _stops(self, path: Tensor, pos: Tensor, turn: Tensor, goal: Tensor, goal_turn: float) -> tuple[Tensor, Tensor]:
        """Of pushes with a ``path`` (3, n or 1, ..., steps) the way after which the thing is nearest to its goal, and
        how near that is [m]: both (n, ...)."""
        of_row = (-1, *[1] * (path.dim() - 2))
        now = self.off(pos, turn, goal, goal_turn).reshape(of_row[:-1])
        aim = yaw_rotate(goal - pos, -turn)
        found = []
        for k in range(0, len(pos), _AT_ONCE):
            part = slice(k, k + _AT_ONCE)
            x, y, more = path if path.shape[1] == 1 else path[:, part]
            aim_x, aim_y = (one.reshape(of_row) for one in aim[part].unbind(-1))
            rest = (more + turn[part].reshape(of_row)).sub_(goal_turn)
            found.append(self._size(x - aim_x, y - aim_y, rest).min(-1))
        least, at = (torch.cat(each) for each in zip(*found, strict=True))
        better = least < now
        gone = torch.tensor(_STEPS).cumsum(0)[at]
        return torch.where(better, gone, 0.0), torch.where(better, least, now)
