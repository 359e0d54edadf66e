"""A thin layer of gel on a finger pad: how deep it is pressed where, given what presses and how hard.

The simulated pad is nearly rigid, so the depth of the print does not come from the physics' own overlap. It follows
from two things the physics does know: the shape that stands before the pad, taxel by taxel, and the normal force. The
gel is an elastic foundation (Winkler): pressure = stiffness x depth at every taxel on its own. The object sinks in
until the pressures add up to the force, which has an exact solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import torch
from torch import Tensor

from manikin.errors import ConfigError, SceneError

__all__ = ["SHAPES", "Gel", "entry", "indent"]

_G = mujoco.mjtGeom
SHAPES = {
    int(_G.mjGEOM_SPHERE): "sphere",
    int(_G.mjGEOM_CAPSULE): "capsule",
    int(_G.mjGEOM_ELLIPSOID): "ellipsoid",
    int(_G.mjGEOM_CYLINDER): "cylinder",
    int(_G.mjGEOM_BOX): "box",
}


@dataclass(frozen=True, kw_only=True)
class Gel:
    """Elastic layer of a tactile fingertip.

    Attributes:
        thickness: [m]; no print is deeper.
        stiffness: pressure per depth [N/m^3]. The default sinks 1 mm under a ball of 4 mm radius pressed with 3 N,
            the order of silicone gels of a few hundred kPa, 1 to 2 mm thick.
        shear_stiffness: tangential traction per displacement [N/m^3]; a third of ``stiffness``, as shear modulus to
            Young's modulus of rubber.
    """

    thickness: float = 0.002
    stiffness: float = 2.5e8
    shear_stiffness: float = 2.5e8 / 3

    def __post_init__(self) -> None:
        if min(self.thickness, self.stiffness, self.shear_stiffness) <= 0:
            raise ConfigError(f"thickness and stiffnesses of a gel must be positive: {self}")


def entry(kind: int, size: Tensor, origin: Tensor, direction: Tensor) -> Tensor:
    """Where lines enter a primitive, in its own frame.

    Args:
        kind: mjtGeom of a sphere, capsule, ellipsoid, cylinder or box.
        size: (n, 3) as in MJCF [m].
        origin: (n, P, 3) points on the lines [m].
        direction: (n, 3) unit, one for each row.

    Returns:
        (n, P) distance along the line from its origin [m], negative if it entered before; inf where it misses.
    """
    if kind not in SHAPES:
        raise SceneError(f"tactile sensing knows {', '.join(SHAPES.values())}, not geom type {kind}")
    size, d = size.unsqueeze(1), direction.unsqueeze(1)
    match SHAPES[kind]:
        case "sphere":
            enter, leave = _ball(origin, d, size[..., 0])
        case "ellipsoid":
            enter, leave = _ball(origin / size, d / size, torch.ones_like(size[..., 0]))
        case "box":
            enter, leave = _slabs(origin, d, size)
        case "cylinder":
            enter, leave = _tube(origin, d, size)
        case _:  # capsule
            enter, leave = _tube(origin, d, size)
            enter = torch.where(enter <= leave, enter, torch.inf)
            for sign in (-1.0, 1.0):
                centre = torch.zeros_like(size)
                centre[..., 2] = sign * size[..., 1]
                one, other = _ball(origin - centre, d, size[..., 0])
                enter = torch.minimum(enter, torch.where(one <= other, one, torch.inf))
            return enter
    return torch.where(enter <= leave, enter, torch.inf)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    # Written out: a sum over a short dimension may depend on strides.
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def _roots(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Where a t^2 + 2 b t + c < 0, as an interval; an empty one is (inf, -inf)."""
    inside = b * b - a * c
    root = inside.clamp(min=0).sqrt()
    hit = inside >= 0
    return torch.where(hit, (-b - root) / a, torch.inf), torch.where(hit, (-b + root) / a, -torch.inf)


def _ball(o: Tensor, d: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    return _roots(_dot(d, d), _dot(o, d), _dot(o, o) - radius * radius)


def _slabs(o: Tensor, d: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    flat = d.abs() < 1e-12
    safe = torch.where(flat, 1.0, d)
    one, two = (-half - o) / safe, (half - o) / safe
    within = o.abs() <= half
    enter = torch.where(flat, torch.where(within, -torch.inf, torch.inf), torch.minimum(one, two))
    leave = torch.where(flat, torch.where(within, torch.inf, -torch.inf), torch.maximum(one, two))
    return enter.amax(-1), leave.amin(-1)


def _tube(o: Tensor, d: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    radius, half = size[..., 0], size[..., 1]
    a = d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]
    b = o[..., 0] * d[..., 0] + o[..., 1] * d[..., 1]
    c = o[..., 0] * o[..., 0] + o[..., 1] * o[..., 1] - radius * radius
    upright = a < 1e-12
    enter, leave = _roots(torch.where(upright, 1.0, a), b, c)
    enter = torch.where(upright, torch.where(c <= 0, -torch.inf, torch.inf), enter)
    leave = torch.where(upright, torch.where(c <= 0, torch.inf, -torch.inf), leave)
    low, high = _slabs(o[..., 2:], d[..., 2:], half.unsqueeze(-1))
    return torch.maximum(enter, low), torch.minimum(leave, high)


def indent(gap: Tensor, force: Tensor, area: float, gel: Gel) -> Tensor:
    """Depth of the print.

    Args:
        gap: (n, P) float64, distance from each taxel to what stands before it [m]; inf for nothing. Only differences
            between taxels count.
        force: (n,) float64, normal force [N]; none or less leaves no print.
        area: of one taxel [m^2].
        gel: its stiffness and thickness.

    Returns:
        (n, P) depth [m], 0 outside the print. stiffness x area x the sum of a row is its force, unless the gel is
        pressed through somewhere.
    """
    sorted_gap = gap.sort(-1).values
    nearest = sorted_gap[:, :1]
    some = torch.isfinite(nearest) & (force.unsqueeze(1) > 0)
    rise = torch.where(torch.isfinite(sorted_gap), sorted_gap - nearest, torch.inf)
    volume = force.unsqueeze(1) / (gel.stiffness * area)
    number = torch.arange(1, gap.shape[1] + 1, dtype=gap.dtype, device=gap.device)
    # Water filling: the m lowest taxels bear the force at level (volume + their sum) / m; the right m has the least.
    level = ((volume + rise.cumsum(-1)) / number).amin(-1, keepdim=True).clamp(max=gel.thickness)
    depth = (level - (gap - nearest)).clamp(min=0)
    return torch.where(some, depth, 0.0)
