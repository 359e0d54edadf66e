"""Imitation: the data, the same run from the same seed, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manikin import make
from manikin.data.recorder import Recorder
from manikin.data.recording.read import EpisodeFile
from manikin.errors import ConfigError, DataError, DivergedError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.learn import act, bc, diffusion
from manikin.learn.common.data.demonstrations import load_demonstrations
from manikin.learn.common.data.recorded_steps import recorded_steps
from manikin.learn.run import store
from manikin.learn.run.recipe import Recipe, trainer_class
from manikin.learn.run.train import CHECKPOINT, train
from manikin.policy.choices import policy_maker
from manikin.policy.expert import ExpertPolicy
from manikin.policy.network import NetworkPolicy
from manikin.policy.trained import LAST, export_program, load_trained, read_about
from manikin.sense.stack import Stack

WINDOW = ["state", Stack(2)]
SMALL = {
    "bc": {"hidden": (16,)},
    "bc gmm": {"hidden": (16,), "head": "gmm", "average": 0.75},
    "bc recurrent": {"hidden": (8,), "recurrent": 8},
    "diffusion mlp": {"width": 16, "train_steps": 5, "steps": 5, "sampler": "ddpm"},
    "diffusion unet": {"denoiser": "unet", "unet_channels": (8, 16), "predict": 4, "execute": 2, "steps": 3},
    "diffusion flow": {"width": 16, "steps": 4, "sampler": "flow", "prediction": "velocity"},
    "act": {"width": 16, "inner": 16, "latent": 3, "predict": 5},
}


def _record(
    path, policy=ExpertPolicy, *, count=6, first=0, keep="success", task="PushCube-v2", observations=True, **given
):
    env = make(task, num_envs=count, autoreset="disabled", **given)
    with Recorder(env, path, observations=observations, states=False, keep=keep, first_seed=first) as recorder:
        run_episodes(env, policy(env), range(first, first + count), observers=[recorder])
    return path


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    return _record(tmp_path_factory.mktemp("demos") / "a.h5")


def _trainer(name, demos, *, seed=3, observe=WINDOW, **given):
    algorithm = name.split()[0]
    env = make("PushCube-v2", observe=observe)
    kind = trainer_class(algorithm)
    config = __import__(kind.__module__, fromlist=["Config"]).Config
    settings = {"updates": 3, "batch_size": 16, **SMALL.get(name, {}), **given}
    return kind(env, config(**settings), seed, demos)


def _weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.actor.parameters()])


# ---- the data --------------------------------------------------------------------------------------------------------


def test_a_window_of_the_data_is_the_stack_that_the_environment_shows(demos):
    """The episodes are played again with their actions: every observation is the frame of that step."""
    env = make("PushCube-v2", num_envs=1, observe=WINDOW, autoreset="disabled")
    data = load_demonstrations(demos, env, chunk=3)
    observation, _ = env.reset(seed=0)
    ends = False
    at = 0
    while not ends:
        assert torch.equal(data.observations[at], observation[0])
        observation, _, terminated, truncated, _ = env.step(data.actions[at, :1])
        ends = bool(terminated | truncated)
        at += 1
    assert data.padded[at - 1].tolist() == [False, True, True]
    assert torch.equal(data.actions[at - 1, 0], data.actions[at - 1, 2])


def test_at_most_so_many_demonstrations_are_taken_those_of_the_first_numbers(demos):
    env = make("PushCube-v2", observe="state")
    every, two = load_demonstrations(demos, env), load_demonstrations(demos, env, most=2)
    assert (every.episodes, two.episodes) == (6, 2)
    assert torch.equal(every.actions[: len(two.actions)], two.actions)
    assert every.digest != two.digest


@pytest.mark.parametrize("after", [0, 3])
def test_frames_long_after_success_may_be_left_out(tmp_path, after):
    """The steps are counted in the recording itself; chunks still reach beyond."""
    path = _record(tmp_path / "long.h5", count=3, terminate=False, horizon=40)
    env = make("PushCube-v2", observe="state", terminate=False, horizon=40)
    every = load_demonstrations(path, env, chunk=4)
    some = load_demonstrations(path, env, chunk=4, after_success=after)
    with EpisodeFile(path) as file:
        firsts = [int(np.flatnonzero(episode.success)[0]) for episode in file]
    kept = torch.cat([torch.arange(40) <= first + after for first in firsts])
    assert 0 < kept.sum() < len(every) == 120
    assert torch.equal(some.present, every.present[kept])
    assert torch.equal(some.actions, every.actions[kept])
    assert not some.padded.any()


def test_demonstrations_may_be_those_with_some_labels(tmp_path):
    """Which label an episode has is read from the recording itself."""
    path = _record(tmp_path / "modes.h5", policy_maker("graded:noise=0.3"), count=24, keep="all", terminate=False)
    env = make("PushCube-v2", observe="state", terminate=False)
    with EpisodeFile(path) as file:
        by_mode = {mode: [one for one in file if one.mode == mode] for mode in ("success", "winding_success")}
        won = sum(bool(file.attributes(number)["success_once"]) for number in file.numbers)
    for mode, episodes in by_mode.items():
        some = load_demonstrations(path, env, labels=(mode,))
        assert some.episodes == some.there == len(episodes) > 1
        assert torch.equal(some.actions[:, 0], torch.cat([torch.as_tensor(one.actions) for one in episodes]))
    both = load_demonstrations(path, env, labels=tuple(by_mode), most=3)
    assert (both.episodes, both.there) == (3, sum(map(len, by_mode.values())))
    assert load_demonstrations(path, env).episodes == won > both.there
    trained = _trainer("bc", path, observe="state", labels=("winding_success",))
    assert trained.about["demonstrations"]["episodes"] == len(by_mode["winding_success"])


def test_labels_that_are_none_of_success_are_named(demos):
    with pytest.raises(UnknownNameError, match=r"no_success.*success_then_lost"):
        _trainer("bc", demos, labels=("no_success",))
    with pytest.raises(DataError, match="winding_success"):  # there is none
        _trainer("bc", demos, observe="state", labels=("winding_success",))


def test_how_far_after_success_is_not_below_all_of_it(demos):
    with pytest.raises(ConfigError, match="after_success must be 0 or more, or -1 for all frames, got -2"):
        _trainer("bc", demos, after_success=-2)


def test_frames_that_ask_for_nothing_may_be_left_out(demos):
    """Seven joints count by how far they are asked to go; the hand's opening, which is absolute, by its change."""
    env = make("PushCube-v2", observe="state")
    every, some = load_demonstrations(demos, env), load_demonstrations(demos, env, least_action=0.98)
    with EpisodeFile(demos) as file:
        actions = [torch.as_tensor(np.asarray(episode.actions)) for episode in file]
    assert [dim.reference for dim in env.controller.card.dims] == ["measured"] * 7 + ["absolute"]
    kept = []
    for one in actions:
        opened = torch.diff(one[:, 7], prepend=one[:1, 7])
        kept.append(torch.cat([one[:, :7], opened[:, None]], 1).abs().amax(1) >= 0.98)
    whole = torch.cat(kept)
    assert 0 < whole.sum() < len(every) == len(whole)
    assert torch.equal(some.actions, every.actions[whole]) and torch.equal(some.present, every.present[whole])
    assert some.digest != every.digest
    with pytest.raises(ConfigError, match=r"no frame of .* is left: least_action=1.5 may be too large"):
        load_demonstrations(demos, env, least_action=1.5)
    with pytest.raises(ConfigError, match="least_action must be 0 or more and below 1, got 1"):
        _trainer("bc", demos, least_action=1.0)


