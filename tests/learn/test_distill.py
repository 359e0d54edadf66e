"""Distillation: the teacher's labels, the same run from the same seed, a run in its folder, and what is refused."""

from __future__ import annotations

import json

import pytest
import torch

from manikin import make
from manikin.cli import main, view
from manikin.env.observe import Vision
from manikin.errors import AssetError, ConfigError, DivergedError, UnknownNameError
from manikin.learn.common.teacher import Teacher
from manikin.learn.distill import Config, Distill
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.train import train
from manikin.policy.choices import policy_maker
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks import GaussianActor
from manikin.policy.trained import about_env, load_trained, read_about, save_trained
from manikin.spec.camera import CameraSpec

TASK = "PushCube-v2"
NEAR = {"name": "near", "pos": [0.6, 0.0, 0.4], "target": [0.08, 0.0, 0.0], "fovy": 0.8}
SMALL = {"channels": (4, 4), "hidden": (8,), "num_steps": 3, "updates": 2, "batch_size": 8, "lead": 16, "buffer": 30}


def _teacher(path, *, task=TASK, about=None, **given):
    """A policy by state with random weights, as a file."""
    env = make(task, **given)
    columns, actions = env.single_observation_space.shape[-1], env.single_action_space.shape[0]
    options = {"observations": columns, "actions": actions, "hidden": [8], "log_std": 0.0}
    torch.manual_seed(1)
    module = GaussianActor(**options)
    torch.nn.init.normal_(module.mean[-1].weight)
    save_trained(
        path,
        module,
        network={"kind": "gaussian", "options": options},
        about={"algorithm": "ppo", "seed": 1, **about_env(env), **(about or {})},
    )
    env.close()
    return str(path)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    return _teacher(tmp_path_factory.mktemp("teacher") / "policy.safetensors")


def _env(rows=4, *, observe="rgb+state", **given):
    vision = Vision(cameras=[CameraSpec(**NEAR)], size=(36, 36))
    return make(TASK, num_envs=rows, observe=observe, vision=vision, **{"horizon": 5, **given})


def _trainer(teacher, *, seed=3, **given):
    return Distill(_env(), Config(**{**SMALL, "teacher": teacher, **given}), seed)


def _weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.actor.parameters()])


def test_the_teacher_answers_as_in_the_environment_that_it_was_trained_in(teacher):
    state, seen = make(TASK, num_envs=3), _env(3)
    policy = policy_maker(teacher)(state)
    expected = policy.act(state.reset(seed=5)[0], [""] * 3)[:, 0]
    torch.testing.assert_close(Teacher(teacher, seen)(seen.reset(seed=5)[0]), expected)
    assert expected.abs().max() > 0.05


def test_a_teacher_by_policy_alone_is_one_too(tmp_path):
    word = _teacher(tmp_path / "policy.safetensors", observe="policy")
    plain, seen = make(TASK, num_envs=2, observe="policy"), _env(2)
    expected = policy_maker(word)(plain).act(plain.reset(seed=5)[0], [""] * 2)[:, 0]
    torch.testing.assert_close(Teacher(word, seen)(seen.reset(seed=5)[0]), expected)


def test_frames_hold_what_the_student_saw_with_what_the_teacher_would_have_done(teacher):
    """The same actions are played again in an environment that shows the state."""
    trainer = _trainer(teacher, noise=0.2)
    played, step = [], trainer.env.step
    trainer.env.step = lambda actions: played.append(actions.clone()) or step(actions)
    trainer.iterate()
    again, policy = make(TASK, num_envs=4, horizon=5), None
    observation, _ = again.reset(seed=trainer.episodes.seeds)
    policy = policy_maker(teacher)(make(TASK, num_envs=4))
    kept = trainer.frames.state_dict()["kept"]
    for t, actions in enumerate(played):
        rows = slice(4 * t, 4 * t + 4)
        torch.testing.assert_close(kept["actions"][rows], policy.act(observation, [""] * 4)[:, 0])
        torch.testing.assert_close(kept["seen"]["numbers"][rows], observation[:, : kept["seen"]["numbers"].shape[1]])
        assert not torch.allclose(actions, kept["actions"][rows])  # noise is in what is done alone
        observation, *_ = again.step(actions)
    assert len(played) == 3


