"""A robot of your own: URDF and MJCF files read, what is wrong with them said, with the line to change."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from gripped import Gripped
from manikin.assets import meshes as mesh_files
from manikin.assets import urdf
from manikin.assets.paths import data_root
from manikin.author.robot.check import check_robot
from manikin.errors import AssetError, ConfigError, SceneError, UnknownNameError
from manikin.grippers import gripper
from manikin.grippers import register as register_gripper
from manikin.robots import RobotSelection, arms, from_file, gripper_from_file, register, robot
from manikin.scene.robot import assemble
from manikin.spec.robot import Finger, Gains
from own_arm import OPTIONS, REST, arm_text, joint, link
from test_robots import HAVE_MENAGERIE, needs_menagerie

trimesh = pytest.importorskip("trimesh")
H = 0.5**0.5

# -- reading ----------------------------------------------------------------------------------------------------------


def test_urdf_becomes_an_arm(six: Path) -> None:
    spec = from_file(six, gripper="panda_hand", **OPTIONS)
    assert spec.name == "six" and spec.joints == tuple(f"joint{i}" for i in range(1, 7))
    assert spec.flange_body == "link6"
    assert np.allclose(spec.gains.kd, 60 / 2) and np.allclose(spec.gains.kp, 300) and spec.gains.force == (60,) * 6
    built = assemble(spec, gripper("panda_hand"))
    model = built.spec.compile()
    assert model.nu == 8 and model.nq == 8
    assert np.isclose(model.body_mass.sum(), 4 + 1.5 + 0.73 + 0.03)
    # stretched upwards at zero: the kinematics are the file's
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    assert np.allclose(data.body("link6").xpos, (0, 0, 1.1)) and np.allclose(
        data.body("tcp").xpos, (0, 0, 1.18 + 0.1034)
    )
    shown = [model.geom_group[model.geom_bodyid == model.body("link3").id].tolist()]
    assert sorted(shown[0]) == [2, 3]  # what collides is not shown beside what is seen


def test_an_own_robot_runs_a_task(six: Path) -> None:
    register(from_file(six, gripper="rethink", **OPTIONS))
    assert "six" in arms() and robot("six+robotiq_2f85").arm is robot("six").arm
    env = manikin.make("PickCube-v2", num_envs=2, robot="six", autoreset="disabled")
    env.reset(seed=0)
    before = env.h.robot.tcp_pos.clone()
    action = torch.zeros(2, env.controller.card.size)
    action[:, 0] = 1
    for _ in range(10):
        env.step(action)
    assert (env.h.robot.tcp_pos - before).norm(dim=1).min() > 0.05
    env.close()
    with pytest.raises(ConfigError, match="cannot be called 'panda'"):
        register(replace(robot("six").arm, name="panda"))
    with pytest.raises(ConfigError, match=r"cannot be called 'my\+arm'"):
        register(replace(robot("six").arm, name="my+arm"))
    with pytest.raises(ConfigError, match="cannot be called 'none'"):
        register_gripper(replace(gripper("rethink"), name="none"))


def test_mimic_joints_follow(tmp_path: Path) -> None:
    """The jaw is part of the file: one finger is driven, the other mimics it half as far."""
    limit = 'lower="0" upper="0.04" effort="20" velocity="0.2"'
    text = arm_text(
        left=link("left", 0.1, size=".02 .005 .04", at=0.1),
        right=link("right", 0.1, size=".02 .005 .04", at=0.1),
        jaw=joint("jaw", "link6", "left", 0.05, "0 1 0", kind="prismatic", limit=limit),
        jaw2=joint(
            "jaw2",
            "link6",
            "right",
            0.05,
            "0 -1 0",
            kind="prismatic",
            limit=limit,
            more='<mimic joint="jaw" multiplier="0.5"/>',
        ),
    )
    path = tmp_path / "jawed.urdf"
    path.write_text(text)
    hand = gripper_from_file(
        path,
        name="jawed_jaw",
        part_of_arm=True,
        drivers=["jaw"],
        open_q=[0.04],
        closed_q=[-0.01],
        fingers=[Finger(body="left", closing=(0, -1, 0)), Finger(body="right", closing=(0, 1, 0))],
        tcp_body="link6",
        tcp_pos=(0, 0, 0.15),
    )
    assert hand.joints == ("jaw", "jaw2") and hand.followers == {"jaw2": ("jaw", 0.5)}
    spec = from_file(path, gripper=hand, rest=REST)
    assert spec.joints == tuple(f"joint{i}" for i in range(1, 7)) and spec.gripper == "jawed_jaw"
    built = assemble(spec, hand)
    model = built.spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:6] = data.ctrl[:6] = REST
    data.qpos[6:] = built.gripper_qpos(0.6)
    data.ctrl[6] = 0.03
    for _ in range(1000):
        mujoco.mj_step(model, data)
    assert np.allclose(data.qpos[6:], (0.03, 0.015), atol=1e-3)
    with pytest.raises(UnknownNameError, match=r"joint of jawed.urdf 'claw'.*Valid: .*jaw, jaw2"):
        gripper_from_file(
            path, drivers=["claw"], open_q=[1], closed_q=[0], fingers=[], tcp_body="link6", tcp_pos=(0, 0, 0)
        )


@needs_menagerie
def test_mjcf_becomes_an_arm_with_its_gains_and_keyframe() -> None:
    from manikin.assets import menagerie

    path = menagerie.root() / "universal_robots_ur5e" / "ur5e.xml"
    mine, built_in = from_file(path, gripper="robotiq_2f85", name="my_ur"), robot("ur5e").arm
    assert mine.joints == built_in.joints
    assert mine.gains.kp == (2000, 2000, 2000, 500, 500, 500) and mine.gains.force == (150, 150, 150, 28, 28, 28)
    assert np.allclose(mine.keyframes["rest"], (-1.5708, -1.5708, 1.5708, -1.5708, -1.5708, 0))
    a, b = (
        assemble(s, None).spec.compile()
        for s in (replace(mine, flange_pos=built_in.flange_pos, flange_quat=built_in.flange_quat), built_in)
    )
    da, db = mujoco.MjData(a), mujoco.MjData(b)
    rng = np.random.default_rng(0)
    for _ in range(10):
        da.qpos[:] = db.qpos[:] = rng.uniform(-3, 3, 6)
        mujoco.mj_kinematics(a, da)
        mujoco.mj_kinematics(b, db)
        assert np.allclose(da.body("tcp").xpos, db.body("tcp").xpos, atol=1e-5)


def test_mjcf_keeps_damping_ratios_and_bodies_that_may_overlap(tmp_path: Path) -> None:
    def bar(name: str, axis: str, inside: str = "") -> str:
        inertial = '<inertial pos="0 0 0" mass="2" diaginertia=".5 .5 .5"/>'
        return f'<body name="{name}"><joint name="{name}" axis="{axis}"/>{inertial}<geom size=".1"/>{inside}</body>'

    path = tmp_path / "two.xml"
    path.write_text(
        f"""<mujoco><worldbody>
        <body name="base"><geom size=".1"/>{bar("a", "0 1 0", bar("b", "1 0 0"))}</body></worldbody>
        <contact><exclude body1="base" body2="a"/><exclude body1="base" body2="b"/></contact>
        <actuator><position joint="a" kp="100" dampratio=".5" forcerange="-9 9"/>
        <position joint="b" kp="100" kv="3" forcerange="-9 9"/></actuator></mujoco>"""
    )
    arm = from_file(path, excludes=(("a", "b"),))
    assert arm.gains.kd == pytest.approx((0.5 * 2 * np.sqrt(100 * (0.5 + 0.5)), 3.0))  # a turns both
    assert arm.excludes == (("base", "a"), ("base", "b"), ("a", "b"))
    assert not [f for f in check_robot(RobotSelection(arm, None, True)) if f.lint == "collision"]


@needs_menagerie
def test_mjcf_gripper_attaches_to_any_arm() -> None:
    from manikin.assets import menagerie

    hand = gripper_from_file(
        menagerie.root() / "franka_emika_panda" / "hand.xml",
        name="my_hand",
        drivers=["finger_joint1", "finger_joint2"],
        open_q=[0.04, 0.04],
        closed_q=[-0.01, -0.01],
        fingers=gripper("panda_hand").fingers,
        tcp_body="hand",
        tcp_pos=(0, 0, 0.1034),
        gains=gripper("panda_hand").gains,
        excludes=gripper("panda_hand").excludes,
    )
    register_gripper(hand)
    word = robot("xarm7+my_hand")
    assert not [f for f in check_robot(word) if f.error]
    mine, theirs = (assemble(r.arm, r.gripper).spec.compile() for r in (word, robot("xarm7+panda_hand")))
    assert np.allclose(mine.body("tcp").pos, theirs.body("tcp").pos)
    assert np.allclose(mine.jnt_range, theirs.jnt_range)


@pytest.mark.skipif(not HAVE_MENAGERIE or data_root() is None, reason="MANIKIN_DATA is not set")
@pytest.mark.parametrize(
    "file, joints, gains",
    [
        ("simpler/descriptions/widowx_description/wx250s.urdf", 7, False),
        ("collins2020/urdf/m1n6s300_mujoco.urdf", 6, True),
    ],
)
def test_real_files(file: str, joints: int, gains: bool, cache: Path) -> None:
    path = data_root() / file
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    given = {}
    if gains:  # the file limits no velocity
        with pytest.raises(ConfigError, match=r"'m1n6s300_joint_1' has no effort and velocity"):
            from_file(path)
        servos = Gains(kp=(100,) * 6, kd=(10,) * 6, force=(20,) * 6, source="chosen")
        given = {"gains": servos, "joints": [f"m1n6s300_joint_{i}" for i in range(1, 7)]}
    model = assemble(from_file(path, **given), None).spec.compile()
    assert model.nq == model.nu == joints and model.body_mass.sum() > 1 and model.nmesh > 3


# -- meshes -----------------------------------------------------------------------------------------------------------


def meshed(path: Path, filename: str, kind: str = "visual") -> None:
    shape = f'<{kind}><geometry><mesh filename="{filename}" scale="2 2 2"/></geometry></{kind}>'
    path.write_text(arm_text(link3=link("link3").replace("</link>", f"{shape}</link>")))


def extents(path: Path, **options: object) -> np.ndarray:
    """Of all mesh geoms together, in their body's frame (they lie at its origin)."""
    model = urdf.load(path, **options).compile()
    assert model.nmesh
    corners = []
    for g in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_MESH):
        k = model.geom_dataid[g]
        vertices = model.mesh_vert[model.mesh_vertadr[k] :][: model.mesh_vertnum[k]]
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, model.geom_quat[g])
        corners.append(vertices @ turn.reshape(3, 3).T + model.geom_pos[g])
    return np.ptp(np.concatenate(corners), 0)


