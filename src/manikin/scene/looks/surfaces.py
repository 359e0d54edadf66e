"""Colours and textures of named things, and walls."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError
from manikin.scene.builder import SceneBuilder
from manikin.scene.looks.item import Item, Rngs, Values, draw, named
from manikin.scene.looks.textures import pixels
from manikin.sim.world import World
from manikin.spec.looks import Background, Looks, Surface

__all__ = ["surfaces"]

_G, _T = mujoco.mjtGeom, mujoco.mjtTexture
_RGB = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
_SEEN_GROUPS = 3  # geoms of higher groups are not drawn
_UNSET = (0.5, 0.5, 0.5, 1.0)  # a geom of this colour takes its material's
_WALL = "wall"
_WHOLE = 0.0  # repetition of a texture that fills the thing
_GLOW = 0.4  # walls shine a little by themselves, as no lamp of the scene is meant for them


def surfaces(looks: Looks, builder: SceneBuilder) -> list[Item]:
    """The things whose colours and textures vary, walls included.

    Raises:
        UnknownNameError: a thing that is not there.
        ConfigError: a colour that the task draws per episode is to change per step.
    """
    spec = builder.spec
    items: list[Item] = []
    drawn = {v.part.name for v in builder.variations if v.what == "rgba"}
    for thing, look in looks.surfaces.items():
        geoms = _geoms(spec, thing)
        if not geoms and look.required:
            raise UnknownNameError("thing to colour", thing, _things(spec))
        if thing in drawn and look.every == "step":
            raise ConfigError(f"the task draws the colour of {thing!r} per episode; its Surface cannot be per step")
        if geoms:
            items.append(_Dress(spec, thing, look, geoms, drawn=thing in drawn))
    if looks.background is not None:
        b = looks.background
        look = Surface(colour=b.colour, textures=b.textures, repeat=(0.4, 1.0), every=b.every)
        items.append(_Dress(spec, _WALL, look, _add_walls(spec, b), glow=_GLOW))
    return items


def _geoms(spec: mujoco.MjSpec, thing: str) -> list[mujoco.MjsGeom]:
    """The visible geoms of a fixture, of a part, of a robot with all its links, or of one body."""
    return [
        g
        for g in spec.geoms
        if int(g.group) < _SEEN_GROUPS
        and (g.name == thing or g.parent.name == thing or g.parent.name.startswith(f"{thing}/"))
    ]


def _things(spec: mujoco.MjSpec) -> set[str]:
    bodies = {b.name for b in spec.bodies if b.name not in ("", "world") and len(b.geoms)}
    return bodies | {b.split("/")[0] for b in bodies} | {g.name for g in spec.worldbody.geoms if g.name}


def _add_walls(spec: mujoco.MjSpec, look: Background) -> list[mujoco.MjsGeom]:
    """Four planes that face inwards; they see no contact and change neither what is near nor what is far."""
    before = spec.compile().stat  # clipping planes and the reach of rays follow from these
    spec.stat.extent, spec.stat.center = before.extent, before.center
    half, middle = (look.top - look.bottom) / 2, (look.top + look.bottom) / 2
    geoms = []
    for i in range(4):
        out = np.array([(1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0)][i], float)
        up, inward, quat = np.array([0, 0, 1.0]), -out, np.zeros(4)
        mujoco.mju_mat2Quat(quat, np.stack([np.cross(up, inward), up, inward], 1).flatten())
        geoms.append(
            spec.worldbody.add_geom(
                name=f"{_WALL}/{i}",
                type=_G.mjGEOM_PLANE,
                pos=out * look.distance + up * middle,
                quat=quat,
                size=(look.distance, half, 1),
                contype=0,
                conaffinity=0,
                group=0,
            )
        )
        geoms[-1].material = _material(spec, "plain", _WHOLE, flat=True, glow=_GLOW) or ""
    return geoms


def _flat(geom: mujoco.MjsGeom) -> bool:
    """Whether a texture is laid on it from above; on others it is shown once on each of six faces."""
    if geom.type == _G.mjGEOM_PLANE:
        return True
    moves = geom.parent.name != "world" and len(geom.parent.joints) > 0
    return geom.type == _G.mjGEOM_BOX and not moves and geom.size[2] <= min(geom.size[:2])


def _material(spec: mujoco.MjSpec, word: str, repeat: float, flat: bool, glow: float) -> str | None:
    """Name of the material for a texture, made when it is asked for first; None for a thing's own."""
    if word == "plain" and not glow:
        return None
    if "." in word and glow:
        repeat = _WHOLE
    name = f"looks/{word}/{f'{repeat:g}' if flat else 'faces'}{'/glow' if glow else ''}"
    if spec.material(name) is not None:
        return name
    material = spec.add_material(name=name, rgba=_UNSET, emission=glow)
    if word == "plain":
        return name
    if flat and repeat != _WHOLE:
        material.texrepeat, material.texuniform = (repeat, repeat), True
    texture = f"looks/{word}/{'flat' if flat else 'faces'}"
    if spec.texture(texture) is None:
        image = pixels(word)
        if not flat:  # one square picture serves all six faces
            side = min(image.shape[:2])
            rows, columns = ((np.arange(side) * n) // side for n in image.shape[:2])
            image = np.ascontiguousarray(image[rows][:, columns])
        kind = _T.mjTEXTURE_2D if flat else _T.mjTEXTURE_CUBE
        made = spec.add_texture(name=texture, type=kind, height=len(image), width=image.shape[1], nchannel=3)
        made.data = image.tobytes()
    material.textures[_RGB] = texture
    return name


class _Dress:
    """Colour and texture of the geoms of one thing."""

    def __init__(
        self,
        spec: mujoco.MjSpec,
        thing: str,
        look: Surface,
        geoms: list[mujoco.MjsGeom],
        *,
        drawn: bool = False,
        glow: float = 0.0,
    ) -> None:
        self.thing, self.look, self.drawn, self.per_step = thing, look, drawn, look.every == "step"
        self.geoms = named(geoms, thing)
        repeats = look.repeat if any(_flat(g) for g in geoms) else (_WHOLE,)
        self.materials = [  # of each texture, repetition and geom
            [[_material(spec, word, r, _flat(g), glow) for g in geoms] for r in repeats] for word in look.textures
        ]

    def bind(self, world: World) -> None:
        """Look up ids in the compiled model."""
        model, self.world = world.scene.model, world
        self.ids = tuple(int(model.geom(name).id) for name in self.geoms)
        ids = list(self.ids)
        own, rgba = model.geom_matid[ids], model.geom_rgba[ids].astype(np.float32)
        takes = (rgba == np.array(_UNSET, np.float32)).all(1) & (own >= 0)
        rgba[takes] = model.mat_rgba[own[takes]]
        self.compiled = torch.from_numpy(rgba)[None]
        table = [
            [[int(own[i] if m is None else model.material(m).id) for i, m in enumerate(row)] for row in rows]
            for rows in self.materials
        ]
        self.table = torch.tensor(table, dtype=torch.int64)  # (textures, repetitions, geoms)

    def draw(self, rngs: Rngs, rows: np.ndarray | None) -> Values:
        """Colours, and materials if there are textures."""
        look, rng, name = self.look, rngs.of(self.look.every), f"surface/{self.thing}"
        out: Values = {}
        base = self.compiled
        if self.drawn:  # the task has drawn it just now
            at = slice(None) if rows is None else rows
            base = torch.from_numpy(self.world.model_field("geom_rgba")[at][:, list(self.ids)].astype(np.float32))
        rgb = base[..., :3].expand(rngs.n, -1, 3)
        if look.colour is not None:
            rgb = draw(rng, f"{name}/colour", look.colour, 3, 1).expand_as(rgb)
        if look.offset is not None:
            rgb = rgb + draw(rng, f"{name}/offset", look.offset, 3, 1)
        if look.hue is not None or look.saturation is not None:
            hue, saturation, value = to_hsv(rgb.clamp(0.0, 1.0))
            if look.hue is not None:
                hue = hue + draw(rng, f"{name}/hue", look.hue, 1)
            if look.saturation is not None:
                saturation = (saturation * draw(rng, f"{name}/saturation", look.saturation, 1)).clamp(0.0, 1.0)
            rgb = to_rgb(hue, saturation, value)
        if look.brightness is not None:
            rgb = rgb * draw(rng, f"{name}/brightness", look.brightness, 1, 1)
        rgb = torch.where(rgb == 0.5, 0.501, rgb.clamp(0.0, 1.0))  # never the grey that MuJoCo reads as unset
        out["geom_rgba", self.ids] = torch.cat([rgb, base[..., 3:].expand(rngs.n, -1, 1)], 2)
        if len(self.table):
            word = rng.integers(f"looks/{name}/texture", 0, self.table.shape[0])
            repeat = rng.integers(f"looks/{name}/repeat", 0, self.table.shape[1])
            out["geom_matid", self.ids] = self.table[word, repeat]
        return out


def to_hsv(rgb: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue in turns, saturation and value (...) of (..., 3) in 0..1."""
    r, g, b = rgb.unbind(-1)
    value, low = rgb.amax(-1), rgb.amin(-1)
    spread = value - low
    safe = spread.clamp(min=1e-9)
    sixth = torch.where(value == r, (g - b) / safe, torch.where(value == g, 2 + (b - r) / safe, 4 + (r - g) / safe))
    return sixth * (1 / 6), spread / value.clamp(min=1e-9), value


def to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """(..., 3)."""
    k = torch.remainder(hue[..., None] * 6 + torch.tensor([5.0, 3.0, 1.0]), 6.0)
    away = torch.minimum(k, 4 - k).clamp(0.0, 1.0)
    return value[..., None] * (1 - saturation[..., None] * away)
