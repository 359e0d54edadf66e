"""Robots as data and as assembled models. The reference is MuJoCo itself on the makers' models (MuJoCo Menagerie)."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manikin.arenas.table import table
from manikin.assets import menagerie
from manikin.errors import AssetError, ConfigError, SceneError, UnknownNameError
from manikin.grippers import gripper, grippers
from manikin.robots import arm, arms, parse_robots, robot, teams
from manikin.scene.builder import SceneBuilder
from manikin.scene.robot import RobotModel, assemble
from manikin.spec.physics import Physics
from manikin.spec.robot import Gains, MenagerieModel

HAVE_MENAGERIE = bool(os.environ.get("MENAGERIE_ROOT") or os.environ.get("MANIKIN_DATA"))
needs_menagerie = pytest.mark.skipif(not HAVE_MENAGERIE, reason="neither MENAGERIE_ROOT nor MANIKIN_DATA is set")
needs_data = pytest.mark.skipif(not os.environ.get("MANIKIN_DATA"), reason="MANIKIN_DATA is not set")

TEAM = tuple(member for word in teams() for member in (r.arm.name for r in parse_robots(word)))
DEFAULT = tuple(name for name in arms() if name not in TEAM or name == "baxter_right")  # aloha's are viperx elsewhere


def meshed(name: str, model: MenagerieModel) -> object:
    """A name as a parameter of a test that needs the maker's model."""
    return pytest.param(name, marks=needs_menagerie if model.collection == "menagerie" else needs_data)


MESHED = tuple(meshed(name, arm(name).menagerie) for name in arms() if arm(name).menagerie is not None)
CROSSED = ("panda+robotiq_2f85", "ur5e+panda_hand", "xarm7+panda_hand", "panda+xarm_gripper")
FIRST = ("panda", "ur5e", "xarm7", "so101")
THREE_FINGERS = ("jaco", "kinova_mico")
MAKERS = tuple(pytest.param(f"{w}:menagerie", marks=needs_menagerie) for w in (*FIRST, *CROSSED[:2]))
ALL = (*DEFAULT, *CROSSED, *MAKERS)
PREFIX = "robot/"


def make(word: str) -> RobotModel:
    spec = robot(word)
    return assemble(spec.arm, spec.gripper, menagerie=spec.menagerie)


def scene(word: str, *, table: tuple[float, ...] | None = None, cube: float = 0.0) -> tuple[RobotModel, mujoco.MjModel]:
    """The robot at its base placement, perhaps over a table top at ``table`` with a free 0.1 kg cube."""
    built = make(word)
    parent = mujoco.MjSpec()
    parent.option.timestep = 0.005
    parent.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    parent.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    parent.option.impratio = 10
    frame = parent.worldbody.add_frame(pos=built.arm.base_pos, quat=built.arm.base_quat)
    parent.attach(built.spec, frame=frame, prefix=PREFIX)
    if table is not None:
        size = [cube] * 3
        parent.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=(0.15, 0.15, 0.01), pos=table)
        body = parent.worldbody.add_body(name="cube")
        body.add_freejoint()
        geom = body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=size, mass=0.1, friction=(1, 0.005, 0.0001))
        geom.solref[:2] = (0.01, 1)
    return built, parent.compile()


@functools.cache
def compiled(word: str) -> tuple[RobotModel, mujoco.MjModel]:
    return scene(word)


def at_rest(built: RobotModel, model: mujoco.MjModel, gripper: float = 1.0) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[addresses(built, model)] = built.qpos(gripper=gripper)
    opened = built.gripper.open_q if built.gripper is not None else ()
    data.ctrl[:] = np.concatenate([built.arm_qpos(), opened])
    mujoco.mj_forward(model, data)
    return data


def addresses(built: RobotModel, model: mujoco.MjModel) -> np.ndarray:
    return np.array([model.joint(PREFIX + name).qposadr[0] for name in built.joints])


