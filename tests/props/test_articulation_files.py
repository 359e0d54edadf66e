"""Articulated things from MJCF and URDF: joints, sites and links by name, handles, what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import manikin
from manikin.arenas.table import table
from manikin.assets.paths import data_root
from manikin.errors import AssetError, SceneError, UnknownNameError
from manikin.props import articulation_from_file
from manikin.scene.builder import SceneBuilder
from manikin.sim import make_world
from manikin.spec.physics import Physics

BOX = """
<mujoco>
  <worldbody>
    <light pos="0 0 1"/>
    <geom name="floor" type="plane" size="1 1 .1"/>
    <body name="chest" pos="0 0 0.1">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.1"/>
      <body pos="0.1 0 0.1">
        <joint name="lid" type="hinge" axis="0 1 0" range="0 90"/>
        <geom type="box" pos="-0.1 0 0.01" size="0.1 0.1 0.01"/>
        <site name="grip" pos="-0.2 0 0.01"/>
      </body>
      <body name="drawer" pos="-0.1 0 -0.05">
        <joint name="slide" type="slide" axis="-1 0 0" range="0 0.1"/>
        <geom type="box" size="0.005 0.08 0.03"/>
        <body name="drawer_handle"><geom name="bar" type="capsule" size="0.005 0.03" pos="-0.03 0 0.01"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="lid"/></actuator>
  <sensor><jointpos joint="lid"/></sensor>
</mujoco>"""

URDF = """
<robot name="door">
  <link name="frame"><visual><geometry><box size="0.1 1 0.05"/></geometry></visual>
    <collision><geometry><box size="0.1 1 0.05"/></geometry></collision></link>
  <link name="leaf">
    <inertial><origin xyz="0 -0.2 0"/><mass value="2"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 -0.2 0"/><geometry><box size="0.02 0.4 0.8"/></geometry></collision></link>
  <link name="knob"><collision><origin xyz="-0.05 0 0"/><geometry><sphere radius="0.02"/></geometry></collision></link>
  <joint name="hinge" type="revolute"><parent link="frame"/><child link="leaf"/><origin xyz="0 0.2 0.5"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1.5" effort="1" velocity="1"/></joint>
  <joint name="mount" type="fixed"><parent link="leaf"/><child link="knob"/><origin xyz="0 -0.35 0"/></joint>
