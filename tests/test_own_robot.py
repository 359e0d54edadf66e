"""A robot of your own: URDF and MJCF files read, what is wrong with them said, with the line to change."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from gripped import Gripped
from manikin.assets import urdf
from manikin.assets.paths import data_root
from manikin.cli import main
from manikin.errors import AssetError, ConfigError, SceneError, UnknownNameError
from manikin.grippers import gripper
from manikin.grippers import register as register_gripper
from manikin.robots import Robot, arms, from_file, gripper_from_file, register, robot
from manikin.robots.check import Reach, check_robot, reach
from manikin.robots.film import film_robot, portrait
from manikin.scene.robot import assemble
from manikin.spec.robot import ArmSpec, Finger, Gains
from test_robots import HAVE_MENAGERIE, needs_menagerie

trimesh = pytest.importorskip("trimesh")
H = 0.5**0.5


def link(name: str, mass: float = 1.0, *, size: str = ".05 .05 .2", at: float = 0.1, inertia: bool = True) -> str:
    ixx = mass * 0.01
    text = f'<inertial><mass value="{mass}"/><origin xyz="0 0 {at}"/>' if inertia else ""
    text += f'<inertia ixx="{ixx}" iyy="{ixx}" izz="{ixx}" ixy="0" ixz="0" iyz="0"/></inertial>\n  ' if inertia else ""
    shape = f'<origin xyz="0 0 {at}"/><geometry><box size="{size}"/></geometry>'
    return f'<link name="{name}">\n  {text}<collision>{shape}</collision><visual>{shape}</visual>\n</link>\n'


def joint(
    name: str, parent: str, child: str, z: float, axis: str, *, kind: str = "revolute", limit: str = "", more: str = ""
) -> str:
    limit = limit or 'lower="-2.5" upper="2.5" effort="60" velocity="2"'
    return (
        f'<joint name="{name}" type="{kind}">\n  <parent link="{parent}"/><child link="{child}"/>\n'
        f'  <origin xyz="0 0 {z}"/><axis xyz="{axis}"/>\n  <limit {limit}/>{more}\n</joint>\n'
    )


def arm_text(**changes: str) -> str:
    """Six joints, 0.25 m apart, the wrist shorter."""
    parts = {f"link{i}": link(f"link{i}") for i in range(4)}
    parts |= {f"link{i}": link(f"link{i}", 0.5, size=".04 .04 .06", at=0.04) for i in (4, 5, 6)}
    places = [(0.2, "0 0 1"), (0.2, "0 1 0"), (0.25, "0 1 0"), (0.25, "0 0 1"), (0.1, "0 1 0"), (0.1, "0 0 1")]
    parts |= {
        f"joint{i}": joint(f"joint{i}", f"link{i - 1}", f"link{i}", z, axis) for i, (z, axis) in enumerate(places, 1)
    }
    parts |= changes
    return '<?xml version="1.0"?>\n<robot name="six">\n' + "".join(parts.values()) + "</robot>\n"


REST = (0.0, 0.6, 1.2, 0.0, 1.34, 0.0)
OPTIONS = dict(
    rest=REST,
    flange_pos=(0, 0, 0.08),
    base_pos=(-0.5, 0, 0),
    excludes=(("link3", "link5"), ("link4", "link6")),
)


@pytest.fixture
def six(tmp_path: Path) -> Path:
    path = tmp_path / "six.urdf"
    path.write_text(arm_text())
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
    env = manikin.make("PickCube-v1", num_envs=2, robot="six", autoreset="disabled")
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
    assert not [f for f in check_robot(Robot(arm, None, True)) if f.lint == "collision"]


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
    monkeypatch.setattr(urdf, "_CONVEX", quick)
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
    monkeypatch.setattr(urdf.importlib, "import_module", _no_module)
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


# -- lints ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [w for w in arms() if w != "six"])
def test_built_in_robots_have_no_errors(word: str) -> None:
    assert not [f for f in check_robot(robot(word)) if f.error]


def test_a_good_file_has_no_findings(six: Path) -> None:
    spec = from_file(six, gripper="panda_hand", **OPTIONS)
    assert check_robot(robot("panda")) == []
    assert not [f for f in check_robot(robot("panda")._replace(arm=spec)) if f.error]


def findings(path: Path, text: str, **options: object) -> list:
    path.write_text(text)
    spec = from_file(path, **{**OPTIONS, **options})
    return check_robot(robot("panda")._replace(arm=spec, gripper=None))


def line_of(path: Path, needle: str) -> str:
    number = next(n for n, line in enumerate(path.read_text().splitlines(), 1) if needle in line)
    return f"{path.name}:{number}"


CROWDED = arm_text(link5=link("link5", 0.5, size=".5 .5 .5", at=0.0))
WEIGHTS = Gains(kp=(300,) * 6, kd=(30,) * 6, force=(60,) * 6, source="")


def test_lint_inertia(six: Path) -> None:
    found = check_robot(robot("panda")._replace(arm=_uninertial(six), gripper=None))
    assert [f.lint for f in found] == ["inertia"] and found[0].error
    assert "'link5' moves and has no inertia" in found[0].what and found[0].where == line_of(six, 'name="link5"')
    found = findings(six, arm_text(link6=link("link6", 1e-4, at=0.04)))
    assert found[0].error and found[0].lint == "inertia" and "'link6' moves with 0.1 g" in found[0].what
    text = arm_text(link2=link("link2").replace('ixx="0.01" iyy="0.01" izz="0.01"', 'ixx="9" iyy="9" izz="9"'))
    found = findings(six, text)
    assert any(f.lint == "inertia" and not f.error and "'link2' of 1 kg has the inertia" in f.what for f in found)


def _uninertial(path: Path) -> ArmSpec:
    """The spec of a file as it was before someone took an inertia out of it (with it, nothing can be made)."""
    spec = from_file(path, **OPTIONS)
    path.write_text(arm_text(link5=link("link5", inertia=False)))
    return replace(spec, links=tuple(replace(x, mass=0.0) if x.name == "link5" else x for x in spec.links))


def test_lint_limits(six: Path) -> None:
    text = arm_text(joint4=joint("joint4", "link3", "link4", 0.25, "0 0 1", kind="continuous"))
    found = findings(six, text, gains=WEIGHTS)
    assert [(f.lint, f.error) for f in found if "joint4" in f.what] == [("limits", False)]
    assert next(f for f in found if f.lint == "limits").where == line_of(six, 'joint name="joint4"')
    degrees = 'lower="-170" upper="170" effort="60" velocity="2"'
    found = findings(six, arm_text(joint4=joint("joint4", "link3", "link4", 0.25, "0 0 1", limit=degrees)))
    assert any(f.lint == "limits" and "are these degrees" in f.fix for f in found)


def test_lint_actuators(six: Path) -> None:
    bad = Gains(kp=(300, 0, 300, 300, 300, 300), kd=(30, 30, 30, 30, 0, 30), force=(60,) * 6, source="")
    found = findings(six, arm_text(), gains=bad)
    texts = [f.what for f in found if f.lint == "actuators" and f.error]
    assert texts == ["the servo of 'joint2' has kp = 0", "the servo of 'joint5' has no damping, kd = 0"]


def test_lint_collision(six: Path) -> None:
    found = findings(six, CROWDED, excludes=())
    first = next(f for f in found if f.lint == "collision" and f.error)
    assert (
        "at 'rest' 'link3' and 'link5' overlap by" in first.what and "excludes=(..., ('link3', 'link5'))" in first.fix
    )
    assert first.where == line_of(six, f'name="{re.search("link.", first.what)[0]}"')


def test_lint_keyframes(six: Path) -> None:
    found = findings(six, arm_text(), keyframes={"far": (0, 0, 9, 0, 0, 0), "short": (0, 0)})
    texts = [f.what for f in found if f.lint == "keyframe"]
    assert "keyframe 'far' has 'joint3' at 9, beyond its limits -2.5 to 2.5" in texts
    assert "keyframe 'short' has 2 numbers for 6 joints" in texts
    weak = Gains(kp=(300,) * 6, kd=(30,) * 6, force=(60, 1, 60, 60, 60, 60), source="")
    found = findings(six, arm_text(), gains=weak, gravcomp=False)
    assert any(f.error and f.lint == "keyframe" and "'joint2' is" in f.what and "not held" in f.what for f in found)


def test_lint_tcp(six: Path) -> None:
    found = findings(six, arm_text(), flange_quat=(0, 1, 0, 0))
    assert [f.what for f in found if f.lint == "tcp"] == ["z of the TCP points back into the arm"]
    hand = gripper("panda_hand")
    spec = from_file(six, **OPTIONS)
    for change, text in (
        ({"tcp_pos": (0, 0, 0.3)}, "along z of the TCP"),
        ({"tcp_quat": (H, 0, 0, H)}, "the fingers do not close along y of the TCP"),
    ):
        found = check_robot(robot("panda")._replace(arm=spec, gripper=replace(hand, **change)))
        assert any(f.error and f.lint == "tcp" and text in f.what for f in found)


def test_lint_gains(six: Path) -> None:
    # 58 Hz, hardly damped: more than a step of 5 ms can follow
    loose = Gains(kp=(300, 300, 30000, 300, 300, 300), kd=(30, 30, 0.05, 30, 30, 30), force=(60,) * 6, source="")
    found = findings(six, arm_text(), gains=loose)
    first = next(f for f in found if f.lint == "gains" and "'joint3'" in f.what)
    assert first.error and "a step of 'joint3' does not settle" in first.what
    assert re.search(r"kd = [\d.]+ is critical damping for kp = 30000", first.fix)
    wanted = float(re.search(r"kd = ([\d.]+)", first.fix)[1])
    better = replace(loose, kd=(30, 30, wanted, 30, 30, 30))
    assert not [f for f in findings(six, arm_text(), gains=better) if f.lint == "gains" and "joint3" in f.what]


def test_lint_gains_tells_slow_from_swinging(six: Path) -> None:
    slow = Gains(kp=(300,) * 6, kd=(30, 30, 2000, 30, 30, 30), force=(60,) * 6, source="")
    found = [f for f in findings(six, arm_text(), gains=slow) if f.lint == "gains"]
    assert len(found) == 1 and not found[0].error and "'joint3' has gone" in found[0].what
    assert "force / kd = 0.03 rad/s is the fastest it moves" in found[0].fix


def test_a_flange_that_is_not_there_is_a_finding(six: Path) -> None:
    found = findings(six, arm_text(), flange="tool0")
    assert [f.lint for f in found] == ["model"] and "the model has no body 'tool0'" in found[0].what


# -- reach, film, command ---------------------------------------------------------------------------------------------


def test_reach_of_a_stretched_arm(six: Path) -> None:
    """Nothing is reached beyond the links' length, and everything half as far from the shoulder is."""
    spec = from_file(six, **OPTIONS)
    found = reach(spec, None, count=5, radius=1.6)
    from_shoulder = np.linalg.norm(found.points - (0, 0, 0.4), axis=1)
    assert not found.anyhow[from_shoulder > 0.79].any()  # 0.25 + 0.25 + 0.1 + 0.1 + 0.08
    near = reach(spec, None, count=4, radius=0.6)
    inner = (near.points[:, 2] > 0.1) & (np.linalg.norm(near.points - (0, 0, 0.4), axis=1) < 0.6)
    assert near.anyhow[inner].mean() > 0.9 and (near.down <= near.anyhow).all()


