"""Quadrupeds and humanoids. References are Unitree's table of H1's hand, ManiSkill3's figures, and the laws of
reflection and of weight; test_published_models.py compares with the makers' models."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.arenas.ground import ground
from manikin.author.robot.check import check_robot
from manikin.author.robot.tried import standing
from manikin.cli import main
from manikin.env.env import Env
from manikin.errors import ConfigError
from manikin.robots import arm, machines, robot
from manikin.scene.robot import assemble
from manikin.spec.prop import Shape
from robot_models import free
from test_robot_kinds import VIEW, Yard, needs_menagerie, yard

QUADRUPEDS = ("anymal_c", "spot", "spot_arm")
STANDING = [*QUADRUPEDS, "g1", *(pytest.param(f"{w}:menagerie", marks=needs_menagerie) for w in ("spot", "spot_arm"))]
HELD = ("g1_upper_body", "h1_upper_body")


@cache
def bare(name: str) -> tuple[mujoco.MjSpec, mujoco.MjModel]:
    """The built-in robot as it is, and with a free base and without shapes and armature."""
    chosen = robot(name)
    whole, stripped = (assemble(chosen.arm, chosen.gripper).spec for _ in range(2))
    return whole, free(stripped)


# ---- Unitree's table and reflections ---------------------------------------------------------------------------------


HAND = {  # Unitree's table of the left hand: parent, place [m], roll, pitch and yaw [rad], axis
    "left_hand_link": ("left_elbow_link", (0.2605, 0, -0.0185), (0, 0, 0), (1, 0, 0)),
    "palm": ("left_hand_link", (0.003, 0, 0), (0, 0, math.pi / 2), None),
    "thumb_base": ("palm", (-0.01696, -0.0691, 0.02045), (1.5708, -1.5708, 0), (0, 0, 1)),
    "thumb_proximal": ("thumb_base", (0.0099867, 0.0098242, -0.0089), (-1.5708, 0, 0.16939), (0, 0, -1)),
    "thumb_intermediate": ("thumb_proximal", (0.04407, -0.034553, -0.0008), (0, 0, 0), (0, 0, -1)),
    "thumb_distal": ("thumb_intermediate", (0.020248, -0.010156, -0.0012), (0, 0, 0), (0, 0, -1)),
    "index_proximal": ("palm", (0.00028533, -0.13653, 0.032268), (-0.034907, 0, 0), (0, 0, -1)),
    "index_intermediate": ("index_proximal", (-0.0024229, -0.032041, -0.001), (0, 0, 0), (0, 0, -1)),
    "pinky_proximal": ("palm", (0.00028533, -0.13571, -0.025488), (0.10472, 0, 0), (0, 0, -1)),
    "pinky_intermediate": ("pinky_proximal", (-0.0024229, -0.032041, -0.001), (0, 0, 0), (0, 0, -1)),
}


def turn(axis: tuple[float, ...], angle: float) -> np.ndarray:
    """Rodrigues' rotation."""
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * k @ k


def test_h1s_hands_are_unitrees_table_and_its_reflection() -> None:
    _, model = bare("h1_upper_body")
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    name_of = {link: link if link.startswith("left") else f"left_{link}" for link in (*HAND, "left_elbow_link")}
    for _ in range(5):
        angle = {link: rng.uniform(0.0, 1.0) for link, (*_, axis) in HAND.items() if axis}
        for link, q in angle.items():
            joint = "left_hand" if link == "left_hand_link" else f"left_{link}_joint"
            data.joint(joint).qpos[0] = q
            data.joint(joint.replace("left", "right")).qpos[0] = -q
        mujoco.mj_kinematics(model, data)
        for link, (parent, place, (roll, pitch, yaw), axis) in HAND.items():
            here, before = data.body(name_of[link]), data.body(name_of[parent])
            frame = before.xmat.reshape(3, 3)
            assert np.allclose(frame.T @ (here.xpos - before.xpos), place, atol=1e-6), link
            wanted = turn((0, 0, 1), yaw) @ turn((0, 1, 0), pitch) @ turn((1, 0, 0), roll)
            wanted = wanted @ (turn(axis, angle[link]) if axis else np.eye(3))
            assert np.allclose(frame.T @ here.xmat.reshape(3, 3), wanted, atol=2e-5), link
            other = data.body(name_of[link].replace("left", "right"))
            assert np.allclose(other.xpos, here.xpos * (1, -1, 1), atol=1e-6), link
    fingers = 0.0018869 + 0.0066101 + 0.0037844 + 0.003344 + 4 * 0.0042405 + 2 * 0.0045682 + 0.0050397 + 0.0036036
    for palm in ("left_palm", "right_palm"):
        assert model.body(palm).subtreemass[0] == pytest.approx(0.14143 + fingers, rel=1e-6)
    reach = arm("h1_upper_body").groups["left_arm"]
    assert reach.effort == (40, 40, 18, 18, 6) and reach.delta == (0.2,) * 5


