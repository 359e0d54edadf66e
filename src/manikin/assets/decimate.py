"""Triangle meshes with fewer faces, for drawing: edges are collapsed where that moves the surface least.

Quadric error metric (Garland and Heckbert, "Surface simplification using quadric error metrics", SIGGRAPH 1997), with
rounds of collapses that do not touch each other in place of a priority queue, so that numpy does the work. Results are
kept under :func:`manikin.assets.paths.cache_root` by content.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from manikin.assets.paths import cache_root, keep
from manikin.errors import ConfigError

__all__ = ["Decimated", "decimate"]

_VERSION = b"2"  # goes up whenever the same input gives another output
_FORGET = 8  # rounds after which refused collapses are tried again: their surroundings have changed
_WORTH = 0.99  # go on while as many rounds leave less than this share of the faces
_TURN = 0.2  # cosine: a face may not turn further in one collapse


@dataclass(frozen=True, eq=False)
class Decimated:
    """A mesh with fewer faces.

    Attributes:
        vertices: (n, 3) float64, in the unit of the input (metres).
        faces: (m, 3) int32.
        texcoord: (n, 2) float64 per vertex, or (0, 2) without.
        max_error, mean_error: distance of the original's vertices and face centres to the new surface, an upper bound.
    """

    vertices: np.ndarray
    faces: np.ndarray
    texcoord: np.ndarray
    max_error: float
    mean_error: float


def decimate(
    vertices: np.ndarray,
    faces: np.ndarray,
    texcoord: np.ndarray | None = None,
    *,
    tolerance: float,
    cache: bool = True,
) -> Decimated:
    """Collapse edges as long as the planes of the original faces are left by no more than ``tolerance`` (root mean
    square over those that met at a vertex; on open edges the root of the sum).

    Args:
        vertices: (n, 3) [m]; equal vertices (with equal texture coordinates) are welded.
        faces: (m, 3) indices.
        texcoord: (n, 2) per vertex, kept by interpolation; edges where they jump are kept as edges of the mesh are.
        tolerance: [m], positive.
        cache: look the result up on disk, and keep it there. A cache that cannot be written is not an error.

    Raises:
        ConfigError: if the tolerance is not positive, or the arrays are no mesh.
    """
    vertices, faces = np.asarray(vertices, float), np.asarray(faces, np.int32)
    uv = np.zeros((len(vertices), 0)) if texcoord is None else np.asarray(texcoord, float)
    if not tolerance > 0:
        raise ConfigError(f"tolerance must be positive, not {tolerance}")
    if vertices.shape[1:] != (3,) or faces.shape[1:] != (3,) or len(uv) != len(vertices):
        raise ConfigError(
            "this is not a triangle mesh: vertices must have shape (V, 3), faces (F, 3) and texcoord (V, 2), not "
            f"{vertices.shape}, {faces.shape} and {uv.shape}"
        )
    if not np.isfinite(vertices).all() or (len(faces) and not 0 <= faces.min() <= faces.max() < len(vertices)):
        raise ConfigError(
            f"the mesh has vertices that are not finite, or faces with numbers outside 0..{len(vertices) - 1}"
        )
    if not cache:
        return _decimate(vertices, faces, uv, tolerance)
    digest = hashlib.sha256(_VERSION + repr((tolerance, vertices.shape, faces.shape, uv.shape)).encode())
    for array in (vertices, faces, uv):
        digest.update(np.ascontiguousarray(array).tobytes())
    path = cache_root() / "decimated" / f"{digest.hexdigest()[:32]}.npz"
    try:
        with path.open("rb") as file, np.load(file) as kept:
            found = [kept[f.name] for f in fields(Decimated)]
        return Decimated(*found[:3], *map(float, found[3:]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):  # not there, or damaged: made again
        pass
    made = _decimate(vertices, faces, uv, tolerance)
    _keep(path, made)
    return made


def _keep(path: Path, made: Decimated) -> None:
    try:
        keep(path, lambda partial: np.savez(partial, **{f.name: getattr(made, f.name) for f in fields(Decimated)}))
    except OSError:
        return


def _decimate(vertices: np.ndarray, faces: np.ndarray, uv: np.ndarray, tolerance: float) -> Decimated:
    points, label = np.unique(np.concatenate([vertices, uv], 1), axis=0, return_inverse=True)
    label = label.reshape(-1)
    start = _Mesh(points, _proper(label[faces].astype(np.int64)))
    mesh = _Mesh(points.copy(), start.faces)
    where = np.arange(len(points))  # the vertex that each welded vertex has become
    quadric = _quadrics(mesh)
    refused, rounds, faces_then = np.empty(0, np.int64), 0, len(mesh.faces)
    while True:
        rounds += 1
        became, bad = _round(mesh, quadric, tolerance, refused)
        refused = np.concatenate([refused, bad])
        if len(became):
            where = became[where]
        over = not len(became) and not len(bad)
        if over or rounds % _FORGET == 0:
            if len(mesh.faces) > _WORTH * faces_then:
                break
            refused, faces_then = np.empty(0, np.int64), len(mesh.faces)  # what was refused may be possible now
    used, compact = np.unique(mesh.faces, return_inverse=True)
    final = compact.reshape(-1, 3)
    error = _distances(start, mesh, where, tolerance)
    out = mesh.points[used]
    return Decimated(
        out[:, :3],
        final.astype(np.int32),
        out[:, 3:] if uv.shape[1] else np.zeros((0, 2)),
        float(error.max(initial=0)),
        float(error.mean()) if len(error) else 0.0,
    )


@dataclass
class _Mesh:
    points: np.ndarray  # (n, 3 or 5): position and texture coordinates
    faces: np.ndarray  # (m, 3) int64

    def normals(self) -> np.ndarray:
        """(m, 3), twice the area long."""
        a, b, c = (self.points[self.faces[:, k], :3] for k in range(3))
        return np.cross(b - a, c - a)

    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Vertices a < b (k, 2) of every edge, how many faces have it (k,), and one of those faces (k,)."""
        n = len(self.points)
        pairs = np.sort(self.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), 1)
        key, first, count = np.unique(pairs[:, 0] * n + pairs[:, 1], return_index=True, return_counts=True)
        return np.stack([key // n, key % n], 1), count, first // 3


def _proper(faces: np.ndarray) -> np.ndarray:
    """Faces with three different vertices, each set of vertices in the same turn once."""
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    turned = np.take_along_axis(faces, (faces.argmin(1)[:, None] + np.arange(3)) % 3, 1)
    _, once = np.unique(turned, axis=0, return_index=True)
    return faces[np.sort(once)]


def _plane_quadric(normal: np.ndarray, point: np.ndarray) -> np.ndarray:
    """(k, 4, 4) squared distance to planes, as a form in (x, y, z, 1)."""
    plane = np.concatenate([normal, -(normal * point).sum(1, keepdims=True)], 1)
    return plane[:, :, None] * plane[:, None, :]


def _quadrics(mesh: _Mesh) -> np.ndarray:
    """(n, 4, 4) sum of squared distances to the planes of a vertex's faces, and of upright planes on open edges."""
    out = np.zeros((len(mesh.points), 4, 4))
    normal = mesh.normals()
    length = np.linalg.norm(normal, axis=1)
    flat = length > 1e-14
    unit = normal[flat] / length[flat, None]
    planes = _plane_quadric(unit, mesh.points[mesh.faces[flat, 0], :3])
    for k in range(3):
        np.add.at(out, mesh.faces[flat, k], planes)
    edge, count, face = mesh.edges()
    full = np.zeros_like(normal)
    full[flat] = unit
    lone = count == 1
    a, b = (mesh.points[edge[lone, k], :3] for k in (0, 1))
    wall = np.cross(b - a, full[face[lone]])
    size = np.linalg.norm(wall, axis=1)
    upright = size > 1e-14
    planes = _plane_quadric(wall[upright] / size[upright, None], a[upright])
    for k in (0, 1):
        np.add.at(out, edge[lone][upright, k], planes)
    return out


def _round(mesh: _Mesh, quadric: np.ndarray, tolerance: float, refused: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Collapse many edges at once, in place; returns what each vertex became, () for no change, and refused edges."""
    n, none = len(mesh.points), np.empty(0, np.int64)
    edge, count, _ = mesh.edges()
    key = edge[:, 0] * n + edge[:, 1]
    rim = np.zeros(n, bool)
    rim[edge[count != 2].reshape(-1)] = True
    # An inner edge between two points of the rim would pinch the mesh there.
    open_ = (count == 2) & rim[edge].all(1) | (count > 2)
    total = quadric[edge[:, 0]] + quadric[edge[:, 1]]
    place, cost = _best(mesh.points[edge[:, 0]], mesh.points[edge[:, 1]], total)
    # Inside, the mean over the planes that met here; at a rim the sum, lest many flat faces outvote its outline.
    planes = np.maximum(np.einsum("kii->k", total[:, :3, :3]), 1)
    cost /= np.where(rim[edge].any(1), 1, planes)
    rank = np.where((cost <= tolerance**2) & ~open_ & ~np.isin(key, refused), cost, np.inf)
    order = np.empty(len(rank), np.int64)
    # Among equals, as on flat parts, neighbours must not come one after another, or few could collapse at once.
    order[np.lexsort((key * 2654435761 % (1 << 32), rank))] = np.arange(len(rank))
    order[~np.isfinite(rank)] = len(rank)
    chosen = _apart(edge, order, n)
    if not len(chosen):
        return none, none
    a, b = edge[chosen].T
    fine = _linked(edge, a, b, n, count[chosen])
    group = np.full(n, -1)
    group[a] = group[b] = np.arange(len(chosen))
    # A closed surface needs three faces at a vertex, an open one a face: nothing may vanish or be folded flat.
    least = np.where(rim[a] | rim[b], 1, 3)
    fine &= ~_spoils(mesh, group, place[chosen], least)
    bad = key[chosen[~fine]]
    a, b, chosen = a[fine], b[fine], chosen[fine]
    if not len(chosen):
        return none, bad
    became = np.arange(n)
    became[b] = a
    mesh.points[a] = place[chosen]
    quadric[a] = total[chosen]
    faces = became[mesh.faces]
    mesh.faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
    return became, bad


def _best(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the two ends of an edge meet best (k, 3 or 5), and the sum of squared distances there (k,)."""
    middle, span = (a + b) / 2, (b - a)[:, :3]
    # The weight towards the middle decides where planes do not, along flat and straight parts.
    soft = 1e-3
    lhs = total[:, :3, :3] + soft * np.eye(3)
    best = np.linalg.solve(lhs, (soft * middle[:, :3] - total[:, :3, 3])[..., None])[..., 0]
    length = np.einsum("ij,ij->i", span, span)
    off = best - middle[:, :3]
    best = np.where((np.einsum("ij,ij->i", off, off) > length)[:, None], middle[:, :3], best)
    out = middle.copy()
    out[:, :3] = best
    if a.shape[1] > 3:
        t = np.clip(np.einsum("ij,ij->i", best - a[:, :3], span) / np.maximum(length, 1e-30), 0, 1)[:, None]
        out[:, 3:] = a[:, 3:] + t * (b - a)[:, 3:]
    one = np.concatenate([best, np.ones((len(best), 1))], 1)
    return out, np.maximum(np.einsum("ki,kij,kj->k", one, total, one), 0)


def _apart(edge: np.ndarray, order: np.ndarray, n: int) -> np.ndarray:
    """Edges that come first, by ``order``, among all that touch their ends' neighbours: no two share a face."""
    a, b = edge.T
    nearest = np.full(n, len(order))
    for _ in range(2):
        here = nearest.copy()
        through = order if _ == 0 else np.minimum(nearest[a], nearest[b])
        np.minimum.at(here, a, through)
        np.minimum.at(here, b, through)
        nearest = here
    return np.flatnonzero((order < len(order)) & (nearest[a] == order) & (nearest[b] == order))


def _linked(edge: np.ndarray, a: np.ndarray, b: np.ndarray, n: int, count: np.ndarray) -> np.ndarray:
    """Whether the ends' common neighbours are those of the edge's faces: otherwise collapsing changes the topology."""
    both = np.concatenate([edge, edge[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    start = np.searchsorted(both[:, 0], np.arange(n + 1))

    def around(vertex: np.ndarray) -> np.ndarray:
        size = start[vertex + 1] - start[vertex]
        which = np.repeat(np.arange(len(vertex)), size)
        step = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        return which * n + both[np.repeat(start[vertex], size) + step, 1]

    common = np.intersect1d(around(a), around(b), assume_unique=True) // n
    return np.bincount(common, minlength=len(a)) == count


def _spoils(mesh: _Mesh, group: np.ndarray, place: np.ndarray, least: np.ndarray) -> np.ndarray:
    """(k,) collapses that would turn a face over, or leave fewer than ``least`` (k,) faces at the new vertex."""
    which = group[mesh.faces]
    touched = np.flatnonzero((which >= 0).sum(1) == 1)  # faces of two ends vanish
    which = which[touched]
    corners = mesh.points[mesh.faces[touched], :3]
    moved = np.where((which >= 0)[..., None], place[which, :3], corners)

    def normal(c: np.ndarray) -> np.ndarray:
        return np.cross(c[:, 1] - c[:, 0], c[:, 2] - c[:, 0])

    old, new = normal(corners), normal(moved)
    size = np.linalg.norm(old, axis=1) * np.linalg.norm(new, axis=1)
    turned = (old * new).sum(1) <= _TURN * size
    turned &= np.linalg.norm(old, axis=1) > 1e-14  # a face without area has no side
    which = which.max(1)
    k = len(place)
    return (np.bincount(which[turned], minlength=k) > 0) | (np.bincount(which, minlength=k) < least)


def _distances(start: _Mesh, mesh: _Mesh, where: np.ndarray, enough: float) -> np.ndarray:
    """Distance of the start's used vertices and face centres to the mesh.

    Up to ``enough`` that to the faces around where a sample went, an upper bound; beyond, to all faces.
    """
    n = len(mesh.points)
    corner = mesh.faces.reshape(-1)
    by = np.argsort(corner, kind="stable")
    first = np.searchsorted(corner[by], np.arange(n + 1))
    used = np.unique(start.faces)
    centre = start.points[start.faces, :3].mean(1)
    samples = np.concatenate([start.points[used, :3], centre, centre, centre])
    home = np.concatenate([where[used], *(where[start.faces[:, k]] for k in range(3))])
    out = np.full(len(samples), np.inf)
    size = first[home + 1] - first[home]
    for k in range(int(size.max(initial=0))):
        on = np.flatnonzero(size > k)
        face = by[first[home[on]] + k] // 3
        np.minimum.at(out, on, _to_triangle(samples[on], mesh.points[mesh.faces[face], :3]))
    m = len(centre)
    middle = out[len(used) :].reshape(3, m).min(0) if m else np.zeros(0)
    out = np.concatenate([out[: len(used)], middle])
    corners = mesh.points[mesh.faces, :3]
    beyond = np.flatnonzero(out > enough)
    for far in np.array_split(beyond, 1 + len(beyond) * len(corners) // 1_000_000):
        if len(far) and len(corners):
            each = _to_triangle(np.repeat(samples[far], len(corners), 0), np.tile(corners, (len(far), 1, 1)))
            out[far] = each.reshape(len(far), -1).min(1)
    return out


def _to_triangle(p: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Distance (k,) of points (k, 3) to triangles (k, 3, 3)."""
    best = np.full(len(p), np.inf)
    for i in range(3):
        a, span = corners[:, i], corners[:, (i + 1) % 3] - corners[:, i]
        t = np.einsum("ij,ij->i", p - a, span) / np.maximum(np.einsum("ij,ij->i", span, span), 1e-30)
        best = np.minimum(best, np.linalg.norm(p - a - np.clip(t, 0, 1)[:, None] * span, axis=1))
    a = corners[:, 0]
    u, v, w = corners[:, 1] - a, corners[:, 2] - a, p - a
    normal = np.cross(u, v)
    area = np.maximum(np.einsum("ij,ij->i", normal, normal), 1e-30)
    beta = np.einsum("ij,ij->i", np.cross(w, v), normal) / area
    gamma = np.einsum("ij,ij->i", np.cross(u, w), normal) / area
    inside = (beta >= 0) & (gamma >= 0) & (beta + gamma <= 1)
    return np.where(inside, np.abs(np.einsum("ij,ij->i", w, normal)) / np.sqrt(area), best)
