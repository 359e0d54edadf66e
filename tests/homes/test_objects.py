"""Objects of homes: their published sizes and masses, how they lie, and where a gripper takes them."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from manikin.errors import UnknownNameError
from manikin.grippers.fetch_gripper_mshab import GRIPPER
from manikin.homes.objects import HOME_OBJECTS, OBJECT_SETS, HomeObject, home_objects
from manikin.tasks.home.rules import SEQUENCES

# Calli et al. 2015, table of the YCB set: millimetres, grams
PUBLISHED = {
    "002_master_chef_can": ((102, 102, 139), 414),
    "003_cracker_box": ((60, 158, 210), 411),
    "004_sugar_box": ((38, 89, 175), 514),
    "005_tomato_soup_can": ((66, 66, 101), 349),
    "007_tuna_fish_can": ((85, 85, 33), 171),
    "008_pudding_box": ((35, 89, 110), 187),
    "009_gelatin_box": ((28, 73, 85), 97),
    "010_potted_meat_can": ((50, 82, 97), 370),
    "013_apple": ((75, 75, 75), 68),
    "024_bowl": ((53, 159, 159), 147),
}
FINGER, TIP, PALM = 0.0135, 0.0385, 0.034  # [m] of the pads: half width, ahead of the tool; the palm behind it
EVERY = pytest.mark.parametrize("thing", HOME_OBJECTS.values(), ids=HOME_OBJECTS)


def scene(thing: HomeObject, tilt: float = 0.0) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The object on a floor, leaning by ``tilt`` [rad] at first."""
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(1, 1, 1))
    body = spec.worldbody.add_body(name="thing", pos=(0, 0, thing.height), quat=(math.cos(tilt), math.sin(tilt), 0, 0))
    body.add_freejoint()
    for shape in thing.shapes:
        kind = getattr(mujoco.mjtGeom, f"mjGEOM_{shape.type.upper()}")
        size = [*shape.size, *[0.0] * (3 - len(shape.size))]
        body.add_geom(type=kind, size=size, pos=shape.pos, quat=shape.quat, mass=thing.mass / len(thing.shapes))
    model = spec.compile()
    return model, mujoco.MjData(model)


def points_of(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """(k, 3) [m] points on the surface of the shapes, in the object's frame."""
    out = []
    for g in range(1, model.ngeom):
        kind, size = model.geom_type[g], model.geom_size[g]
        ring = np.linspace(0, 2 * np.pi, 360, endpoint=False)
        circle = np.stack([np.cos(ring), np.sin(ring)], 1)
        if kind == mujoco.mjtGeom.mjGEOM_BOX:
            grid = np.linspace(-1, 1, 21)
            local = np.array([(x, y, z) for x in grid for y in (-1, 1) for z in grid])
            local = np.concatenate([local, local[:, [1, 0, 2]], local[:, [0, 2, 1]]]) * size
        elif kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
            local = np.concatenate([np.c_[circle * size[0], np.full(360, s * size[1])] for s in (-1, -0.5, 0, 0.5, 1)])
        else:
            bands = np.linspace(-np.pi / 2, np.pi / 2, 91)
            local = np.concatenate([np.c_[circle * np.cos(b), np.full(360, np.sin(b))] for b in bands]) * size[0]
        out.append(local @ data.geom_xmat[g].reshape(3, 3).T + data.geom_xpos[g] - data.qpos[:3])
    return np.concatenate(out)


@EVERY
def test_size_and_mass_are_the_published_ones(thing: HomeObject) -> None:
    size, mass = PUBLISHED[thing.name]
    assert sorted(1000 * s for s in thing.size) == pytest.approx(sorted(size), abs=1e-6)
    assert 1000 * thing.mass == pytest.approx(mass)
    model, data = scene(thing)
    mujoco.mj_forward(model, data)
    points = points_of(model, data)
    # the corners of a bowl of twelve sides are a little further out than its sides
    loose = 0.006 if thing.name == "024_bowl" else 1e-3
    assert np.abs(points.max(0) - np.array(thing.size) / 2).max() < loose
    assert np.abs(points.min(0) + np.array(thing.size) / 2).max() < loose


@EVERY
def test_it_lies_still_where_it_is_put_down_and_comes_back_from_a_push(thing: HomeObject) -> None:
    for tilt in (0.0, 0.02):  # half angles
        model, data = scene(thing, tilt)
        data.qpos[2] += 0.004 if tilt else 0.0
        while data.time < 2.0:
            mujoco.mj_step(model, data)
        assert np.abs(data.qvel).max() < 0.02
        assert data.qpos[2] == pytest.approx(thing.height, abs=1.5e-3)
        up = 1 - 2 * (data.qpos[4] ** 2 + data.qpos[5] ** 2)
        assert up > math.cos(0.01)


@EVERY
def test_the_open_gripper_fits_around_it_and_touches_nothing_else(thing: HomeObject) -> None:
    """From above: pads beside it, tips above the ground, palm above its top."""
    model, data = scene(thing)
    mujoco.mj_forward(model, data)
    z = thing.grip[2]
    assert thing.height + z - TIP >= 0.005
    assert thing.height - z < PALM - 0.005
    points = points_of(model, data) - thing.grip
    c, s = math.cos(thing.yaw), math.sin(thing.yaw)
    along, across = c * points[:, 0] + s * points[:, 1], -s * points[:, 0] + c * points[:, 1]
    between = (np.abs(along) <= FINGER + 1e-9) & (np.abs(points[:, 2]) <= TIP)
    if thing.name == "024_bowl":  # one finger is inside, above the bottom
        between &= (np.abs(across) < 0.06) & (points[:, 2] > -thing.grip[2] - thing.height + 0.007)
    assert between.sum() > 10
    assert 2 * np.abs(across[between]).max() <= GRIPPER.max_width - 0.001
    span = np.ptp(across[between])
    assert span <= thing.width + 1e-3
    assert span >= thing.width - (0.012 if thing.name == "024_bowl" else 0.004)


def test_the_sets_are_those_of_the_long_tasks() -> None:
    assert set(OBJECT_SETS) == set(SEQUENCES)
    nine = {"002", "003", "004", "005", "007", "008", "009", "010", "024"}
    for name, one in OBJECT_SETS.items():
        assert {thing[:3] for thing in one.clutter} == nine
        assert {thing[:3] for thing in one.targets} == ({"024", "013"} if name == "set_table" else nine)
        assert len(home_objects(one.targets)) == len(one.targets)


def test_a_name_that_is_none_lists_those_that_are() -> None:
    with pytest.raises(UnknownNameError, match="013_apple"):
        home_objects(("013_pear",))
