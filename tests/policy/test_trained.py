"""A trained policy acts where its robot is the one that it was trained with."""

from __future__ import annotations

import shutil
import zipfile

import pytest
import torch

from manikin import make
from manikin.cli import main
from manikin.errors import ConfigError, DataError
from manikin.learn.run.store import write
from manikin.policy.choices import policy_file, policy_maker
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import export_program, load_trained
from manikin.robots.identified import base

NAME = "ppo-PushCube-v2"


def _identified(folder, robot, joint="joint1"):
    file = folder / f"{robot.partition(':')[0]}.toml"
    file.write_text(f'format = 1\nrobot = "{robot}"\n[joints.{joint}]\nkp = 400.0\n')
    return str(file)


def test_it_acts_with_identified_parameters_of_its_robot(tmp_path):
    env = make("PushCube-v2", robot=_identified(tmp_path, "panda"), num_envs=2)
    observation, _ = env.reset(seed=1)
    plain = make("PushCube-v2", num_envs=2)
    policy = policy_maker(NAME)(env)
    assert torch.equal(policy.act(observation, [""] * 2), policy_maker(NAME)(plain).act(observation, [""] * 2))


def test_it_does_not_act_with_those_of_another_robot(tmp_path):
    env = make("PushCube-v2", robot=_identified(tmp_path, "xarm7"), num_envs=2)
    with pytest.raises(ConfigError, match=r"robot 'panda', here .*xarm7\.toml"):
        policy_maker(NAME)(env)


def test_a_file_stands_for_the_robot_that_it_names(tmp_path):
    panda, meshes = _identified(tmp_path, "panda"), _identified(tmp_path, "xarm7:menagerie")
    assert base("panda+robotiq_85") == "panda+robotiq_85"
    assert base(panda) == "panda"
    assert base(panda + "+robotiq_85") == "panda+robotiq_85"
    assert base(panda + ":menagerie") == "panda:menagerie"
    assert base(meshes) == "xarm7:menagerie"
    assert base(meshes + "+robotiq_85") == "xarm7+robotiq_85:menagerie"
    assert base(f"{panda},sawyer") == "panda,sawyer"


def test_a_file_of_its_own_names_its_policy_and_the_folder_that_of_a_run(tmp_path):
    env, file = make(NAME.partition("-")[2]), shipped_policies()[NAME]
    assert policy_maker(NAME)(env).name == NAME
    for place, called in (("mine.safetensors", "mine"), ("run/policy.safetensors", "ppo-run"), ("run", "ppo-run")):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        if place.endswith(".safetensors"):
            shutil.copy(file, tmp_path / place)
        assert policy_maker(str(tmp_path / place))(env).name == called


def test_the_file_of_a_policy_is_found_by_its_word(tmp_path):
    shutil.copy(shipped_policies()[NAME], tmp_path / "policy.safetensors")
    (tmp_path / "mine.py").write_text("")
    assert policy_file(NAME) == shipped_policies()[NAME]
    assert policy_file(str(tmp_path)) == tmp_path / "policy.safetensors"
    assert policy_file(f"{tmp_path / 'mine.py'}:make") == tmp_path / "mine.py"
    assert policy_file("random") is None and policy_file("ws://127.0.0.1:8000") is None


def _program(path, said=True):
    """The network of a shipped policy as a program, with what it was trained for or, as older ones, without."""
    module, about = load_trained(shipped_policies()[NAME])
    export_program(module, path, torch.zeros(1, len(about["observation"])), about=about if said else None)
    return str(path)


def test_a_program_says_what_it_was_trained_for_and_acts_nowhere_else(tmp_path):
    maker = policy_maker(_program(tmp_path / "policy.pt2"))
    env = make("PushCube-v2", num_envs=2)
    observation, _ = env.reset(seed=1)
    expected = policy_maker(NAME)(env).act(observation, [""] * 2)
    torch.testing.assert_close(maker(env).act(observation, [""] * 2), expected)
    maker(make("PushCube-v2", robot=_identified(tmp_path, "panda")))
    with pytest.raises(ConfigError, match=r"policy\.pt2 was trained for task 'PushCube-v2', here 'PullCube-v2'"):
        maker(make("PullCube-v2"))
    with pytest.raises(ConfigError, match="control 'joint_delta_pos', here 'joint_target_delta_pos'"):
        maker(make("PushCube-v2", control="joint_target_delta_pos"))
    older = policy_maker(_program(tmp_path / "older.pt2", said=False))
    older(make("PullCube-v2"))  # nothing says that it is another task's


def test_what_a_program_says_must_be_a_table(tmp_path):
    place, broken = _program(tmp_path / "policy.pt2"), tmp_path / "broken.pt2"
    for content in (b"{", b"[1]"):
        with zipfile.ZipFile(place) as archive, zipfile.ZipFile(broken, "w") as copy:
            for name in archive.namelist():
                copy.writestr(name, content if name.endswith("extra/manikin.json") else archive.read(name))
        with pytest.raises(DataError, match=r"broken\.pt2 was not written by torch\.export\.save"):
            policy_maker(str(broken))


def test_other_files_of_a_run_say_to_give_its_folder(tmp_path, capsys):
    write(tmp_path / "checkpoint.safetensors", {"state": 1}, {"recipe": ""})
    with pytest.raises(DataError, match=r"is a checkpoint, which --resume goes on from.* give the folder of its run, "):
        policy_maker(str(tmp_path / "checkpoint.safetensors"))
    assert main(["export", _program(tmp_path / "policy.pt2"), "--out", str(tmp_path / "a.onnx")]) == 2
    assert f"give the folder of its run, {tmp_path}" in " ".join(capsys.readouterr().err.split())
