"""Saving and loading rows of an environment: physics, controller, sensors, the task's variables, counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from manikin.errors import DataError
from manikin.sim.snapshot import Snapshot

if TYPE_CHECKING:
    from manikin.env.env import Env

__all__ = ["load", "save"]

_COUNTERS = ("seed", "index", "elapsed", "done", "clipped")


def save(env: Env, index: np.ndarray) -> Snapshot:
    """Everything that later steps of the rows ``index`` depend on, owned by the caller."""
    at = torch.from_numpy(index)
    snapshot = env.world.save(index)
    snapshot.extra = {
        "variables": {v.name: v.data[at].numpy().copy() for v in env._builder.variables},
        "carry": env._carry[at].numpy().copy(),
        "sensors": {name: value[at].numpy().copy() for name, value in env._observer.carry.items()},
        **{name: getattr(env, f"_{name}")[index].copy() for name in _COUNTERS},
    }
    return snapshot


def load(env: Env, snapshot: Snapshot, index: np.ndarray) -> None:
    """Put the rows ``index`` where the snapshot was: as many rows, or one for all.

    Raises:
        DataError: it was taken from another scene, controller or set of sensors.
    """
    which, extra = snapshot.index_for(len(index), env.scene.hash), snapshot.extra
    if "carry" not in extra:
        raise DataError("this snapshot was taken from a World, not from an Env; load it into env.world")
    if extra["carry"].shape[1] != env._carry.shape[1]:
        raise DataError(f"this snapshot was taken with another controller than {env.controller.name}")
    sensors = extra.get("sensors", {})
    if env._observer.carry and set(sensors) != set(env._observer.carry):
        raise DataError("this snapshot was taken with other sensor imperfections")
    env.world.load(snapshot, index)
    at = torch.from_numpy(index)
    for variable in env._builder.variables:
        variable.data[at] = torch.from_numpy(extra["variables"][variable.name][which])
    env._carry = env._carry.clone()
    env._carry[at] = torch.from_numpy(extra["carry"][which])
    for name, value in env._observer.carry.items():
        value[at] = torch.from_numpy(sensors[name][which])
    for name in _COUNTERS:
        getattr(env, f"_{name}")[index] = extra[name][which]
