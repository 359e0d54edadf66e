"""ACT: its transformer, its style encoder and its loss against other implementations and formulas."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import distributions, nn

from manikin import make
from manikin.data.recorder import Recorder
from manikin.eval.evaluation import evaluate
from manikin.eval.runner import run_episodes
from manikin.learn.act import ACT, Config, StyleEncoder, divergence, masked_l1
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.train import PROTOCOL, train
from manikin.policy.choices import policy_maker
from manikin.policy.chunk import ChunkPolicy, Execution
from manikin.policy.expert import ExpertPolicy
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks.chunked import ChunkTransformer
from manikin.policy.networks.transformer import Attention, DecoderLayer, EncoderLayer, sinusoids
from manikin.policy.trained import read_about

SMALL = {"width": 16, "heads": 2, "inner": 24, "dropout": 0.0}


def _attention_of_torch(ours: Attention) -> nn.MultiheadAttention:
    theirs = nn.MultiheadAttention(ours.query.in_features, ours.heads, batch_first=True)
    parts = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in parts]))
        theirs.in_proj_bias.copy_(torch.cat([p.bias for p in parts]))
        theirs.out_proj.load_state_dict(ours.out.state_dict())
    return theirs


def _filled(module: nn.Module) -> nn.Module:
    """Every parameter random, so that none may be forgotten."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    return module.eval()


def test_attention_is_that_of_torch() -> None:
    torch.manual_seed(0)
    ours = _filled(Attention(12, 3, 0.0))
    query, key, value = torch.randn(4, 5, 12), torch.randn(4, 7, 12), torch.randn(4, 7, 12)
    seen = torch.rand(4, 7) < 0.6
    seen[:, 0] = True
    theirs = _attention_of_torch(ours)
    torch.testing.assert_close(ours(query, key, value), theirs(query, key, value)[0])
    torch.testing.assert_close(ours(query, key, value, seen), theirs(query, key, value, key_padding_mask=~seen)[0])


def test_layers_without_places_are_those_of_torch() -> None:
    """torch's have no place of their own; with a place of zero both are the same."""
    torch.manual_seed(0)
    x, memory = torch.randn(3, 5, 16), torch.randn(3, 4, 16)
    encoder = _filled(EncoderLayer(16, 2, 24))
    theirs = nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0, batch_first=True).eval()
    theirs.self_attn = _attention_of_torch(encoder.attention)
    _copy(theirs, encoder)
    torch.testing.assert_close(encoder(x, torch.zeros(5, 16)), theirs(x))
    decoder = _filled(DecoderLayer(16, 2, 24))
    other = nn.TransformerDecoderLayer(16, 2, 24, dropout=0.0, batch_first=True).eval()
    other.self_attn, other.multihead_attn = map(_attention_of_torch, (decoder.attention, decoder.across))
    _copy(other, decoder)
    torch.testing.assert_close(decoder(x, torch.zeros(5, 16), memory, torch.zeros(4, 16)), other(x, memory))


def _copy(theirs: nn.Module, ours: nn.Module) -> None:
    theirs.linear1.load_state_dict(ours.inner[0].state_dict())
    theirs.linear2.load_state_dict(ours.inner[3].state_dict())
    for k, norm in enumerate(ours.norms):
        getattr(theirs, f"norm{k + 1}").load_state_dict(norm.state_dict())


def test_places_belong_to_queries_and_keys_and_not_to_values() -> None:
    torch.manual_seed(0)
    layer = _filled(EncoderLayer(16, 2, 24))
    x, place = torch.randn(2, 5, 16), torch.randn(5, 16)
    changed = layer.attention(x + place, x + place, x)
    first = layer.norms[0](x + changed)
    torch.testing.assert_close(layer(x, place), layer.norms[1](first + layer.inner(first)))
    order = torch.tensor([3, 0, 4, 1, 2])  # a place moves with its token: the answer is that of the token
    torch.testing.assert_close(layer(x[:, order], place[order]), layer(x, place)[:, order])


