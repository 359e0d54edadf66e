"""A camera's pose from the outline of things in its photograph.

The outline of the rendered segmentation is laid on that of a mask, coarse pictures first. Each step pairs points of
both outlines that are near and run alike, and solves for the motion of the camera that brings the pairs together
(Gauss-Newton on the distances along the outline's normal, with Tukey's weights, so that what only one of the two has
does not count). Every rendered point has its depth, so this is a pose in metres.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.errors import ConfigError, DataError
from manikin.render.api import make_renderer
from manikin.render.renderer import Renderer
from manikin.render.segmentation import SegmentationTable
from manikin.render.view import View, mount_of, view_of
from manikin.spec.camera import CameraSpec

__all__ = ["Alignment", "align_camera", "check_mask", "silhouette"]

_FINEST = 640  # [pixels] longer side beyond which a picture is halved
_COARSEST = 40
_STEPS = 25  # per size
_MOST_POINTS = 1200
_GOOD = 0.9  # agreement below which other starts are tried
_LEAST = 0.2  # and below which there is no answer
_STARTS = 12
_TURN, _SHIFT = 0.12, 0.08  # [rad], share of the distance: how far the other starts are from the first
_STEP = 0.15  # [rad] or share of the distance, at most at once
_STILL = 2e-3  # [pixels] a step that moves the outline by less ends a size


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """What :func:`align_camera` found.

    Attributes:
        camera: with the mask's width and height.
        agreement: intersection over union of silhouette and mask, 0 to 1.
        before: the same at the pose that was given.
        pixels: median distance of the outlines [pixels of the mask].
        shift: how far the optical centre moved [m].
        turn: by how much the camera turned [rad].
    """

    camera: CameraSpec
    agreement: float
    before: float
    pixels: float
    shift: float
    turn: float


def check_mask(mask: np.ndarray, photograph: np.ndarray | None = None) -> np.ndarray:
    """(h, w) bool of a mask (h, w) or a picture of one (h, w, 3), in which what is brighter than half is the thing.

    Raises:
        DataError: it has another size than the photograph, marks nothing, or marks everything.
    """
    values = np.asarray(mask)
    flat = values if values.ndim == 2 else values.max(-1) if values.ndim == 3 else None
    if flat is None or not flat.size:
        raise DataError(f"a mask is a picture (h, w) or (h, w, 3), not of shape {values.shape}")
    found: np.ndarray = flat if flat.dtype == bool else flat > (127 if flat.dtype == np.uint8 else 0.5)
    if photograph is not None and found.shape != photograph.shape[:2]:
        (h, w), (height, width) = found.shape, photograph.shape[:2]
        raise DataError(f"the mask has {w} x {h} pixels and the photograph {width} x {height}; they must be the same")
    if not found.any():
        raise DataError("the mask is empty; mark the thing with values above 127")
    if found.all():
        raise DataError("the mask marks the whole picture; mark the thing alone, with values above 127")
    return found


def silhouette(
    model: mujoco.MjModel, data: mujoco.MjData, view: View | CameraSpec, geoms: Iterable[int], renderer: Renderer
) -> np.ndarray:
    """(h, w) bool: where a geom of these numbers (of :class:`SegmentationTable`) is seen."""
    seen = renderer.images(model, data, view, ("segmentation",))["segmentation"]
    return np.isin(seen, np.fromiter(geoms, np.int64))


def align_camera(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    camera: CameraSpec,
    mask: np.ndarray,
    *,
    things: Sequence[str] = (),
    fovy: bool = False,
    renderer: Renderer | None = None,
) -> Alignment:
    """Move a camera until the outline of things in its picture lies on that of a mask.

    Args:
        model: the scene.
        data: its state, the one in the photograph, with ``mj_kinematics``, ``mj_comPos`` and ``mj_camlight`` run.
        camera: where the search begins: about 10 cm and 10 degrees from the truth, at a metre's distance.
        mask: (h, w) bool of the photograph: where the things are seen.
        things: names of robots, parts or fixtures that the mask marks; by default the robots.
        fovy: search for the field of view as well. Distance and field of view look alike in a flat scene.
        renderer: makes the pictures; by default any that works.

    Raises:
        DataError: as :func:`check_mask`; or the things are not in view, or the mask is elsewhere, or no pose agrees.
        ConfigError: a scene without robots, and no ``things``.
        UnknownNameError: there is no such thing.
    """
    mask = check_mask(mask)
    table = SegmentationTable.of(model)
    if not things and "robot" not in table.kinds:
        raise ConfigError("the scene has no robot; say which things the mask marks")
    geoms = np.concatenate([table.ids(thing=name) for name in things] or [table.ids(kind="robot")])
    own = renderer is None
    renderer = make_renderer("auto", outputs=("depth", "segmentation")) if renderer is None else renderer
    try:
        search = _Search(model, data, geoms, mask, renderer, fovy)
        first = view_of(model, data, camera.resized(mask.shape[1], mask.shape[0]))
        before = search.agreement(first)
        if not before:
            seen = silhouette(model, data, first, geoms, renderer).any()
            what = "the mask is elsewhere" if seen else "they are not in view"
            raise DataError(
                f"at the pose given for camera {camera.name!r}, the things do not overlap with the mask: {what}. Begin "
                "closer; the page of manikin align moves the camera by hand"
            )
        found = search.run(first)
        agreement = search.agreement(found)
        if agreement < _LEAST:
            raise DataError(
                f"no pose near the one given for camera {camera.name!r} agrees with the mask (best {agreement:.2f} of "
                "1). Check that it marks the right things in the same state, or begin closer"
            )
        turned = np.clip((np.trace(first.rotation.T @ found.rotation) - 1) / 2, -1.0, 1.0)
        return Alignment(
            camera=_spec_of(found, camera, model, data),
            agreement=agreement,
            before=before,
            pixels=search.distance(found),
            shift=float(np.linalg.norm(found.pos - first.pos)),
            turn=math.acos(turned),
        )
    finally:
        if own:
            renderer.close()


@dataclass(frozen=True, eq=False)
class _Outline:
    """Points (k, 2) [pixels] and unit normals (k, 2) out of the thing; of a rendered one (k, 3) in the camera frame."""

    points: np.ndarray
    normals: np.ndarray
    solid: np.ndarray

    def thinned(self) -> _Outline:
        some = slice(None, None, max(1, -(-len(self.points) // _MOST_POINTS)))
        return _Outline(self.points[some], self.normals[some], self.solid[some])


class _Search:
    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        geoms: np.ndarray,
        mask: np.ndarray,
        renderer: Renderer,
        lens: bool,
    ) -> None:
        self.model, self.data, self.geoms, self.mask = model, data, geoms, mask
        self.renderer, self.lens = renderer, lens
        longest = max(mask.shape)
        self.finest = -(-longest // _FINEST)
        self.sizes = [self.finest]
        while longest // (2 * self.sizes[0]) >= _COARSEST:
            self.sizes.insert(0, 2 * self.sizes[0])
        self.targets = {by: _outline(_shrunk(mask, by)).thinned() for by in self.sizes}

    def run(self, view: View) -> View:
        """The best pose from this one; from others about it where that does not agree."""
        found = self._through(view, self.sizes)
        if self.agreement(found) >= _GOOD:
            return found
        rng = np.random.default_rng(0)  # house: random, the same other starts in every search
        coarse, far = self.sizes[:2], self._distance_of(view)
        starts = [found]
        for _ in range(_STARTS):
            turn = rng.normal(size=3) * _TURN
            # turned about what is seen, so that it stays in view
            shift = rng.normal(size=3) * _SHIFT * far - np.cross(turn, (0, 0, far))
            starts.append(self._through(_moved(view, turn, shift, 0.0), coarse))
        best = max(starts, key=lambda start: self._together(start, coarse[-1]))
        other = best if best is found else self._through(best, self.sizes)
        return max(found, other, key=lambda one: self._together(one, self.finest))

    def agreement(self, view: View) -> float:
        """Intersection over union at the finest size."""
        mask = _shrunk(self.mask, self.finest) > 0.5
        seen = silhouette(self.model, self.data, _smaller(view, self.finest), self.geoms, self.renderer)
        union = (mask | seen).sum()
        return float((mask & seen).sum() / union) if union else 0.0

    def distance(self, view: View) -> float:
        """Median distance of the outlines [pixels of the mask]."""
        pairs = self._pairs(view, self.finest)
        return math.inf if pairs is None else float(np.median(np.abs(pairs[1]))) * self.finest

    def _through(self, view: View, sizes: Sequence[int]) -> View:
        """The pose after steps at each of these sizes."""
        for by in sizes:
            best, least = view, math.inf
            for _ in range(_STEPS):
                pairs = self._pairs(view, by)
                if pairs is None:
                    break
                J, r = pairs
                cost = float((np.minimum(np.abs(r), 3.0) ** 2).mean())
                if cost < least:
                    best, least = view, cost
                scale = max(0.3, 1.4826 * float(np.median(np.abs(r))))
                weighted = J * (np.clip(1 - (r / (4.685 * scale)) ** 2, 0, None) ** 2)[:, None]
                H = weighted.T @ J
                H += 1e-6 * np.diag(np.diag(H)) + 1e-9 * np.eye(len(H))
                step = np.linalg.lstsq(H, -weighted.T @ r, rcond=None)[0]
                step *= min(1.0, _STEP / max(1e-12, float(np.abs(step).max())))
                view = _moved(view, step[:3], step[3:6] * self._far, float(step[6]) if self.lens else 0.0)
                if np.abs(J @ step).max() < _STILL:
                    break
            view = best
        return view

    def _together(self, view: View, by: int) -> float:
        """Share of both outlines that has the other within 1.5 pixels: what one of the two lacks counts little."""
        rendered, target = self._rendered(view, by), self.targets[by]
        if rendered is None or not len(target.points):
            return 0.0
        gap = ((rendered.points[:, None] - target.points) ** 2).sum(-1)
        return float((gap.min(1) < 2.25).mean() + (gap.min(0) < 2.25).mean()) / 2

    def _distance_of(self, view: View) -> float:
        rendered = self._rendered(view, self.sizes[0])
        return 1.0 if rendered is None else float(np.median(rendered.solid[:, 2]))

    def _rendered(self, view: View, by: int) -> _Outline | None:
        small = _smaller(view, by)
        images = self.renderer.images(self.model, self.data, small, ("depth", "segmentation"))
        thing, depth = np.isin(images["segmentation"], self.geoms), images["depth"].astype(float)
        if not thing.any() or thing.all():
            return None
        outline = _solid(_outline(thing.astype(float)), thing, depth, small.K)
        return outline.thinned() if len(outline.points) else None  # a few pixels have none

    def _pairs(self, view: View, by: int) -> tuple[np.ndarray, np.ndarray] | None:
        """How far apart outlines are along the normal (k,) [pixels], and by how much a motion of the things in the
        camera frame changes that (k, 6 or 7): turn [rad], shift [of the distance], logarithm of the focal length."""
        target, rendered = self.targets[by], self._rendered(view, by)
        if rendered is None or not len(target.points):
            return None
        K = _smaller(view, by).K
        gap = ((rendered.points[:, None] - target.points) ** 2).sum(-1)
        reach = float(np.median(gap.min(1))) + 4.0
        gap += reach * 4 * (1 - rendered.normals @ target.normals.T)  # points of outlines that run alike
        i = np.concatenate([np.arange(len(gap)), gap.argmin(0)])
        j = np.concatenate([gap.argmin(1), np.arange(gap.shape[1])])
        points, normals, X = rendered.points[i], target.normals[j], rendered.solid[i]
        r = ((points - target.points[j]) * normals).sum(1)
        z = X[:, 2:]
        focal = np.array([K[0, 0], K[1, 1]])
        across = normals * focal / z
        pull = np.concatenate([across, -(across * X[:, :2] / z).sum(1, keepdims=True)], 1)  # of X, one row each
        self._far = float(np.median(z))
        J = [np.cross(X, pull), pull * self._far]
        if self.lens:
            J.append((normals * focal * X[:, :2] / z).sum(1, keepdims=True))
        return np.concatenate(J, 1), r


def _outline(coverage: np.ndarray) -> _Outline:
    """Where a smoothed mask (h, w) in 0..1 passes one half, between neighbouring pixels."""
    smooth = np.pad(coverage.astype(float), 1, mode="edge")
    smooth = (smooth[:-2] + 2 * smooth[1:-1] + smooth[2:]) / 4
    smooth = (smooth[:, :-2] + 2 * smooth[:, 1:-1] + smooth[:, 2:]) / 4
    slope = np.stack(np.gradient(smooth)[::-1], -1)
    above = smooth > 0.5
    points, normals = [], []
    for axis, unit in ((1, (1, 0)), (0, (0, 1))):
        crossed = np.diff(above, axis=axis)
        y, x = np.nonzero(crossed)
        y2, x2 = y + (axis == 0), x + (axis == 1)
        a, b = smooth[y, x] - 0.5, smooth[y2, x2] - 0.5
        share = (a / (a - b))[:, None]
        points.append(np.stack([x, y], 1) + share * unit)
        normals.append(-(slope[y, x] * (1 - share) + slope[y2, x2] * share))
    n = np.concatenate(normals)
    length = np.linalg.norm(n, axis=1)
    keep = length > 1e-6
    return _Outline(np.concatenate(points)[keep], n[keep] / length[keep, None], np.zeros((keep.sum(), 3)))


def _solid(outline: _Outline, thing: np.ndarray, depth: np.ndarray, K: np.ndarray) -> _Outline:
    """The outline with its points in the camera frame [m]: at the thing's depth, or what hides a part of it."""
    h, w = thing.shape
    at = np.pad(np.where(thing, depth, math.inf), 1, constant_values=math.inf)
    front = np.pad(np.where(depth > 0, depth, math.inf), 1, constant_values=math.inf)
    x, y = np.clip(np.rint(outline.points).astype(int), 0, (w - 1, h - 1)).T
    around = [(y + i, x + j) for i in range(3) for j in range(3)]  # of the padded arrays
    own = np.min([at[place] for place in around], 0)
    hiding = np.min([front[place] for place in around], 0)
    z = np.where(hiding < own - 0.02, hiding, own)
    keep = np.isfinite(own) & (z > 0)
    z = z[keep, None]
    points = outline.points[keep]
    ahead = (points - K[:2, 2]) / K[[0, 1], [0, 1]]
    return _Outline(points, outline.normals[keep], np.concatenate([ahead * z, z], 1))


