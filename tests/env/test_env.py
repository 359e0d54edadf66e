"""The environment's promises: the same seed is the same scene, rows do not touch each other, resets are Gymnasium's."""

from __future__ import annotations

import ctypes
import gc
import itertools
import resource
import sys
import weakref
from collections.abc import Callable
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import manikin
from card import on_card
from manikin.author.under_test import CountCalls, WatchedEpisodes
from manikin.errors import ActionError, ClosedError, ConfigError, DataError, UnknownNameError
from manikin.sim.health import Health
from states import states

TASK = "PickCube-v2"
WARP = [
    pytest.mark.xdist_group("warp"),
    pytest.mark.skipif(find_spec("mujoco_warp") is None, reason="MuJoCo Warp is not installed"),
]


def actions(env, steps: int, seed: int = 0) -> torch.Tensor:
    """(steps, N, A) the same for row k in any batch."""
    n, a = env.num_envs, env.single_action_space.shape[0]
    return torch.stack(
        [torch.from_numpy(np.random.default_rng((seed, k)).uniform(-1, 1, (steps, a))) for k in range(n)], 1
    )


def starts(env, seeds, indices) -> dict[tuple[int, int], np.ndarray]:
    env.reset(seed=list(seeds), options={"episode_index": list(indices)})
    return dict(zip(zip(seeds, indices, strict=True), states(env.world), strict=True))


# ---- 1: the same episode is the same scene -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known():
    env = manikin.make(TASK, num_envs=7)
    return starts(env, [5, 6, 7, 8, 9, 10, 11], [0, 0, 3, 0, 1, 0, 0])


@pytest.mark.parametrize(("n", "threads"), [(1, 1), (7, 2), (256, 0)])
def test_a_start_is_the_same_in_any_row_batch_and_thread_count(known, n, threads):
    env = manikin.make(TASK, num_envs=n, threads=threads)
    order = list(known)[::-1]
    for k in range(0, len(order), n):
        keys = order[k : k + n]
        keys += [(1000 + i, 0) for i in range(n - len(keys))]
        keys = keys[::-1]
        for key, state in starts(env, *zip(*keys, strict=True)).items():
            if key in known:
                assert np.array_equal(state, known[key]), key


def test_episode_k_is_reached_by_restarts_and_by_partial_resets(known):
    env = manikin.make(TASK, num_envs=3)
    env.reset(seed=[7, 9, 11])
    for _ in range(3):  # seed 7 goes on to index 3, in row 0, with other rows left alone
        env.step(actions(env, 1)[0])
        env.reset(options={"reset_mask": np.array([True, False, False])})
    assert np.array_equal(states(env.world)[0], known[7, 3])
    env.reset(options={"reset_mask": torch.tensor([False, True, False])})
    assert np.array_equal(states(env.world)[1], known[9, 1])


def test_gymnasium_seeding_rules():
    env = manikin.make(TASK, num_envs=3)
    assert env.reset(seed=4)[1]["episode_seed"].tolist() == [4, 5, 6]
    assert env.reset()[1]["episode_index"].tolist() == [1, 1, 1]
    info = env.reset(seed=[9], options={"reset_mask": np.array([False, True, False])})[1]
    assert info["episode_seed"].tolist() == [4, 9, 6] and info["episode_index"].tolist() == [1, 0, 1]
    info = env.reset(seed=[None, 3, None])[1]
    assert info["episode_seed"].tolist() == [4, 3, 6] and info["episode_index"].tolist() == [2, 0, 2]
    fresh = manikin.make(TASK, num_envs=2).reset()[1]
    assert fresh["episode_seed"].tolist() == [fresh["entropy"], fresh["entropy"] + 1]
    other = manikin.make(TASK, num_envs=2).reset()[1]
    assert other["entropy"] != fresh["entropy"]


# ---- 2: partial reset ----------------------------------------------------------------------------------------------