def test_sinusoids_are_those_of_the_formula() -> None:
    t, k = np.arange(9)[:, None], np.arange(4)
    angle = t / 10_000 ** (2 * k / 8)
    expected = np.empty((9, 8))
    expected[:, 0::2], expected[:, 1::2] = np.sin(angle), np.cos(angle)
    np.testing.assert_allclose(sinusoids(9, 8).numpy(), expected, atol=1e-6)


def test_the_divergence_is_torchs() -> None:
    torch.manual_seed(0)
    mean, log_variance = torch.randn(6, 4), torch.randn(6, 4)
    ours = distributions.Normal(mean, (0.5 * log_variance).exp())
    standard = distributions.Normal(torch.zeros(4), torch.ones(4))
    expected = distributions.kl_divergence(ours, standard).sum(1).mean()
    torch.testing.assert_close(divergence(mean, log_variance), expected)


def test_the_error_is_the_mean_over_actions_that_were_made() -> None:
    rng = np.random.default_rng(0)
    found, wanted = rng.normal(size=(2, 5, 6, 3))
    padded = rng.random((5, 6)) < 0.4
    expected = np.mean([abs(found[b, t] - wanted[b, t]) for b in range(5) for t in range(6) if not padded[b, t]])
    error = masked_l1(*map(torch.from_numpy, (found, wanted, padded)))
    assert error.item() == pytest.approx(expected)


def test_what_is_padded_changes_neither_style_nor_error() -> None:
    torch.manual_seed(0)
    encoder = StyleEncoder(observations=5, actions=3, predict=6, layers=2, latent=4, **SMALL).eval()
    seen, actions = torch.randn(7, 5), torch.randn(7, 6, 3)
    padded = torch.arange(6) >= torch.arange(1, 8).unsqueeze(1)  # the last row has none
    other = torch.where(padded.unsqueeze(2), torch.full_like(actions, 50.0), actions)
    assert (other != actions).any()
    for ours, theirs in zip(encoder(seen, actions, padded), encoder(seen, other, padded), strict=True):
        torch.testing.assert_close(ours, theirs)
    # what is not padded does matter, and so does its order
    for changed in (actions + 0.1 * ~padded.unsqueeze(2), actions.flip(1)):
        assert not torch.allclose(encoder(seen, actions, padded)[0][1:], encoder(seen, changed, padded)[0][1:])
    found = torch.randn(7, 6, 3)
    assert masked_l1(found, actions, padded).item() == pytest.approx(masked_l1(found, other, padded).item())


def test_gradients_do_not_come_from_padded_actions() -> None:
    torch.manual_seed(0)
    network = ChunkTransformer(observations=5, actions=3, predict=4, latent=2, **SMALL)
    seen, style = torch.randn(1, 5), torch.zeros(1, 2)
    padded = torch.tensor([[False, True, True, True]])
    first = torch.randn(1, 4, 3)
    both = []
    for late in (first, first + torch.tensor([0.0, 9.0, 9.0, 9.0])[:, None]):
        network.zero_grad()
        masked_l1(network.answer(seen, style), late, padded).backward()
        both.append(torch.cat([p.grad.flatten() for p in network.parameters()]))
    assert torch.equal(*both) and both[0].abs().sum() > 0


def test_the_policy_acts_without_style() -> None:
    torch.manual_seed(0)
    network = ChunkTransformer(observations=5, actions=3, window=2, predict=4, latent=2, **SMALL).eval()
    seen = torch.randn(6, 2, 5)
    assert network(seen).shape == (6, 4, 3)
    expected = network.span.restore(network.answer(seen, torch.zeros(6, 2))).clamp(-1, 1)
    assert torch.equal(network(seen), expected)
    assert not torch.allclose(network.answer(seen, torch.ones(6, 2)), network.answer(seen, torch.zeros(6, 2)))
    assert not torch.allclose(network(seen.flip(1)), network(seen))  # the window has an order


