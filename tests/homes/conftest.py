"""What tests of homes share: a cylinder that MuJoCo checks against an apartment."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manikin.homes import Apartment, furnish
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics


class Cylinder:
    """It stands on the floor, 1 cm above it."""

    def __init__(self, home: Apartment, radius: float, height: float) -> None:
        b = SceneBuilder([], Physics())
        furnish(b, home)
        body = b.spec.worldbody.add_body(name="cylinder")
        body.add_freejoint(name="cylinder")
        half = (height - 0.01) / 2
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[radius, half, 0], pos=[0, 0, 0.01 + half])
        self.model = b.compile().model
        self.data = mujoco.MjData(self.model)

    def touches(self, points: np.ndarray) -> np.ndarray:
        out = []
        for point in points:
            self.data.joint("cylinder").qpos[:2] = point
            mujoco.mj_kinematics(self.model, self.data)
            mujoco.mj_collision(self.model, self.data)
            out.append(any(c.dist <= 0 for c in self.data.contact))
        return np.array(out)


@pytest.fixture
def cylinder() -> type[Cylinder]:
    """The class, which a test makes for its apartment."""
    return Cylinder
