"""PPO that begins from another policy: it acts as that one did, the critic learns first, and what is refused."""

from __future__ import annotations

import shutil

import pytest
import torch

from manikin import make
from manikin.cli import main
from manikin.errors import AssetError, ConfigError, UnknownNameError
from manikin.learn.common.numerics.moments import Moments
from manikin.learn.ppo import PPO, Config
from manikin.learn.run import store
from manikin.learn.run.recipe import Recipe, load_recipe, recipe_for
from manikin.learn.run.train import train
from manikin.policy.choices import policy_maker
from manikin.policy.networks.cloned import Cloned
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import load_trained, policy_hash, read_about, save_trained, weights_hash

TASK = "PushCube-v2"
SETTINGS = {"num_steps": 6, "epochs": 2, "minibatches": 3, "hidden": [16], "critic_hidden": [8], "learning_rate": 0.01}
RECIPE = Recipe(
    algorithm="ppo",
    task=TASK,
    env={"num_envs": 6, "horizon": 8, "observe": "policy"},
    settings=SETTINGS,
    steps=4 * 36,
    minutes=0,
    validate_every=2,
    validation_episodes=2,
    test_episodes=3,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose policy observes what a real robot knows."""
    folder = tmp_path_factory.mktemp("begin") / "run"
    train(RECIPE, folder=folder, seed=2)
    return folder


def _more(run, **settings):
    """A recipe whose policy begins from that of the run, and observes more."""
    return RECIPE.replace(env={"observe": "state"}, settings={"begin_from": str(run), **settings})


def _trainer(word, *, observe="state", seed=3, **given):
    config = {**SETTINGS, "hidden": (16,), "critic_hidden": (8,), "begin_from": str(word), **given}
    return PPO(make(TASK, num_envs=6, horizon=8, observe=observe), Config(**config), seed)


def _learned(trainer):
    return torch.cat([one.detach().flatten() for one in trainer.actor.parameters()])


def test_moments_that_begin_are_those_of_all_rows_together():
    rows, later = torch.randn(300, 2, dtype=torch.float64) * 3 + 5, torch.randn(50, 3, dtype=torch.float64) - 2
    moments = Moments(3)
    mean, std = (torch.cat([one, torch.tensor([7.0])]) for one in (rows.mean(0), rows.std(0, unbiased=False)))
    moments.begin(torch.tensor([300, 300, 0]), mean, std)
    assert moments.mean[2] == 0 and moments.variance[2] == 1
    for part in later.split(17):
        moments.add(part)
    together = torch.cat([rows, later[:, :2]])
    torch.testing.assert_close(moments.mean, torch.cat([together.mean(0), later[:, 2:].mean(0)]))
    expected = [one.var(0, unbiased=False) for one in (together, later[:, 2:])]
    torch.testing.assert_close(moments.variance, torch.cat(expected))
    restored = Moments(3)
    restored.load_state_dict(moments.state_dict())
    assert torch.equal(restored.count, moments.count) and torch.equal(restored.variance, moments.variance)


def test_with_the_same_observation_it_is_the_same_policy_to_the_bit(run):
    trainer, (before, _) = _trainer(run, observe="policy", log_std=-1.5), load_trained(run)
    state, theirs = trainer.actor.state_dict(), before.state_dict()
    assert (state.pop("log_std") == -1.5).all() and (theirs.pop("log_std") != -1.5).all()  # its own spread
    assert state.keys() == theirs.keys() and all(torch.equal(state[name], theirs[name]) for name in state)
    assert torch.equal(trainer.actor(trainer.observation), before(trainer.observation))
    assert trainer.moments.count.tolist() == [144.0] * len(trainer.env.observation_names)


def test_a_policy_that_sees_more_begins_by_acting_as_the_one_that_saw_less(run):
    trainer, (before, about) = _trainer(run), load_trained(run)
    names, known = trainer.env.observation_names, about["observation"]
    assert len(names) > len(known)
    order = torch.tensor([names.index(name) for name in known])
    observation = trainer.observation + torch.randn(trainer.observation.shape)
    expected = before(observation[:, order])
    assert expected.abs().max() > 0.05
    torch.testing.assert_close(trainer.actor(observation), expected, atol=1e-6, rtol=1e-5)
    new = torch.tensor([k for k, name in enumerate(names) if name not in known])
    assert (trainer.actor.mean[0].weight[:, new] == 0).all() and (trainer.moments.count[new] == 0).all()
    torch.testing.assert_close(trainer.actor.scaling.std[order], before.scaling.std)
    trainer.iterate()
    assert (trainer.actor.mean[0].weight[:, new] != 0).any()  # which learn, too
    assert trainer.moments.count[new].unique().tolist() == [6 + 36] and (trainer.moments.count[order] == 144 + 42).all()


def _clone(run, path, **options):
    """A policy of bc, as if it had been trained for the run's task: every second observation is hidden from it."""
    about = read_about(run)
    columns, actions = len(about["observation"]), about["network"]["options"]["actions"]
    options = {"observations": columns, "actions": actions, "hidden": [16], "activation": "tanh", **options}
    module = Cloned(**options)
    module.scaling.mean.copy_(torch.linspace(-1, 1, columns))
    module.scaling.std.copy_(torch.linspace(0.5, 2, columns))
    module.scaling.hide(range(0, columns, 2))
    module.span.fit(torch.randn(50, actions) * 0.1 + 0.1)
    told = {**about, "algorithm": "bc", "network": {"kind": "bc", "options": options}}
    save_trained(path, module, network=told.pop("network"), about=told)
    return module


def test_a_policy_begins_as_a_clone_of_an_expert(run, tmp_path):
    before = _clone(run, tmp_path / "clone.safetensors")
    trainer = _trainer(tmp_path / "clone.safetensors")
    names, known = trainer.env.observation_names, read_about(run)["observation"]
    order = torch.tensor([names.index(name) for name in known])
    observation = trainer.observation + torch.randn(trainer.observation.shape)
    expected = before(observation[:, order])
    assert 0.05 < expected.abs().max() < 1
    torch.testing.assert_close(trainer.actor(observation), expected, atol=1e-6, rtol=1e-5)
    seen = order[1::2]
    unseen = torch.tensor([k for k in range(len(names)) if k not in seen])
    assert (trainer.moments.count[unseen] == 0).all()
    assert (trainer.actor.mean[0].weight[:, unseen] == 0).all() and trainer.actor.scaling.std.isfinite().all()
    trainer.iterate()
    torch.testing.assert_close(trainer.actor.scaling.std[seen], before.scaling.std[1::2])  # stays
    assert trainer.about["begun_from"]["algorithm"] == "bc" and trainer.actor(observation).isfinite().all()


def test_from_a_clone_ppo_takes_its_layers_and_its_environment(run, tmp_path):
    _clone(run, tmp_path / "clone.safetensors")
    recipe, known = recipe_for("ppo", TASK, begin_from=str(tmp_path / "clone.safetensors"))
    assert known and recipe.env == {"num_envs": 256, "terminate": False, "horizon": 8, "observe": "policy"}
    assert recipe.settings["hidden"] == [16] and recipe.settings["activation"] == "tanh"
    assert recipe.settings["critic_first"] > 0 and recipe.settings["log_std"] < -2
    other, _ = recipe_for("ppo", "PullCube-v2", begin_from=str(tmp_path / "clone.safetensors"))
    assert other.env == {"num_envs": 256, "terminate": False}  # of another task
    assert recipe_for("ppo", TASK, begin_from=str(run))[0] == recipe_for("ppo", TASK)[0]
    words = ["train", "ppo", TASK, "--from", str(tmp_path / "clone.safetensors"), "--out", str(tmp_path / "tuned")]
    small = ["env.num_envs=4", "num_steps=4", "minibatches=2", "critic_first=1", "critic_hidden=[8]"]
    assert main([*words, "--no-test", "--steps", "48", "--set", *small]) == 0
    assert read_about(tmp_path / "tuned")["begun_from"]["algorithm"] == "bc"


@pytest.mark.parametrize("options", [{"recurrent": 8}, {"window": 2}])
def test_a_clone_with_a_memory_is_refused(run, tmp_path, options):
    _clone(run, tmp_path / "clone.safetensors", **options)
    with pytest.raises(ConfigError, match=r"of 'bc'.* or bc with head='mse', recurrent=0 and one flat observation"):
        _trainer(tmp_path / "clone.safetensors")


def test_the_policy_of_flat_ground_begins_on_rough_ground_as_it_walked():
    name = "ppo-TrackVelocity-v1"
    sizes = {"hidden": (128, 128), "critic_hidden": (8,), "activation": "elu"}
    env = make("TrackVelocityRough-v1", 4)
    trainer = PPO(env, Config(num_steps=2, minibatches=2, begin_from=name, **sizes), 1)
    before, about = load_trained(shipped_policies()[name])
    order = torch.tensor([env.observation_names.index(one) for one in about["observation"]])
    assert len(env.observation_names) == len(order) + 77
    assert (order.diff() > 1).any()  # the heights lie between others
    expected = before(trainer.observation[:, order])
    torch.testing.assert_close(trainer.actor(trainer.observation), expected, atol=1e-5, rtol=1e-5)
    assert trainer.about["begun_from"]["sha256"] == weights_hash(before)
    assert trainer.about["begun_from"]["task"] == "TrackVelocity-v1"


def test_only_the_critic_learns_in_the_first_iterations(run):
    trainer = _trainer(run, critic_first=2)
    actor, critic = _learned(trainer), trainer.critic[0].weight.clone()
    for _ in range(2):
        trainer.iterate()
    assert torch.equal(_learned(trainer), actor)
    assert not torch.equal(trainer.critic[0].weight, critic)
    trainer.iterate()
    assert not torch.equal(_learned(trainer), actor)
    counted = {int(trainer.optimizer.state[one]["step"]) for one in trainer.parameters}
    assert len(counted) == 2 and max(counted) - min(counted) == 2 * 6  # two iterations of two passes in three parts


def test_the_critic_reads_pictures_without_a_change_of_what_the_actor_sees():
    env = make(TASK, num_envs=2, horizon=8, observe="rgb")
    small = {"num_steps": 2, "minibatches": 1, "channels": (4, 4), "hidden": (8,), "critic_hidden": (8,)}
    trainer = PPO(env, Config(**small, critic_first=1), 1)
    before = _learned(trainer)
    trainer.iterate()
    assert torch.equal(_learned(trainer), before)
    trainer.iterate()
    assert not torch.equal(_learned(trainer), before)


@pytest.mark.parametrize("stopped", [1, 3])
def test_a_run_that_began_from_another_goes_on_to_the_same_bits(run, tmp_path, stopped):
    recipe = _more(run, critic_first=2)
    whole = train(recipe, folder=tmp_path / "whole", seed=5)
    count = iter(range(10))
    part = train(recipe, folder=tmp_path / "part", seed=5, stop=lambda: next(count) == stopped)
    assert (part.state.iteration, whole.state.iteration) == (stopped, 4)
    train(recipe, folder=tmp_path / "part", seed=5, resume=True)
    assert policy_hash(tmp_path / "part") == policy_hash(tmp_path / "whole")
    ours, theirs = (store.read(tmp_path / name / "checkpoint.safetensors")[0] for name in ("part", "whole"))
    for name, value in ours["trainer"]["optimizer"]["state"].items():
        assert all(torch.equal(value[key], theirs["trainer"]["optimizer"]["state"][name][key]) for key in value)


def test_the_command_begins_from_a_run_and_its_recipe_does_so_again(run, tmp_path, capsys):
    recipe, folder = tmp_path / "recipe.toml", tmp_path / "more"
    recipe.write_text(RECIPE.replace(env={"observe": "state"}).to_toml())
    copy = shutil.copytree(run, tmp_path / "copy")
    words = ["train", "--recipe", str(recipe), "--from", str(copy), "--set", "critic_first=1", "--seed", "5"]
    assert main([*words, "--out", str(folder), "--pictures", "0"]) == 0
    about, before = read_about(folder), read_about(run)
    assert about["begun_from"] == {
        "sha256": weights_hash(load_trained(run)[0]),
        **{name: before[name] for name in ("algorithm", "task", "seed", "recipe_hash", "steps")},
    }
    assert len((folder / "report.json").read_text()) > 100 and policy_maker(str(folder))(make(TASK, horizon=8))
    made = load_recipe(folder / "recipe.toml")
    assert made.settings["begin_from"] == str(copy) and made.sha256["begin_from"] == policy_hash(run)
    assert made.hash != made.replace(settings={"begin_from": ""}).hash
    again = [
        "train",
        "--recipe",
        str(folder / "recipe.toml"),
        "--seed",
        "5",
        "--no-test",
        "--out",
        str(tmp_path / "again"),
    ]
    assert main(again) == 0
    assert policy_hash(tmp_path / "again") == policy_hash(folder)
    capsys.readouterr()
    assert main(["train", "--resume", str(folder), "--from", str(run)]) == 2
    assert "as it is: leave out --from" in " ".join(capsys.readouterr().err.split())
    assert main(["train", "sac", TASK, "--from", str(run), "--out", str(tmp_path / "sac")]) == 2
    assert "sac has no setting 'begin_from'" in " ".join(capsys.readouterr().err.split())
    (copy / "policy.safetensors").write_bytes((folder / "policy.safetensors").read_bytes())
    assert main(["train", "--resume", str(folder), "--steps", "180", "--no-test"]) == 2
    assert "is not what the recipe names" in " ".join(capsys.readouterr().err.split())


def _written(run, path, *, options=None, **about):
    """The policy of the run, with other words about it."""
    module, told = load_trained(run)
    network = told.pop("network")
    save_trained(
        path, module, network={**network, "options": {**network["options"], **(options or {})}}, about={**told, **about}
    )
    return path


def test_what_cannot_begin_from_another_is_refused(run, tmp_path):
    with pytest.raises(AssetError, match="no run's folder and no file at runs/nowhere"):
        _trainer("runs/nowhere")
    with pytest.raises(UnknownNameError, match=r"unknown policy 'nowhere'.*ppo-PickCube-v2"):
        _trainer("nowhere")
    with pytest.raises(
        ConfigError, match=r"network of other sizes: hidden \[16\], here \[32, 8\]; activation 'tanh', here 'elu'"
    ):
        _trainer(run, hidden=(32, 8), activation="elu")
    env = make(TASK, num_envs=6, horizon=8, control="joint_pos")
    with pytest.raises(ConfigError, match="acts otherwise: control 'joint_delta_pos', here 'joint_pos'"):
        PPO(env, Config(hidden=(16,), begin_from=str(run)), 0)
    slower = _written(run, tmp_path / "slower.safetensors", control_hz=10)
    with pytest.raises(ConfigError, match="acts otherwise: control_hz 10, here 20"):
        _trainer(slower)
    with pytest.raises(ConfigError, match="acts otherwise: robot 'go2', here 'panda'"):
        _trainer(shipped_policies()["ppo-TrackVelocity-v1"], hidden=(128, 128), activation="elu")
    names = ["policy/wind[0]", *read_about(run)["observation"][1:]]
    other = _written(run, tmp_path / "wind.safetensors", observation=names)
    with pytest.raises(ConfigError, match=r"observes policy/wind\[0\], which this environment does not show"):
        _trainer(other)
    seen = make(TASK, num_envs=2, observe="rgb")
    with pytest.raises(ConfigError, match="observes 'policy', here 'rgb': pictures and the numbers beside them"):
        PPO(seen, Config(hidden=(16,), num_steps=2, minibatches=1, begin_from=str(run)), 0)
    sac = Recipe(
        algorithm="sac",
        task=TASK,
        env={"num_envs": 2, "horizon": 4},
        settings={"hidden": [8]},
        steps=16,
        minutes=0,
        validation_episodes=2,
    )
    train(sac, folder=tmp_path / "sac", seed=1)
    with pytest.raises(ConfigError, match="is a policy of 'sac' with a network of the kind 'tanh_gaussian'"):
        _trainer(tmp_path / "sac")


def test_the_policy_that_a_run_began_from_is_there_to_resume_too(run, tmp_path):
    place = shutil.copytree(run, tmp_path / "before")
    train(_more(place), folder=tmp_path / "run", seed=1)
    shutil.rmtree(place)
    with pytest.raises(AssetError, match="no trained policy at"):
        train(
            load_recipe(tmp_path / "run/recipe.toml").replace(steps=180), folder=tmp_path / "run", seed=1, resume=True
        )
    moved = load_recipe(tmp_path / "run/recipe.toml").replace(steps=180, settings={"begin_from": str(run)})
    assert train(moved, folder=tmp_path / "run", seed=1, resume=True).state.steps == 180
