"""An apartment alone in MuJoCo, as it stands at the beginning."""

from __future__ import annotations

import mujoco
import numpy as np

from manikin.homes import Apartment, furnish
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics


def built(home: Apartment) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Its model, and its state with everything closed."""
    b = SceneBuilder([], Physics())
    furnish(b, home)
    model = b.compile().model
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def corners_in_picture(home: Apartment) -> np.ndarray:
    """(8, 2) where the camera for people sees the corners of the walls' box: -1 to 1 is within its square picture."""
    model, data = built(home)
    camera = model.camera("human_camera").id
    top = max(wall.pos[2] + wall.size[2] for wall in home.walls)
    sides = zip(home.low, home.high, strict=True)
    corners = np.stack(np.meshgrid(*sides, (0.0, top)), -1).reshape(-1, 3)
    seen = (corners - data.cam_xpos[camera]) @ data.cam_xmat[camera].reshape(3, 3)
    assert (seen[:, 2] < 0).all()  # MuJoCo's cameras look along -z
    return seen[:, :2] / -seen[:, 2:] / np.tan(np.radians(model.cam_fovy[camera]) / 2)
