"""Files of one's own: tasks, policies and robots in Python or URDF, what is wrong in them, and on the command line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import manikin
from manikin.assets.python_file import class_place, run_file
from manikin.author.robot.check import check_robot
from manikin.cli import main
from manikin.env.registry import task_class
from manikin.errors import SceneError, UnknownNameError
from manikin.grippers import gripper
from manikin.grippers import register as register_gripper
from manikin.policy.choices import named_callable
from manikin.robots import arms, from_file, register, robot
from manikin.scene.robot import assemble
from manikin.spec.robot import POSE_CONTROLLERS, GripperSpec
from own_arm import OPTIONS, arm_text, joint, link

TASK = """
from dataclasses import dataclass
from manikin.tasks.tabletop.pick_cube import PickCube
@dataclass
class Note:
    where: str = "{where}"
class Mine(PickCube):
    id = "Mine-v1"
"""
ARM = """
from pathlib import Path
from manikin.robots import from_file
ARM = from_file(Path(__file__).with_name("six.urdf"), name="my_arm", gripper="panda_hand",
    rest=(0.0, 0.6, 1.2, 0.0, 1.34, 0.0), flange_pos=(0, 0, 0.08), base_pos=(-0.5, 0, 0),
    excludes=(("link3", "link5"), ("link4", "link6")))
"""
MJCF = """<mujoco><worldbody><body name="base"><geom size=".05"/>
  <body name="a" pos="0 0 .2"><joint name="j1" range="-1 1"/><geom size=".05"/>
    <body name="{body}" pos="0 0 .2"><joint name="{joint}" axis="0 1 0" {range}/><geom size=".05"/></body>
  </body></body></worldbody>
<actuator>
  <position joint="j1" kp="100" kv="10" forcerange="-50 50"/>
  <position joint="{joint}" kp="100" kv="10" forcerange="-50 50" {control}/>
