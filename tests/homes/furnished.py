"""An apartment alone in MuJoCo, as it stands at the beginning."""

from __future__ import annotations

import mujoco

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
