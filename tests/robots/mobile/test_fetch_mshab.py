"""Fetch of MS-HAB against the figures of its paper and released code, as plain numbers, and against plain MuJoCo."""

from __future__ import annotations

import math
import os

import mujoco
import numpy as np
import pytest
import torch

from fetching import FetchCube
from manikin.author.robot.check import check_robot
from manikin.env.env import Env
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import quat_to_yaw
from manikin.robots import fetch_mshab, robot
from manikin.scene.robot import RobotModel, assemble
from manikin.spec.prop import Shape
from manikin.toolkit import LOOSE, TIGHT, Resting, Still, is_static, rests, tool_from_base, tool_rests

NEEDS_DATA = pytest.mark.skipif(not os.environ.get("MANIKIN_DATA"), reason="MANIKIN_DATA is not set")
ARM = ("shoulder_pan", "shoulder_lift", "upperarm_roll", "elbow_flex", "forearm_roll", "wrist_flex", "wrist_roll")
# MS-HAB's rest keyframe: 15 positions in its own order
REST = (0, 0, 0, 0.386, 0, -0.370, 0.562, -1.032, 0.695, 0.955, -0.1, 2.077, 0, 0.015, 0.015)


@pytest.fixture(scope="module")
def env() -> Env:
    made = Env(FetchCube, num_envs=2, robot="fetch_mshab", autoreset="disabled", terminate=False, reward="none")
    made.reset(seed=0)
    return made


def placed(model: str = "", q: dict[str, float] | None = None) -> tuple[RobotModel, mujoco.MjModel, mujoco.MjData]:
    spec, hand, makers = robot(f"fetch_mshab{model}")
    built = assemble(spec, hand, menagerie=makers)
    plain = built.spec.compile()
    data = mujoco.MjData(plain)
    for name, value in (q or dict(zip(built.joints, built.qpos(), strict=True))).items():
        data.joint(name).qpos[0] = value
    mujoco.mj_kinematics(plain, data)
    return built, plain, data


def test_its_action_has_the_thirteen_numbers_of_the_original(env: Env) -> None:
    dims = env.controller.card.dims
    assert len(dims) == 13
    names = [dim.name.rpartition("/")[2] for dim in dims]
    assert names[:7] == [f"{name}_joint" for name in ARM]
    assert names[7:] == ["gripper", "head_pan_joint", "head_tilt_joint", "torso_lift_joint", "forward", "turn"]
    assert all(dim.reference == "measured" and dim.scale == pytest.approx(0.1) for dim in (*dims[:7], *dims[8:11]))
    assert dims[11].scale == 1.0 and dims[12].scale == 3.14 and env.control_hz == 20


def test_an_action_commands_what_the_original_says(env: Env) -> None:
    env.reset(seed=0)
    still = env.robot
    before = still.arm_qpos.clone()
    action = torch.zeros(2, 13)
    action[:, 0], action[:, 7], action[:, 10] = 1.0, -1.0, -0.5
    env.step(action)
    order = list(still.joints)
    told = dict(zip(order, still.ctrl[0].tolist(), strict=True))
    was = dict(zip(order, before[0].tolist(), strict=False))
    assert told["shoulder_pan_joint"] == pytest.approx(was["shoulder_pan_joint"] + 0.1, abs=1e-6)
    assert told["torso_lift_joint"] == pytest.approx(was["torso_lift_joint"] - 0.05, abs=1e-6)
    assert told["elbow_flex_joint"] == pytest.approx(was["elbow_flex_joint"], abs=1e-6)
    fingers = [told[name] for name in ("l_gripper_finger_joint", "r_gripper_finger_joint")]
    assert fingers == pytest.approx([-0.01, -0.01])
    action[:, 7] = 1.0
    env.step(action)
    assert env.robot.ctrl[0, -2:].tolist() == pytest.approx([0.05, 0.05])


def test_servos_have_the_gains_of_the_original() -> None:
    _, model, _ = placed()
    for name in (*(f"{one}_joint" for one in ARM), "head_pan_joint", "head_tilt_joint", "torso_lift_joint"):
        servo, dof = model.actuator(name), model.joint(name).dofadr[0]
        assert servo.gainprm[0] == 1000 and servo.forcerange[1] == 100 and model.dof_damping[dof] == 100


def test_the_keyframe_is_the_original_and_brings_the_tool_to_rest() -> None:
    built, _, data = placed(q=dict(zip(fetch_mshab.QPOS, REST, strict=True)))
    ours = dict(zip(built.joints, built.qpos(), strict=True))
    assert [ours[name] for name in fetch_mshab.QPOS[:13]] == pytest.approx(REST[:13])
    assert sorted(ours) == sorted(fetch_mshab.QPOS)
    assert np.linalg.norm(data.body(built.tcp_body).xpos - np.array([0.5, 0, 1.25])) < 0.05
    fingers = [data.body(f"{side}_gripper_finger_link").xpos for side in "lr"]
    assert np.allclose(data.body(built.tcp_body).xpos, np.mean(fingers, 0), atol=1e-9)


@NEEDS_DATA
def test_both_models_are_the_same_machine() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        built, model, _ = placed()
        ranges = {
            name: (-1.0, 1.0) if not model.joint(name).limited else model.joint(name).range for name in built.joints
        }
        q = {name: float(rng.uniform(*ranges[name])) for name in built.joints}
        q["l_gripper_finger_joint"] = q["r_gripper_finger_joint"]
        ours, theirs = placed(q=q), placed(":menagerie", q)
        for body in ("head_tilt_link", "wrist_roll_link", "gripper_link"):
            assert np.allclose(ours[2].body(body).xpos, theirs[2].body(body).xpos, atol=1e-6)
            assert np.allclose(ours[2].body(body).xmat, theirs[2].body(body).xmat, atol=1e-5)


