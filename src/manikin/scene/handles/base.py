"""What every handle is: a name in the scene, and which rows are in view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError, SceneError
from manikin.sim.world import Channel, Piece, World

__all__ = ["Handle", "Scope", "Variable", "declared", "expand", "runs"]


class Scope:
    """What all handles of one environment share: the world, and which rows are being looked at.

    Attributes:
        rows: (k,) numbers of the rows in view; None for all.
        memo: what tasks computed for the present state; see :class:`manikin.toolkit.per_step`.
        moved: rows, or a mask, that :meth:`move` has put elsewhere in this step, for the loop to restart control there.
        mask: (N,) bool. With a mask, all rows are in view and what is written reaches only those where it is True: on a
            GPU, where the number of rows that start is not known to the host, shapes stay the same.
    """

    def __init__(self) -> None:
        self.world: World
        self.rows: np.ndarray | None = None
        self.mask: Tensor | None = None
        self.memo: dict[Any, Any] = {}
        self.moved: Any = None

    @property
    def n(self) -> int:
        return self.world.num_worlds if self.rows is None else len(self.rows)

    @property
    def device(self) -> torch.device:
        return self.world.device

    @property
    def target(self) -> Any:
        """Where writes go: row numbers, a mask, or None for all rows."""
        return self.rows if self.mask is None else self.mask

    def move(self, mask: Tensor, write: Callable[[], None]) -> None:
        """Put things elsewhere during an episode, in the rows of a mask (N,) bool: for ``Task.advance``.

        While ``write`` runs, what it reads and writes is as in ``Task.start``; after that what follows from the state
        is current."""
        target: Any = mask if self.world.kind != "cpu" else np.flatnonzero(mask.numpy()).astype(np.int32)
        if isinstance(target, np.ndarray):
            if not len(target):
                return
            self.rows = target
        else:
            self.mask = target
        try:
            write()
            self.world.forward(target)
            self.moved = target
        finally:
            self.rows = self.mask = None


class Handle:
    """A named thing of the scene. ``bind`` is called once, when the world exists.

    Attributes:
        source: where its shapes come from, in words; ``manikin info --page`` shows it. A task may set it.
    """

    source: str = ""

    def __init__(self, scope: Scope, name: str) -> None:
        self.scope, self.name = scope, name

    def bind(self, model: mujoco.MjModel) -> None:
        """Look up ids in the compiled model and register what will be read."""

    def _get(self, channel: Channel) -> Tensor:
        return channel.all() if self.scope.rows is None else channel.rows(self.scope.rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def declared(grasps: Mapping[str, Any], owner: str, word: str, part: str) -> Any:
    """The declared question whether what ``owner`` names, ``word`` in a task's code, holds a part.

    Raises:
        SceneError: it was not declared; says the line to add.
    """
    if part not in grasps:
        raise SceneError(
            f"contacts between {owner} and {part} were not declared; in scene() add: b.grasp({word}, {part})"
        )
    return grasps[part]


def expand(value: Any, n: int, width: int, device: torch.device) -> Tensor:
    """A value as float32 (n, width) on a device. Raises :class:`ConfigError` for another shape."""
    tensor = torch.as_tensor(value, dtype=torch.float32, device=device)
    if tensor.ndim > 2 or (tensor.shape and tensor.shape[-1] != width):
        raise ConfigError(f"expected shape ({n}, {width}) or ({width},), got {tuple(tensor.shape)}")
    return tensor.expand(n, width)


class Variable(Handle):
    """A per-row float32 tensor the task owns, for example a goal. Saved in snapshots.

    Reset to ``initial`` when a row starts, unless ``persist``.
    """

    def __init__(self, scope: Scope, name: str, shape: tuple[int, ...], *, persist: bool, initial: float) -> None:
        super().__init__(scope, name)
        self.shape, self.persist, self.initial = shape, persist, initial

    def bind(self, model: mujoco.MjModel) -> None:
        self.data = torch.full((self.scope.world.num_worlds, *self.shape), self.initial, device=self.scope.device)

    @property
    def value(self) -> Tensor:
        """(n, *shape) float32."""
        return self.data if self.scope.rows is None else self.data[torch.from_numpy(self.scope.rows)]

    def set(self, value: Tensor | float) -> None:
        """Set the rows in view to (n, *shape), or to one value."""
        scope = self.scope
        value = torch.as_tensor(value, dtype=torch.float32, device=scope.device).expand(scope.n, *self.shape)
        if scope.rows is not None:
            self.data[torch.from_numpy(scope.rows)] = value
        elif scope.mask is not None:
            self.data.copy_(torch.where(scope.mask.view(-1, *[1] * len(self.shape)), value, self.data))
        else:
            self.data.copy_(value)

    def begin(self) -> None:
        """An episode begins in the rows in view."""
        if not self.persist:
            self.set(self.initial)


def runs(field: str, addresses: Sequence[int]) -> list[Piece]:
    """Contiguous runs of addresses, in order."""
    pieces: list[Piece] = []
    for a in addresses:
        if pieces and pieces[-1][2] == a:
            pieces[-1] = (field, pieces[-1][1], a + 1)
        else:
            pieces.append((field, a, a + 1))
    return pieces