SIDES = {  # names of the left and the right side, and where the joints that a reflection turns round are
    "anymal_c": (("LF_", "RF_"), ("LH_", "RH_"), ("HAA",)),
    "spot": (("fl_", "fr_"), ("hl_", "hr_"), ("_hx",)),
    "h1": (("left_", "right_"), ("roll", "yaw")),
    "g1": (("left_", "right_"), ("roll", "yaw")),
    "g1_simplified_legs": (("left_", "right_"), ("roll", "yaw", "one", "two", "three", "four", "five", "six")),
}


@pytest.mark.parametrize("name", SIDES)
def test_left_and_right_are_reflections(name: str) -> None:
    *pairs, reversed_by = SIDES[name]
    _, model = bare(name)
    data, rng, spec = mujoco.MjData(model), np.random.default_rng(1), arm(name)
    bodies = [model.body(b).name for b in range(1, model.nbody)]
    for left, right in pairs:
        moved = [joint for joint in spec.joints if joint.startswith(left)]
        assert moved
        for joint in moved:
            low, high = model.joint(joint).range
            other = joint.replace(left, right, 1)
            sign = -1 if any(word in joint for word in reversed_by) else 1
            mirrored = sorted((sign * low, sign * high))
            assert np.allclose(mirrored, model.joint(other).range, atol=0.06), joint  # Spot's knees differ, and a hip
            data.joint(joint).qpos[0] = q = rng.uniform(max(low, -1), min(high, 1))
            data.joint(other).qpos[0] = sign * q
        mujoco.mj_kinematics(model, data)
        for body in [one for one in bodies if one.startswith(left)]:
            here, there = data.body(body).xpos, data.body(body.replace(left, right, 1)).xpos
            assert np.allclose(here * (1, -1, 1), there, atol=2e-5), body


# ---- how they stand --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", STANDING)
def test_it_stands_by_its_servos(word: str) -> None:
    """For 4 s: upright, within 5 cm of where it was put down, all of its weight on its feet."""
    env = yard(word, "legs: joint_target_delta_pos" if "legs" in arm(word.split(":")[0]).groups else "joint_pos")
    start, still = env.robot.root_pose.clone(), env.hold()
    for _ in range(80):
        env.step(still)
        assert (env.robot.root_pose[:, :3] - start[:, :3]).norm() < 0.05
    assert env.robot.root_pose[0, 3] > 0.999
    weight = float(env.scene.model.body_mass.sum()) * 9.81
    forces = env.robot.foot_forces[0]
    aside = 1.2 if "anymal" in word else 1.04  # ANYmal's soft legs are spread, and press aside on feet that grip
    assert 0.96 * weight < float(forces.sum()) < aside * weight and float(forces.min()) > 0.5 * weight / len(forces)
    imu = env.robot.imus["imu"]
    up = torch.tensor([0.0, 0.0, 9.81])
    assert torch.allclose(imu.acceleration[0], up, atol=0.4) and imu.gyro.norm() < 0.05


def test_anymals_feet_grip_twice_as_well_and_touch_where_maniskill_puts_them_down() -> None:
    spec = arm("anymal_c")
    for friction, wanted in ((spec.foot_friction, 2.0), (None, 1.0)):
        model = assemble(replace(spec, foot_friction=friction), None).spec.compile()
        feet = [g for g in range(model.ngeom) if model.body(model.geom_bodyid[g]).name.endswith("FOOT")]
        assert {float(model.geom_friction[g, 0]) for g in feet if model.geom_contype[g]} == {wanted}
    _, model = bare("anymal_c")
    data = mujoco.MjData(model)
    for joint, q in zip(spec.joints, spec.keyframes["rest"], strict=True):
        data.joint(joint).qpos[0] = q
    mujoco.mj_kinematics(model, data)
    soles = [-data.body(foot).xpos[2] - 0.0225 + 0.03 for foot in spec.feet]  # a ball of 30 mm, 22.5 mm higher
    assert np.allclose(soles, spec.base_pos[2], atol=1e-3) and np.allclose(soles, 0.545, atol=5e-3)


def test_a_robot_that_has_to_be_balanced_falls_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """With ManiSkill3's gains. Only shins and feet collide, so that it falls through the floor."""
    g1 = robot("g1_simplified_legs")
    found = standing(g1)
    assert not found.stays and found.fell is not None and 0.5 < found.fell < 2.5
    assert not [finding for finding in check_robot(g1) if finding.error]
    assert main(["robot-check", "g1_simplified_legs", "--no-reach"]) == 0
    assert "and takes a controller that balances it" in " ".join(capsys.readouterr().out.split())
    claimed = check_robot(g1._replace(arm=replace(g1.arm, stands=True)))
    assert [finding.lint for finding in claimed if finding.error] == [*["gains"] * 5, "feet"]
    go2 = robot("go2")
    assert standing(go2).stays and standing(go2).fell is None and set(standing(go2).on) == set(go2.arm.feet)
    modest = check_robot(go2._replace(arm=replace(go2.arm, stands=False)))
    assert [finding.what for finding in modest] == ["it stands at 'rest' by its servos, although stands=False"]


