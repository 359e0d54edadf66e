"""What stands under and around every scene: a floor, light, two cameras."""

from __future__ import annotations

import math

import mujoco

from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Part
from manikin.spec.camera import CameraSpec

__all__ = ["HUMAN_FOVY", "View", "following", "ground"]

View = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Where a camera is and what it looks at [m]."""
HUMAN_FOVY = 1.0
"""Field of view of ``human_camera``, whose picture is square [rad]."""


def ground(b: SceneBuilder, *, height: float, base_camera: View, human_camera: View) -> None:
    """Add a floor at ``height`` [m], light, and the cameras ``base_camera`` and ``human_camera``."""
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
    floor = b.spec.worldbody.add_geom(name="floor", type=plane, size=(0, 0, 0.1), pos=(0, 0, height))
    floor.material, floor.priority = "floor", -1
    b.spec.worldbody.add_light(
        pos=(0.6, 0.8, 1.8), dir=(-0.35, -0.45, -0.82), diffuse=(0.6, 0.6, 0.6), castshadow=False
    )
    b.spec.visual.headlight.ambient = (0.35, 0.35, 0.35)
    b.spec.visual.headlight.diffuse = (0.35, 0.35, 0.35)
    b.camera(CameraSpec(name="base_camera", pos=base_camera[0], target=base_camera[1], fovy=math.pi / 2))
    human = CameraSpec(
        name="human_camera", pos=human_camera[0], target=human_camera[1], fovy=HUMAN_FOVY, width=512, height=512
    )
    b.camera(human)


def following(b: SceneBuilder, view: View, *, fovy: float) -> Part:
    """A mark that both cameras go along with: ``view`` [m] is from it, ``fovy`` [rad]. Whose task moves it."""
    mark = b.marker("view", size=(0.001,), rgba=(0.0, 0.0, 0.0, 0.0))
    for name, size in (("base_camera", 128), ("human_camera", 512)):
        camera = CameraSpec(name=name, pos=view[0], target=view[1], fovy=fovy, width=size, height=size)
        b.camera(camera, on=mark, replace=True)
    return mark
