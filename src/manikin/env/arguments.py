"""What users pass to an environment, checked; every error says what was given and what is valid."""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from manikin.errors import ActionError, ConfigError, SceneError, UnknownNameError
from manikin.grippers import grippers
from manikin.robots import RobotSelection, arms, members, robot
from manikin.robots import robots as every_robot
from manikin.spec.action import ActionCard
from manikin.spec.budget import Budget
from manikin.spec.physics import Physics
from manikin.spec.robot import GripperSpec

if TYPE_CHECKING:
    from manikin.env.task import Task

__all__ = [
    "action_shape",
    "actions",
    "as_array",
    "flag",
    "indices",
    "mask",
    "mask_on",
    "mask_shape",
    "naming_robots",
    "numbers",
    "one_of",
    "own_hz",
    "options",
    "physics_at",
    "positive",
    "positive_int",
    "robot_word",
    "robots",
    "room",
    "row_number",
    "seeds",
    "substeps",
    "warn_of_slips",
    "whole",
]

log = logging.getLogger("manikin")

_TORQUE_HZ = 200.0  # operational space that followed three motions slowly lost all three cubes at 100 Hz, none at 200
_MOST = 2**63 - 1  # the largest seed and episode index


def robots(task: type[Task] | Task, given: str | Sequence[str] | None) -> tuple[str, tuple[RobotSelection, ...]]:
    """The word for the robots that a task is given, by default its first, and what it means.

    Raises:
        UnknownNameError: no such robot.
        ConfigError: the task takes another number of robots, or one lacks what the task needs.
    """
    given = robot_word(given)
    word = task.robots[0] if given is None else given
    words = members(word)
    chosen = tuple(robot(one) for one in words)
    if len(chosen) != task.robot_count:
        hint = f"; for example robot={','.join(words[:1] * task.robot_count)!r}" if len(words) == 1 else ""
        takes = "1 robot" if task.robot_count == 1 else f"{task.robot_count} robots"
        raise ConfigError(f"{task.id} takes {takes}, but {word!r} is {len(chosen)}{hint or f'; {_tested(task)}'}")
    for one, selection in zip(words, chosen, strict=True):
        if lacking := [what for what in task.robot_needs if not _has(selection, what)]:
            raise ConfigError(
                f"{task.id} needs a robot with {' and '.join(task.robot_needs)}, and {one!r} has no "
                f"{' and no '.join(lacking)}; it takes {', '.join(_able(task))}"
            )
    return word, chosen


def _able(task: type[Task] | Task) -> list[str]:
    """Words of the robots that have what a task needs, and those that it is tested with: a hand on an arm is not
    looked for. A gripper that it needs is put on every arm with a flange. A task for several robots takes as many of
    each."""
    if task.robots_named:
        return list(task.robots_named)
    held = next((f"+{what}" for what in task.robot_needs if what in grippers()), "")
    names = arms() if held or "arm" in task.robot_needs else every_robot()
    words = [f"{name}{held}" for name in names if not held or robot(name).arm.flange_body]
    able = [
        ",".join([word] * task.robot_count)
        for word in words
        if all(_has(robot(word), what) for what in task.robot_needs)
    ]
    return [*able, *(word for word in task.robots if word not in able)]


def _has(selection: RobotSelection, what: str) -> bool:
    """Whether a robot has what a word of :attr:`Task.robot_needs` says."""
    spec = selection.arm
    kind, _, name = what.partition(" ")
    if name == "base":
        return kind == spec.base.kind or (kind == "held" and not spec.base.loose)
    if name in ("feet", "joints") and kind.isdigit():
        return len(getattr(spec, name)) == int(kind)
    if name and kind in ("link", "keyframe"):
        return name in ([link.name for link in spec.links] if kind == "link" else spec.keyframes)
    if what in ("feet", "measures_centre"):
        return bool(getattr(spec, what))
    if what == "servos that hold it up":
        return spec.stands
    if what == "tool":
        return bool(spec.tools)
    if what == "flange":
        return bool(spec.flange_body)
    tools = [tool.gripper for tool in spec.tools.values()] if len(spec.tools) > 1 else [selection.gripper]
    hands = [hand for hand in tools if isinstance(hand, GripperSpec)]
    if what == "gripper":
        return any(hand.fingers for hand in hands)
    return what in (*spec.groups, *spec.tools, *(hand.name for hand in hands))


def _tested(task: type[Task] | Task) -> str:
    return f"{task.id} is tested with {' or '.join(map(repr, task.robots))}"