@pytest.mark.parametrize("word", [*STANDING, *HELD])
def test_robot_check_finds_no_error(word: str) -> None:
    assert not [finding for finding in check_robot(robot(word)) if finding.error]


def test_the_page_has_every_robot_on_legs_as_it_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "robots.md").read_text()
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \| (\d+) \| ([\d.]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE
    )
    listed = [row for row in rows if row[4] == "held" or row[4].startswith(("moves", "falls"))]
    assert {name for name, *_ in listed} == {name for name in machines() if arm(name).feet} | set(HELD)
    for name, title, joints, mass, stands, meshes, source in listed:
        spec, model = arm(name), bare(name)[1]
        assert (title, int(joints), source) == (spec.title, len(spec.joints), spec.source)
        assert float(mass) == pytest.approx(model.body_mass.sum(), abs=0.051)
        assert (meshes == "no") == (spec.menagerie is None)
        if spec.base.kind == "free":
            found = standing(robot(name))
            figure = float(re.findall(r"[\d.]+", stands)[0])
            assert stands.startswith("falls") != found.stays
            assert figure == pytest.approx(
                found.moved * 1e3 if found.stays else found.fell, abs=0.6 if found.stays else 0.11
            )


# ---- upper bodies ----------------------------------------------------------------------------------------------------


def test_g1s_head_camera_is_maniskills() -> None:
    """At (0.05, 0, 0.46) in the head's frame, 128 x 128 pixels of 90 degrees, pitched down by 30 degrees."""
    (camera,) = arm("g1_upper_body").cameras
    assert (camera.on, camera.width, camera.height) == ("head_link", 128, 128)
    assert camera.K()[0, 0] == pytest.approx(64.0)
    right, down, forward = camera.rotation.T
    assert np.allclose(forward, (math.cos(math.pi / 6), 0, -math.sin(math.pi / 6)), atol=1e-9)
    assert np.allclose(right, (0, -1, 0), atol=1e-9) and down[2] < 0
    env = manikin.make("PickCube-v2", robot="g1_upper_body", control={"right_arm": "joint_target_delta_pos"})
    env.reset(seed=0)
    red = env.image(camera="head_camera", width=64, height=64).reshape(-1, 3).astype(int)
    assert ((red[:, 0] > 120) & (red[:, 1] < 60)).sum() > 5  # it sees the cube


class Aloft(Yard):
    """What is held at the pelvis, with room below its hands."""

    id = "Aloft-v0"

    def scene(self, b):
        ground(b, height=0.0, base_camera=VIEW, human_camera=VIEW)
        return {"robot": b.robot(pos=(0, 0, 1.0))}


@pytest.mark.parametrize("word", HELD)
def test_what_is_held_at_the_pelvis_stays_and_moves_its_arms(word: str) -> None:
    control = {"right_arm": "joint_target_delta_pos", "torso": "joint_target_delta_pos"}
    env = Env(Aloft, robot=word, control=control, reward="none")
    env.reset(seed=0)
    tool, root = env.robot.tools["right"], env.robot.root_pose.clone()
    before, still = tool.tcp_pos.clone(), env.robot.tools["left"].tcp_pos.clone()
    action = env.hold()
    action[:, [dim.name.endswith("right_shoulder_pitch_joint") or dim.name.endswith("right_shoulder_pitch")
               for dim in env.controller.card.dims]] = -0.5  # fmt: skip
    for _ in range(10):
        env.step(action)
    for _ in range(20):
        env.step(env.hold())
    moved = float(
        env.robot.qpos[0, env.robot.groups["right_arm"].start]
        - env.robot.keyframe()[env.robot.groups["right_arm"].start]
    )
    assert moved == pytest.approx(-10 * 0.5 * 0.2, abs=0.06)  # 0.2 rad per unit
    assert torch.equal(env.robot.root_pose, root)
    assert (tool.tcp_pos - before).norm() > 0.2 and (env.robot.tools["left"].tcp_pos - still).norm() < 0.03
    assert abs(env.scene.model.body_mass.sum() - bare(word)[1].body_mass.sum()) < 1e-3


class Clasp(Aloft):
    """A ball that floats in the right hand until it is held, and then weighs."""

    id = "Clasp-v0"

    def scene(self, b):
        handles = super().scene(b)
        ball = b.part("ball", [Shape(type="sphere", size=(0.03,))], mass=0.15, pos=(0, 0, 3))
        return {**handles, "ball": ball, "grasp": b.grasp(handles["robot"].tools["right"], ball)}