def arm_limits(built: RobotModel, model: mujoco.MjModel) -> np.ndarray:
    return np.array([model.actuator(PREFIX + name).ctrlrange for name in built.arm_actuators]).T


# -- names ------------------------------------------------------------------------------------------------------------


def test_names_are_listed_and_unknown_ones_refused() -> None:
    assert {"panda", "so101", "ur5e", "xarm7"} < set(arms()) and arms() == tuple(sorted(arms()))
    assert {"panda_hand", "robotiq_2f85", "so101_jaw", "xarm_gripper"} < set(grippers())
    for name in arms():
        assert arm(name).name == name
        assert arm(name).gripper in grippers()
    for name in grippers():
        assert gripper(name).name == name
    with pytest.raises(
        UnknownNameError, match=r"unknown robot 'pandda'. Did you mean 'panda'\? Valid: allegro, allegro_left, aloha_l"
    ):
        arm("pandda")
    with pytest.raises(UnknownNameError, match=r"unknown gripper 'claw'.* Valid: .*panda_hand"):
        gripper("claw")


def test_robot_words() -> None:
    assert robot("panda") == (arm("panda"), gripper("panda_hand"), False)
    assert robot("ur5e:menagerie") == (arm("ur5e"), gripper("robotiq_2f85"), True)
    assert robot("panda+robotiq_2f85:menagerie") == (arm("panda"), gripper("robotiq_2f85"), True)
    assert robot("so101:builtin") == (arm("so101"), gripper("so101_jaw"), False)
    with pytest.raises(UnknownNameError, match=r"robot model 'meshes'.*Valid: builtin, menagerie"):
        robot("panda:meshes")
    with pytest.raises(UnknownNameError, match="gripper ''"):
        robot("panda+")


def test_the_page_of_robots_lists_each_as_it_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "robots.md").read_text().split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")
    ]
    assert [row[0] for row in rows] == [f"`{name}`" for name in arms()]
    for row in rows:
        spec = arm(row[0].strip("`"))
        assert row[1:3] == [spec.title, str(len(spec.joints))]
        assert row[3:5] == [f"{figure:g}" if figure else "?" for figure in (spec.reach, spec.payload)]
        assert row[5] == f"`{spec.gripper}`" and row[6].startswith("yes" if spec.gravcomp else "no")
        assert (row[7] == "no") == (spec.menagerie is None)


def test_registry_imports_no_robot_until_asked() -> None:
    code = "import sys, manikin.robots as r; assert 'manikin.robots.panda' not in sys.modules; r.arm('panda')"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


# -- built-in models against the makers' ------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [*MESHED, *(pytest.param(w, marks=needs_menagerie) for w in CROSSED[:2])])
def test_same_qpos_gives_the_same_poses(word: str) -> None:
    built, mine = compiled(word)
    _, theirs = compiled(f"{word}:menagerie")
    assert [mine.joint(i).name for i in range(mine.njnt)] == [theirs.joint(i).name for i in range(theirs.njnt)]
    rng = np.random.default_rng(0)
    a, b = mujoco.MjData(mine), mujoco.MjData(theirs)
    low, high = mine.jnt_range.T
    for _ in range(50):
        a.qpos[:] = b.qpos[:] = rng.uniform(np.maximum(low, -3), np.minimum(high, 3))
        mujoco.mj_kinematics(mine, a)
        mujoco.mj_kinematics(theirs, b)
        for name in built.bodies:
            one, two = a.body(PREFIX + name), b.body(PREFIX + name)
            assert np.linalg.norm(one.xpos - two.xpos) < 1e-4, name
            turn = one.xmat.reshape(3, 3).T @ two.xmat.reshape(3, 3)
            assert np.linalg.norm(turn - np.eye(3)) < np.radians(0.01), name


def body_inertia(model: mujoco.MjModel, name: str) -> tuple[float, np.ndarray, np.ndarray]:
    body = model.body(name)
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    axes = axes.reshape(3, 3)
    return float(body.mass[0]), body.ipos, axes @ np.diag(body.inertia) @ axes.T


