"""Pictures by Filament, MuJoCo's physically based renderer: for stills and films.

Materials without physical properties and lights without an intensity are shown by MuJoCo's approximation of them. On
Linux it draws through Vulkan, in software where there is no GPU. Where a driver is missing it does not raise but ends
the process, so whether it works is found out in another one.
"""

from __future__ import annotations

import copy
import functools
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np

from manikin.compat.mujoco import load_filament
from manikin.errors import ConfigError, UnknownNameError
from manikin.render.asset_cache import AssetCache
from manikin.render.backends.backdrop import backdrop
from manikin.render.backends.dots import with_dots
from manikin.render.backends.rgb import RgbOfImages
from manikin.render.quiet import hushed
from manikin.render.renderer import check_outputs
from manikin.render.view import View, view_of
from manikin.sim.dots import dot_groups
from manikin.spec.camera import CameraSpec

__all__ = ["FilamentLook", "FilamentRenderer", "probe"]

_INSTALL = {
    "Linux": "apt-get install libvulkan1 mesa-vulkan-drivers, or the Vulkan driver of a GPU",
    "Darwin": "pip install mujoco-studio",
    "Windows": "pip install mujoco-studio, and a driver for OpenGL or Vulkan",
}
_HEADLIGHT = 40000.0  # lux of MuJoCo's default headlight, whose diffuse strength is 0.4
_NEAR = 0.01  # [m] what is nearer is cut away, as by the other renderers
# Fields that are drawn differently when they change. MuJoCo takes in some of them without being told; not all.
_LOOKS = (
    *("geom_size", "geom_rgba", "geom_matid", "geom_dataid", "site_size", "site_rgba", "site_matid"),
    *("mat_rgba", "mat_texid", "mat_texuniform", "mat_texrepeat", "mat_emission", "mat_specular", "mat_shininess"),
    *("mat_reflectance", "mat_metallic", "mat_roughness", "light_type", "light_active", "light_castshadow"),
    *("light_ambient", "light_diffuse", "light_specular", "light_attenuation", "light_cutoff", "light_exponent"),
    *("light_intensity", "light_range", "light_bulbradius"),
)

# Draws a red sphere and looks at it.
_TRIAL = """
import os, sys, mujoco, mujoco.studio, numpy as np
from mujoco import mjrf
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='.5' rgba='1 0 0 1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
api = getattr(mjrf.GraphicsApi, "GRAPHICS_API_" + sys.argv[1])
context = mjrf.Context(mjrf.ContextConfig(graphics_api=api))
assets, scene = mjrf.ModelResources(context, model), context.create_scene(mjrf.SceneParams())
lights, things = mjrf.ModelLights(scene, assets), mjrf.ModelRenderables(scene, assets)
lights.update(data)
things.update(data)
form = mjrf.PixelFormat.PIXEL_FORMAT_RGB8
target = context.create_render_target(mjrf.RenderTargetConfig(width=32, height=32, color_format=form))
pixels, read = np.zeros((32, 32, 3), np.uint8), mjrf.ReadRequest(target=target)
read.set_buffer(pixels)
camera = mjrf.Camera(pos=[0, -2, 0], forward=[0, 1, 0], up=[0, 0, 1], frustum_center=0, frustum_width=.05,
                     frustum_bottom=-.05, frustum_top=.05, frustum_near=.1, frustum_far=10)
request = mjrf.RenderRequest(scene=scene, camera=camera, viewport=mjrf.Rect(left=0, bottom=0, width=32, height=32),
                             target=target, headlight=True, headlight_intensity=40000)
context.wait_for_frame(context.render([request], [read]))
print("" if pixels[16, 16, 0] > 20 else "it draws nothing", file=sys.stderr, flush=True)
os._exit(0 if pixels[16, 16, 0] > 20 else 1)
"""


