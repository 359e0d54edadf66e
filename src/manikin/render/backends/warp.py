"""Pictures by MuJoCo Warp's ray tracer: the renderer of many worlds at once on a GPU, and of small pictures on a CPU.

One ray per pixel against the meshes and shapes themselves; textures, specular light and shadows as OpenGL has them,
apart from the filtering of textures seen from afar. One kernel serves nearly all scenes: it is compiled on first use
(about ten seconds) into ``manikin.assets.paths.cache_root()/warp``, or where WARP_CACHE_PATH says.
"""

from __future__ import annotations

import copy
import functools
import importlib
import importlib.util
import math
import os
import threading
from typing import Any

import mujoco
import numpy as np
import torch

from manikin.assets.paths import cache_root
from manikin.compat.mujoco_warp import camera_context, render, render_context, world_arrays
from manikin.errors import ConfigError
from manikin.render.asset_cache import AssetCache
from manikin.render.backends.backdrop import backdrop
from manikin.render.backends.dots import with_dots
from manikin.render.backends.meshes import lighter
from manikin.render.backends.rays import Picture
from manikin.render.backends.rgb import RgbOfImages
from manikin.render.backends.shading import Light, lights_of, see_through
from manikin.render.quiet import hushed
from manikin.render.renderer import check_outputs
from manikin.render.view import View, view_of
from manikin.sim.dots import dot_groups
from manikin.sim.warp.library import in_torch_order
from manikin.spec.camera import CameraSpec

__all__ = ["WarpRenderer", "WarpScene", "lightened", "probe"]

_INSTALL = "pip install manikin[gpu]"
_PACKAGES = ("warp", "mujoco_warp")
_GROUPS = (0, 1, 2)  # drawn, as in MuJoCo's viewer
_LENSES = 8  # resolutions a scene keeps buffers for
_SHADES = 1024  # steps of the backdrop
_GEOM = mujoco.mjtGeom
# The kernel is specialised to the shapes and the number of lights; fixed sets keep the compiled kernels few.
_USUAL_SHAPES = frozenset(
    int(g)
    for g in (
        *(_GEOM.mjGEOM_PLANE, _GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_ELLIPSOID),
        *(_GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_BOX, _GEOM.mjGEOM_MESH),
    )
)
_LIGHT_STEP = 4
_DIRECTIONAL, _SPOT = int(mujoco.mjtLightType.mjLIGHT_DIRECTIONAL), int(mujoco.mjtLightType.mjLIGHT_SPOT)
_IMAGE = int(mujoco.mjtLightType.mjLIGHT_IMAGE)
# Fields of the model and the data that a row may have of its own.
_LOOKS = (
    *("geom_size", "geom_rgba", "geom_matid", "geom_dataid", "mat_texid", "mat_texuniform", "mat_texrepeat"),
    *("mat_emission", "mat_specular", "mat_shininess", "mat_rgba"),
)
_PLACES = ("geom_xpos", "geom_xmat", "flexvert_xpos")
_loading = threading.Lock()