@pytest.mark.parametrize("word", MESHED)
def test_mass_and_inertia_of_every_link_are_the_makers(word: str) -> None:
    built, mine = compiled(word)
    theirs = compiled(f"{word}:menagerie")[1]
    assert np.isclose(mine.body_mass.sum(), theirs.body_mass.sum(), rtol=1e-5)
    for name in built.bodies:
        mass, com, inertia = body_inertia(mine, PREFIX + name)
        mass_m, com_m, inertia_m = body_inertia(theirs, PREFIX + name)
        assert np.isclose(mass, mass_m, rtol=1e-4), name
        assert np.allclose(com, com_m, atol=1e-5), name
        assert np.allclose(inertia, inertia_m, atol=2e-3 * np.abs(inertia_m).max()), name


@pytest.mark.parametrize("word", MESHED)
def test_joints_axes_and_limits_are_the_makers_file(word: str) -> None:
    spec = robot(word)
    mine = compiled(word)[1]
    checked = 0
    hand = spec.gripper
    own = (
        not hand.links
    )  # a jaw that is part of the arm; other grippers' limits are in test_grippers, which narrows some
    added = {j.name for link in spec.arm.links if link.name in spec.arm.menagerie.own_joints for j in link.joints}
    joints = (*(j for j in spec.arm.joints if j not in added), *(hand.joints if own or word in FIRST else ()))
    for part in (spec.arm, hand) if word in FIRST else (spec.arm,):
        if part.menagerie is None:
            continue
        theirs = mujoco.MjModel.from_xml_path(str(menagerie.find(part.menagerie)))  # untouched
        for i in range(theirs.njnt):
            joint = theirs.joint(i)
            name = joint.name.removeprefix(part.menagerie.prefix)
            name = part.menagerie.rename.get(name, name)
            if joint.name in part.menagerie.drop or name not in joints:
                continue  # the other half of a file that has arm and gripper, or two arms
            ours = mine.joint(PREFIX + name)
            assert np.allclose(ours.range, joint.range, atol=1e-6), joint.name
            assert np.allclose(ours.axis, joint.axis) and np.allclose(ours.pos, joint.pos), joint.name
            assert ours.type[0] == joint.type[0]
            checked += 1
    assert checked == len(joints)


@pytest.mark.parametrize("word", MESHED)
def test_makers_model_moves_like_ours(word: str) -> None:
    """Passive properties, gains, couplings: the same control gives the same motion in the air."""
    ends = []
    for w in (word, f"{word}:menagerie"):
        built, model = compiled(w)
        data = at_rest(built, model)
        data.ctrl[: len(built.arm_joints)] += 0.05
        data.ctrl[len(built.arm_joints) :] = 0.5 * (np.array(built.gripper.open_q) + built.gripper.closed_q)
        for _ in range(60):
            mujoco.mj_step(model, data)
        ends.append(data.qpos[addresses(built, model)].copy())
    assert np.abs(ends[0] - ends[1]).max() < 2e-3


# -- what assembling does ---------------------------------------------------------------------------------------------


def test_panda_tcp_is_1034_mm_beyond_the_hand() -> None:
    built, model = compiled("panda")
    data = at_rest(built, model)
    hand, tcp = data.body(PREFIX + "hand"), data.body(PREFIX + built.tcp_body)
    offset = hand.xmat.reshape(3, 3).T @ (tcp.xpos - hand.xpos)
    assert np.allclose(offset, (0, 0, 0.1034), atol=1e-9)
    assert np.allclose(built.arm_qpos(), (0, np.pi / 8, 0, -5 * np.pi / 8, 0, 3 * np.pi / 4, np.pi / 4))
    assert np.allclose(data.qpos[-2:], 0.04)


