"""Grippers on their flange and on every arm: geometry against the maker's model, grip, grasp checks, all pairs."""

from __future__ import annotations

import functools
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from gripped import Gripped, closed
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.grippers import gripper, grippers
from manikin.robots import arm, arms, robot
from manikin.scene.robot import RobotModel
from test_robots import PREFIX, at_rest, body_inertia, compiled, in_hand, make, meshed, scene, up

ATTACHED = tuple(name for name in grippers() if gripper(name).links)
HOLDING = tuple(name for name in ATTACHED if gripper(name).fingers)
NEW = (
    *("fetch_gripper", "google_gripper", "jaco_three_finger", "umi", "viperx_fingers", "widowx_bridge_fingers"),
    "widowx_fingers",
)
MESHED = tuple(meshed(name, gripper(name).menagerie) for name in NEW)
SMALL = ("widowx_fingers",)
BEHIND = {"fetch_gripper_mshab": 0.0385}  # [m] the published place of the TCP is further behind the tips than others'


@functools.cache
def pair(name: str, mesh: bool = False) -> tuple[RobotModel, mujoco.MjModel]:
    return compiled(f"ur5e+{name}" + ":menagerie" * mesh)


def test_every_gripper_is_named_and_none_is_a_bare_flange() -> None:
    assert set(NEW) | {"rethink", "robotiq_2f140", "robotiq_three_finger", "eraser", "koch_jaw"} <= set(grippers())
    for name in grippers():
        spec = gripper(name)
        assert spec.name == name and spec.title and spec.source
        assert len(spec.drivers) == len(spec.open_q) == len(spec.closed_q) == len(spec.gains.kp)
        assert sorted(spec.joints) == sorted({*spec.drivers, *spec.followers})
    assert robot("panda+none").gripper is None
    with pytest.raises(UnknownNameError, match=r"unknown gripper 'nothing'.*Valid: .*none, panda_hand"):
        robot("panda+nothing")


def test_the_page_lists_every_gripper() -> None:
    page = (Path(__file__).parents[2] / "docs" / "robots.md").read_text()
    for name in grippers():
        spec = gripper(name)
        line = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert spec.title in line and (not spec.fingers or f"| {spec.max_width * 1e3:.0f} |" in line)


# -- geometry ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ATTACHED)
def test_the_tcp_continues_the_flange(name: str) -> None:
    """z out of the flange, y along the opening: the same for every gripper, so that tasks need not know it."""
    built, model = pair(name)
    bare, without = compiled("ur5e+none")
    data, flange = at_rest(built, model).body(PREFIX + "tcp"), at_rest(bare, without).body(PREFIX + "tcp")
    frame = flange.xmat.reshape(3, 3)
    assert np.allclose(frame.T @ data.xmat.reshape(3, 3), np.eye(3), atol=1e-6)
    offset = frame.T @ (data.xpos - flange.xpos)
    assert np.abs(offset[:2]).max() < 5e-3 and 0.02 < offset[2] < 0.25


def sides(built: RobotModel, model: mujoco.MjModel) -> tuple[list[int], list[int]]:
    """Pad geoms on either side of a held thing."""
    of = {built.finger_bodies[i]: k for k, side in enumerate(built.gripper.sides or ((0,), (1,))) for i in side}
    found: tuple[list[int], list[int]] = ([], [])
    for name in built.pad_geoms:
        geom = model.geom(PREFIX + name)
        found[of[model.body(geom.bodyid[0]).name.removeprefix(PREFIX)]].append(geom.id)
    return found


def gap(built: RobotModel, model: mujoco.MjModel, opening: float) -> float:
    data = at_rest(built, model, gripper=opening)
    one, two = sides(built, model)
    return min(mujoco.mj_geomDistance(model, data, a, b, 0.3, None) for a in one for b in two)