@functools.cache
def probe() -> tuple[str | None, str]:
    """The graphics interface with which Filament draws on this machine, or None; and what is missing, how to get it.

    Tried once per process, in a process of its own (a few seconds).
    """
    system = platform.system()
    candidates = ["vulkan"] if system == "Linux" else ["default"]
    if system == "Linux" and os.environ.get("DISPLAY"):
        candidates.append("opengl")  # which ends the process where there is no display
    failures = []
    for name in candidates:
        try:
            command = [sys.executable, "-c", _TRIAL, name.upper()]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            failures.append(f"{name}: {type(error).__name__}")
            continue
        if done.returncode == 0:
            return name, ""
        last = ((done.stderr + done.stdout).strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        failures.append(f"{name}: {last.strip()}")
    return None, f"{'; '.join(failures)}; {_INSTALL.get(system, 'a Vulkan driver')}"


@dataclass(frozen=True, kw_only=True)
class FilamentLook:
    """How a picture by Filament is taken.

    Attributes:
        exposure: [stops] brighter than Filament's own, or darker.
        shadows: of all lights but the headlight, of those that the model lets cast them, or none.
        shadow_edges: ``pcf`` is fast, ``vsm`` softer, ``pcss`` softer with distance and several times slower.
        occlusion: darken corners and contacts.
        flags: further options by MuJoCo's name without the leading ``filament.``, numbers or words, for example
            ``{"bloom.enabled": 1, "cg.tone_mapping": "filmic"}`` (MuJoCo's manual, "Rendering options").
    """

    exposure: float = 0.2
    shadows: Literal["all", "model", "none"] = "all"
    shadow_edges: Literal["pcf", "vsm", "pcss"] = "pcf"
    occlusion: bool = True
    flags: Mapping[str, float | str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name, valid in (("shadows", ("all", "model", "none")), ("shadow_edges", ("pcf", "vsm", "pcss"))):
            if getattr(self, name) not in valid:
                raise UnknownNameError(name, getattr(self, name), valid)

    def as_model(self) -> mujoco.MjModel:
        """A model that holds nothing but these options, as Filament reads them."""
        options: dict[str, float | str] = {
            "cg.exposure": self.exposure,
            "ao.enabled": int(self.occlusion),
            "shadows.type": self.shadow_edges,
            **self.flags,
        }
        lines = [
            f"<{'text' if isinstance(value, str) else 'numeric'} name={quoteattr('filament.' + name)}"
            f" data={quoteattr(str(value))}/>"
            for name, value in options.items()
        ]
        return mujoco.MjModel.from_xml_string(f"<mujoco><custom>{''.join(lines)}</custom></mujoco>")


class FilamentRenderer(RgbOfImages):
    """See :class:`manikin.render.Renderer`. For the thread that made it only.

    Pictures have their shadows from ``look``, whatever ``shadows`` says. Endless planes end at about fifty metres.

    Raises:
        ConfigError: where Filament cannot draw; says what to install and which renderer works.
    """

    outputs = frozenset({"rgb", "depth", "segmentation"})

    def __init__(self, *, samples: int = 1, shadows: bool = True, look: FilamentLook | None = None) -> None:
        api, why = probe()
        if api is None:
            raise ConfigError(f"Filament does not work here ({why}). backend='auto' takes another renderer.")
        self.name = f"filament ({api})"
        self._samples, self._look, self._thread = samples, look or FilamentLook(), threading.get_ident()
        with hushed():  # the engine introduces itself
            self._rf = mjrf = load_filament()
            chosen = getattr(mjrf.GraphicsApi, f"GRAPHICS_API_{api.upper()}")
            self._context: Any = mjrf.Context(mjrf.ContextConfig(graphics_api=chosen))
        middle = backdrop(np.array(0.3)).astype(float)
        self._around = (middle**2 / 2**self._look.exposure).astype(np.float32)  # linear; seen at edges only
        self._targets: dict[Any, Any] = {}
        # A context holds one model's assets at a time: with a second model's, drawing fails (MuJoCo 4.0).
        self.stages: AssetCache[_Stage] = AssetCache(
            lambda model: _Stage(mjrf, self._context, model, self._look), most=1
        )

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
        if self._context is None:
            raise ConfigError("the renderer is closed")
        if threading.get_ident() != self._thread:
            raise ConfigError("a Filament renderer works in the thread that made it only; make one per thread")
        check_outputs(self.name, outputs, self.outputs)
        view = view_of(model, data, camera, width, height)
        stage = self.stages.of(model)
        stage.show(model, data)
        found: dict[str, np.ndarray] = {}
        if "rgb" in outputs:
            fine = view.enlarged(self._samples)
            found["rgb"] = self._photograph(stage, model, fine, sites)
        if "segmentation" in outputs:
            found["segmentation"] = self._geoms(stage, view)
        if "depth" in outputs:
            found["depth"] = self._depth(stage, view)
        return {word: found[word] for word in outputs}

    def close(self) -> None:
        """Free the engine. Idempotent."""
        self.stages.clear()
        self._targets.clear()
        self._context = None

    def _depth(self, stage: _Stage, view: View, *, sites: bool = False) -> np.ndarray:
        """(H, W) float32 [m], 0 for nothing."""
        near, far = stage.planes
        blank = np.zeros((view.height, view.width), np.float32)
        reverse = self._draw(stage, view, "DEPTH", "R32F", blank, sites=sites)
        return np.where(reverse > 0, near * far / (near + reverse * (far - near)), 0).astype(np.float32)

    def _photograph(self, stage: _Stage, model: mujoco.MjModel, view: View, sites: bool) -> np.ndarray:
        nothing = self._geoms(stage, view, sites=sites) == 0
        rgb = self._draw(stage, view, "DEFAULT", "RGB8", np.zeros((view.height, view.width, 3), np.uint8), sites=sites)
        if nothing.any():
            rgb[nothing] = backdrop(view.upward()[nothing]) * 255 + 0.5
        if dots := dot_groups(model):
            rgb = with_dots(dots, view, rgb, self._depth(stage, view, sites=sites))
        if self._samples == 1:
            return rgb
        s = self._samples
        blocks = rgb.reshape(view.height // s, s, view.width // s, s, 3)
        return (blocks.mean((1, 3), dtype=np.float32) + 0.5).astype(np.uint8)

    def _geoms(self, stage: _Stage, view: View, *, sites: bool = False) -> np.ndarray:
        """(H, W) int32: geom + 1, 0 for nothing."""
        blank = np.zeros((view.height, view.width, 3), np.uint8)
        red, green, blue = np.moveaxis(
            self._draw(stage, view, "SEGMENTATION_BY_ID", "RGB8", blank, sites=sites).astype(np.int32), -1, 0
        )
        return red + (green << 8) + (blue << 16)

    def _draw(
        self, stage: _Stage, view: View, mode: str, form: str, pixels: np.ndarray, *, sites: bool = False
    ) -> np.ndarray:
        """Fill ``pixels``. Filament takes one request to read per call."""
        rf = self._rf
        stage.choose(sites)
        request, head = rf.RenderRequest(), stage.headlight
        request.scene, request.camera = stage.scene, self._camera(view, *stage.planes)
        request.viewport = rf.Rect(left=0, bottom=0, width=view.width, height=view.height)
        request.target = target = self._target(form, view.width, view.height)
        request.draw_mode = getattr(rf.DrawMode, f"DRAW_MODE_{mode}")
        request.headlight, request.headlight_color, request.headlight_intensity = head > 0, [1.0, 1.0, 1.0], head
        request.shadows, request.haze, request.skybox = self._look.shadows != "none", False, False
        read = rf.ReadRequest(target=target)
        read.set_buffer(pixels)
        self._context.set_clear_color(self._around if mode == "DEFAULT" else np.zeros(3, np.float32))
        self._context.wait_for_frame(self._context.render([request], [read]))
        return pixels

    def _target(self, form: str, width: int, height: int) -> Any:
        rf, key = self._rf, (form, width, height)
        if key not in self._targets:
            while len(self._targets) >= 8:
                self._targets.pop(next(iter(self._targets)))
            config = rf.RenderTargetConfig(
                width=width, height=height, color_format=getattr(rf.PixelFormat, f"PIXEL_FORMAT_{form}")
            )
            self._targets[key] = self._context.create_render_target(config)
        return self._targets[key]

    def _camera(self, view: View, near: float, far: float) -> Any:
        left, right, bottom, top = (edge * near for edge in view.frustum())
        return self._rf.Camera(
            pos=view.pos,
            forward=view.rotation[:, 2],
            up=-view.rotation[:, 1],
            frustum_center=(left + right) / 2,
            frustum_width=(right - left) / 2,
            frustum_bottom=bottom,
            frustum_top=top,
            frustum_near=near,
            frustum_far=far,
        )


class _Stage:
    """A model's meshes, things and lights in the engine."""

    def __init__(self, rf: Any, context: Any, model: mujoco.MjModel, look: FilamentLook) -> None:
        self._rf, self._context, self._look = rf, context, look
        self._model = copy.copy(model)
        self._seen: dict[str, np.ndarray] = {}
        self._assets = rf.ModelResources(context, self._model)
        self._sites: bool | None = None
        self.scene: Any = None
        self._lights: Any = None
        self._things: Any = None

    def show(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Take one row's looks and places."""
        changed = [n for n in _LOOKS if n not in self._seen or not np.array_equal(getattr(model, n), self._seen[n])]
        for name in changed:
            self._seen[name] = getattr(model, name).copy()
            getattr(self._model, name)[:] = self._seen[name]
        if changed:
            if self._look.shadows == "all":
                self._model.light_castshadow[:] = True
            self._lights = self._things = None
            self.scene = self._context.create_scene(self._rf.SceneParams())
            self.scene.configure_from_model(self._look.as_model())
            self._lights = self._rf.ModelLights(self.scene, self._assets)
            self._things = self._rf.ModelRenderables(self.scene, self._assets)
            self._sites = None
        near, far = (float(z * model.stat.extent) for z in (model.vis.map.znear, model.vis.map.zfar))
        self.planes = min(near, _NEAR), far
        head = model.vis.headlight
        lit = head.active and not (self._model.light_intensity > 0).any()
        self.headlight = _HEADLIGHT * float(head.diffuse.max()) / 0.4 if lit else 0.0
        self._lights.update(data)
        self._things.update(data)
        self._data = data

    def choose(self, sites: bool) -> None:
        """Draw sites too, or not."""
        if sites != self._sites:
            option = mujoco.MjvOption()
            if not sites:
                option.sitegroup[:] = 0
            self._things.set_options(option)
            self._things.update(self._data)
            self._sites = sites
