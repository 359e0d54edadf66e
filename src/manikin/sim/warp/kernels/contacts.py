"""Contacts of MuJoCo Warp that cannot be are refused.

In single precision its general algorithm for convex shapes now and then takes a wrong face: a can that stands on a
board was found 0.25 m deep in it, sideways, in one of some 50,000 steps, and flew off. No two convex shapes are deeper
in each other than they overlap along any direction, so a contact deeper than along an axis of either shape is none.
"""

from __future__ import annotations

from typing import Any

import mujoco
import warp as wp

from manikin.sim.warp.library import modules

__all__ = ["forward", "refuse_impossible", "step1"]

_, _mjw = modules()  # kernels are kept in manikin's folder
wp.set_module_options({"enable_backward": False})

_SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _MESH = (
    wp.constant(int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")))
    for name in ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "MESH")
)
_SHALLOW = wp.constant(1e-3)  # [m] what is less deep is let be


@wp.func
def _extent(
    kind: int,
    size: wp.vec3,
    rot: wp.mat33,
    middle: wp.vec3,
    half: wp.vec3,
    way: wp.vec3,
) -> float:
    """How far a shape reaches from its frame along a unit vector [m]; a mesh by the box around it, in its frame."""
    u = wp.transpose(rot) * way
    if kind == _SPHERE:
        return size[0]
    if kind == _CAPSULE:
        return size[0] + size[1] * wp.abs(u[2])
    if kind == _ELLIPSOID:
        return wp.length(wp.cw_mul(size, u))
    if kind == _CYLINDER:
        return size[0] * wp.sqrt(u[0] * u[0] + u[1] * u[1]) + size[1] * wp.abs(u[2])
    return wp.dot(middle, u) + wp.dot(half, wp.vec3(wp.abs(u[0]), wp.abs(u[1]), wp.abs(u[2])))


@wp.kernel
def _refuse(
    geom_type: wp.array[int],
    geom_size: wp.array2d[wp.vec3],
    geom_aabb: wp.array3d[wp.vec3],
    geom_xpos: wp.array2d[wp.vec3],
    geom_xmat: wp.array2d[wp.mat33],
    count: wp.array[int],
    geom: wp.array[wp.vec2i],
    world: wp.array[int],
    address: wp.array2d[int],
    dist: wp.array[float],
    efc_d: wp.array2d[float],
) -> None:
    i = wp.tid()
    if i >= count[0] or dist[i] > -_SHALLOW:
        return
    pair = geom[i]
    a, b = pair[0], pair[1]
    if a < 0 or b < 0 or wp.min(geom_type[a], geom_type[b]) < _SPHERE or wp.max(geom_type[a], geom_type[b]) > _MESH:
        return
    w = world[i]
    size_a, size_b = geom_size[w % geom_size.shape[0], a], geom_size[w % geom_size.shape[0], b]
    box = w % geom_aabb.shape[0]
    rot_a, rot_b = geom_xmat[w, a], geom_xmat[w, b]
    apart = geom_xpos[w, b] - geom_xpos[w, a]
    overlap = float(wp.inf)
    for k in range(12):
        rot = rot_a
        if k >= 6:
            rot = rot_b
        way = wp.vec3(rot[0, k % 3], rot[1, k % 3], rot[2, k % 3])
        if (k // 3) % 2 == 1:
            way = -way
        reach = _extent(geom_type[a], size_a, rot_a, geom_aabb[box, a, 0], geom_aabb[box, a, 1], way)
        reach += _extent(geom_type[b], size_b, rot_b, geom_aabb[box, b, 0], geom_aabb[box, b, 1], -way)
        overlap = wp.min(overlap, reach - wp.dot(apart, way))
    if -dist[i] > 2.0 * overlap + _SHALLOW:
        dist[i] = 0.0
        for row in range(address.shape[1]):
            if address[i, row] >= 0:
                efc_d[w, address[i, row]] = 0.0  # no stiffness: no force


def refuse_impossible(m: Any, d: Any) -> None:
    """Take the stiffness from contacts that are more than twice as deep, and a millimetre, as their shapes overlap
    along an axis of one of them; from then on they are as deep as 0."""
    wp.launch(
        _refuse,
        d.naconmax,
        [
            *(m.geom_type, m.geom_size, m.geom_aabb, d.geom_xpos, d.geom_xmat, d.nacon),
            *(d.contact.geom, d.contact.worldid, d.contact.efc_address, d.contact.dist, d.efc.D),
        ],
    )


def step1(m: Any, d: Any) -> None:
    """Warp's own, without contacts that cannot be."""
    _mjw.step1(m, d)
    refuse_impossible(m, d)


def forward(m: Any, d: Any) -> None:
    """Warp's own, without contacts that cannot be."""
    if m.opt.integrator == _mjw.IntegratorType.DISCRETE:  # whose gyroscopic part is not public
        _mjw.forward(m, d)
        refuse_impossible(m, d)  # from the next step on
        return
    step1(m, d)
    _mjw.fwd_actuation(m, d)
    _mjw.fwd_acceleration(m, d)
    _mjw.solve(m, d)
    _mjw.sensor_acc(m, d)