class _EitherWay:
    """One of two constant ways per episode, chosen by where the cube lies in a manner that nobody can see."""

    def __init__(self, env):
        self.way = torch.where(torch.arange(env.num_envs) % 2 == 0, 0.8, -0.2)
        self.actions = env.single_action_space.shape[0]

    def reset(self, rows):
        pass

    def act(self, observation, instruction):
        return self.way[:, None, None].expand(-1, 1, self.actions).clone()


def _recorded(path, policy, count, horizon):
    env = make("PushCube-v2", num_envs=count, autoreset="disabled", horizon=horizon)
    with Recorder(env, path, observations=True, states=False, keep="all", first_seed=0) as recorder:
        run_episodes(env, policy(env), range(count), observers=[recorder])
    env.close()
    return path


def test_the_latent_vector_holds_what_the_observation_leaves_open(tmp_path, monkeypatch) -> None:
    """Demonstrations go one of two ways. With little weight on the divergence the encoder tells them apart and the
    error falls far below the best that a function of the first observation can reach; with much weight it cannot."""
    monkeypatch.setattr("manikin.learn.common.data.demonstrations.KEEP", "all")
    path = _recorded(tmp_path / "a.h5", _EitherWay, 16, 4)
    env = make("PushCube-v2", observe="state", horizon=4)
    found = {}
    for weight in (0.0, 100.0):
        config = Config(
            updates=150, batch_size=32, learning_rate=1e-3, anneal=False, predict=3, kl_weight=weight, latent=2, **SMALL
        )
        trainer = ACT(env, config, 1, path)
        # only the start, where both ways look alike
        starts = torch.arange(0, len(trainer.data.actions), 4)
        trainer.data = dataclasses.replace(
            trainer.data,
            windows=trainer.data.windows[:1].expand(len(starts), -1).clone(),
            actions=trainer.data.actions[starts],
            padded=trainer.data.padded[starts],
            pushed=trainer.data.pushed[starts],
        )
        found[weight] = [trainer.iterate() for _ in range(2)][-1]
    best_blind = 1.0  # scaled, the ways are -1 and 1: any answer between them is wrong by 1 on average
    assert found[100.0]["l1"] > 0.8 * best_blind and found[100.0]["kl"] < 0.01
    assert found[0.0]["l1"] < 0.4 * best_blind and found[0.0]["kl"] > 0.5


