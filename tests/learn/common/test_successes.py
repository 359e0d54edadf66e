"""Starts where earlier episodes succeeded: these states, a share of the episodes, and nothing where none succeeded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from manikin import make
from manikin.errors import ConfigError
from manikin.learn.common.rollout import Episodes
from manikin.learn.common.spent import Spent
from manikin.learn.common.starts.successes import SuccessStarts
from manikin.learn.ppo import PPO, Config

ROWS = 6


def environment(**options):
    return make("PushCube-v2", **{"num_envs": ROWS, "terminate": False, "horizon": 20, **options})


def rows(*chosen):
    mask = torch.zeros(ROWS, dtype=torch.bool)
    mask[list(chosen)] = True
    return mask


def moved(env, steps, seed=0):
    """Rows after so many steps of chance."""
    env.reset(seed=list(range(seed, seed + ROWS)))
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        env.step(torch.rand((ROWS, env.single_action_space.shape[0]), generator=draw) * 2 - 1)


def visited(env, most=1024, share=0.5):
    """Starts that remember rows 1 and 4 after three steps, and row 2 after fifteen; and these states."""
    starts = SuccessStarts(env, share=share, most=most)
    states = []
    for steps, chosen in ((3, (1, 4)), (15, (2,))):
        moved(env, steps)
        starts.visit(rows(*chosen))
        states.append(env.save(np.array(chosen)).state)
    return starts, np.concatenate(states)


def test_an_episode_begins_where_one_succeeded_under_its_own_seed():
    env = environment()
    starts, states = visited(env, share=0.99)
    env.reset(seed=[70, 71, 72, 73, 74, 75])
    before = env.save()
    seen = starts.begin(rows(0, 1, 2, 3, 4), rows())
    after = env.save()
    places = [[np.array_equal(state, one) for one in states].index(True) for state in after.state[:5]]
    assert len(set(places)) > 1
    np.testing.assert_array_equal(after.state[5], before.state[5])  # a row whose episode goes on
    assert after.extra["seed"].tolist() == [70, 71, 72, 73, 74, 75]
    # as many steps are left as there were, and at least half of the 20
    assert after.extra["elapsed"][:5].tolist() == [10 if place == 2 else 3 for place in places]
    env.load(after)
    np.testing.assert_array_equal(seen.numpy(), env.load(after)[0].numpy())


def test_a_share_of_the_episodes_begins_so_and_what_they_come_to_is_not_remembered():
    env = environment()
    starts, states = visited(env, share=0.25)
    began = np.zeros(ROWS)
    for _ in range(200):
        env.reset(seed=list(range(ROWS)))
        starts.begin(rows(*range(ROWS)), rows())
        began += (env.save().extra["elapsed"] > 0) / 200
    assert abs(began.mean() - 0.25) < 0.04  # 3.2 standard deviations of 1,200 draws
    held = starts.summary["success_starts"]
    placed = np.flatnonzero(env.save().extra["elapsed"] > 0).tolist()
    starts.visit(rows(*placed))
    assert starts.summary["success_starts"] == held == len(states)
    others = sorted(set(range(ROWS)) - set(placed))
    starts.visit(rows(*others))
    assert starts.summary["success_starts"] == held + len(others)


def test_the_oldest_is_forgotten_first():
    env = environment()
    starts, states = visited(env, most=2)
    assert starts.summary == {"success_starts": 2.0}
    found = set()
    for _ in range(20):
        env.reset(seed=list(range(ROWS)))
        starts.begin(rows(*range(ROWS)), rows())
        now = env.save()
        for state in now.state[now.extra["elapsed"] > 0]:
            found.add([np.array_equal(state, one) for one in states].index(True))
    assert found == {1, 2}


def test_without_a_success_nothing_is_moved():
    env = environment()
    starts = SuccessStarts(env, share=0.5)
    env.reset(seed=0)
    starts.visit(rows())
    assert starts.begin(rows(*range(ROWS)), rows()) is None


def test_a_row_that_is_cut_where_it_failed_begins_as_one_that_ended_does():
    env = environment(autoreset="same_step")

    class Fails:
        """Row 3 fails in its second step."""

        def __getattr__(self, name):
            return getattr(env, name)

        def step(self, actions):
            observation, rewards, terminated, truncated, info = env.step(actions)
            info["fail"] = (env.elapsed == 2) & (torch.arange(ROWS) == 3)
            return observation, rewards, terminated, truncated, info

    starts, states = visited(env, share=0.999)
    shared = {"stagger": False, "bootstrap_at_success": True, "end_at_fail": True}
    episodes = Episodes(Fails(), 0, Spent(), starts=starts, **shared)
    env.reset(seed=episodes.seeds)
    still = torch.zeros(ROWS, env.single_action_space.shape[0])
    episodes.step(still, 1)
    moved = episodes.step(still, 2)
    assert moved.cut.tolist() == [False, False, False, True, False, False]
    assert any(np.array_equal(env.save().state[3], one) for one in states)
    assert torch.equal(moved.observation, env.load(env.save())[0])
    starts.visit(rows(3))
    assert starts.summary["success_starts"] == len(states)


def _learns_where_it_succeeds(iterations, state=None):
    """Its goal is so wide that the first step of an episode succeeds."""
    env = environment(horizon=5, autoreset="same_step", config={"goal_radius": 0.3})
    small = Config(num_steps=6, epochs=1, minibatches=3, hidden=(8,), critic_hidden=(8,), success_starts=0.5)
    trainer = PPO(env, replace(small, log_std=0.0), 3)
    if state is not None:
        trainer.load_state_dict(state)
    return trainer, [trainer.iterate() for _ in range(iterations)]


def test_a_run_with_such_starts_goes_on_to_the_same_bits():
    whole, numbers = _learns_where_it_succeeds(6)
    assert numbers[-1]["success_starts"] > ROWS  # also of episodes after the first
    half, _ = _learns_where_it_succeeds(3)
    rest, again = _learns_where_it_succeeds(3, half.state_dict())
    assert again == numbers[3:]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters, rest.parameters, strict=True))


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ConfigError, match="success_starts must be 0 or more and below 1"):
        SuccessStarts(environment(), share=share)


def test_episodes_that_end_with_success_are_refused():
    with pytest.raises(ConfigError, match="go on after success"):
        SuccessStarts(environment(terminate=True), share=0.3)
