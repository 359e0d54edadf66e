"""Starts along demonstrations: they are the demonstrations' states to the bit, and move back as the curriculum says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manikin import make
from manikin.cli import main
from manikin.data.recording.read import EpisodeFile
from manikin.errors import ConfigError, DataError
from manikin.learn.common.starts.reverse import ReverseStarts
from manikin.learn.sac import SAC, Config
from manikin.sim.snapshot import Snapshot


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("demos") / "push.h5")
    assert main(["collect", "PushCube-v2", "--episodes", "3", "--observations", "--out", out]) == 0
    return out


def environment(rows=4, **options):
    return make("PushCube-v2", num_envs=rows, reward="sparse", autoreset="same_step", **options)


def all_rows(env):
    return torch.ones(env.num_envs, dtype=torch.bool)


def lost(env):
    return torch.zeros(env.num_envs, dtype=torch.bool)


def test_an_episode_begins_where_a_demonstration_was_and_goes_on_as_it_did(demos):
    env = environment()
    starts = ReverseStarts(env, demos, back=4)
    with EpisodeFile(demos) as file:
        episodes = list(file)
    assert starts.lengths.tolist() == [int(np.argmax(one.success)) + 1 for one in episodes]
    assert starts.at.tolist() == [n - 4 for n in starts.lengths]
    env.reset(seed=[7, 8, 9, 10])
    own = env.save()
    seen = starts.begin(all_rows(env), lost(env))
    states = np.concatenate([one.observations["value"][:-1] for one in episodes])
    places = [int(np.flatnonzero((states == row).all(1))[0]) for row in seen.numpy()]  # each is a recorded state
    actions = np.concatenate([one.actions for one in episodes])
    demo = np.repeat(np.arange(3), [len(one) for one in episodes])
    first = np.concatenate([[0], np.cumsum([len(one) for one in episodes])[:-1]])
    for place in places:
        step = place - first[demo[place]]
        assert starts.at[demo[place]] <= step < starts.lengths[demo[place]]
    assert env.save().extra["seed"].tolist() == own.extra["seed"].tolist() == [7, 8, 9, 10]
    following = env.step(torch.from_numpy(actions[places]))
    for row, place in enumerate(places):
        ended = demo[place] != demo[min(place + 1, len(demo) - 1)] or place + 1 == len(demo)
        got = following[4]["final_obs"][row] if ended else following[0][row]
        wanted = episodes[demo[place]].observations["value"][place - first[demo[place]] + 1]
        np.testing.assert_array_equal(got.numpy(), wanted)


def test_of_a_recording_that_left_failures_out_the_others_are_taken(tmp_path):
    out = tmp_path / "pick.h5"
    words = ["--episodes", "3", "--seed", "10", "--keep", "success", "--observations", "--out", str(out)]
    assert main(["collect", "PickCube-v2", *words]) == 0
    with EpisodeFile(out) as file:
        assert file.numbers == [0, 2]  # the expert misses seed 11
        lengths = [int(np.argmax(one.succeeded)) + 1 for one in file]
    env = make("PickCube-v2", num_envs=2, reward="sparse", autoreset="same_step")
    assert ReverseStarts(env, out).lengths.tolist() == lengths


def test_such_an_episode_is_cut_short_in_proportion_to_what_was_left(demos):
    env = environment()
    starts = ReverseStarts(env, demos, back=3, patience=2.0)
    starts.at[:] = starts.lengths - 6
    env.reset(seed=0)
    starts.begin(all_rows(env), lost(env))
    left = env.horizon - env.save().extra["elapsed"]
    assert set(left.tolist()) <= {2 * 6 + 6, 2 * 3 + 6, 2 * 1 + 6} and left.max() == 18


def test_the_start_moves_back_after_so_many_successes_in_a_row_and_a_loss_begins_the_count_anew(demos):
    starts = ReverseStarts(environment(), demos, back=4, wins=3)
    begun = starts.at.copy()

    def note(demo, *won):
        starts.note(np.array([demo] * len(won)), np.array(won))

    note(0, True, True, False, True, True)
    assert starts.at.tolist() == begun.tolist()
    note(0, True)
    assert starts.at.tolist() == [begun[0] - 4, *begun[1:]]
    for _ in range(100):
        note(0, True)
    assert starts.at[0] == -1 and not starts.learned
    assert starts.summary == {"before_demo_end": pytest.approx(np.mean([starts.lengths[0], 4, 4]))}
    for demo in (1, 2):
        note(demo, *[True] * 300)
    assert starts.learned and starts.begin(all_rows(starts.env), lost(starts.env)) is None


def test_only_episodes_from_about_the_start_count(demos):
    """Those that begin nearer to the end say nothing about the start: rows of 200 episodes that all win."""
    env = environment()
    starts = ReverseStarts(env, demos, back=2, wins=1)
    env.reset(seed=0)
    starts.begin(all_rows(env), lost(env))
    before, counted = starts.at.copy(), starts.demo_of[starts.demo_of >= 0]
    starts.begin(all_rows(env), all_rows(env))
    moved = before - starts.at
    assert moved.tolist() == [2 * int((counted == demo).sum()) for demo in range(3)]


def test_a_run_with_reverse_starts_goes_on_to_the_same_bits(demos):
    sizes = {"hidden": (16,), "critic_hidden": (16,), "batch": 12, "buffer": 200, "start_steps": 20}

    def trained(iterations, state=None):
        env = environment()
        trainer = SAC(env, Config(**sizes, num_steps=3, updates=2, demos=demos, reverse=2, reverse_wins=1), 3)
        if state is not None:
            trainer.load_state_dict(state)
        return trainer, [trainer.iterate() for _ in range(iterations)]

    whole, numbers = trained(16)
    half, _ = trained(7)
    rest, again = trained(9, half.state_dict())
    assert again == numbers[7:]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters, rest.parameters, strict=True))
    assert any("before_demo_end" in one for one in numbers)


def test_what_does_not_fit_is_refused(demos, tmp_path):
    with pytest.raises(ConfigError, match="needs demonstrations: demos=FILE"):
        SAC(environment(), Config(reverse=4), 0)
    for settings, said in (({"back": 0}, "back of 1 or more"), ({"patience": 0.5}, "patience of 1 or more")):
        with pytest.raises(ConfigError, match=said):
            ReverseStarts(environment(), demos, **settings)
    with pytest.raises(DataError, match="does not come out as recorded"):
        ReverseStarts(environment(config={"cube_half_size": 0.03}), demos)
    out = str(tmp_path / "chance.h5")
    words = ["--episodes", "2", "--horizon", "5", "--policy", "random", "--observations", "--out", out]
    assert main(["collect", "PushCube-v2", *words]) == 0
    for env, path in ((environment(), out), (environment(horizon=3), demos)):
        with pytest.raises(DataError, match="no episode that succeeded within"):
            ReverseStarts(env, path)


def test_snapshots_are_joined_in_order_and_not_across_scenes():
    env, other = make("PushCube-v2", num_envs=3), make("PickCube-v2", num_envs=1)
    env.reset(seed=4)
    other.reset(seed=4)
    parts = [env.save([row]) for row in (2, 0)]
    joined = Snapshot.joined(parts)
    whole = env.save()
    np.testing.assert_array_equal(joined.state, whole.state[[2, 0]])
    np.testing.assert_array_equal(joined.extra["seed"], whole.extra["seed"][[2, 0]])
    with pytest.raises(DataError, match="belongs to scene"):
        Snapshot.joined([parts[0], other.save()])