def _shrunk(mask: np.ndarray, by: int) -> np.ndarray:
    """Means over blocks of ``by`` pixels each way; what is left over at the right and below is cut off."""
    h, w = (n // by for n in mask.shape)
    return np.asarray(mask[: h * by, : w * by].reshape(h, by, w, by).mean((1, 3)))


def _smaller(view: View, by: int) -> View:
    """The same picture with one pixel for ``by`` each way."""
    K = view.K / np.array([[by], [by], [1]])
    K[:2, 2] -= (1 - 1 / by) / 2
    return View(view.pos, view.rotation, K, view.width // by, view.height // by)


def _moved(view: View, turn: np.ndarray, shift: np.ndarray, lens: float) -> View:
    """The camera for which points move by ``turn`` [rad] and ``shift`` [m] in its frame."""
    quat, matrix = np.zeros(4), np.zeros(9)
    angle = float(np.linalg.norm(turn))
    mujoco.mju_axisAngle2Quat(quat, turn / angle if angle else np.array([1.0, 0, 0]), angle)
    mujoco.mju_quat2Mat(matrix, quat)
    rotation = view.rotation @ matrix.reshape(3, 3).T
    K = view.K.copy()
    K[[0, 1], [0, 1]] *= math.exp(lens)
    return View(view.pos - rotation @ shift, rotation, K, view.width, view.height)


def _spec_of(view: View, camera: CameraSpec, model: mujoco.MjModel, data: mujoco.MjData) -> CameraSpec:
    """The view as a camera fixed to what ``camera`` is fixed to."""
    pos, rotation = view.pos, view.rotation
    if camera.on:
        body = mount_of(model, camera)
        frame = data.xmat[body].reshape(3, 3)
        pos, rotation = frame.T @ (pos - data.xpos[body]), frame.T @ rotation
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(rotation).flatten())
    K = view.K
    lens = None if camera.intrinsics is None else (float(K[0, 0]), float(K[1, 1]), float(K[0, 2]), float(K[1, 2]))
    return dataclasses.replace(
        camera,
        pos=tuple(pos.tolist()),
        target=None,
        quat=tuple(quat.tolist()),  # type: ignore[arg-type]
        fovy=2 * math.atan(view.height / 2 / float(K[1, 1])),
        intrinsics=lens,
        width=view.width,
        height=view.height,
    )
