"""Observations whose shape differs between layouts: padded with zeros, with a mask beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import torch
from torch import Tensor

from manikin.env.task import Task
from manikin.errors import ConfigError

__all__ = ["Padding"]


class Padding:
    """Pads what a task declares with ``Quantity(..., padded_to=...)``.

    Args:
        task: whose observations they are, and whose layouts.
        space: of a row of the first layout, with names.
        device: of the observations.
    """

    def __init__(self, task: Task, space: gymnasium.Space, device: torch.device) -> None:
        self._task, self._shapes = task, _shapes(space)
        self._masks: dict[tuple[str, str], Tensor] = {}
        for (group, name), shape in self._shapes.items():
            quantity = task.observations.get(name)
            if quantity is not None and quantity.padded_to:
                frames = shape[: len(shape) - len(quantity.padded_to)]  # of a stack
                size = (len(task.layouts), *frames, *quantity.padded_to)
                self._masks[group, name] = torch.zeros(size, device=device)

    def add(self, layout: int, space: gymnasium.Space) -> None:
        """Take in the observations of a layout, of its number.

        Raises:
            ConfigError: a shape differs from the first layout's and is not declared, or is larger than declared; says
                what to write.
        """
        for (group, name), shape in _shapes(space).items():
            table = self._masks.get((group, name))
            if table is None:
                first = self._shapes.get((group, name))
                if first != shape:
                    most = tuple(map(max, first, shape)) if first and len(first) == len(shape) else shape
                    raise ConfigError(
                        f"observation {name!r} of {self._task.id} has shape {first} in layout "
                        f"{self._task.layouts[0]!r} and {shape} in {self._task.layouts[layout]!r}: declare the largest "
                        f"of all layouts, observations[{name!r}] = Quantity(..., padded_to={most})"
                    )
                continue
            room = tuple(table.shape[1:])
            if len(room) != len(shape) or any(one > most for one, most in zip(shape, room, strict=True)):
                raise ConfigError(
                    f"observation {name!r} of {self._task.id} has shape {shape} in layout "
                    f"{self._task.layouts[layout]!r}, which does not fit into padded_to={room}"
                )
            place: Any = (layout, *(slice(0, size) for size in shape))
            table[place] = 1.0

    def masked(self, group: str, name: str) -> bool:
        """Whether the observation has a mask beside it."""
        return (group, name) in self._masks

    def apply(self, named: dict[str, Any], layout: Tensor) -> dict[str, Any]:
        """Observations (N, ...) by group and name as wide as declared, with masks, for rows of these layouts (N,)."""
        for (group, name), table in self._masks.items():
            if group not in named:
                continue
            whole: dict[str, Tensor] = {}
            for key, value in named[group].items():
                whole[key] = value
                if key == name:
                    whole[key] = value.new_zeros(len(value), *table.shape[1:])
                    place: Any = (slice(None), *(slice(0, size) for size in value.shape[1:]))
                    whole[key][place] = value
                    whole[f"{name}_mask"] = table[layout]
            named[group] = whole
        return named


def _shapes(space: gymnasium.Space) -> dict[tuple[str, str], tuple[int, ...]]:
    """(group, name) -> shape of what a task observes, from the space of a named observation."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for group in ("policy", "privileged"):
        inside: Mapping[str, gymnasium.Space] = space[group] if group in space.spaces else {}  # type: ignore[attr-defined, index]
        found |= {(group, name): tuple(one.shape or ()) for name, one in inside.items()}
    return found