@pytest.mark.parametrize("name", HOLDING)
def test_pads_open_as_far_as_said_meet_and_close_towards_each_other(name: str) -> None:
    built, model = pair(name)
    assert abs(gap(built, model, 1.0) - gripper(name).max_width) < 3e-3
    closed, least = gap(built, model, 0.0), gripper(name).min_width
    assert closed < least + 2e-3 and (least == 0 or closed > least - 2e-3)  # pads that meet may press on each other
    assert gap(built, model, 1.0) > gap(built, model, 0.6) > gap(built, model, 0.3)
    data = at_rest(built, model, gripper=0.6)
    tcp = data.body(PREFIX + "tcp")
    frame = tcp.xmat.reshape(3, 3)
    one, two = (np.mean([frame.T @ (data.geom_xpos[g] - tcp.xpos) for g in side], 0) for side in sides(built, model))
    assert abs(one[1] - two[1]) > 5 * abs(one[2] - two[2])  # along y
    for k, side in enumerate(built.gripper.sides or ((0,), (1,))):
        for i in side:
            closing = frame.T @ data.site(PREFIX + built.finger_sites[i]).xmat.reshape(3, 3)[:, 2]
            assert closing[1] * (two[1] - one[1]) * (1, -1)[k] > 0 and abs(closing[1]) > 0.85


@pytest.mark.parametrize("name", HOLDING)
def test_tcp_lies_between_the_pads(name: str) -> None:
    """A thing at the TCP is met by the pads: along the fingers it lies within their pads, and midway between them."""
    built, model = pair(name)
    data = at_rest(built, model, gripper=0.3)
    tcp = data.body(PREFIX + "tcp")
    frame = tcp.xmat.reshape(3, 3)
    corners = []
    for name_ in built.pad_geoms:
        geom = model.geom(PREFIX + name_).id
        signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
        box = data.geom_xpos[geom] + (signs * model.geom_size[geom]) @ data.geom_xmat[geom].reshape(3, 3).T
        corners.append((box - tcp.xpos) @ frame)
    low, high = np.concatenate(corners).min(0), np.concatenate(corners).max(0)
    assert low[2] - 5e-3 < 0 < high[2] < BEHIND.get(name, 0.0155) + 5e-4  # 16 mm behind the tips at most
    assert abs(low[1] + high[1]) < 8e-3 and low[0] < 0 < high[0]


@pytest.mark.parametrize("name", MESHED)
def test_built_in_model_is_the_makers(name: str) -> None:
    """The same joint positions give the same poses; each link has the same mass, centre of mass and inertia."""
    mine = pair(name)[1]
    theirs = pair(name, mesh=True)[1]
    a, b = mujoco.MjData(mine), mujoco.MjData(theirs)
    rng = np.random.default_rng(0)
    assert np.allclose(mine.jnt_range, theirs.jnt_range)
    parts = [link.name for link in gripper(name).links]
    for _ in range(20):
        a.qpos[:] = b.qpos[:] = rng.uniform(np.maximum(mine.jnt_range[:, 0], -3), np.minimum(mine.jnt_range[:, 1], 3))
        mujoco.mj_kinematics(mine, a)
        mujoco.mj_kinematics(theirs, b)
        for part in parts:
            one, two = a.body(PREFIX + part), b.body(PREFIX + part)
            assert np.linalg.norm(one.xpos - two.xpos) < 1e-4, part
            assert np.linalg.norm(one.xmat - two.xmat) < 2e-4, part
    for part in parts:
        (m, c, i), (m2, c2, i2) = body_inertia(mine, PREFIX + part), body_inertia(theirs, PREFIX + part)
        assert np.isclose(m, m2, rtol=1e-4) and np.allclose(c, c2, atol=1e-5), part
        assert np.allclose(i, i2, atol=2e-3 * np.abs(i2).max()), part


@pytest.mark.parametrize("name", MESHED)
def test_makers_gripper_moves_like_ours(name: str) -> None:
    """Half a second of closing, in the air: nothing in the maker's file but meshes and masses remains."""
    ends = []
    for mesh in (False, True):
        built, model = pair(name, mesh)
        data = at_rest(built, model)
        n = len(built.arm_joints)
        data.ctrl[n:] = 0.6 * np.array(built.gripper.open_q) + 0.4 * np.array(built.gripper.closed_q)
        for _ in range(60):
            mujoco.mj_step(model, data)
        ends.append(data.qpos[n:].copy())
    assert np.abs(ends[0] - ends[1]).max() < 1e-3


@pytest.mark.parametrize("name", ["robotiq_2f140"])
def test_parallelogram_is_exact(name: str) -> None:
    """The inner knuckle's tip stays on the finger at every opening, so a coupling may stand for the loop."""
    built, model = pair(name)
    offsets = []
    for opening in (0.0, 0.3, 0.7, 1.0):
        data = at_rest(built, model, gripper=opening)
        inner, finger = (data.body(f"{PREFIX}right_{part}") for part in ("inner_knuckle", "inner_finger"))
        tip = inner.xpos + inner.xmat.reshape(3, 3) @ (0, 0.064637, 0.076303)
        offsets.append(finger.xmat.reshape(3, 3).T @ (tip - finger.xpos))
    assert np.ptp(offsets, 0).max() < 1e-6


