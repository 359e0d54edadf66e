"""The interface of an environment that planning needs. :class:`manikin.env.interface.BatchEnv` and :class:`manikin.Env`
have it. Planning does not import them, because it also runs before there is an environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from manikin.control import Controller
from manikin.scene.handles import Part, Robot
from manikin.sim.world import World

__all__ = ["PlannedRows", "Rows", "SceneRows"]


class Rows(Protocol):
    """N rows, in one scene or in several."""

    num_envs: int
    control_hz: float
    device: torch.device
    robots: tuple[Robot, ...]
    controller: Controller
    controllers: tuple[Controller, ...]

    def parts(self, rows: Any = None) -> Sequence[PlannedRows]:
        """The rows, by default all, grouped by scene."""

    def gather(self, function: Callable[..., Tensor], *values: Tensor) -> Tensor:
        """(N, ...) what ``function`` gives for each scene, called with it and the ``values`` (N, ...) of its rows."""

    def towards(self, joints: Tensor, *, within: float | None = None) -> Tensor:
        """(N, A) actions that ask for the arms' ``joints`` (N, joints) [rad or m]."""

    def on_device(self) -> AbstractContextManager[Any]:
        """A context in which new tensors are made on the device."""

    @property
    def elapsed(self) -> Tensor:
        """(N,) int64 control steps since each row's episode began."""


class SceneRows(Rows, Protocol):
    """N rows that share one scene.

    Attributes:
        task: has ``id``, ``control`` and ``expert(h)``.
        h: the handles that the task's methods are given.
    """

    task: Any
    h: Any
    world: World

    def thing(self, name: str) -> Part:
        """The scene's part of that name."""


class PlannedRows(Protocol):
    """Rows of one scene: its environment, their numbers in it, and their places among those that were asked for."""

    @property
    def env(self) -> SceneRows: ...
    @property
    def rows(self) -> np.ndarray: ...
    @property
    def places(self) -> np.ndarray: ...
