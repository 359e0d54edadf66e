"""Pictures by casting rays with MuJoCo itself: needs no driver, and shows what the physics holds.

One ray per pixel; with ``samples`` the pixels on an edge are cast again, finer. Shading is flat on meshes, textures
other than on planes and boxes count with their mean colour, and skins, tendons and flexes are not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import mujoco
import numpy as np

from manikin.errors import ConfigError
from manikin.render.backends.backdrop import backdrop
from manikin.render.backends.dots import with_dots
from manikin.render.backends.rgb import RgbOfImages
from manikin.render.backends.shading import Light, Surfaces, lights_of, plane_colour, shade, surfaces_of
from manikin.render.backends.solids import SOLIDS, bounding_radius, hit
from manikin.render.renderer import check_outputs
from manikin.render.view import View, view_of
from manikin.sim.dots import dot_groups
from manikin.spec.camera import CameraSpec

__all__ = ["Picture", "RayRenderer"]

_SEEN = np.array([1, 1, 1, 0, 0, 0], np.uint8)  # groups drawn, as in MuJoCo's viewer
_UNSEEN_GROUP = 5
_ROOM = 1.5
_LAYERS = 4  # things a camera may be inside of at once


class RayRenderer(RgbOfImages):
    """See :class:`manikin.render.Renderer`."""

    name = "rays"
    outputs = frozenset({"rgb", "depth", "segmentation", "normals"})

    def __init__(self, *, samples: int = 1, shadows: bool = False) -> None:
        self._samples, self._shadows = samples, shadows
        self._closed = False

    def images(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        camera: str | int | CameraSpec | View,
        outputs: tuple[str, ...] = ("rgb",),
        *,
        width: int | None = None,
        height: int | None = None,
        sites: bool = False,
    ) -> dict[str, np.ndarray]:
        """See :meth:`manikin.render.Renderer.images`. Meanwhile the model's groups and bounding boxes change."""
        if self._closed:
            raise ConfigError("the renderer is closed")
        check_outputs(self.name, outputs, self.outputs)
        view = view_of(model, data, camera, width, height)
        with _roomy(model):
            return self._images(Picture(model, data, view, sites, self._shadows), outputs)

    def _images(self, picture: Picture, outputs: tuple[str, ...]) -> dict[str, np.ndarray]:
        view = picture.view
        v, u = (a.reshape(-1) for a in np.mgrid[: view.height, : view.width])
        rays = view.rays(u.astype(float), v.astype(float))
        geom, distance, normal = picture.cast(rays)
        hit, size = geom >= 0, (view.height, view.width)
        out: dict[str, np.ndarray] = {}
        if "rgb" in outputs:
            out["rgb"] = self._rgb(picture, u, v, rays, (geom, distance, normal))
        if "depth" in outputs:
            depth = np.where(hit, distance, 0) * (rays @ view.rotation[:, 2])
            out["depth"] = depth.astype(np.float32).reshape(size)
        if "segmentation" in outputs:
            out["segmentation"] = (geom + 1).reshape(size)
        if "normals" in outputs:
            out["normals"] = np.where(hit[:, None], normal, 0).astype(np.float32).reshape(*size, 3)
        return {word: out[word] for word in outputs}

    def _rgb(
        self, picture: Picture, u: np.ndarray, v: np.ndarray, rays: np.ndarray, met: tuple[np.ndarray, ...]
    ) -> np.ndarray:
        view, s = picture.view, self._samples
        colour, seen = picture.shown(rays, *met)
        if s > 1:
            edge = np.flatnonzero(_edges(seen.reshape(view.height, view.width)).reshape(-1))
            inside = (np.arange(s) + 0.5) / s - 0.5
            fine_u = u[edge, None, None] + inside[None, :, None] + np.zeros((1, 1, s))
            fine_v = v[edge, None, None] + inside[None, None, :] + np.zeros((1, s, 1))
            fine, _ = picture.trace(fine_u.reshape(-1), fine_v.reshape(-1))
            colour[edge] = fine.reshape(len(edge), s * s, 3).mean(1)
        rgb = (colour.reshape(view.height, view.width, 3) * 255 + 0.5).astype(np.uint8)
        if dots := dot_groups(picture.model):
            geom, distance, _ = met
            beneath = np.where((geom >= 0) & (seen == geom), distance, 0) * (rays @ view.rotation[:, 2])  # of no site
            rgb = with_dots(dots, view, rgb, beneath.reshape(view.height, view.width))
        return rgb

    def close(self) -> None:
        """Nothing is held; pictures are refused from here on. Idempotent."""
        self._closed = True


