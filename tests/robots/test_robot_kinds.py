"""Robots that are more than an arm on a table: bases that drive, legs, hands, two arms. References are kinematics by
hand, the makers' models, and the declared numbers."""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.arenas.ground import ground
from manikin.author.robot.check import check_robot
from manikin.author.sheet import task_sheet
from manikin.cli import main
from manikin.env.env import Env
from manikin.env.task import Task
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.robots import arm, from_file, register, robot
from manikin.scene.robot import assemble
from manikin.spec.physics import Physics
from manikin.spec.robot import ArmSpec, Base, Gains, JointGroup, RobotSpec, Tool
from own_arm import OPTIONS
from own_walker import walker_text

HAVE_MENAGERIE = bool(os.environ.get("MENAGERIE_ROOT") or os.environ.get("MANIKIN_DATA"))
needs_menagerie = pytest.mark.skipif(not HAVE_MENAGERIE, reason="neither MENAGERIE_ROOT nor MANIKIN_DATA is set")
VIEW = ((2.0, 2.0, 1.5), (0, 0, 0.5))


class Yard(Task):
    """A robot at rest on an empty floor at z = 0."""

    id = "Yard-v0"
    horizon_s = 60.0

    def scene(self, b):
        ground(b, height=0.0, base_camera=VIEW, human_camera=VIEW)
        pos = b.robots[0][0].base_pos
        return {"robot": b.robot(pos=(0, 0, pos[2] if b.robots[0][0].base.kind == "free" else 0))}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {"root": h.robot.root_pose}}


def yard(word: str, control: str, **options) -> Env:
    env = Env(Yard, robot=word, control=control, reward="none", **options)
    env.reset(seed=0)
    return env


# ---- declaring -------------------------------------------------------------------------------------------------------


def test_an_arm_is_a_robot_with_one_group_and_one_tool() -> None:
    panda = arm("panda")
    assert isinstance(panda, RobotSpec) and list(panda.groups) == ["arm"] and list(panda.tools) == ["tool"]
    assert panda.groups["arm"].effort == panda.effort == (87, 87, 87, 87, 12, 12, 12)
    long = RobotSpec(
        name="long",
        title="Long",
        links=panda.links,
        groups={"arm": JointGroup(joints=panda.joints, gains=panda.gains, effort=panda.effort, motion=panda.motion)},
        tools={"tool": Tool(body="link7", pos=(0, 0, 0.107), quat=panda.flange_quat, gripper="panda_hand")},
        keyframes=panda.keyframes,
        excludes=panda.excludes,
    )
    short = replace(panda, menagerie=None)
    one, two = (assemble(spec, None).spec.compile() for spec in (long, short))
    assert np.array_equal(one.body_pos, two.body_pos) and np.array_equal(one.actuator_gainprm, two.actuator_gainprm)


def test_an_arm_stays_itself_when_a_field_is_replaced() -> None:
    fetch = arm("fetch")
    assert [len(group.joints) for group in fetch.groups.values()] == [3, 1, 7]
    other = replace(arm("ur5e"), gravcomp=False, flange_pos=(0, 0, 1))
    assert other.groups == arm("ur5e").groups and other.tool.pos == (0, 0, 1) and other.tool.body == "wrist_3_link"
    stiff = Gains(kp=(1,) * 6, kd=(2,) * 6, force=(3,) * 6, source="test")
    assert replace(other, gains=stiff).gains == stiff and replace(other, gains=stiff).joints == other.joints
    parted = ArmSpec(
        name="parted",
        title="",
        links=(),
        joints=("a", "b", "c"),
        groups={"torso": ("a",), "arm": ("b", "c")},
        gains=Gains(kp=(1, 2, 3), kd=(4, 5, 6), force=(7, 8, 9), source="test"),
        joint_delta=(0.1, 0.2, 0.3),
    )
    assert parted.groups["arm"].gains.kd == (5, 6) and parted.groups["torso"].delta == (0.1,)
    assert parted.gains.force == (7, 8, 9) and parted.joint_delta == (0.1, 0.2, 0.3)