@pytest.mark.parametrize("word", ALL)
def test_assembled_model(word: str) -> None:
    built, model = compiled(word)
    hand = built.gripper
    assert hand is not None
    names = [model.joint(i).name for i in range(model.njnt)]
    assert names == [PREFIX + name for name in built.joints]
    assert [model.actuator(i).name for i in range(model.nu)] == [PREFIX + name for name in built.actuators]
    assert model.nkey == model.ntendon == model.nsensor == model.nlight == 0
    gains = [(kp, force) for g in (built.arm.gains, hand.gains) for kp, force in zip(g.kp, g.force, strict=True)]
    assert np.allclose(model.actuator_gainprm[:, 0], [kp for kp, _ in gains])
    assert np.allclose(model.actuator_biasprm[:, :3], [(0, -kp, 0) for kp, _ in gains])
    assert np.allclose(model.actuator_forcerange, [(-f, f) for _, f in gains])
    assert model.actuator_forcelimited.all() and model.actuator_ctrllimited.all()
    damping = {
        **dict(zip(built.arm_joints, built.arm.gains.kd, strict=True)),
        **dict(zip(hand.drivers, hand.gains.kd, strict=True)),
    }
    for name, kd in damping.items():
        assert model.joint(PREFIX + name).damping[0] == kd
    assert np.allclose(model.actuator_ctrlrange[: len(built.arm_joints)], arm_limits(built, model).T)
    assert np.allclose(model.body_gravcomp[model.body_mass > 0], float(built.arm.gravcomp))
    assert set(model.geom_group) <= {2, 3}
    seen = (model.geom_contype == 0) & (model.geom_conaffinity == 0)
    assert (model.geom_group[seen] == 2).all()
    assert np.allclose(model.geom_solref[~seen], (0.01, 1))
    assert built.pad_geoms
    for name in built.pad_geoms:
        geom = model.geom(PREFIX + name)
        assert np.allclose(geom.friction, (hand.pad_friction, 0.02, 0.0001))
        assert geom.condim[0] == 4 and geom.priority[0] == 1
        assert model.body(geom.bodyid[0]).name.removeprefix(PREFIX) in built.finger_bodies
    assert model.body(PREFIX + built.tcp_body).mass[0] == 0


@pytest.mark.parametrize("word", [w for w in ALL if w not in THREE_FINGERS])
def test_fingers_close_along_the_tcp_y_axis(word: str) -> None:
    built, model = compiled(word)
    data = at_rest(built, model, gripper=0.5)
    frame = data.body(PREFIX + built.tcp_body).xmat.reshape(3, 3)
    closing = [frame.T @ data.site(PREFIX + s).xmat.reshape(3, 3)[:, 2] for s in built.finger_sites]
    assert len(closing) == 2
    if built.gripper.name not in ("so100_jaw", "so101_jaw", "koch_jaw", "google_gripper"):  # those swing
        assert np.allclose(closing[0], -closing[1], atol=0.05)
    assert abs(closing[0][1]) > 0.99
    # each finger presses towards the other one
    pads = [data.geom(PREFIX + n) for n in built.pad_geoms]
    of = {
        k: np.mean(
            [
                frame.T @ g.xpos
                for g, n in zip(pads, built.pad_geoms, strict=True)
                if model.body(model.geom(PREFIX + n).bodyid[0]).name == PREFIX + body
            ],
            axis=0,
        )
        for k, body in enumerate(built.finger_bodies)
    }
    assert (of[1] - of[0]) @ closing[0] > 0
    assert (of[0] - of[1]) @ closing[1] > 0


def pad_gap(built: RobotModel, model: mujoco.MjModel, data: mujoco.MjData) -> float:
    sides = [[], []]
    for name in built.pad_geoms:
        geom = model.geom(PREFIX + name)
        sides[built.finger_bodies.index(model.body(geom.bodyid[0]).name.removeprefix(PREFIX))].append(geom.id)
    return min(mujoco.mj_geomDistance(model, data, a, b, 0.2, None) for a in sides[0] for b in sides[1])