def test_partial_reset_leaves_other_rows_alone():
    env = manikin.make(TASK, num_envs=5, control="joint_target_delta_pos", autoreset="disabled")
    plain = manikin.make(TASK, num_envs=5, control="joint_target_delta_pos", autoreset="disabled")
    moves = actions(env, 12)
    env.reset(seed=0), plain.reset(seed=0)
    for k in range(12):
        if k == 6:
            mask = np.array([False, True, False, True, False])
            kept = mask.copy()
            env.reset(seed=50, options={"reset_mask": mask})
            assert np.array_equal(mask, kept)
        a, b = env.step(moves[k]), plain.step(moves[k])
        others = [0, 2, 4]
        for x, y in zip(a[:4], b[:4], strict=True):
            assert torch.equal(x[others], y[others])
    assert np.array_equal(states(env.world)[others], states(plain.world)[others])
    assert not np.array_equal(states(env.world)[1], states(plain.world)[1])


def test_an_empty_mask_is_a_no_op():
    env = manikin.make(TASK, num_envs=2)
    env.reset(seed=0)
    seen = env.step(actions(env, 1)[0])[0]
    state = states(env.world)
    again, info = env.reset(options={"reset_mask": np.zeros(2, bool)})
    assert torch.equal(seen, again) and np.array_equal(states(env.world), state)
    assert info["elapsed"].tolist() == [1, 1]


# ---- 3: save and load ----------------------------------------------------------------------------------------------


def test_save_and_load_continue_bit_for_bit():
    options = {"control": "joint_target_delta_pos", "autoreset": "disabled", "horizon": 500}
    env = manikin.make(TASK, num_envs=4, **options)
    env.reset(seed=0)
    moves = actions(env, 120)
    for k in range(20):
        seen = env.step(moves[k])[0]
    snapshot = env.save()
    first = [env.step(moves[k]) for k in range(20, 120)]
    assert torch.equal(env.load(snapshot)[0], seen)  # forces included: is_grasped is part of it
    for k in range(20, 120):
        for x, y in zip(env.step(moves[k])[:4], first[k - 20][:4], strict=True):
            assert torch.equal(x, y)
    one = manikin.make(TASK, num_envs=3, **options)
    one.reset(seed=99)
    env.load(snapshot)
    again, info = one.load(env.save([2]))
    assert torch.equal(again, seen[2].expand(3, -1)) and info["episode_seed"].tolist() == [2, 2, 2]
    for k in range(20, 60):
        assert torch.equal(one.step(moves[k, 2].expand(3, -1))[0], first[k - 20][0][2].expand(3, -1))


def test_forces_are_served_after_a_load():
    """A row saved while it grasps reports the same forces when loaded, though its last substep is not run again."""
    from manikin.plan.executor import WaypointExecutor

    env = manikin.make(TASK, num_envs=2, autoreset="disabled")
    env.reset(seed=3)
    expert = WaypointExecutor(env)
    for _ in range(25):
        env.step(expert.act())
    assert env.h.grasp.value.all()
    force = env.h.grasp.force.clone()
    snapshot = env.save()
    for _ in range(5):
        env.step(expert.act())
    env.load(snapshot)
    assert torch.equal(env.h.grasp.force, force)
    other = manikin.make(TASK, num_envs=2, control="joint_vel")
    other.reset(seed=0)
    with pytest.raises(DataError, match="another controller"):
        other.load(snapshot)


