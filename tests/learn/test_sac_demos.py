"""SAC that learns from demonstrations: which steps they give, what is refused, and the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from manikin import make
from manikin.cli import main
from manikin.cli.train import TrainOptions, run
from manikin.data.formats.convert import to_robomimic
from manikin.data.recording.read import EpisodeFile
from manikin.errors import ConfigError, DataError
from manikin.learn.run.recipe import recipe_for
from manikin.learn.sac import SAC, Config
from toy_sac import SMALL, train_sac


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two episodes of the expert, and one of chance."""
    folder = tmp_path_factory.mktemp("demos")

    def collect(name, *words):
        out = str(folder / f"{name}.h5")
        assert main(["collect", "PushCube-v2", "--episodes", "2", "--horizon", "60", "--out", out, *words]) == 0
        return out

    return {
        "expert": collect("expert", "--observations"),
        "chance": collect("chance", "--observations", "--policy", "random"),
        "blind": collect("blind"),
        "policy": collect("policy", "--observations", "--observe", "policy"),
        "osc": collect("osc", "--observations", "--control", "ee_delta_pos"),
    }


def test_demonstrations_are_the_steps_of_the_recording_with_the_sparse_reward(recorded):
    trainer, _ = train_sac(0, reward="sparse", demos=recorded["expert"])
    with EpisodeFile(recorded["expert"]) as file:
        episodes = list(file)
    assert all(episode.success_once for episode in episodes)
    demos = trainer.demos
    assert len(demos) == sum(len(episode) for episode in episodes)
    at = 0
    for episode in episodes:
        n = len(episode)
        np.testing.assert_array_equal(demos.seen[at : at + n, 0], episode.observations["value"][:-1])
        np.testing.assert_array_equal(demos.following[at : at + n, 0], episode.observations["value"][1:])
        np.testing.assert_array_equal(demos.actions[at : at + n, 0], episode.actions)
        assert demos.rewards[at : at + n, 0].tolist() == [0.0] * (n - 1) + [1.0]
        assert demos.ended[at : at + n, 0].tolist() == [False] * (n - 1) + [True]
        assert demos.kept[at + n - 1, 0]
        at += n


def test_demonstrations_of_another_project_are_observed_state_by_state(recorded, tmp_path):
    """Exported for robomimic, whose files name states and actions, a recording gives the same steps."""
    out = to_robomimic(recorded["expert"], tmp_path / "push.hdf5")
    ours, theirs = (train_sac(0, reward="sparse", demos=str(path))[0].demos for path in (recorded["expert"], out))
    for name in ("seen", "following"):
        torch.testing.assert_close(getattr(theirs, name), getattr(ours, name), atol=1e-5, rtol=0)
    for name in ("actions", "rewards", "ended", "kept"):
        assert torch.equal(getattr(theirs, name), getattr(ours, name))
    with pytest.raises(ConfigError, match=r"demonstrations of another project.*learn from them without reverse"):
        train_sac(0, reward="sparse", demos=str(out), reverse=4)
    with pytest.raises(ConfigError, match="control 'joint_delta_pos', here 'osc_pose'"):
        SAC(
            make("PushCube-v2", reward="sparse", control="osc_pose", physics_hz=500), Config(**SMALL, demos=str(out)), 0
        )


def test_the_human_demonstrations_of_robosuites_lift_succeed_in_their_last_steps(data_root):
    path = data_root / "demos/robosuite_1.4.1/lift_demo.hdf5"
    env = make("Lift-v2", num_envs=2, reward="sparse", control="osc_pose:frame=world", autoreset="same_step")
    demos = SAC(env, Config(**SMALL, demos=str(path)), 0).demos
    ends = demos.ended[:, 0].nonzero()[:, 0].tolist()
    assert len(ends) == 3 and demos.kept.all()
    for end in ends:
        assert demos.rewards[end - 5 : end + 1].min() == 1 and demos.rewards[end - 30].item() == 0


def test_without_the_option_nothing_counts_after_a_demonstrated_success_but_after_time_ran_out(recorded):
    """Chance succeeds at neither; its last step ran out of time, and its value counts."""
    for name, kept in (("expert", False), ("chance", True)):
        trainer, _ = train_sac(0, reward="sparse", demos=recorded[name], bootstrap_at_success=False)
        assert trainer.demos.kept[trainer.demos.ended].unique().tolist() == [kept]


