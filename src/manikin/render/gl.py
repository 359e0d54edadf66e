"""MuJoCo's own OpenGL renderer, headless.

A broken driver may abort the process instead of raising, so whether OpenGL works is found out in another process.
"""

from __future__ import annotations

import atexit
import functools
import importlib
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

from manikin.errors import ConfigError
from manikin.render.backdrop import backdrop
from manikin.render.shading import place_lights
from manikin.render.view import View, view_of
from manikin.spec.camera import CameraSpec

__all__ = ["GlRenderer", "probe"]

_PLATFORMS = {"Linux": ("egl", "osmesa"), "Darwin": ("cgl",), "Windows": ("glfw",)}
_OFF = ("disable", "disabled", "off", "false", "0")
_KEPT = 4  # prepared sets of meshes and textures a renderer keeps

# Draws a red sphere and looks at it: some drivers make a context and then nothing.
_TRIAL = """
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
    candidates = _PLATFORMS.get(platform.system(), ("glfw",))
    if wanted in (*candidates, "glfw"):
        candidates = (wanted,)
    failures = []
    for name in candidates:
        environment = {k: v for k, v in os.environ.items() if k not in ("PYOPENGL_PLATFORM", "MUJOCO_GL")}
        try:
            command = [sys.executable, "-c", _TRIAL, name]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            failures.append(f"{name}: {type(error).__name__}")
            continue
        if done.returncode == 0:
            return name, "; ".join(failures)
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        failures.append(f"{name}: {last}")
    return None, "; ".join(failures)


class GlRenderer:
    """See :class:`manikin.render.Renderer`. ``platform`` comes from :func:`probe`."""

    def __init__(self, platform: str, *, samples: int = 1, shadows: bool = False) -> None:
        self.name = f"gl ({platform})"
        self._samples, self._shadows = samples, shadows
        try:
            context = importlib.import_module(f"mujoco.{platform}").GLContext(64, 64)
        except Exception as error:  # PyOpenGL raises its own kinds, or AttributeError after another platform
            raise ConfigError(f"OpenGL by {platform} cannot be started in this process: {error}") from error
        self._context = context
        self._drawers: OrderedDict[tuple[int, ...], tuple[mujoco.MjrContext, mujoco.MjvScene]] = OrderedDict()
        self._keys: weakref.WeakKeyDictionary[Any, tuple[int, ...]] = weakref.WeakKeyDictionary()
        self._finalizer = weakref.finalize(self, _free, context, self._drawers)
        # Registered after the platform's own clean-up, so run before it; weakref's turn may come too late.
        self._finalizer.atexit = False
        atexit.register(self._finalizer)

    def rgb(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        camera: str | int | CameraSpec | View,
        *,
        width: int | None = None,
        height: int | None = None,
        sites: bool = True,
    ) -> np.ndarray:
        """See :meth:`manikin.render.Renderer.rgb`."""
        if not self._finalizer.alive:
            raise ConfigError("the renderer is closed")
        view = view_of(model, data, camera, width, height)
        full = view.enlarged(self._samples) if self._samples > 1 else view
        self._context.make_current()
        drawer, scene = self._prepared(model)
        mujoco.mjr_setBuffer(int(mujoco.mjtFramebuffer.mjFB_OFFSCREEN), drawer)
        if drawer.offWidth < full.width or drawer.offHeight < full.height:
            mujoco.mjr_resizeOffscreen(max(full.width, drawer.offWidth), max(full.height, drawer.offHeight), drawer)
        self._fill(scene, model, data, full, sites)
        rect = mujoco.MjrRect(0, 0, full.width, full.height)
        pixels = np.empty((full.height, full.width, 3), np.uint8)
        depth = np.empty((full.height, full.width), np.float32)
        mujoco.mjr_render(rect, scene, drawer)
        mujoco.mjr_readPixels(pixels, depth, rect, drawer)
        pixels, depth = pixels[::-1], depth[::-1]  # OpenGL's first row is the lowest
        nothing = depth == 0  # depth is reversed: 0 is infinitely far
        if nothing.any():
            v, u = np.nonzero(nothing)
            pixels = pixels.copy()
            pixels[nothing] = backdrop(full.rays(u, v)[:, 2]) * 255 + 0.5
        if self._samples > 1:
            s = self._samples
            blocks = pixels.reshape(view.height, s, view.width, s, 3)
            return (blocks.mean((1, 3), dtype=np.float32) + 0.5).astype(np.uint8)
        return np.ascontiguousarray(pixels)

    def close(self) -> None:
        """Free the context. Idempotent."""
        atexit.unregister(self._finalizer)
        self._finalizer()

    def _prepared(self, model: mujoco.MjModel) -> tuple[mujoco.MjrContext, mujoco.MjvScene]:
        """The meshes and textures of a model on the graphics card, kept for models that share them."""
        key = self._keys.get(model)
        if key is None:
            key = self._keys[model] = _assets_key(model)
        if key not in self._drawers:
            while len(self._drawers) >= _KEPT:
                self._drawers.popitem(last=False)[1][0].free()
            room = 4 * model.ngeom + model.nsite + 1000
            self._drawers[key] = (_make_drawer(model), mujoco.MjvScene(model, maxgeom=room))
        self._drawers.move_to_end(key)
        return self._drawers[key]

    def _fill(
        self, scene: mujoco.MjvScene, model: mujoco.MjModel, data: mujoco.MjData, view: View, sites: bool
    ) -> None:
        option = mujoco.MjvOption()
        if not sites:
            option.sitegroup[:] = 0
        option.flags[int(mujoco.mjtVisFlag.mjVIS_RANGEFINDER)] = 0
        # The camera comes first for infinite planes, which are drawn around it, and again because the update moves it.
        _place_camera(scene, model, view)
        free = mujoco.MjvCamera()
        mujoco.mjv_updateScene(model, data, option, None, free, int(mujoco.mjtCatBit.mjCAT_ALL), scene)
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


def _place_camera(scene: mujoco.MjvScene, model: mujoco.MjModel, view: View) -> None:
    near, far = (float(z) * model.stat.extent for z in (model.vis.map.znear, model.vis.map.zfar))
    left, right, bottom, top = view.frustum()
    for eye in scene.camera:
        eye.pos, eye.forward, eye.up = view.pos, view.rotation[:, 2], -view.rotation[:, 1]
        eye.frustum_center, eye.frustum_width = (left + right) / 2 * near, (right - left) / 2 * near
        eye.frustum_bottom, eye.frustum_top = bottom * near, top * near
        eye.frustum_near, eye.frustum_far = near, far
        eye.orthographic = 0


def _make_drawer(model: mujoco.MjModel) -> mujoco.MjrContext:
    """Without multisampling, which costs more than it gives on software drivers; ``samples`` smooths instead."""
    kept = model.vis.quality.offsamples
    model.vis.quality.offsamples = 0
    try:
        drawer = mujoco.MjrContext(model, int(mujoco.mjtFontScale.mjFONTSCALE_100))
    finally:
        model.vis.quality.offsamples = kept
    drawer.readDepthMap = int(mujoco.mjtDepthMap.mjDEPTH_ZEROFAR)
    return drawer


def _assets_key(model: mujoco.MjModel) -> tuple[int, ...]:
    """Equal for models that may share what is prepared: meshes, textures, height fields, skins, the grids of planes.

    Rows of a World share them.
    """
    quality = model.vis.quality
    key = [int(model.signature), model.ngeom, model.nsite, quality.shadowsize, quality.numslices, quality.numquads]
    arrays = [getattr(model, name) for name in ("mesh_vert", "mesh_face", "mesh_texcoord", "hfield_data", "tex_data")]
    planes = model.geom_size[model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)]
    for array in (*arrays, model.skin_vert, planes):
        whole = np.ascontiguousarray(array)
        key += [whole.size, zlib.crc32(whole.view(np.uint8).reshape(-1).data)]
    return tuple(key)


def _free(context: Any, drawers: OrderedDict[Any, Any]) -> None:
    context.make_current()
    for drawer, _ in drawers.values():
        drawer.free()
    drawers.clear()
    context.free()
