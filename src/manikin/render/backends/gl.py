"""MuJoCo's own OpenGL renderer, headless.

A broken driver may abort the process instead of raising, so whether OpenGL works is found out in another process.
"""

from __future__ import annotations

import atexit
import functools
import os
import platform
import subprocess
import sys
import weakref
import zlib
from collections import OrderedDict
from typing import Any

import mujoco
import numpy as np

from manikin.compat.gl import free_before_platform, make_context
from manikin.errors import ConfigError
from manikin.render.backends.backdrop import backdrop
from manikin.render.backends.display_lists import lay_cheaper_lists
from manikin.render.backends.dots import with_dots
from manikin.render.backends.meshes import lighter
from manikin.render.backends.rgb import RgbOfImages
from manikin.render.backends.shading import place_lights
from manikin.render.renderer import check_outputs
from manikin.render.view import View, view_of
from manikin.sim.dots import dot_groups
from manikin.spec.camera import CameraSpec

__all__ = ["GlRenderer", "probe", "software"]

PLATFORMS = {"Linux": ("egl", "osmesa"), "Darwin": ("cgl",), "Windows": ("glfw",)}
_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software")
drivers: dict[str, str] = {}  # platform -> what the driver calls itself, of those tried
_OFF = ("disable", "disabled", "off", "false", "0")
# Sides of round shapes: OpenGL on a processor is bound by vertices. Few keep 99.9 % of the segmentation of small, wide
# pictures; others need more, and close-ups the original meshes too.
_ROUND = {
    "small": {"numslices": 36, "numstacks": 14},
    "usual": {"numslices": 64, "numstacks": 24},
    "close": {"numslices": 128, "numstacks": 48},
}
_SMALL = 160 * 160  # [pixels]
_KEPT = 4  # prepared sets of meshes and textures, sizes and backdrops a renderer keeps
SHOW_ALL = np.zeros(0, np.int64)
_UNSEEN_GROUP = 5
_SLACK = 1e-3  # [m] beyond a bounding sphere: what is drawn has edges rounded to pixels
_NEAR = 0.01  # [m] what is nearer is cut away: a wrist camera sees its fingers

# Draws a red sphere and looks at it: some drivers make a context and then nothing.
TRIAL = """
import importlib, sys, mujoco, numpy as np
context = importlib.import_module("mujoco." + sys.argv[1]).GLContext(64, 64)
context.make_current()
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='.5' rgba='1 0 0 1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
scene, drawer, camera = mujoco.MjvScene(model, 10), mujoco.MjrContext(model, 100), mujoco.MjvCamera()
mujoco.mjr_setBuffer(int(mujoco.mjtFramebuffer.mjFB_OFFSCREEN), drawer)
mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, int(mujoco.mjtCatBit.mjCAT_ALL), scene)
pixels = np.zeros((64, 64, 3), np.uint8)
mujoco.mjr_render(mujoco.MjrRect(0, 0, 64, 64), scene, drawer)
mujoco.mjr_readPixels(pixels, None, mujoco.MjrRect(0, 0, 64, 64), drawer)
from OpenGL import GL
print(GL.glGetString(GL.GL_RENDERER).decode())
drawer.free()
context.free()
sys.exit(0 if pixels[32, 32, 0] > 20 else "it draws nothing")
"""


@functools.cache
def probe() -> tuple[str | None, str]:
    """The OpenGL platform that draws on this machine, or None, and why the others do not. Tried once per process.

    The environment variable MUJOCO_GL, where set, names the only one to try, or switches OpenGL off.
    """
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    if wanted in _OFF:
        return None, f"MUJOCO_GL={wanted}"
    candidates = PLATFORMS.get(platform.system(), ("glfw",))
    if wanted in (*candidates, "glfw"):
        candidates = (wanted,)
    failures = []
    for name in candidates:
        environment = {k: v for k, v in os.environ.items() if k not in ("PYOPENGL_PLATFORM", "MUJOCO_GL")}
        try:
            command = [sys.executable, "-c", TRIAL, name]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            failures.append(f"{name}: {type(error).__name__}")
            continue
        if done.returncode == 0:
            drivers[name] = (done.stdout.strip().splitlines() or [""])[-1]
            return name, "; ".join(failures)
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        failures.append(f"{name}: {last}")
    return None, "; ".join(failures)