def test_film_shows_every_joint(six: Path, tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    spec = from_file(six, gripper="rethink", **OPTIONS)
    chosen = robot("panda")._replace(arm=spec, gripper=gripper("rethink"))
    points = Reach(np.array([[0.3, 0, 0.3], [0.4, 0, 0.3]]), np.array([True, False]), np.array([True, False]))
    path = film_robot(tmp_path / "six.mp4", chosen, points, width=64, height=64)
    with av.open(str(path)) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(frames) == 12 * 7 + 24
    middle = np.array(frames[:72], float)[:, 20:].reshape(6, 12, -1)
    assert (np.ptp(middle, 1).max(1) > 40).all()  # in each joint's part something moves
    picture = portrait(chosen, width=64, height=64)
    assert picture.shape == (64, 64, 3) and np.ptp(picture) > 50


def test_the_command(six: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    script = tmp_path / "my_arm.py"
    script.write_text(
        f"from manikin.robots import from_file\nARM = from_file({str(six)!r}, gripper='rethink', **{OPTIONS!r})\n"
    )
    assert main(["robot-check", str(script), "--no-reach"]) == 0
    assert "6 joints, Rethink electric parallel gripper" in capsys.readouterr().out
    six.write_text(CROWDED)
    assert main(["robot-check", str(six), "--no-reach"]) == 1
    said = capsys.readouterr().out
    assert "error" in said and "collision" in said and "six.urdf:" in said
    assert main(["robot-check", str(tmp_path / "none.urdf")]) == 2
    assert "there is no file" in capsys.readouterr().err
    script.write_text("ARM = 3\n")
    assert main(["robot-check", str(script)]) == 2
    assert "declares no ArmSpec called ARM" in capsys.readouterr().err


def test_gripped_works_with_an_own_arm(six: Path) -> None:
    """The grasp check, sensors and inverse kinematics need nothing that a file does not give."""
    register(replace(from_file(six, gripper="panda_hand", **OPTIONS), name="six_again"))
    env = manikin.make(Gripped, num_envs=1, robot="six_again", reward="none", config={"tactile": False})
    env.reset(seed=0)
    assert not bool(env.h.grasp.value) and env.h.touch.value.shape[1] == 2
    env.close()
