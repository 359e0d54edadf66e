"""A table on a floor; the table top is z = 0 and its working area is centred on the origin."""

from __future__ import annotations

import math

import mujoco

from manikin.scene.builder import SceneBuilder
from manikin.spec.camera import CameraSpec
from manikin.spec.prop import Shape

__all__ = ["table"]


_View = tuple[tuple[float, float, float], tuple[float, float, float]]


def table(b: SceneBuilder, *, base_camera: _View = ((0.3, 0, 0.6), (-0.1, 0, 0.1))) -> None:
    """Add table, floor, light, the observing camera ``base_camera`` (from, to) [m] and ``human_camera``.

    Table size and place as in ManiSkill3's table scene: 2.418 x 1.209 m, 0.92 m high, centred at x = -0.12.
    """
    # one thick block instead of top and legs: a thin top lets fast objects through
    b.fixture(
        "table", Shape(type="box", size=(0.6045, 1.209, 0.4598), pos=(-0.12, 0, -0.4598), rgba=(0.66, 0.55, 0.44, 1))
    )
    b.spec.add_texture(
        name="floor",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=(0.80, 0.82, 0.84),
        rgb2=(0.72, 0.74, 0.77),
        width=128,
        height=128,
    )
    tiles = b.spec.add_material(name="floor", texrepeat=(1, 1), texuniform=True)
    tiles.textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = "floor"
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    floor = b.spec.worldbody.add_geom(name="floor", type=plane, size=(0, 0, 0.1), pos=(0, 0, -0.9196))
    floor.material, floor.priority = "floor", -1
    b.spec.worldbody.add_light(
        pos=(0.6, 0.8, 1.8), dir=(-0.35, -0.45, -0.82), diffuse=(0.6, 0.6, 0.6), castshadow=False
    )
    b.spec.visual.headlight.ambient = (0.35, 0.35, 0.35)
    b.spec.visual.headlight.diffuse = (0.35, 0.35, 0.35)
    b.camera(CameraSpec(name="base_camera", pos=base_camera[0], target=base_camera[1], fovy=math.pi / 2))
    human = CameraSpec(name="human_camera", pos=(0.6, 0.7, 0.6), target=(0, 0, 0.25), fovy=1.0, width=512, height=512)
    b.camera(human)