</robot>"""


@pytest.fixture
def chest(tmp_path: Path) -> Path:
    path = tmp_path / "chest.xml"
    path.write_text(BOX)
    return path


def placed(model, device: str = "cpu", rows: int = 2, **options):
    b = SceneBuilder([], Physics(gravity=(0.0, 0.0, 0.0)))
    table(b)
    thing = b.articulation("thing", model, **options)
    world = make_world(b.compile(), rows, device=device)
    b.bind(world)
    world.reset()
    world.forward()
    return world, thing


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_joints_places_and_links_by_name(chest: Path, device: str) -> None:
    if device != "cpu":
        pytest.importorskip("mujoco_warp")
    model = articulation_from_file(chest, handles={"lid": "grip"})
    assert not list(model.actuators) and not list(model.sensors) and not list(model.lights)
    world, chest_ = placed(model, device, pos=(1.0, 0, 0))
    assert chest_.joints == ("lid", "slide") and chest_.links == ("chest", "link0", "drawer", "drawer_handle")
    assert chest_.frames == ("grip", "handle/lid", "handle/slide")
    chest_.set_qpos((np.pi / 2, 0.04))
    world.forward()
    assert chest_.joint("slide").tolist() == pytest.approx([0.04] * 2)
    # the lid stands upright above its hinge at x = 1.1, its grip 0.2 m up; the drawer came 4 cm forward
    assert chest_.handle_of("lid")[0].tolist() == pytest.approx((1.11, 0, 0.4), abs=1e-5)
    assert torch.equal(chest_.place("grip"), chest_.handle_of("lid"))
    assert chest_.handle_of("slide")[0].tolist() == pytest.approx((1 - 0.1 - 0.04 - 0.03, 0, 0.06), abs=1e-5)
    assert chest_.link_pose("drawer")[0].tolist() == pytest.approx((0.86, 0, 0.05, 1, 0, 0, 0), abs=1e-5)
    for call, words in (
        (lambda: chest_.joint("lit"), "joint of thing 'lit'. Did you mean 'lid'"),
        (lambda: chest_.place("x"), "handle/lid"),
        (lambda: chest_.link_pose("x"), "drawer_handle"),
    ):
        with pytest.raises(UnknownNameError, match=words):
            call()


def test_a_joint_without_a_handle_says_how_to_give_it_one(chest: Path) -> None:
    _, thing = placed(articulation_from_file(chest))  # "grip" is not called a handle
    assert thing.frames == ("grip", "handle/slide")
    with pytest.raises(SceneError, match=r"'lid' of thing has no handle \(slide has one\).*handles=\{'lid': ...\}"):
        thing.handle_of("lid")
    _, thing = placed(articulation_from_file(chest, handles={"lid": (-0.2, 0, 0.02), "slide": "bar"}))
    assert thing.handle_of("lid")[0].tolist() == pytest.approx((-0.1, 0, 0.22), abs=1e-6)


def test_a_urdf_door(tmp_path: Path) -> None:
    path = tmp_path / "door.urdf"
    path.write_text(URDF)
    _, door = placed(articulation_from_file(path))
    assert door.joints == ("hinge",) and door.limits.tolist() == [pytest.approx([0, 1.5])]
    # hinge at y = 0.2, knob 0.35 m along the leaf, its ball 5 cm ahead
    assert door.handle_of("hinge")[0].tolist() == pytest.approx((-0.05, -0.15, 0.5), abs=1e-6)


def test_what_is_missing_is_named(chest: Path, tmp_path: Path) -> None:
    def broken(*changes: tuple[str, str]) -> Path:
        text = BOX
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "broken.xml"
        path.write_text(text)
        return path

    with pytest.raises(AssetError, match="there is no file"):
        articulation_from_file(tmp_path / "none.xml")
    with pytest.raises(UnknownNameError, match=r"joint of chest\.xml 'lit'.*lid, slide"):
        articulation_from_file(chest, handles={"lit": "grip"})
    with pytest.raises(UnknownNameError, match=r"moves with 'lid' in chest.*grip"):
        articulation_from_file(chest, handles={"lid": "bar"})  # which is the drawer's
    with pytest.raises(SceneError, match="is a name or"):
        articulation_from_file(chest, handles={"lid": (0.1, 0.2)})
    with pytest.raises(SceneError, match="body 'drawer' has a joint without a name"):
        articulation_from_file(broken(('name="slide" ', ""), ('<motor joint="lid"/>', "")))
    with pytest.raises(SceneError, match="ball joint 'slide'"):
        articulation_from_file(broken(('type="slide" axis="-1 0 0" range="0 0.1"', 'type="ball"')))
    with pytest.raises(SceneError, match="'floor' is in no body"):
        articulation_from_file(broken(('type="plane" size="1 1 .1"', 'type="box" size="1 1 .1" pos="0 0 -2"')))
    other = '<body name="other"><joint name="j"/><geom size=".1"/></body></worldbody>'
    with pytest.raises(SceneError, match=r"'chest', 'other' in the world; say which is the thing: root="):
        articulation_from_file(broken(("</worldbody>", other)))
    assert {j.name for j in articulation_from_file(tmp_path / "broken.xml", root="chest").joints} == {"lid", "slide"}
    with pytest.raises(UnknownNameError, match="chest, other"):
        articulation_from_file(tmp_path / "broken.xml", root="crate")
    (tmp_path / "still.xml").write_text('<mujoco><worldbody><body><geom size=".1"/></body></worldbody></mujoco>')
    with pytest.raises(SceneError, match="has no joints"):
        articulation_from_file(tmp_path / "still.xml")
    (tmp_path / "bad.xml").write_text("<mujoco><worldbody><body/></worldbody>")
    with pytest.raises(SceneError, match="does not compile"):
        articulation_from_file(tmp_path / "bad.xml")


class _Open(manikin.Task):
    """Open a lid."""

    id = "OpenLid-v1"
    horizon_s = 0.5
    instruction = "open the lid"
    file = ""

    def scene(self, b):
        table(b)
        robot = b.robot()
        return {"robot": robot, "chest": b.articulation("chest", articulation_from_file(self.file), pos=(0.1, 0, 0))}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())
        h.chest.set_qpos((0.0, 0.05))

    def evaluate(self, h):
        return {"success": h.chest.joint("lid") > 1.0}

    def observe(self, h):
        return {"policy": {"handle": h.chest.handle_of("slide")}}


def test_a_task_asks_by_name(chest: Path) -> None:
    _Open.file = str(chest)
    env = manikin.make(_Open, num_envs=3, observe="state_dict")
    seen, _ = env.reset(seed=0)
    assert seen["policy"]["handle"].shape == (3, 3)
    assert seen["policy"]["handle"][:, 0].tolist() == pytest.approx([0.1 - 0.1 - 0.05 - 0.03] * 3, abs=1e-3)
    env.close()


@pytest.mark.parametrize(
    ("file", "joints", "handles"),
    [
        ("furniture_sim/microwave.xml", {"micro0joint"}, {"handle/micro0joint"}),
        (
            "nist_factory/sektion_cabinet_model/urdf/sektion_cabinet.urdf",
            {"door_right_joint", "door_left_joint", "drawer_top_joint", "drawer_bottom_joint"},
            {f"handle/{j}_joint" for j in ("door_right", "door_left", "drawer_top", "drawer_bottom")},
        ),
    ],
)
def test_published_models(file: str, joints: set[str], handles: set[str]) -> None:
    root = data_root()
    if root is None or not (root / file).is_file():
        pytest.skip(f"needs MANIKIN_DATA with {file}")
    model = articulation_from_file(root / file)
    assert {j.name for j in model.joints} == joints
    assert handles <= {s.name for s in model.sites}
    placed(model)