@pytest.mark.parametrize("suffix", ["stl", "obj", "glb", "dae"])
def test_meshes_of_every_format_keep_their_size(suffix: str, tmp_path: Path, cache: Path) -> None:
    if suffix == "dae":
        pytest.importorskip("collada")
    trimesh.creation.box((0.1, 0.06, 0.04)).export(tmp_path / f"part.{suffix}")
    path = tmp_path / "six.urdf"
    meshed(path, f"part.{suffix}")
    assert np.allclose(extents(path), (0.2, 0.12, 0.08), atol=1e-5)
    kept = sorted(p.name for p in (cache / "meshes").iterdir())
    assert any(name.startswith("part-") for name in kept)
    stamps = {p.name: p.stat().st_mtime_ns for p in (cache / "meshes").iterdir()}
    urdf.load(path)
    assert stamps == {p.name: p.stat().st_mtime_ns for p in (cache / "meshes").iterdir()}  # nothing made again


def test_package_paths(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found above the file, in ROS_PACKAGE_PATH, or where told; two meshes of one name stay two."""
    for folder, size in (("visual", 0.1), ("collision", 0.2)):
        place = tmp_path / "ws" / "six_description" / "meshes" / folder
        place.mkdir(parents=True)
        trimesh.creation.box((size, size, size)).export(place / "part.stl")
    path = tmp_path / "ws" / "six_description" / "urdf" / "six.urdf"
    path.parent.mkdir()
    meshed(path, "package://six_description/meshes/visual/part.stl")
    text = path.read_text()
    path.write_text(
        text.replace(
            "</visual></link>",
            '</visual><collision><geometry><mesh filename="package://six_description/meshes/collision/part.stl"/>'
            "</geometry></collision></link>",
        )
    )
    model = urdf.load(path).compile()
    assert model.nmesh == 2
    assert np.allclose(extents(path), 0.2)
    elsewhere = tmp_path / "elsewhere.urdf"
    shutil.copy(path, elsewhere)
    with pytest.raises(AssetError, match=r"packages=\{'six_description'"):
        urdf.load(elsewhere)
    assert np.allclose(extents(elsewhere, packages={"six_description": str(tmp_path / "ws/six_description")}), 0.2)
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ws"))
    assert np.allclose(extents(elsewhere), 0.2)


def test_convex_pieces_leave_the_hollow_open(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A U: one hull would fill it; its pieces let a ball lie inside, and are made once."""
    pytest.importorskip("coacd")
    quick = {"threshold": 0.2, "max_convex_hull": 5, "mcts_iterations": 20, "preprocess_resolution": 20, "seed": 0}
    monkeypatch.setattr(mesh_files, "CONVEX", quick)
    upright = (0.02, 0.02, 0.1)
    places = (((0.1, 0.02, 0.02), (0, 0, 0)), (upright, (-0.04, 0, 0.05)), (upright, (0.04, 0, 0.05)))
    bars = [trimesh.creation.box(size, trimesh.transformations.translation_matrix(at)) for size, at in places]
    trimesh.util.concatenate(bars).export(tmp_path / "u.stl")
    path = tmp_path / "six.urdf"
    meshed(path, "u.stl", "collision")
    inside = {}
    for convex in (False, True):
        spec = urdf.load(path, convex=convex)
        ball = spec.body("link3").add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(0.01, 0, 0), pos=(0, 0, 0.12))
        ball.name = "ball"
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        meshes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_MESH)
        inside[convex] = min(
            mujoco.mj_geomDistance(model, data, model.geom("ball").id, int(g), 1.0, None) for g in meshes
        )
        assert (len(meshes) > 2) is convex
    assert inside[False] < 0 < inside[True]


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        ("<robot", "six.urdf: "),
        ("<mujoco/>", "begins with <robot>, this file with <mujoco>"),
        (
            arm_text(joint3=joint("joint3", "link2", "nowhere", 0, "0 0 1")),
            "'joint3' has no link 'nowhere' as its child",
        ),
        (arm_text(loose=link("loose")), "one root link; this one has link0, loose"),
    ],
)
def test_files_that_are_no_robot(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "six.urdf"
    path.write_text(text)
    with pytest.raises(SceneError, match=message):
        from_file(path)


def test_what_is_missing_is_said(tmp_path: Path, six: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssetError, match=r"there is no file .*gone.urdf"):
        from_file(tmp_path / "gone.urdf")
    with pytest.raises(UnknownNameError, match=r"joint of six.urdf 'joint9'.*Did you mean"):
        from_file(six, joints=["joint9"])
    path = tmp_path / "weak.urdf"
    path.write_text(arm_text(joint2=joint("joint2", "link1", "link2", 0.2, "0 1 0", limit='lower="-1" upper="1"')))
    with pytest.raises(ConfigError, match=r"'joint2' has no effort and velocity .* or give gains=Gains"):
        from_file(path)
    assert from_file(path, gains=Gains(kp=(1,) * 6, kd=(1,) * 6, force=(1,) * 6, source="mine")).gains.source == "mine"
    meshed(path, "lost.stl")
    with pytest.raises(AssetError, match=r"needs 'lost.stl'"):
        from_file(path)
    (tmp_path / "part.glb").write_bytes(b"no mesh at all")
    meshed(path, "part.glb")
    with pytest.raises(SceneError, match=r"trimesh cannot read .*part.glb"):
        from_file(path)
    monkeypatch.setattr(mesh_files.importlib, "import_module", _no_module)
    with pytest.raises(ConfigError, match=r"reading .glb meshes needs trimesh: pip install 'manikin\[meshes\]'"):
        from_file(path)


def _no_module(name: str) -> object:
    raise ImportError(name)


def test_mjcf_without_servos_says_what_to_add(tmp_path: Path) -> None:
    body = '<body name="a"><joint name="j" range="-1 1"/><geom size=".1"/></body>'
    path = tmp_path / "bare.xml"
    path.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.raises(ConfigError, match="no position actuator on 'j'; add one, <position joint='j'"):
        from_file(path)
    path.write_text(f'<mujoco><worldbody>{body}<body name="b"><geom size=".1"/></body></worldbody></mujoco>')
    with pytest.raises(SceneError, match=r"has 'a', 'b' in the world; say which is the robot: root="):
        from_file(path)
    with pytest.raises(UnknownNameError, match=r"body of bare.xml 'c'"):
        from_file(path, root="c")
    path.write_text('<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body></worldbody></mujoco>')
    with pytest.raises(SceneError, match="'a' floats"):
        from_file(path)


def test_gripped_works_with_an_own_arm(six: Path) -> None:
    """The grasp check, sensors and inverse kinematics need nothing that a file does not give."""
    register(replace(from_file(six, gripper="panda_hand", **OPTIONS), name="six_again"))
    env = manikin.make(Gripped, num_envs=1, robot="six_again", reward="none", config={"tactile": False})
    env.reset(seed=0)
    assert not bool(env.h.grasp.value) and env.h.touch.value.shape[1] == 2
    env.close()