def test_what_is_wrong_with_a_declaration_is_said() -> None:
    with pytest.raises(
        UnknownNameError, match=r"kind of base 'wheeled'.*Valid: differential, fixed, free, planar, vertical"
    ):
        Base(kind="wheeled")
    with pytest.raises(ConfigError, match=r'write base=Base\(kind="planar", joints='):
        Base(kind="planar")
    with pytest.raises(UnknownNameError, match=r"base 'wheels'.*Valid: differential, planar"):
        robot("panda@wheels")
    with pytest.raises(ConfigError, match="'fetch' already has a planar base"):
        robot("fetch@planar")
    with pytest.raises(UnknownNameError, match=r"drives a base, and panda has none that does; try panda@planar"):
        Env(Yard, robot="panda", control="base_vel")
    with pytest.raises(ConfigError, match=r'base_vel drives the base alone: write "base: base_vel, arm: '):
        Env(Yard, robot="panda@planar", control="base_vel")


# ---- bases that drive ------------------------------------------------------------------------------------------------


def test_words_combine_in_any_order() -> None:
    one, two = robot("ur5e@planar+panda_hand"), robot("ur5e+panda_hand@planar")
    assert one == two and one.arm.name == "ur5e@planar" and one.gripper.name == "panda_hand"
    assert list(one.arm.groups) == ["base", "arm"] and one.arm.joints[:3] == one.arm.base.joints


@pytest.mark.parametrize("word", ["panda@planar", pytest.param("panda@planar:menagerie", marks=needs_menagerie)])
def test_a_mobile_arm_has_its_tool_where_the_arm_alone_has_it(word: str) -> None:
    """At rest, at the table: the chassis stands on the floor and carries the arm to the same place."""
    env = manikin.make("PickCube-v2", robot=word)
    alone = manikin.make("PickCube-v2", robot="panda")
    for each in (env, alone):
        each.h.robot.set_qpos(each.h.robot.keyframe())
        each.world.forward()
    assert torch.allclose(env.h.robot.tcp_pose, alone.h.robot.tcp_pose, atol=1e-5)


@pytest.mark.parametrize("kind", ["planar", "differential"])
def test_it_drives_as_its_card_says(kind: str) -> None:
    env = yard(f"panda@{kind}", "base: base_vel, arm: joint_pos", num_envs=2)
    names = [dim.name for dim in env.controller.card.dims]
    ways = ["base/forward", "base/left", "base/turn"] if kind == "planar" else ["base/forward", "base/turn"]
    assert names[: len(ways)] == ways
    scale = {dim.name: dim.scale for dim in env.controller.card.dims}
    still = env.hold()
    action = still.clone()
    action[:, 0], action[:, len(ways) - 1] = 0.5, 0.5  # forward and to the left: a circle
    seconds, dt = 4.0, 1 / env.control_hz
    speed, rate = 0.5 * scale["base/forward"], 0.5 * scale["base/turn"]
    expected = np.zeros(2)
    for step in range(round(seconds / dt) + 40):
        yaw = float(env.robot.qpos[0, 2])
        going = step * dt < seconds
        expected += going * speed * dt * np.array([math.cos(yaw), math.sin(yaw)])
        env.step(action if going else still)
    root = env.robot.root_pose
    turned = 2 * torch.atan2(root[:, 6], root[:, 3])
    assert torch.allclose(turned, torch.tensor(rate * seconds), atol=0.01)
    assert np.allclose(root[0, :2], expected, atol=0.01)
    assert torch.equal(root[0], root[1])
    if kind == "planar":
        before = root.clone()
        action = still.clone()
        action[:, 1] = 1.0
        for _ in range(20):
            env.step(action)
        moved = env.robot.root_pose[0, :2] - before[0, :2]
        left = torch.stack([-torch.sin(turned[0]), torch.cos(turned[0])])
        assert moved @ left > 0.6 and abs(moved @ torch.stack([left[1], -left[0]])) < 0.02


def test_a_mobile_arm_drives_and_reaches() -> None:
    """What is out of the arm's reach is in it when the base has driven there."""
    env = yard("panda@planar", "base: base_vel, arm: joint_target_delta_pos")
    goal = torch.cat([torch.tensor([[2.0, 1.0, 1.2]]), env.robot.tcp_quat], 1)
    assert not env.robot.ik(goal).reached.any()
    for _ in range(80):
        away = goal[:, :2] - env.robot.tcp_pos[:, :2]
        action = env.hold()
        action[:, :2] = away.clamp(-1, 1)
        env.step(action)
    found = env.robot.ik(goal)
    assert found.reached.all()
    for _ in range(40):
        env.step(env.towards(found.q.float()))
    assert (env.robot.tcp_pos - goal[:, :3]).norm() < 0.01 and env.robot.root_pose[0, 0] > 1.0


