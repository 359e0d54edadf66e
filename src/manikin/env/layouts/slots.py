"""Rows spread over the slots of several environments: which row is where, and joining what they give.

Index tensors are made when a row moves to another slot and stay on the device: a step copies none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.env.env import Env
from manikin.env.loop.device import DeviceLoop

__all__ = ["Places", "Slots"]

_DECLARED = 3_000_000  # bytes of a scene's declaration and handles: measured with an arm and three cabinets


class Slots:
    """An environment of one layout.

    Attributes:
        layout: its number.
        rows: (slots,) which row is in each slot, -1 for none.
        started: whether every slot has a state.
        memory: bytes that it takes, about: the declared and the compiled scene, and the rows' simulations at its start.
    """

    def __init__(self, env: Env, layout: int) -> None:
        self.env, self.layout = env, layout
        self.rows = np.full(env.num_envs, -1)
        self.started, self.memory = False, _memory(env)
        self._index: tuple[Tensor, Tensor | None] | None = None

    @property
    def used(self) -> np.ndarray:
        """(slots,) bool: a row is in it."""
        return self.rows >= 0

    def put(self, slot: int, row: int) -> None:
        """A row is in a slot from now on; -1 for none."""
        self.rows[slot] = row
        self._index = None

    @property
    def _at(self) -> tuple[Tensor, Tensor | None]:
        """Row of each slot on the device, and which slots have one, None for all."""
        if self._index is None:
            used, device, loop = self.used, self.env.device, self.env._loop
            if isinstance(loop, DeviceLoop):
                loop.leave_out(~used)
            rows = torch.from_numpy(self.rows.clip(0)).to(device)
            self._index = rows, None if used.all() else torch.from_numpy(used).to(device)
        return self._index

    def slotwise(self, values: Tensor) -> Tensor:
        """Values (N, ...) of rows as (slots, ...), 0 in free slots."""
        rows, used = self._at
        chosen = values[rows]
        if used is None:
            return chosen
        return torch.where(used.reshape(-1, *[1] * (values.ndim - 1)), chosen, torch.zeros_like(chosen))

    def moving(self, going: Tensor | None) -> Tensor | None:
        """(slots,) bool of those that step when these rows (N,) do, None for all: both for all of them."""
        moves = self._at[1] if going is None else self.slotwise(going)
        return None if moves is None or bool(moves.all()) else moves

    def ready(self) -> None:
        """Give every slot a state where none has one."""
        if not self.started:
            self.start([0] * len(self.rows), np.ones(len(self.rows), bool), {})

    def start(
        self, seeds: Sequence[int | None], mask: np.ndarray, options: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Restart the slots of the mask; the first time also those that no row is in, so that all have a state."""
        first = not self.started
        if first:
            seeds, mask = [0 if s is None else s for s in seeds], np.ones(len(self.rows), bool)
        self.started = True
        chosen = [s for s, m in zip(seeds, mask, strict=True) if m]
        out = self.env.reset(seed=chosen, options={**options, "reset_mask": mask})
        self.memory = _memory(self.env) if first else self.memory  # model fields that vary have rows now
        return out


def _memory(env: Env) -> int:
    return _DECLARED + int(env.scene.model.nbuffer) + env.world.memory_per_row() * env.num_envs


class Places:
    """Where every row is among the slots of several environments, laid end to end.

    Args:
        several: by their numbers, in order.
        number, slot: (N,) of each row; number -1 for a row that has no slot yet.
        device: of what is joined.

    Attributes:
        layout: (N,) int64 of each row on the device, -1 for a row that has no slot.
        everywhere: whether every row has a slot.
    """

    def __init__(
        self, several: Mapping[int, Slots], number: np.ndarray, slot: np.ndarray, device: torch.device
    ) -> None:
        self._slots: dict[int, slice] = {}
        at, layout = np.full(len(number), -1), np.full(len(number), -1)
        self._total = 0
        for k, one in several.items():
            here, end = number == k, self._total + one.env.num_envs
            at[here], layout[here] = self._total + slot[here], one.layout
            self._slots[k], self._total = slice(self._total, end), end
        self.everywhere = bool((at >= 0).all())
        at[at < 0] = self._total  # where nothing is but zeros
        self._at, self.layout = torch.from_numpy(at).to(device), torch.from_numpy(layout).to(device)

    def joined(self, found: Mapping[int, Any]) -> Any:
        """Values (slots, ...) of each environment as one (N, ...): rows in their places, the rest of a shape zero."""
        some = next(iter(found.values()))
        if isinstance(some, Mapping):
            keys = dict.fromkeys(key for value in found.values() for key in value)
            return {key: self.joined({k: v[key] for k, v in found.items() if key in v}) for key in keys}
        parts = {k: torch.as_tensor(v) for k, v in found.items()}
        shapes = {value.shape[1:] for value in parts.values()}
        if self.everywhere and len(shapes) == 1 and parts.keys() == self._slots.keys():
            return torch.cat([parts[k] for k in self._slots])[self._at]
        most = [max(sizes) for sizes in zip(*shapes, strict=True)]
        whole = next(iter(parts.values())).new_zeros(self._total + 1, *most)
        for k, value in parts.items():
            place: Any = (self._slots[k], *(slice(0, s) for s in value.shape[1:]))
            whole[place] = value
        return whole[self._at]
