"""The policies that come with manikin: small, named, and as good as recorded."""

from __future__ import annotations

import hashlib
import shutil

import pytest

from manikin import make
from manikin.cli import main
from manikin.data.recording.read import EpisodeFile
from manikin.errors import AssetError, ConfigError, DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.learn.common.begin import begin_as
from manikin.learn.common.seeds import TEST
from manikin.learn.common.teacher import Teacher
from manikin.learn.run import recipe as recipes
from manikin.learn.run.demos import DEMOS, demonstrations_of
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.train import train
from manikin.policy import shipped
from manikin.policy.choices import find_trained, policy_maker
from manikin.policy.expert import ExpertPolicy
from manikin.policy.shipped import LARGEST, shipped_policies
from manikin.policy.trained import read_about


@pytest.mark.parametrize("name", shipped_policies())
def test_a_policy_is_small_says_where_it_is_from_and_does_what_is_recorded(name):
    file = shipped_policies()[name]
    about = read_about(file)
    assert file.stat().st_size <= LARGEST
    assert name == f"{about['algorithm']}-{about['task']}"
    assert about["command"] == f"manikin train {about['algorithm']} {about['task']} --seed {about['seed']}"
    assert Recipe.from_toml(about["recipe"], source=str(file)) == recipe_for(about["algorithm"], about["task"])[0]
    assert about["tested"]["episodes"] >= 512 and about["tested"]["low"] > 0.9
    env = make(about["task"], num_envs=64, autoreset="disabled")
    run = run_episodes(env, policy_maker(name)(env), range(TEST, TEST + 64))
    env.close()
    # 64 of the recorded episodes: fewer successes than this happen once in a thousand at the lower end
    assert sum(r.success_once for r in run.results) >= 64 * about["tested"]["low"] - 10


def test_the_recorded_hashes_are_those_of_the_files():
    lines = (shipped.FOLDER / shipped.HASHES).read_text().splitlines()
    files = sorted(shipped.FOLDER.glob("*.safetensors"))
    assert lines == [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]


def test_a_file_that_was_changed_is_refused_wherever_it_is_named(tmp_path, monkeypatch, capsys):
    folder = shutil.copytree(shipped.FOLDER, tmp_path / "shipped")
    monkeypatch.setattr(shipped, "FOLDER", folder)
    file = folder / "ppo-PushCube-v2.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # a weight's last bit
    file.write_bytes(content)
    said = "the policy ppo-PushCube-v2 is not the one that comes with manikin"
    for use in (policy_maker, lambda word: Teacher(word, make("PushCube-v2", observe="state_dict"))):
        with pytest.raises(DataError, match=said):
            use("ppo-PushCube-v2")
    assert main(["export", "ppo-PushCube-v2", "--out", str(tmp_path / "a.onnx")]) == 2
    assert main(["policies", "--verify", "ppo-PushCube-v2"]) == 1
    assert said in " ".join(capsys.readouterr().out.split())
    policy_maker("ppo-PickCube-v2")  # the other is as it was
    shipped.record_hashes()
    policy_maker("ppo-PushCube-v2")
    (folder / shipped.HASHES).write_text("")
    with pytest.raises(DataError, match=r"sha256\.txt none for it"):
        policy_maker("ppo-PickCube-v2")


def stopped(*_, **__):
    raise DataError("somebody stopped it")


def test_a_runs_policy_becomes_one_that_comes_along(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shipped, "FOLDER", shutil.copytree(shipped.FOLDER, tmp_path / "shipped"))
    settings = {"num_steps": 6, "minibatches": 2, "hidden": [8], "critic_hidden": [8]}
    recipe = Recipe(algorithm="ppo", task="PullCube-v2", env={"num_envs": 4}, settings=settings, steps=24, minutes=0)
    recipe = recipe.replace(validation_episodes=2, test_episodes=3)
    train(recipe, folder=tmp_path / "run", seed=5)
    kept, add = shipped_policies()["ppo-PullCube-v2"].read_bytes(), ["policies", "--add", str(tmp_path / "run")]
    assert main(add) == 2
    assert "ppo-PullCube-v2 comes with manikin already: --replace" in " ".join(capsys.readouterr().err.split())
    assert main([*add, "--replace"]) == 2  # nobody can make it again by a plain command
    said = " ".join(capsys.readouterr().err.split())
    assert "only a policy that manikin train makes again" in said and recipe.hash[:12] in said
    monkeypatch.setattr(recipes, "recipe_for", lambda algorithm, task: (recipe, True))
    with monkeypatch.context() as patched:
        patched.setattr("manikin.eval.evaluation.evaluate", stopped)
        assert main([*add, "--replace"]) == 2
    assert "somebody stopped it" in capsys.readouterr().err
    assert shipped_policies()["ppo-PullCube-v2"].read_bytes() == kept
    assert not (tmp_path / "run/ppo-PullCube-v2.safetensors").exists()
    assert main([*add, "--replace"]) == 0
    about = read_about(shipped_policies()["ppo-PullCube-v2"])
    assert about["tested"]["episodes"] == 3 and about["command"] == "manikin train ppo PullCube-v2 --seed 5"
    policy_maker("ppo-PullCube-v2")(make("PullCube-v2"))
    assert main(["policies", "--verify", "ppo-PullCube-v2"]) == 0
    assert "its SHA-256 is as recorded" in " ".join(capsys.readouterr().out.split())


