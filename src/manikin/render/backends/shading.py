"""Colours and light for pictures made by casting rays: what OpenGL's fixed pipeline computes, per pixel, in numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.render.view import View

__all__ = ["Light", "Surfaces", "lights_of", "place_lights", "plane_colour", "see_through", "shade", "surfaces_of"]

_RGB = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
_SPOT, _POINT = int(mujoco.mjtLightType.mjLIGHT_SPOT), int(mujoco.mjtLightType.mjLIGHT_POINT)
_PLANE, _2D = int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtTexture.mjTEXTURE_2D)
_BOX = int(mujoco.mjtGeom.mjGEOM_BOX)
_UNSET = np.array([0.5, 0.5, 0.5, 1], np.float32)  # MuJoCo takes the material's colour where a geom has this one


@dataclass(frozen=True, eq=False)
class Surfaces:
    """Look of each geom and then each site, (n, ...) float32.

    ``texture`` is the texture of a plane, -1 elsewhere; ``tint`` (n, 3) the mean of any other texture.
    """

    rgba: np.ndarray
    tint: np.ndarray
    emission: np.ndarray
    specular: np.ndarray
    shininess: np.ndarray
    texture: np.ndarray
    material: np.ndarray


def surfaces_of(model: mujoco.MjModel) -> Surfaces:
    """Colours and materials as MuJoCo resolves them; off planes and boxes a texture counts with its mean colour.

    As in OpenGL, the opacity of solids is that of their front and back together.
    """
    rgba = np.concatenate([model.geom_rgba, model.site_rgba]).astype(np.float32)
    material = np.concatenate([model.geom_matid, model.site_matid])
    kind = np.concatenate([model.geom_type, model.site_type])
    plane = kind == _PLANE
    n = len(rgba)
    emission, specular, shininess = (np.full(n, value, np.float32) for value in (0, 0.5, 0.5))
    texture, tint = np.full(n, -1), np.ones((n, 3), np.float32)
    has = np.flatnonzero(material >= 0)
    if len(has):
        m = material[has]
        rgba[has] = np.where((rgba[has] == _UNSET).all(1)[:, None], model.mat_rgba[m], rgba[has])
        emission[has], specular[has], shininess[has] = (
            model.mat_emission[m],
            model.mat_specular[m],
            model.mat_shininess[m],
        )
        texture[has] = model.mat_texid[m, _RGB]
        for i in np.flatnonzero(texture >= 0):
            if not ((plane[i] or kind[i] == _BOX) and model.tex_type[texture[i]] == _2D):
                tint[i] = _texels(model, int(texture[i])).mean((0, 1))
                texture[i] = -1
    rgba[~plane, 3] = 1 - (1 - rgba[~plane, 3]) ** 2
    return Surfaces(rgba, tint, emission, specular, shininess, texture, material)


def _texels(model: mujoco.MjModel, number: int) -> np.ndarray:
    """(h, w, 3) float32 in 0..1."""
    h, w, c, start = (int(a[number]) for a in (model.tex_height, model.tex_width, model.tex_nchannel, model.tex_adr))
    texels = model.tex_data[start : start + h * w * c].reshape(h, w, c).astype(np.float32) / 255
    return texels[..., :3] if c >= 3 else np.repeat(texels[..., :1], 3, 2)


def plane_colour(
    model: mujoco.MjModel, surfaces: Surfaces, geom: int, local: np.ndarray, footprint: np.ndarray
) -> np.ndarray:
    """Texture colour (n, 3) of points ``local`` (n, 2) [m] in a plane's frame.

    ``footprint`` (n,) [m] is the size of a pixel there; the texture is averaged over as much.
    """
    texels = _texels(model, int(surfaces.texture[geom]))
    material, size = int(surfaces.material[geom]), model.geom_size[geom, :2].astype(float)
    repeat = model.mat_texrepeat[material].astype(float)
    # MuJoCo lays a texture from a finite plane's corner, and centres it on an endless one.
    endless = size == 0
    half = np.where(endless | bool(model.mat_texuniform[material]), 1.0, size)
    per_m = repeat / (2 * half)
    place = local * per_m * (1, -1) + np.where(endless, 0.5, size * per_m)
    wanted = np.log2(np.maximum(footprint * (per_m * texels.shape[1::-1]).max(), 1)).round()
    colour = np.empty((len(local), 3), np.float32)
    level = 0
    while True:
        last = min(texels.shape[:2]) < 2
        on = np.flatnonzero((wanted == level) | (last & (wanted > level)))
        colour[on] = _between(texels, place[on])
        if last or wanted.max(initial=0) <= level:
            return colour
        h, w = (n // 2 for n in texels.shape[:2])
        texels = texels[: 2 * h, : 2 * w].reshape(h, 2, w, 2, 3).mean((1, 3))
        level += 1


def _between(texels: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Colour (n, 3) between the four nearest texels of a repeating texture at ``place`` (n, 2), in textures."""
    h, w = texels.shape[:2]
    x, y = place[:, 0] * w - 0.5, place[:, 1] * h - 0.5
    left, top = np.floor(x), np.floor(y)
    a, b = (x - left).astype(np.float32)[:, None], (y - top).astype(np.float32)[:, None]
    column, row = left.astype(np.int64) % w, top.astype(np.int64) % h
    right, below = (column + 1) % w, (row + 1) % h
    upper = texels[row, column] * (1 - a) + texels[row, right] * a
    lower = texels[below, column] * (1 - a) + texels[below, right] * a
    return upper * (1 - b) + lower * b


