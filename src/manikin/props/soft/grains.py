"""Grains: many small equal balls, as one handle.

They are smooth: a contact presses and does not rub. No torque ever acts on such a ball, so it needs no rotation, and
three sliding joints are all that it has. A contact is then one row of constraints and not three, which is what makes
hundreds of them affordable. Packings of balls without friction still heap, at about 5.8 degrees (Peyneau and Roux,
Frictionless bead packs have macroscopic friction, but no dilatancy, 2008).
"""

from __future__ import annotations

import math

import mujoco
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.math import atan2
from manikin.rng import EpisodeRng
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Handle, Scope
from manikin.scene.handles.part import Part

__all__ = ["MOST", "Grains", "column", "grain_radius", "grains", "tilt_forward", "upright_axis"]

MOST = 1000
"""The most grains that a scene may have."""
_ITERATIONS = 1000  # of conjugate gradients; most steps take 80, one in a hundred more than 200
_TOLERANCE = 1e-4


class Grains(Handle):
    """``count`` balls of ``radius`` [m]. Made by :func:`grains`."""

    def __init__(self, scope: Scope, name: str, count: int, radius: float) -> None:
        super().__init__(scope, name)
        self.count, self.radius = count, radius

    def bind(self, model: mujoco.MjModel) -> None:
        world, count = self.scope.world, self.count
        first = model.body(f"{self.name}/0")
        joint = int(first.jntadr[0])
        q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        self.body_ids = list(range(int(first.id), int(first.id) + count))
        self._pos = world.channel([("qpos", q, q + 3 * count)], (count, 3))
        self._vel = world.channel([("qvel", v, v + 3 * count)], (count, 3))

    @property
    def pos(self) -> Tensor:
        """(n, count, 3) [m] in the world."""
        return self._get(self._pos)

    @property
    def vel(self) -> Tensor:
        """(n, count, 3) [m/s] in the world."""
        return self._get(self._vel)

    def set_pos(self, pos: Tensor) -> None:
        """Put the rows' grains at pos (n, count, 3), at rest."""
        self._pos.write(pos, self.scope.target)
        self._vel.write(torch.zeros_like(pos), self.scope.target)

    def set_vel(self, vel: Tensor) -> None:
        """Let the rows' grains fly with vel (n, count, 3) [m/s]."""
        self._vel.write(vel, self.scope.target)

    def shake(self, rng: EpisodeRng) -> Tensor:
        """(n, count, 3) [m] small random offsets, up to a hundredth of the radius, by which grains start beside their
        places, so that no two episodes pour alike."""
        return rng.uniform("grains/shake", -0.01 * self.radius, 0.01 * self.radius, (self.count, 3))

    def calm(self, speed: float) -> Tensor:
        """(n,) share of the grains' velocities along an axis of the world that are below ``speed`` [m/s]."""
        return (self.vel.abs() < speed).float().flatten(1).mean(1)

    def within(self, vessel: Part, radius: float, height: float) -> Tensor:
        """(n, count) bool: which grains have their middle inside a round vessel.

        Args:
            vessel: its origin is the middle of its bottom, z its axis.
            radius: of its inside [m].
            height: of its rim [m].
        """
        away = self.pos - vessel.pos[:, None]
        axis = upright_axis(vessel.quat)[:, None]
        along = (away * axis).sum(2)
        aside = (away * away).sum(2) - along * along
        return (aside <= radius * radius) & (along >= 0.0) & (along <= height)


def upright_axis(quat: Tensor) -> Tensor:
    """(n, 3) the z axis of bodies turned by ``quat`` (n, 4), in the world."""
    w, x, y, z = quat.unbind(1)
    return torch.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], 1)


def tilt_forward(quat: Tensor) -> Tensor:
    """(n,) [rad] by which the z axis of bodies turned by ``quat`` (n, 4) is tipped forward, along x."""
    axis = upright_axis(quat)
    return atan2(axis[:, 0], axis[:, 2])


