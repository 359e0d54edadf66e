"""The commands about tasks: list, info, new, check, bench. Run in this process: a start costs seconds."""

from __future__ import annotations

import importlib
import importlib.util
import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from manikin.author.scaffold import names
from manikin.cli import COMMANDS, main
from manikin.cli.common.options import file_name
from manikin.data.recorder import largest_episode
from manikin.data.recording.read import read_episodes
from manikin.env.make import make
from manikin.env.registry import family_title, task_families, task_ids
from manikin.errors import ConfigError
from manikin.robots import arm, arms, robots


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def failed(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """What a command says when it is used wrongly; it exits with 2, without a traceback."""
    assert main([*args]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith(f"manikin {args[0]}: ")
    return said.err


def test_help_of_a_flag_says_what_giving_it_does(capsys) -> None:
    flags = {
        "collect": {"pictures", "states", "check-disk"},
        "check": {"expert"},
        "multiply": {"states"},
        "robot-check": {"reach"},
        "train": {"test"},
    }
    for command, (module, _) in COMMANDS.items():
        kinds = [v for k, v in vars(importlib.import_module(f"manikin.cli.{module}")).items() if k.endswith("Options")]
        for field in (f for kind in kinds for f in fields(kind) if f.default is True):
            assert field.type == "On", f"{command}: {field.name}"
            assert field.name.replace("_", "-") in flags[command]
    for command, given in flags.items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        said = capsys.readouterr().out
        assert "default: True" not in said
        assert all(f"--no-{flag}" in said for flag in given)


def test_list_names_every_task_robot_and_controller(capsys) -> None:
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for word in (*task_ids(), *arms(), *(c for a in arms() for c in arm(a).controllers)):
        assert word in out
    most = len(task_ids()) + 2 * len(task_families()) + len(robots()) + 40  # a line each, and two per family
    assert len(out.splitlines()) < most


def test_list_has_a_heading_per_family_and_lists_one_alone(capsys) -> None:
    assert main(["list"]) == 0
    lines, at = [line.rstrip() for line in capsys.readouterr().out.splitlines()], 0
    for family, tasks in task_families().items():  # in this order, every task under its heading
        at = next(k for k in range(at, len(lines)) if lines[k].startswith(family_title(family)))
        assert f"--family {family}" in lines[at]
        assert [line.split()[0] for line in lines[at + 1 : at + 1 + len(tasks)]] == tasks
        assert lines[at + 1 + len(tasks)] == ""
    assert main(["list", "--family", "drawing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == task_families()["drawing"]
    assert main(["list", "--family", "drawings"]) == 2
    said = capsys.readouterr().err
    assert "Did you mean 'drawing'?" in said and all(family in said for family in task_families())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["info", "AntWalk-v1", "--robot", "panda"], "it takes ant, humanoid"),
        (["collect", "DrawTriangle-v1", "--robot", "panda"], "panda+stick"),
        (["info", "HumanoidStand-v1", "--robot", "go2"], "it takes humanoid"),
        (["info", "PickCube-v2", "--robot", "go2"], "PickCube-v2 is tested with 'panda' or 'ur5e'"),
    ],
)
def test_a_command_says_which_robots_a_task_takes(words: list[str], said: str, capsys) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_info_says_what_a_task_is(capsys, tmp_path: Path) -> None:
    picture = tmp_path / "pictures" / "start.png"
    assert main(["info", "PickCube-v2", "--picture", str(picture)]) == 0
    out = capsys.readouterr().out
    for word in (
        "0 to 8",
        "qpos",
        "rad, gripper m",
        "cube_to_goal",
        "1 - tanh(5 d)",
        "at most 5",
        "goal_radius",
        "joint7",
    ):
        assert word in out, word
    assert "covered" in out  # measured
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_info_with_another_robot_and_controller_as_markdown(capsys) -> None:
    assert main(["info", "PickCube-v2", "--robot", "so101", "--control", "ee_delta_pos", "--markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# PickCube-v2\n")
    assert "`so101` with `ee_delta_pos`" in out
    assert "| `cube_half_size` | 0.0125 |" in out  # a smaller cube for a smaller robot
    assert "the gripper's orientation follows from its position" in out
    assert "| 3 | gripper |" in out


def test_bench_measures_and_writes(capsys, tmp_path: Path) -> None:
    file = tmp_path / "speed.json"
    for _ in range(5):  # what else runs here may slow one of the two measurements
        assert main(["bench", "--num-envs", "1", "4", "--seconds", "0.1", "--out", str(file)]) == 0
        assert "steps/s" in capsys.readouterr().out
        report = json.loads(file.read_text())
        assert report["task"] == "PickCube-v2" and report["machine"]["processor"]
        assert [s["num_envs"] for s in report["speed"]] == [1, 4]
        for speed in report["speed"]:
            assert speed["bytes_per_env"] > 1e5 and speed["scratch_per_env"] == speed["card_bytes"] == 0
        share = [speed["env"] / speed["raw"] for speed in report["speed"]]
        if 0 < min(share) < max(share) < 1.2:  # no environment is faster than its physics
            break
    else:
        pytest.fail(f"an environment faster than its physics, five times: {share}")


def test_collect_keeps_pictures_says_its_rate_and_asks_the_disk_first(
    capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.h5"
    words = ["collect", "PickCube-v2", "--policy", "random", "--episodes", "3", "--num-envs", "2", "--horizon", "4"]
    assert main([*words, "--observe", "rgb,state", "--out", str(file)]) == 0
    said = capsys.readouterr().out
    assert "3/3" in said and "/s" in said and "left" in said
    with read_episodes(file) as episodes:
        observations = episodes[2].observations
        assert observations["cameras/base_camera/rgb"].shape == (5, 128, 128, 3)
        assert observations["cameras/base_camera/rgb"].std() > 10
        env = make("PickCube-v2", 1, horizon=4, observe="rgb+state")
        most = largest_episode(env, observations=True)
        env.close()
        tree = [v for v in vars(episodes[2]).values() if isinstance(v, np.ndarray)]
        tree += [v for part in ("observations", "forces", "joints", "reward_terms", "flags", "initial")
                 for v in getattr(episodes[2], part).values()]  # fmt: skip
        held = sum(value.nbytes for value in tree)
        assert held < most < 1.2 * held + 10_000
    free = shutil.disk_usage(tmp_path)._replace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    assert main([*words, "--observe", "rgb", "--out", str(tmp_path / "new.h5")]) == 2
    assert "0.00 GB are free" in capsys.readouterr().err
    assert not list(tmp_path.glob("new*"))
    chosen = ["--camera", "hand_camera", "--size", "16", "12", "--renderer", "rays"]
    assert main([*words, "--no-check-disk", "--out", str(tmp_path / "new.h5"), "--observe", "rgb", *chosen]) == 0
    with read_episodes(tmp_path / "new.h5") as episodes:
        seen = {k: v.shape for k, v in episodes[0].observations.items() if k.endswith("/rgb")}
        assert seen == {"cameras/hand_camera/rgb": (5, 12, 16, 3)}
    unseen = [
        "--episodes",
        "1",
        "--no-pictures",
        "--no-states",
        "--no-check-disk",
        "--out",
        str(tmp_path / "unseen.h5"),
    ]
    assert main([*words, "--observe", "rgb", *chosen, *unseen]) == 0
    with read_episodes(tmp_path / "unseen.h5") as episodes:
        assert episodes[0].observations is None and episodes[0].states is None
    capsys.readouterr()
    assert "need pictures, but --observe is 'state'" in failed(capsys, *words, *chosen)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("StackBowls", ("StackBowls", "StackBowls-v1", "stack_bowls")),
        ("stack_bowls", ("StackBowls", "StackBowls-v1", "stack_bowls")),
        ("StackBowls-v3", ("StackBowls", "StackBowls-v3", "stack_bowls")),
        ("stack 3 USB sticks", ("Stack3USBSticks", "Stack3USBSticks-v1", "stack_3_usb_sticks")),
    ],
)
def test_names(word: str, expected: tuple[str, str, str]) -> None:
    assert names(word) == expected


def test_a_name_that_is_none() -> None:
    for word in ("", "3d", "a/b", "été", "-v1"):
        with pytest.raises(ConfigError, match="is not a valid name for a task"):
            names(word)


def test_home_is_found_behind_an_equals_sign(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["new", "task", "LiftThing", "--dir=~/tasks"]) == 0
    assert (tmp_path / "tasks" / "lift_thing.py").is_file()


def test_a_new_task_passes_check_and_its_own_test_as_it_is(capsys, tmp_path: Path) -> None:
    assert main(["new", "task", "open_drawer", "--dir", str(tmp_path / "mine")]) == 0
    out = capsys.readouterr().out
    task, test = tmp_path / "mine" / "open_drawer.py", tmp_path / "mine" / "test_open_drawer.py"
    assert str(task) in out and f"manikin check {task}" in out
    assert len(task.read_text().splitlines()) <= 80
    assert main(["check", str(task)]) == 0
    out = capsys.readouterr().out
    assert "OpenDrawer-v1" in out and "all 22 checks passed" in out
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name]
    done = subprocess.run(command, cwd=test.parent, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    config = ("--config", str(Path(__file__).parents[2] / "pyproject.toml"))
    for tool in (("check", "--extend-ignore", "D"), ("format", "--check")):  # in the house's style
        command = [sys.executable, "-m", "ruff", *tool, *config, str(task), str(test)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "is there already" in failed(capsys, "new", "task", "OpenDrawer", "--dir", str(task.parent))


def test_check_exits_with_1_when_a_promise_is_broken(capsys, tmp_path: Path) -> None:
    assert main(["new", "task", "Broken", "--dir", str(tmp_path)]) == 0
    file = tmp_path / "broken.py"
    file.write_text(file.read_text().replace('"reach": reach,', '"reach": 50 * reach,'))
    capsys.readouterr()
    assert main(["check", str(file), "--no-expert", "--episodes", "10"]) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out and "above reward_max = 3" in out and "1 of 22 failed" in out


def test_wrong_words_get_the_valid_ones(capsys, tmp_path: Path) -> None:
    assert "Did you mean 'PickCube-v2'" in failed(capsys, "info", "PickCub-v2")
    assert "Valid: " in failed(capsys, "info", "PickCube-v2", "--robot", "pandda")
    assert "joint_delta_pos" in failed(capsys, "info", "PickCube-v2", "--control", "joint")
    assert "ends in .png" in failed(capsys, "info", "PickCube-v2", "--picture", "start.jpg")
    assert "there is no file" in failed(capsys, "check", str(tmp_path / "nowhere.py"))
    assert "PickCube-v2" in failed(capsys, "bench", "Nothing-v1")
    assert "positive" in failed(capsys, "bench", "--seconds", "0")
    assert "positive integer" in failed(capsys, "bench", "--num-envs", "0")
    assert "is not a valid name for a task" in failed(capsys, "new", "task", "3d")


def test_a_device_that_is_not_installed_is_said_before_anything_else(capsys, monkeypatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *at: None if "warp" in name else real(name, *at))
    for words in (["bench"], ["eval", "pick-cube", "--policy", "random"], ["warmup", "PickCube-v2"]):
        said = failed(capsys, *words, "--device", "warp:cpu")
        assert "needs MuJoCo Warp, which is not installed: pip install 'manikin[gpu]'" in said


def test_eval_ends_once_it_knows_and_plans(capsys, tmp_path: Path) -> None:
    assert "need two different ones" in failed(capsys, "eval", "--plan", "0.7", "0.7")
    assert "name a protocol" in failed(capsys, "eval")
    assert "a success rate such as 0.9, or better; got 'often'" in failed(
        capsys, "eval", "pick-cube", "--until", "often"
    )
    assert "both excluded" in failed(capsys, "eval", "pick-cube", "--until", "1.5")
    assert "--against" in failed(capsys, "eval", "pick-cube", "--until", "better")
    assert main(["eval", "--plan", "0.7", "0.8"]) == 0
    said = capsys.readouterr().out
    assert "313 episodes each" in said and "294 episodes each" in said
    (tmp_path / "p.toml").write_text(
        'format = 1\nname = "p"\ntasks = ["PickCube-v2"]\nhorizon = 3\n[episodes]\nfirst_seed = 0\ncount = 12\n'
    )
    words = ["eval", str(tmp_path / "p.toml"), "--policy", "random", "--pictures", "0", "--out", str(tmp_path / "run")]
    assert main([*words, "--until", "0.5"]) == 0
    assert "below 50.0%" in capsys.readouterr().out
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert len(report["per_task"][0]["per_episode"]) == report["per_task"][0]["answer"]["episodes"] < 12
    assert report["command"].endswith("--until 0.5")


def test_a_file_that_cannot_be_written_is_said_without_a_traceback(capsys, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert main(["info", "PickCube-v2", "--picture", str(tmp_path / "file" / "a.png")]) == 2
    assert f"{tmp_path / 'file'}" in (told := capsys.readouterr().err) and told.startswith("manikin info: ")


def test_a_file_that_cannot_be_imported_is_said_with_its_line(capsys, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\ndef f(:\n")
    assert "mine.py, line 2: invalid syntax" in failed(capsys, "check", str(file))
    file.write_text("\nimport nothing_that_exists\n")
    said = failed(capsys, "info", str(file))
    assert "No module named 'nothing_that_exists'" in said and "mine.py, line 2" in said
    file.write_text("x = 1\n")
    assert "task class" in failed(capsys, "check", str(file))


def test_names_of_recordings_are_names_of_files_anywhere() -> None:
    assert file_name("PickCube-v2-remote 127.0.0.1:18101") == "PickCube-v2-remote-127.0.0.1-18101"
    assert file_name("PickCube-v2-expert") == "PickCube-v2-expert"
    assert file_name("T-v1-my/policy.py:make <2>") == "T-v1-my-policy.py-make-2"


def test_wrong_usage_exits_with_2(capsys) -> None:
    for args in (["new", "robot", "x"], ["new", "task"], ["info"], ["check", "PickCube-v2", "--nothing"]):
        with pytest.raises(SystemExit) as exit:
            main(args)
        assert exit.value.code == 2


def test_every_command_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    for command in COMMANDS:
        assert f"\n## manikin {command}" in page, command
