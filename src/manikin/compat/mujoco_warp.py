"""Undocumented layout of MuJoCo Warp's structures: the render context and the list of geom pairs."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import mujoco
import numpy as np

__all__ = ["camera_context", "geom_pairs", "render", "render_context", "takes_general_algorithm", "world_arrays"]


_GEOM = mujoco.mjtGeom
_SPHERE, _CAPSULE, _CYLINDER, _BOX = (
    int(g) for g in (_GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_BOX)
)
_DIRECT = {
    *((_SPHERE, other) for other in (_SPHERE, _CAPSULE, _CYLINDER, _BOX)),
    *((_CAPSULE, other) for other in (_CAPSULE, _BOX)),
    (_BOX, _BOX),
}


def takes_general_algorithm(a: int, b: int) -> bool:
    """Whether Warp gives a pair of these kinds of geoms, ``a`` <= ``b``, to its general algorithm for convex shapes;
    other pairs have formulas of their own. For models whose boxes are left to theirs by ``mjDSBL_NATIVECCD``."""
    return int(_GEOM.mjGEOM_PLANE) < a <= b <= int(_GEOM.mjGEOM_MESH) and (a, b) not in _DIRECT


def geom_pairs(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of geoms (n, 2) int that may collide, as Warp's Model lists them, and (n,) bool which of them are kept
    however far apart they are, because a sensor measures their distance."""
    return m.nxn_geom_pair_filtered.numpy(), m.nxn_pairid_filtered.numpy()[:, 1] >= 0


def render_context(
    mjw: Any, model: mujoco.MjModel, *, worlds: int, shadows: bool, groups: list[int], shapes: Iterable[int]
) -> Any:
    """A context without cameras, from which :func:`camera_context` makes one per resolution.

    The far plane, the headlight and the attenuation of lights, which Warp would compile into the kernel, are left to
    the caller, so that one kernel serves many models.

    Args:
        mjw: the module mujoco_warp.
        model: the compiled model.
        worlds: how many are drawn at once.
        shadows: draw them.
        groups: of geoms to draw.
        shapes: kinds of geoms that the kernel knows beside those of the model.
    """
    base = mjw.create_render_context(
        model, nworld=worlds, cam_res=[], cam_active=[], use_shadows=shadows, enabled_geom_groups=groups,
        shadow_light_fraction=0.0,
    )  # fmt: skip
    base.geom_ray_types = tuple(sorted({*shapes, *base.geom_ray_types}))
    base.zfar, base.znear, base.headlight_active = 0.0, 0.01, False
    base.light_attenuation_is_default, base.has_spot_lights = False, True
    return base


def camera_context(wp: Any, base: Any, worlds: int, width: int, height: int) -> Any:
    """A copy of the base context with buffers for one camera of ``width`` times ``height`` pixels, whose directions the
    caller writes into ``ray``. It shares all the rest. Made on Warp's current device."""
    context, pixels = copy.copy(base), width * height
    context.nrender, context.total_rays = 1, pixels
    context.cam_res = wp.array([[width, height]], dtype=wp.vec2i)
    context.cam_id_map = wp.zeros(1, dtype=int)
    context.ray, context.ray_offset = wp.zeros(pixels, dtype=wp.vec3), wp.zeros(pixels, dtype=wp.vec3)
    context.rgb_data = wp.zeros((worlds, pixels), dtype=wp.uint32)
    context.depth_data = wp.zeros((worlds, pixels), dtype=wp.float32)
    context.seg_data = wp.zeros((worlds, pixels), dtype=wp.vec2i)
    context.rgb_adr, context.depth_adr, context.seg_adr = (wp.zeros(1, dtype=int) for _ in range(3))
    context.render_depth = context.render_seg = wp.ones(1, dtype=bool)
    return context


def render(mjw: Any, m: Any, d: Any, context: Any, base: Any, compiling: AbstractContextManager[Any]) -> None:
    """Draw. The kernel that the first call compiles, inside of ``compiling``, serves all contexts of the base."""
    context._megakernel = base._megakernel
    if context._megakernel is None:
        with compiling:
            mjw.render(m, d, context)
        base._megakernel = context._megakernel
    else:
        mjw.render(m, d, context)


def world_arrays(base: Any) -> tuple[Any, ...]:
    """Warp's arrays of a context that grow with the number of worlds, apart from pictures and the hierarchy."""
    return base.lower, base.upper, base.group
