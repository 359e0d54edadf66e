"""Points that deform together: small balls, tied by MuJoCo's finite elements (flex), as one handle.

A flex between the points gives elastic forces, which the ``discrete`` integrator takes at the end of the step, so that
stiff material is stable at 100 steps per second. What touches is the balls: contacts of a flex itself cost more, and
questions about contact see balls as they see any shape. All renderers draw the balls, those of MuJoCo the surface, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.math import yaw_rotate
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Handle, Scope
from manikin.scene.handles.part import Part

__all__ = ["Place", "Points", "add_points"]

Place = tuple[float, float, float]


class Points(Handle):
    """Points of one soft thing. Made by :func:`~manikin.props.soft.cloth.cloth` and others.

    Attributes:
        part: all of them, for questions about contact.
        count: how many.
        elements: (k, 3 or 4) the points of each triangle or tetrahedron.
    """

    def __init__(self, scope: Scope, part: Part, rest: Sequence[Place], elements: Sequence[Sequence[int]]) -> None:
        super().__init__(scope, part.name)
        self.part, self.count = part, len(rest)
        self.rest, self.elements = torch.tensor(rest), torch.tensor(elements)

    def bind(self, model: mujoco.MjModel) -> None:
        world, count = self.scope.world, self.count
        joint = int(model.body(f"{self.name}/0").jntadr[0])
        q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        self.rest = self.rest.to(self.scope.device)
        self._moved = world.channel([("qpos", q, q + 3 * count)], (count, 3))
        self._vel = world.channel([("qvel", v, v + 3 * count)], (count, 3))

    @property
    def pos(self) -> Tensor:
        """(n, count, 3) [m] in the world."""
        return self._get(self._moved) + self.rest

    @property
    def vel(self) -> Tensor:
        """(n, count, 3) [m/s] in the world."""
        return self._get(self._vel)

    @property
    def speed(self) -> Tensor:
        """(n,) [m/s] the largest of the points' velocities along an axis of the world."""
        return self.vel.abs().flatten(1).amax(1)

    def place(self, at: Tensor, yaw: Tensor) -> None:
        """Put the rows' things at rest and without strain, with the origin of their rest at ``at`` (n, 3) [m], turned
        by yaw (n,) [rad]: the middle of a cloth, or of the bottom of a block."""
        self.set_pos(at[:, None] + yaw_rotate(self.rest.expand(len(yaw), -1, 3), yaw[:, None]))

    def set_pos(self, pos: Tensor) -> None:
        """Put the rows' points at pos (n, count, 3), at rest."""
        self._moved.write(pos - self.rest, self.scope.target)
        self._vel.write(torch.zeros_like(pos), self.scope.target)


def add_points(
    b: SceneBuilder,
    name: str,
    rest: Sequence[Place],
    elements: Sequence[Sequence[int]],
    *,
    radius: Sequence[float],
    mass: float,
    friction: float,
    rgba: Sequence[float],
    **flex: Any,
) -> Part:
    """Add balls at ``rest`` [m] with the flex between them; they do not touch one another.

    Args:
        b: the scene, whose integrator has to be ``discrete``.
        name: of all of them; a single body is ``name/number``.
        rest: places where nothing is strained [m].
        elements: points of each triangle or tetrahedron.
        radius: of each ball [m].
        mass: of all together [kg].
        friction: sliding.
        rgba: their colour.
        flex: MuJoCo's attributes of the flex: ``young`` [Pa], ``poisson``, ``damping`` [s], ``thickness`` [m] ...

    Raises:
        ConfigError: another integrator.
    """
    if b.spec.option.integrator != mujoco.mjtIntegrator.mjINT_DISCRETE:
        raise ConfigError(f"{name} is soft: it needs the integrator 'discrete'")
    part = b.part(name, [], kind="fixed")
    parent = b.spec.body(name)
    for k, place in enumerate(rest):
        body = parent.add_body(name=f"{name}/{k}", pos=place)
        for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
            body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
        ball = body.add_geom(name=f"{name}/{k}", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius[k], 0, 0], rgba=rgba)
        ball.mass, ball.conaffinity = mass / len(rest), 0  # one point does not see another
        ball.friction[0] = friction
    names = [f"{name}/{k}" for k in range(len(rest))]
    flat = [k for element in elements for k in element]
    made = b.spec.add_flex(name=name, dim=len(elements[0]) - 1, vertbody=names, elem=flat, radius=1e-3, rgba=rgba)
    made.contype = made.conaffinity = made.selfcollide = 0
    for key, value in flex.items():
        setattr(made, key, value)
    return part
