"""The model of a Warp world, whose fields may differ between rows."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.compat.mujoco import SET_CONST_INPUTS
from manikin.errors import UnknownNameError
from manikin.math import quat_mul, quat_rotate, quat_to_matrix
from manikin.sim.variation import Assignment
from manikin.sim.warp.channel import merged

__all__ = ["PLACING", "RowModel", "acceleration_columns"]

PLACING = frozenset({"geom_pos", "geom_quat", "body_pos", "body_quat"})
"""Fields that place what stands still."""

# What Warp's set_const computes and physics needs. It rounds otherwise than the compiler, so rows need their own, to be
# put back to what was compiled.
_DERIVED = (
    "body_subtreemass body_invweight0 dof_invweight0 tendon_invweight0 tendon_length0 actuator_acc0 eq_data geom_aabb "
    "geom_rbound"
).split()


def acceleration_columns(model: mujoco.MjModel) -> list[int]:
    """Of ``sensordata``, the sensors that are computed with accelerations."""
    at, size = model.sensor_adr, model.sensor_dim
    late = np.nonzero(model.sensor_needstage == int(mujoco.mjtStage.mjSTAGE_ACC))[0]
    return [int(at[i]) + k for i in late for k in range(int(size[i]))]


class RowModel:
    """MuJoCo Warp's model with storage per row for the fields that need it.

    Args:
        wp: the warp module.
        m: Warp's model. mjm: the compiled model it was made from.
        num_worlds: rows N.
        device: where it lives.

    Attributes:
        variable: the fields that can differ between rows.
        varied: those that do.
        layout: goes up when an array is replaced by another; a CUDA graph that reads the old one must be recorded anew.
    """

    def __init__(self, wp: Any, m: Any, mjm: mujoco.MjModel, num_worlds: int, device: torch.device) -> None:
        self._wp, self._m, self._mjm, self._n, self._device = wp, m, mjm, num_worlds, device
        per_row = (n for n, v in vars(m).items() if getattr(v, "shape", (0,))[:1] == (1,) and hasattr(mjm, n))
        self.variable = frozenset(per_row)
        self.varied: set[str] = set()
        self.layout = 0
        self._views: dict[str, Tensor] = {}
        self._compiled: dict[str, Tensor] = {}  # (1, ...) of each field that has a view
        self._derived = [f for f in _DERIVED if f in self.variable and getattr(mjm, f).size]
        self._ids: dict[bytes, Tensor] = {}
        root = mjm.body_rootid[mjm.geom_bodyid]
        self._fixed = np.flatnonzero((mjm.body_weldid[mjm.geom_bodyid] == 0) & (mjm.body_mocapid[root] < 0))

    def view(self, field: str) -> Tensor:
        """(N, ...) tensor of a model field, given a row of its own for each world on first use."""
        if field not in self.varied:
            if field not in self.variable:
                raise UnknownNameError("model field", field, self.variable)
            array = getattr(self._m, field)
            shared = self._wp.to_torch(array)[:1]
            own = shared.expand(self._n, *shared.shape[1:]).contiguous()
            setattr(self._m, field, self._wp.from_torch(own, dtype=array.dtype))
            self._views[field] = self._wp.to_torch(getattr(self._m, field))
            self._compiled[field] = shared.clone()  # of one world, ``own`` is the same memory
            self.varied.add(field)
            self.layout += 1
        return self._views[field]

    def read(self, field: str) -> Tensor:
        """(N, ...) float64 of a field as it is now; never gives it storage."""
        if field not in self.variable:
            raise UnknownNameError("model field", field, self.variable)
        now = self._views[field] if field in self.varied else self._wp.to_torch(getattr(self._m, field))[:1]
        return now.expand(self._n, *now.shape[1:]).double()

    def numpy(self, field: str) -> np.ndarray:
        """(N, ...) a copy; what cannot vary here is the compiled model's."""
        if field in self.varied:
            array = self._views[field].cpu().numpy()
        elif field in self.variable:
            array = self._wp.to_torch(getattr(self._m, field)).cpu().numpy()
        else:
            array = getattr(self._mjm, field)[None]
        return np.broadcast_to(array, (self._n, *array.shape[1:])).copy()

    def of_row(self, model: mujoco.MjModel, row: int, *, own: bool = False) -> mujoco.MjModel:
        """The model as a row has it: ``model`` itself where rows do not differ, unless the caller wants its own."""
        if self.varied or own:
            model = copy.copy(model)
        if self.varied:
            for field in self.varied:
                target = getattr(model, field)
                target[...] = self.numpy(field)[row].reshape(target.shape)
            mujoco.mj_setConst(model, mujoco.MjData(model))  # bounding volumes, which Warp does not keep
        return model

    def write(self, writes: Sequence[Assignment], mask: Tensor | None) -> bool:
        """Carry out the assignments, with values for all N rows, where the mask (N,) is True.

        Returns:
            Whether constants that MuJoCo derives have to be recomputed; their storage is ready.
        """
        for field, ids, value in writes:
            view, at = self.view(field), self._on_device(ids)
            new = value.to(view.dtype).reshape(self._n, len(ids), *view.shape[2:])
            view[:, at] = merged(mask, new, view[:, at])
        stale = any(field in SET_CONST_INPUTS for field, _, _ in writes)
        if stale:
            for field in self._derived:
                self.view(field)
        return stale

    def restore(self, fields: Iterable[str], mask: Tensor) -> None:
        """Put fields that vary back to what the model was compiled with, where the mask (N,) is True."""
        for field in fields:
            view = self.view(field)
            view.copy_(merged(mask, self._compiled[field], view))

    def place_fixed(self, d: Any) -> None:
        """Pose the geoms of what stands still; Warp's kinematics leaves them where they were when ``d`` was made."""
        if not self.varied & PLACING or not len(self._fixed):
            return
        geoms, bodies = self._on_device(self._fixed), self._on_device(self._mjm.geom_bodyid[self._fixed])
        pos, quat = (self._wp.to_torch(getattr(self._m, f))[:, geoms] for f in ("geom_pos", "geom_quat"))
        at, turn = (self._wp.to_torch(array)[:, bodies] for array in (d.xpos, d.xquat))
        self._wp.to_torch(d.geom_xpos)[:, geoms] = at + quat_rotate(turn, pos.expand_as(at))
        self._wp.to_torch(d.geom_xmat)[:, geoms] = quat_to_matrix(quat_mul(turn, quat.expand_as(turn)))

    def _on_device(self, ids: np.ndarray) -> Tensor:
        key = np.asarray(ids, np.int64).tobytes()
        if key not in self._ids:  # uploaded once: an upload cannot be part of a CUDA graph
            self._ids[key] = torch.as_tensor(np.asarray(ids, np.int64).copy(), device=self._device)
        return self._ids[key]
