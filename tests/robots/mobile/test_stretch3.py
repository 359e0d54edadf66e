"""Stretch 3 against Hello Robot's own model, whose arm is four tubes that slide, and against the declared numbers."""

from __future__ import annotations

import os

import mujoco
import numpy as np
import pytest
import torch

from manikin.arenas.ground import ground
from manikin.assets import menagerie
from manikin.author.robot.check import check_robot
from manikin.env.env import Env
from manikin.env.task import Task
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import quat_to_yaw
from manikin.robots import robot, stretch3
from manikin.scene.robot import assemble

HAVE = bool(os.environ.get("MENAGERIE_ROOT") or os.environ.get("MANIKIN_DATA"))
needs_menagerie = pytest.mark.skipif(not HAVE, reason="neither MENAGERIE_ROOT nor MANIKIN_DATA is set")
BODIES = ("link_head_tilt", "link_lift", "link_arm_l0", "link_wrist_yaw", "link_SG3_gripper_body", "rubber_tip_left")
VIEW = ((2.0, 2.0, 1.5), (0, 0, 0.5))


def compiled(word: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    spec, hand, makers = robot(word)
    model = assemble(spec, hand, menagerie=makers).spec.compile()
    return model, mujoco.MjData(model)


def some(seed: int) -> dict[str, float]:
    """Joint positions within the limits, the two fingers alike."""
    rng, spec = np.random.default_rng(seed), stretch3.ROBOT
    limits = {joint.name: joint.range for link in spec.links for joint in link.joints}
    q = {name: float(rng.uniform(*limits[name])) for name in spec.joints if name not in spec.base.joints}
    return q | dict.fromkeys(("joint_gripper_finger_left_open", "joint_gripper_finger_right_open"), 0.3)


@needs_menagerie
@pytest.mark.parametrize("word", ["stretch3", "stretch3:menagerie"])
def test_it_moves_as_the_makers_model(word: str) -> None:
    """The maker's four tubes share what the arm is extended by here."""
    model = stretch3.ROBOT.menagerie
    theirs = mujoco.MjModel.from_xml_path(str(menagerie.find(model)))
    (ours, data), reference = compiled(word), mujoco.MjData(theirs)
    for seed in range(4):
        q = some(seed)
        for name, value in q.items():
            data.joint(name).qpos[0] = value
        quarter = q.pop("joint_arm_l0") / 4
        for name, value in (q | {f"joint_arm_l{k}": quarter for k in range(4)}).items():
            reference.joint(name).qpos[0] = value
        mujoco.mj_kinematics(ours, data)
        mujoco.mj_kinematics(theirs, reference)
        for body in BODIES:
            assert np.allclose(data.body(body).xpos, reference.body(body).xpos, atol=5e-5), body
            assert np.allclose(data.body(body).xmat, reference.body(body).xmat, atol=2e-4), body
    for name in q:
        if "finger" not in name:
            assert np.allclose(ours.joint(name).range, theirs.joint(name).range)
    heavy = [theirs.body(k) for k in range(1, theirs.nbody) if theirs.body_mass[k] > 0.1]
    for body in heavy:
        if body.name not in ("link_d405", "laser", "link_SG3_gripper_body", "link_gripper_slider"):
            assert ours.body(body.name).mass[0] == pytest.approx(body.mass[0], abs=0.03), body.name
    assert float(ours.body_mass.sum()) == pytest.approx(float(theirs.body_mass.sum()), rel=0.02)


@pytest.mark.parametrize("word", ["stretch3", pytest.param("stretch3:menagerie", marks=needs_menagerie)])
def test_robot_check_finds_nothing(word: str) -> None:
    assert not [finding for finding in check_robot(robot(word)) if finding.error]


class Floor(Task):
    """A robot at rest on an empty floor.

    Randomization: none.
    Success: never.
    """

    id = "StretchFloor-v0"
    horizon_s = 30.0

    def scene(self, b):
        ground(b, height=0.0, base_camera=VIEW, human_camera=VIEW)
        return {"robot": b.robot(pos=(0, 0, 0), quat=(1, 0, 0, 0))}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe("carry"))

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {"root": h.robot.root_pose}}


def floor(control: str) -> Env:
    env = Env(Floor, robot="stretch3", control=control, reward="none", autoreset="disabled")
    env.reset(seed=0)
    return env


def test_base_lift_arm_and_wrist_bring_the_tool_along() -> None:
    """Its arm points to the right. To go ahead, which is sideways for the arm, it has to drive."""
    env = floor("base+lift+arm+wrist: ee_delta_pose")
    before = env.robot.tcp_pose.clone()
    action = torch.zeros(1, env.controller.card.size)
    action[:, 0], action[:, -1] = 0.3, -1.0
    for _ in range(60):
        env.step(action)
    moved = env.robot.tcp_pose - before
    assert moved[0, 0] > 0.15 and moved[0, 1:3].abs().max() < 0.06
    assert env.robot.root_pose[0, 0] > 0.1
    assert quat_to_yaw(env.robot.root_pose[:, 3:]).abs().max() < 0.4
    assert float(env.robot.opening) < 0.4  # closed as far as the tips let it


def test_a_full_pose_needs_the_base() -> None:
    with pytest.raises(UnknownNameError, match="Its 5 joints cannot turn the tool in every way"):
        floor("ee_delta_pose")
    with pytest.raises((ConfigError, UnknownNameError), match="ee_pose"):
        floor("lift+arm: ee_pose")