@pytest.mark.parametrize(
    ("word", "control"),
    [
        ("panda@planar", "joint_delta_pos"),
        ("panda@planar", "base: base_vel, arm: ee_delta_pose"),
        ("panda@differential", "base: base_vel, arm: osc_pose"),
        ("panda@planar", "base+arm: ee_delta_pose"),
    ],
)
def test_the_expert_of_an_arm_drives_a_mobile_one(word: str, control: str) -> None:
    env = manikin.make("PickCube-v2", num_envs=8, robot=word, control=control, autoreset="disabled")
    done = run_episodes(env, ExpertPolicy(env), range(8))
    assert sum(result.success_once for result in done.results) >= 6


def test_a_base_that_drives_is_placed_by_its_joints() -> None:
    env = yard("panda@planar", "joint_pos")
    with pytest.raises(SceneError, match="one that drives is put in place with set_qpos"):
        env.robot.set_root((0, 0, 0, 1, 0, 0, 0))
    with pytest.raises(SceneError, match="has no free base; the speeds"):
        _ = env.robot.root_velocity


@pytest.mark.parametrize("word", ["panda@planar", "ur5e@differential", "so101@planar"])
def test_robot_check_passes_for_mobile_arms(word: str) -> None:
    assert not [finding for finding in check_robot(robot(word)) if finding.error]


# ---- legs ------------------------------------------------------------------------------------------------------------

LEGGED = ["go2", "h1", *(pytest.param(f"{w}:menagerie", marks=needs_menagerie) for w in ("go2", "h1"))]


@pytest.mark.parametrize("word", LEGGED)
def test_a_legged_robot_holds_its_keyframe_on_the_floor(word: str) -> None:
    env = yard(word, "joint_target_delta_pos")
    start = env.robot.root_pose.clone()
    still = env.hold()
    for _ in range(200):  # 10 s
        env.step(still)
        assert (env.robot.root_pose[:, :3] - start[:, :3]).norm() < 0.03
    assert env.robot.root_pose[0, 3] > 0.999  # upright
    weight = float(env.scene.model.body_mass.sum()) * 9.81
    assert float(env.robot.foot_forces.sum()) == pytest.approx(weight, rel=0.03)
    imu = env.robot.imus["imu"]
    assert torch.allclose(imu.acceleration[0], torch.tensor([0.0, 0.0, 9.81]), atol=0.3)
    assert imu.gyro.norm() < 0.02 and imu.quat[0, 0] > 0.999


@pytest.mark.parametrize("word", ["go2", "h1"])
def test_legs_move_as_they_are_told(word: str) -> None:
    """Lower by bending the knees: the joints follow within 0.05 rad, the base goes down as the legs' geometry says."""
    control = "joint_target_delta_pos" if word == "go2" else "legs: joint_target_delta_pos, left_arm: joint_pos"
    env = yard(word, control)
    before = env.robot.root_pose.clone()
    lower = {"go2": {"thigh": 0.15, "calf": -0.3}, "h1": {"hip_pitch": -0.1, "knee": 0.2, "ankle": -0.1}}[word]
    legs = env.robot.arm.groups["legs"].joints
    goal = env.robot.qpos.clone()
    for part, change in lower.items():
        goal[:, [k for k, name in enumerate(legs) if part in name]] += change
    length, bent = {"go2": (0.213, (0.9, 0.9)), "h1": (0.4, (0.4, 0.53))}[word]
    step = {"go2": 0.15, "h1": 0.1}[word]
    for _ in range(60):
        env.step(env.towards(goal))
    assert (env.robot.qpos - goal).abs().max() < 0.05
    lowered = length * sum(math.cos(angle) - math.cos(angle + step) for angle in bent)
    assert float(before[0, 2] - env.robot.root_pose[0, 2]) == pytest.approx(lowered, abs=0.015)


def test_an_arm_of_a_humanoid_is_driven_through_its_tool() -> None:
    env = yard("h1", "right_arm: ee_delta_pos, legs: joint_target_delta_pos")
    tool, other = env.robot.tools["right"], env.robot.tools["left"]
    names = [dim.name for dim in env.controller.card.dims]
    assert names[:3] == ["right_arm/x", "right_arm/y", "right_arm/z"] and "legs/left_knee" in names
    before, still = tool.tcp_pose.clone(), other.tcp_pose.clone()
    action = env.hold()
    action[:, 2] = 0.5
    for _ in range(20):
        env.step(action)
    assert tool.tcp_pos[0, 2] - before[0, 2] > 0.1 and (other.tcp_pos - still[:, :3]).norm() < 0.03