# -- grip -------------------------------------------------------------------------------------------------------------


def shake_cube(word: str, half: float, ahead: float = 0.0) -> tuple[float, float]:
    """Close on a cube so far ``ahead`` of the TCP, lift it 5 cm, shake it sideways at 1 Hz for 2 s: its rise, and its
    way in the hand. All in [m]."""
    tcp = at_rest(*compiled(word)).body(PREFIX + "tcp")
    at = tcp.xpos + ahead * tcp.xmat.reshape(3, 3)[:, 2]
    built, model = scene(word, table=tuple(at - (0, 0, half + 0.0101)), cube=half)
    data = at_rest(built, model)
    adr = model.joint(model.body("cube").jntadr[0]).qposadr[0]
    data.qpos[adr : adr + 3] = at
    n = len(built.arm_joints)
    for phase, steps in (("settle", 20), ("close", 300), ("lift", 100), ("wait", 60), ("shake", 400), ("rest", 40)):
        if phase == "close":
            data.ctrl[n:] = built.gripper.closed_q
        if phase == "shake":
            start, rose, base = in_hand(data), data.body("cube").xpos[2] - at[2], data.ctrl[0]
        for k in range(steps):
            if phase == "lift":
                data.ctrl[:n] += up(built, model, data, 0.05 / steps)
            if phase == "shake":
                data.ctrl[0] = base + 0.15 * np.sin(2 * np.pi * k / 200)  # 75 mm each way at 0.5 m
            mujoco.mj_step(model, data)
    assert not np.any(data.warning.number)
    return float(rose), float(np.linalg.norm(in_hand(data) - start))


@pytest.mark.parametrize("name", HOLDING)
def test_a_shaken_cube_stays_in_the_hand(name: str) -> None:
    rose, slipped = shake_cube(f"ur5e+{name}", 0.0125 if name in SMALL else 0.02, BEHIND.get(name, 0.01) - 0.01)
    assert rose > 0.045
    assert slipped < 1e-3


@pytest.mark.parametrize("name", MESHED)
def test_the_makers_meshes_hold_it_too(name: str) -> None:
    rose, slipped = shake_cube(f"ur5e+{name}:menagerie", 0.0125 if name in SMALL else 0.02)
    assert rose > 0.045
    assert slipped < 1e-3


@pytest.mark.parametrize("name", HOLDING)
def test_a_closing_gripper_does_not_chatter(name: str) -> None:
    """Closed on nothing for a second, the pads lie still on each other."""
    built, model = pair(name)
    data = at_rest(built, model)
    n = len(built.arm_joints)
    data.ctrl[n:] = built.gripper.closed_q
    for _ in range(500):
        mujoco.mj_step(model, data)
    places = []
    for _ in range(40):
        mujoco.mj_step(model, data)
        places.append(data.qpos[n:].copy())
    assert np.ptp(places, 0).max() < 1e-3


# -- grasp check ------------------------------------------------------------------------------------------------------


def grasping(robot_word: str, where: tuple[float, float, float]) -> tuple[bool, list[bool]]:
    config = {"thing": "box", "size": (0.012, 0.02, 0.012), "where": where, "tactile": False}
    env = manikin.make(
        Gripped, num_envs=1, robot=robot_word, autoreset="disabled", terminate=False, reward="none", config=config
    )
    env.reset(seed=0)
    action = closed(env)
    for k in range(40):
        if k < 25:
            env.h.thing.set_pose(manikin.math.pose_apply(env.h.robot.tcp_pose, torch.tensor([where]).float()))
        env.step(action)
    pressing = env.h.grasp.force.norm(dim=-1)[0] > 0.5
    value = bool(env.h.grasp.value)
    env.close()
    return value, pressing.tolist()


@pytest.mark.parametrize("name", ["robotiq_three_finger", "jaco_three_finger"])
def test_three_fingers_grasp_when_the_thumb_and_one_finger_press(name: str) -> None:
    """The thing lies aside, where only one of the two fingers reaches it."""
    spec = gripper(name)
    held, pressing = grasping(f"ur5e+{name}", (0.018, 0, 0))
    assert held
    assert sorted(sum(pressing[i] for i in side) for side in spec.sides) == [1, 1]


