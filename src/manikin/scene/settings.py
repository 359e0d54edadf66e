"""Solver options of a scene."""

from __future__ import annotations

from typing import Any

import mujoco

from manikin.errors import UnknownNameError
from manikin.spec.physics import Physics

__all__ = ["set_physics"]


def set_physics(spec: mujoco.MjSpec, physics: Physics) -> None:
    """Write ``physics`` into a scene; geoms that are added later have its contact stiffness.

    Raises:
        UnknownNameError: MuJoCo has no such integrator or cone.
    """
    p, option = physics, spec.option
    option.timestep, option.impratio, option.gravity = 1.0 / p.hz, p.impratio, p.gravity
    option.integrator = _enum(mujoco.mjtIntegrator, "mjINT_", p.integrator, "integrator")
    option.cone = _enum(mujoco.mjtCone, "mjCONE_", p.cone, "cone")
    option.iterations, option.ls_iterations = p.iterations, p.ls_iterations
    option.noslip_iterations = p.noslip_iterations
    spec.default.geom.solref[:2] = p.solref


def _enum(kind: Any, prefix: str, name: str, what: str) -> int:
    values = {v.removeprefix(prefix).lower(): getattr(kind, v) for v in dir(kind) if v.startswith(prefix)}
    if name.lower() not in values:
        raise UnknownNameError(what, name, values)
    return int(values[name.lower()])