@dataclass(frozen=True, eq=False)
class Light:
    """A light in the world; colours (3,) in 0..1. ``cutoff`` is the cosine of a spot's half angle, -1 for all round."""

    pos: np.ndarray
    direction: np.ndarray
    parallel: bool
    attenuation: np.ndarray
    cutoff: float
    exponent: float
    ambient: np.ndarray
    diffuse: np.ndarray
    specular: np.ndarray
    casts: bool


def place_lights(scene: mujoco.MjvScene, model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Fill a scene, whose camera is in place, with the headlight and the active lights."""
    mujoco.mjv_makeLights(model, data, scene)
    for light in scene.lights[: scene.nlight]:
        if light.type == _POINT:  # OpenGL draws these black; a spot all round is the same
            light.type, light.cutoff, light.exponent = _SPOT, 180, 0
            light.attenuation = model.light_attenuation[light.id]


def lights_of(model: mujoco.MjModel, data: mujoco.MjData, view: View) -> list[Light]:
    """The headlight and the active lights, as MuJoCo lists them for its own renderer."""
    scene = mujoco.MjvScene(model, maxgeom=1)
    for eye in scene.camera:
        eye.pos, eye.forward, eye.up = view.pos, view.rotation[:, 2], -view.rotation[:, 1]
        eye.frustum_near, eye.frustum_far, eye.frustum_bottom, eye.frustum_top = 0.01, 10, -0.01, 0.01
    place_lights(scene, model, data)
    return [
        Light(
            pos=light.pos.astype(np.float32),
            direction=light.dir.astype(np.float32),
            parallel=light.type != _SPOT,
            attenuation=light.attenuation.astype(np.float32),
            cutoff=math.cos(math.radians(light.cutoff)),
            exponent=float(light.exponent),
            ambient=light.ambient.astype(np.float32),
            diffuse=light.diffuse.astype(np.float32),
            specular=light.specular.astype(np.float32),
            casts=bool(light.castshadow),
        )
        for light in scene.lights[: scene.nlight]
    ]


def shade(
    lights: list[Light],
    lit: list[np.ndarray | None],
    colour: np.ndarray,
    emission: np.ndarray,
    specular: np.ndarray,
    shininess: np.ndarray,
    point: np.ndarray,
    normal: np.ndarray,
    towards_eye: np.ndarray,
) -> np.ndarray:
    """Colour (n, 3) of surface points by Lambert and Blinn, not cut at 1; all float32, (n,) or (n, 3), unit vectors.

    ``lit`` says of each light which points it reaches, None for all.
    """
    out = colour * emission[:, None]
    shine = np.zeros_like(colour)
    for light, reached in zip(lights, lit, strict=True):
        if light.parallel:
            to_light = np.broadcast_to(-light.direction, point.shape)
            strength = np.ones(len(point), np.float32)
        else:
            to_light = light.pos - point
            distance = np.sqrt(np.einsum("ij,ij->i", to_light, to_light))
            to_light = to_light / np.maximum(distance, 1e-6)[:, None]
            a, b, c = light.attenuation
            strength = 1 / np.maximum(a + b * distance + c * distance * distance, 1e-6)
            if light.cutoff > -1:
                along = -(to_light @ light.direction)
                strength = strength * np.where(along >= light.cutoff, np.maximum(along, 0) ** light.exponent, 0)
        out += colour * light.ambient * strength[:, None]
        if reached is not None:
            strength = strength * reached
        facing = np.einsum("ij,ij->i", normal, to_light)
        out += colour * light.diffuse * (np.maximum(facing, 0) * strength)[:, None]
        if light.specular.any():
            half = to_light + towards_eye
            half /= np.maximum(np.sqrt(np.einsum("ij,ij->i", half, half)), 1e-6)[:, None]
            gloss = np.maximum(np.einsum("ij,ij->i", normal, half), 0) ** np.maximum(shininess * 128, 1)
            shine += light.specular * (np.where(facing > 0, gloss, 0) * strength * specular)[:, None]
    return out + shine


def see_through(model: mujoco.MjModel) -> np.ndarray | None:
    """Opacity (1 + ngeom,) of nothing and each geom, or None where no geom drawn is see-through."""
    alpha = surfaces_of(model).rgba[: model.ngeom, 3]
    clear = (alpha > 0) & (alpha < 1)
    if not clear.any():
        return None
    return np.concatenate([[1], np.where(clear, alpha, 1)]).astype(np.float32)
