"""What users pass to an environment, checked; every error says what was given and what is valid."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from manikin.errors import ActionError, ConfigError, UnknownNameError
from manikin.robots import Robot, members, robot
from manikin.spec.action import ActionCard
from manikin.spec.budget import Budget
from manikin.spec.physics import Physics

if TYPE_CHECKING:
    from manikin.env.task import Task

__all__ = [
    "action_shape",
    "actions",
    "flag",
    "indices",
    "mask",
    "mask_on",
    "mask_shape",
    "one_of",
    "physics_at",
    "positive_int",
    "robots",
    "room",
    "row_number",
    "seeds",
    "substeps",
]


def robots(task: type[Task] | Task, given: str | Sequence[str] | None) -> tuple[str, tuple[Robot, ...]]:
    """The word for the robots that a task is given, by default its first, and what it means.

    Raises:
        UnknownNameError: no such robot.
        ConfigError: the task takes another number of robots.
    """
    word = task.robots[0] if given is None else given if isinstance(given, str) else ",".join(given)
    words = members(word)
    chosen = tuple(robot(one) for one in words)
    if len(chosen) != task.robot_count:
        hint = f"; for example robot={','.join(words[:1] * task.robot_count)!r}" if len(words) == 1 else ""
        raise ConfigError(f"{task.id} takes {task.robot_count} robots, but {word!r} is {len(chosen)}{hint}")
    return word, chosen


def one_of(kind: str, word: str, valid: Iterable[str]) -> str:
    """``word`` if it is valid."""
    valid = tuple(valid)
    if word not in valid:
        raise UnknownNameError(kind, word, valid)
    return word


def positive_int(name: str, value: Any) -> int:
    """``value`` as an int >= 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ConfigError(f"{name} must be a positive integer, not {value!r}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """``value`` as a bool; words and numbers, of which "no" would count as yes, are refused."""
    if not isinstance(value, bool | np.bool_):
        raise ConfigError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def room(budget: Any) -> Budget | None:
    """``budget`` if it is one, or None."""
    if budget is not None and not isinstance(budget, Budget):
        names = ", ".join(f"{f.name}=..." for f in dataclasses.fields(Budget))
        raise ConfigError(f"budget must be None or a manikin.Budget({names}), not {budget!r}")
    return budget


def physics_at(physics: Physics, hz: float | None) -> Physics:
    """``physics`` at another rate."""
    if hz is None:
        return physics
    if not hz > 0:
        raise ConfigError(f"physics_hz must be positive, not {hz}")
    return dataclasses.replace(physics, hz=float(hz))


def substeps(physics_hz: float, control_hz: float) -> int:
    """Physics steps per control step."""
    if not control_hz > 0:
        raise ConfigError(f"control_hz must be positive, not {control_hz}")
    ratio = physics_hz / control_hz
    if abs(ratio - round(ratio)) > 1e-6 or round(ratio) < 1:
        good = [f"{physics_hz / k:g}" for k in range(1, 41) if abs(physics_hz / k - round(physics_hz / k)) < 1e-9]
        listed = ", ".join(good)
        raise ConfigError(
            f"control_hz {control_hz:g} does not divide physics_hz {physics_hz:g}; control_hz that do: {listed}"
        )
    return round(ratio)


def mask(value: Any, n: int, name: str = "reset_mask") -> np.ndarray:
    """(n,) bool, a copy; all True for None."""
    if value is None:
        return np.ones(n, bool)
    array = value.cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    mask_shape(array, n, name)
    return array.copy()


def mask_on(value: Tensor | np.ndarray, n: int, name: str, device: torch.device) -> Tensor:
    """``value``, (n,) bool, as a tensor of its own on the device; what is there does not come to the host."""
    if isinstance(value, Tensor) and value.device == device:
        mask_shape(value, n, name)
        return value.clone()
    return torch.from_numpy(mask(value, n, name)).to(device)


def mask_shape(value: Tensor | np.ndarray, n: int, name: str) -> None:
    """Raise :class:`ConfigError` unless ``value`` is (n,) bool."""
    kind = str(value.dtype).removeprefix("torch.")
    if tuple(value.shape) != (n,) or kind != "bool":
        raise ConfigError(f"{name} must be bool of shape ({n},), got {kind} of shape {tuple(value.shape)}")


def row_number(row: Any, n: int) -> int:
    """``row`` as an int of 0 to ``n`` - 1."""
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < n:
        raise ConfigError(f"row must be an integer within 0..{n - 1}, got {row!r}")
    return int(row)


def seeds(seed: Any, rows: np.ndarray, n: int) -> list[int | None]:
    """The seed given for each of ``rows``, None where the row goes on with its own."""
    given: list[int | None]
    if seed is None:
        return [None] * len(rows)
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        given = [int(seed) + int(r) for r in rows]
    else:
        given = [None if s is None else int(s) for s in seed]
        if len(given) == n:
            given = [given[r] for r in rows]
        elif len(given) != len(rows):
            raise ConfigError(
                f"seed has {len(given)} entries; give {n} (one per row) or {len(rows)} (one per started row)"
            )
    for value in given:
        if value is not None and value < 0:
            raise ConfigError(f"seeds are non-negative integers, not {value}")
    return given


def indices(index: Any, rows: np.ndarray, n: int) -> np.ndarray:
    """Episode indices (len(rows),) from one for all, one per started row, or one per row."""
    values = np.asarray(index, np.int64)
    values = np.broadcast_to(values, (len(rows),)) if values.ndim == 0 else values
    if len(values) == n != len(rows):
        values = values[rows]
    if values.shape != (len(rows),) or (values < 0).any():
        raise ConfigError(f"episode_index needs {len(rows)} non-negative integers, got {index!r}")
    return values


def action_shape(given: Tensor | np.ndarray, n: int, card: ActionCard) -> None:
    """Raise :class:`ActionError` unless the actions are floating point of shape (n, size)."""
    shape = (n, card.size)
    if tuple(given.shape) != shape:
        names = ", ".join(d.name for d in card.dims)
        raise ActionError(f"actions must have shape {shape} ({card.controller}: {names}), got {tuple(given.shape)}")
    if not (given.is_floating_point() if isinstance(given, Tensor) else given.dtype.kind == "f"):
        raise ActionError(f"actions must be floating point, not {str(given.dtype).removeprefix('torch.')}")


def actions(given: Any, n: int, card: ActionCard, refuse: bool) -> tuple[Tensor, np.ndarray | None]:
    """Actions as float32 (n, size) in [-1, 1], and how many numbers of each row were clipped (None for none)."""
    array = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    action_shape(array, n, card)
    clipped = None
    if np.count_nonzero(np.abs(array) <= 1.0) < array.size:  # also where a number is NaN
        if not np.isfinite(array).all():
            raise ActionError(f"actions of rows {_first(~np.isfinite(array))} are not finite")
        beyond = np.abs(array) > 1.0
        if refuse:
            raise ActionError(
                f"actions of rows {_first(beyond)} are beyond [-1, 1] (largest {np.abs(array).max():.3g})"
            )
        clipped, array = beyond.sum(1), np.clip(array, -1.0, 1.0)
    return torch.from_numpy(np.ascontiguousarray(array, np.float32)), clipped


def _first(bad: np.ndarray) -> list[int]:
    """The first ten rows with anything bad."""
    return np.flatnonzero(bad.any(1)).tolist()[:10]