def software() -> bool:
    """Whether OpenGL draws with the processor here: the driver says a name known for it."""
    driver = drivers.get(probe()[0] or "", "").lower()
    return any(word in driver for word in _SOFTWARE)


class GlRenderer(RgbOfImages):
    """See :class:`manikin.render.Renderer`. ``platform`` comes from :func:`probe`.

    Unless ``light`` is False, meshes with many faces are drawn with fewer
    (:func:`manikin.render.backends.meshes.lighter`), and floors and round walls too
    (:mod:`manikin.render.backends.display_lists`).
    """

    outputs = frozenset({"rgb", "depth", "segmentation"})

    def __init__(self, platform: str, *, samples: int = 1, shadows: bool = False, light: bool = True) -> None:
        self.name = f"gl ({platform})"
        self._samples, self._shadows, self._light = samples, shadows, light
        try:
            context = make_context(platform, 64, 64)
        except Exception as error:
            raise ConfigError(f"OpenGL by {platform} cannot be started in this process: {error}") from error
        self._context = context
        self.drawers_made: OrderedDict[Any, tuple[mujoco.MjrContext, mujoco.MjvScene]] = OrderedDict()
        self._keys: weakref.WeakKeyDictionary[Any, tuple[int, ...]] = weakref.WeakKeyDictionary()
        self._buffers: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self._backdrops: OrderedDict[Any, np.ndarray] = OrderedDict()
        self._option, self._bare = mujoco.MjvOption(), mujoco.MjvOption()
        for option in (self._option, self._bare):
            option.flags[int(mujoco.mjtVisFlag.mjVIS_RANGEFINDER)] = 0
        self._bare.sitegroup[:] = 0
        self._finalizer = weakref.finalize(self, _free, context, self.drawers_made)
        free_before_platform(self._finalizer)

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
        """See :meth:`manikin.render.Renderer.images`."""
        if not self._finalizer.alive:
            raise ConfigError("the renderer is closed")
        check_outputs(self.name, outputs, self.outputs)
        view = view_of(model, data, camera, width, height)
        self._context.make_current()
        drawer, scene = self._prepared(model, _detail(view, self._samples))
        mujoco.mjr_setBuffer(int(mujoco.mjtFramebuffer.mjFB_OFFSCREEN), drawer)
        out: dict[str, np.ndarray] = {}
        # Depth comes with the colours, unless these are drawn finer or with markers.
        both = self._samples == 1 and not sites
        if "rgb" in outputs:
            fine = view.enlarged(self._samples) if self._samples > 1 else view
            self._fill(scene, model, data, fine, sites)
            pixels, depth = self._draw(drawer, scene, fine)
            if dots := dot_groups(model):
                pixels = with_dots(dots, fine, pixels, _metres(depth, scene.camera[0]))
            out["rgb"] = self._finish(pixels, depth, fine, view)
            if both and "depth" in outputs:
                out["depth"] = _metres(depth, scene.camera[0])
        if "segmentation" in outputs or ("depth" in outputs and "depth" not in out):
            if not out or not both:
                self._fill(scene, model, data, view, False)
            pixels, depth = self._draw(drawer, scene, view, ids=True)
            if "segmentation" in outputs:
                out["segmentation"] = _numbers(pixels, scene)
            if "depth" not in out:
                out["depth"] = _metres(depth, scene.camera[0])
        return {word: out[word] for word in outputs}

    def _draw(
        self, drawer: mujoco.MjrContext, scene: mujoco.MjvScene, view: View, *, ids: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pixels (h, w, 3) uint8 and reversed depth (h, w) float32 of a filled scene, valid until the next call."""
        if drawer.offWidth < view.width or drawer.offHeight < view.height:
            mujoco.mjr_resizeOffscreen(max(view.width, drawer.offWidth), max(view.height, drawer.offHeight), drawer)
        size = (view.height, view.width)
        if size not in self._buffers:
            if len(self._buffers) >= _KEPT:
                self._buffers.clear()
            self._buffers[size] = (np.empty((*size, 3), np.uint8), np.empty(size, np.float32))
        pixels, depth = self._buffers[size]
        rect = mujoco.MjrRect(0, 0, view.width, view.height)
        for flag in (mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR):
            scene.flags[int(flag)] = ids
        mujoco.mjr_render(rect, scene, drawer)
        mujoco.mjr_readPixels(pixels, depth, rect, drawer)
        return pixels[::-1], depth[::-1]  # OpenGL's first row is the lowest

    def _finish(self, pixels: np.ndarray, depth: np.ndarray, fine: View, view: View) -> np.ndarray:
        """The backdrop where nothing is, samples averaged; owned by the receiver."""
        pixels = pixels.copy()
        nothing = depth == 0  # depth is reversed: 0 is infinitely far
        if nothing.any():
            np.copyto(pixels, self._behind(fine), where=nothing[..., None])
        if self._samples > 1:
            s = self._samples
            blocks = pixels.reshape(view.height, s, view.width, s, 3)
            pixels = (blocks.mean((1, 3), dtype=np.float32) + 0.5).astype(np.uint8)
        return pixels

    def _behind(self, view: View) -> np.ndarray:
        """The backdrop (h, w, 3) uint8 from a view, kept for cameras that stay."""
        key = (view.width, view.height, view.rotation[2].tobytes(), view.K.tobytes())
        if key not in self._backdrops:
            while len(self._backdrops) >= _KEPT:
                self._backdrops.popitem(last=False)
            self._backdrops[key] = (backdrop(view.upward()) * 255 + 0.5).astype(np.uint8)
        self._backdrops.move_to_end(key)
        return self._backdrops[key]

    def close(self) -> None:
        """Free the context. Idempotent."""
        atexit.unregister(self._finalizer)
        self._finalizer()

    def _prepared(self, model: mujoco.MjModel, detail: str) -> tuple[mujoco.MjrContext, mujoco.MjvScene]:
        """The meshes and textures of a model on the graphics card, kept for models that share them."""
        assets = self._keys.get(model)
        if assets is None:
            assets = self._keys[model] = _assets_key(model)
        planes = np.flatnonzero(model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE))  # their grids are prepared too
        repeats = [model.mat_texrepeat[material].tobytes() for material in model.geom_matid[planes] if material >= 0]
        key = (*assets, detail, model.geom_size[planes].tobytes(), *repeats)
        if key not in self.drawers_made:
            while len(self.drawers_made) >= _KEPT:
                self.drawers_made.popitem(last=False)[1][0].free()
            room = 4 * model.ngeom + model.nsite + 1000
            drawn = lighter(model)[0] if self._light and detail != "close" else model
            drawer = _make_drawer(drawn, _ROUND[detail])
            if self._light:
                lay_cheaper_lists(drawer, model, _ROUND[detail]["numslices"])
            self.drawers_made[key] = (drawer, mujoco.MjvScene(model, maxgeom=room))
        self.drawers_made.move_to_end(key)
        return self.drawers_made[key]

    def _fill(
        self, scene: mujoco.MjvScene, model: mujoco.MjModel, data: mujoco.MjData, view: View, sites: bool
    ) -> None:
        option = self._option if sites else self._bare
        # The camera comes first for infinite planes, which are drawn around it, and again because the update moves it.
        _place_camera(scene, model, view)
        free, every = mujoco.MjvCamera(), int(mujoco.mjtCatBit.mjCAT_ALL)
        hidden = SHOW_ALL if self._shadows else out_of_view(model, data, view)  # they may cast shadows into it
        groups = model.geom_group[hidden]
        try:
            model.geom_group[hidden] = _UNSEEN_GROUP
            mujoco.mjv_updateScene(model, data, option, None, free, every, scene)
        finally:
            model.geom_group[hidden] = groups
        _place_camera(scene, model, view)
        place_lights(scene, model, data)
        if self._shadows:
            for geom in scene.geoms[: scene.ngeom]:
                if geom.objtype == int(mujoco.mjtObj.mjOBJ_SITE):  # a marker is not there
                    geom.castshadow = 0
        for flag, on in (
            (mujoco.mjtRndFlag.mjRND_SHADOW, self._shadows),
            (mujoco.mjtRndFlag.mjRND_REFLECTION, False),
            (mujoco.mjtRndFlag.mjRND_SKYBOX, False),
            (mujoco.mjtRndFlag.mjRND_HAZE, False),
        ):
            scene.flags[int(flag)] = on


def _detail(view: View, samples: int) -> str:
    """How finely round shapes are drawn: a key of ``_ROUND``. The share of a picture that coarse edges get wrong grows
    with its zoom, whatever the number of pixels."""
    zoom = view.K[0, 0] * view.K[1, 1] / (view.width * view.height)
    if zoom > 2:
        return "close"
    aside = np.abs(view.K[:2, 2] + 0.5 - np.array([view.width, view.height]) / 2) / (view.width, view.height)
    small = view.width * view.height <= _SMALL and zoom <= 1 and aside.max() < 0.1
    return "small" if small and samples == 1 else "usual"


def out_of_view(model: mujoco.MjModel, data: mujoco.MjData, view: View) -> np.ndarray:
    """Numbers of the geoms whose bounding spheres lie beyond an edge of the picture or behind the camera."""
    centre = (data.geom_xpos - view.pos) @ view.rotation
    left, right, bottom, top = view.frustum()
    # Inward normals of the four sides and of the plane of the camera, in its frame, whose y points down.
    sides = np.array([[1, 0, -left], [-1, 0, right], [0, 1, top], [0, -1, -bottom], [0, 0, 1.0]])
    inside = (centre @ (sides / np.sqrt((sides * sides).sum(1, keepdims=True))).T).min(1)
    return np.flatnonzero((model.geom_rbound > 0) & (inside < -model.geom_rbound - _SLACK))  # planes have no bound


def _place_camera(scene: mujoco.MjvScene, model: mujoco.MjModel, view: View) -> None:
    near, far = (float(z) * model.stat.extent for z in (model.vis.map.znear, model.vis.map.zfar))
    near = min(near, _NEAR)
    left, right, bottom, top = view.frustum()
    for eye in scene.camera:
        eye.pos, eye.forward, eye.up = view.pos, view.rotation[:, 2], -view.rotation[:, 1]
        eye.frustum_center, eye.frustum_width = (left + right) / 2 * near, (right - left) / 2 * near
        eye.frustum_bottom, eye.frustum_top = bottom * near, top * near
        eye.frustum_near, eye.frustum_far = near, far
        eye.orthographic = 0


def _metres(depth: np.ndarray, eye: mujoco.MjvGLCamera) -> np.ndarray:
    """Distance along the camera's axis [m], 0 where nothing is, from depth that is 1 near and 0 infinitely far."""
    near, far = np.float32(eye.frustum_near), np.float32(eye.frustum_far)
    return np.where(depth > 0, near * far / (near + depth * (far - near)), np.float32(0))


def _numbers(pixels: np.ndarray, scene: mujoco.MjvScene) -> np.ndarray:
    """Geom numbers + 1 (h, w) int32 from a picture of the scene's own numbers."""
    geoms = [(g.segid, g.objid) for g in scene.geoms[: scene.ngeom] if g.objtype == _GEOM]
    table = np.zeros(scene.ngeom + 2, np.int32)
    for number, geom in geoms:
        table[number + 1] = geom + 1
    packed = pixels.astype(np.int32)
    return table[packed[..., 0] + (packed[..., 1] << 8) + (packed[..., 2] << 16)]


def _make_drawer(model: mujoco.MjModel, shapes: dict[str, int]) -> mujoco.MjrContext:
    """Without multisampling, which costs more than it gives on software drivers; ``samples`` smooths instead."""
    quality, wanted = model.vis.quality, {"offsamples": 0, **shapes}
    kept = {name: getattr(quality, name) for name in wanted}
    try:
        for name, value in wanted.items():
            setattr(quality, name, value)
        drawer = mujoco.MjrContext(model, int(mujoco.mjtFontScale.mjFONTSCALE_100))
    finally:
        for name, value in kept.items():
            setattr(quality, name, value)
    drawer.readDepthMap = int(mujoco.mjtDepthMap.mjDEPTH_ZEROFAR)
    return drawer


def _assets_key(model: mujoco.MjModel) -> tuple[int, ...]:
    """Equal for models that may share what is prepared: meshes, textures, height fields, skins.

    Rows of a World share them.
    """
    quality = model.vis.quality
    key = [int(model.signature), model.ngeom, model.nsite, quality.shadowsize, quality.numslices, quality.numquads]
    arrays = [getattr(model, name) for name in ("mesh_vert", "mesh_face", "mesh_texcoord", "hfield_data", "tex_data")]
    for array in (*arrays, model.skin_vert):
        whole = np.ascontiguousarray(array)
        key += [whole.size, zlib.crc32(whole.view(np.uint8).reshape(-1).data)]
    return tuple(key)


def _free(context: Any, drawers: OrderedDict[Any, Any]) -> None:
    context.make_current()
    for drawer, _ in drawers.values():
        drawer.free()
    drawers.clear()
    context.free()