@pytest.mark.parametrize("word", ["panda", "ur5e", "xarm7", *MAKERS[:3]])
def test_pads_are_as_far_apart_as_the_maker_says(word: str) -> None:
    built, model = compiled(word)
    assert abs(pad_gap(built, model, at_rest(built, model)) - built.gripper.max_width) < 4e-3
    assert pad_gap(built, model, at_rest(built, model, gripper=0.0)) < 2e-3


@pytest.mark.parametrize("word", ["ur5e", "xarm7"])
@pytest.mark.parametrize("opening", [0.0, 0.3, 1.0])
def test_linkage_positions_close_the_loops(word: str, opening: float) -> None:
    built, model = compiled(word)
    data = at_rest(built, model, gripper=opening)
    assert np.abs(data.efc_pos[data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)]).max() < 1.5e-3


MAKERS = [pytest.param(f"{name}:menagerie", marks=needs_menagerie) for name in ("panda", "so101")]


@pytest.mark.parametrize("word", ["panda", "ur5e", *MAKERS])
def test_attaching_leaves_the_parents_options_and_warns_of_nothing(word: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = scene(word)[1]
        assert model.opt.timestep == 0.005 and model.opt.impratio == 10


def test_two_robots_in_one_scene() -> None:
    parent = mujoco.MjSpec()
    for i, word in enumerate(("panda", "ur5e")):
        parent.attach(make(word).spec, frame=parent.worldbody.add_frame(pos=(0, i, 0)), prefix=f"r{i}/")
    model = parent.compile()
    assert model.body("r0/tcp").id > 0 and model.body("r1/tcp").id > 0
    assert model.nu == 9 + 8


@pytest.mark.parametrize(("word", "apart"), [("aloha", 0.3), ("baxter", 0.3), ("bi_so101", 0.3)])
def test_a_team_rests_in_one_scene_without_touching(word: str, apart: float) -> None:
    parent = mujoco.MjSpec()
    members = [assemble(r.arm, r.gripper, menagerie=r.menagerie) for r in parse_robots(word)]
    for i, member in enumerate(members):
        frame = parent.worldbody.add_frame(pos=member.arm.base_pos, quat=member.arm.base_quat)
        parent.attach(member.spec, frame=frame, prefix=f"r{i}/")
    model = parent.compile()
    data = mujoco.MjData(model)
    for i, member in enumerate(members):
        for name, q in zip(member.joints, member.qpos(), strict=True):
            data.qpos[model.joint(f"r{i}/{name}").qposadr[0]] = q
    mujoco.mj_forward(model, data)
    assert data.ncon == 0
    one, two = data.body("r0/tcp"), data.body("r1/tcp")
    assert np.isclose(np.linalg.norm(one.xpos - two.xpos), apart, atol=2e-3)
    assert np.allclose((one.xpos + two.xpos)[:2], 0, atol=2e-3)
    for tcp in (one, two):
        assert np.allclose(tcp.xmat.reshape(3, 3)[:, 2], (0, 0, -1), atol=1e-3)
    assert parse_robots("panda+xarm_gripper") == (robot("panda+xarm_gripper"),)
    assert [r.menagerie for r in parse_robots("aloha:menagerie")] == [True, True]


@pytest.mark.parametrize("word", [name for name in DEFAULT if arm(name).table_edge is not None])
def test_a_robot_on_the_floor_stands_before_the_table(word: str) -> None:
    builder = SceneBuilder([robot(word)], Physics())
    table(builder)
    builder.robot()
    model = builder.spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    top = next(i for i in range(model.ngeom) if np.isclose(model.geom_size[i, 2], 0.4598))
    near = data.geom_xpos[top, 0] - model.geom_size[top, 0]
    assert near == pytest.approx(arm(word).table_edge)
    assert data.geom_xpos[top, 0] + model.geom_size[top, 0] == pytest.approx(0.4845)
    base = [
        i for i in range(model.ngeom) if model.body(model.geom_bodyid[i]).name == PREFIX + robot(word).arm.links[0].name
    ]
    assert base
    for i in base:
        assert mujoco.mj_geomDistance(model, data, i, top, 1.0, None) > 0.01


def test_an_arm_without_a_gripper_has_its_tcp_at_the_flange() -> None:
    built = assemble(arm("panda"), None)
    model = built.spec.compile()
    assert model.nq == 7 and built.gripper_joints == () and built.finger_sites == ()
    assert np.allclose(model.body("tcp").pos, (0, 0, 0.107))
    assert len(built.qpos()) == 7


def test_pairs_and_specs_that_cannot_work_are_named() -> None:
    with pytest.raises(ConfigError, match="'so101_jaw' is part of its arm's model and does not attach to 'panda'"):
        assemble(arm("panda"), gripper("so101_jaw"))
    with pytest.raises(ConfigError, match=r"'so101' has its own gripper 'so101_jaw'.*cannot have 'panda_hand'"):
        assemble(arm("so101"), gripper("panda_hand"))
    with pytest.raises(ConfigError, match="cannot have nothing"):
        assemble(arm("so101"), None)
    with pytest.raises(ConfigError, match="'panda' has no Menagerie model"):
        assemble(replace(arm("panda"), menagerie=None), None, menagerie=True)
    with pytest.raises(SceneError, match="the model has no body 'elbow'; it has: link0"):
        assemble(replace(arm("panda"), flange_body="elbow"), gripper("panda_hand"))
    with pytest.raises(SceneError, match="the spec says wrong"):
        assemble(replace(arm("panda"), joints=("wrong",)), None)
    short = Gains(kp=(1,), kd=(1,), force=(1,), source="")
    with pytest.raises(SceneError, match=r"7 joints \(joint1.*gains for 1"):
        assemble(replace(arm("panda"), gains=short), None)
    with pytest.raises(UnknownNameError, match=r"keyframe of panda 'home'.*Valid: .*rest"):
        assemble(arm("panda"), None).qpos("home")


def test_menagerie_folder_without_the_robot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "some_robot").mkdir()
    monkeypatch.setenv("MENAGERIE_ROOT", str(tmp_path))
    with pytest.raises(AssetError, match="no robot 'franka_emika_panda'; it has: some_robot"):
        make("panda:menagerie")