RECIPE = Recipe(
    algorithm="act",
    task="PushCube-v2",
    env={"horizon": 60, "observe": ["state", {"kind": "Stack", "frames": 2}]},
    settings={"width": 16, "inner": 16, "updates": 2, "batch_size": 8, "demonstrations": 3, "ensemble_m": 0.05},
    steps=4,
    minutes=0,
    validate_every=2,
    validation_episodes=2,
    test_episodes=2,
    stop_at=2.0,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("act")
    train(RECIPE, folder=folder, seed=1)
    return folder


def test_a_run_s_policy_executes_its_chunks_as_the_recipe_says(run) -> None:
    from manikin.eval.protocol import load_protocol

    assert read_about(run)["execution"] == {"execute": 1, "ensemble": 0.05}
    protocol, asked = load_protocol(run / PROTOCOL), []

    def make_policy(word, **given):
        def maker(env):
            policy = policy_maker(str(word))(env)
            asked.append(ChunkPolicy(policy, env.num_envs, 8, **given).execution)
            return policy

        return maker

    own = evaluate(protocol, make_policy(run), num_envs=2)
    program = run / "policy.pt2"  # knows no way of its own
    said = evaluate(protocol, make_policy(program), num_envs=2, execution=Execution(1, 0.05))
    whole = evaluate(protocol, make_policy(program), num_envs=2)
    assert asked == [Execution(1, 0.05), Execution(), Execution()]
    returns = [[r.return_ for r in one.tasks[0].results] for one in (own, said, whole)]
    assert returns[0] == pytest.approx(returns[1], abs=1e-3) and returns[0] != pytest.approx(returns[2], abs=1e-3)


def test_the_command_trains_tests_and_takes_another_execution(tmp_path, capsys) -> None:
    from manikin.cli import main

    demos = tmp_path / "demos.h5"
    env = make("PushCube-v2", num_envs=3, autoreset="disabled")
    with Recorder(env, demos, observations=True, states=False, keep="success", first_seed=0) as recorder:
        run_episodes(env, ExpertPolicy(env), range(3), observers=[recorder])
    env.close()
    (tmp_path / "r.toml").write_text(RECIPE.to_toml())
    words = ["train", "--recipe", str(tmp_path / "r.toml"), "--demos", str(demos), "--out", str(tmp_path / "run")]
    assert main([*words, "--pictures", "0"]) == 0
    words = ["eval", str(tmp_path / "run" / PROTOCOL), "--policy", str(tmp_path / "run"), "--pictures", "0"]
    assert main([*words, "--ensemble", "0.5", "--execute", "2", "--out", str(tmp_path / "eval")]) == 0
    assert "--execute 2 --ensemble 0.5" in (tmp_path / "eval/report.json").read_text()
    assert main([*words, "--ensemble", "nan", "--out", str(tmp_path / "other")]) == 2
    assert "ensemble must be a finite number" in capsys.readouterr().err


def test_a_recording_of_your_own_brings_its_controller(tmp_path, capsys) -> None:
    """The recipe of the task records the expert with another one."""
    from manikin.cli import main
    from manikin.cli.train import TrainOptions, chosen_recipe

    demos = tmp_path / "demos.h5"
    env = make("PushCube-v2", num_envs=2, autoreset="disabled", control="joint_pos")
    with Recorder(env, demos, observations=True, states=False, first_seed=0) as recorder:
        run_episodes(env, ExpertPolicy(env), range(2), observers=[recorder])
    env.close()
    recipe = recipe_for("bc", "PushCube-v2")[0]
    assert recipe.env["control"] == "ee_delta_pos" and "qpos[0]" in recipe.config.hide
    words = ["train", "bc", "PushCube-v2", "--demos", str(demos), "--out", str(tmp_path / "run"), "--set"]
    chosen, _ = chosen_recipe(TrainOptions(algorithm="bc", task="PushCube-v2", demos=demos))
    assert chosen.env["control"] == "joint_pos" and list(chosen.config.hide) == ["qvel"]
    assert main([*words, "updates=0"]) == 2
    assert "updates must be 1 or more" in capsys.readouterr().err
    assert main([*words, "env.control=ee_delta_pos"]) == 2
    assert "control 'joint_pos', here 'ee_delta_pos'" in capsys.readouterr().err


def test_a_served_policy_sees_its_window_and_is_executed_as_here(run) -> None:
    pytest.importorskip("websockets", reason="websockets is not installed: pip install 'manikin[remote]'")
    pytest.importorskip("msgpack", reason="msgpack is not installed: pip install 'manikin[remote]'")
    env = make("PushCube-v2", num_envs=2, observe=RECIPE.env["observe"], autoreset="disabled", horizon=12)
    here = policy_maker(str(run))(env)
    assert isinstance(here, NetworkPolicy)
    words = [sys.executable, "-m", "manikin.cli", "serve", str(run), "--port", "0"]
    quiet = {**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=quiet) as process:
        try:
            assert process.stdout is not None
            remote = policy_maker(process.stdout.readline().partition(" at ")[2].partition(";")[0])(env)
            assert remote.execution == here.execution == Execution(1, 0.05)
            ours, theirs = (run_episodes(env, policy, [5, 6, 7]).results for policy in (here, remote))
        finally:
            process.kill()
    assert [r.return_ for r in ours] == [r.return_ for r in theirs]
