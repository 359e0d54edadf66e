"""Hands: joints that follow others, touch, robot-check, Warp; test_published_models.py compares their kinematics."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import mujoco
import pytest
import torch

import manikin
from beside_warp import ends_on_both
from manikin.arenas.ground import ground
from manikin.author.card import FreeArm
from manikin.author.robot.check import check_robot
from manikin.cli import main
from manikin.env.env import Env
from manikin.env.task import Task
from manikin.errors import UnknownNameError
from manikin.robots import arm, robot
from manikin.scene.robot import RobotModel, assemble

HAVE_MENAGERIE = bool(os.environ.get("MENAGERIE_ROOT") or os.environ.get("MANIKIN_DATA"))
needs_menagerie = pytest.mark.skipif(not HAVE_MENAGERIE, reason="neither MENAGERIE_ROOT nor MANIKIN_DATA is set")

PALMS = ("allegro", "allegro_left", "inspire", "shadow")  # which turn their palm ahead, fingers up
HANDS = (*PALMS, "dclaw", "trifinger")
MESHED = tuple(pytest.param(f"{w}:menagerie", marks=needs_menagerie) for w in ("allegro", "allegro_left", "shadow"))
ON_ARMS = ("xarm7+inspire", "ur5e+shadow", "panda+allegro_left", "panda+dclaw", "xarm7+inspire@planar")
H = 0.5**0.5
UP = (H, 0, -H, 0)  # turns what looks ahead to look up


class Held(Task):
    """A hand in the air, palm up, a weight above it and a ball on a stick."""

    id = "Held-v0"
    horizon_s = 60.0

    def scene(self, b):
        ground(b, height=0.0, base_camera=((1, 1, 1), (0, 0, 0.5)), human_camera=((1, 1, 1), (0, 0, 0.5)))
        return {
            "robot": b.robot(pos=(0, 0, 0.5), quat=UP),
            "weight": b.box("weight", half_size=(0.015, 0.015, 0.01), mass=0.1, pos=(1, 0, 0.01)),
            "ball": b.sphere("ball", radius=0.004, kind="kinematic", pos=(2, 0, 1)),
        }

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {"touch": h.robot.touch_forces}}


def held(word: str, control: str = "joint_pos", **options) -> Env:
    env = Env(Held, robot=word, control=control, reward="none", **options)
    env.reset(seed=0)
    return env


def compiled(word: str) -> tuple[RobotModel, mujoco.MjModel]:
    chosen = robot(word)
    built = assemble(chosen.arm, chosen.gripper, menagerie=chosen.menagerie)
    return built, built.spec.compile()


def test_the_inspire_hand_weighs_what_its_description_says_and_couples_as_the_menagerie_does() -> None:
    """Masses of unitree_ros' h1_with_hand.urdf, coefficients of mujoco_menagerie's inspire_hand, both by hand."""
    _, model = compiled("inspire")
    thumb, proximal = 0.0018869 + 0.0066075 + 0.0037847 + 0.0033441, 4 * 0.0042403
    assert model.body_mass.sum() == pytest.approx(
        0.14143 + thumb + proximal + 0.0045683 + 0.0050396 + 0.0045683 + 0.0035996, rel=1e-6
    )
    ratios = {joint: ratio for joint, (_, ratio) in arm("inspire").followers.items()}
    known = {"thumb_middle": 1.0, "thumb_distal": 1.13, "index_distal": 1.13, "middle_distal": 1.13}
    known |= {"ring_distal": 1.08, "pinky_distal": 1.15}
    assert set(ratios) == set(known) and all(abs(ratios[j] - known[j]) < 0.007 for j in known)


# ---- moving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [*HANDS, *MESHED])
def test_fingers_follow_a_trajectory_and_what_is_coupled_follows_them(word: str) -> None:
    """To and fro by 0.2 rad in four seconds: no joint is more than 0.05 rad from where it is told to be. Shadow's weak
    servos sag besides, and its joints stick where friction holds against a spring. Its fingers are not spread, or they
    would press on one another."""
    env = held(word)
    for _ in range(40):
        env.step(env.hold())
    sag = env.robot.qpos[0] - env.robot.keyframe()
    assert sag.abs().max() < (0.08 if word.startswith("shadow") else 0.01)
    spec, low, high = env.robot.arm, *env.robot.limits.unbind(1)
    rest = torch.tensor(spec.keyframes["rest"])
    assert env.controller.card.size == len(spec.joints)
    dt, worst = 1 / env.control_hz, torch.zeros(len(rest))
    way = torch.where(rest + 0.25 < high, 0.2, -0.2)
    way *= torch.tensor([not (word.startswith("shadow") and name.endswith("J4")) for name in spec.joints])
    friction = {joint.name: joint.frictionloss for link in spec.links for joint in link.joints}
    allowed = torch.tensor([0.05 + 2 * friction[n] / kp for n, kp in zip(spec.joints, spec.gains.kp, strict=True)])
    for k in range(80):
        wanted = (rest + way * 0.5 * (1 - math.cos(2 * math.pi * 0.25 * (k + 1) * dt))).clamp(low, high)
        env.step((2 * (wanted - low) / (high - low) - 1)[None])
        worst = torch.maximum(worst, (env.robot.qpos[0] - wanted - sag).abs())
        data = env.model_data(0)[1]
        for joint, (driver, ratio) in spec.followers.items():
            there = data.joint(f"robot/{joint}").qpos[0], data.joint(f"robot/{driver}").qpos[0]
            assert abs(there[0] - ratio * there[1]) < 0.01, joint
    assert (worst < allowed).all(), dict(zip(spec.joints, worst.tolist(), strict=True))


def test_a_hand_is_put_in_place_with_what_follows() -> None:
    env = held("shadow", num_envs=2)
    q = env.robot.keyframe("fist").expand(2, 20).clone()
    q[1] *= 0.5
    env.robot.set_qpos(q, qvel=torch.ones(2, 20))
    for row in range(2):
        _, data = env.model_data(row)
        for joint, (driver, _) in env.robot.arm.followers.items():
            one, two = data.joint(f"robot/{joint}"), data.joint(f"robot/{driver}")
            assert one.qpos[0] == pytest.approx(two.qpos[0]) and one.qvel[0] == two.qvel[0] == 1.0


@needs_menagerie
def test_a_finger_of_the_shadow_hand_yields_as_the_tendon_of_the_makers_model_does() -> None:
    """The same torque on both outer joints bends them alike, whether a tendon holds their sum or a servo one of two
    equal angles. Without friction and weight; the maker's file as it is otherwise."""
    root = Path(os.environ.get("MENAGERIE_ROOT") or Path(os.environ["MANIKIN_DATA"]) / "menagerie")
    theirs = mujoco.MjModel.from_xml_path(str(root / "shadow_hand" / "right_hand.xml"))
    built, ours = compiled("shadow")
    sums = []
    for model, names, command in (
        (theirs, ("rh_FFJ2", "rh_FFJ1"), ("rh_A_FFJ0", 1.2)),
        (ours, ("FFJ2", "FFJ1"), ("FFJ2", 0.6)),
    ):
        data = mujoco.MjData(model)
        model.opt.gravity[:], model.dof_frictionloss[:] = 0, 0
        data.actuator(command[0]).ctrl[0] = command[1]
        for name in names:
            data.joint(name).qfrc_applied[0] = -0.1
        for _ in range(5000):
            mujoco.mj_step(model, data)
        sums.append(sum(float(data.joint(name).qpos[0]) for name in names))
    assert built.arm.followers["FFJ1"] == ("FFJ2", 1.0)
    assert sums[0] == pytest.approx(1.2 - 0.1 / 0.5, abs=2e-3)  # of the tendon: kp (1.2 - sum) = 0.1
    assert sums[1] == pytest.approx(sums[0], abs=5e-3)


