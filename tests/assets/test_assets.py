from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from manikin.assets import builtin, menagerie, paths
from manikin.errors import AssetError, SceneError
from manikin.spec.links import Geom, Joint, Link, box, capsule, cylinder, pad
from manikin.spec.robot import MenagerieModel

MODEL = MenagerieModel(folder="acme_arm", file="arm.xml")


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    return monkeypatch


def test_roots_come_from_the_environment(no_data: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert paths.data_root() is None
    assert menagerie.root() is None
    no_data.setenv("MANIKIN_DATA", str(tmp_path))
    assert paths.data_root() == tmp_path
    assert menagerie.root() is None  # MANIKIN_DATA without a menagerie folder
    (tmp_path / "menagerie").mkdir()
    assert menagerie.root() == tmp_path / "menagerie"
    no_data.setenv("MENAGERIE_ROOT", str(tmp_path / "other"))
    assert menagerie.root() == tmp_path / "other"
    no_data.setenv("MANIKIN_CACHE", str(tmp_path / "cache"))
    assert paths.cache_root() == tmp_path / "cache"
    no_data.delenv("MANIKIN_CACHE")
    no_data.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert paths.cache_root() == tmp_path / "xdg" / "manikin"


def test_no_menagerie_says_where_it_looked_and_how_to_get_it(no_data: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    no_data.setattr(menagerie.importlib, "import_module", missing)
    with pytest.raises(AssetError, match=r"MENAGERIE_ROOT \(not set\).*MANIKIN_DATA.*Set MENAGERIE_ROOT to a checkout"):
        menagerie.find(MODEL)


def test_package_is_asked_when_no_folder_is_named(no_data: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Robot:
        def path(self) -> Path:
            return tmp_path

    class Package:
        def get(self, name: str) -> Robot:
            if name != "acme_arm":
                raise KeyError(name)
            return Robot()

    no_data.setattr(menagerie.importlib, "import_module", lambda name: Package())
    (tmp_path / "arm.xml").write_text("<mujoco/>")
    assert menagerie.find(MODEL) == tmp_path / "arm.xml"
    with pytest.raises(AssetError, match=r"has not provided 'nobody'"):
        menagerie.find(MenagerieModel(folder="nobody", file="arm.xml"))


def test_folder_without_the_robot_names_what_it_has(no_data: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_data.setenv("MENAGERIE_ROOT", str(tmp_path / "gone"))
    with pytest.raises(AssetError, match="does not exist"):
        menagerie.find(MODEL)
    (tmp_path / "beta").mkdir()
    (tmp_path / "alpha").mkdir()
    no_data.setenv("MENAGERIE_ROOT", str(tmp_path))
    with pytest.raises(AssetError, match=r"no robot 'acme_arm'; it has: alpha, beta"):
        menagerie.find(MODEL)
    (tmp_path / "acme_arm").mkdir()
    (tmp_path / "acme_arm" / "other.xml").write_text("<mujoco/>")
    with pytest.raises(AssetError, match=r"no 'arm.xml'; it has: other.xml"):
        menagerie.find(MODEL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody><body", "XML"),
        ("<mujoco><worldbody><bdy/></worldbody></mujoco>", "bdy"),
        ('<mujoco><asset><mesh file="gone.stl"/></asset></mujoco>', "gone.stl"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "mass"),
    ],
)
def test_broken_mjcf_gives_mujocos_message_and_the_part(
    no_data: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str
) -> None:
    no_data.setenv("MENAGERIE_ROOT", str(tmp_path))
    (tmp_path / "acme_arm").mkdir()
    (tmp_path / "acme_arm" / "arm.xml").write_text(text)
    with pytest.raises(SceneError, match=rf"(?s)acme_arm/arm.xml does not compile.*{message}"):
        menagerie.load(MODEL)


def test_builtin_link_becomes_a_body_with_its_figures() -> None:
    joint = Joint(name="j", axis=(0, 1, 0), range=(-1, 2), damping=3, armature=0.4, frictionloss=0.5, stiffness=6)
    geoms = (box((0.1, 0.2, 0.3)), Geom(type="sphere", size=(0.1,), collide=False), box((0.1,) * 3, visible=False))
    links = (
        Link(name="a", parent=None),
        Link(
            name="b", parent="a", pos=(0, 0, 1), joint=joint, mass=2, com=(0.1, 0, 0), inertia=(1, 2, 2.5), geoms=geoms
        ),
        Link(name="c", parent="b", mass=1, inertia=(1, 2, 2.5, 0.1, 0.2, 0.3), joint=Joint(name="s", type="slide")),
    )
    model = builtin.build(links).compile()
    assert [model.body(i).name for i in range(1, 4)] == ["a", "b", "c"]
    b, j = model.body("b"), model.joint("j")
    assert b.mass[0] == 2 and np.allclose(b.inertia, (1, 2, 2.5)) and np.allclose(b.ipos, (0.1, 0, 0))
    assert np.allclose(j.range, (-1, 2)) and np.allclose(j.axis, (0, 1, 0))
    assert (j.damping[0], j.armature[0], j.frictionloss[0], j.stiffness[0]) == (3, 0.4, 0.5, 6)
    assert np.allclose(model.geom_solref, (0.01, 1))
    assert model.geom_group.tolist() == [2, 2, 3]
    assert model.geom_contype.tolist() == [1, 0, 1]
    full = np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    assert np.allclose(np.sort(model.body("c").inertia), np.linalg.eigvalsh(full))
    assert int(model.joint("s").type[0]) == int(mujoco.mjtJoint.mjJNT_SLIDE)


def test_builtin_refuses_what_it_cannot_build() -> None:
    with pytest.raises(SceneError, match=r"'b' has parent 'z', not an earlier link \(a\)"):
        builtin.build((Link(name="a", parent=None), Link(name="b", parent="z")))
    with pytest.raises(SceneError, match="unknown geom type 'cone'; valid: box"):
        builtin.build((Link(name="a", parent=None, geoms=(Geom(type="cone", size=(1,)),)),))


def test_pads_have_the_contact_properties_of_pads() -> None:
    links = (Link(name="a", parent=None, geoms=(pad((0.01, 0.02, 0.03), (0, 0, 0)), box((0.1, 0.1, 0.1)))),)
    model = builtin.build(links).compile()
    assert np.allclose(model.geom_friction[0], (2, 0.02, 0.0001))
    assert model.geom_condim.tolist() == [4, 3] and model.geom_priority.tolist() == [1, 0]


@pytest.mark.parametrize("end", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0, -1, 0), (0.3, -0.4, -0.5), (-0.2, 0.1, 0.7)])
@pytest.mark.parametrize("make", [capsule, cylinder])
def test_capsules_and_cylinders_reach_from_a_to_b(make, end: tuple[float, float, float]) -> None:
    start = (0.1, 0.2, -0.3)
    geom = make(start, end, 0.05)
    axis = np.zeros(3)
    mujoco.mju_rotVecQuat(axis, np.array([0.0, 0.0, 1.0]), np.array(geom.quat))
    ends = [np.array(geom.pos) + s * geom.size[1] * axis for s in (-1, 1)]
    assert np.isclose(np.linalg.norm(geom.quat), 1)
    assert min(np.linalg.norm(ends[0] - start), np.linalg.norm(ends[1] - start)) < 1e-12
    assert min(np.linalg.norm(ends[0] - end), np.linalg.norm(ends[1] - end)) < 1e-12