def test_the_student_takes_over_from_the_teacher(teacher):
    trainer = _trainer(teacher, lead=24)
    assert [trainer.iterate()["teacher_share"] for _ in range(3)] == [0.5, 0.0, 0.0]


def test_the_student_is_told_nothing_privileged(teacher):
    trainer = _trainer(teacher, numbers=("qpos", "qvel", "tcp_pose"))
    assert "privileged" not in json.dumps(trainer.network_options) and "goal" not in json.dumps(trainer.network_options)
    observation = trainer.observation
    hidden = {**observation, "privileged": {k: v + 1 for k, v in observation["privileged"].items()}}
    hidden["policy"] = {**observation["policy"], "goal_pos": observation["policy"]["goal_pos"] + 1}
    assert torch.equal(trainer.actor(observation), trainer.actor(hidden))
    assert not torch.equal(trainer.teacher(observation), trainer.teacher(hidden))


@pytest.mark.parametrize("given", [{}, {"average": 0.0, "shift": 2, "jitter": 0.1, "noise": 0.1, "find": ("cube",)}])
def test_the_same_seed_is_the_same_run_and_one_that_goes_on_too(teacher, given):
    whole, other, half, rest = (_trainer(teacher, seed=seed, **given) for seed in (3, 4, 3, 3))
    numbers = [whole.iterate() for _ in range(4)]
    for _ in range(2):
        half.iterate()
    rest.load_state_dict(half.state_dict())
    assert [rest.iterate(), rest.iterate()] == numbers[2:]
    assert torch.equal(_weights(rest), _weights(whole))
    other.iterate()
    assert not torch.equal(_weights(other), _weights(half))
    assert len(whole.frames) == 30  # of 48 that were added