def test_demonstrations_of_something_else_are_refused(demos, tmp_path):
    for task, given, words in (
        ("PullCube-v2", {}, "task 'PushCube-v2', here 'PullCube-v2'"),
        ("PushCube-v2", {"control": "ee_delta_pos"}, "control 'joint_delta_pos', here 'ee_delta_pos'"),
        ("PushCube-v2", {"robot": "xarm7"}, "robot 'panda', here 'xarm7'"),
        ("PushCube-v2", {"control_hz": 10}, "control_hz 20.0, here 10.0"),
        ("PushCube-v2", {"observe": "policy"}, "observe 'state', here 'policy'"),
    ):
        with pytest.raises(ConfigError, match=words):
            load_demonstrations(demos, make(task, **given))
    with pytest.raises(ConfigError, match="flat observations"):
        load_demonstrations(demos, make("PushCube-v2", observe="state_dict"))
    env = make("PushCube-v2")
    with pytest.raises(DataError, match="holds no observations"):
        load_demonstrations(_record(tmp_path / "blind.h5", observations=False), env)
    with pytest.raises(DataError, match=r"no episode .*'success'"):
        load_demonstrations(_record(tmp_path / "lost.h5", keep="all", count=2, horizon=2), env)
    with pytest.raises(DataError):
        load_demonstrations(tmp_path / "missing.h5", env)
    for first, use in ((1_000_000, "test"), (1_999_998, "test"), (2_000_000, "validation")):
        held_out = _record(tmp_path / f"{first}.h5", keep="all", count=3, first=first, horizon=2)
        count = 2 if first == 1_999_998 else 3
        with pytest.raises(
            ConfigError, match=f"{count} of 3 episodes in .* have seeds of the {use} episodes, .* below"
        ):
            load_demonstrations(held_out, env)
        with pytest.raises(ConfigError, match=f"seeds of the {use} episodes"):
            recorded_steps(held_out, make("PushCube-v2", reward="sparse"), gamma=1, n_step=1, bootstrap_at_success=True)


