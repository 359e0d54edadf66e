"""The lamps of SIMPLER's scenes and the colours of its cabinet, for renderers that add up light as it is shown.

The original adds up linear light: a lamp of strength c lights a matt surface by c cos / pi, the ambient light by its
strength, and pictures show the power 1 / 2.2 of the sum. MuJoCo's renderers add up what is shown. Here the ambient
light is that power of the original's; the lamps keep their directions and proportions, with one factor that makes a
surface which faces up as bright as there.

Strengths and directions: SIMPLER's released code (Li et al. 2024, arXiv 2405.05941). Its cabinet is drawn by ray
tracing, here without. Only one of its lamps casts a shadow, that of variant aggregation's cabinet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco

from manikin import SceneBuilder

__all__ = ["CABINET_LIGHTS", "SINK_LIGHT", "TABLE_LIGHTS", "Lights", "as_shown", "light_up"]

_GAMMA = 2.2
Vec3 = tuple[float, float, float]


@dataclass(frozen=True)
class Lights:
    """Of one scene.

    Attributes:
        ambient: strength of the light from everywhere.
        lamps: direction in which each shines, and its strength.
        shadow: the first one casts a shadow.
    """

    ambient: float
    lamps: tuple[tuple[Vec3, float], ...]
    shadow: bool = False

    @property
    def shown(self) -> tuple[float, tuple[float, ...]]:
        """Ambient part and strength of each lamp, as they are added up where pictures are shown; 1 is a surface's full
        colour."""
        lit = sum(max(0.0, -_unit(towards)[2]) * strength for towards, strength in self.lamps)
        ambient = self.ambient ** (1 / _GAMMA)
        factor = ((self.ambient + lit / math.pi) ** (1 / _GAMMA) - ambient) / lit
        return ambient, tuple(factor * strength for _, strength in self.lamps)


_DOWN, _BACK, _FRONT = (0.0, 0.0, -1.0), (-1.0, -0.5, -1.0), (1.0, 1.0, -1.0)
_AHEAD = (-math.cos(math.radians(75)), 0.0, -math.sin(math.radians(75)))
_OVER, _LEFT, _RIGHT = (-0.2, 0.0, -1.0), (-1.0, 1.0, -0.05), (-1.0, -1.0, -0.05)
TABLE_LIGHTS = {
    "default": Lights(0.3, ((_DOWN, 2.2), (_BACK, 0.7), (_FRONT, 0.7))),
    "brighter": Lights(0.3, ((_DOWN, 3.6), (_BACK, 1.3), (_FRONT, 1.3))),
    "darker": Lights(0.3, ((_FRONT, 0.8), (_DOWN, 0.8))),
}
"""Of picking and moving near, and the default of the WidowX's table."""
SINK_LIGHT = Lights(0.3, ((_DOWN, 0.3),))
CABINET_LIGHTS = {
    "default": Lights(1.0, ((_AHEAD, 1.0),)),
    "aggregated": Lights(0.3, ((_OVER, 1.0), (_LEFT, 0.5), (_RIGHT, 0.5)), shadow=True),
    "brighter": Lights(0.3, ((_OVER, 2.0), (_LEFT, 0.5), (_RIGHT, 0.5)), shadow=True),
    "darker": Lights(0.3, ((_OVER, 0.5), (_LEFT, 0.5), (_RIGHT, 0.5)), shadow=True),
}
"""Visual matching's, and variant aggregation's three."""


def light_up(b: SceneBuilder, lights: Lights) -> None:
    """Light the scene by these lamps alone."""
    for one in list(b.spec.lights):
        b.spec.delete(one)
    ambient, strengths = lights.shown
    for k, ((towards, _), strength) in enumerate(zip(lights.lamps, strengths, strict=True)):
        b.spec.worldbody.add_light(
            name=f"lamp{k}",
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            pos=(0.0, 0.0, 3.0),
            dir=_unit(towards),
            diffuse=(strength,) * 3,
            specular=(0.0, 0.0, 0.0),
            castshadow=lights.shadow and k == 0,
        )
    b.spec.visual.headlight.ambient = (ambient,) * 3
    b.spec.visual.headlight.diffuse = (0.0, 0.0, 0.0)


def as_shown(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """The same model with its colours, which are strengths of linear light, as pictures show them."""
    for geom in spec.geoms:
        geom.rgba = [*(float(x) ** (1 / _GAMMA) for x in geom.rgba[:3]), float(geom.rgba[3])]
    return spec


def _unit(vector: Vec3) -> Vec3:
    x, y, z = vector
    size = math.sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size