def test_a_run_killed_and_resumed_ends_in_the_same_bits_and_its_policy_is_one_like_any_other(
    teacher, tmp_path, monkeypatch, capsys
):
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in SMALL.items()}
    recipe = Recipe(
        algorithm="distill",
        task=TASK,
        env={"num_envs": 4, "horizon": 5, "observe": "rgb", "cameras": [NEAR], "size": [36, 36], "renderer": "rays"},
        settings={**settings, "teacher": teacher},
        steps=48,
        minutes=0,
        validate_every=2,
        validation_episodes=2,
        test_episodes=2,
    )
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    whole = train(recipe, folder=tmp_path / "whole", seed=5)
    count = iter(range(10))
    part = train(recipe, folder=tmp_path / "part", seed=5, stop=lambda: next(count) == 2)
    assert (part.why, whole.why) == ("interrupted", "steps")
    assert train(recipe, folder=tmp_path / "part", seed=5, resume=True).state.steps == whole.state.steps == 48
    ours, theirs = (load_trained(tmp_path / name)[0].state_dict() for name in ("part", "whole"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    # what it is shown is what was asked for: nothing privileged
    about = read_about(tmp_path / "whole")
    assert about["observe"] == "rgb" and about["pictures"]["size"] == [36, 36] and len(about["teacher"]["sha256"]) == 64
    assert not any(path.startswith("privileged") for path in about["shapes"])
    # in eval by its protocol, and collected and filmed with, where nothing says what it observes
    place, out = tmp_path / "whole", str(tmp_path / "a.h5")
    words = ["eval", str(place / "protocol.toml"), "--policy", str(place), "--out", str(tmp_path / "report")]
    assert main([*words, "--pictures", "0", "--num-envs", "2"]) == 0
    quick = ["--horizon", "5", "--episodes", "2", "--no-pictures"]
    assert main(["collect", TASK, "--policy", str(place), "--out", out, *quick]) == 0
    capsys.readouterr()
    assert main(["collect", TASK, "--policy", str(place), "--out", out, *quick, "--observe", "state"]) == 2
    assert "observe 'rgb', here 'state'" in capsys.readouterr().err
    shown = []

    def ready(viewer):
        shown.append(viewer)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        view.run(view.ViewOptions(task=TASK, policy=str(place), num_envs=1, renderer="rays"), ready=ready)
    assert shown  # the policy has seen its first pictures
    # the program answers as the network does
    env = make(TASK, num_envs=3, observe="rgb", vision=Vision(cameras=[CameraSpec(**NEAR)], size=(36, 36)))
    observation, _ = env.reset(seed=1)
    acted = [policy_maker(str(file))(env).act(observation, [""] * 3) for file in (place, place / "policy.pt2")]
    torch.testing.assert_close(acted[0], acted[1], atol=1e-6, rtol=1e-5)
    smaller = make(TASK, observe="rgb", vision=Vision(cameras=[CameraSpec(**NEAR)], size=(32, 36)))
    with pytest.raises(ConfigError, match=r"pictures .*36, 36.*, here .*32, 36"):
        policy_maker(str(place))(smaller)
    moved = CameraSpec(**{**NEAR, "pos": [0.5, 0.1, 0.4]})
    elsewhere = make(TASK, observe="rgb", vision=Vision(cameras=[moved], size=(36, 36)))
    with pytest.warns(UserWarning, match=r"trained for pictures .*0\.6, 0\.0.*, here .*0\.5, 0\.1.*other pictures"):
        policy_maker(str(place))(elsewhere)
    other = make(TASK, observe="rgb", vision=Vision(cameras=["base_camera"], size=(36, 36)))
    with pytest.raises(ConfigError, match=r"pictures .*near.*, here .*base_camera"):
        policy_maker(str(place))(other)
    # with another teacher it does not go on
    other = _teacher(tmp_path / "other.safetensors", control="joint_pos")
    with pytest.raises(ConfigError, match="begun with other settings"):
        train(recipe.replace(settings={"teacher": other}), folder=place, seed=5, resume=True)


def test_a_served_policy_takes_pictures(teacher):
    pytest.importorskip("websockets", reason="websockets is not installed: pip install 'manikin[remote]'")
    pytest.importorskip("msgpack", reason="msgpack is not installed: pip install 'manikin[remote]'")
    from manikin.policy.remote.client import RemotePolicy
    from manikin.policy.remote.server import PolicyServer

    trainer, env = _trainer(teacher), _env(2, observe="rgb")
    observation, _ = env.reset(seed=0)
    policy = NetworkPolicy(trainer.actor)
    with PolicyServer(policy, about_env(env)["shapes"], port=0) as server:
        answer = RemotePolicy(server.url).act(observation, ["", ""])
    assert torch.equal(answer, policy.act(observation, ["", ""]))


def test_the_first_channel_learns_where_the_thing_is(teacher):
    """The pictures are of starts that were not trained on; the reference is the renderer's segmentation."""
    given = {"lead": 10**9, "find": ("cube",), "find_weight": 1.0, "learning_rate": 1e-2, "updates": 40, "shift": 2}
    trainer = _trainer(teacher, **{**given, "anneal": False, "buffer": 400, "channels": (8, 8)})
    env = _env(8, observe="rgb+segmentation+state")
    observation, _ = env.reset(seed=900)
    camera = observation["cameras"]["near"]
    (number,) = env.segmentation_table.ids(thing="cube")
    seen = (camera["segmentation"] == int(number)).float()
    middle = torch.linspace(-1, 1, 36)
    true = torch.stack([(seen.sum(1) * middle).sum(1), (seen.sum(2) * middle).sum(1)], 1) / seen.sum((1, 2))[:, None]

    def wrong():
        """Median distance from the middle of the cube, in half widths of the picture."""
        with torch.no_grad():
            _, chances = trainer.actor.encoder.located(trainer.actor.scaling(observation))
        (chance,) = chances.values()
        p, across = chance[:, 0].exp(), torch.linspace(-1, 1, chance.shape[-1])
        found = torch.stack([(p.sum(1) * across).sum(1), (p.sum(2) * across).sum(1)], 1)
        return (found - true).norm(dim=1).median()

    trainer.iterate()
    before = wrong()
    for _ in range(15):
        trainer.iterate()
    assert wrong() < 0.5 * before and wrong() < 0.1
    kept = {name for name, _ in trainer.actor.named_parameters()}
    assert kept == {name for name, _ in _trainer(teacher, channels=(8, 8)).actor.named_parameters()}


def test_what_cannot_teach_or_learn_is_named(teacher, tmp_path):
    def run(word, env=None, **given):
        return Distill(env or _env(1), Config(**{**SMALL, "teacher": word, **given}), 0)

    with pytest.raises(ConfigError, match=r"needs a teacher.*ppo-PickCube-v2"):
        run("")
    with pytest.raises(AssetError, match="no run's folder and no file at"):
        run(str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="trained for task 'PickCube-v2', here 'PushCube-v2'"):
        run("ppo-PickCube-v2")
    other = _teacher(tmp_path / "a.safetensors", control="ee_delta_pos")
    with pytest.raises(ConfigError, match="control 'ee_delta_pos', here 'joint_delta_pos'"):
        run(other)
    hidden = _teacher(tmp_path / "b.safetensors", about={"observation": ["policy/qpos[0]", "privileged/mass"]})
    with pytest.raises(ConfigError, match=r"observes privileged/mass, which is not available here: .*policy/qpos"):
        run(hidden)
    sees = _teacher(tmp_path / "c.safetensors", about={"observe": "rgb", "observation": []})
    with pytest.raises(ConfigError, match="observes 'rgb'; a teacher observes 'state' or 'policy'"):
        run(sees)
    with pytest.raises(ConfigError, match="teaches a policy that sees: observe='rgb', not 'state'"):
        run(teacher, make(TASK))
    with pytest.raises(ConfigError, match="from pictures"):
        run(teacher, make(TASK, observe="state_dict"))
    with pytest.raises(ConfigError, match="updates must be 1 or more"):
        run(teacher, updates=0)
    with pytest.raises(ConfigError, match="find_weight must be 0 or more"):
        run(teacher, find_weight=-1.0)
    with pytest.raises(UnknownNameError, match=r"'mug'.*cube"):
        run(teacher, find=("mug",))
    with pytest.raises(ConfigError, match="each thing is found once, got cube, cube"):
        run(teacher, find=("cube", "cube"))
    with pytest.raises(ConfigError, match="1 things by as many channels of the encoder 'keypoints', got 'nature'"):
        run(teacher, find=("cube",), encoder="nature", channels=(4, 4, 4))
    changed = _trainer(teacher, lead=10**6)  # the teacher acts
    with pytest.raises(ConfigError, match="another teacher"):
        changed.load_state_dict({**changed.state_dict(), "teacher": "0" * 64})
    with torch.no_grad():
        next(changed.module.layers.parameters())[0, 0] = float("nan")
    with pytest.raises(DivergedError, match=r"iteration 1, after 12 steps, batch 1 of \d: loss is nan"):
        changed.iterate()
    for env, words in (
        ({"observe": "rgb", "size": [36, 36]}, "recipe 'distill on PushCube-v2': a recipe with pictures must name"),
        ({"size": [36, 36], "renderer": "rays"}, "size need pictures"),
        ({"observe": "rgb", "cameras": "near"}, "cameras must be a list"),
        ({"observe": "rgb", "cameras": [{"pos": [0, 0, 1]}], "renderer": "rays"}, "needs a name"),
    ):
        with pytest.raises(ConfigError, match=words):
            Recipe(algorithm="distill", task=TASK, env=env, steps=1)