def test_hidden_columns_do_not_reach_the_network(demos):
    env = make("PushCube-v2", observe=WINDOW)
    trainer = _trainer("bc", demos, hide=("qvel", "goal_pos"))
    hidden = [i for i, name in enumerate(env.observation_names) if "qvel" in name or "goal_pos" in name]
    assert len(hidden) == 12
    trainer.iterate()
    seen = trainer.data.observations[:8]
    other = seen.clone()
    other[..., hidden] += torch.randn(8, 2, len(hidden))
    module = trainer.actor.eval()
    with torch.no_grad():
        assert torch.equal(module(seen), module(other))
        for column in set(range(seen.shape[-1])) - set(hidden):
            moved = seen.clone()
            moved[..., column] += trainer.module.scaling.std[column]
            assert not torch.equal(module(moved), module(seen)), env.observation_names[column]
    with pytest.raises(UnknownNameError, match="column of the observation to hide"):
        _trainer("bc", demos, hide=("speed",))
    with pytest.raises(ConfigError, match="hide must be a list of texts"):
        Recipe(algorithm="bc", task="PushCube-v2", settings={"hide": [3]})


def test_what_lies_behind_a_push_does_not_count_in_a_chunk(demos):
    for name in ("diffusion mlp", "act"):
        trainer = _trainer(name, demos)
        seen, actions, padded, _ = trainer.data.batch(torch.arange(6))
        actions = trainer.module.span(actions)
        pushed = torch.arange(actions.shape[1]).expand(6, -1) >= torch.arange(1, 7)[:, None]
        found = []
        for wanted in (actions, torch.where(pushed.unsqueeze(2), actions + 5.0, actions)):
            trainer.module.eval()
            for key in ("noise", "style"):
                trainer.streams[key].manual_seed(0)
            if name == "act":
                trainer.helper.eval()
                found.append(trainer.losses(seen, wanted, padded, pushed)["l1"].item())
            else:  # the loss of its own noise and answer, on the places that count
                generator = trainer.streams["noise"]
                loss = trainer.losses(seen, actions, padded, pushed)["loss"]
                generator.manual_seed(0)
                times = trainer.module.sampler.draw_times(6, generator)
                noise = torch.randn(actions.shape, generator=generator)
                noisy = trainer.module.sampler.noised(actions, noise, times)
                answer = trainer.module.predicted(noisy, times, trainer.module.seen(seen))
                squares = (answer - actions).square()[~pushed]
                found.append((squares.mean() - loss).item())
        if name == "act":
            assert found[0] == pytest.approx(found[1], rel=1e-5)
        else:
            assert abs(found[0]) < 1e-5