@contextmanager
def _roomy(model: mujoco.MjModel) -> Iterator[None]:
    """Bodies' bounding boxes are larger meanwhile.

    ``mj_multiRay`` leaves out bodies by the directions of the corners of their boxes, though the middle of a face may
    lie beyond them: near the edge of a body it misses what ``mj_ray`` hits.
    """
    roots = model.body_bvhadr[model.body_bvhnum > 0]
    kept = model.bvh_aabb[roots]
    model.bvh_aabb[roots, 3:] *= _ROOM
    try:
        yield
    finally:
        model.bvh_aabb[roots] = kept


def _edges(seen: np.ndarray) -> np.ndarray:
    """Pixels (h, w) one of whose four neighbours shows another thing."""
    edge = np.zeros(seen.shape, bool)
    across, down = seen[:, 1:] != seen[:, :-1], seen[1:] != seen[:-1]
    edge[:, 1:] |= across
    edge[:, :-1] |= across
    edge[1:] |= down
    edge[:-1] |= down
    return edge


class Picture:
    """A model in a state, seen from one place."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, view: View, sites: bool, shadows: bool) -> None:
        self.model, self.data, self.view, self.shadows = model, data, view, shadows
        self.surfaces: Surfaces = surfaces_of(model)
        self.lights: list[Light] = lights_of(model, data, view)
        self.reach = float(model.vis.map.zfar * model.stat.extent)
        shown = (model.site_group < 3) & (self.surfaces.rgba[model.ngeom :, 3] > 0) & sites
        self.sites = [int(i) for i in np.flatnonzero(shown) if int(model.site_type[i]) in SOLIDS]
        # Far ones first, so that nearer ones are laid over them.
        self.sites.sort(key=lambda i: -float(np.linalg.norm(data.site_xpos[i] - view.pos)))
        alpha = self.surfaces.rgba[: model.ngeom, 3]
        self.glassy = (alpha > 0) & (alpha < 1) & (model.geom_group < 3)

    def trace(self, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Colours (n, 3) float32 in 0..1 at pixel coordinates, and the geom, site or nothing (-1) seen there."""
        rays = self.view.rays(u.astype(float), v.astype(float))
        return self.shown(rays, *self.cast(rays))

    def cast(self, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Geom (n,), -1 for none, distance (n,) [m], inf for none, and normal (n, 3) of what is seen first.

        As in OpenGL, surfaces are seen from outside only: a camera inside of something does not see it.
        """
        return self._peel(rays, np.zeros(self.model.ngeom, bool), _LAYERS)

    def _peel(self, rays: np.ndarray, hidden: np.ndarray, layers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with self._without(hidden):
            geom, distance, normal = found = self._cast(self.view.pos, rays)
        back = np.flatnonzero((geom >= 0) & (np.einsum("ij,ij->i", normal, rays) > 0)) if layers else geom[:0]
        for thing in np.unique(geom[back]):
            on = back[geom[back] == thing]
            further = hidden.copy()
            further[thing] = True
            geom[on], distance[on], normal[on] = self._peel(rays[on], further, layers - 1)
        return found

    def shown(
        self, rays: np.ndarray, geom: np.ndarray, distance: np.ndarray, normal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Colours and things of :meth:`trace`, from what :meth:`cast` found."""
        colour = self._colour(rays, geom, distance, normal)
        if self.glassy.any():
            through = np.flatnonzero((geom >= 0) & self.glassy[geom])
            if len(through):
                with self._without(self.glassy):
                    behind = self._cast(self.view.pos, rays[through])
                alpha = self.surfaces.rgba[geom[through], 3:]
                colour[through] = alpha * colour[through] + (1 - alpha) * self._colour(rays[through], *behind)
        seen = geom.copy()
        for site in self.sites:
            self.lay_over(site, rays, distance, colour, seen)
        return colour, seen

    def _cast(self, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Geom (n,), -1 for none, distance (n,) [m], inf for none, and normal (n, 3) of what rays meet first."""
        n = len(rays)
        geom, distance, normal = np.full(n, -1, np.int32), np.zeros(n), np.zeros(3 * n)
        mujoco.mj_multiRay(
            self.model, self.data, origin, rays.reshape(-1), _SEEN, True, -1, geom, distance, normal, n, self.reach
        )
        # MuJoCo leaves out whole geoms by it: endless floors go on.
        geom[distance * (rays @ self.view.rotation[:, 2]) > self.reach] = -1
        distance[geom < 0] = np.inf
        return geom, distance, normal.reshape(n, 3)

    @contextmanager
    def _without(self, geoms: np.ndarray) -> Iterator[None]:
        """Rays pass through some geoms meanwhile: MuJoCo leaves out whole groups only."""
        kept = self.model.geom_group[geoms]
        self.model.geom_group[geoms] = _UNSEEN_GROUP
        try:
            yield
        finally:
            self.model.geom_group[geoms] = kept

    def _colour(self, rays: np.ndarray, geom: np.ndarray, distance: np.ndarray, normal: np.ndarray) -> np.ndarray:
        colour = backdrop(rays[:, 2])
        met = np.flatnonzero(geom >= 0)
        if not len(met):
            return colour
        geom, distance, normal, rays = geom[met], distance[met], normal[met], rays[met]
        point = self.view.pos + rays * distance[:, None]
        lit = self._shade(geom, self.surfaces.rgba[geom, :3], point, normal, rays)
        for plane in np.unique(geom[self.surfaces.texture[geom] >= 0]):
            on = np.flatnonzero(geom == plane)
            frame = self.data.geom_xmat[plane].reshape(3, 3)
            local = (point[on] - self.data.geom_xpos[plane]) @ frame[:, :2]
            slant = np.maximum(np.abs(rays[on] @ frame[:, 2]), 1e-3)
            footprint = distance[on] / self.view.K[1, 1] / slant
            lit[on] *= plane_colour(self.model, self.surfaces, int(plane), local, footprint)
        colour[met] = np.minimum(lit, 1)
        return colour

    def _shade(
        self, thing: np.ndarray, base: np.ndarray, point: np.ndarray, normal: np.ndarray, rays: np.ndarray
    ) -> np.ndarray:
        look, single = self.surfaces, np.float32
        away = np.einsum("ij,ij->i", normal, rays) > 0
        normal = np.where(away[:, None], -normal, normal)
        lit = [self._reached(light, point + 1e-4 * normal) for light in self.lights]
        colour = shade(
            self.lights,
            lit,
            base,
            look.emission[thing],
            look.specular[thing],
            look.shininess[thing],
            point.astype(single),
            normal.astype(single),
            -rays.astype(single),
        )
        # OpenGL cuts before it applies the texture, unless shadows make it draw the lights one by one.
        if not self.shadows:
            np.minimum(colour, 1, out=colour)
        return colour * look.tint[thing]

    def _reached(self, light: Light, point: np.ndarray) -> np.ndarray | None:
        """Which points (n, 3) a light reaches: rays from the light, MuJoCo casts many from one place only."""
        if not (self.shadows and light.casts):
            return None
        source = light.pos.astype(float)
        if light.parallel:  # as good as parallel from this far
            source = self.model.stat.center - light.direction.astype(float) * 1e3 * self.model.stat.extent
        path = point - source
        length = np.linalg.norm(path, axis=1)
        geom, distance = np.full(len(point), -1, np.int32), np.zeros(len(point))
        rays = np.ascontiguousarray(path / length[:, None])
        far = mujoco.mjMAXVAL
        mujoco.mj_multiRay(
            self.model, self.data, source, rays.reshape(-1), _SEEN, True, -1, geom, distance, None, len(point), far
        )
        return ((geom < 0) | (distance > length - 1e-3)).astype(np.float32)

    def lay_over(self, site: int, rays: np.ndarray, distance: np.ndarray, colour: np.ndarray, seen: np.ndarray) -> None:
        """Draw a site where it is nearer than what was met."""
        kind, size = int(self.model.site_type[site]), self.model.site_size[site].astype(float)
        centre, frame = self.data.site_xpos[site], self.data.site_xmat[site].reshape(3, 3)
        offset = centre - self.view.pos
        along = rays @ offset
        radius = bounding_radius(kind, size)
        near = np.flatnonzero((offset @ offset - along * along <= radius * radius) & (along > -radius))
        if not len(near):
            return
        t, normal = hit(kind, size, -offset @ frame, rays[near] @ frame)
        shown = t < distance[near]
        near, t, normal = near[shown], t[shown], normal[shown] @ frame.T
        thing = np.full(len(near), self.model.ngeom + site)
        rgba = self.surfaces.rgba[thing]
        point = self.view.pos + rays[near] * t[:, None]
        own = np.minimum(self._shade(thing, rgba[:, :3], point, normal, rays[near]), 1)
        colour[near] = rgba[:, 3:] * own + (1 - rgba[:, 3:]) * colour[near]
        seen[near] = thing