@functools.cache
def probe() -> str:
    """Empty where the ray tracer's packages are installed, else what is missing. Imports nothing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    return f"{' and '.join(missing)} not installed: {_INSTALL}" if missing else ""


@functools.cache
def libraries() -> tuple[Any, Any]:
    """The modules warp and mujoco_warp, imported and started without a word."""
    if probe():
        raise ConfigError(f"renderer 'warp' needs packages that are missing ({probe()})")
    with _loading, hushed():  # without a CUDA driver, Warp says so from C++
        wp = importlib.import_module("warp")
        if wp.config.log_level == wp.LOG_INFO:
            wp.config.log_level = wp.LOG_WARNING
        if wp.config.kernel_cache_dir is None and not os.environ.get("WARP_CACHE_PATH"):
            wp.config.kernel_cache_dir = str(cache_root() / "warp")
        wp.init()
        return wp, importlib.import_module("mujoco_warp")


def _put(array: Any, values: Any) -> None:
    """Write numpy values into a Warp array of the same number of them."""
    if array.size == 0:
        return
    if array.device.is_cpu:
        target = array.numpy()  # the same memory
        np.copyto(target, np.reshape(values, target.shape), casting="unsafe")
    else:
        shape = array.numpy().shape
        array.assign(np.ascontiguousarray(np.reshape(values, shape)))


class _Lights:
    """Arrays of a scene's lights: the headlight and the model's own, and unlit ones to a round number."""

    def __init__(self, wp: Any, worlds: int, most: int, device: str) -> None:
        self.most = -(-most // _LIGHT_STEP) * _LIGHT_STEP
        kinds = {"type": int, "castshadow": bool, "active": bool, "cutoff": float, "exponent": float}
        kinds |= dict.fromkeys(("attenuation", "ambient", "diffuse", "specular", "xpos", "xdir"), wp.vec3)
        shape = (worlds, self.most)
        self.arrays = {name: wp.zeros(shape, dtype=kind, device=device) for name, kind in kinds.items()}
        self.tensors = {name: wp.to_torch(array) for name, array in self.arrays.items()}

    def take(self, lights: list[Light]) -> None:
        """The same lights in every world."""
        n = min(len(lights), self.most)
        self.tensors["active"][:, n:] = False
        columns: dict[str, list[Any]] = {
            "type": [_DIRECTIONAL if light.parallel else _SPOT for light in lights],
            "active": [True] * len(lights),
            "castshadow": [light.casts for light in lights],
            "cutoff": [math.degrees(math.acos(light.cutoff)) for light in lights],
            "exponent": [light.exponent for light in lights],
            **{name: [getattr(light, name) for light in lights] for name in ("attenuation", "ambient", "diffuse")},
            "specular": [light.specular for light in lights],
            "xpos": [light.pos for light in lights],
            "xdir": [light.direction for light in lights],
        }
        for name, values in columns.items():
            target = self.tensors[name]
            target[:, :n] = torch.as_tensor(np.array(values[:n])).to(target)

    def follow(self, wp: Any, m: Any, d: Any, head: Any, pos: torch.Tensor, forward: torch.Tensor) -> None:
        """Each world's own lights, and the headlight at its camera."""
        n, t = int(m.nlight), self.tensors
        for name in ("type", "castshadow", "active", "cutoff", "exponent"):
            t[name][:, 1 : n + 1] = wp.to_torch(getattr(m, f"light_{name}"))
        for name in ("attenuation", "ambient", "diffuse", "specular"):
            t[name][:, 1 : n + 1] = wp.to_torch(getattr(m, f"light_{name}"))
        t["active"][:, 1 : n + 1] &= t["type"][:, 1 : n + 1] != _IMAGE
        t["xpos"][:, 1 : n + 1], t["xdir"][:, 1 : n + 1] = wp.to_torch(d.light_xpos), wp.to_torch(d.light_xdir)
        t["active"][:, 0], t["type"][:, 0], t["castshadow"][:, 0] = bool(head.active), _DIRECTIONAL, False
        for name in ("ambient", "diffuse", "specular"):
            t[name][:, 0] = torch.as_tensor(np.array(getattr(head, name))).to(t[name])
        t["xpos"][:, 0], t["xdir"][:, 0] = pos, forward
        t["active"][:, n + 1 :] = False


