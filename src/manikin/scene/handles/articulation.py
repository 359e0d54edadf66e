"""The handle of a thing with joints of its own that no robot drives: a cabinet, a door, a box with a lid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import SceneError, UnknownNameError
from manikin.scene.handles.base import Handle, Scope, runs

__all__ = ["Articulation"]


class Articulation(Handle):
    """A fixed thing with hinges and slides; see :meth:`manikin.scene.builder.SceneBuilder.articulation`.

    Attributes:
        joints: names, the order of every joint vector.
        frames: names of the places that were marked by sites.
        links: names of the bodies.
        root: name of the body that carries the others.
        limits: (joints, 2) [rad or m], once the world exists.
    """

    def __init__(
        self,
        scope: Scope,
        name: str,
        *,
        prefix: str,
        joints: Sequence[str],
        frames: Sequence[str],
        links: Sequence[str],
    ) -> None:
        super().__init__(scope, name)
        self.prefix, self.joints, self.frames, self.links = prefix, tuple(joints), tuple(frames), tuple(links)
        self.root = prefix + self.links[0]

    def bind(self, model: mujoco.MjModel) -> None:
        world, p = self.scope.world, self.prefix
        bodies = [int(model.body(p + name).id) for name in self.links]
        both = [[("xpos", 3 * b, 3 * b + 3), ("xquat", 4 * b, 4 * b + 4)] for b in bodies]
        self._link_poses = [world.channel(pieces, quat_at=3) for pieces in both]
        ids = [int(model.joint(p + j).id) for j in self.joints]
        self.limits = torch.from_numpy(model.jnt_range[ids].astype(np.float32)).to(world.device)
        self._qpos = world.channel(runs("qpos", [int(model.jnt_qposadr[i]) for i in ids]))
        self._qvel = world.channel(runs("qvel", [int(model.jnt_dofadr[i]) for i in ids]))
        sites = [int(model.site(p + f).id) for f in self.frames]
        pieces = [piece for s in sites for piece in runs("site_xpos", list(range(3 * s, 3 * s + 3)))]
        self._places = world.channel(pieces, (len(sites), 3)) if sites else None
        self._body, self._bodies = bodies[0], bodies
        self._shapes = [
            range(int(g), int(g) + int(n)) for g, n in zip(model.body_geomadr, model.body_geomnum, strict=True)
        ]
        quat = ("xquat", 4 * self._body, 4 * self._body + 4)
        self._quat = world.channel([quat], quat_at=0)

    def vector(self, positions: Mapping[str, float]) -> Tensor:
        """(joints,) [rad or m] positions that are given by the joints' names; 0 for joints without one."""
        return torch.tensor([positions.get(joint, 0.0) for joint in self.joints])

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

    def joint(self, name: str) -> Tensor:
        """(n,) [rad or m] position of the joint ``name``. Raises :class:`UnknownNameError` that lists the joints."""
        return self.qpos[:, self._number("joint", name, self.joints)]

    def place(self, name: str) -> Tensor:
        """(n, 3) [m] where the frame ``name`` is, in the world. Raises :class:`UnknownNameError` that lists them."""
        number = self._number("frame", name, self.frames)
        return self.places[:, number]

    def handle_of(self, joint: str) -> Tensor:
        """(n, 3) [m] where the handle of a joint is, in the world: the frame ``handle/JOINT``.

        Raises:
            UnknownNameError: no such joint.
            SceneError: the joint has no handle; says how to give it one.
        """
        self._number("joint", joint, self.joints)
        if f"handle/{joint}" not in self.frames:
            have = ", ".join(f.removeprefix("handle/") for f in self.frames if f.startswith("handle/")) or "no joint"
            raise SceneError(
                f"joint {joint!r} of {self.name} has no handle ({have} has one); name its site, geom or body: "
                f"articulation_from_file(..., handles={{{joint!r}: ...}})"
            )
        return self.place(f"handle/{joint}")

    def link_pose(self, name: str) -> Tensor:
        """(n, 7) position [m] and quaternion wxyz of the link ``name``, in the world. Raises
        :class:`UnknownNameError` that lists the links."""
        return self._get(self._link_poses[self._number("link", name, self.links)])

    def _number(self, what: str, name: str, names: tuple[str, ...]) -> int:
        if name not in names:
            raise UnknownNameError(f"{what} of {self.name}", name, names)
        return names.index(name)

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

    def set_links(self, names: Sequence[str], poses: Tensor, sizes: Tensor | None = None) -> None:
        """Fasten links of the rows elsewhere on what carries them.

        Args:
            names: of the links.
            poses: (n, links, 7) position [m] and quaternion wxyz in the frame of the link that carries each.
            sizes: (n, links, 3) of the one shape that each of them has, as in MJCF [m]; None leaves them as they are.

        Raises:
            UnknownNameError: no such link; lists the links.
            SceneError: a link whose size is to change has no shape, or several.
        """
        n, k = self.scope.n, len(names)
        bodies = tuple(self._bodies[self._number("link", name, self.links)] for name in names)
        values: dict[Any, Any] = {
            ("body_pos", bodies): poses[..., :3].reshape(n, k, 3),
            ("body_quat", bodies): poses[..., 3:].reshape(n, k, 4),
        }
        if sizes is not None:
            for name, body in zip(names, bodies, strict=True):
                if len(self._shapes[body]) != 1:
                    raise SceneError(
                        f"link {name!r} of {self.name} has {len(self._shapes[body])} shapes; only the size of a link "
                        "with one shape can differ between rows"
                    )
            values["geom_size", tuple(self._shapes[body][0] for body in bodies)] = sizes.reshape(n, k, 3)
        self.scope.world.set_model(values, self.scope.target)
