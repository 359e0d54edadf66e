"""Who is recorded for imitation: the expert, a planner between its waypoints, or a trained policy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manikin import make
from manikin.cli import main
from manikin.data.recording.read import EpisodeFile
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.learn.run.demos import DEMOS, demonstrations_of
from manikin.learn.run.page import summary_of
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.train import train
from manikin.policy.choices import policy_maker

SMALL = Recipe(
    algorithm="bc",
    task="PushCube-v2",
    env={"control": "joint_delta_pos"},
    settings={"hidden": [8], "updates": 2, "batch_size": 8, "demonstrations": 2},
    steps=2,
    minutes=0,
    validate_every=1,
    validation_episodes=2,
    test_episodes=2,
)
TRAINED = "ppo-PushCube-v2"


def test_each_source_is_recorded_and_says_who_it_is(tmp_path):
    first = {}
    for word in ("expert", "planner", TRAINED):
        path = demonstrations_of(SMALL.replace(settings={"demonstrations_of": word}), tmp_path / word)
        assert path == tmp_path / word / DEMOS
        with EpisodeFile(path) as file:
            assert file.needed_header().policy == word and file.numbers == [0, 1]
            assert all(episode.success_once for episode in file)
            first[word] = file[0]
    assert len({one.state_hash[0] for one in first.values()}) == 1  # all begin alike, and then differ
    assert len({one.state_hash[1] for one in first.values()}) == 3
    # the trained policy's actions are its own
    env = make("PushCube-v2", num_envs=1)
    seen, _ = env.reset(seed=0)
    own = policy_maker(TRAINED)(env).act(seen, [""])[:, 0]
    np.testing.assert_allclose(first[TRAINED].actions[0], own[0].clamp(-1, 1), atol=1e-6)


def test_one_command_compares_the_sources(tmp_path, capsys):
    recipe, place = tmp_path / "small.toml", tmp_path / "runs"
    recipe.write_text(SMALL.to_toml())
    words = ["train", "--recipe", str(recipe), "--out", str(place), "--pictures", "0", "--no-test"]
    assert main([*words, "--vary", f'demonstrations_of=["expert","planner","{TRAINED}"]']) == 0
    runs = [summary_of(folder) for folder in sorted(place.iterdir()) if folder.is_dir()]
    assert {run["settings"]["demonstrations_of"] for run in runs} == {"expert", "planner", TRAINED}
    page = (place / "compared.html").read_text()
    assert "bc on PushCube-v2: demonstrations_of=planner" in page
    assert len({run["recipe_hash"] for run in runs}) == 3


def test_a_policy_of_ones_own_training_counts_by_its_content(tmp_path):
    settings = {"num_steps": 6, "hidden": [8], "critic_hidden": [8], "minibatches": 2}
    teacher = Recipe(algorithm="ppo", task="PushCube-v2", env={"num_envs": 4}, settings=settings, steps=24, minutes=0)
    train(teacher.replace(validation_episodes=2), folder=tmp_path / "teacher", seed=1)
    own = SMALL.replace(settings={"demonstrations_of": str(tmp_path / "teacher")})
    with pytest.raises(DataError, match=r"teacher succeeded in 0 of 10 episodes of PushCube-v2, 2 demonstrations were"):
        train(own.replace(env={"horizon": 3}), folder=tmp_path / "student", seed=1)  # too short for anybody
    with pytest.raises(ConfigError, match=r"demonstrations_of: .*teacher is not what the recipe names"):
        train(own.replace(sha256={"demonstrations_of": "0" * 64}), folder=tmp_path / "student", seed=1)


@pytest.mark.parametrize(
    "settings, env, error, said",
    [
        ({"demonstrations_of": "planer"}, {}, UnknownNameError, "'planer'. Did you mean 'planner'"),
        ({"demos": "a.h5", "demonstrations_of": "planner"}, {}, ConfigError, "set one of them"),
        ({"demonstrations_of": TRAINED}, {"control": "ee_delta_pos"}, ConfigError, "trained for control"),
    ],
)
def test_a_source_that_cannot_be_recorded_says_why(tmp_path, settings, env, error, said):
    with pytest.raises(error, match=said):
        demonstrations_of(SMALL.replace(settings=settings, env=env), tmp_path)


def test_a_planner_reaches_the_experts_waypoints_in_another_motion():
    """tests/plan says that it goes round what is in the way; here nothing is, and its motion begins gently."""
    ways = {}
    for word in ("expert", "planner"):
        env = make("PickCube-v2", num_envs=4, autoreset="disabled", terminate=False)
        observation, _ = env.reset(seed=3)
        policy, path, done = policy_maker(word)(env), [env.robot.tcp_pos.clone()], torch.zeros(4, dtype=torch.bool)
        for _ in range(env.horizon):
            observation, *_, info = env.step(policy.act(observation, [""] * 4)[:, 0])
            done |= info["success"]
            path.append(env.robot.tcp_pos.clone())
        assert done.all() and policy.name == word
        ways[word] = torch.stack(path)
        env.close()
    began = {word: (way[2] - way[0]).norm(dim=1) for word, way in ways.items()}
    assert (began["planner"] < 0.8 * began["expert"]).all()
