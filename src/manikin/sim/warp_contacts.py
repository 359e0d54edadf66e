"""Contacts of MuJoCo Warp that cannot be are refused.

In single precision its general algorithm for convex shapes now and then takes a wrong face: a can that stands on a
board was found 0.25 m deep in it, sideways, in one of 32,000 steps, and flew off. No two convex shapes are deeper in
each other than they overlap along any direction, so a contact deeper than along an axis of either shape is none.
"""

from __future__ import annotations

from typing import Any

import mujoco
import warp as wp

from manikin.sim.warp_library import modules

__all__ = ["refuse_impossible"]

modules()  # kernels are kept in manikin's folder
wp.set_module_options({"enable_backward": False})

_SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = (
    wp.constant(int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")))
    for name in ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH")
)
_SHALLOW = wp.constant(1e-3)  # [m] what is less deep is let be


@wp.func
def _extent(
    kind: int,
    size: wp.vec3,
    rot: wp.mat33,
    mesh: int,
    mesh_vertadr: wp.array[int],
    mesh_vertnum: wp.array[int],
    mesh_vert: wp.array[wp.vec3],
    way: wp.vec3,
) -> float:
    """How far a shape reaches from its middle along a unit vector [m]."""
    u = wp.transpose(rot) * way
    if kind == _SPHERE:
        return size[0]
    if kind == _CAPSULE:
        return size[0] + size[1] * wp.abs(u[2])
    if kind == _ELLIPSOID:
        return wp.length(wp.cw_mul(size, u))
    if kind == _CYLINDER:
        return size[0] * wp.sqrt(u[0] * u[0] + u[1] * u[1]) + size[1] * wp.abs(u[2])
    if kind == _BOX:
        return wp.dot(size, wp.vec3(wp.abs(u[0]), wp.abs(u[1]), wp.abs(u[2])))
    far = float(-wp.inf)
    for v in range(mesh_vertnum[mesh]):
        far = wp.max(far, wp.dot(mesh_vert[mesh_vertadr[mesh] + v], u))
    return far


@wp.kernel
def _refuse(
    geom_type: wp.array[int],
    geom_size: wp.array2d[wp.vec3],
    geom_dataid: wp.array2d[int],
    mesh_vertadr: wp.array[int],
    mesh_vertnum: wp.array[int],
    mesh_vert: wp.array[wp.vec3],
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
    mesh_a, mesh_b = geom_dataid[w % geom_dataid.shape[0], a], geom_dataid[w % geom_dataid.shape[0], b]
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
        reach = _extent(geom_type[a], size_a, rot_a, mesh_a, mesh_vertadr, mesh_vertnum, mesh_vert, way)
        reach += _extent(geom_type[b], size_b, rot_b, mesh_b, mesh_vertadr, mesh_vertnum, mesh_vert, -way)
        overlap = wp.min(overlap, reach - wp.dot(apart, way))
    if -dist[i] > 2.0 * overlap + _SHALLOW:
        dist[i] = 0.0
        for row in range(address.shape[1]):
            if address[i, row] >= 0:
                efc_d[w, address[i, row]] = 0.0  # no stiffness: no force


def refuse_impossible(m: Any, d: Any) -> None:
    """Take the force from contacts that are more than twice as deep, and a millimetre, as their shapes overlap along an
    axis of one of them; from then on they are as deep as 0. After Warp's ``step1`` or ``forward``, before ``step2``."""
    wp.launch(
        _refuse,
        d.naconmax,
        [
            *(m.geom_type, m.geom_size, m.geom_dataid, m.mesh_vertadr, m.mesh_vertnum, m.mesh_vert),
            *(d.geom_xpos, d.geom_xmat, d.nacon, d.contact.geom, d.contact.worldid, d.contact.efc_address),
            *(d.contact.dist, d.efc.D),
        ],
    )
