"""Home tasks in other apartments than their own: built-in ones of any seed, and ReplicaCAD's scenes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import manikin
from manikin.assets.python_file import class_place
from manikin.data.replay.environment import recorded_task
from manikin.env.registry import task_class
from manikin.errors import AssetError, ConfigError, SceneError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.homes.episodes import home_of
from manikin.math import quat_to_yaw
from manikin.policy.expert import ExpertPolicy
from manikin.tasks.home import in_apartments
from manikin.tasks.home.doors.close import HomeClose
from manikin.tasks.home.doors.fronts import fronts
from manikin.tasks.home.doors.open import HomeOpen
from manikin.tasks.home.long.set_table import SetTable
from manikin.tasks.home.navigate import HomeNavigate
from manikin.tasks.home.pick import HomePick
from manikin.tasks.home.place import HomePlace
from manikin.tasks.home.scene import surfaces, yaw_of
from manikin.tasks.tabletop.pick_cube import PickCube

SCENE = "v3_sc0_staging_00"


def test_a_seed_says_which_apartment_and_the_task_is_the_same() -> None:
    task = in_apartments(HomeOpen, "apartment11", "apartment12", "apartment3")
    env = manikin.make(task, num_envs=3, autoreset="disabled", threads=1)
    _, info = env.reset(seed=[4, 6, 8])
    assert info["layout"].tolist() == [1, 0, 2]
    assert env.parts([0])[0].env.task.layout == "apartment12"
    run = run_episodes(env, ExpertPolicy(env), range(3))
    assert sum(bool(one.success_once) for one in run.results) >= 2
    env.close()
    # one of the task's own apartments is the same scene as in the task itself
    for kind, seed in ((in_apartments(HomeOpen, "apartment3"), 5), (HomeOpen, 3)):
        env = manikin.make(kind, num_envs=1, autoreset="disabled", threads=1)
        env.reset(seed=[seed])
        hashes = env.fingerprint()["layouts"]
        found = hashes["apartment3"]
        env.close()
    assert found == hashes["apartment3"]


def test_a_long_task_with_doors_is_made_in_another_apartment() -> None:
    env = manikin.make(in_apartments(SetTable, "apartment9"), num_envs=1, autoreset="disabled", threads=1)
    env.reset(seed=[0])
    inside = env.parts([0])[0].env
    assert inside.task.layout == "apartment9" and set(inside.h.doors) == {"drawer", "fridge"}
    env.close()


def test_what_cannot_be_is_named(monkeypatch, tmp_path) -> None:
    with pytest.raises(ConfigError, match="PickCube-v2 is no task in a home"):
        in_apartments(PickCube, "apartment1")
    with pytest.raises(ConfigError, match="name an apartment for HomeOpen-v1"):
        in_apartments(HomeOpen)
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path))
    with pytest.raises(AssetError, match=f"{SCENE} is no built-in apartment, as apartment0 .* ReplicaCAD is not at"):
        in_apartments(HomeOpen, "apartment1", SCENE)


@pytest.mark.parametrize(
    "task", ["HomeNavigate", "HomeOpen", "HomeClose", "HomePick", "HomePlace", "TidyHouse", "SetTable"]
)
@pytest.mark.parametrize(
    ("robot", "lacks"),
    [
        ("tiago", "tiago has no head_pan_joint, shoulder_pan_joint"),
        ("stretch3", "stretch3 has no torso"),
        ("fetch", "fetch has no head"),
        ("panda@planar", "panda@planar has no torso"),
    ],
)
def test_a_robot_with_another_body_is_refused(task: str, robot: str, lacks: str) -> None:
    """Where the tool rests, the room around the robot and the experts' postures are Fetch's."""
    with pytest.raises(
        ConfigError, match=f"{task}-v1 takes the robot fetch_mshab: it needs .*Fetch's joints.*; {lacks}"
    ):
        manikin.make(f"{task}-v1", num_envs=1, robot=robot, threads=1)


@pytest.mark.parametrize("kind", [HomePick, HomeNavigate])
def test_an_apartment_without_furniture_is_refused(data_root: Path, kind) -> None:
    with pytest.raises(SceneError, match="in empty_stage there is no place before any surface"):
        manikin.make(in_apartments(kind, "empty_stage"), num_envs=1, autoreset="disabled", threads=1)


def test_a_scene_that_is_not_there_is_named(data_root: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"apartment.*v3_sc9_staging_00.*apartment0, apartment1, "):
        in_apartments(HomePick, "v3_sc9_staging_00")


def test_handles_hinges_and_the_way_they_open_follow_from_the_scene(data_root: Path) -> None:
    """Against MuJoCo: where the handle goes when the joint moves."""
    import mujoco

    home, found = home_of(SCENE), fronts(SCENE)
    assert [(one.kind, one.link) for one in found.each] == [("drawer", "drawer3"), ("fridge", "top_door")]
    for one in found.each:
        owner = next(piece for piece in home.mechanisms if piece.name == one.mechanism)
        spec = mujoco.MjSpec()
        spec.copy_during_attach = True
        spec.attach(owner.model, frame=spec.worldbody.add_frame(pos=owner.pos, quat=owner.quat), prefix="it/")
        model = spec.compile()
        data = mujoco.MjData(model)
        places = []
        for q in (0.0, 0.4):
            data.qpos[model.joint(f"it/{one.joint}").qposadr[0]] = q
            mujoco.mj_kinematics(model, data)
            places.append(data.site(f"it/handle/{one.joint}").xpos.copy())
        shut, open_ = places
        np.testing.assert_allclose(one.handle, shut, atol=1e-9)
        out = np.array([math.cos(one.yaw), math.sin(one.yaw)])
        if one.kind == "drawer":
            np.testing.assert_allclose((open_ - shut)[:2], 0.4 * out, atol=1e-3)
        else:
            c, s = math.cos(0.4 * one.sense), math.sin(0.4 * one.sense)
            arm = shut[:2] - one.hinge
            np.testing.assert_allclose(
                open_[:2] - one.hinge, [c * arm[0] - s * arm[1], s * arm[0] + c * arm[1]], atol=3e-3
            )
            assert (open_ - shut)[:2] @ out > 0.1


def test_surfaces_are_those_on_which_objects_of_ms_hab_lie(data_root: Path) -> None:
    home = home_of(SCENE)
    found = {one.name.rpartition("/")[2]: one for one in surfaces(home, ("top", "seat"))}
    assert len(found) == 6 and not any("drawer" in name or "sink" in name for name in found)
    for name, one in found.items():
        owner = next(full for full in home.receptacles if full.endswith(name))
        middle = home.middle(owner)
        np.testing.assert_allclose(one.at(np.zeros(2)), middle[:2], atol=1e-9)
        assert one.level == pytest.approx(middle[2] - home.receptacle(owner)[1].half[2])


@pytest.mark.parametrize(("kind", "least"), [(HomeNavigate, 3), (HomePick, 2), (HomeClose, 3)])
def test_experts_succeed_in_a_scene_of_replicacad(kind, least: int, data_root: Path) -> None:
    env = manikin.make(in_apartments(kind, SCENE), num_envs=3, autoreset="disabled", threads=1)
    run = run_episodes(env, ExpertPolicy(env), range(3))
    env.close()
    assert sum(bool(one.success_once) for one in run.results) >= least


def test_the_built_in_drawers_are_where_they_were() -> None:
    found = fronts("apartment1")
    assert [one.kind for one in found.each] == ["drawer"] * 3 + ["fridge"]
    assert torch.allclose(found.yaw, torch.full((4,), 1.5 * math.pi))
    assert all(one.joint == one.link for one in found.each)


def test_the_yaw_in_plain_numbers_is_that_of_tensors() -> None:
    quats = torch.randn(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    quats = quats / quats.norm(dim=1, keepdim=True)
    assert torch.allclose(torch.tensor([yaw_of(one) for one in quats.tolist()]).double(), quat_to_yaw(quats), atol=1e-6)


OWN = """
from manikin.tasks.home import in_apartments
from manikin.tasks.home.doors.open import HomeOpen
{lines}
"""


def _own(folder: Path, *lines: str) -> str:
    file = folder / "mine.py"
    file.write_text(OWN.format(lines="\n".join(lines)))
    return str(file)


def test_a_task_made_in_a_file_of_ones_own_is_taken_from_there(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    word = _own(tmp_path, 'Mine = in_apartments(HomeOpen, "apartment11", "apartment3")')
    task = task_class(word)
    assert issubclass(task, HomeOpen) and task.layouts == ("apartment11", "apartment3")
    assert class_place(task) == "mine.py:HomeOpen", "where a recording says that it is"
    for place in ("mine.py:HomeOpen", "mine.py:Mine"):
        assert task_class(place).layouts == task.layouts
    assert class_place(in_apartments(HomeOpen, "apartment3")) is None, "made inside a function, found by nobody"
    recorded = {"task": "HomeOpen-v1", "task_class": "mine.py:HomeOpen"}
    assert recorded_task(recorded, trust=True).layouts == task.layouts, "and not the built-in task of that id"
    with pytest.raises(UnknownNameError, match=r"unknown task class in mine.py 'Min'. Did you mean 'Mine'"):
        task_class("mine.py:Min")


def test_a_file_with_no_task_or_several_says_so(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"mine.py has no task class"):
        task_class(_own(tmp_path))
    word = _own(tmp_path, *(f'{name} = in_apartments(HomeOpen, "apartment{name[1]}")' for name in ("A1", "A2")))
    with pytest.raises(ConfigError, match=r"several task classes: name one, .*mine.py:A1 or .*mine.py:A2"):
        task_class(word)
    with pytest.raises(UnknownNameError, match="Valid: A1, A2"):
        task_class(f"{word}:HomeOpen")


@pytest.mark.parametrize(
    "kind, config, said",
    [
        (HomeOpen, {"mechanism": "either"}, "open the drawer or the fridge"),
        (HomeOpen, {"mechanism": "fridge"}, "open the fridge"),
        (HomeOpen, {}, "open the drawer"),
        (HomeClose, {"mechanism": "fridge"}, "close the fridge"),
        (HomePick, {}, "pick up the object and bring the arm back to rest"),
        (HomePick, {"objects": ("024_bowl", "013_apple")}, "pick up the object and bring the arm back to rest"),
        (HomePick, {"objects": ("024_bowl",)}, "pick up the bowl and bring the arm back to rest"),
        (HomePlace, {"objects": ("002_master_chef_can",)}, "put the master chef can down at the marked place"),
    ],
)
def test_what_the_configuration_fixes_is_in_the_instruction(kind, config, said) -> None:
    assert kind(config, layout="apartment3").instruction.startswith(said)


def test_an_environment_says_what_the_configuration_fixes() -> None:
    env = manikin.make("HomeOpen-v1", num_envs=1, config={"mechanism": "fridge"}, autoreset="disabled", threads=1)
    env.reset(seed=3)
    assert env.instruction == ["open the fridge"]
    env.close()