def test_cameras_are_those_of_the_original(env: Env) -> None:
    cameras = {camera.name.rpartition("/")[2]: camera for camera in (*fetch_mshab.ROBOT.cameras,)}
    head = cameras["fetch_head"]
    assert (head.width, head.height) == (128, 128)
    assert head.K()[0, 0] == pytest.approx(64 / math.tan(1)) == pytest.approx(41.09, abs=0.01)
    assert np.allclose(head.rotation @ (0, 0, 1), (1, 0, 0)) and np.allclose(head.rotation @ (0, -1, 0), (0, 0, 1))
    hand = robot("fetch_mshab").gripper.cameras[0]
    assert hand.pos == (-0.1, 0, 0.1) and np.allclose(hand.rotation, head.rotation) and hand.fovy == 2.0


@pytest.mark.parametrize(("column", "value"), [(11, 1.0), (11, -0.5), (12, 0.5)])
def test_its_base_drives_as_it_is_told(env: Env, column: int, value: float) -> None:
    env.reset(seed=0)
    action = torch.zeros(2, 13)
    action[:, column] = value
    for _ in range(20):
        env.step(action)
    for _ in range(30):
        env.step(torch.zeros(2, 13))
    root = env.robot.root_pose[0]
    turned = float(quat_to_yaw(root[None, 3:]))
    if column == 11:
        assert root[:2].tolist() == pytest.approx([value, 0.0], abs=0.01) and abs(turned) < 1e-3
    else:
        assert turned == pytest.approx(0.5 * 3.14, abs=0.02) and root[:2].norm() < 0.01


def test_wheels_and_base_do_not_touch_the_floor(env: Env) -> None:
    env.reset(seed=0)
    for _ in range(5):
        env.step(env.hold())
    assert env.robot.forces.total.max() == 0


def test_still_and_at_rest_are_as_the_original_has_them(env: Env) -> None:
    env.reset(seed=0)
    arm, start = env.robot, env.robot.keyframe()
    at = arm.groups

    def put(q: torch.Tensor, qvel: torch.Tensor | float = 0.0) -> None:
        arm.set_qpos(q, qvel=qvel)
        env.world.forward()

    put(start)
    assert rests(arm, LOOSE).all() and rests(arm, TIGHT).all() and tool_rests(arm).all() and is_static(arm).all()
    assert torch.allclose(tool_from_base(arm)[0, :3], torch.tensor([0.5, 0, 1.25]), atol=0.05)
    for group, off, loose, tight in (
        ("arm", 0.19, True, True),
        ("arm", 0.21, True, False),
        ("arm", 0.61, False, False),
        ("head", -0.3, True, False),
        ("torso", -0.009, True, True),
        ("torso", -0.011, True, False),
    ):
        moved = start.clone()
        moved[at[group].start] += off
        put(moved)
        assert bool(rests(arm, LOOSE).all()) is loose and bool(rests(arm, TIGHT).all()) is tight, (group, off)
    for joint, speed, still, abs_still in (
        (0, 0.04, True, True),
        (0, 0.06, False, False),
        (2, -0.06, True, False),
        (at["arm"].start, 0.19, True, True),
        (at["arm"].start, 0.21, False, False),
        (at["torso"].start, -0.5, True, False),
    ):
        qvel = torch.zeros_like(start)
        qvel[joint] = speed
        put(start, qvel)
        assert bool(is_static(arm).all()) is still and bool(is_static(arm, Still(one_sided=False)).all()) is abs_still
    with pytest.raises(ConfigError, match="fetch_mshab has none of the groups legs; it has base, head, torso, arm"):
        rests(arm, Resting(joints=1.0, groups=("legs",)))
    with pytest.raises(UnknownNameError, match="keyframe of fetch_mshab 'home'"):
        rests(arm, LOOSE, "home")


def test_robot_check_finds_no_error() -> None:
    assert not [finding for finding in check_robot(robot("fetch_mshab")) if finding.error]


class Wall(FetchCube):
    """A wall in front of the robot, which drives against it.

    Randomization: none.
    Success: never.
    """

    id = "Wall-v0"

    def scene(self, b):
        made = super().scene(b)
        b.fixture("wall", Shape(type="box", size=(0.05, 1.0, 0.2), pos=(0.45, 0.0, 0.2)))
        return made


def pressed(device: str) -> tuple[list[float], float]:
    env = Env(Wall, robot="fetch_mshab", autoreset="disabled", terminate=False, reward="none", device=device)
    env.reset(seed=0)
    action = env.hold()
    action[:, 11] = 0.2
    steps = []
    for _ in range(40):
        env.step(action)
        steps.append(float(env.robot.forces.total))
    return steps, float(env.h.pressed.value)


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_the_force_is_that_of_the_servo_that_presses(device: str) -> None:
    """Against a wall the base presses with what its servo gives: kp times how far its command is ahead."""
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    steps, total = pressed(device)
    assert steps[0] == 0.0 and total == pytest.approx(sum(steps), rel=1e-4)
    # the command leads by 0.3 m at most, kp is 10000 N/m, and the servo gives 2500 N at most
    assert steps[-1] == pytest.approx(2500.0, rel=0.05)
    assert total > 5000.0