# ---- 4: autoreset as Gymnasium has it ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["same_step", "next_step", "disabled"])
def test_autoreset_equals_gymnasium_sync_vector_env(mode):
    kind = {
        "same_step": AutoresetMode.SAME_STEP,
        "next_step": AutoresetMode.NEXT_STEP,
        "disabled": AutoresetMode.DISABLED,
    }
    n, horizon = 3, 4
    ours = manikin.make(TASK, num_envs=n, autoreset=mode, horizon=horizon)
    make_one = lambda: gymnasium.make(f"manikin/{TASK}", horizon=horizon)  # noqa: E731
    theirs = gymnasium.vector.SyncVectorEnv([make_one] * n, autoreset_mode=kind[mode])
    moves = actions(ours, 14)
    a, b = ours.reset(seed=1), theirs.reset(seed=1)
    assert np.array_equal(a[0].numpy(), b[0])
    # different lengths: row 1 begins one step later
    mask = np.array([False, True, False])
    a, b = ours.step(moves[0]), theirs.step(moves[0].numpy())
    if mode == "disabled":
        ours.reset(options={"reset_mask": mask}), theirs.reset(options={"reset_mask": mask.copy()})
    ended = 0
    for k in range(1, 14):
        a, b = ours.step(moves[k]), theirs.step(moves[k].numpy())
        for x, y in zip(a[:4], b[:4], strict=True):
            assert np.array_equal(x.numpy(), y.astype(x.numpy().dtype)), k
        done = (a[2] | a[3]).numpy()
        ended += int(done.sum())
        for key in ("success", "elapsed", "episode_seed", "episode_index"):
            given = b[4].get(f"_{key}", np.zeros(n, bool))
            assert np.array_equal(a[4][key].numpy()[given], b[4][key][given]), (k, key)
        if mode == "same_step" and done.any():
            assert np.array_equal(a[4]["_final_obs"].numpy(), b[4]["_final_obs"])
            for row in np.flatnonzero(done):
                assert np.array_equal(a[4]["final_obs"][row].numpy(), b[4]["final_obs"][row])
                assert bool(a[4]["final_info"]["success"][row]) == bool(b[4]["final_info"]["success"][row])
                assert int(a[4]["final_info"]["elapsed"][row]) == int(b[4]["final_info"]["elapsed"][row]) == horizon
        if mode == "disabled" and done.any():
            ours.reset(options={"reset_mask": done}), theirs.reset(options={"reset_mask": done.copy()})
    assert ended >= 6


def test_spaces_of_all_rows_are_made_when_asked_for(monkeypatch):
    """Their bounds are four arrays as large as what is observed: 0.5 MB for a row of small pictures."""
    made, batch = [], gymnasium.vector.utils.batch_space
    monkeypatch.setattr(
        "gymnasium.vector.utils.batch_space", lambda space, n: made.append((space, n)) or batch(space, n)
    )
    env = manikin.make("PickCube-v2", 3)
    assert made == [(env.single_action_space, 3)]
    assert env.observation_space == batch(env.single_observation_space, 3)
    assert env.observation_space is env.observation_space and len(made) == 2
    assert env.observation_space.contains(env.reset(seed=0)[0].numpy())


def test_single_view_passes_gymnasiums_checker():
    env = gymnasium.make(f"manikin/{TASK}", render_mode="rgb_array")
    with pytest.warns(UserWarning, match="infinity"):
        check_env(env.unwrapped, skip_render_check=True)  # which would open a window, and there may be no screen
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.ndim == 3 and picture.std() > 10
    vector = gymnasium.make_vec(f"manikin/{TASK}", num_envs=2)
    assert vector.reset(seed=0)[0].shape == (2, *env.observation_space.shape)