class _Lens:
    """Rays and picture buffers of one resolution."""

    def __init__(self, wp: Any, base: Any, worlds: int, width: int, height: int, device: str) -> None:
        self.shape = (worlds, height, width)
        with wp.ScopedDevice(device):
            context = camera_context(wp, base, worlds, width, height)
            self.shaded = {on: wp.full(1, on, dtype=bool) for on in (False, True)}
        self.context = context
        self._K: np.ndarray | None = None
        self.rays = wp.to_torch(context.ray)

    def aim(self, K: np.ndarray) -> None:
        """Rays through the pixels' centres, in MuJoCo's camera frame: x right, y up, looking along -z."""
        if self._K is not None and np.array_equal(K, self._K):
            return
        _, height, width = self.shape
        x, y = (np.arange(width) - K[0, 2]) / K[0, 0], (np.arange(height) - K[1, 2]) / K[1, 1]
        rays = np.empty((height, width, 3))
        rays[..., 0], rays[..., 1], rays[..., 2] = x, -y[:, None], -1
        rays /= np.sqrt((rays * rays).sum(-1, keepdims=True))
        _put(self.context.ray, rays.reshape(-1, 3).astype(np.float32))
        self._K = K.copy()


class WarpScene:
    """What tracing rays needs of a model on a Warp device: meshes, textures, and the hierarchies over all worlds.

    Args:
        model: the model; physics options that MuJoCo Warp lacks do not matter here.
        worlds: number of worlds drawn at once.
        shadows: draw shadows of the lights that cast them.
        device: Warp's name of a device, ``cpu`` or ``cuda:0``.
        of: the MuJoCo Warp Model and Data that will be drawn, where there are any; otherwise some are made.

    Attributes:
        model, data: a MuJoCo Warp Model and Data of the right sizes, for callers without their own.

    Raises:
        ConfigError: if the packages are missing, or MuJoCo Warp cannot represent the model.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        worlds: int = 1,
        shadows: bool = False,
        device: str = "cpu",
        of: tuple[Any, Any] | None = None,
    ) -> None:
        self._wp, self._mjw = wp, mjw = libraries()
        self.worlds, self.device, self._head = worlds, device, model.vis.headlight
        plain = _without_physics(model)
        with _loading, wp.ScopedDevice(device):
            try:
                self.model, self.data = of or (
                    mjw.put_model(plain), mjw.make_data(plain, nworld=worlds, nconmax=1, njmax=1)
                )  # fmt: skip
            except (NotImplementedError, ValueError) as error:
                raise ConfigError(f"renderer 'warp' cannot draw this model: {error}") from error
            base = render_context(
                mjw, plain, worlds=worlds, shadows=shadows, groups=list(_GROUPS), shapes=_USUAL_SHAPES
            )
            self._eye = wp.zeros((worlds, 1), dtype=wp.vec3), wp.zeros((worlds, 1), dtype=wp.mat33)
        self._far = float(model.vis.map.zfar * model.stat.extent)
        self._base, self._empty = base, base.bvh_ngeom + base.bvh_nflexgeom == 0
        self.lights = _Lights(wp, worlds, model.nlight + 1, device)
        self._lenses: dict[tuple[int, int], _Lens] = {}
        if self._on().type == "cuda":
            wp.synchronize_device(device)  # all of it was made on Warp's own stream
        self._shades = (torch.as_tensor(backdrop(np.linspace(-1, 1, _SHADES))) * 255 + 0.5).to(self._on(), torch.uint8)

    def render(
        self,
        m: Any,
        d: Any,
        K: np.ndarray,
        pos: torch.Tensor,
        rotation: torch.Tensor,
        width: int,
        height: int,
        *,
        rgb: bool = True,
        lights: list[Light] | None = None,
        lenses: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """One camera's picture of every world, without leaving the device.

        Args:
            m: MuJoCo Warp's Model; it is not changed.
            d: MuJoCo Warp's Data, kinematics and lights up to date; it is not changed.
            K: (3, 3) intrinsics [pixels] of all worlds, unless they have their own.
            pos: (N, 3) float32 optical centres [m].
            rotation: (N, 3, 3) float32, columns right, down, forward.
            width: [pixels].
            height: [pixels].
            rgb: shade the pictures; without, only depth and segmentation.
            lights: of all worlds, the headlight included; by default each world's own in ``m`` and ``d``.
            lenses: (N, 3, 3) float32 each world's intrinsics [pixels]. Highlights are a little off the more they differ
                from ``K``.

        Returns:
            ``rgb`` (N, H, W, 3) uint8, ``depth`` (N, H, W) float32 [m], planar, 0 where nothing is, and
            ``segmentation`` (N, H, W) int32, geom + 1, 0 where nothing is. The caller owns them.
        """
        with self._wp.ScopedDevice(self.device), in_torch_order(self._on()):
            lens = self._lens(width, height)
            lens.aim(K)
        centre, frame = (self._wp.to_torch(a) for a in self._eye)
        centre[:, 0] = pos
        aimed = rotation
        if lenses is not None:
            # All worlds share their rays; another lens is a stretched frame, which keeps depth along its axis.
            aimed = rotation @ torch.linalg.inv(lenses) @ torch.as_tensor(K, dtype=rotation.dtype).to(rotation.device)
        aimed = aimed * rotation.new_tensor([1.0, -1.0, -1.0])
        frame[:, 0] = aimed
        if lights is None:
            self.lights.follow(self._wp, m, d, self._head, pos, rotation[..., 2])
        else:
            self.lights.take(lights)
        m, d, context = copy.copy(m), copy.copy(d), lens.context
        m.nlight = self.lights.most
        for name, array in self.lights.arrays.items():
            setattr(d if name in ("xpos", "xdir") else m, f"light_{name}", array)
        d.cam_xpos, d.cam_xmat = self._eye
        context.render_rgb = lens.shaded[rgb]
        with self._wp.ScopedDevice(self.device), in_torch_order(self._on()):
            if self._empty:  # a hierarchy of nothing crashes
                context.depth_data.zero_()
                context.seg_data.fill_(self._wp.vec2i(-1, -1))
            else:
                self._mjw.refit_bvh(m, d, context)
                render(self._mjw, m, d, context, self._base, _loading)
        return self._developed(lens, aimed, rgb)

    def _developed(self, lens: _Lens, aimed: torch.Tensor, rgb: bool) -> dict[str, torch.Tensor]:
        context, wp = lens.context, self._wp
        depth = wp.to_torch(context.depth_data).view(lens.shape).clone()
        kinds = wp.to_torch(context.seg_data).view(*lens.shape, 2)
        missed = (kinds[..., 1] != int(mujoco.mjtObj.mjOBJ_GEOM)) | (depth > self._far)
        depth[missed] = 0
        out = {"depth": depth, "segmentation": (kinds[..., 0] + 1).masked_fill_(missed, 0)}
        if rgb:
            packed = wp.to_torch(context.rgb_data).view(torch.uint8).view(*lens.shape, 4)
            out["rgb"] = packed[..., :3].flip(-1)
            if missed.device.type != "cpu" or missed.any():
                out["rgb"] = torch.where(missed[..., None], self._backdrop(lens, aimed), out["rgb"])
        return out

    def _backdrop(self, lens: _Lens, aimed: torch.Tensor) -> torch.Tensor:
        """(N, H, W, 3) uint8: what is seen where nothing is, by how far up each ray goes. Of every pixel: to ask a GPU
        which ones need it is to wait for it, and takes three 64-bit numbers of each that does."""
        x, y, z = lens.rays.T.contiguous().view(3, *lens.shape[1:])

        def along(axis: int) -> torch.Tensor:
            a, b, c = aimed[:, axis, :, None, None].unbind(1)
            return a * x + b * y + c * z

        up = along(2)
        square = along(0).square_() + along(1).square_() + up * up
        step = ((up / square.sqrt_() + 1) * ((_SHADES - 1) / 2)).round_().int().clamp_(0, _SHADES - 1)
        return self._shades.index_select(0, step.view(-1)).view(*lens.shape, 3)

    def _lens(self, width: int, height: int) -> _Lens:
        key = (width, height)
        if key not in self._lenses:
            while len(self._lenses) >= _LENSES:
                self._lenses.pop(next(iter(self._lenses)))
            self._lenses[key] = _Lens(self._wp, self._base, self.worlds, width, height, self.device)
        return self._lenses[key]

    def memory_per_world(self) -> int:
        """Bytes that a world takes here: lights, bounds of its geoms, and the pictures of every resolution that was
        drawn. Without the hierarchy over the bounds, whose size Warp does not tell, and what all worlds share."""
        lenses = [lens.context for lens in self._lenses.values()]
        own = [*self.lights.arrays.values(), *self._eye, *world_arrays(self._base)]
        own += [array for lens in lenses for array in (lens.rgb_data, lens.depth_data, lens.seg_data)]
        return int(sum(array.capacity for array in own) // self.worlds)

    def _on(self) -> torch.device:
        return torch.device(self._wp.device_to_torch(self.device))

    def show(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Take one row's looks and places into ``self.model`` and ``self.data``."""
        for name in _LOOKS:
            _put(getattr(self.model, name), getattr(model, name))
        for name in _PLACES:
            _put(getattr(self.data, name), getattr(data, name))

    def tensor(self, array: Any) -> torch.Tensor:
        """A Warp array as a tensor of the same memory."""
        out: torch.Tensor = self._wp.to_torch(array)
        return out

    def colours(self, m: Any) -> torch.Tensor:
        """(N, ngeom, 4) the colour of each geom in each world: its material's, unless it has one of its own."""
        rgba, paint, which = self.tensor(m.geom_rgba), self.tensor(m.mat_rgba), self.tensor(m.geom_matid)
        rgba, which = rgba.expand(self.worlds, -1, -1), which.expand(self.worlds, -1)
        if paint.shape[1] == 0:
            return rgba
        plain = (rgba == rgba.new_tensor([0.5, 0.5, 0.5, 1.0])).all(-1) & (which >= 0)
        index = which.clamp(min=0).long()[..., None].expand(-1, -1, 4)
        return torch.where(plain[..., None], paint.expand(self.worlds, -1, -1).gather(1, index), rgba)

    def without(self, m: Any, geoms: torch.Tensor) -> Any:
        """The Model without the geoms (N, ngeom) bool; it shares everything else."""
        out = copy.copy(m)
        rgba = self.tensor(m.geom_rgba).expand(self.worlds, -1, -1).masked_fill(geoms[..., None], 0)
        out.geom_rgba = self._wp.from_torch(rgba.contiguous(), dtype=self._wp.vec4)
        return out

    def hide(self, geoms: np.ndarray) -> None:
        """Leave out some geoms until the next :meth:`show`."""
        rgba = self._wp.to_torch(self.model.geom_rgba)
        rgba[:, torch.as_tensor(np.flatnonzero(geoms))] = 0