def test_a_free_base_is_put_where_the_scene_or_the_task_says() -> None:
    env = yard("go2", "joint_pos", num_envs=2)
    env.robot.set_root((1.0, 2.0, 0.3, 0, 0, 0, 1), (0.5, 0, 0, 0, 0, 0))
    env.world.forward()
    assert torch.allclose(env.robot.root_pose[1], torch.tensor([1.0, 2.0, 0.3, 0, 0, 0, 1]))
    assert torch.allclose(env.robot.root_velocity[0], torch.tensor([0.5, 0, 0, 0, 0, 0]))
    env.reset(seed=1)
    assert torch.allclose(env.robot.root_pose[0, :3], torch.tensor(arm("go2").base_pos), atol=1e-6)
    with pytest.raises(ConfigError, match="'go2' already has a free base"):
        robot("go2@planar")
    with pytest.raises(ConfigError, match="'go2' has no tool, so it carries no 'panda_hand'"):
        assemble(*robot("go2+panda_hand")[:2])


@pytest.mark.parametrize("word", LEGGED)
def test_robot_check_passes_for_legged_robots(word: str) -> None:
    assert not [finding for finding in check_robot(robot(word)) if finding.error]


def test_robot_check_says_when_a_robot_falls_or_has_no_feet() -> None:
    go2 = arm("go2")
    for changed, text in (
        ({"base_pos": (0, 0, 0.6)}, "it does not stand at 'rest': after 3 s its base has moved by"),
        ({"feet": ()}, "its base is free and it has no feet to stand on"),
        ({"feet": go2.feet[:3]}, "it stands on 'RR_calf' too, which feet= does not name"),
    ):
        found = check_robot(robot("go2")._replace(arm=replace(go2, **changed)))
        assert [finding.what.startswith(text) for finding in found if finding.lint == "feet"] == [True]


# ---- the makers' models ----------------------------------------------------------------------------------------------


@needs_menagerie
@pytest.mark.parametrize("word", ["go2", "h1", "spot", "spot_arm", "allegro", "allegro_left", "shadow", "tiago"])
def test_built_in_kinematics_and_inertia_are_the_makers(word: str) -> None:
    own, theirs = (assemble(arm(word), robot(word).gripper, menagerie=from_maker) for from_maker in (False, True))
    one, two = own.spec.compile(), theirs.spec.compile()
    a, b = mujoco.MjData(one), mujoco.MjData(two)
    rng = np.random.default_rng(0)
    for _ in range(20):
        for name in own.joints:
            low, high = two.joint(name).range
            assert np.allclose(one.joint(name).range, (low, high), atol=1e-6), name
            q = rng.uniform(max(low, -3), min(high, 3))
            a.qpos[one.joint(name).qposadr[0]] = b.qpos[two.joint(name).qposadr[0]] = q
        mujoco.mj_kinematics(one, a)
        mujoco.mj_kinematics(two, b)
        for name in own.bodies:
            assert np.linalg.norm(a.body(name).xpos - b.body(name).xpos) < 1e-4, name
            assert np.allclose(a.body(name).xmat, b.body(name).xmat, atol=2e-4), name
    assert one.body_mass.sum() == pytest.approx(two.body_mass.sum(), rel=1e-4)
    for name in own.bodies:
        assert np.allclose(one.body(name).ipos, two.body(name).ipos, atol=1e-5), name
        full = [_inertia(model, name) for model in (one, two)]
        assert np.allclose(full[0], full[1], atol=2e-3 * max(np.abs(full[1]).max(), 1e-9)), name


def _inertia(model: mujoco.MjModel, name: str) -> np.ndarray:
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, model.body(name).iquat)
    axes = axes.reshape(3, 3)
    return axes @ np.diag(model.body(name).inertia) @ axes.T