# ---- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_is_the_same_run(name, demos):
    def run(seed):
        trainer = _trainer(name, demos, seed=seed)
        return _weights(trainer), [trainer.iterate() for _ in range(2)], _weights(trainer)

    (begun, numbers, ended), (begun2, numbers2, ended2), other = run(3), run(3), run(4)
    assert torch.equal(begun, begun2) and torch.equal(ended, ended2) and numbers == numbers2
    assert not torch.equal(begun, other[0]) and not torch.equal(begun, ended)


@pytest.mark.parametrize("name", SMALL)
def test_a_run_that_goes_on_is_the_run_that_was_not_interrupted(name, demos):
    whole, half, rest = (_trainer(name, demos) for _ in range(3))
    numbers = [whole.iterate() for _ in range(4)]
    for _ in range(2):
        half.iterate()
    rest.load_state_dict(half.state_dict())
    assert [rest.iterate(), rest.iterate()] == numbers[2:]
    assert torch.equal(_weights(rest), _weights(whole))
    assert rest.steps == whole.steps == 12


@pytest.mark.parametrize("name", SMALL)
def test_what_a_row_is_told_depends_on_that_row_alone(name, demos):
    trainer = _trainer(name, demos)
    trainer.iterate()
    policy, seen = NetworkPolicy(trainer.actor), trainer.data.observations[:40]
    all_at_once = policy.act(seen, [""] * 40)
    order = torch.randperm(40)
    assert torch.equal(policy.act(seen[order], [""] * 40), all_at_once[order])
    assert torch.equal(policy.act(seen[7:8], [""]), all_at_once[7:8])


@pytest.mark.parametrize("name", SMALL)
def test_the_exported_program_answers_as_the_network(name, demos, tmp_path):
    trainer = _trainer(name, demos)
    trainer.iterate()
    seen = trainer.data.observations[:5]
    export_program(trainer.actor, tmp_path / "policy.pt2", seen)
    policy = policy_maker(str(tmp_path / "policy.pt2"))(make("PushCube-v2", num_envs=5, observe=WINDOW))
    ours = NetworkPolicy(trainer.actor).act(seen, [""] * 5)
    torch.testing.assert_close(policy.act(seen, [""] * 5), ours)


@pytest.mark.parametrize("name", SMALL)
def test_a_loss_that_is_not_finite_stops_the_run_and_says_where(name, demos):
    trainer = _trainer(name, demos)
    trainer.iterate()
    with torch.no_grad():
        next(trainer.module.parameters()).fill_(float("nan"))
    with pytest.raises(DivergedError, match="iteration 2, gradient steps 4 to 6, batch 1 of 3: loss is nan"):
        trainer.iterate()


class _Linear:
    """Acts by a known linear map of what it sees, kept for a few steps of every episode."""

    def __init__(self, env):
        rng = np.random.default_rng(0)
        columns = env.single_observation_space.shape[-1]
        self.map = torch.from_numpy(rng.normal(0, 0.1, (columns, env.single_action_space.shape[0]))).float()

    def reset(self, rows):
        pass

    def act(self, observation, instruction):
        present = observation if observation.ndim == 2 else observation[:, -1]
        return (present @ self.map).clamp(-1, 1)[:, None]


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """Recorded, and marked as the successes that they are taken for."""
    path = tmp_path_factory.mktemp("linear") / "a.h5"
    return _record(path, _Linear, count=32, keep="all", horizon=20)


