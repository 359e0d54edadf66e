"""Dots on surfaces, which a task draws and wipes."""

from __future__ import annotations

import mujoco
import torch
from torch import Tensor

from manikin.scene.handles.base import Scope, Variable
from manikin.sim.dots import DotGroup

__all__ = ["Dots"]


class Dots(Variable):
    """See :meth:`manikin.scene.builder.SceneBuilder.dots`. Its value (n, count, 4) is x, y, z [m] and 1 where shown."""

    def __init__(self, scope: Scope, group: DotGroup) -> None:
        super().__init__(scope, group.name, (group.count, 4), persist=False, initial=0.0)
        self.group = group

    def bind(self, model: mujoco.MjModel) -> None:
        super().bind(model)
        self.scope.world.dots[self.name] = self.data

    @property
    def pos(self) -> Tensor:
        """(n, count, 3) [m] in the world; meaningless where not shown."""
        return self.value[..., :3]

    @property
    def shown(self) -> Tensor:
        """(n, count) bool."""
        return self.value[..., 3] > 0

    def set_places(self, pos: Tensor, shown: Tensor | None = None) -> None:
        """Put the dots of the rows in view at ``pos`` (n, count, 3) [m]; ``shown`` (n, count) are seen, by default
        all."""
        flag = torch.ones_like(pos[..., 0]) if shown is None else shown.to(pos.dtype)
        self.set(torch.cat([pos, flag[..., None]], 2))

    def hide(self, dots: Tensor) -> None:
        """Hide the dots where (n, count) is True."""
        value = self.value.clone()
        value[..., 3] *= ~dots
        self.set(value)

    def put(self, number: Tensor, pos: Tensor, where: Tensor) -> None:
        """Show one dot per row, in the rows in view where ``where`` (n,) is True.

        Args:
            number: (n,) which dot, whole numbers below ``count``.
            pos: (n, 3) where [m].
            where: (n,) bool.
        """
        scope = self.scope
        rows = torch.arange(scope.n) if scope.rows is None else torch.from_numpy(scope.rows)
        if scope.mask is not None:
            where = where & scope.mask
        at, number = rows.to(scope.device), number.long()
        new = torch.cat([pos, torch.ones_like(pos[:, :1])], 1)
        self.data[at, number] = torch.where(where[:, None], new, self.data[at, number])