# -- behaviour --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ALL)
def test_rest_pose_is_valid_and_free_of_contact(word: str) -> None:
    built, model = compiled(word)
    data = at_rest(built, model)
    low, high = arm_limits(built, model)
    assert (built.arm_qpos() > low).all() and (built.arm_qpos() < high).all()
    assert data.ncon == 0
    tcp = data.body(PREFIX + built.tcp_body)
    assert np.allclose(tcp.xpos[:2], (0, -0.15 if built.arm.name == "baxter_right" else 0), atol=1e-3)
    assert np.allclose(tcp.xmat.reshape(3, 3), np.diag((1, -1, -1)), atol=1e-3)  # z down, x ahead


@pytest.mark.parametrize("word", [*DEFAULT, *CROSSED])
def test_links_do_not_touch_each_other_around_the_rest_pose(word: str) -> None:
    built, model = compiled(word)
    data = at_rest(built, model)
    low, high = arm_limits(built, model)
    rng = np.random.default_rng(1)
    rest, n = built.arm_qpos(), len(built.arm_joints)
    touching = 0
    for _ in range(200):
        data.qpos[addresses(built, model)[:n]] = np.clip(rest + rng.uniform(-0.5, 0.5, n), low, high)
        mujoco.mj_forward(model, data)
        touching += data.ncon > 0
    assert touching < 10  # 5 %


