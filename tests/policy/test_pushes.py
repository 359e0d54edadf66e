"""Pushed policies: when and how much, from the episode's key alone; and what is learned of what was recorded."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from manikin import make
from manikin.data.recorder import Recorder
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.verify import replay
from manikin.errors import ConfigError
from manikin.eval.runner import run_episodes
from manikin.learn.common.data.demonstrations import load_demonstrations
from manikin.policy.expert import ExpertPolicy
from manikin.policy.pushes import PushedPolicy, Pushes

PUSHES = Pushes(0.15, strength=0.3, steps=3)


def test_pushes_begin_as_often_as_they_say_and_last_as_long() -> None:
    seed = torch.arange(400)
    for chance, steps in ((0.1, 3), (0.5, 1), (1.0, 4)):
        pushes = Pushes(chance, steps=steps)
        pushed, since = pushes.begins(seed, torch.zeros_like(seed), 60)
        first = pushed & (since == torch.arange(60))
        # between two pushes free steps last on average 1 / chance - 1: a renewal process
        expected = 400 * 60 / (steps + 1 / chance - 1)
        assert int(first.sum()) == pytest.approx(expected, rel=0.06)
        for row in range(20):
            for t in np.flatnonzero(first[row]):
                assert pushed[row, t : t + steps].all() and (since[row, t : t + steps] == t).all()
                assert t + steps >= 60 or bool(first[row, t + steps]) or not pushed[row, t + steps]
        assert not (pushed & (torch.arange(60) - since >= steps)).any()


def test_a_push_adds_one_normal_offset_in_all_its_steps() -> None:
    seed = torch.arange(300)
    pushes = Pushes(0.2, strength=0.3, steps=3)
    (pushed, since), index = pushes.begins(seed, seed * 0 + 2, 50), seed * 0 + 2
    offsets = pushes.offsets(seed, index, 50, 4)
    assert not offsets[~pushed].any() and offsets[pushed].all()
    same = pushed[:, 1:] & (since[:, 1:] == since[:, :-1]) & pushed[:, :-1]
    assert torch.equal(offsets[:, 1:][same], offsets[:, :-1][same])
    begun = offsets[pushed & (since == torch.arange(50))]
    assert begun.std().item() == pytest.approx(0.3, rel=0.03) and abs(begun.mean().item()) < 0.01
    assert begun.abs().max() < 0.3 * 6.7
    # of a longer episode it is the beginning, and other episodes have others
    longer = pushes.offsets(seed, index, 80, 4)
    assert torch.equal(longer[:, :50], offsets)
    assert not torch.equal(offsets, pushes.offsets(seed, index + 1, 50, 4))


def test_values_out_of_range_are_named() -> None:
    for chance in (0.0, -0.1, 1.1, math.nan):
        with pytest.raises(ConfigError, match="above 0 and at most 1"):
            Pushes(chance)
    for given in ({"strength": 0.0}, {"strength": math.nan}, {"steps": 0}):
        with pytest.raises(ConfigError, match="strength above 0 and 1 step"):
            Pushes(0.1, **given)
    assert Pushes.of({"pushes": PUSHES.plain}) == PUSHES and Pushes.of({"keep": "all"}) is None


def _record(path, rows, count=6):
    env = make("PushCube-v2", num_envs=rows, autoreset="disabled", horizon=80)
    policy = PushedPolicy(ExpertPolicy(env), env, PUSHES)
    with Recorder(env, path, observations=True, first_seed=0, about={"pushes": PUSHES.plain}) as recorder:
        run_episodes(env, policy, range(count), observers=[recorder])
    return path, env


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return _record(tmp_path_factory.mktemp("pushed") / "a.h5", 6)


def test_a_recording_depends_on_its_episodes_alone_and_replays(recorded, tmp_path) -> None:
    path, env = recorded
    assert replay(path, env).ok
    with EpisodeFile(path) as one, EpisodeFile(_record(tmp_path / "b.h5", 2)[0]) as other:
        for ours, theirs in zip(one, other, strict=True):
            assert np.array_equal(ours.actions, theirs.actions)


def test_what_is_recorded_is_the_expert_and_the_push_and_the_gripper_is_left_alone(recorded) -> None:
    """The expert plays along in the same states, and is asked what it would do."""
    path, _ = recorded
    with EpisodeFile(path) as file:
        episode = next(iter(file))
    single = make("PushCube-v2", num_envs=1, autoreset="disabled", horizon=80)
    single.reset(seed=episode.seed)
    expert, key = ExpertPolicy(single), torch.tensor([episode.seed])
    expert.reset(torch.tensor([0]))
    offsets = PUSHES.offsets(key, key * 0, len(episode), 8)[0].numpy()
    offsets[:, 7] = 0.0
    assert offsets.any()
    for t, action in enumerate(episode.actions):
        wanted = expert.act(None, [""])[0, 0].numpy()
        np.testing.assert_allclose(action, np.clip(wanted + offsets[t], -1, 1), atol=1e-6)
        single.step(torch.from_numpy(action)[None])


def test_pushed_frames_are_not_imitated(recorded) -> None:
    path, env = recorded
    chunk = 5
    data = load_demonstrations(path, env, chunk=chunk)
    frames = 0
    with EpisodeFile(path) as file:
        for episode in file:
            if not episode.success_once:
                continue
            length, key = len(episode), torch.tensor([episode.seed])
            pushed = PUSHES.begins(key, key * 0, length + chunk)[0][0].numpy()
            for t in np.flatnonzero(~pushed[:length]):
                shown = torch.from_numpy(episode.observations["value"][t])
                at = (data.observations[:, 0] == shown).all(1).nonzero().item()  # the order is the file's
                assert np.array_equal(data.actions[at, 0].numpy(), np.clip(episode.actions[t], -1, 1))
                behind = [bool(pushed[t : t + k + 1].any()) for k in range(chunk)]
                assert data.pushed[at].tolist() == behind
                frames += 1
    assert frames == len(data.actions) and data.pushed.any() and not data.pushed[:, 0].any()


def test_the_command_records_pushes(tmp_path, capsys) -> None:
    from manikin.cli import main

    out = tmp_path / "a.h5"
    words = ["collect", "PushCube-v2", "--episodes", "2", "--observations", "--out", str(out)]
    assert main([*words, "--pushes", "0.1"]) == 0
    with EpisodeFile(out) as file:
        header = file.needed_header()
        assert header.recorded["pushes"] == {"chance": 0.1, "strength": 0.4, "steps": 3}
        assert header.policy == "expert (pushed)"
    assert main([*words, "--pushes", "1.5"]) == 2
    assert "chance of a push" in capsys.readouterr().err