# ---- hands -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["allegro", pytest.param("allegro:menagerie", marks=needs_menagerie)])
def test_a_hand_without_an_arm_follows_a_trajectory(word: str) -> None:
    """Opening and closing every finger at 0.25 Hz: no joint is more than 0.05 rad from where it is told to be."""
    env = yard(word, "joint_pos")
    spec, low, high = env.robot.arm, *env.robot.limits.unbind(1)
    rest, fist = (torch.tensor(spec.keyframes[key]) for key in ("rest", "fist"))
    assert list(spec.groups) == ["fingers"] and env.controller.card.size == 16
    worst, dt = 0.0, 1 / env.control_hz
    for k in range(160):
        share = 0.25 * (1 - math.cos(2 * math.pi * 0.25 * (k + 1) * dt))  # up to half of the way to a fist
        wanted = rest + share * (fist - rest)
        env.step((2 * (wanted - low) / (high - low) - 1)[None])
        worst = max(worst, float((env.robot.qpos[0] - wanted).abs().max()))
    assert worst < 0.05


def test_a_hand_goes_on_an_arm() -> None:
    env = yard("panda+allegro", {"arm": "ee_delta_pose", "fingers": "joint_pos"})
    assert list(env.robot.groups) == ["arm", "fingers"] and env.robot.groups["fingers"] == slice(7, 23)
    names = [dim.name for dim in env.controller.card.dims]
    assert names[:6] == [f"arm/{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")] and names[6] == "fingers/ffj0"
    before, action = env.robot.tcp_pos.clone(), env.hold()
    action[:, 2] = 0.5
    for _ in range(10):
        env.step(action)
    assert env.robot.tcp_pos[0, 2] - before[0, 2] > 0.05
    both = robot("panda+allegro@planar")
    assert list(both.arm.groups) == ["base", "arm", "fingers"] and both.gripper is None
    with pytest.raises(ConfigError, match="'so101' needs exactly one flange to carry 'allegro'"):
        robot("so101+allegro")


# ---- mobile robots, two arms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["tiago", pytest.param("tiago:menagerie", marks=needs_menagerie)])
def test_tiago_follows_commands_through_its_groups(word: str) -> None:
    env = yard(word, "base: base_vel, torso: joint_pos, head: joint_pos, arm: osc_pose")
    names = [dim.name for dim in env.controller.card.dims]
    assert names[:2] == ["base/forward", "base/turn"] and "gripper" in names
    action = env.hold()
    head = names.index("head/head_1_joint")
    action[:, 0], action[:, head], action[:, names.index("gripper")] = 0.3, 0.5, -1.0
    tool = env.robot.tcp_pos[0, 2].clone()
    for _ in range(40):
        env.step(action)
    action[:, 0] = 0.0
    for _ in range(40):
        env.step(action)
    assert env.robot.root_pose[0, 0] == pytest.approx(0.6, abs=0.02)
    assert env.robot.qpos[0, env.robot.groups["head"].start] == pytest.approx(0.5 * 1.309, abs=0.02)
    assert env.robot.opening[0] < 0.2 and abs(env.robot.tcp_pos[0, 2] - tool) < 0.03


@pytest.mark.parametrize("word", ["baxter@planar", "baxter@differential"])
def test_a_robot_with_two_arms_is_one_robot(word: str) -> None:
    env = yard(word, {"base": "base_vel", "left_arm": "osc_pose", "right_arm": "joint_target_delta_pos"})
    left, right = env.robot.tools["left"], env.robot.tools["right"]
    names = [dim.name for dim in env.controller.card.dims]
    assert names[-2:] == ["right/gripper", "left/gripper"] and "right_arm/right_s0" in names
    apart = left.tcp_pos - right.tcp_pos
    assert torch.allclose(apart, torch.tensor([[0.0, 0.3, 0.0]]), atol=2e-3)
    action = env.hold()
    action[:, names.index("left_arm/z")] = 0.5
    action[:, -2], action[:, -1] = -1.0, 1.0
    places = [tool.tcp_pos.clone() for tool in (left, right)]
    for _ in range(20):
        env.step(action)
    moved = [tool.tcp_pos - place for tool, place in zip((left, right), places, strict=True)]
    assert moved[0][0, 2] > 0.1 and moved[1].norm() < 0.01
    assert right.opening[0] < 0.3 < 0.9 < left.opening[0]
    action = env.hold()
    action[:, 0] = 0.5
    for _ in range(40):
        env.step(action)
    assert env.robot.root_pose[0, 0] > 0.8 and abs(env.robot.root_pose[0, 1]) < 0.01


