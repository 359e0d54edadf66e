"""The World protocol: N simulations of one scene on a device. It knows physics and nothing about tasks.

After ``step``, positions, velocities and the sensors that depend on them are current; force and acceleration sensors
are those of the last substep. ``forward`` and ``reset`` run the full forward pass, so that everything is current.

What ``read`` and channels return is *borrowed*: valid until the next step, reset, forward or load. Clone to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import mujoco
import numpy as np
import torch

from manikin.errors import ConfigError
from manikin.sim.snapshot import Snapshot
from manikin.spec.budget import Shortage
from manikin.spec.scene import CompiledScene

__all__ = ["PLACES", "STATE", "Channel", "ModelKey", "Piece", "World", "row_numbers"]

STATE = (
    "time",
    "qpos",
    "qvel",
    "act",
    "history",
    "plastic",
    "qacc_warmstart",
    "ctrl",
    "qfrc_applied",
    "xfrc_applied",
    "eq_active",
    "mocap_pos",
    "mocap_quat",
)
"""Fields that can be written, and from which everything else follows; ``history`` is what delayed motors were told,
``plastic`` how soft things are deformed for good."""
PLACES = ("qpos", "mocap_pos", "mocap_quat")
"""State that poses everything in sight."""

Piece = tuple[str, int, int]
"""(field, start, stop): a run of columns of a field flattened to (N, K)."""

ModelKey = str | tuple[str, tuple[int, ...]]
"""A model field for all its objects, or (field, ids) for some of them."""


def row_numbers(rows: Any, n: int, *, once: bool = False) -> np.ndarray:
    """Row numbers as int32 from whole numbers in any order, a mask, or None for all.

    Args:
        rows: which rows.
        n: how many there are.
        once: no row may be named twice, since something is written to each.

    Raises:
        ConfigError: what is no row number, a number that is none of the n rows', or a mask of another length.
    """
    if rows is None:
        return np.arange(n, dtype=np.int32)
    try:
        array = np.asarray(rows)
    except (ValueError, TypeError, RuntimeError):  # ragged, sparse
        raise ConfigError(f"rows must be whole numbers or a mask, got {rows!r:.80}") from None
    if array.dtype == bool and array.shape != (n,):
        raise ConfigError(f"a mask of rows must be ({n},), got {array.shape}")
    if (array.size and array.dtype.kind not in "biu") or array.ndim > 1:
        raise ConfigError(f"rows must be whole numbers or a mask, got {rows!r}")
    index = np.flatnonzero(array) if array.dtype == bool else np.atleast_1d(array)
    if once and len(np.unique(index)) < len(index):
        raise ConfigError(f"a row is named twice: {index.tolist()}")
    if len(index) and (index.min() < 0 or index.max() >= n):
        raise ConfigError(f"rows must be within 0..{n - 1}, got {index.tolist()}")
    return index.astype(np.int32)


class Channel(Protocol):
    """Columns of physics state gathered into one float32 tensor; the tensor object stays the same while it is valid."""

    def all(self) -> torch.Tensor:
        """(N, width) float32, borrowed."""

    def rows(self, rows: np.ndarray) -> torch.Tensor:
        """(len(rows), width) float32, owned."""

    def write(self, value: torch.Tensor | np.ndarray, rows: np.ndarray | torch.Tensor | None = None) -> None:
        """Write (n, width) into state fields; takes effect at the next step or forward. On a device ``rows`` may be a
        mask (N,) of a value (N, width)."""


class World(Protocol):
    """What every physics backend offers; :class:`manikin.sim.cpu.CpuWorld` documents each method."""

    kind: str  # "cpu" or "warp": worlds of one kind take each other's snapshots
    num_worlds: int
    device: torch.device
    scene: CompiledScene
    version: int  # goes up whenever what read() returns may have changed
    dots: dict[str, torch.Tensor]  # what only pictures show, by group (N, count, 4); see :mod:`manikin.sim.dots`

    @property
    def timestep(self) -> float: ...
    def read(self, field: str) -> torch.Tensor: ...
    def write(self, field: str, value: torch.Tensor, rows: np.ndarray | None = None) -> None: ...
    def flat(self, field: str) -> Any:
        """A field flattened to (N, K), the physics' own array and not a copy: NumPy float64 on the CPU, a torch tensor
        on a device. It stays the same object and is current after every call and before each physics step of ``step``.
        Positions, velocities and controls may be written in place there; for controllers that act every step."""

    def channel(
        self, pieces: Sequence[Piece], shape: tuple[int, ...] | None = None, *, quat_at: int | None = None
    ) -> Channel:
        """Columns of fields as one (N, *shape) tensor; the quaternion at column ``quat_at`` is given with w >= 0."""

    def step(
        self, substeps: int, active: np.ndarray | None = None, before_substep: Callable[[int], None] | None = None
    ) -> np.ndarray | None: ...
    def forward(self, rows: np.ndarray | None = None) -> None: ...
    def set_home(self) -> None: ...
    def reset(self, rows: np.ndarray | None = None) -> None: ...
    def set_model(self, values: Mapping[Any, Any], rows: np.ndarray | None = None) -> None: ...
    def together(self) -> AbstractContextManager[None]: ...
    def states(self, rows: np.ndarray) -> np.ndarray:
        """(n, k) float64 the physics state of the rows, as in a snapshot, owned by the caller."""

    def save(self, rows: np.ndarray | None = None) -> Snapshot: ...
    def load(self, snapshot: Snapshot, rows: np.ndarray | None = None) -> None: ...
    def health(self) -> np.ndarray: ...
    def shortages(self) -> dict[str, Shortage]:
        """By name, the budgets that were too small so far; none on the CPU, which has room for everything."""

    def model_field(self, field: str) -> np.ndarray: ...
    @property
    def varied(self) -> frozenset[str]:
        """Model fields of which rows have their own."""

    def places(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """:data:`PLACES` of rows, each (n, K) in the world's own precision, owned."""

    def state_hash(self, rows: np.ndarray | None = None) -> np.ndarray: ...
    def memory_per_row(self) -> int: ...
    def data(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]: ...
    def close(self) -> None: ...
