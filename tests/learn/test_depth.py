"""Depth pictures in networks and trainers, SAC that sees, and the recipes of homes that learn from depth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manikin import make
from manikin.cli.train import TrainOptions, chosen_recipe
from manikin.data.recorder import Recorder
from manikin.env.observe import Vision
from manikin.errors import ConfigError
from manikin.eval.runner import run_episodes
from manikin.learn import bc, sac
from manikin.learn.common.data.demonstrations import load_demonstrations
from manikin.learn.common.data.replay import Replay, replay_bytes
from manikin.learn.common.pictures import PictureConfig, augmented, inputs_of
from manikin.learn.common.places import Locator
from manikin.learn.ppo import PPO
from manikin.learn.ppo import Config as PPOConfig
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.train import train
from manikin.policy.expert import ExpertPolicy
from manikin.policy.files.checkpoint import load_policy
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks.pictures import NamedScaling, PictureEncoder
from manikin.policy.trained import export_program, read_about
from manikin.sense.stack import Stack
from manikin.spec.camera import CameraSpec

NEAR = CameraSpec(name="near", pos=(0.6, 0.0, 0.4), target=(0.08, 0.0, 0.0), fovy=0.8)
PATH = "cameras/near/depth"
SMALL = {"num_steps": 2, "updates": 2, "batch": 6, "buffer": 40, "start_steps": 16, "hidden": (8,)}
SMALL |= {"critic_hidden": (8,), "channels": (4, 4)}


def _env(rows=3, *, observe="depth", size=(40, 36), **given):
    return make("PushCube-v2", num_envs=rows, observe=observe, vision=Vision(cameras=[NEAR], size=size), **given)


# ---- depth -----------------------------------------------------------------------------------------------------------


def test_depth_is_told_as_mshab_scales_it_and_nothing_is_far():
    encoder = PictureEncoder(numbers={"a": 1}, pictures={PATH: (2, 3)}, channels=(4,))
    encoder.cameras[0] = torch.nn.Flatten()
    depth = torch.tensor([[[0.0, 0.25, 0.5], [1.0, 2.0, 40.0]]])
    scaling = NamedScaling({"a": 1}, {PATH: (2, 3)})
    taken = scaling.take({"a": torch.zeros(1, 1), "cameras": {"near": {"depth": depth}}})
    assert taken[PATH].shape == (1, 2, 3, 1) and taken[PATH].dtype == torch.float16
    found = encoder(scaling(taken))[0, 1:].numpy()
    metres = depth.flatten().numpy()
    wanted = np.where(metres > 0, 1 - np.tanh(metres), 0.0) - 0.5
    np.testing.assert_allclose(found, wanted, atol=1e-3)


def test_colour_and_depth_are_both_told_and_a_stack_takes_both():
    window, inputs = inputs_of(_env(observe="rgb+depth"), PictureConfig())
    assert window == 1 and inputs["pictures"] == {"cameras/near/rgb": [36, 40], PATH: [36, 40]}
    assert [one[0].in_channels for one in PictureEncoder(**inputs).cameras] == [3, 1]
    window, stacked = inputs_of(_env(observe=["rgb+depth", Stack(2)]), PictureConfig())
    assert window == 2 and stacked == inputs


def test_a_shift_moves_depth_and_a_jitter_leaves_it():
    depth = torch.rand(50, 6, 5, 1, generator=torch.Generator().manual_seed(0)).half()
    taken = {"numbers": torch.ones(50, 2), PATH: depth}
    out = augmented(taken, PictureConfig(jitter=0.5, saturation=0.5), torch.Generator().manual_seed(1))
    assert torch.equal(out[PATH], depth)
    moved = augmented(taken, PictureConfig(shift=1), torch.Generator().manual_seed(1))[PATH]
    padded = torch.nn.functional.pad(depth.squeeze(-1)[:, None].float(), (1, 1, 1, 1), mode="replicate")[:, 0]
    crops = [padded[:, i : i + 6, j : j + 5] for i in range(3) for j in range(3)]
    same = torch.stack([(moved.squeeze(-1).float() == crop).flatten(1).all(1) for crop in crops])
    assert same.any(0).all() and same.any(1).all()


def test_recorded_depth_is_what_the_environment_shows_and_a_clone_of_it_acts_from_its_program(tmp_path):
    env = _env(4, autoreset="disabled")
    with Recorder(env, tmp_path / "a.h5", observations=True, states=False, keep="success", first_seed=0) as recorder:
        run_episodes(env, ExpertPolicy(env), range(4), observers=[recorder])
    stacked = _env(1, observe=["depth", Stack(2)], autoreset="disabled")
    data = load_demonstrations(tmp_path / "a.h5", stacked)
    scaling = NamedScaling(inputs_of(stacked, PictureConfig())[1]["numbers"], {PATH: (36, 40)})
    observation, _ = stacked.reset(seed=0)
    for at in range(4):
        seen, taken = data.batch(torch.tensor([at]))[0], scaling.take(observation)
        assert torch.equal(seen["numbers"], taken["numbers"])
        torch.testing.assert_close(seen[PATH], taken[PATH], atol=1e-3, rtol=0)
        observation, *_ = stacked.step(data.actions[at])
    small = bc.Config(updates=3, batch_size=8, channels=(4, 4), hidden=(8,), shift=1)
    cloned = bc.BC(env, small, 1, tmp_path / "a.h5")
    cloned.iterate()
    observation, _ = env.reset(seed=0)
    export_program(cloned.actor, tmp_path / "policy.pt2", observation, width=4)
    ours = NetworkPolicy(cloned.actor).act(observation, [""] * 4)
    torch.testing.assert_close(load_policy(tmp_path / "policy.pt2").act(observation, [""] * 4), ours)
    assert not torch.equal(ours[0], ours[1])


def test_things_are_found_at_the_same_places_of_depth_as_of_colour():
    env = _env(observe="rgb+depth+state")
    env.reset(seed=0)
    places = Locator(env, ("cube",), ("cameras/near/rgb", PATH))
    observation, _ = env.reset(seed=1)
    found = places(observation)
    torch.testing.assert_close(found[PATH], found["cameras/near/rgb"])


def test_ppo_learns_from_depth_to_the_same_bits():
    def run():
        config = PPOConfig(num_steps=4, epochs=1, minibatches=2, hidden=(8,), critic_hidden=(8,), channels=(4, 4))
        trainer = PPO(_env(4, horizon=6), config, 3)
        begun = [p.detach().clone() for p in trainer.actor.encoder.parameters()]
        numbers = [trainer.iterate() for _ in range(2)]
        return trainer, begun, numbers

    one, begun, numbers = run()
    assert any(not torch.equal(a, b) for a, b in zip(begun, one.actor.encoder.parameters(), strict=True))
    assert run()[2] == numbers


# ---- SAC that sees ---------------------------------------------------------------------------------------------------


def _sac(iterations, *, observe="rgb", seed=3, **settings):
    trainer = sac.SAC(_env(4, observe=observe, horizon=6), sac.Config(**{**SMALL, **settings}), seed)
    return trainer, [trainer.iterate() for _ in range(iterations)]


@pytest.mark.parametrize("given", [{}, {"observe": "depth", "shift": 2, "n_step": 3}], ids=["colour", "depth"])
def test_sac_sees_and_goes_on_to_the_same_bits(given):
    whole, numbers = _sac(5, **given)
    half, _ = _sac(3, **given)
    rest, _ = _sac(0, **given)
    rest.load_state_dict(half.state_dict())
    assert [rest.iterate(), rest.iterate()] == numbers[3:]
    for one, other in zip(whole.parameters, rest.parameters, strict=True):
        assert torch.equal(one, other)
    for one, other in zip(whole.lagging.parameters(), rest.lagging.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_critics_train_the_encoder_and_the_actor_does_not():
    trainer, _ = _sac(3, actor_every=1, follow=0.25, updates=1)
    encoder = [p.detach().clone() for p in trainer.encoder.parameters()]
    lagging = [p.detach().clone() for p in trainer.lagging.parameters()]
    part = next(trainer.batches())
    trainer.improve_actor(part["seen"])
    assert all(torch.equal(a, b) for a, b in zip(encoder, trainer.encoder.parameters(), strict=True))
    trainer.improve_critics(part)
    assert all(not torch.equal(a, b) for a, b in zip(encoder, trainer.encoder.parameters(), strict=True))
    trainer.iterate()  # one update
    for was, now, source in zip(lagging, trainer.lagging.parameters(), trainer.encoder.parameters(), strict=True):
        torch.testing.assert_close(now.data, 0.75 * was + 0.25 * source.data)


def test_pictures_are_drawn_from_the_replay_as_they_were_added_and_counted_before():
    draw = torch.Generator().manual_seed(0)

    def seen():
        return {
            "numbers": torch.rand((2, 3), generator=draw),
            "cameras/a/rgb": torch.randint(0, 256, (2, 4, 5, 3), generator=draw, dtype=torch.uint8),
            PATH: torch.rand((2, 4, 5, 1), generator=draw).half(),
        }

    example = {name: value[:1] for name, value in seen().items()}
    replay = Replay(rows=2, steps=5, observations=example, actions=1, gamma=0.9)
    assert replay_bytes(2, 5, example, 1) == 2 * 5 * (2 * (12 + 60 + 40) + 8 + 2)
    told = []
    for t in range(7):
        told.append((seen(), seen()))
        ended = torch.tensor([t == 3, False])
        plain = {"actions": torch.full((2, 1), float(t)), "rewards": torch.ones(2), "ended": ended, "kept": ~ended}
        replay.add(seen=told[-1][0], following=told[-1][1], **plain)
    drawn = replay.take(torch.arange(10))
    again = Replay(rows=2, steps=5, observations=example, actions=1, gamma=0.9)
    again.load_state_dict(replay.state_dict())
    for i in range(10):
        for name in example:
            assert torch.equal(drawn["seen"][name][i], told[2 + i // 2][0][name][i % 2])
            assert torch.equal(drawn["following"][name][i], told[2 + i // 2][1][name][i % 2])
            assert torch.equal(again.take(torch.arange(10))["seen"][name], drawn["seen"][name])


def test_what_sac_cannot_see_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="one observation at a time"):
        _sac(0, observe=["rgb", Stack(2)])
    with pytest.raises(ConfigError, match="demonstrations of flat observations only"):
        _sac(0, demos=str(tmp_path / "a.h5"))


# ---- recipes of homes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ppo", "sac", "bc", "diffusion"])
def test_the_recipe_of_homes_that_sees_depth_trains_in_small(algorithm, tmp_path):
    recipe, own = recipe_for(algorithm, "HomeClose-v1", observe="depth")
    assert own and recipe.env["cameras"] == ["fetch_head", "fetch_hand"] and recipe.env["size"] == [128, 128]
    few = {"horizon": 40, "size": [36, 36], "renderer": "rays", "config": {"mechanism": "drawer"}}
    settings = {
        "ppo": {"num_steps": 2, "minibatches": 2},
        "sac": {"batch": 6, "buffer": 40, "start_steps": 4},
        "bc": {"demonstrations": 1, "batch_size": 8, "updates": 2},
        "diffusion": {
            "demonstrations": 1,
            "batch_size": 8,
            "updates": 2,
            "unet_channels": [8, 16],
            "train_steps": 4,
            "steps": 4,
        },
    }[algorithm]
    if algorithm in ("ppo", "sac"):
        few["num_envs"] = 2
    else:
        few["horizon"] = 200  # the expert needs them
    small = recipe.replace(env=few, settings=settings, steps=4, validation_episodes=1)
    outcome = train(small, folder=tmp_path / "run", seed=1)
    assert outcome.state.steps >= 4
    about = read_about(tmp_path / "run")
    frames = [2] if algorithm == "diffusion" else []
    for camera in ("fetch_head", "fetch_hand"):
        assert about["shapes"][f"cameras/{camera}/depth"] == [*frames, 36, 36]
    assert not [name for name in about["shapes"] if name.startswith("privileged")]


def test_the_command_chooses_this_recipe_where_depth_is_to_be_seen():
    chosen, own = chosen_recipe(TrainOptions(algorithm="diffusion", task="HomePick-v1", set=("env.observe=depth",)))
    assert own and chosen == recipe_for("diffusion", "HomePick-v1", observe="depth")[0]
    assert chosen.env["observe"][1] == {"kind": "Stack", "frames": 2}
    assert chosen != recipe_for("diffusion", "HomePick-v1")[0]
    other, own = recipe_for("sac", "PushCube-v2", observe="depth")
    assert not own and "cameras" not in other.env