def test_each_arm_is_asked_what_it_holds() -> None:
    class Held(Yard):
        id = "Held-v0"
        physics = Physics(gravity=(0.0, 0.0, 0.0))

        def scene(self, b):
            return {**super().scene(b), "cube": b.box("cube", half_size=(0.02, 0.02, 0.02), pos=(0, 0, 1.5))}

    env = Env(Held, robot="baxter@planar", control="joint_target_delta_pos", reward="none")
    env.reset(seed=0)
    tools = env.robot.tools
    for holding, other in (("left", "right"), ("right", "left")):
        env.reset(seed=0)
        env.h.cube.set_pose(tools[holding].tcp_pos, tools[holding].tcp_quat)
        action = env.hold()
        action[:, -2:] = 1.0
        action[:, -1 if holding == "left" else -2] = -1.0
        for _ in range(20):
            env.step(action)
        assert tools[holding].is_grasping(env.h.cube).all() and not tools[other].is_grasping(env.h.cube).any()


def test_a_team_names_groups_and_tools_as_one_robot_does() -> None:
    env = manikin.make("TwoArmLift-v3", robot="baxter")
    team = env.driven
    assert list(team.groups) == ["robot0/arm", "robot1/arm"] and team.groups["robot1/arm"] == slice(7, 14)
    assert torch.equal(team.tools["robot1/tool"].tcp_pose, env.robots[1].tcp_pose)


def test_arms_that_stand_apart_at_a_table_stand_side_by_side_on_a_base() -> None:
    """Each as the arm alone stands, 0.44 m from the other and looking ahead, also after a drive and a turn."""
    env = yard("aloha@planar", "base: base_vel, left_arm: joint_target_delta_pos, right_arm: joint_target_delta_pos")
    left, right = env.robot.tools["left"], env.robot.tools["right"]
    alone = yard("aloha_left", "joint_target_delta_pos")
    alone.step(alone.hold())
    env.step(env.hold())
    out = alone.robot.tcp_pos - alone.robot.base_pose[:3]
    for tool, side in ((left, 0.22), (right, -0.22)):
        middle = tool.tcp_pos[:, :2] - env.robot.root_pose[:, :2]
        assert torch.allclose(middle, out[:, :2] + torch.tensor([[0.15, side]]), atol=3e-3)
    names = [dim.name for dim in env.controller.card.dims]
    action = env.hold()
    action[:, names.index("base/forward")], action[:, names.index("base/turn")] = 0.5, 0.25
    for _ in range(40):
        env.step(action)
    for _ in range(20):
        env.step(env.hold())
    root = env.robot.root_pose
    yaw = 2 * torch.atan2(root[0, 6], root[0, 3])
    assert yaw > 0.4 and root[0, :2].norm() > 0.5
    across = 0.44 * torch.stack([-torch.sin(yaw), torch.cos(yaw)])
    assert torch.allclose((left.tcp_pos - right.tcp_pos)[0, :2], across, atol=6e-3)


@pytest.mark.parametrize("word", ["allegro", "panda+allegro", "tiago", "baxter@planar", "aloha@planar", "cart"])
def test_robot_check_passes_for_each_kind(word: str) -> None:
    assert not [finding for finding in check_robot(robot(word)) if finding.error]


@needs_menagerie
@pytest.mark.parametrize("word", ["allegro:menagerie", "panda+allegro:menagerie", "tiago:menagerie"])
def test_robot_check_passes_for_makers_models(word: str) -> None:
    assert not [finding for finding in check_robot(robot(word)) if finding.error]


# ---- one's own -------------------------------------------------------------------------------------------------------

FEET = ("left_front_shank", "right_front_shank", "left_rear_shank", "right_rear_shank")
CROUCHED = (0.6, -1.2) * 4


@pytest.mark.parametrize("floats", [True, False])
def test_a_walker_of_ones_own_stands(floats: bool, tmp_path: Path) -> None:
    """With a free joint in the file or without; placed so that its feet touch the floor at the file's first pose."""
    path = tmp_path / "walker.xml"
    path.write_text(walker_text(floats=floats))
    spec = from_file(path, base="free", feet=FEET, rest=CROUCHED, base_pos=(0, 0, 0.4 * math.cos(0.6) + 0.02))
    assert list(spec.groups) == ["legs"] and len(spec.joints) == 8 and not spec.tools and not spec.gravcomp
    assert from_file(path, base="free", feet=FEET).base_pos[2] == pytest.approx(0.42)  # as drawn: stretched
    register(spec)
    assert not [finding for finding in check_robot(robot("walker")) if finding.error]
    env = yard("walker", "joint_target_delta_pos")
    start = env.robot.root_pose.clone()
    for _ in range(100):
        env.step(env.hold())
    assert (env.robot.root_pose - start).norm() < 0.03
    assert float(env.robot.foot_forces.sum()) == pytest.approx(9.6 * 9.81, rel=0.03)


