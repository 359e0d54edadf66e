"""Pour: where things start, what counts as poured, and that no grain is lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.plan.executor import WaypointExecutor

FEW: dict[str, Any] = {"config": {"count": 40, "fill_radius": 0.0029}}  # radius 0.00496 m, as large as by default


def _make(num_envs: int = 1, **options: Any) -> manikin.Env:
    return manikin.make("Pour-v1", num_envs, **{"autoreset": "disabled", "terminate": False, **options})


def test_things_start_in_their_rings_and_all_grains_in_the_cup() -> None:
    env = _make(64, **FEW)
    env.reset(seed=0)
    for part, (low, high), (first, last) in (
        (env.h.cup, (0.05, 0.1), (-150, -60)),
        (env.h.beaker, (0.2, 0.25), (90, 150)),
    ):
        away = part.pos[:, :2].norm(dim=1)
        turn = torch.rad2deg(torch.atan2(part.pos[:, 1], part.pos[:, 0]))
        assert low - 2e-3 <= away.min() and away.max() <= high + 2e-3
        assert first - 2 <= turn.min() < first + 10 and last - 10 < turn.max() <= last + 2
    low = env.h.low.value
    assert 0.008 <= low.min() < 0.009 and 0.017 < low.max() <= 0.018
    assert torch.equal(env.task.shares(env.h), torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]).expand(64, 6))
    assert env.h.grains.vel.norm(dim=2).max() < 0.1
    assert (env.h.cup.quat[:, 0] > 0.9999).all()


def _fill(env: manikin.Env, heights: list[float], *, spilt: int = 0, air: int = 0) -> None:
    """Grains of the only row in the beaker at these heights above its floor [m]; others spilt or in the air, and the
    rest in the cup."""
    h, count = env.h, env.h.grains.count
    pos = h.cup.pos[0].repeat(count, 1) + torch.tensor([0.0, 0.0, 0.03])
    for k, height in enumerate(heights):
        pos[k] = h.beaker.pos[0] + torch.tensor([0.0, 0.0, 0.008 + height])
    at = len(heights)
    pos[at : at + spilt] = torch.tensor([0.3, 0.3, 0.005])
    pos[at + spilt : at + spilt + air] = torch.tensor([0.3, 0.3, 0.2])
    h.grains.set_pos(pos[None])
    env.world.forward()


def test_what_counts_as_poured() -> None:
    """Of 200 grains: at least 6 above the lower mark, at most 3 above the upper, at most 10 spilt, none in the air."""
    env = _make()
    env.reset(seed=0)
    low = float(env.h.low.value[0])
    high = low + 0.012
    below, between, beyond = low - 0.001, low + 0.006, high + 0.001
    for heights, spilt, air, poured in (
        ([below] * 60 + [between] * 6, 0, 0, True),
        ([below] * 60 + [between] * 5, 0, 0, False),
        ([between] * 30 + [beyond] * 3, 10, 0, True),
        ([between] * 30 + [beyond] * 4, 0, 0, False),
        ([between] * 30, 11, 0, False),
        ([between] * 30, 0, 1, False),
    ):
        _fill(env, heights, spilt=spilt, air=air)
        ev = env.task.evaluate(env.h)
        shares = env.task.shares(env.h)[0]
        above = sum(height > low for height in heights)
        expected = [len(heights), above, sum(height > high for height in heights), 0, spilt, air]
        expected[3] = 200 - len(heights) - spilt - air
        assert shares.tolist() == pytest.approx([n / 200 for n in expected], abs=1e-6)
        assert shares[[0, 3, 4, 5]].sum().item() == pytest.approx(1.0)
        assert ev["success"].tolist() == [poured], (heights, spilt, air)
        assert env.task.level(env.h).item() == pytest.approx(2 * np.mean(heights), abs=1e-5)


def test_a_tilted_cup_and_a_moving_arm_do_not_count() -> None:
    env = _make()
    env.reset(seed=0)
    good = [float(env.h.low.value[0]) + 0.006] * 20
    _fill(env, good)
    assert env.task.evaluate(env.h)["success"].item()
    for degrees, upright in ((29.0, True), (31.0, False)):
        half = math.radians(degrees) / 2
        env.h.cup.set_pose(env.h.cup.pos.clone(), torch.tensor([[math.cos(half), 0.0, math.sin(half), 0.0]]))
        _fill(env, good)
        ev = env.task.evaluate(env.h)
        assert ev["is_upright"].item() is upright
        assert not (ev["success"].item() and not upright)
    env.h.cup.set_pose(env.h.cup.pos.clone())
    for speed, still in ((0.049, True), (0.051, False)):
        env.h.robot.set_qpos(env.h.robot.keyframe(), qvel=speed)
        _fill(env, good)
        assert env.task.evaluate(env.h)["success"].item() is still


def test_the_reward_is_its_formula_where_things_lie_in_the_beaker() -> None:
    env = _make(reward="dense")
    env.reset(seed=0)
    low = float(env.h.low.value[0])
    _fill(env, [low + 0.006] * 4 + [low + 0.013] * 1, spilt=20)
    ev = env.task.evaluate(env.h)
    terms = env.task.reward(env.h, ev, torch.zeros(1, env.controller.card.size))
    assert terms["pour"].item() == pytest.approx(2 * 5 / 6 - 2 * (1 / 3), abs=1e-5)
    held = env.h.cup.pos[0] + torch.tensor([0.0, 0.0, 0.08])
    assert terms["reach"].item() == pytest.approx(1 - math.tanh(5 * (held - env.h.robot.tcp_pos[0]).norm()), abs=1e-5)
    assert terms["right"].item() == terms["grasp"].item() == terms["success"].item() == 0.0


def test_few_grains_are_poured_out_and_all_are_accounted_for() -> None:
    """With 40 grains the marks are out of reach; every grain is somewhere in every step, and none goes through a wall
    while the cup moves upright."""
    env = _make(2, horizon=200, **FEW)
    env.reset(seed=[0, 2])
    expert = WaypointExecutor(env)
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        shares = env.task.shares(env.h)
        torch.testing.assert_close(shares[:, [0, 3, 4, 5]].sum(1), torch.ones(2))
        if all(name in ("before", "around", "close", "lift", "across") for name in expert.waypoint):
            assert (shares[:, 3] == 1.0).all(), "a grain left the cup"
    assert (shares[:, 0] > 0.9).all()
    assert not info["health"].any()


def test_the_expert_pours_the_right_amount() -> None:
    env = _make(3, terminate=True)
    env.reset(seed=0)
    expert, done = WaypointExecutor(env), torch.zeros(3, dtype=torch.bool)
    solved = done.clone()
    while not done.all():
        _, _, terminated, truncated, info = env.step(expert.act(), active=~done)
        solved |= info["success"] & ~done
        done |= terminated | truncated
    assert solved.all() and not info["health"].any()