IMITATES = {
    "bc": {"hidden": (64,)},
    "bc gmm": {"hidden": (64,), "head": "gmm"},
    "bc recurrent": {"hidden": (64,), "recurrent": 64},
    "diffusion ddim": {"width": 128, "predict": 4, "execute": 1, "warm_up": 0, "updates": 400},
    "diffusion flow": {"width": 128, "predict": 4, "execute": 1, "sampler": "flow", "warm_up": 0, "updates": 400},
    "act": {"width": 64, "predict": 4, "dropout": 0.0, "learning_rate": 1e-3, "batch_size": 64},
}


@pytest.mark.parametrize("name", IMITATES)
def test_the_loss_falls_and_a_known_linear_expert_is_imitated(name, linear, monkeypatch):
    monkeypatch.setattr("manikin.learn.common.data.demonstrations.KEEP", "all")
    given = {"updates": 300, "batch_size": 128, "learning_rate": 3e-3, "anneal": False, **IMITATES[name]}
    trainer = _trainer(name, linear, **given)
    first = trainer.iterate()["loss"]
    last = [trainer.iterate()["loss"] for _ in range(2)][-1]
    assert last < first
    env = make("PushCube-v2", num_envs=8, observe=WINDOW, autoreset="disabled", horizon=20)
    expert, seen = _Linear(env), env.reset(seed=500)[0]  # starts that it was not shown
    wrong = []
    for _ in range(10):
        wanted = expert.act(seen, [])
        with torch.no_grad():
            found = trainer.actor.eval()(seen)
        found = found if found.ndim == 2 else found[:, 0]
        wrong.append((found - wanted[:, 0]).square().mean())
        seen = env.step(wanted[:, 0])[0]
    spread = trainer.data.actions[:, 0].var(0).mean()
    assert torch.stack(wrong).mean() < 0.1 * spread


# ---- the run ---------------------------------------------------------------------------------------------------------


def test_a_run_that_asks_for_pushes_records_a_pushed_expert(tmp_path):
    train(RECIPE.replace(settings={"pushes": 0.1}), folder=tmp_path, seed=1)
    with EpisodeFile(tmp_path / "demonstrations.h5") as file:
        assert file.needed_header().recorded["pushes"]["chance"] == 0.1


RECIPE = Recipe(
    algorithm="bc",
    task="PushCube-v2",
    env={"horizon": 60, "observe": ["state", {"kind": "Stack", "frames": 2}]},
    settings={"hidden": [8], "updates": 2, "batch_size": 8, "demonstrations": 3},
    steps=8,
    minutes=0,
    validate_every=2,
    validation_episodes=2,
    test_episodes=2,
    stop_at=2.0,
)