# ---- 10: divergence ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["disabled", "same_step"])
def test_a_diverged_row_ends_its_episode_and_others_go_on_bit_for_bit(mode):
    env = manikin.make(TASK, num_envs=3, autoreset=mode)
    calm = manikin.make(TASK, num_envs=3, autoreset=mode)
    env.reset(seed=0), calm.reset(seed=0)
    moves = actions(env, 3)
    seen = env.step(moves[0])[0]
    calm.step(moves[0])
    force = env.world.read("xfrc_applied").clone()
    force[1, env.h.cube.body_id] = 1e30
    env.world.write("xfrc_applied", force)
    observation, reward, terminated, truncated, info = env.step(moves[1])
    expected = calm.step(moves[1])
    assert truncated.tolist() == [False, True, False] and not terminated.any() and reward[1] == 0
    last = info["final_info"] if mode == "same_step" else info
    final = info["final_obs"] if mode == "same_step" else observation
    assert int(last["health"][1]) & Health.DIVERGED and not last["health"][[0, 2]].any()
    assert torch.equal(final[1], seen[1])  # the last finite observation
    assert torch.isfinite(observation).all()
    for x, y in zip((observation, reward), expected[:2], strict=True):
        assert torch.equal(x[[0, 2]], y[[0, 2]])
    if mode == "same_step":
        assert info["health"][1] == 0  # the next episode is healthy
        env.step(moves[2])


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -1e30])
@pytest.mark.parametrize("field", ["qpos", "qvel", "xfrc_applied"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=WARP)])
def test_the_last_observation_is_the_last_finite_one_whatever_was_written(device, field, value):
    env = manikin.make(TASK, num_envs=3, autoreset="disabled", terminate=False, device=device, observe="state_dict")
    env.reset(seed=0)
    for k in range(3):
        move = actions(env, 3, seed=k)
        seen, *_ = env.step(move[0])
        left_out = torch.tensor([True, True, k == 0])
        seen, *_, info = env.step(move[1], active=left_out)
        assert not (info["health"] & Health.DIVERGED).any()
        written = env.world.read(field).clone()
        written[1] = value
        env.world.write(field, written)
        observation, reward, _, truncated, info = env.step(move[2], active=left_out)
        assert ((info["health"] & Health.DIVERGED) != 0).tolist() == truncated.tolist() == [False, True, False]
        assert reward[1] == 0
        for group, values in observation.items():
            for name, value_ in values.items():
                assert torch.equal(value_[1], seen[group][name][1]) and torch.isfinite(value_).all(), name
        assert all(torch.isfinite(term).all() for term in info["reward_terms"].values())
        if k < 2:
            env.reset(options={"reset_mask": np.array([False, True, False])})
    env.close()


def test_controls_that_are_not_finite_are_refused():
    env = manikin.make(TASK, num_envs=2)
    env.reset(seed=0)
    state = states(env.world)
    action = torch.zeros(2, 8)
    action[1, 3] = torch.nan
    with pytest.raises(ActionError, match=r"rows \[1\] are not finite"):
        env.step(action)
    assert np.array_equal(states(env.world), state)  # nothing happened


# ---- cost, ownership, memory ---------------------------------------------------------------------------------------


def test_torch_calls_per_step_and_reset():
    env = manikin.make(TASK, horizon=1000)
    env.reset(seed=0)
    action = torch.zeros(1, 8)
    env.step(action)
    with CountCalls() as step:
        env.step(action)
    assert step.count <= 52  # 51 when written
    with CountCalls() as reset:
        env.reset()
    assert reset.count <= 230


def test_what_env_returns_is_owned_and_can_be_trained_on():
    env = manikin.make(TASK, num_envs=2, observe="state_dict", poison=True)
    observation, info = env.reset(seed=0)
    first = {k: v.clone() for k, v in observation["policy"].items()}
    layer = torch.nn.Linear(9, 8)
    total = 0.0
    for _ in range(3):
        action = layer(observation["policy"]["qpos"]).tanh()
        observation, reward, _, _, info = env.step(action)
        total = total + (action.sum(1) * reward).sum() + (layer(observation["policy"]["qpos"])).sum()
    total.backward()
    assert torch.isfinite(layer.weight.grad).all() and layer.weight.grad.abs().sum() > 0
    again, _ = env.reset(seed=0)
    for name, value in first.items():
        assert torch.equal(value, again["policy"][name]), name
    assert all(torch.isfinite(t).all() for t in info["reward_terms"].values())


def test_a_world_that_poisons_what_is_borrowed_changes_nothing():
    plain = manikin.make(TASK, num_envs=4, horizon=10)
    poisoned = manikin.make(TASK, num_envs=4, horizon=10, poison=True)
    plain.reset(seed=0), poisoned.reset(seed=0)
    for move in actions(plain, 25):
        for x, y in zip(plain.step(move)[:4], poisoned.step(move)[:4], strict=True):
            assert torch.equal(x, y)