def test_all_together_are_small():
    assert sum(file.stat().st_size for file in shipped_policies().values()) <= 5_000_000


def test_the_command_lists_them_and_an_unknown_one_is_named(capsys):
    assert main(["policies"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in shipped_policies())
    assert main(["policies", "--verify", "nobody"]) == 2
    with pytest.raises(UnknownNameError, match="nobody"):
        policy_maker("nobody")


def test_a_word_that_names_no_policy_is_answered_with_the_nearest_and_a_folder_with_what_it_lacks(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean 'ppo-PickCube-v2'") as unknown:
        policy_maker("ppo-PickCub-v2")
    assert "expert" in str(unknown.value) and "`manikin policies` lists" in str(unknown.value)
    with pytest.raises(AssetError, match=r"no run's folder and no file at .*nope"):
        policy_maker(str(tmp_path / "nope"))
    with pytest.raises(AssetError, match=r"no trained policy in .*a run's folder holds one"):
        policy_maker(str(tmp_path))


def test_the_expert_of_a_task_without_a_script_is_the_policy_that_comes_along(tmp_path):
    path = tmp_path / "hop.h5"
    assert main(["collect", "HopperStand-v1", "--episodes", "1", "--horizon", "5", "--out", str(path)]) == 0
    with EpisodeFile(path) as file:
        assert file.needed_header().policy == "ppo-HopperStand-v1"
    scripted = make("PushCube-v2")  # has both: the script stays its expert
    assert type(policy_maker("expert")(scripted)) is ExpertPolicy
    neither = make("HopperHop-v1")
    with pytest.raises(ConfigError, match="HopperHop-v1 has no scripted expert; write its expert"):
        policy_maker("expert")(neither)
    other = make("HopperStand-v1", observe="policy")
    with pytest.raises(ConfigError, match="was trained for observe 'state', here 'policy'"):
        policy_maker("expert")(other)
    with pytest.raises(ConfigError, match="the policy expert takes no seed"):
        policy_maker("expert", seed=1)


def test_imitation_records_the_policy_that_comes_along(tmp_path):
    said = []
    settings = {"demonstrations": 2, "updates": 1, "hidden": [8]}
    recipe = Recipe(algorithm="bc", task="HopperStand-v1", settings=settings, steps=1, minutes=0, validation_episodes=1)
    demonstrations_of(recipe, tmp_path, say=said.append)
    with EpisodeFile(tmp_path / DEMOS) as file:
        assert file.needed_header().policy == "ppo-HopperStand-v1" and len(file) == 2
    assert any("no scripted expert: ppo-HopperStand-v1" in one for one in said)


@pytest.mark.parametrize(
    "named",
    [
        find_trained,
        lambda word: recipe_for("ppo", "PickCube-v2", begin_from=word),
        lambda word: Teacher(word, None),
        lambda word: begin_as(word, None, {}, None, None),
    ],
    ids=["policy", "recipe", "teacher", "begin_from"],
)
def test_a_policy_to_learn_from_that_is_not_there_is_answered_with_the_nearest(named, tmp_path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown policy 'ppo-PickCub-v2'\. Did you mean 'ppo-PickCube-v2'"):
        named("ppo-PickCub-v2")
    with pytest.raises(AssetError, match="no run's folder and no file at"):
        named(str(tmp_path / "run"))
    with pytest.raises(AssetError, match="no trained policy in"):
        named(str(tmp_path))