def test_two_fingers_on_one_side_are_no_grasp() -> None:
    """The rule itself, on made-up forces: any finger of each side, but of each side one."""
    env = manikin.make(Gripped, num_envs=4, robot="ur5e+robotiq_three_finger", reward="none", config={"tactile": False})
    env.reset(seed=0)
    grasp = env.h.grasp
    closing = grasp.closing.clone()
    press = torch.tensor([[1.0, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 1]])
    forces = torch.stack([closing, 5 * closing * press[..., None]], 1)
    for given in (forces, forces.numpy()):
        assert grasp.presses(given).tolist() == [False, True, False, True]
    env.close()


# -- a tool without fingers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["panda+eraser", "panda+none", "panda+stick"])
def test_a_robot_without_fingers_has_no_gripper_action_and_no_grasps(word: str) -> None:
    class Bare(Gripped):
        id = "Bare-v0"

        def scene(self, b):
            return {"robot": b.robot(), "thing": b.box("thing", half_size=(0.02, 0.02, 0.02), pos=(0.3, 0.3, 0.1))}

    env = manikin.make(Bare, num_envs=2, robot=word, reward="none", control="joint_pos")
    env.reset(seed=0)
    assert env.controller.card.size == 7
    env.step(torch.zeros(2, 7))
    with pytest.raises(SceneError, match="no gripper that opens"):
        _ = env.h.robot.opening
    with pytest.raises(SceneError, match="were not declared"):
        env.h.robot.is_grasping(env.h.thing)
    env.close()


def test_asking_an_eraser_for_fingers_is_an_error() -> None:
    class Asks(Gripped):
        id = "Asks-v0"

    with pytest.raises(SceneError, match="no gripper, so"):
        manikin.make(Asks, robot="panda+eraser", reward="none", config={"tactile": False})


def test_the_eraser_wipes_low() -> None:
    built, model = compiled("panda+eraser")
    data = at_rest(built, model)
    tcp = data.body(PREFIX + "tcp")
    face = model.geom(PREFIX + "wiping_face").id
    low = data.geom_xpos[face][2] - model.geom_size[face][2]
    assert abs(tcp.xpos[2] - low) < 1e-6


def test_a_stick_ends_150_mm_before_the_flange_and_draws_with_its_end() -> None:
    """The length and radius of ManiSkill3's panda_stick.urdf: a rod of 8 mm from 0.05 to 0.15 m."""
    built, model = compiled("panda+stick")
    bare, without = compiled("panda+none")
    tcp, flange = at_rest(built, model).body(PREFIX + "tcp"), at_rest(bare, without).body(PREFIX + "tcp")
    frame = flange.xmat.reshape(3, 3)
    assert np.allclose(frame.T @ (tcp.xpos - flange.xpos), (0, 0, 0.15), atol=1e-9)
    rod, data = model.geom(PREFIX + "stick"), at_rest(built, model)
    assert np.allclose(rod.size[:2], (0.008, 0.05))
    middle = frame.T @ (data.geom_xpos[rod.id] - flange.xpos)
    assert np.allclose(middle, (0, 0, 0.1), atol=1e-9) and not built.gripper_actuators


# -- every arm with every gripper -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arm_name", arms())
def test_every_arm_takes_every_gripper(arm_name: str) -> None:
    """Builds, starts without a contact between arm and gripper, holds its pose and closes; or says that it cannot."""
    spec = arm(arm_name)
    for name in (*grippers(), "none"):
        word = f"{arm_name}+{name}"
        hand = None if name == "none" else gripper(name)
        own = hand is not None and not hand.links
        if (not spec.flange_body) != (own and spec.gripper == name) or (own and spec.gripper != name):
            with pytest.raises(ConfigError, match=r"part of its arm's model|has its own gripper"):
                make(word)
            continue
        built, model = scene(word)
        data = at_rest(built, model)
        touching = {tuple(sorted(model.body(model.geom_bodyid[g]).name for g in c.geom)) for c in data.contact}
        assert not touching, (word, touching)
        tcp = data.body(PREFIX + "tcp")
        start = tcp.xpos.copy()
        n = len(built.arm_joints)
        data.ctrl[n:] = built.gripper.closed_q if built.gripper else ()
        for _ in range(30):
            mujoco.mj_step(model, data)
        assert np.isfinite(data.qpos).all() and not np.any(data.warning.number), word
        moved = np.linalg.norm(tcp.xpos - start)
        assert moved < (2e-3 if spec.gravcomp else 0.05), (word, moved)