def grains(
    b: SceneBuilder,
    name: str,
    *,
    count: int,
    radius: float,
    density: float = 1000.0,
    drag: float = 1.0,
    rgba: tuple[float, float, float, float] = (0.9, 0.6, 0.2, 1.0),
) -> Grains:
    """Add grains to a scene, which then is solved by conjugate gradients: Newton's method would factor a matrix of
    three rows per grain in every iteration.

    Args:
        b: the scene.
        name: of all of them; a single body is ``name/number``.
        count: how many, 1 to :data:`MOST`.
        radius: [m].
        density: [kg/m^3].
        drag: [1/s] a free grain loses this share of its speed per second, so that spilt ones come to rest.
        rgba: their colour.

    Raises:
        ConfigError: too many, too few, or no size.
    """
    _check_count(count)
    if not (radius > 0 and density > 0 and drag >= 0):
        raise ConfigError(f"grains need a radius and a density above 0 and a drag from 0, got {radius, density, drag}")
    option = b.spec.option
    option.solver, option.iterations = mujoco.mjtSolver.mjSOL_CG, max(option.iterations, _ITERATIONS)
    option.tolerance = _TOLERANCE
    mass = density * 4.0 / 3.0 * math.pi * radius**3
    for k, place in enumerate(_apart(count, radius)):
        body = b.spec.worldbody.add_body(name=f"{name}/{k}", pos=place)
        for axis, at in zip(((1, 0, 0), (0, 1, 0), (0, 0, 1)), place, strict=True):
            body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis, ref=at, damping=[drag * mass, 0, 0])
        ball = body.add_geom(name=f"{name}/{k}", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius, 0, 0], rgba=rgba)
        ball.mass, ball.condim, ball.priority = mass, 1, 1  # whatever it touches, it does not rub
    handle = Grains(b.scope, name, count, radius)
    b.handles.append(handle)
    return handle


def _apart(count: int, radius: float) -> list[tuple[float, float, float]]:
    """Where grains are before an episode puts them somewhere: a cube in the air, in which none touches another. All in
    one place would be a contact for each pair: half a million of a thousand grains, which no memory holds."""
    side = math.ceil(count ** (1 / 3))
    while side**3 < count:  # a root that was rounded down
        side += 1
    step = 3.0 * radius
    return [(0.5 + step * (k % side), step * (k // side % side), 1.0 + step * (k // side**2)) for k in range(count)]


def _check_count(count: int) -> None:
    if not 1 <= count <= MOST:
        raise ConfigError(f"the number of grains must be 1 to {MOST}, not {count}")


def grain_radius(count: int, of_200: float) -> float:
    """[m] of ``count`` grains that fill as much as 200 of radius ``of_200`` [m] do.

    Raises:
        ConfigError: too many or no grains.
    """
    _check_count(count)
    return of_200 * float((200 / count) ** (1 / 3))


def column(count: int, radius: float, inside: float) -> Tensor:
    """(count, 3) [m] where grains start in a round vessel: nearly as close as balls can be, in layers about the axis,
    the lowest on z = 0. What is there already need not fall, so an episode can begin at once.

    Args:
        count: how many.
        radius: of a grain [m].
        inside: radius of the vessel [m].

    Raises:
        ConfigError: a grain is wider than the vessel.
    """
    step, free = 2.05 * radius, inside - 1.05 * radius
    if free < 0:
        raise ConfigError(f"grains of radius {radius} m do not fit into a vessel of radius {inside} m")
    reach, spots = int(2 * free / step) + 2, list[tuple[float, float, float]]()
    layer = 0
    while len(spots) < count:
        aside = (layer % 2) * step / math.sqrt(3)  # every other layer lies in the hollows of the one below
        rows = range(-reach, reach + 1)
        flat = [((i + (j % 2) / 2) * step, j * step * math.sqrt(3) / 2 + aside) for i in rows for j in rows]
        height = 1.02 * radius + layer * step * math.sqrt(2 / 3)
        within = sorted((math.hypot(x, y), x, y) for x, y in flat if math.hypot(x, y) <= free)
        spots += [(x, y, height) for _, x, y in within]
        layer += 1
    return torch.tensor(spots[:count], dtype=torch.float32)