def test_where_success_does_not_end_an_episode_it_does_not_end_a_demonstration(recorded):
    env = make("PushCube-v2", num_envs=2, reward="sparse", autoreset="same_step", terminate=False)
    demos = SAC(env, Config(**SMALL, demos=recorded["expert"], bootstrap_at_success=False), 0).demos
    assert demos.kept.all()


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_a_share_of_each_batch_comes_from_demonstrations(recorded, share):
    trainer, numbers = train_sac(4, reward="sparse", demos=recorded["expert"], demo_share=share, normalize=False)
    assert "critic_loss" in numbers[-1]
    known = trainer.actor.scaling(trainer.demos.seen[:, 0])
    for part in trainer.batches():
        from_demos = (part["seen"][:, None] == known[None]).all(2).any(1)
        assert len(from_demos) == 12 and int(from_demos.sum()) == round(12 * share)


def test_demonstrations_with_the_dense_reward_need_the_same_reward(recorded):
    trainer, _ = train_sac(0, demos=recorded["expert"])
    with EpisodeFile(recorded["expert"]) as file:
        rewards = np.concatenate([episode.rewards for episode in file])
    np.testing.assert_array_equal(trainer.demos.rewards[:, 0], rewards)
    with pytest.raises(ConfigError, match="has rewards 'normalized_dense', and the environment 'dense'"):
        train_sac(0, reward="dense", demos=recorded["expert"])


def test_demonstrations_of_another_kind_are_refused(recorded):
    with pytest.raises(ConfigError, match="hold no flat observations: collect them with --observations"):
        train_sac(0, reward="sparse", demos=recorded["blind"])
    with pytest.raises(ConfigError, match="another environment: observe 'policy', here 'state'"):
        train_sac(0, reward="sparse", demos=recorded["policy"])
    with pytest.raises(ConfigError, match="another environment: control 'ee_delta_pos', here 'joint_delta_pos'"):
        train_sac(0, reward="sparse", demos=recorded["osc"])
    env = make("PullCube-v2", num_envs=2, reward="sparse", autoreset="same_step")
    with pytest.raises(ConfigError, match="task 'PushCube-v2', here 'PullCube-v2'"):
        SAC(env, Config(**SMALL, demos=recorded["expert"]), 0)
    with pytest.raises(DataError, match="no recording"):
        train_sac(0, reward="sparse", demos="nowhere.h5")


def test_a_run_does_not_go_on_with_other_demonstrations(recorded):
    half, _ = train_sac(2, reward="sparse", demos=recorded["expert"])
    rest, _ = train_sac(0, reward="sparse", demos=recorded["chance"])
    with pytest.raises(ConfigError, match="other demonstrations than when this run was begun"):
        rest.load_state_dict(half.state_dict())


def test_a_task_may_have_a_recipe_of_its_own_for_demonstrations():
    recipe, own = recipe_for("sac", "Lift-v2", demos=True)
    assert own and recipe.env["terminate"] is True and recipe.env["control"] == "osc_pose:frame=world"
    assert list(recipe.config.value_range) == [-1, 1]  # success pays once
    other, own = recipe_for("sac", "LiftPegUpright-v2", demos=True)  # whose id begins as Lift's does
    assert not own and not other.config.value_range and "control" not in other.env


def test_the_command_learns_from_demonstrations_and_its_policy_is_one_like_any_other(recorded, tmp_path, capsys):
    folder = str(tmp_path / "run")
    words = ["train", "sac", "PushCube-v2", "--demos", recorded["expert"], "--out", folder, "--pictures", "0"]
    small = ["hidden=[8]", "critic_hidden=[8]", "batch=8", "start_steps=8", "env.num_envs=4", "env.horizon=8"]
    fill = tmp_path / "recipe.toml"
    recipe, own = recipe_for("sac", "PushCube-v2", demos=True)
    assert not own and recipe.env["reward"] == "sparse"
    fill.write_text(recipe.replace(validation_episodes=2, test_episodes=2).to_toml())
    words[1:3] = ["--recipe", str(fill)]
    assert main([*words, "--set", *small, "--steps", "16", "--minutes", "0"]) == 0
    assert 'reward = "sparse"' in capsys.readouterr().out
    assert main(["eval", f"{folder}/protocol.toml", "--policy", folder, "--out", str(tmp_path / "again")]) == 0
    with pytest.raises(ConfigError, match="give only --minutes"):
        run(TrainOptions(resume=tmp_path / "run", demos=Path("other.h5")))
