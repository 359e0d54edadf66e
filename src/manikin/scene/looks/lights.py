"""Lights that are moved, turned, dimmed and tinted, and lights beside the scene's."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch

from manikin.errors import UnknownNameError
from manikin.math import quat_from_rotvec, quat_rotate
from manikin.scene.looks.item import Item, Rngs, Values, counts, draw, most, named
from manikin.sim.world import World
from manikin.spec.looks import ExtraLights, LightLook, Looks
from manikin.spec.vary import Vary

__all__ = ["lights"]

_AMBIENT = "looks/ambient"


def lights(looks: Looks, spec: mujoco.MjSpec) -> list[Item]:
    """The lights that vary. Raises :class:`UnknownNameError` for one that is not there."""
    names = {light.name or str(i): i for i, light in enumerate(spec.lights)}
    named = looks.lights or {}
    if isinstance(named, LightLook):
        named = dict.fromkeys(names, named)
    items: list[Item] = []
    for name, look in named.items():
        if name not in names:
            raise UnknownNameError("light", name, names)
        items.append(_Light(name, spec.lights[names[name]], look))
    if looks.ambient is not None:
        items.append(_Ambient(spec, looks.ambient))
    if looks.extra_lights is not None:
        items.append(_Extra(spec, looks.extra_lights))
    return items


class _Light:
    def __init__(self, name: str, light: mujoco.MjsLight, look: LightLook) -> None:
        self.name, self.look, self.per_step = name, look, look.every == "step"
        (self.light,) = named([light], f"light/{name}")

    def bind(self, world: World) -> None:
        model = world.scene.model
        self.id = int(model.light(self.light).id)
        fields = ("pos", "dir", "diffuse", "ambient", "specular")
        self.base = {
            f: torch.from_numpy(getattr(model, f"light_{f}")[self.id].astype(np.float32))[None] for f in fields
        }

    def draw(self, rngs: Rngs, rows: np.ndarray | None) -> Values:
        look, rng, name = self.look, rngs.of(self.look.every), f"light/{self.name}"
        out: Values = {}
        if look.shift is not None:
            out["light_pos", (self.id,)] = (self.base["pos"] + draw(rng, f"{name}/shift", look.shift, 3))[:, None]
        if look.turn is not None:
            turn = quat_from_rotvec(draw(rng, f"{name}/turn", look.turn, 3))
            out["light_dir", (self.id,)] = quat_rotate(turn, self.base["dir"].expand(len(turn), 3))[:, None]
        if look.intensity is not None or look.colour is not None:
            factor = torch.ones(1, 1)
            if look.intensity is not None:
                factor = factor * draw(rng, f"{name}/intensity", look.intensity, 1)
            if look.colour is not None:
                factor = factor * draw(rng, f"{name}/colour", look.colour, 3)
            for field in ("diffuse", "ambient", "specular"):
                out[f"light_{field}", (self.id,)] = (self.base[field] * factor).clamp(0.0)[:, None]
        return out


class _Ambient:
    """Takes the place of the headlight's ambient part, which cannot differ between rows."""

    per_step = False

    def __init__(self, spec: mujoco.MjSpec, how: Vary) -> None:
        self.how = how
        _add_light(spec, _AMBIENT, ambient=np.array(spec.visual.headlight.ambient))
        spec.visual.headlight.ambient = (0.0, 0.0, 0.0)

    def bind(self, world: World) -> None:
        self.id = int(world.scene.model.light(_AMBIENT).id)

    def draw(self, rngs: Rngs, rows: np.ndarray | None) -> Values:
        strength = draw(rngs.of("episode"), "ambient", self.how, 1)
        return {("light_ambient", (self.id,)): strength[:, None].expand(-1, 1, 3)}


class _Extra:
    def __init__(self, spec: mujoco.MjSpec, look: ExtraLights) -> None:
        self.look, self.per_step = look, look.every == "step"
        self.slots = [f"looks/light/{i}" for i in range(most(look.count))]
        for name in self.slots:
            _add_light(spec, name, active=False)

    def bind(self, world: World) -> None:
        self.ids = tuple(int(world.scene.model.light(name).id) for name in self.slots)

    def draw(self, rngs: Rngs, rows: np.ndarray | None) -> Values:
        look, rng, k = self.look, rngs.of(self.look.every), len(self.ids)
        if not k:
            return {}
        azimuth = draw(rng, "extra/azimuth", look.azimuth, 1, k)
        up = draw(rng, "extra/elevation", look.elevation, 1, k)
        out = torch.cos(up)
        towards = -torch.cat([out * torch.cos(azimuth), out * torch.sin(azimuth), torch.sin(up)], 2)
        colour = draw(rng, "extra/intensity", look.intensity, 1, k).expand(-1, k, 3)
        if look.colour is not None:
            colour = colour * draw(rng, "extra/colour", look.colour, 3, k)
        active = torch.arange(k) < counts(rng, "extra/count", look.count)
        return {
            ("light_active", self.ids): active,
            ("light_dir", self.ids): towards,
            ("light_diffuse", self.ids): colour.clamp(0.0),
            ("light_specular", self.ids): colour.clamp(0.0) * 0.5,
        }


def _add_light(spec: mujoco.MjSpec, name: str, **options: Any) -> None:
    none = np.zeros(3)
    options = {"ambient": none, "active": True, **options}
    spec.worldbody.add_light(
        name=name,
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=(0, 0, 3),
        dir=(0, 0, -1),
        diffuse=none,
        specular=none,
        castshadow=False,
        **options,
    )
