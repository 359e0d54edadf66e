"""The handle of a thing with joints of its own that no robot drives: a cabinet, a door, a box with a lid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import UnknownNameError
from manikin.scene.handles import Handle, Scope, _runs

__all__ = ["Articulation"]


class Articulation(Handle):
    """A fixed thing with hinges and slides; see :meth:`manikin.scene.builder.SceneBuilder.articulation`.

    Attributes:
        joints: names, the order of every joint vector.
        frames: names of the places that were marked by sites.
        root: name of the body that carries the others.
        limits: (joints, 2) [rad or m], once the world exists.
    """

    def __init__(
        self, scope: Scope, name: str, *, prefix: str, joints: Sequence[str], frames: Sequence[str], root: str
    ) -> None:
        super().__init__(scope, name)
        self.prefix, self.joints, self.frames, self.root = prefix, tuple(joints), tuple(frames), prefix + root

    def bind(self, model: mujoco.MjModel) -> None:
        world, p = self.scope.world, self.prefix
        ids = [int(model.joint(p + j).id) for j in self.joints]
        self.limits = torch.from_numpy(model.jnt_range[ids].astype(np.float32)).to(world.device)
        self._qpos = world.channel(_runs("qpos", [int(model.jnt_qposadr[i]) for i in ids]))
        self._qvel = world.channel(_runs("qvel", [int(model.jnt_dofadr[i]) for i in ids]))
        sites = [int(model.site(p + f).id) for f in self.frames]
        pieces = [piece for s in sites for piece in _runs("site_xpos", list(range(3 * s, 3 * s + 3)))]
        self._places = world.channel(pieces, (len(sites), 3)) if sites else None
        self._body = int(model.body(self.root).id)
        quat = ("xquat", 4 * self._body, 4 * self._body + 4)
        self._quat = world.channel([quat], quat_at=0)

    @property
    def qpos(self) -> Tensor:
        """(n, joints) [rad or m]."""
        return self._get(self._qpos)

    @property
    def qvel(self) -> Tensor:
        """(n, joints) [rad/s or m/s]."""
        return self._get(self._qvel)

    @property
    def places(self) -> Tensor:
        """(n, frames, 3) where the frames are, in the world [m]."""
        if self._places is None:
            raise UnknownNameError(f"frame of {self.name}", "any", self.frames)
        return self._get(self._places)

    @property
    def base_quat(self) -> Tensor:
        """(n, 4) wxyz of the root, in the world."""
        return self._get(self._quat)

    def set_qpos(self, qpos: Any, qvel: Any = 0.0) -> None:
        """Put the rows at joint positions (n, joints) or (joints,), with velocities alike, at rest unless given."""
        n, k = self.scope.n, len(self.joints)
        for channel, value in ((self._qpos, qpos), (self._qvel, qvel)):
            whole = torch.as_tensor(value, dtype=torch.float32, device=self.limits.device).expand(n, k)
            channel.write(whole, self.scope.target)

    def set_base(self, pos: Tensor, quat: Tensor) -> None:
        """Put the root of the rows at pos (n, 3) [m] and quat (n, 4) wxyz."""
        n = self.scope.n
        values = {
            ("body_pos", (self._body,)): pos.reshape(n, 1, 3),
            ("body_quat", (self._body,)): quat.reshape(n, 1, 4),
        }
        self.scope.world.set_model(values, self.scope.target)