@pytest.mark.parametrize("word", ON_ARMS)
def test_a_hand_on_an_arm_brings_its_fingers_tools_and_touch(word: str) -> None:
    base = "base: base_vel, " if "@" in word else ""
    env = Env(FreeArm, robot=word, control=f"{base}arm: joint_target_delta_pos, fingers: joint_pos", reward="none")
    env.reset(seed=0)
    spec, hand = env.robot.arm, arm(word.partition("+")[2].partition("@")[0])
    assert spec.joints[-len(hand.joints) :] == hand.joints and spec.followers == hand.followers
    assert spec.touch == hand.touch and env.robot.touch_forces.shape == (1, len(hand.touch))
    assert list(env.robot.tools)[1:] == list(hand.tools)[1:] and env.robot.tools["tool"].group == "arm"
    tip, first = list(env.robot.tools)[1], env.robot.groups["fingers"].start
    for _ in range(20):
        env.step(env.hold())
    before, start = env.robot.tools[tip].tcp_pos.clone(), env.robot.qpos.clone()
    goal = env.robot.ctrl.clone()
    bends = torch.tensor([not name.endswith("J4") for name in spec.joints[first:]])  # Shadow's J4 spread the fingers
    goal[:, first:] += bends * torch.where(goal[:, first:] + 0.3 < env.robot.limits[first:, 1], 0.3, -0.3)
    goal = torch.minimum(torch.maximum(goal, env.robot.limits[:, 0]), env.robot.limits[:, 1])
    asked = (goal - env.robot.ctrl)[:, first:]
    for _ in range(40):
        env.step(env.towards(goal))
    assert (env.robot.tools[tip].tcp_pos - before).norm() > 0.005
    moved = env.robot.qpos[:, first:] - start[:, first:]
    assert (moved - asked)[:, bends].abs().max() < 0.06


