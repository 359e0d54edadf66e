"""Objects and markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import SceneError, UnknownNameError
from manikin.math import quat_rotate
from manikin.scene.handles.base import Handle, Scope, Variable, expand
from manikin.sim.world import Channel

__all__ = ["Marker", "Part"]


class Part(Handle):
    """An object: dynamic (moves by physics), kinematic (moved by the task) or fixed."""

    def __init__(
        self,
        scope: Scope,
        name: str,
        *,
        kind: str,
        geoms: Sequence[str],
        size: Variable | None,
        mass: float | None = None,
    ) -> None:
        super().__init__(scope, name)
        self.kind, self.geom_names, self._size, self.mass = kind, tuple(geoms), size, mass

    def bind(self, model: mujoco.MjModel) -> None:
        world, body = self.scope.world, model.body(self.name)
        self.body_id, self.geom_ids = int(body.id), [int(model.geom(g).id) for g in self.geom_names]
        b = self.body_id
        pos, quat = ("xpos", 3 * b, 3 * b + 3), ("xquat", 4 * b, 4 * b + 4)
        self._pose, self._pos = world.channel([pos, quat], quat_at=3), world.channel([pos])
        self._quat = world.channel([quat], quat_at=0)
        self._ipos = torch.tensor(model.body_ipos[b], dtype=torch.float32, device=self.scope.device)
        self._write: Channel | None = None
        if self.kind == "dynamic":
            q, v = int(body.jntadr[0]), int(body.dofadr[0])
            q = int(model.jnt_qposadr[q])
            self._write = world.channel([("qpos", q, q + 7)])
            self._velocity = world.channel([("qvel", v, v + 6)])
            self._linvel, self._angvel = world.channel([("qvel", v, v + 3)]), world.channel([("qvel", v + 3, v + 6)])
        elif self.kind == "kinematic":
            m = int(body.mocapid[0])
            self._write = world.channel([("mocap_pos", 3 * m, 3 * m + 3), ("mocap_quat", 4 * m, 4 * m + 4)])
        if self._size is not None:
            sizes = torch.from_numpy(model.geom_size[self.geom_ids].astype(np.float32)).squeeze(0)
            self._size.data[:] = sizes.to(self.scope.device)

    @property
    def pose(self) -> Tensor:
        """(n, 7) position [m] and quaternion wxyz in the world."""
        return self._get(self._pose)

    @property
    def pos(self) -> Tensor:
        """(n, 3) [m] in the world."""
        return self._get(self._pos)

    @property
    def quat(self) -> Tensor:
        """(n, 4) wxyz."""
        return self._get(self._quat)

    @property
    def com(self) -> Tensor:
        """(n, 3) [m] the centre of mass in the world."""
        return self.pos + quat_rotate(self.quat, self._ipos.expand(self.scope.n, 3))

    @property
    def linvel(self) -> Tensor:
        """(n, 3) [m/s] in the world."""
        return self._get(self._linvel)

    @property
    def angvel_body(self) -> Tensor:
        """(n, 3) [rad/s] in the body's own frame; costs nothing."""
        return self._get(self._angvel)

    @property
    def angvel(self) -> Tensor:
        """(n, 3) [rad/s] in the world."""
        return quat_rotate(self.quat, self.angvel_body)

    @property
    def size(self) -> Tensor:
        """(n, 3) or (n, geoms, 3) sizes as in MJCF [m]; for parts declared ``resizable`` or with a varying size."""
        if self._size is None:
            raise SceneError(f"{self.name}: declare it with resizable=True or a varying size to read its size per row")
        return self._size.value

    def set_pose(self, pos: Any, quat: Any = (1.0, 0.0, 0.0, 0.0)) -> None:
        """Put the rows at pos (n, 3) or (3,) and quat (n, 4) or (4,), at rest."""
        if self._write is None:
            raise SceneError(f"{self.name} is fixed; declare it with kind='kinematic' or 'dynamic' to move it")
        n, device, target = self.scope.n, self.scope.device, self.scope.target
        pose = torch.cat([expand(pos, n, 3, device), expand(quat, n, 4, device)], 1)
        self._write.write(pose, target)
        if self.kind == "dynamic":
            self._velocity.write(torch.zeros(n, 6, device=device), target)

    def set_velocity(self, linear: Any, angular: Any = (0.0, 0.0, 0.0)) -> None:
        """Linear velocity [m/s] in the world, angular [rad/s] in the body frame; each (n, 3) or (3,)."""
        n, device = self.scope.n, self.scope.device
        both = torch.cat([expand(linear, n, 3, device), expand(angular, n, 3, device)], 1)
        self._velocity.write(both, self.scope.target)

    def set_size(self, size: Tensor) -> None:
        """Sizes of the rows in view, (n, up to 3) for one geom or (n, geoms, 3) [m]. Mass follows at constant density
        unless it was declared."""
        if self._size is None:
            raise SceneError(f"{self.name}: declare it with resizable=True to change its size per row")
        n, k = self.scope.n, len(self.geom_ids)
        if k == 1:  # a ball has one number, a cylinder two; MJCF keeps three
            size = size.reshape(n, -1)
            size = torch.cat([size, size.new_zeros(n, 3 - size.shape[1])], 1)
        values: dict[Any, Any] = {("geom_size", tuple(self.geom_ids)): size.reshape(n, k, 3)}
        if self.mass is not None:
            values["body_mass", (self.body_id,)] = size.new_full((n, 1), self.mass, dtype=torch.float64)
        self.scope.world.set_model(values, self.scope.target)
        self._size.set(size)

    def set_offsets(self, pos: Tensor) -> None:
        """Places of the geoms in the part's frame, (n, geoms, 3) [m]; for fixed and kinematic parts."""
        n, k = self.scope.n, len(self.geom_ids)
        self.scope.world.set_model({("geom_pos", tuple(self.geom_ids)): pos.reshape(n, k, 3)}, self.scope.target)

    def set_property(self, what: str, value: Tensor) -> None:
        """Give the rows their own mass (n,) [kg], friction (n,) (sliding), size (n, 3), rgba (n, 4), or the half side
        (n,) [m] of a cube."""
        n, k = self.scope.n, len(self.geom_ids)
        world, target, model = self.scope.world, self.scope.target, self.scope.world.scene.model
        geoms = tuple(self.geom_ids)
        if what == "size":
            self.set_size(value)
        elif what == "side":
            self.set_size(value.reshape(n, 1).expand(n, 3))
        elif what == "mass":
            world.set_model({("body_mass", (self.body_id,)): value.reshape(n, 1)}, target)
        elif what == "friction":
            compiled = model.geom_friction[self.geom_ids, 1:].tolist()
            rest = torch.tensor(compiled, dtype=torch.float64, device=self.scope.device)
            friction = torch.cat([value.double().reshape(n, 1, 1).expand(n, k, 1), rest.expand(n, k, 2)], 2)
            world.set_model({("geom_friction", geoms): friction}, target)
        elif what == "rgba":
            world.set_model({("geom_rgba", geoms): value.reshape(n, 1, 4).expand(n, k, 4)}, target)
        else:
            raise UnknownNameError("varying property", what, ("size", "side", "mass", "friction", "rgba"))


class Marker(Part):
    """A shape that only people see: never in observations, never in contact."""

    def __init__(self, scope: Scope, name: str) -> None:
        super().__init__(scope, name, kind="kinematic", geoms=(), size=None)
