"""A rope: a chain of capsules with ball joints between them."""

from __future__ import annotations

import math

import mujoco
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Handle, Scope
from manikin.scene.handles.part import Part
from manikin.spec.prop import Shape

__all__ = ["Rope", "rope"]

_ALONG = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)  # turns a capsule's z to x


class Rope(Handle):
    """A rope of ``links`` equal pieces. Made by :func:`rope`.

    Attributes:
        part: its first piece, for questions about contact: what hangs on a piece counts with it.
        length: [m].
    """

    def __init__(self, scope: Scope, part: Part, links: int, length: float) -> None:
        super().__init__(scope, part.name)
        self.part, self.links, self.length = part, links, length

    def bind(self, model: mujoco.MjModel) -> None:
        world, k, body = self.scope.world, self.links, model.body(self.name)
        joint = int(body.jntadr[0])
        q, v, first = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]), int(body.id)
        self._pose = world.channel([("qpos", q, q + 7)])
        self._bends = world.channel([("qpos", q + 7, q + 7 + 4 * (k - 1))])
        self._vel = world.channel([("qvel", v, v + 6 + 3 * (k - 1))])
        self._pos = world.channel([("xpos", 3 * first, 3 * (first + k))], (k, 3))
        self._end = world.channel([("xquat", 4 * (first + k - 1), 4 * (first + k))])

    @property
    def points(self) -> Tensor:
        """(n, links + 1, 3) [m] the joints of the rope and its two ends, in the world."""
        starts, quat = self._get(self._pos), self._get(self._end)
        w, x, y, z = quat.unbind(1)
        axis = torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], 1)
        return torch.cat([starts, (starts[:, -1] + axis * (self.length / self.links))[:, None]], 1)

    @property
    def speed(self) -> Tensor:
        """(n,) [rad/s] or [m/s] the largest of the rope's joint velocities, those of its first piece among them."""
        return self._get(self._vel).abs().amax(1)

    def lay(self, pos: Tensor, quat: Tensor) -> None:
        """Lay the rows' ropes out straight and at rest, from pos (n, 3) along the x axis of quat (n, 4)."""
        n, target, device = self.scope.n, self.scope.target, self.scope.device
        straight = torch.tensor([1.0, 0.0, 0.0, 0.0], device=device).repeat(self.links - 1).expand(n, -1)
        self._pose.write(torch.cat([pos, quat], 1), target)
        self._bends.write(straight, target)
        self._vel.write(torch.zeros(n, 6 + 3 * (self.links - 1), device=device), target)


def rope(
    b: SceneBuilder,
    name: str,
    *,
    length: float,
    radius: float,
    links: int = 15,
    density: float = 600.0,
    friction: float = 0.7,
    damping: float = 5e-4,
    stiffness: float = 1e-3,
    rgba: tuple[float, float, float, float] = (0.85, 0.3, 0.1, 1.0),
) -> Rope:
    """Add a rope to a scene. Its pieces touch everything but one another.

    Args:
        b: the scene.
        name: of the rope and of its first piece.
        length: [m].
        radius: [m].
        links: how many pieces, at least 2.
        density: [kg/m^3].
        friction: sliding.
        damping: of a bend [N m s/rad].
        stiffness: of a bend [N m/rad].
        rgba: its colour.

    Raises:
        ConfigError: too few links, or no size.
    """
    if links < 2 or not (length > 0 and radius > 0):
        raise ConfigError(
            f"a rope needs a length and a radius above 0 and 2 links or more, got {length, radius, links}"
        )
    piece = length / links
    shape = Shape(type="capsule", size=(radius, piece / 2), pos=(piece / 2, 0, 0), quat=_ALONG)
    part = b.part(name, [shape], density=density, friction=friction, rgba=rgba)
    geom, body = b.spec.geom(f"{name}/0"), b.spec.body(name)
    geom.conaffinity = 0  # one piece does not see another
    for k in range(1, links):
        body = body.add_body(name=f"{name}/{k}", pos=(piece, 0, 0))
        body.add_joint(
            name=f"{name}/{k}",
            type=mujoco.mjtJoint.mjJNT_BALL,
            damping=[damping, 0, 0],
            stiffness=[stiffness, 0, 0],
            armature=1e-6,
        )
        next_one = body.add_geom(name=f"{name}/{k}", type=geom.type, size=geom.size, pos=geom.pos, quat=geom.quat)
        next_one.density, next_one.friction, next_one.rgba = density, geom.friction, rgba
        next_one.conaffinity = 0
    handle = Rope(b.scope, part, links, length)
    b.handles.append(handle)
    return handle
