"""Many equal marks for human eyes, moved together."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
from torch import Tensor

from manikin.scene.handles.base import Handle, Scope

__all__ = ["Markers"]


class Markers(Handle):
    """See :meth:`manikin.scene.builder.SceneBuilder.markers`."""

    def __init__(self, scope: Scope, name: str, names: Sequence[str]) -> None:
        super().__init__(scope, name)
        self.names = tuple(names)

    def bind(self, model: mujoco.MjModel) -> None:
        first, count = int(model.body(self.names[0]).mocapid[0]), len(self.names)
        self._places = self.scope.world.channel([("mocap_pos", 3 * first, 3 * (first + count))], (count, 3))

    def set_places(self, pos: Tensor) -> None:
        """Put the marks of the rows in view at pos (n, count, 3) [m]."""
        self._places.write(pos.flatten(1), self.scope.target)