@pytest.mark.parametrize("word", HELD)
def test_a_hand_of_several_fingers_holds_a_ball(word: str) -> None:
    """A ball is kept between thumb and fingers while they close; afterwards the hand alone keeps it for 2 s."""
    groups = arm(word).groups
    control = {"right_arm": "joint_target_delta_pos"} | ({"right_hand": "joint_pos"} if "right_hand" in groups else {})
    env = Env(Clasp, robot=word, control=control, reward="none")
    env.reset(seed=0)
    tool, names = env.robot.tools["right"], [dim.name for dim in env.controller.card.dims]
    action = env.hold()
    if "right_hand" in groups:  # thumb inwards, fingers bent: halves of their ranges, as joint_pos has them
        wanted = {"right_one": -0.5, "right_two": -1.5}
        wanted |= {f"right_{k}": 1.1 for k in ("three", "four", "five", "six")}
        for name, q in wanted.items():
            low, high = env.robot.limits[env.robot.joints.index(f"{name}_joint")].tolist()
            action[:, names.index(f"right_hand/{name}_joint")] = 2 * (q - low) / (high - low) - 1
    else:
        action[:, names.index("right/gripper")] = -1.0
    place = tool.tcp_pose.clone()
    for _ in range(30):
        env.h.ball.set_pose(place[:, :3])
        env.step(action)
    for _ in range(40):
        env.step(action)
    assert (env.h.ball.pos - tool.tcp_pos).norm() < 0.05, env.h.ball.pos - tool.tcp_pos
    assert bool(env.h.grasp.value.all())


@pytest.mark.parametrize("word", HELD)
def test_hands_move_on_warp_as_on_the_cpu(word: str) -> None:
    """Four control steps within 2e-4 rad (float32 against float64); joints of hands that follow others are coupled."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    seen = {}
    for device in ("cpu", "warp:cpu"):
        control = {"right_arm": "joint_target_delta_pos", "torso": "joint_pos"}
        control |= {"right_hand": "joint_target_delta_pos"} if "right_hand" in arm(word).groups else {}
        env = Env(Aloft, num_envs=2, robot=word, control=control, reward="none", device=device)
        env.reset(seed=0)
        start, size = env.robot.qpos.clone(), env.controller.card.size
        for _ in range(4):
            env.step(torch.linspace(-0.6, 0.8, 2 * size).reshape(2, size))
        seen[device] = env.robot.qpos.clone()
        assert (env.robot.qpos - start).abs().amax(1).min() > 0.05
    assert torch.allclose(seen["cpu"], seen["warp:cpu"], atol=2e-4, rtol=0)


def test_a_robot_with_grippers_of_its_own_is_checked_from_a_file_and_takes_others(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import replace\nfrom manikin.robots import arm\n"
        "ROBOT = replace(arm('h1_upper_body'), name='mine')\n"
    )
    assert main(["robot-check", str(file), "--no-reach"]) == 0
    assert robot("h1_upper_body").gripper.name == "h1_hand_left"
    assert {tool.gripper.name for tool in robot("h1_upper_body+panda_hand").arm.tools.values()} == {"panda_hand"}
    with pytest.raises(
        ConfigError, match="'g1_upper_body' has grippers of its own and no flange; it cannot have nothing"
    ):
        assemble(*robot("g1_upper_body+none")[:2])


# ---- tasks -----------------------------------------------------------------------------------------------------------


class Walk(Yard):
    """A task that needs feet."""

    id, robots, robot_needs = "Walk-v0", ("go2",), ("feet",)


class Carry(Yard):
    """A task that needs two hands."""

    id, robots, robot_needs = "Carry-v0", ("g1_upper_body",), ("left", "right", "gripper")


def test_a_task_that_needs_feet_says_which_robots_it_takes() -> None:
    legs = "ant, anymal_c, g1, g1_simplified_legs, go2, h1, hopper, humanoid, spot, spot_arm"
    with pytest.raises(
        ConfigError, match=f"Walk-v0 needs a robot with feet, and 'panda' has no feet; it takes {legs}$"
    ):
        Env(Walk, robot="panda", reward="none")
    with pytest.raises(
        ConfigError, match="'panda@planar' has no left and no right; it takes g1_upper_body, h1_upper_body"
    ):
        Env(Carry, robot="panda@planar", reward="none")
    with pytest.raises(
        ConfigError, match=r"CartpoleBalance-v1 needs a robot with rail, and 'go2' has no rail; it takes cart$"
    ):
        manikin.make("CartpoleBalance-v1", robot="go2")
    for word in ("go2", "anymal_c"):
        assert Env(Walk, robot=word, control="joint_target_delta_pos", reward="none").robot.arm.feet