def test_a_file_that_floats_says_which_line_to_write(tmp_path: Path) -> None:
    path = tmp_path / "walker.xml"
    path.write_text(walker_text())
    line = re.escape('write from_file(\'walker.xml\', base="free", feet=("left_front_shank", "right_front_shank", ')
    with pytest.raises(SceneError, match=f"'trunk' floats, it has a free joint.*{line}"):
        from_file(path)
    with pytest.raises(ConfigError, match=r'a free base stands on feet; its lowest bodies would be feet=\("left_front'):
        from_file(path, base="free")
    with pytest.raises(UnknownNameError, match=r"body of walker\.xml 'paw'"):
        from_file(path, base="free", feet=("paw",))
    with pytest.raises(
        UnknownNameError, match=r"joint of walker.xml 'wheel_x'.*base=\"planar\" puts joints of its own"
    ):
        from_file(path, base=Base(kind="planar", joints=("wheel_x", "wheel_y", "wheel_yaw")))
    with pytest.raises(
        ConfigError, match=r'joints that are in no group; write groups={..., "other": \("left_rear_hip"'
    ):
        from_file(
            path,
            base="free",
            feet=FEET,
            groups={"front": [f"{s}_front_{j}" for s in ("left", "right") for j in ("hip", "knee")]},
        )
    assert main(["robot-check", str(path)]) != 0


def test_an_arm_of_ones_own_drives(six: Path) -> None:
    spec = from_file(six, base="differential", **OPTIONS, name="driving_six")
    assert list(spec.groups) == ["base", "arm"] and spec.base.kind == "differential" and spec.ik_groups == ("arm",)
    register(spec)
    env = yard("driving_six", {"base": "base_vel", "arm": "joint_target_delta_pos"})
    action = env.hold()
    action[:, 0] = 0.5
    for _ in range(40):
        env.step(action)
    for _ in range(20):
        env.step(env.hold())
    assert env.robot.root_pose[0, 0] == pytest.approx(1.0, abs=0.02)
    assert robot("driving_six+panda_hand").gripper.name == "panda_hand"
    assert not [finding for finding in check_robot(robot("driving_six")) if finding.error]


# ---- what is shown ---------------------------------------------------------------------------------------------------


def test_a_page_names_base_groups_and_tools() -> None:
    page = task_sheet(Yard, robot="baxter@planar", control="base: base_vel, left_arm: osc_pose").markdown()
    assert "| base | planar |" in page and "`left_arm` (7 joints)" in page and "| tools | `right`, `left` |" in page
    assert "base/forward | m/s | base" in page and "left_arm/rx" in page
    legs = task_sheet(Yard, robot="go2", control="joint_target_delta_pos").card
    assert 0.3 < legs.realised < 1.2 and legs.hold_drift < 0.01  # it stands on a floor while it is measured


def test_the_list_shows_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert rows["go2"][1:4] == ["12", "free", "legs"] and rows["tiago"][2] == "differential"
    assert rows["h1"][3:7] == ["legs", "torso", "left_arm", "right_arm"] and rows["allegro"][3] == "fingers"


@pytest.mark.parametrize("control", ["joint_impedance:goal=commanded", "joint_impedance"])
def test_an_arm_driven_by_torques_keeps_its_posture_while_the_base_starts_and_stops(control: str) -> None:
    """What throws an arm about is its inertia times the base's acceleration, and that torque is added."""
    env = yard("panda@planar", f"base: base_vel, arm: {control}")
    posture = env.robot.qpos[:, 3:10].clone()
    away = []
    for step in range(60):
        action = env.hold()
        action[:, 0] = 0.5 if step < 30 else 0.0
        env.step(action)
        away.append((env.robot.qpos[:, 3:10] - posture).abs().max())
    assert env.robot.root_pose[0, 0] > 0.6  # it has driven
    assert max(away) < 0.01, max(away)  # [rad] 0.05 to 0.1 without