@pytest.mark.parametrize("word", ALL)
def test_servos_hold_the_rest_pose(word: str) -> None:
    built, model = compiled(word)
    data = at_rest(built, model)
    tcp = data.body(PREFIX + built.tcp_body)
    start = tcp.xpos.copy()
    for _ in range(200):
        mujoco.mj_step(model, data)
    before = tcp.xpos.copy()
    for _ in range(200):
        mujoco.mj_step(model, data)
    assert np.linalg.norm(tcp.xpos - before) < 1e-4  # [m] in 1 s
    if built.arm.gravcomp:
        assert np.linalg.norm(tcp.xpos - start) < 1e-4
    else:  # sags under its own weight, as far as its springs let it
        n = len(built.arm_joints)
        sag = data.ctrl[:n] - data.qpos[addresses(built, model)[:n]]
        friction = 1.01 * model.dof_frictionloss[:n] + 1e-3
        assert (np.abs(np.array(built.arm.gains.kp) * sag - data.qfrc_bias[:n]) <= friction).all()
        assert np.linalg.norm(tcp.xpos - start) < (0.025 if built.arm.name == "viperx" else 8e-3)


@pytest.mark.parametrize("word", DEFAULT)
def test_a_step_of_each_joint_settles(word: str) -> None:
    built, model = compiled(word)
    for i, delta in enumerate((0.1,) * len(built.arm_joints)):
        data = at_rest(built, model)
        for _ in range(200):
            mujoco.mj_step(model, data)
        start = data.qpos[i]
        data.ctrl[i] += delta
        for _ in range(400):
            mujoco.mj_step(model, data)
        moved = data.qpos[i] - start
        assert abs(moved / delta - 1) < 0.05, (built.arm_joints[i], moved)


def hold_cube(word: str, seconds: float = 5.0) -> tuple[float, float]:
    """Close on a cube, lift it 5 cm, hold it: how far it rose, and how far it then moved in the hand [m]."""
    half, drop = (0.0125, 0.004) if word.startswith(("so100", "so101", "koch")) else (0.02, 0.0)
    at = at_rest(*compiled(word)).body(PREFIX + "tcp").xpos - (0, 0, drop)
    built, model = scene(word, table=tuple(at - (0, 0, half + 0.0101)), cube=half)
    data = at_rest(built, model)
    adr = model.joint(model.body("cube").jntadr[0]).qposadr[0]
    data.qpos[adr : adr + 3] = at
    n = len(built.arm_joints)
    for phase, steps in (("settle", 50), ("close", 300), ("lift", 100), ("wait", 200), ("hold", int(seconds / 0.005))):
        if phase == "close":
            data.ctrl[n:] = built.gripper.closed_q
        if phase == "hold":
            start, rose = in_hand(data), data.body("cube").xpos[2] - at[2]
        for _ in range(steps):
            if phase == "lift":
                data.ctrl[:n] += up(built, model, data, 0.05 / steps)
            mujoco.mj_step(model, data)
    assert not np.any(data.warning.number)
    return float(rose), float(np.linalg.norm(in_hand(data) - start))


def in_hand(data: mujoco.MjData) -> np.ndarray:
    tcp = data.body(PREFIX + "tcp")
    return tcp.xmat.reshape(3, 3).T @ (data.body("cube").xpos - tcp.xpos)


def up(built: RobotModel, model: mujoco.MjModel, data: mujoco.MjData, dz: float) -> np.ndarray:
    """Joint displacement that lifts the TCP; all six directions where the arm has that many joints."""
    body, n = model.body(PREFIX + "tcp").id, len(built.arm_joints)
    jac = np.zeros((6, model.nv))
    mujoco.mj_jacBody(model, data, jac[:3], jac[3:], body)
    jac = jac[: 3 if n < 6 else 6, :n]
    want = np.zeros(len(jac))
    want[2] = dz
    return jac.T @ np.linalg.solve(jac @ jac.T + 1e-6 * np.eye(len(jac)), want)


@pytest.mark.parametrize("word", ALL)
def test_a_held_cube_stays_in_the_hand(word: str) -> None:
    rose, slipped = hold_cube(word)
    assert rose > 0.04
    assert slipped < (1e-3 if word in THREE_FINGERS else 5e-4)  # which swing, and turn the cube a little
