"""The ant and the humanoid of the control suite, beside tables of the published files and MuJoCo's own inertia."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from manikin.assets.builtin import build
from manikin.errors import SceneError
from manikin.robots import arm
from manikin.scene.robot import assemble
from manikin.spec.links import Geom, Link, box, capsule, cylinder, solid

HUMANOID = {  # dm_control's humanoid.xml: joint: axis, range [degrees], gear, stiffness, damping, height of the anchor
    "abdomen_z": ((0, 0, 1), (-45, 45), 40, 20, 5, 0.065),
    "abdomen_y": ((0, 1, 0), (-75, 30), 40, 10, 5, 0.065),
    "abdomen_x": ((1, 0, 0), (-35, 35), 40, 10, 5, 0.1),
    "right_hip_x": ((1, 0, 0), (-25, 5), 40, 10, 5, 0),
    "right_hip_z": ((0, 0, 1), (-60, 35), 40, 10, 5, 0),
    "right_hip_y": ((0, 1, 0), (-110, 20), 120, 20, 5, 0),
    "right_knee": ((0, -1, 0), (-160, 2), 80, 1, 0.2, 0.02),
    "right_ankle_y": ((0, 1, 0), (-50, 50), 20, 6, 0.2, 0.08),
    "right_ankle_x": ((1, 0, 0.5), (-50, 50), 20, 3, 0.2, 0.04),
    "left_hip_x": ((-1, 0, 0), (-25, 5), 40, 10, 5, 0),
    "left_hip_z": ((0, 0, -1), (-60, 35), 40, 10, 5, 0),
    "left_hip_y": ((0, 1, 0), (-120, 20), 120, 20, 5, 0),
    "left_knee": ((0, -1, 0), (-160, 2), 80, 1, 0.2, 0.02),
    "left_ankle_y": ((0, 1, 0), (-50, 50), 20, 6, 0.2, 0.08),
    "left_ankle_x": ((1, 0, 0.5), (-50, 50), 20, 3, 0.2, 0.04),
    "right_shoulder1": ((2, 1, 1), (-85, 60), 20, 1, 0.2, 0),
    "right_shoulder2": ((0, -1, 1), (-85, 60), 20, 1, 0.2, 0),
    "right_elbow": ((0, -1, 1), (-90, 50), 40, 0, 0.2, 0),
    "left_shoulder1": ((2, -1, 1), (-60, 85), 20, 1, 0.2, 0),
    "left_shoulder2": ((0, 1, 1), (-60, 85), 20, 1, 0.2, 0),
    "left_elbow": ((0, -1, -1), (-90, 50), 40, 0, 0.2, 0),
}
ANT = {  # ManiSkill3's ant.xml: joint: axis, range [degrees]
    "hip_1": ((0, 0, 1), (-40, 40)),
    "ankle_1": ((-1, 1, 0), (30, 100)),
    "hip_2": ((0, 0, 1), (-40, 40)),
    "ankle_2": ((1, 1, 0), (-100, -30)),
    "hip_3": ((0, 0, 1), (-40, 40)),
    "ankle_3": ((-1, 1, 0), (-100, -30)),
    "hip_4": ((0, 0, 1), (-40, 40)),
    "ankle_4": ((1, 1, 0), (30, 100)),
}


def compiled(name: str) -> mujoco.MjModel:
    return assemble(arm(name), None).spec.compile()


def unit(axis: tuple[float, ...]) -> np.ndarray:
    return np.array(axis) / np.linalg.norm(axis)


def test_the_humanoid_is_dm_controls() -> None:
    spec, model = arm("humanoid"), compiled("humanoid")
    assert set(spec.joints) == set(HUMANOID) and model.nu == 21
    torque = dict(zip(spec.joints, spec.gains.force, strict=True))
    passive = {joint.name: joint for link in spec.links for joint in link.joints}
    for name, (axis, span, gear, stiffness, damping, height) in HUMANOID.items():
        joint = model.joint(name)
        assert np.allclose(joint.axis, unit(axis), atol=1e-9)
        assert np.allclose(np.degrees(joint.range), span, atol=1e-9)
        assert np.allclose(joint.pos, (0, 0, height))
        assert torque[name] == gear
        assert (passive[name].stiffness, passive[name].damping, passive[name].armature) == (stiffness, damping, 0.01)
    assert model.body_mass.sum() == pytest.approx(40.844, abs=1e-3)  # what dm_control's file compiles to
    data = mujoco.MjData(model)
    data.qpos[2] = 1.5  # where the file has it
    mujoco.mj_kinematics(model, data)
    assert np.allclose(data.body("head").xpos, (0, 0, 1.69))
    assert np.allclose(data.body("right_hand").xpos, (0.36, -0.17, 1.56))
    assert np.allclose(data.body("left_hand").xpos, (0.36, 0.17, 1.56))
    soles = [
        data.geom_xpos[g][2] - 0.027 for g in range(model.ngeom) if "foot" in model.body(model.geom_bodyid[g]).name
    ]
    assert min(soles) == pytest.approx(1.5 - 0.26 - 0.165 - 0.04 - 0.403 - 0.39 - 0.027, abs=2e-3)


def test_the_ant_is_the_published_one() -> None:
    spec = arm("ant")
    model = assemble(spec, None, torque=spec.joints).spec.compile()
    assert spec.joints == tuple(ANT) and spec.effort == (15,) * 8
    for name, (axis, span) in ANT.items():
        joint = model.joint(name)
        assert np.allclose(joint.axis, unit(axis), atol=1e-9) and np.allclose(np.degrees(joint.range), span, atol=1e-9)
        assert (joint.damping[0], joint.armature[0]) == (0.1, 0.01)
    ball = 5 * 4 / 3 * math.pi
    tube = 5 * math.pi * 0.08**2 * math.sqrt(2)
    # 4 in the torso, 4 hips and 4 feet twice as long
    mass = ball * 0.25**3 + 12 * ball * 0.08**3 + tube * 0.2 * (4 + 4 + 8)
    assert model.body_mass.sum() == pytest.approx(mass, rel=1e-9)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for name, x, y in (("front_left", 1, 1), ("front_right", -1, 1), ("left_back", -1, -1), ("right_back", 1, -1)):
        assert np.allclose(data.body(f"{name}_foot").xpos, (0.4 * x, 0.4 * y, 0))


SHAPES = (
    Geom(type="sphere", size=(0.07,), pos=(0.1, 0, 0.2)),
    box((0.1, 0.05, 0.02), (0, 0.1, 0), quat=(0.9, 0.1, -0.3, 0.2)),
    capsule((0.1, 0, 0), (0.3, 0.2, -0.1), 0.04),
    cylinder((-0.1, 0, 0.1), (-0.2, 0.2, 0.1), 0.06),
)


@pytest.mark.parametrize("shapes", [*((one,) for one in SHAPES), SHAPES])
def test_mass_and_inertia_of_shapes_are_mujocos(shapes: tuple[Geom, ...]) -> None:
    link = Link(name="thing", parent=None, geoms=shapes)
    found = solid(link, 800.0)
    spec = build([replace(link, mass=0.0)])
    for geom in spec.body("thing").geoms:
        geom.mass, geom.density = math.nan, 800.0
    spec.body("thing").add_freejoint()
    model = spec.compile()
    assert found.mass == pytest.approx(float(model.body_mass[1]), rel=1e-9)
    assert found.com == pytest.approx(tuple(model.body_ipos[1]), abs=1e-12)
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.body_iquat[1])
    turn = rotation.reshape(3, 3)
    wanted = turn @ np.diag(model.body_inertia[1]) @ turn.T
    xx, yy, zz, xy, xz, yz = found.inertia
    assert np.allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], wanted, rtol=1e-6, atol=1e-9)


def test_shapes_without_a_formula_are_named() -> None:
    egg = Link(name="egg", parent=None, geoms=(Geom(type="ellipsoid", size=(0.1, 0.2, 0.3)),))
    with pytest.raises(SceneError, match="no inertia of a 'ellipsoid'"):
        solid(egg, 1.0)