def _rss() -> int:
    """Resident bytes, less what the allocator merely keeps for later."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _growth(call: Callable[[], object], count: int) -> float:
    """Bytes per call, of three stretches the one that grew least: a leak grows in all of them, what other tests left
    in this process in one or the other."""
    sizes = []
    for _ in range(4):
        for _ in range(count):
            call()
        sizes.append(_rss())
    return min(after - before for before, after in itertools.pairwise(sizes)) / count


@pytest.mark.slow
def test_no_growth():
    env = manikin.make(TASK, num_envs=2)
    env.reset(seed=0)
    assert _growth(env.reset, 3000) < 1000

    def create_and_close():
        made = manikin.make(TASK)
        made.reset(seed=0)
        made.close()

    assert _growth(create_and_close, 100) < 10_000
    kept: list[object] = []
    assert _growth(lambda: kept.append(bytearray(b"x") * 20_000), 100) > 10_000  # a leak is seen


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"task": "PickCub-v2"}, UnknownNameError, "Did you mean 'PickCube-v2'"),
        ({"robots": "panda"}, UnknownNameError, "Did you mean 'robot'.*physics_hz"),
        ({"robot": "pandda"}, UnknownNameError, "Did you mean 'panda'"),
        ({"robot": "panda:meshes"}, UnknownNameError, "menagerie"),
        ({"control": "ee_pos"}, UnknownNameError, "ee_delta_pos"),
        ({"device": "gpu"}, UnknownNameError, "Valid: cpu, cuda, cuda:0, cuda:1, warp:cpu"),
        ({"observe": "rgbd"}, UnknownNameError, "state_dict"),
        ({"reward": "shaped"}, UnknownNameError, "sparse"),
        ({"autoreset": "always"}, UnknownNameError, "same_step"),
        ({"num_envs": 0}, ConfigError, "positive integer"),
        ({"num_envs": 2.5}, ConfigError, "positive integer"),
        ({"horizon": 0}, ConfigError, "horizon .* positive integer, not 0"),
        ({"control_hz": 30}, ConfigError, "control_hz that do: 100, 50, 25, 20, 10, 5, 4"),
        ({"physics_hz": -1}, ConfigError, "positive"),
        ({"config": {"cube_size": 1}}, UnknownNameError, "cube_half_size"),
        ({"out_of_range": "wrap"}, UnknownNameError, "refuse"),
    ],
)
def test_bad_options_name_what_is_valid(options, error, message):
    options = {"task": TASK, **options}
    with pytest.raises(error, match=message):
        manikin.make(options.pop("task"), **options)


def test_bad_actions():
    env = manikin.make(TASK, num_envs=2)
    with pytest.raises(ClosedError, match=r"reset\(\)"):
        env.step(torch.zeros(2, 8))
    env.reset(seed=0)
    with pytest.raises(ActionError, match=r"shape \(2, 8\) .*joint1.*gripper.* got \(8,\)"):
        env.step(torch.zeros(8))
    with pytest.raises(ActionError, match="floating point, not int64"):
        env.step(torch.zeros(2, 8, dtype=torch.int64))
    clipped = env.step(torch.full((2, 8), 1.5))[4]["clipped"]
    assert clipped.tolist() == [8, 8]
    strict = manikin.make(TASK, num_envs=2, out_of_range="refuse")
    strict.reset(seed=0)
    with pytest.raises(ActionError, match=r"rows \[1\] are beyond"):
        strict.step(torch.tensor([[0.0] * 8, [1.5] + [0.0] * 7]))
    with pytest.raises(ConfigError, match=r"active must be bool of shape \(2,\)"):
        env.step(torch.zeros(2, 8), active=np.ones(3, bool))


def test_bad_resets():
    env = manikin.make(TASK, num_envs=3)
    with pytest.raises(ConfigError, match="seed has 2 entries; give 3"):
        env.reset(seed=[1, 2])
    with pytest.raises(ConfigError, match=r"reset_mask must be bool of shape \(3,\), got bool of shape \(2,\)"):
        env.reset(options={"reset_mask": np.ones(2, bool)})
    with pytest.raises(ConfigError, match="got int64"):
        env.reset(options={"reset_mask": np.ones(3, int)})
    with pytest.raises(ConfigError, match="non-negative"):
        env.reset(seed=-4)
    with pytest.raises(ConfigError, match="episode_index"):
        env.reset(seed=0, options={"episode_index": [1, 2]})


def test_ended_rows_and_closed_environments_refuse():
    env = manikin.make(TASK, num_envs=3, autoreset="disabled", horizon=2)
    env.reset(seed=0)
    still = torch.zeros(3, 8)
    env.step(still)
    env.reset(options={"reset_mask": np.array([True, False, False])})
    env.step(still)
    with pytest.raises(ClosedError, match=r"rows \[1, 2\] have ended"):
        env.step(still)
    frozen = states(env.world)[1:]
    _, reward, _, truncated, _ = env.step(still, active=np.array([True, False, False]))
    assert truncated.tolist() == [True, False, False] and reward[1:].tolist() == [0, 0]
    assert np.array_equal(states(env.world)[1:], frozen)
    env.close()
    with pytest.raises(ClosedError, match="closed"):
        env.step(still)
    with pytest.raises(ClosedError, match="closed"):
        env.reset()


# ---- the host's side of a device -----------------------------------------------------------------------------------


def brought(monkeypatch, env) -> None:
    """The environment gives its tensors as on a card."""
    for name in ("reset", "step"):
        plain = getattr(env, name)
        monkeypatch.setattr(env, name, lambda *args, plain=plain, **options: on_card(plain(*args, **options)))


def test_tensors_of_a_card_do_not_turn_into_numpy_by_themselves() -> None:
    there, here = on_card(torch.ones(3)), torch.ones(3)
    for wrong in (there.numpy, there[0].numpy, lambda: np.asarray(there), lambda: here + there, lambda: there * here):
        with pytest.raises((TypeError, RuntimeError)):
            wrong()
    assert (there[torch.tensor([0])] + 1).cpu().numpy().tolist() == [2.0]


@pytest.mark.parametrize("observe", ["state", "state_dict"])
def test_one_row_of_a_card_is_the_hosts(monkeypatch, observe) -> None:
    """gymnasium.make(..., device="cuda") gives NumPy and Python numbers as on the CPU."""
    here, there = (gymnasium.make(f"manikin/{TASK}", observe=observe) for _ in range(2))
    brought(monkeypatch, there.unwrapped.batched)
    one, two = here.reset(seed=3), there.reset(seed=3)
    action = np.full(8, 0.3, np.float32)
    for ours, theirs in ((one, two), (here.step(action), there.step(action))):
        assert repr(ours) == repr(theirs)
        leaves = theirs[0].values() if isinstance(theirs[0], dict) else [theirs[0]]
        for leaf in leaves:
            assert isinstance(leaf, np.ndarray | dict)


def test_whole_episodes_of_a_card_are_judged_on_the_host(monkeypatch) -> None:
    seen = []
    for card in (False, True):
        env = manikin.make(TASK, 2, autoreset="disabled", horizon=3)
        env.reset(seed=0)
        if card:
            brought(monkeypatch, env)
        seen.append(vars(WatchedEpisodes(env, lambda: torch.full((2, 8), 0.2))))
    assert repr(seen[0]) == repr(seen[1])


def test_a_heavy_environment_that_is_gone_makes_room_for_the_next(monkeypatch):
    """A task that refers to its environment waits for Python's collector, which comes too late where hundreds of
    megabytes hang on a few thousand objects."""
    gc.disable()
    try:
        gone = []
        for heavy in (2**40, 0):
            env = manikin.make("PickCube-v2", 2)
            gone.append(weakref.ref(env.world))
            env.task.mine = env
            env.close()
            del env
            monkeypatch.setattr("manikin.env.assemble.HEAVY", heavy)
            manikin.make("PickCube-v2", 2).close()
            assert [world() is None for world in gone] == [heavy == 0] * len(gone)
    finally:
        gc.enable()