def _without_physics(model: mujoco.MjModel) -> mujoco.MjModel:
    """A copy whose physics options are ones that MuJoCo Warp knows."""
    plain = copy.copy(model)
    plain.opt.disableflags = plain.opt.enableflags = 0
    plain.opt.solver, plain.opt.integrator = int(mujoco.mjtSolver.mjSOL_NEWTON), int(mujoco.mjtIntegrator.mjINT_EULER)
    plain.opt.jacobian, plain.opt.noslip_iterations = int(mujoco.mjtJacobian.mjJAC_AUTO), 0
    return plain


def lightened(model: mujoco.MjModel) -> mujoco.MjModel:
    """The model with fewer faces. MuJoCo Warp reads on to the next mesh's faces; those left over become points."""
    lightened, _ = lighter(model)
    if lightened is not model:
        ends = np.append(model.mesh_faceadr[1:], len(model.mesh_face))
        for start, count, end in zip(lightened.mesh_faceadr, lightened.mesh_facenum, ends, strict=True):
            lightened.mesh_face[start + count : end] = 0
    return lightened


class WarpRenderer(RgbOfImages):
    """One row per call. See :class:`manikin.render.Renderer`; :class:`WarpScene` draws many worlds at once.

    Sites, which the ray tracer does not know, are laid over its pictures. Meshes with many faces are drawn with fewer
    (:func:`manikin.render.backends.meshes.lighter`), unless ``light`` is False.

    Raises:
        ConfigError: if the packages are missing; says how to install them.
    """

    outputs = frozenset({"rgb", "depth", "segmentation"})

    def __init__(self, *, samples: int = 1, shadows: bool = False, light: bool = True, device: str = "cpu") -> None:
        libraries()
        self.name = f"warp ({device})"
        self._samples = samples
        self._scenes: AssetCache[WarpScene] = AssetCache(
            lambda model: WarpScene(lightened(model) if light else model, shadows=shadows, device=device)
        )
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
        """See :meth:`manikin.render.Renderer.images`. Bulky arrays (vertices, pixels) count as they first were."""
        if self._closed:
            raise ConfigError("the renderer is closed")
        check_outputs(self.name, outputs, self.outputs)
        view = view_of(model, data, camera, width, height)
        scene = self._scenes.of(model)
        scene.show(model, data)
        lights = lights_of(model, data, view)
        found: dict[str, np.ndarray] = {}
        if "rgb" in outputs:
            fine = view.enlarged(self._samples)
            found = _drawn(scene, fine, lights)
            glass = see_through(model)
            if glass is not None and (glass[found["segmentation"]] < 1).any():
                scene.hide(glass[1:] < 1)
                opacity = glass[found["segmentation"]][..., None]
                behind = _drawn(scene, fine, lights)["rgb"]
                found["rgb"] = (opacity * found["rgb"] + (1 - opacity) * behind + 0.5).astype(np.uint8)
                scene.show(model, data)
            if dots := dot_groups(model):
                found["rgb"] = with_dots(dots, fine, found["rgb"], found["depth"])
            if sites:
                found["rgb"] = _with_sites(model, data, fine, found["rgb"], found["depth"])
            if self._samples > 1:
                s = self._samples
                blocks = found["rgb"].reshape(view.height, s, view.width, s, 3)
                found["rgb"] = (blocks.mean((1, 3), dtype=np.float32) + 0.5).astype(np.uint8)
        if "rgb" not in outputs or (self._samples > 1 and len(outputs) > 1):
            found |= _drawn(scene, view, lights, rgb=False)
        return {word: found[word] for word in outputs}

    def close(self) -> None:
        """Free what was prepared. Idempotent."""
        self._closed = True
        self._scenes.clear()