@contextmanager
def naming_robots(task: Task, word: str) -> Iterator[None]:
    """Where a robot that the task is not tested with does not fit, the error also says which ones do."""
    try:
        yield
    except (ConfigError, SceneError, UnknownNameError) as error:
        if word not in task.robots:
            error.add_note(_tested(task))
        raise


def robot_word(given: Any) -> str | None:
    """A word for robots, or several words, as one; None stays."""
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, Sequence) or not all(isinstance(word, str) for word in given):
        raise ConfigError(f"robot must be a word, like 'panda', or a sequence of words, not {given!r:.80}")
    return ",".join(given)


def one_of(kind: str, word: str, valid: Iterable[str]) -> str:
    """``word`` if it is valid."""
    valid = tuple(valid)
    if not isinstance(word, str) or word not in valid:
        raise UnknownNameError(kind, word, valid)
    return word


def positive_int(name: str, value: Any) -> int:
    """``value`` as an int >= 1."""
    return whole(name, value, 1, 2**31 - 1, "a positive integer")


def whole(name: str, value: Any, least: int, most: int, kind: str = "an integer") -> int:
    """``value`` as an int within ``least`` and ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ConfigError(f"{name} must be {kind}, not {value!r:.80}")
    if value > most:
        raise ConfigError(f"{name} must be at most {most}, not {value}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """``value`` as a finite float > 0."""
    number: Any = value  # a Real compares with floats, also where it is too large to become one
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < number <= 1e30:
        raise ConfigError(f"{name} must be a positive number, not {value!r:.80}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """``value`` as a bool; words and numbers, of which "no" would count as yes, are refused."""
    if not isinstance(value, bool | np.bool_):
        raise ConfigError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def room(name: str, budget: Any) -> Budget | None:
    """``budget`` if it is one, or None."""
    if budget is not None and not isinstance(budget, Budget):
        names = ", ".join(f"{f.name}=..." for f in dataclasses.fields(Budget))
        raise ConfigError(f"{name} must be None or a manikin.Budget({names}), not {budget!r}")
    return budget


def own_hz(physics: Physics, grippers: Sequence[GripperSpec], *, torques: bool) -> float:
    """The lowest multiple of the rate of ``physics`` [Hz] that the grippers hold at, and 200 Hz or more for controllers
    that command torques, whose law is taken step by step."""
    wanted = max(_least_hz(physics, grippers), _TORQUE_HZ if torques else 0.0)
    return physics.hz * max(1, math.ceil(wanted / physics.hz)) if physics.integrator == "discrete" else physics.hz


def _least_hz(physics: Physics, grippers: Sequence[GripperSpec]) -> float:
    """The lowest rate [Hz] at which the grippers hold."""
    return max((physics.least_hz(closed_loops=bool(gripper.connects)) for gripper in grippers), default=0.0)


def physics_at(
    physics: Physics, hz: float | None, grippers: Sequence[GripperSpec], *, torques: bool = False
) -> Physics:
    """``physics`` at the rate that is asked for; without one, as :func:`own_hz` says. Where what is asked for is lower
    than grippers need, the log warns once."""
    least = _least_hz(physics, grippers)
    if hz is None:
        hz = own_hz(physics, grippers, torques=torques)
    if positive("physics_hz", hz) > 1e6:
        raise ConfigError(f"physics_hz must be at most 1e6, not {hz}")
    if hz < least:
        warn_of_slips(physics.integrator, float(hz), least, ", ".join(gripper.name for gripper in grippers))
    return dataclasses.replace(physics, hz=float(hz))


@functools.cache
def warn_of_slips(integrator: str, hz: float, least_hz: float, grippers: str) -> None:
    """Say once that things slip out of these grippers at this rate."""
    log.warning(
        "physics: %s at %g Hz loses what %s holds; from %g Hz on it holds%s (docs: physics)",
        integrator,
        hz,
        grippers,
        least_hz,
        "" if integrator == "discrete" else ", and Physics(integrator='discrete') at 100 Hz",
    )


def substeps(physics_hz: float, control_hz: float) -> int:
    """Physics steps per control step."""
    ratio = physics_hz / control_hz
    if abs(ratio - round(ratio)) > 1e-6 or round(ratio) < 1:
        good = [f"{physics_hz / k:g}" for k in range(1, 41) if abs(physics_hz / k - round(physics_hz / k)) < 1e-9]
        listed = ", ".join(good)
        raise ConfigError(
            f"control_hz {control_hz:g} does not divide physics_hz {physics_hz:g}; control_hz that do: {listed}"
        )
    return round(ratio)


def options(given: Any) -> dict[str, Any]:
    """The options of a reset, a copy."""
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"options must be a mapping, like {{'episode_index': 3}}, not {given!r:.80}")
    return dict(given or {})


def mask(value: Any, n: int, name: str = "reset_mask") -> np.ndarray:
    """(n,) bool, a copy; all True for None."""
    if value is None:
        return np.ones(n, bool)
    array = as_array(value, name, ConfigError)
    mask_shape(array, n, name)
    return array.copy()


def as_array(value: Any, name: str, error: type[ConfigError | ActionError]) -> np.ndarray:
    """``value`` as an array of the host; ``error`` where it is none: ragged, sparse, of numbers NumPy has not."""
    try:
        return value.numpy(force=True) if isinstance(value, Tensor) else np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as reason:  # RuntimeError covers what torch has not implemented
        found = f"{value.layout} {value.dtype}" if isinstance(value, Tensor) else f"{value!r:.80}"
        raise error(f"{name} must be an ordinary array or tensor, got {found}: {reason!s:.80}") from None


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
    if seed is None:
        return [None] * len(rows)
    if isinstance(seed, Tensor | np.ndarray):
        seed = as_array(seed, "seed", ConfigError).tolist()
    if not isinstance(seed, Sequence | range) or isinstance(seed, str | bytes):
        first = whole("seed", seed, 0, _MOST - n, "a non-negative integer, or a sequence of them")
        return [first + int(row) for row in rows]
    given = [None if s is None else whole("each seed", s, 0, _MOST, "a non-negative integer or None") for s in seed]
    if len(given) == n:
        return [given[row] for row in rows]
    if len(given) != len(rows):
        raise ConfigError(f"seed has {len(given)} entries; give {n} (one per row) or {len(rows)} (one per started row)")
    return given


def indices(index: Any, rows: np.ndarray, n: int) -> np.ndarray:
    """Episode indices (len(rows),) from one for all, one per started row, or one per row."""
    values = as_array(index, "episode_index", ConfigError)
    if values.size and values.dtype.kind not in "iu":
        raise ConfigError(f"episode_index needs {len(rows)} non-negative integers below 2**63, got {index!r:.80}")
    values = np.broadcast_to(values, (len(rows),)) if values.ndim == 0 else values
    if len(values) == n != len(rows):
        values = values[rows]
    if values.shape != (len(rows),) or (values < 0).any() or (values > _MOST).any():
        raise ConfigError(f"episode_index needs {len(rows)} non-negative integers below 2**63, got {index!r:.80}")
    return values.astype(np.int64)


def action_shape(given: Tensor | np.ndarray, n: int, card: ActionCard) -> None:
    """Raise :class:`ActionError` unless the actions are floating point of shape (n, size)."""
    shape = (n, card.size)
    if given.shape != shape:
        names = ", ".join(d.name for d in card.dims)
        raise ActionError(f"actions must have shape {shape} ({card.controller}: {names}), got {tuple(given.shape)}")
    if not (given.is_floating_point() if isinstance(given, Tensor) else given.dtype.kind == "f"):
        raise ActionError(f"actions must be floating point, not {str(given.dtype).removeprefix('torch.')}")


def actions(given: Any, n: int, card: ActionCard, refuse: bool) -> tuple[Tensor, np.ndarray | None]:
    """Actions as float32 (n, size) in [-1, 1], and how many numbers of each row were clipped (None for none)."""
    array = as_array(given, "actions", ActionError)
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


def numbers(name: str, given: Any, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """``given`` as float32 of this shape on the device."""
    if (
        isinstance(given, Tensor)
        and given.device == device
        and given.dtype == torch.float32
        and given.layout == torch.strided
    ):
        tensor = given.detach()
    else:
        array = as_array(given, name, ActionError)
        if array.dtype.kind not in "fiu":
            raise ActionError(f"{name} must be numbers of shape {shape}, got {array.dtype} of shape {array.shape}")
        tensor = torch.from_numpy(np.ascontiguousarray(array, np.float32))
    if tensor.is_nested or tuple(tensor.shape) != shape:
        found = "a nested tensor" if tensor.is_nested else tuple(tensor.shape)
        raise ActionError(f"{name} must have shape {shape}, got {found}")
    return tensor.to(device)


def _first(bad: np.ndarray) -> list[int]:
    """The first ten rows with anything bad."""
    return np.flatnonzero(bad.any(1)).tolist()[:10]
