"""Objects of SIMPLER: the stand-ins and the meshes against the table of the original's figures."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from manikin.assets.paths import data_root
from manikin.errors import AssetError, UnknownNameError
from manikin.props.simpler import BOXES, NAMES, extent_along, folder, simpler_prop
from manikin.scene.candidates import Candidates, add_geom
from manikin.spec.prop import Prop

DATA = data_root() is not None and (data_root() / "simpler" / "custom" / "models").is_dir()
needs_meshes = pytest.mark.skipif(not DATA, reason="MANIKIN_DATA has no simpler/custom/models")

# size [m] of the collision mesh and mass [g], as measured on the original's files
TABLE = {
    "opened_coke_can": ((0.0669, 0.1228, 0.0664), 20.0),
    "opened_pepsi_can": ((0.067, 0.123, 0.067), 20.6),
    "opened_7up_can": ((0.067, 0.123, 0.067), 19.7),
    "opened_sprite_can": ((0.067, 0.123, 0.067), 20.6),
    "opened_fanta_can": ((0.067, 0.123, 0.067), 20.6),
    "opened_redbull_can": ((0.0598, 0.1334, 0.0598), 18.3),
    "blue_plastic_bottle": ((0.0623, 0.2039, 0.0672), 29.2),
    "apple": ((0.0808, 0.0807, 0.0807), 218.5),
    "orange": ((0.0707, 0.0707, 0.0687), 149.5),
    "sponge": ((0.1011, 0.0711, 0.0371), 35.5),
    "bridge_spoon_generated_modified": ((0.1411, 0.0355, 0.0270), 42.3),
    "bridge_carrot_generated_modified": ((0.1183, 0.0322, 0.0412), 55.1),
    "bridge_plate_objaverse_larger": ((0.11, 0.11, 0.006), 40.5),
    "table_cloth_generated_shorter": ((0.101, 0.101, 0.0111), 28.0),
    "green_cube_3cm": ((0.03, 0.03, 0.03), 27.0),
    "yellow_cube_3cm": ((0.03, 0.03, 0.03), 27.0),
    "eggplant": ((0.0787, 0.0373, 0.0380), 21.5),
}


def size_and_mass(prop: Prop) -> tuple[np.ndarray, float]:
    """[m] of the box around what collides, and [kg], as MuJoCo compiles it."""
    found = Candidates("thing", [prop])
    return 2 * found.extents[0], float(found.masses[0])


@pytest.mark.parametrize("name", TABLE)
def test_stand_ins_have_the_originals_size_and_mass(name: str) -> None:
    size, mass = size_and_mass(simpler_prop(name, meshes=False))
    assert np.allclose(size, TABLE[name][0], atol=0.008)
    assert abs(1000 * mass - TABLE[name][1]) < 0.05
    assert simpler_prop(name, meshes=False).source == "primitive stand-in"


@needs_meshes
@pytest.mark.parametrize("name", [n for n in TABLE if n != "orange"])
def test_meshes_have_the_originals_size_and_mass(name: str) -> None:
    """The apple's and the bottle's are those of their baked models, which are a little larger."""
    prop = simpler_prop(name)
    size, mass = size_and_mass(prop)
    baked = name in ("apple", "blue_plastic_bottle")
    assert np.allclose(size, TABLE[name][0], atol=0.003 if baked else 1.5e-3)
    assert abs(1000 * mass / TABLE[name][1] - 1) < (0.06 if baked else 0.025 if "cloth" in name else 0.01)
    assert "MANIKIN_DATA" in prop.source


@needs_meshes
def test_the_spoon_is_not_its_hull() -> None:
    assert len(simpler_prop("bridge_spoon_generated_modified").shapes) == 8


@needs_meshes
def test_meshes_have_their_textures() -> None:
    looks = simpler_prop("bridge_carrot_generated_modified").looks
    assert looks and Path(looks[0].mesh.texture).is_file() and looks[0].rgba is None
    assert simpler_prop("green_cube_3cm").looks[0].rgba is not None


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TABLE])
def test_every_object_compiles_and_knows_its_box(name: str) -> None:
    assert len(BOXES[name]) == 3
    size, mass = size_and_mass(simpler_prop(name))
    assert mass > 0 and (size > 0).all()


@pytest.mark.parametrize("name", ["opened_coke_can", "apple", "bridge_carrot_generated_modified", "sponge"])
def test_extents_are_those_of_the_compiled_shapes(name: str) -> None:
    """Along a direction, against the distance of planes that MuJoCo measures."""
    prop = simpler_prop(name, meshes=False)
    rng, surface = np.random.default_rng(0), _surface(prop)
    for _ in range(4):
        along = rng.normal(size=3)
        along /= np.linalg.norm(along)
        low, high = extent_along(prop, along)
        points = surface @ along
        assert points.max() <= high + 1e-6 and points.min() >= low - 1e-6
        assert high - points.max() < 4e-3 and points.min() - low < 4e-3


def _surface(prop: Prop) -> np.ndarray:
    """Points on the surface, where rays from all around first meet it."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="thing")
    for k, shape in enumerate(prop.shapes):
        add_geom(spec, body, shape, name=str(k))
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    rng, found = np.random.default_rng(1), []
    for _ in range(8000):
        away = rng.normal(size=3)
        away /= np.linalg.norm(away)
        start, at = 0.5 * away + rng.uniform(-0.03, 0.03, 3), np.zeros(1, np.int32)
        distance = mujoco.mj_ray(model, data, start, -away, None, 1, -1, at)
        if distance >= 0:
            found.append(start - distance * away)
    return np.array(found)


def test_the_apple_is_lighter_where_a_task_says_so() -> None:
    _, mass = size_and_mass(simpler_prop("apple", meshes=False, density=200))
    assert abs(1000 * mass - 54.6) < 0.1


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown object of SIMPLER 'appel'. Did you mean 'apple'\?"):
        simpler_prop("appel")
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path))
    assert folder("apple") is None and simpler_prop("apple").source == "primitive stand-in"
    with pytest.raises(AssetError, match=r"no MANIKIN_DATA/simpler/custom/models/baked_apple_v2. meshes=False"):
        simpler_prop("apple", meshes=True)
    broken = tmp_path / "simpler" / "custom" / "models" / "eggplant"
    broken.mkdir(parents=True)
    (broken / "collision.obj").write_text("v 0 0 zero\n")
    with pytest.raises(AssetError, match=r"eggplant/collision.obj is not a mesh that can be read"):
        simpler_prop("eggplant")
