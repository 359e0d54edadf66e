"""The loop of Warp devices: masks and deferred checks give the very bits that row numbers give.

Both loops run on Warp's CPU device, where one is held to the other; the row loop itself is held to Gymnasium in
``test_env.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manikin
from manikin.env.loop.device import DeviceLoop
from manikin.env.loop.graph import Graph
from manikin.env.loop.rows import RowLoop
from manikin.errors import ActionError, ClosedError, SceneError
from manikin.sense.imperfect import Delay, Noise
from manikin.sim.health import Health
from manikin.spec.budget import Budget
from manikin.spec.looks import Looks, Surface
from manikin.spec.vary import Uniform

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

from manikin.sim.warp.world import WarpWorld  # noqa: E402

N, TASK = 3, "PickCube-v2"


def pair(monkeypatch, task=TASK, **options):
    """The same environment with both loops."""
    made = []
    for kind, picks in ((DeviceLoop, None), (RowLoop, WarpWorld)):
        with monkeypatch.context() as patch:
            if picks is not None:
                patch.setattr("manikin.env.env.CpuWorld", picks)
            env = manikin.make(task, num_envs=N, device="warp:cpu", **options)
        assert type(env._loop) is kind  # house: private, the two loops look the same from outside
        made.append(env)
    return made


def same(a, b, where=""):
    """Nested dicts of tensors with the same bits."""
    if isinstance(b, dict):
        assert set(a) == set(b), where
        for key in b:
            same(a[key], b[key], f"{where}/{key}")
    elif isinstance(b, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b), (where, a, b)
    elif isinstance(b, tuple):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}[{k}]")
    else:
        assert a == b, where


def moves(env, steps):
    size = env.controller.card.size
    return torch.from_numpy(np.random.default_rng(0).uniform(-1.2, 1.2, (steps, N, size)).astype(np.float32))


@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
def test_both_loops_give_the_same_bits(monkeypatch, autoreset):
    sensors = {"policy/qpos": [Noise(0.01, bias_std=0.01), Delay(1)]}
    device, rows = pair(monkeypatch, autoreset=autoreset, horizon=3, sensors=sensors, control="joint_target_delta_pos")
    same(device.reset(seed=4), rows.reset(seed=4))
    first, ended = np.array([False, True, False]), 0
    for k, move in enumerate(moves(rows, 7)):
        if k == 1:  # from here the rows' episodes end at different times
            for options in ({"reset_mask": first}, {"reset_mask": torch.zeros(N, dtype=torch.bool)}):
                same(device.reset(options=dict(options)), rows.reset(options=dict(options)))
        active = None if k != 2 else torch.tensor([True, True, False])
        if autoreset == "disabled" and rows.save().extra["done"].any():
            for env in (device, rows):
                with pytest.raises(ClosedError, match=r"have ended"):
                    env.step(move)
            active = torch.from_numpy(~rows.save().extra["done"])
        a, b = device.step(move, active=active), rows.step(move, active=active)
        same(a, b, str(k))
        ended += int((b[2] | b[3]).sum())
        if k == 4:
            snapshot = device.save()
            for theirs in (rows.save(),):
                assert snapshot.state.tobytes() == theirs.state.tobytes()
                assert all(np.array_equal(snapshot.extra[n], theirs.extra[n]) for n in ("carry", "elapsed", "done"))
    assert ended >= 3
    same(device.load(snapshot), rows.load(snapshot))
    assert np.array_equal(device.world.state_hash(), rows.world.state_hash())


@pytest.mark.parametrize("task", ["PegInsertionSide-v2", "StackCube-v2"])
def test_starts_that_change_sizes_and_look_for_room(monkeypatch, task):
    device, rows = pair(monkeypatch, task, horizon=2, observe="state_dict")
    same(device.reset(seed=1), rows.reset(seed=1))
    for move in moves(rows, 3):
        same(device.step(move), rows.step(move))
    mask = np.array([True, False, True])
    same(device.reset(seed=7, options={"reset_mask": mask}), rows.reset(seed=7, options={"reset_mask": mask}))
    assert np.array_equal(device.world.state_hash(), rows.world.state_hash())
    for field in sorted(rows.world.varied):
        assert np.array_equal(device.world.model_field(field), rows.world.model_field(field)), field


@pytest.mark.parametrize("autoreset", ["disabled", "same_step"])
def test_a_diverged_row_is_put_back_and_judged_again(monkeypatch, autoreset):
    device, rows = pair(monkeypatch, autoreset=autoreset, sensors={"policy/qpos": [Noise(0.01), Delay(1)]})
    action = moves(rows, 2)
    for env in (device, rows):
        env.reset(seed=0)
        env.step(action[0])
        force = env.world.read("xfrc_applied").clone()
        force[1, env.h.cube.body_id] = 1e30
        env.world.write("xfrc_applied", force)
    a, b = device.step(action[1]), rows.step(action[1])
    same(a, b)
    last = a[4].get("final_info", a[4])["health"]
    assert (last & Health.DIVERGED).bool().tolist() == [False, True, False]
    assert a[3].tolist() == [False, True, False] and a[1][1] == 0 and torch.isfinite(a[0]).all()
    same(device.step(action[0], active=~a[3]), rows.step(action[0], active=~a[3]))


def test_actions_on_the_device_are_refused_as_if_nothing_had_happened(monkeypatch):
    """Also where the step would have ended episodes, and where it would have begun them."""
    sensors = {"policy/qpos": [Noise(0.01), Delay(1)]}
    device, rows = pair(monkeypatch, sensors=sensors, horizon=2, autoreset="next_step")
    good = moves(rows, 3).clamp(-1, 1)
    for env in (device, rows):
        env.reset(seed=0)
        env.step(good[0])
    before, hashes = device.save(), device.world.state_hash()
    bad = good[1].clone()
    bad[2, 0] = torch.nan
    with pytest.raises(ActionError, match=r"rows \[2\] are not finite"):
        device.step(bad)
    after = device.save()
    assert np.array_equal(device.world.state_hash(), hashes)
    for name in ("elapsed", "clipped", "carry"):
        assert np.array_equal(before.extra[name], after.extra[name])
    with pytest.raises(ActionError, match=r"rows \[2\] are not finite"):
        device.step(bad.numpy())
    with pytest.raises(ActionError, match="must have shape"):
        device.step(good[1][:2])
    with pytest.raises(ActionError, match="floating point, not int64"):
        device.step(good[1].long())
    ended = device.step(good[1])
    same(ended, rows.step(good[1]))
    assert ended[3].all()
    with pytest.raises(ActionError, match=r"rows \[2\] are not finite"):
        device.step(bad)
    same(device.step(good[2]), rows.step(good[2]))
    strict = manikin.make(TASK, num_envs=N, device="warp:cpu", out_of_range="refuse")
    strict.reset(seed=0)
    with pytest.raises(ActionError, match=r"rows \[0, 1, 2\] are beyond"):
        strict.step(good[0] * 0 + 1.5)


def test_a_start_without_room_is_reported_with_its_rows():
    crowded = {"spawn_half_size": (0.001, 0.001)}
    env = manikin.make("StackCube-v2", num_envs=N, device="warp:cpu", config=crowded, budget=Budget())
    with pytest.raises(SceneError, match=r"no room for 2 things .* rows \[0, 1, 2\]"):
        env.reset(seed=0)


def test_another_object_in_every_row(monkeypatch):
    device, rows = pair(monkeypatch, "PickSingleYCB-v2", horizon=2)
    same(device.reset(seed=1), rows.reset(seed=1))
    for move in moves(rows, 3):
        same(device.step(move), rows.step(move))
    mask = np.array([False, False, True])
    same(device.reset(seed=9, options={"reset_mask": mask}), rows.reset(seed=9, options={"reset_mask": mask}))
    assert np.array_equal(device.world.state_hash(), rows.world.state_hash())
    for field in sorted(rows.world.varied):
        assert np.array_equal(device.world.model_field(field), rows.world.model_field(field)), field


@pytest.mark.parametrize(
    ("every", "recorded"), [(None, [1, 1, 1, 1]), ("episode", [1, 1, 1, 0]), ("step", [0, 0, 1, 0])]
)
def test_what_is_recorded_where_looks_vary(monkeypatch, every, recorded):
    """Looks are drawn on the host: where they change per episode only, steps are recorded all the same."""
    found = []

    class Seen(Graph):
        def __init__(self, function, world, *, record):
            found.append(record)
            super().__init__(function, world, record=record)

    monkeypatch.setattr("manikin.env.loop.device.Graph", Seen)
    looks = None if every is None else Looks(surfaces={"cube": Surface(colour=Uniform(0.0, 1.0), every=every)})
    env = manikin.make(TASK, num_envs=1, device="warp:cpu", budget=Budget(nconmax=48, njmax=128), looks=looks)
    assert found == [bool(k) for k in recorded]  # move, move some, judge, start
    env.close()
