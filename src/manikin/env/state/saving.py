"""Saving and loading rows of an environment: physics, controller, sensors, the task's variables, counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manikin.env.loop.base import COUNTERS, Loop
from manikin.errors import DataError
from manikin.sim.snapshot import Snapshot

if TYPE_CHECKING:
    from manikin.env.assemble import Assembly

__all__ = ["check_sizes", "checked_states", "load", "put", "save", "size_of"]


def save(made: Assembly, loop: Loop, index: np.ndarray) -> Snapshot:
    """Everything that later steps of the rows ``index`` depend on, owned by the caller."""
    at = torch.from_numpy(index).to(made.world.device)
    snapshot = made.world.save(index)
    snapshot.extra = {
        "variables": {v.name: _numpy(v.data[at]) for v in made.builder.variables},
        "carry": _numpy(loop.carry[at]),
        "sensors": {name: _numpy(value[at]) for name, value in loop.observer.carry.items()},
        **loop.counters(index),
    }
    return snapshot


def load(made: Assembly, loop: Loop, snapshot: Snapshot, index: np.ndarray) -> None:
    """Put the rows ``index`` where the snapshot was: as many rows, or one for all.

    Raises:
        DataError: it is no snapshot of such an environment, or was taken from another scene, kind of world, controller
            or set of sensors.
    """
    if not isinstance(snapshot, Snapshot):
        raise DataError(f"load() takes a snapshot that save() returned, not a {type(snapshot).__name__}")
    which, extra = snapshot.index_for(len(index), made.scene.physics_hash, made.world.kind), snapshot.extra
    if "carry" not in extra:
        raise DataError("this snapshot was taken from a World, not from an Env; load it into env.world")
    if extra["carry"].shape[1] != loop.carry.shape[1]:
        raise DataError(
            f"this snapshot belongs to another controller than {made.controller.name!r}; load it into an environment "
            "with the same control="
        )
    sensors = extra.get("sensors", {})
    if loop.observer.carry and set(sensors) != set(loop.observer.carry):
        raise DataError(
            "this snapshot belongs to other sensors or stacks; load it into an environment with the same sensors= "
            "and observe="
        )
    made.world.load(snapshot, index)
    at = torch.from_numpy(index).to(made.world.device)
    for variable in made.builder.variables:
        _put(variable.data, at, extra["variables"][variable.name][which])
    _put(loop.carry, at, extra["carry"][which])
    for name, value in loop.observer.carry.items():
        _put(value, at, sensors[name][which])
    loop.set_counters(index, {name: extra[name][which] for name in COUNTERS})


def put(made: Assembly, loop: Loop, states: Sequence[np.ndarray], index: np.ndarray) -> None:
    """Put the rows ``index`` into physics states (see :func:`checked_states` and :func:`check_sizes`), as if a control
    step had led there; nothing is simulated."""
    world, at = made.world, torch.from_numpy(index).to(made.world.device)
    mask = torch.zeros(loop.num_envs, dtype=torch.bool, device=world.device)
    mask[at] = True
    loop.dresser.step(mask if isinstance(loop.seed, torch.Tensor) else index, loop.seed, loop.index, loop.elapsed)
    snapshot = world.save(index)
    snapshot.state = np.stack(states) if states else snapshot.state
    world.load(snapshot, index)
    world.forward(index)  # the forces that load has served again are those of the state before
    others = [(variable.data, variable.data[~mask].clone()) for variable in made.builder.variables]
    made.task.advance(made.h)
    for target, kept in others:
        target[~mask] = kept
    counters = loop.counters(index)
    loop.set_counters(index, counters | {"elapsed": counters["elapsed"] + 1})


def size_of(model: mujoco.MjModel) -> int:
    """How many numbers a physics state of a model has: MuJoCo's integration state."""
    return int(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))


def check_sizes(made: Assembly, states: Sequence[np.ndarray]) -> None:
    """Raise :class:`DataError` where a state has another size than this scene's: it was recorded on another scene or
    kind of device."""
    size = size_of(made.scene.model)
    for one in states:
        if len(one) != size:
            raise DataError(f"a state of {len(one)} numbers cannot be put into a scene whose states have {size}")


def checked_states(states: Any, count: int) -> list[np.ndarray]:
    """Physics states as vectors of float64, so many of them.

    Raises:
        DataError: they are something else.
    """
    try:
        found = [np.asarray(state, np.float64) for state in states]
    except (TypeError, ValueError):
        found = []
    if len(found) != count or any(state.ndim != 1 for state in found):
        raise DataError(
            f"put takes {count} states as physics_states() gives them, one for each row, not {states!r:.80}"
        )
    return found


def _numpy(value: torch.Tensor) -> np.ndarray:
    return value.cpu().numpy().copy()


def _put(target: torch.Tensor, at: torch.Tensor, value: np.ndarray) -> None:
    target[at] = torch.from_numpy(value).to(target)
