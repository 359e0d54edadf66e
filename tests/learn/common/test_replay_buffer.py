"""The replay, by definition: returns summed apart, ends of episodes, the ring, memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manikin import make
from manikin.errors import ConfigError
from manikin.learn.common.data import replay as replay_module
from manikin.learn.common.data.replay import Replay, free_memory, free_of_group, replay_bytes
from manikin.learn.common.rollout import worth_after
from manikin.learn.sac import SAC, Config


def _filled(rng, *, made, rows, steps, n_step, gamma):
    """A replay of random steps, and the same steps as arrays."""
    told = {
        "seen": rng.normal(size=(made, rows, 3)),
        "actions": rng.normal(size=(made, rows, 2)),
        "rewards": rng.normal(size=(made, rows)),
        "following": rng.normal(size=(made, rows, 3)),
        "ended": rng.random((made, rows)) < 0.25,
    }
    told["kept"] = ~told["ended"] | (rng.random((made, rows)) < 0.5)
    found = Replay(rows=rows, steps=steps, observations=3, actions=2, gamma=gamma, n_step=n_step)
    for t in range(made):
        found.add(**{name: torch.from_numpy(value[t]).to(found.rewards) for name, value in told.items()})
    return found, told


def _by_definition(told, t, row, n_step, gamma):
    """Return, last step and discount of step t: rewards summed one by one until the episode ends."""
    total, last = 0.0, t
    for k in range(n_step):
        if t + k == len(told["rewards"]):
            break
        last = t + k
        total += gamma**k * told["rewards"][last, row]
        if told["ended"][last, row]:
            break
    return total, last, gamma ** (last - t + 1) * told["kept"][last, row]


@pytest.mark.parametrize("n_step", [1, 3, 20])
@pytest.mark.parametrize("made", [5, 9, 16, 30])  # less than the ring holds, all, and more
def test_what_is_drawn_is_what_was_added_with_returns_summed_by_definition(made, n_step):
    rows, steps, gamma = 4, 9, 0.8
    found, told = _filled(np.random.default_rng(made), made=made, rows=rows, steps=steps, n_step=n_step, gamma=gamma)
    oldest = max(0, made - steps)
    assert len(found) == rows * (made - oldest)
    drawn = found.take(torch.arange(len(found)))
    for i in range(len(found)):
        t, row = oldest + i // rows, i % rows
        total, last, discount = _by_definition(told, t, row, n_step, gamma)
        np.testing.assert_allclose(drawn["seen"][i], told["seen"][t, row], rtol=1e-6)
        np.testing.assert_allclose(drawn["actions"][i], told["actions"][t, row], rtol=1e-6)
        np.testing.assert_allclose(drawn["following"][i], told["following"][last, row], rtol=1e-6)
        np.testing.assert_allclose(drawn["returns"][i], total, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(drawn["discounts"][i], discount, rtol=1e-5)


def test_drawing_is_even_and_follows_from_the_stream():
    found, _ = _filled(np.random.default_rng(0), made=7, rows=3, steps=5, n_step=1, gamma=0.9)
    draw = lambda seed: found.sample(30_000, torch.Generator().manual_seed(seed))["returns"]  # noqa: E731
    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    values, counts = draw(3).unique(return_counts=True)
    assert len(values) == 15  # five steps of three rows
    assert (counts - 2000).abs().max() < 6 * 2000**0.5


def test_a_replay_reads_back_as_it_was_also_where_it_has_gone_round():
    for made in (3, 12):
        found, _ = _filled(np.random.default_rng(1), made=made, rows=2, steps=5, n_step=2, gamma=0.9)
        again = Replay(rows=2, steps=5, observations=3, actions=2, gamma=0.9, n_step=2)
        again.load_state_dict(found.state_dict())
        every = torch.arange(len(found))
        assert len(again) == len(found)
        for name, value in found.take(every).items():
            assert torch.equal(value, again.take(every)[name])


def test_memory_is_known_before_it_is_taken(monkeypatch):
    small = Replay(rows=2, steps=50, observations=7, actions=3, gamma=0.9)
    held = sum(value.nbytes for value in vars(small).values() if isinstance(value, torch.Tensor))
    assert replay_bytes(2, 50, 7, 3) == held
    assert free_memory(torch.device("cpu")) > 1 << 20
    with pytest.raises(ConfigError, match=r"replay of 4,000,000,000,000 steps needs 920000\.00 GB, and .* GB are free"):
        Replay(rows=4, steps=10**12, observations=26, actions=4, gamma=0.9)
    monkeypatch.setattr(replay_module, "free_memory", lambda device: held)
    with pytest.raises(ConfigError, match="keep at most 90 steps"):
        Replay(rows=2, steps=50, observations=7, actions=3, gamma=0.9)
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="at least one row"):
        Replay(rows=0, steps=5, observations=3, actions=2, gamma=0.9)
    with pytest.raises(ConfigError, match="empty replay"):
        small.sample(1, torch.Generator())


def test_a_container_has_what_its_limit_leaves(tmp_path):
    assert free_of_group(tmp_path) > 1 << 60  # no such group, as on other systems
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 400\nfile 300\nshmem 100\n")  # shared memory is not given back
    for limit, free in (("max", 1 << 62), ("1000", 1000 - 700 + 200), ("100", 0)):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        assert free_of_group(tmp_path) == free


def test_the_value_after_an_episode_counts_where_only_time_ran_out_and_by_option_at_success():
    flag = lambda *values: torch.tensor([bool(value) for value in values])  # noqa: E731
    # time ran out; succeeded; failed; succeeded in the last step; failed in the last step
    given = (flag(0, 1, 1, 1, 1), flag(1, 0, 0, 1, 1), {"success": flag(0, 1, 0, 1, 0), "fail": flag(0, 0, 1, 0, 1)})
    assert worth_after(*given, bootstrap_at_success=True).tolist() == [True, True, False, True, False]
    assert worth_after(*given, bootstrap_at_success=False).tolist() == [True, False, False, False, False]


def test_rows_that_begin_anew_keep_the_last_observation_of_the_episode_before():
    """The same actions in an environment that does not restart rows by itself: there every step returns the observation
    after it, also at an end. Rows end and restart at different times."""
    rows, horizon, count = 5, 6, 17
    env = make("PushCube-v2", num_envs=rows, horizon=horizon, autoreset="same_step", terminate=False)
    trainer = SAC(env, Config(num_steps=count, start_steps=10**6, buffer=rows * count), 3)
    plain = make("PushCube-v2", num_envs=rows, horizon=horizon, autoreset="disabled", terminate=False)
    seen, _ = plain.reset(seed=trainer.episodes.seeds)
    trainer.iterate()
    replay = trainer.replay
    for t in range(count):
        assert torch.equal(replay.seen[t], seen), t
        seen, reward, _, truncated, _ = plain.step(replay.actions[t])
        assert torch.equal(replay.following[t], seen), t
        assert torch.equal(replay.rewards[t], reward)
        assert replay.kept[t].all()  # nothing but time ends an episode here
        cut = torch.arange(rows) * horizon // rows == t + 1 if t + 1 < horizon else torch.zeros(rows, dtype=torch.bool)
        assert torch.equal(replay.ended[t], truncated | cut)
        if replay.ended[t].any():
            seen, _ = plain.reset(options={"reset_mask": replay.ended[t]})
    assert replay.ended.sum(0).min() >= 2 and not replay.ended.all(1).any()
