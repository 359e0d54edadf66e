"""Endless floors and round walls with fewer vertices, for OpenGL on a processor, which is bound by them.

MuJoCo prepares a display list for each shape. Here two kinds of them are written anew, in the same context, with the
same outline: the walls of cylinders and capsules as one ring (MuJoCo divides them along their length too, which a
straight wall does not show), and an endless floor as a grid that is fine near the camera, where lights differ from
tile to tile, and coarse far away (MuJoCo's has 40,000 equal tiles).
"""

from __future__ import annotations

import itertools

import mujoco
import numpy as np

from manikin.compat.mujoco import CYLINDER_LIST, TUBE_LIST, builtin_list

__all__ = ["lay_cheaper_lists"]

_NEAR, _TILE = 3.0, 0.25  # [m] round the camera, and there the width of a tile
_GROWTH = 0.35  # width of a tile further out, by its distance
_WIDE = 2.0  # times as far as a picture shows along its axis: its corners see further
_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


def lay_cheaper_lists(drawer: mujoco.MjrContext, model: mujoco.MjModel, slices: int) -> None:
    """Write the lists of a drawer anew, whose context is current and which was made for ``model`` with ``slices``."""
    for number, lids in ((CYLINDER_LIST, True), (TUBE_LIST, False)):
        builtin = builtin_list(drawer, number)
        if builtin is not None:
            _record(builtin, _tube(slices, lids=lids))
    grid = _grid(_WIDE * model.stat.extent * model.vis.map.zfar)
    for number, geom in enumerate(np.flatnonzero(model.geom_type == _PLANE), drawer.basePlane + 1):
        if model.geom_size[geom, :2].any():
            continue  # a floor with edges
        _record(number, grid)


def _record(number: int, strips: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Make display list ``number`` of strips of quads, each as normals and vertices (n, 3).

    A texture, if there is one, is laid on the xy plane, once in 2 m; MuJoCo multiplies by how often it repeats.
    """
    from OpenGL import GL

    GL.glNewList(number, GL.GL_COMPILE)
    for normals, vertices in strips:
        GL.glBegin(GL.GL_QUAD_STRIP)
        for normal, (x, y, z) in zip(normals.tolist(), vertices.tolist(), strict=True):
            GL.glNormal3f(*normal)
            GL.glTexCoord2f(x / 2, -y / 2)
            GL.glVertex3f(x, y, z)
        GL.glEnd()
    GL.glEndList()


def _tube(slices: int, *, lids: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """A cylinder of radius 1 from z = -1 to 1, seen from outside."""
    angle = np.linspace(0, 2 * np.pi, slices + 1)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
    up = np.array([0, 0, 1.0])
    strips = [(np.repeat(ring, 2, 0), _woven(ring + up, ring - up))]
    for side in (up, -up) if lids else ():
        outer, middle = ring + side, 0 * ring + side
        strip = _woven(middle, outer) if side[2] > 0 else _woven(outer, middle)
        strips.append((np.broadcast_to(side, strip.shape), strip))
    return strips


def _grid(reach: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """A square of half width ``reach`` [m], facing up."""
    lines = list(np.arange(0, _NEAR, _TILE))
    while lines[-1] < reach:
        lines.append(min(reach, lines[-1] + max(_TILE, _GROWTH * (lines[-1] - _NEAR))))
    line = np.array([*(-x for x in lines[:0:-1]), *lines])
    along, up = np.stack([0 * line, line, 0 * line], 1), np.array([0, 0, 1.0])
    strips = []
    for left, right in itertools.pairwise(line):
        strip = _woven(along + np.array([left, 0, 0]), along + np.array([right, 0, 0]))
        strips.append((np.broadcast_to(up, strip.shape), strip))
    return strips


def _woven(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Rows of both (n, 3) in turn (2 n, 3)."""
    return np.stack([first, second], 1).reshape(-1, 3)