# ---- touch -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [*PALMS, *MESHED])
@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_a_palm_feels_the_weight_of_what_lies_on_it(word: str, device: str) -> None:
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    env = held(word, device=device)
    middle = {"allegro": 0.045, "shadow": 0.05, "inspire": 0.035}[
        word.split(":")[0].split("_")[0]
    ]  # [m] nearer the arm
    palm = env.robot.tools["palm"].tcp_pos + torch.tensor([[middle, 0.0, -0.02]])
    still = env.hold()
    env.step(still)
    assert env.robot.touch_forces.abs().max() < 1e-6
    turned = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    env.h.weight.set_pose(palm, turned)
    for _ in range(40):
        env.step(still)
    felt = env.robot.touch_forces[0]
    assert env.h.weight.pos[0, 2] > 0.4  # it lies in the hand
    assert felt.shape == (len(env.robot.arm.touch),)
    assert float(felt.sum()) == pytest.approx(0.1 * 9.81, rel=0.05)
    assert float(felt[0]) > 0.5  # most of it on the palm


@pytest.mark.parametrize("word", HANDS)
def test_a_finger_feels_that_it_is_touched_and_no_other_does(word: str) -> None:
    env = held(word)
    spec, still = env.robot.arm, env.hold()
    tips = [name for name, tool in spec.tools.items() if tool.body in spec.touch and tool.body != "palm"]
    assert len(tips) == {"inspire": 5, "shadow": 5, "dclaw": 3, "trifinger": 3}.get(word, 4)
    model, _ = env.model_data(0)
    for name in tips:
        body = model.body(f"robot/{spec.tools[name].body}")
        pads = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body.id and model.geom_contype[g]]
        radius = float(model.geom_size[pads[-1] if word == "dclaw" else pads[0], 0])
        env.reset(seed=0)
        tool = env.robot.tools[name]
        out = manikin.math.quat_rotate(tool.tcp_quat, torch.tensor([[0.0, 0.0, 1.0]]))
        away = out * (radius + 0.004 - 0.003)  # 3 mm deep
        env.h.ball.set_pose(tool.tcp_pos + away, torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
        env.step(still)
        felt = dict(zip(spec.touch, env.robot.touch_forces[0].tolist(), strict=True))
        assert felt.pop(spec.tools[name].body) > 0.01, name
        assert max(felt.values()) < 1e-6, (name, felt)


# ---- robot-check -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [*HANDS, *MESHED, *ON_ARMS])
def test_robot_check_finds_nothing_wrong_with_hands(word: str) -> None:
    assert check_robot(robot(word)) == []


def test_robot_check_prints_what_feels_touch_and_no_reach_of_a_hand_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robot-check", "inspire"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "touch: each of 12 bodies reads a force when a ball is pressed on it" in said
    assert "reach" not in said and "nothing to fix" in said


def found(word: str, **changes) -> list[tuple[str, str]]:
    spec = replace(arm(word), **changes)
    return [(f.lint, f.what) for f in check_robot(robot(word)._replace(arm=spec)) if f.error]


def test_robot_check_says_what_cannot_be_felt() -> None:
    names = arm("trifinger").touch
    assert found("trifinger", touch=(*names, "thumb")) == [("touch", "touch names 'thumb', and there is no such body")]
    bare = "'base_link' is to feel touch, and it has no shape that collides"
    assert found("trifinger", touch=(*names, "base_link")) == [("touch", bare)]
    links = [
        replace(link, geoms=(replace(link.geoms[0], size=(0.05, 0.05, 0.05), type="box"),))
        if link.name == "finger_tip_link_0"
        else link
        for link in arm("trifinger").links
    ]
    hidden = [
        replace(link, geoms=(replace(link.geoms[0], size=(0.002, 0.002)),))
        if link.name == "finger_lower_link_0"
        else link
        for link in links
    ]
    tip = next(link for link in links if link.name == "finger_tip_link_0")
    around = replace(tip, geoms=(replace(tip.geoms[0], pos=(0, 0, 0.16)),))  # a block around the link above it
    covered = tuple(around if link.name == tip.name else link for link in hidden)
    assert (
        "touch",
        "'finger_lower_link_0' is to feel touch, and no ball can be pressed on it alone at 'rest'",
    ) in found("trifinger", links=covered)


def test_robot_check_says_when_a_joint_does_not_follow() -> None:
    inspire = arm("inspire")
    short = tuple(
        replace(link, joint=replace(link.joint, range=(0, 0.5))) if link.name == "ring_distal" else link
        for link in inspire.links
    )
    text = "'ring_distal' follows 'ring_proximal' from 0 to 1.75, beyond its limits 0, 0.5"
    assert found("inspire", links=short) == [("coupling", text)]
    with pytest.raises(UnknownNameError, match=r"joint that 'ring_distal' of inspire follows 'ring'"):
        assemble(replace(inspire, followers={**inspire.followers, "ring_distal": ("ring", 1.0)}), None)


# ---- on a device -----------------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("warp")
@pytest.mark.parametrize("word", HANDS)
def test_a_hand_moves_on_warp_as_on_the_cpu(word: str) -> None:
    """Ten control steps in the air, within 1e-3 rad: float32 against float64."""
    here, there = ends_on_both(word, -0.3, 0.3)
    assert torch.allclose(here, there, atol=1e-3, rtol=0)
