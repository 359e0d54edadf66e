"""An apartment alone in MuJoCo, as it stands at the beginning, and what of it stands in something else."""

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


def overlaps(home: Apartment, most: float = 1.1e-3, *, colliding: bool = False) -> list[tuple[str, str, float]]:
    """Pairs of closed pieces of furniture that reach into one another by more than ``most`` [m], handles aside, and the
    gap [m], which is below 0: MuJoCo's own distance. With ``colliding``, of what collides alone."""
    model, data = built(home)
    names = [model.body(model.body_rootid[b]).name.split("/")[0] for b in model.geom_bodyid]
    geoms = [g for g in range(1, model.ngeom) if "handle/" not in model.geom(g).name]
    if colliding:
        geoms = [g for g in geoms if model.geom_contype[g] or model.geom_conaffinity[g]]
    pieces = {thing.name for thing in (*home.fixtures, *home.mechanisms)}
    geoms = [g for g in geoms if names[g] in pieces]
    reach = data.geom_xpos[geoms], model.geom_rbound[geoms]
    found = []
    for i, one in enumerate(geoms):
        near = np.linalg.norm(reach[0][i + 1 :] - reach[0][i], axis=1) < reach[1][i + 1 :] + reach[1][i]
        for k in np.flatnonzero(near):
            two = geoms[i + 1 + k]
            gap = mujoco.mj_geomDistance(model, data, one, two, 0.01, None)
            if names[one] != names[two] and gap < -most:
                found.append((names[one], names[two], gap))
    return found