def test_without_a_recording_the_expert_is_recorded_first_and_a_run_goes_on_only_with_the_same(tmp_path):
    said = []
    whole = train(RECIPE, folder=tmp_path / "whole", seed=1, say=said.append)
    assert "collecting 3 demonstrations" in said[0] and "verified" in said[1]
    count = iter(range(10))
    train(RECIPE, folder=tmp_path / "part", seed=1, stop=_after(tmp_path / "part", count))
    rest = train(RECIPE, folder=tmp_path / "part", seed=1, resume=True)
    assert rest.state.steps == whole.state.steps == 8
    ours, theirs = (load_trained(tmp_path / name)[0].state_dict() for name in ("part", "whole"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    last, about = load_trained(tmp_path / "whole" / LAST)
    trained = store.read(tmp_path / "whole" / CHECKPOINT)[0]["trainer"]["module"]
    assert about["iteration"] == whole.state.iteration == 4
    assert all(torch.equal(value, trained[name]) for name, value in last.state_dict().items())
    about = read_about(tmp_path / "whole")["demonstrations"]
    assert about["episodes"] == 3 and len(about["sha256"]) == 64
    other = _record(tmp_path / "other.h5", count=4, first=40, horizon=60)
    (tmp_path / "whole/demonstrations.h5").write_bytes(other.read_bytes())
    with pytest.raises(ConfigError, match="begun with other demonstrations"):
        train(RECIPE.replace(settings={}), folder=tmp_path / "whole", seed=1, resume=True)
    # what another recipe collected, or a collection that came short, is not taken for this one's
    for settings, words in (
        ({"demonstrations": 5}, "4 episodes, asked for 5"),
        ({"pushes": 0.5}, r"pushes None, asked for \{'chance': 0.5, .*\}"),
        ({"demonstrations_of": "ppo-PushCube-v2"}, "demonstrations_of 'expert', asked for 'ppo-PushCube-v2'"),
    ):
        before = other if "demonstrations" in settings else tmp_path / "part/demonstrations.h5"
        (tmp_path / "new").mkdir(exist_ok=True)
        (tmp_path / "new/demonstrations.h5").write_bytes(before.read_bytes())
        with pytest.raises(ConfigError, match=f"was collected before, and differs .*{words}. Remove it"):
            train(RECIPE.replace(settings=settings), folder=tmp_path / "new", seed=1)
    said.clear()
    train(RECIPE.replace(settings={"demos": str(other), "demonstrations": 1}), folder=tmp_path / "one", say=said.append)
    assert said == ["1 of 4 successful episodes are learned from: --set demonstrations=0 takes all"]
    fewer = RECIPE.replace(settings={"demos": str(other), "demonstrations": 9}, steps=0, minutes=1e-9)
    said.clear()
    train(fewer, folder=tmp_path / "all", say=said.append)
    assert said[0] == "4 successful episodes are learned from, of the 9 that the recipe takes"
    assert "learning rate falls with time" in said[1]


def _after(folder, count):
    """Asks to stop at the second iteration; while demonstrations are collected it says no."""
    return lambda: (folder / "recipe.toml").exists() and next(count) == 2


def test_an_expert_that_is_interrupted_goes_on_with_the_same_command(tmp_path):
    steps = iter(range(1000))
    with pytest.raises(DataError, match="the same command goes on"):
        train(RECIPE, folder=tmp_path, seed=1, stop=lambda: next(steps) > 5)
    assert train(RECIPE, folder=tmp_path, seed=1).why == "steps"


def test_settings_that_make_no_sense_are_named(demos):
    with pytest.raises(ConfigError, match="head must be one of mse, gmm"):
        bc.BC(make("PushCube-v2"), bc.Config(head="best"), 0, demos)
    for given, words in (
        ({"denoiser": "best"}, "denoiser must be one of mlp, unet"),
        ({"sampler": "best"}, "sampler must be one of ddpm, ddim, flow"),
        ({"prediction": "velocity"}, "prediction of ddim must be one of sample, epsilon, got 'velocity'"),
        ({"steps": 101}, "1 to 100 steps"),
        ({"execute": 17}, "execute must be between 1 and predict = 16"),
        ({"ensemble": True, "ensemble_m": float("inf")}, "ensemble_m must be a finite number"),
        ({"predict": 0, "execute": 0}, "predict must be 1 or more, got 0"),
        ({"denoiser": "unet", "predict": 6, "execute": 6}, "predict must be a multiple of 4"),
    ):
        with pytest.raises(ConfigError, match=words):
            diffusion.Diffusion(make("PushCube-v2"), diffusion.Config(**given), 0, demos)
    for given, words in (
        ({"heads": 5}, "heads must divide width = 128, got 5"),
        ({"width": 33, "heads": 3}, "width must be even, got 33"),
        ({"decoder_layers": 0}, "decoder_layers must be 1 or more"),
    ):
        with pytest.raises(ConfigError, match=words):
            act.ACT(make("PushCube-v2"), act.Config(**given), 0, demos)
    with pytest.raises(ConfigError, match="updates must be 1 or more"):
        bc.BC(make("PushCube-v2"), bc.Config(updates=0), 0, demos)
    with pytest.raises(ConfigError, match="demos must be text"):
        Recipe(algorithm="bc", task="PushCube-v2", settings={"demos": 3})
