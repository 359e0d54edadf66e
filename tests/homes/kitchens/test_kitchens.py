"""Kitchens: the layout's rules by hand, the built-in ones and RoboCasa's; physics is plain MuJoCo's."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from furnished import built, corners_in_picture, overlaps
from manikin.assets.paths import data_root
from manikin.errors import AssetError, ConfigError, DataError, SceneError, UnknownNameError
from manikin.homes import Mechanism
from manikin.homes.kitchens import KITCHENS, Colours, assembled, kitchen, robocasa_kitchen
from manikin.homes.kitchens.appliances import dishwasher, microwave, oven, sink, stove
from manikin.homes.kitchens.cabinets import cooler, stack
from manikin.homes.kitchens.layout import placed
from manikin.homes.kitchens.robocasa import layouts, styles

DATA = data_root()
ROBOCASA = pytest.mark.skipif(DATA is None or not (DATA / "robocasa").is_dir(), reason="needs MANIKIN_DATA/robocasa")
ROOM = {"walls": [], "floor": [{"name": "floor", "type": "floor", "size": [2, 2, 0.02], "pos": [2, -2, 0]}]}
FRONT = (0.8, 0.8, 0.8, 1)


@pytest.mark.parametrize("name", KITCHENS)
def test_a_built_in_kitchen_has_what_the_tasks_need_and_nothing_intersects(name: str) -> None:
    home = kitchen(name)
    assert not home.notes
    kinds = {thing.kind for thing in (*home.fixtures, *home.mechanisms)}
    assert kinds >= {"counter", "cabinet", "stove", "microwave", "sink", "fridge", "dishwasher"}
    assert not overlaps(home)
    model, data = built(home)
    for share in (0.0, 1.0):
        data.qpos[:] = model.jnt_range[:, 1] * share
        mujoco.mj_forward(model, data)
        assert data.ncon == 0  # an apartment does not collide with itself
    for _ in range(100):  # one second, closed: no door or flap moves by itself
        mujoco.mj_step(model, data)
    data.qpos[:], data.qvel[:] = 0.0, 0.0
    for _ in range(100):
        mujoco.mj_step(model, data)
    assert np.abs(data.qpos).max() < 1e-3


def test_fixtures_stand_as_the_layout_says() -> None:
    """Beside one another, flush where it is asked, turned and moved with their group; by hand."""
    group = {
        "row": [
            {"name": "a", "type": "stack", "levels": ["drawer"], "percentages": [1.0], "size": [0.6, 0.6, 0.84],
             "pos": [0.3, -0.3, 0.47]},
            {"name": "b", "type": "box", "size": [0.2, 0.4, 0.3], "align_to": "a", "side": "right",
             "alignment": "top_back", "offset": [0, 0, -0.03]},
            {"name": "c", "type": "hinge_cabinet", "size": ["a", 0.4, None], "stack_height": 2.0,
             "stack_fixtures": ["a"], "align_to": "a", "side": "top", "alignment": "front"},
        ],
        "group_origin": [0, 0], "group_pos": [1.0, 2.0], "group_z_rot": -1.5708,
    }  # fmt: skip
    a, b, c = placed({"room": ROOM, "group": group})
    # in the group: a at (0.3, -0.3, 0.47), b at (0.7, -0.2, 0.71), c at (0.3, -0.4, 1.47); then (x, y) becomes
    # (1 + y, 2 - x)
    assert a.pos == pytest.approx([0.7, 1.7, 0.47]) and a.yaw == -math.pi / 2
    assert b.pos == pytest.approx([0.8, 1.3, 0.71])
    assert c.pos == pytest.approx([0.6, 1.7, 1.47]) and c.size == pytest.approx([0.6, 0.4, 1.16])


def test_what_is_built_in_lies_in_its_counter_and_housing() -> None:
    group = {
        "row": [
            {"name": "sink", "type": "sink", "size": [0.8, 0.5, None]},
            {"name": "top", "type": "counter", "size": [2.0, 0.65, 0.92], "pos": [1.0, -0.325, 0.46],
             "interior_obj": "sink", "obj_x_percent": 0.3, "obj_y_percent": 0.01},
            {"name": "fridge", "type": "fridge_french_door", "size": [0.85, 0.8, 1.78]},
            {"name": "housing", "type": "housing_cabinet", "interior_obj": "fridge", "pos": [3.0, -0.4, 0.9],
             "padding": [[0.02, 0.03], [-0.04, 0.02], [0, 0.02]]},
        ]
    }  # fmt: skip
    basin, _, fridge, housing = placed({"room": ROOM, "group": group})
    assert basin.pos[:2] == pytest.approx([0.6, -0.65 + 0.02 + 0.25])  # 2 cm of the worktop stay in front
    assert basin.pos[2] + basin.size[2] / 2 == pytest.approx(0.92)
    assert housing.size == pytest.approx([0.9, 0.78, 1.8])
    left, front, low = housing.pos - housing.size / 2
    assert fridge.pos - fridge.size / 2 == pytest.approx([left + 0.02, front - 0.04, low])


def test_what_would_stand_in_something_is_cut_or_left_out_and_said() -> None:
    def box(name: str, x: float, width: float) -> dict[str, Any]:
        return {"name": name, "type": "box", "size": [width, 0.4, 0.5], "pos": [x, -0.2, 0.25]}

    stove_ = {"name": "stove", "type": "stove", "size": [0.76, 0.66, 0.92], "pos": [0.38, -0.33, 0.46]}
    rows = {"row": [stove_, box("near", 1.0, 0.6), box("within", 0.4, 0.3)]}  # near begins 6 cm within the stove
    home = assembled("it", {"room": ROOM, "group": rows}, Colours())
    assert {thing.name for thing in (*home.fixtures, *home.mechanisms)} == {"stove_group", "near_group"}
    assert "near_group: cut by 61 mm, as it would stand in stove_group" in home.notes
    assert "within_group: left out, as it would stand in stove_group" in home.notes
    assert not overlaps(home)


def alone(one: Mechanism) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = one.model.copy().compile()
    return model, mujoco.MjData(model)


def test_a_knob_turns_clockwise_a_lever_back_and_a_button_springs_back() -> None:
    model, data = alone(stove("it", (0.76, 0.66, 0.92)))
    grip = model.geom("handle/knob_front_left/bar").id
    data.joint("knob_front_left").qpos = 0.5
    mujoco.mj_kinematics(model, data)
    up = data.geom_xmat[grip].reshape(3, 3)[:, 2]  # who looks along -x has y on the right
    assert up == pytest.approx([0, math.sin(0.5), math.cos(0.5)], abs=1e-6)
    model, data = alone(sink("it", (0.7, 0.5, 0.2)))
    mujoco.mj_forward(model, data)
    before = data.site("handle/handle").xpos.copy()
    data.joint("handle").qpos = 0.4
    mujoco.mj_forward(model, data)
    assert data.site("handle/handle").xpos - before == pytest.approx(
        [-0.1 * math.sin(0.4), 0.1 * (math.cos(0.4) - 1), 0], abs=1e-6
    )
    model, data = alone(microwave("it", (0.76, 0.45, 0.42)))
    data.joint("start_button").qpos = 0.004
    for _ in range(int(1.0 / model.opt.timestep)):
        mujoco.mj_step(model, data)
    assert abs(float(data.joint("start_button").qpos[0])) < 1e-4


@pytest.mark.parametrize(
    ("one", "joint"),
    [
        (stove("it", (0.76, 0.66, 0.92)), "oven_door"),
        (oven("it", (0.75, 0.6, 0.68)), "oven_door"),
        (dishwasher("it", (0.65, 0.6, 0.84)), "door"),
        (microwave("it", (0.76, 0.45, 0.42)), "door"),
        (cooler("it", (0.78, 0.8, 1.75), "bottom_freezer"), "door0"),
        (cooler("it", (0.85, 0.8, 1.78), "french_door"), "door1"),
        (stack("it", (0.6, 0.38, 0.8), ["single_cabinet"], front=FRONT, hinge=-1.0), "door0"),
    ],
)
def test_doors_open_outwards_and_fill_their_box(one: Any, joint: str) -> None:
    model, data = alone(one)
    mujoco.mj_forward(model, data)
    before = data.site(f"handle/{joint}").xpos.copy()
    data.joint(joint).qpos = 0.3
    mujoco.mj_forward(model, data)
    assert data.site(f"handle/{joint}").xpos[0] > before[0] + 0.05


def test_what_cannot_be_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="kitchen3"):
        kitchen("kitchen9")
    with pytest.raises(UnknownNameError, match="single_cabinet"):
        stack("it", (0.6, 0.6, 0.8), ["wardrobe"], front=FRONT)
    with pytest.raises(SceneError, match="a share above 0 each"):
        stack("it", (0.6, 0.6, 0.8), ["drawer"], [0.5, 0.5], front=FRONT)
    with pytest.raises(UnknownNameError, match="side_by_side"):
        cooler("it", (0.8, 0.8, 1.8), "chest")
    beside = {"name": "a", "type": "box", "size": [1, 1, 1], "align_to": "b", "side": "left"}
    nowhere = {"name": "a", "type": "box", "size": [1, 1, 1]}
    for row in (beside, nowhere):
        with pytest.raises(DataError, match="fixture 'a' of group"):
            placed({"room": ROOM, "group": {"row": [row]}})
    for place in (tmp_path, str(tmp_path)):
        with pytest.raises(AssetError, match="built-in kitchens"):
            robocasa_kitchen(1, folder=place)
    for word in ("layout", "style"):
        folder = tmp_path / f"robocasa/models/assets/scenes/kitchen_{word}s/test"
        folder.mkdir(parents=True)
        (folder / f"{word}001.yaml").write_text("[1, 2")
    with pytest.raises(UnknownNameError, match="layout001"):
        robocasa_kitchen(2, folder=str(tmp_path))
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, match=r"manikin\[homes\]"):
        robocasa_kitchen(1, folder=tmp_path)
    monkeypatch.undo()
    pytest.importorskip("yaml")
    with pytest.raises(DataError, match="cannot be read"):
        robocasa_kitchen(1, folder=tmp_path)


@ROBOCASA
def test_robocasas_kitchens_load_and_say_what_stands_in() -> None:
    pytest.importorskip("yaml")
    assert len(layouts()) == len(styles()) == 60
    home = robocasa_kitchen(1, 1)
    assert home.name == "layout001/style001" and (home.low, home.high) == ((0.0, -3.0), (5.5, 0.0))
    names = {thing.name for thing in (*home.fixtures, *home.mechanisms)}
    assert names >= {"stove_main_group", "sink_main_group", "microwave_main_group", "dishwasher_main_group"}
    assert any("toaster: left out" in note for note in home.notes)
    for number in (1, 23):
        home = robocasa_kitchen(number, number)
        assert not overlaps(home) and np.abs(corners_in_picture(home)).max() < 1.0


@pytest.mark.slow
@ROBOCASA
def test_all_of_robocasas_layouts_load_and_nothing_stands_in_anything() -> None:
    pytest.importorskip("yaml")
    names = layouts()
    assert len(names) == 60
    for layout, style in zip(names, styles(), strict=True):
        home = robocasa_kitchen(layout, style)
        assert home.name == f"{layout}/{style}" and home.mechanisms
        assert not overlaps(home), home.name