</actuator></mujoco>"""
GOOD = {"body": "b", "joint": "j2", "range": 'range="-1 1"', "control": ""}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "six.urdf").write_text(arm_text())
    (tmp_path / "my_arm.py").write_text(ARM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- files as modules ------------------------------------------------------------------------------------------------


def test_a_file_named_like_a_standard_module_leaves_that_alone(tmp_path: Path) -> None:
    import json

    path = tmp_path / "json.py"
    path.write_text(TASK.format(where="here") + "\ndef policy(env): return None\n")
    task = task_class(f"{path}:Mine")
    assert task.id == "Mine-v1" and named_callable(f"{path}:policy", "policy")(None) is None
    assert sys.modules["json"] is json and json.loads("[1]") == [1]


def test_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    for word in ("a", "b"):
        (tmp_path / word).mkdir()
        (tmp_path / word / "my.task.py").write_text(TASK.format(where=word))
    first, second, again = (run_file(tmp_path / word / "my.task.py") for word in "aba")
    assert (first.Note().where, second.Note().where) == ("a", "b")
    assert first.__name__ == again.__name__ != second.__name__ and sys.modules[again.__name__] is again
    # where a recording will look for the task
    assert [str(class_place(module.Mine)).split("/")[-2] for module in (again, second)] == ["a", "b"]


def test_a_file_that_fails_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0")
    before = set(sys.modules)
    with pytest.raises(ZeroDivisionError):
        run_file(path)
    assert set(sys.modules) == before


# ---- robots ----------------------------------------------------------------------------------------------------------


def test_register_takes_arms_and_grippers_and_nothing_else() -> None:
    hand = replace(gripper("rethink"), name="my_hand")
    assert isinstance(register(hand), GripperSpec) and gripper("my_hand") is hand and "my_hand" not in arms()
    assert robot("panda+my_hand").gripper is hand
    with pytest.raises(TypeError, match=r"an ArmSpec .* or a GripperSpec, not 'panda'"):
        register("panda")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="a gripper must be a GripperSpec"):
        register_gripper(robot("panda").arm)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"link5": link("link4", 0.5)}, r"two links are called 'link4' \(lines 19 and 23\)"),
        ({"joint5": joint("joint4", "link4", "link5", 0.1, "0 1 0")}, r"two joints are called 'joint4' \(lines .* and"),
    ],
)
def test_names_that_a_urdf_has_twice_are_said(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    path = tmp_path / "twice.urdf"
    path.write_text(arm_text(**changes))
    with pytest.raises(SceneError, match=f"^twice.urdf: {message}"):
        from_file(path, **OPTIONS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"body": "a"}, r"two bodies are called 'a' \(lines 2 and 3\); names must differ"),
        ({"joint": "j1"}, r"two joints are called 'j1' \(lines 2 and 3\)"),
        ({"range": 'range="1 -1"'}, r"the range of the joint 'j2' is empty, from 1 to -1 \(line 3\)"),
        ({"control": 'ctrlrange="0 0" ctrllimited="true"'}, r"the ctrlrange of the actuator of 'j2' is empty.*line 7"),
        ({"control": 'ctrlrange="1 -1"'}, "the ctrlrange of the actuator of 'j2' is empty, from 1 to -1"),
    ],
)
def test_what_is_wrong_in_an_mjcf_is_said_with_its_line(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(MJCF.format(**GOOD))
    assert from_file(path).joints == ("j1", "j2")
    path.write_text(MJCF.format(**GOOD | changes))
    with pytest.raises(SceneError, match=f"^arm.xml: {message}"):
        from_file(path)


def test_what_is_wrong_in_a_declaration_is_said() -> None:
    panda, hand = robot("panda").arm, gripper("rethink")
    twice = replace(panda.links[1], name=panda.links[2].name)
    with pytest.raises(SceneError, match="panda: two links are called 'link2'"):
        assemble(replace(panda, links=(panda.links[0], twice, *panda.links[2:])), hand)
    with pytest.raises(
        SceneError, match=r"control range of 'left_finger_joint' is empty.*open_q and closed_q .* differ"
    ):
        assemble(panda, replace(hand, closed_q=hand.open_q))


def test_a_short_arm_is_told_that_it_has_no_full_pose(tmp_path: Path) -> None:
    path = tmp_path / "short.xml"
    path.write_text(MJCF.format(**GOOD))
    arm = register(from_file(path, gripper="panda_hand"))
    assert not set(arm.controllers) & set(POSE_CONTROLLERS) and "ee_delta_pos" in arm.controllers
    with pytest.raises(UnknownNameError, match="Its 2 joints cannot turn the tool in every way at every place"):
        manikin.make("PickCube-v2", robot="short", control="ee_delta_pose")
    found = [f for f in check_robot(robot("short")) if f.lint == "pose"]
    assert len(found) == 1 and not found[0].error and "2 joints cannot turn" in found[0].what
    asked = register(from_file(path, name="asks", gripper="panda_hand", controllers=("joint_pos", "osc_pose")))
    assert [f.error for f in check_robot(robot(asked.name)) if f.lint == "pose"] == [True]
    six = from_file(_six(tmp_path), **OPTIONS)
    assert set(POSE_CONTROLLERS) <= set(six.controllers)


def _six(folder: Path) -> Path:
    path = folder / "six.urdf"
    path.write_text(arm_text())
    return path


# ---- the command line ------------------------------------------------------------------------------------------------


def test_commands_take_the_file_of_a_robot(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "PickCube-v2", "--robot", "my_arm.py"]) == 0
    assert "my_arm with joint_delta_pos" in capsys.readouterr().out
    words = ["collect", "PickCube-v2", "--episodes", "1", "--policy", "random", "--horizon", "5", "--out", "a.h5"]
    assert main([*words, "--robot", "my_arm.py+rethink"]) == 0
    out = capsys.readouterr().out
    assert "1 episode, " in out and "replay a.h5 --check --robot my_arm.py" in out
    from manikin import robots

    robots.forget()  # as in a process that has not read the file
    assert main(["replay", "a.h5", "--check"]) == 2
    assert "unknown robot 'my_arm'" in capsys.readouterr().err
    assert main(["replay", "a.h5", "--check", "--robot", "my_arm.py"]) == 0
    robots.forget()
    words = ["train", "ppo", "PickCube-v2", "--steps", "16", "--minutes", "0", "--no-test", "--out", "run"]
    small = ["env.num_envs=2", "env.horizon=4", "num_steps=8", "minibatches=2", "hidden=[8]", "critic_hidden=[8]"]
    assert main([*words, "--robot", "my_arm.py", "--set", *small]) == 0
    assert 'robot = "my_arm"' in (folder / "run/recipe.toml").read_text()
    robots.forget()
    capsys.readouterr()
    assert main(["train", "--resume", "run", "--no-test"]) == 2
    assert "unknown robot 'my_arm'" in capsys.readouterr().err
    assert main(["train", "--resume", "run", "--no-test", "--robot", "my_arm.py"]) == 0
    assert main(["info", "PickCube-v2", "--robot", "six.urdf+panda_hand", "--markdown"]) == 0
    assert main(["replay", "a.h5", "--robot", "panda"]) == 2
    (folder / "empty.py").write_text("")
    assert main(["info", "PickCube-v2", "--robot", "empty.py"]) == 2
    assert "declares no ArmSpec called ARM" in capsys.readouterr().err
    (folder / "broken.py").write_text("\n1 / 0")
    assert main(["info", "PickCube-v2", "--robot", "broken.py"]) == 2
    assert "ZeroDivisionError" in (err := capsys.readouterr().err) and "line 2" in err


def test_numbers_of_the_task_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    config = ["--config", "spawn_half_size=0.3,0.4", "cube_half_size=.03"]
    assert main(["info", "StackCube-v2", "--markdown", *config]) == 0
    out = capsys.readouterr().out
    assert "| `spawn_half_size` | (0.3, 0.4) |" in out and "| `cube_half_size` | 0.03 |" in out
    for word, said in {
        "cube_half_siz=1": "unknown option of StackCube-v2 'cube_half_siz'. Did you mean 'cube_half_size'",
        "cube_half_size=big": "takes a value like cube_half_size=0.02",
        "spawn_half_size=1,2,3,x": "takes a value like spawn_half_size=0.1,0.2",
        "cube_half_size": "--config takes key=value, not 'cube_half_size'",
    }.items():
        assert main(["info", "StackCube-v2", "--config", word]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", ["info", "demo", "collect", "train", "check", "view", "teleop", "bench", "warmup"])
def test_every_command_that_names_a_task_takes_numbers_and_files(command: str, capsys) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = capsys.readouterr().out
    assert "--config" in said and "--robot" in said and "--first-seed" not in said


def test_the_old_word_for_a_seed_is_answered_with_the_new_one(capsys) -> None:
    for words in (["--first-seed", "3"], ["--first-seed=3"]):
        assert main(["collect", "PickCube-v2", *words]) == 2
        assert "--first-seed is called --seed" in capsys.readouterr().err


@pytest.mark.parametrize("width", ["50", "80"])
def test_tables_lose_no_letters_however_narrow_the_screen(width: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert main(["bench", "--num-envs", "1", "--seconds", "0.05"]) == 0
    bench = capsys.readouterr().out
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    for word in ("environments", "steps/s", "physics", "one row", "memory", "in a step"):
        assert word in bench
    assert "…" not in bench + listed
    assert task_class("TwoArmPegInHole-v2").instruction in listed
