"""Describes the differences between two states or results, so that the message points at the cause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from torch import Tensor

from manikin.sim.snapshot import Snapshot
from manikin.sim.variation import compiled

__all__ = ["first_difference", "owned", "state_name", "unlike"]


def first_difference(
    model: mujoco.MjModel, a: Snapshot, b: Snapshot, row_a: int | None = None, row_b: int | None = None
) -> str:
    """The first thing that differs to the bit between two snapshots of an Env, or between one row of each.

    Physics state, task variables, the rows' model parameters, and the controller's memory. Empty when all is equal.
    """

    def pick(value: Any, row: int | None) -> np.ndarray:
        return np.asarray(value) if row is None else np.asarray(value)[row : row + 1]

    x, y = pick(a.state, row_a), pick(b.state, row_b)
    if not np.array_equal(x, y, equal_nan=True):
        column = int(np.flatnonzero((x != y).any(0))[0])
        at = int(np.flatnonzero(x[:, column] != y[:, column])[0])
        return f"{state_name(model, column)}: {x[at, column]:.6g} and {y[at, column]:.6g}"
    parts = [(f"the variable {k!r}", v, b.extra["variables"][k]) for k, v in a.extra["variables"].items()]
    fields = sorted({*a.model, *b.model})
    parts += [(f"the model's {k}", _model_field(model, k, a, b), _model_field(model, k, b, a)) for k in fields]
    parts.append(("the controller's memory", a.extra["carry"], b.extra["carry"]))
    for name, one, two in parts:
        if not np.array_equal(pick(one, row_a), pick(two, row_b), equal_nan=True):
            return name
    return ""


def _model_field(model: mujoco.MjModel, field: str, one: Snapshot, other: Snapshot) -> np.ndarray:
    """(n, ...) of a snapshot's rows; where only the other has the field, it is the compiled one in these."""
    if field in one.model:
        return one.model[field]
    like = other.model[field][0]
    value = compiled(model, field).reshape(-1)[: like.size].astype(like.dtype)
    return np.broadcast_to(value.reshape(like.shape), (len(one), *like.shape))


def state_name(model: mujoco.MjModel, column: int) -> str:
    """Words for a column of MuJoCo's integration state: ``qpos of cube``, ``qvel of robot/joint1``, ``mocap_pos``."""
    at, last = column, int(mujoco.mjtState.mjNSTATE)
    for part in (mujoco.mjtState(1 << bit) for bit in range(last)):
        size = mujoco.mj_stateSize(model, int(part))
        if at < size:
            word = str(part.name).removeprefix("mjSTATE_").lower()
            starts = {"qpos": model.jnt_qposadr, "qvel": model.jnt_dofadr}.get(word)
            if starts is None:
                return word
            joint = int(np.searchsorted(starts, at, side="right")) - 1
            return f"{word} of {model.joint(joint).name}"
        at -= size
    return f"column {column} of the state"


def unlike(a: Any, b: Any, name: str = "value") -> str:
    """The name of the first part that differs to the bit (NaN equals NaN), empty when nothing does."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape:
            return name
        return "" if np.array_equal(a.numpy(), b.numpy(), equal_nan=True) else name
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return "" if np.array_equal(a, b) else name
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return name
        return next((found for k in a if (found := unlike(a[k], b[k], str(k)))), "")
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        if len(a) != len(b):
            return name
        return next((found for x, y in zip(a, b, strict=True) if (found := unlike(x, y, name))), "")
    try:
        return "" if a is b or bool(a == b) else name
    except Exception:  # what cannot be compared has not been shown to differ
        return ""


def owned(value: Any) -> Any:
    """A copy whose tensors nobody else writes to."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {k: owned(v) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(owned(v) for v in value)
    return value