def _drawn(scene: WarpScene, view: View, lights: list[Light], *, rgb: bool = True) -> dict[str, np.ndarray]:
    pos, rotation = (torch.as_tensor(a, dtype=torch.float32)[None] for a in (view.pos, view.rotation))
    found = scene.render(
        *(scene.model, scene.data, view.K, pos, rotation, view.width, view.height), rgb=rgb, lights=lights
    )
    return {word: tensor[0].cpu().numpy() for word, tensor in found.items()}


def _with_sites(
    model: mujoco.MjModel, data: mujoco.MjData, view: View, rgb: np.ndarray, depth: np.ndarray
) -> np.ndarray:
    """The picture with the sites that nothing hides."""
    picture = Picture(model, data, view, True, False)
    if not picture.sites:
        return rgb
    v, u = np.mgrid[: view.height, : view.width].reshape(2, -1)
    rays = view.rays(u, v)
    ahead = rays @ view.rotation[:, 2]
    distance = np.where(depth.reshape(-1) > 0, depth.reshape(-1) / ahead, np.inf)
    colour, seen = rgb.reshape(-1, 3).astype(np.float32) / 255, np.zeros(len(rays), np.int32)
    for site in picture.sites:
        picture.lay_over(site, rays, distance, colour, seen)
    return (colour.reshape(rgb.shape) * 255 + 0.5).astype(np.uint8)
