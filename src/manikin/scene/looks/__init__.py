"""Visual variation carried out: what a scene needs for it before compiling, and each episode's or step's model fields.

Everything reaches the world by ``set_model``. Nothing that is added collides, weighs or moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.rng import EpisodeRng
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Handle
from manikin.scene.looks.cameras import cameras
from manikin.scene.looks.distractors import DistractorSlots
from manikin.scene.looks.item import Item, Rngs, Values
from manikin.scene.looks.lights import lights
from manikin.scene.looks.surfaces import surfaces
from manikin.sim.device import on_host
from manikin.spec.looks import Looks

_HOST = torch.device("cpu")

__all__ = ["Dresser", "Looks"]


class Dresser(Handle):
    """Gives rows of a world their looks. Make it before the scene is compiled: it adds what the looks need, and itself
    to the handles that are bound to the world. ``looks`` may be what :meth:`Looks.describe` gave.

    Raises:
        UnknownNameError: a camera, light or thing that the scene does not have.
        AssetError: there is no such texture file.
        DataError: a texture file does not decode.
        ConfigError: ``looks`` is something else, or is to change per step what the task draws per episode.
    """

    def __init__(self, looks: Looks | Mapping[str, Any] | None, builder: SceneBuilder) -> None:
        looks = Looks() if looks is None else Looks.of(looks) if isinstance(looks, Mapping) else looks
        if not isinstance(looks, Looks):
            raise ConfigError(f"looks must be a Looks, not {looks!r}")
        self.looks = looks
        super().__init__(builder.scope, "looks")
        self._items: list[Item] = [
            *cameras(looks, builder),
            *lights(looks, builder.spec),
            *surfaces(looks, builder),
            *([DistractorSlots(builder.spec, looks.distractors)] if looks.distractors is not None else []),
        ]
        self._stepping = [item for item in self._items if item.per_step]
        builder.handles.append(self)

    def bind(self, model: mujoco.MjModel) -> None:
        """Look up in the compiled model what was declared."""
        for item in self._items:
            item.bind(self.scope.world)

    @property
    def active(self) -> bool:
        """Whether anything varies."""
        return bool(self._items)

    @property
    def restless(self) -> bool:
        """Whether anything varies within an episode."""
        return bool(self._stepping)

    def start(self, rows: np.ndarray | Tensor, rng: EpisodeRng) -> None:
        """Give rows the looks with which their episodes begin: numbers (n,), or a mask (N,) and streams of all rows."""
        if self._items:
            elapsed = torch.zeros(rng.n, dtype=torch.int64, device=_HOST)
            self._apply(self._items, Rngs(rng.to(_HOST), elapsed, within=False), rows)

    def step(self, rows: np.ndarray | Tensor | None, seed: Any, index: Any, elapsed: Any) -> None:
        """Give rows the looks they have after the coming control step; call before the physics step.

        Args:
            rows: which rows step, (N,) bool or numbers; None for all. On a device a mask (N,).
            seed: (N,) int64 of all rows' episodes, NumPy or, on a device, torch.
            index: (N,) int64.
            elapsed: (N,) int64 control steps so far.
        """
        if not self._stepping:
            return
        if isinstance(seed, Tensor):
            seeds, indices, steps = (a.cpu() for a in (seed, index, elapsed + 1))
        else:
            rows = np.flatnonzero(rows) if rows is not None and rows.dtype == bool else rows
            at: Any = slice(None) if rows is None else rows
            seeds, indices, steps = (torch.from_numpy(a[at].copy()) for a in (seed, index, elapsed + 1))
        self._apply(self._stepping, Rngs(EpisodeRng(seeds, indices), steps, within=True), rows)

    def _apply(self, items: Sequence[Item], rngs: Rngs, target: Any) -> None:
        values: Values = {}
        with on_host(self.scope.device):  # drawn on the host
            for item in items:
                values |= item.draw(rngs, None if isinstance(target, Tensor) else target)
        if values:
            self.scope.world.set_model(values, target)
