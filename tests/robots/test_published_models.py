"""Built-in robots whose maker's model is not in the Menagerie, or has bodies of other names there, against numbers
computed from the models that others publish (tests/published/robots.json; its script says how)."""

from __future__ import annotations

import json
from functools import cache

import mujoco
import numpy as np
import pytest

from manikin.robots import arm, robot
from manikin.scene.robot import RobotModel, assemble
from robot_models import REFERENCE, figures, free, of_urdf

PUBLISHED = json.loads(REFERENCE.read_text())
TORQUES = ("anymal_c", "g1", "g1_simplified_legs", "g1_upper_body")  # the others' files have none, or 10 to 1000 N m
NO_MASS = ("inspire",)  # robosuite's file leaves it to the shapes
OTHER_BASE = ("dclaw", "so100")  # the first body is another one, or has another mass
TURNED = ("HIP", "THIGH", "SHANK")  # of ANYmal, whose file has them turned about their joints' axes


def here(name: str, word: str) -> str:
    """What manikin calls a link or joint."""
    return word.removeprefix("joint_").removeprefix("r_") if name == "inspire" else word


def angles(name: str, q: dict[str, float]) -> dict[str, float]:
    """Joint angles [rad] as manikin counts them. It counts those of the SO-100 as the Menagerie does: the pan the other
    way round, a quarter of a turn less in the shoulder and more in the elbow, and 0.9 rad more in the jaw."""
    if name != "so100":
        return {here(name, joint): angle for joint, angle in q.items()}
    way, more = (-1, 1, 1, 1, 1, 1), (0, -np.pi / 2, np.pi / 2, 0, 0, 0.9)
    there = zip(whole(name).joints, way, q.values(), more, strict=True)
    return {joint: sign * angle + offset for joint, sign, angle, offset in there}


def whole(name: str) -> RobotModel:
    chosen = robot(name)
    return assemble(chosen.arm, chosen.gripper)


@cache
def ours(name: str) -> tuple[RobotModel, list[dict[str, np.ndarray]], list[np.ndarray], float]:
    """The built-in model; at the published angles places of links (3, 4) and inertia; and its mass [kg]."""
    built, model = whole(name), free(whole(name).spec)
    found = [figures(model, angles(name, pose["q"])) for pose in PUBLISHED[name]["poses"]]
    places = [{link: np.reshape(at, (3, 4)) for link, at in one["places"].items()} for one in found]
    return built, places, [np.array(one["inertia"]) for one in found], float(model.body_mass.sum())


@pytest.mark.parametrize("name", PUBLISHED)
def test_links_are_where_the_published_model_has_them(name: str) -> None:
    """Within 0.02 mm, in the frame of the built-in model's first body, and as they are turned. G1's right side is the
    left one's reflection here."""
    built, found, _, _ = ours(name)
    for pose, places in zip(PUBLISHED[name]["poses"], found, strict=True):
        theirs = {here(name, link): np.reshape(place, (3, 4)) for link, place in pose["places"].items()}
        base, common = theirs[built.base_body], set(theirs) & set(places)
        assert len(common) > len(built.arm_joints) + len(built.arm.followers)
        for link in common:
            place = base[:, :3].T @ (theirs[link] - np.pad(base[:, 3:], ((0, 0), (3, 0))))
            assert np.allclose(places[link][:, 3], place[:, 3], atol=2e-5), link
            if not (name == "anymal_c" and link.endswith(TURNED)):
                assert np.allclose(places[link][:, :3], place[:, :3], atol=2e-5), link


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in NO_MASS])
def test_mass_and_inertia_are_those_of_the_published_model(name: str) -> None:
    """Within 0.1 %: the reflected side of G1 differs so much. The others within 0.002 %."""
    _, _, found, mass = ours(name)
    first = 6 if name in OTHER_BASE else 0
    for pose, inertia in zip(PUBLISHED[name]["poses"], found, strict=True):
        assert np.allclose(inertia[first:], pose["inertia"][first:], rtol=1e-3 if name == "g1" else 2e-5)
    if name != "so100":  # whose base does not move
        assert mass == pytest.approx(PUBLISHED[name]["mass"], rel=1e-5)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "so100"])
def test_limits_and_torques_are_those_of_the_published_model(name: str) -> None:
    """The Menagerie's limits of the SO-100 differ by up to 0.35 rad from ManiSkill3's."""
    built, spec = ours(name)[0], arm(name)
    limits = {here(name, joint): limit for joint, limit in PUBLISHED[name]["limits"].items()}
    assert {*spec.joints, *spec.followers} <= set(limits)
    torque = dict(zip(spec.joints, spec.effort or spec.gains.force, strict=True))
    for joint, (low, high, *effort) in limits.items():
        assert np.allclose(built.spec.joint(joint).range, (low, high), atol=1e-6), joint
        assert name not in TORQUES or torque[joint] == effort[0], joint


def test_what_is_fixed_to_a_link_weighs_as_in_mujoco() -> None:
    """MuJoCo joins fixed links to one body when it reads a URDF; the published numbers are made without that."""
    inertial = """<inertial><origin xyz=".1 .2 .3" rpy=".3 .2 .1"/><mass value="2"/>
      <inertia ixx=".2" iyy=".3" izz=".4" ixy=".01" ixz=".02" iyz=".03"/></inertial>"""
    links = "".join(f'<link name="{name}">{inertial}</link>' for name in "abcd")
    fixed = '<origin xyz=".1 -.2 .3" rpy=".4 .5 .6"/></joint>'
    text = f"""<robot name="four">{links}
      <joint name="turn" type="revolute"><parent link="a"/><child link="b"/><origin xyz=".1 .2 .3" rpy=".4 .5 .6"/>
        <axis xyz="0 .6 .8"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
      <joint name="one" type="fixed"><parent link="b"/><child link="c"/>{fixed}
      <joint name="two" type="fixed"><parent link="c"/><child link="d"/>{fixed}</robot>"""
    joined = text.replace('name="four">', 'name="four"><mujoco><compiler fusestatic="true"/></mujoco>')
    ours, theirs = (free(spec) for spec in (of_urdf(text), mujoco.MjSpec.from_string(joined)))
    assert ours.nbody == theirs.nbody + 2
    one, two = (figures(model, {"turn": 0.7}) for model in (ours, theirs))
    assert np.allclose(one["inertia"], two["inertia"], rtol=2e-6)
