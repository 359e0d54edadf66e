"""Fill: where the ladle and its grains start, and what counts as filled."""

from __future__ import annotations

import pytest
import torch

import manikin
from manikin.errors import ConfigError, ManikinError
from manikin.plan.executor import WaypointExecutor


def _make(num_envs: int = 1, **options: object) -> manikin.Env:
    return manikin.make("Fill-v1", num_envs, **{"autoreset": "disabled", "terminate": False, **options})


def test_the_ladle_starts_upright_with_all_grains_in_it() -> None:
    env = _make(32)
    env.reset(seed=0)
    shares = env.task.shares(env.h)
    assert torch.equal(shares, torch.tensor([0.0, 1.0, 0.0, 0.0]).expand(32, 4))
    upright = 1 - 2 * (env.h.ladle.quat[:, 1] ** 2 + env.h.ladle.quat[:, 2] ** 2)
    assert upright.min() > 0.97 and env.h.ladle.pos[:, 2].min() > 0.1
    spot = env.h.beaker.pos
    assert (spot[:, 0] >= -0.2).all() and (spot[:, 0] <= -0.05).all() and (spot[:, 1].abs() <= 0.2).all()
    assert (env.h.ladle.pos - spot)[:, :2].norm(dim=1).min() > 0.1


def test_nine_tenths_in_the_beaker_and_at_rest_count() -> None:
    env = _make()
    env.reset(seed=0)
    h = env.h
    for inside, fast, filled in ((180, 0, True), (179, 0, False), (200, 1, True), (200, 3, False)):
        pos = h.ladle.pos[0].repeat(200, 1) + torch.tensor([0.0, 0.0, 0.03])
        pos[:inside] = h.beaker.pos[0] + torch.tensor([0.01, 0.0, 0.02])
        h.grains.set_pos(pos[None])
        vel = torch.zeros(1, 200, 3)
        vel[:, :fast, :2] = 0.06  # 99 % of 600 components may not: six are one too many
        h.grains.set_vel(vel)
        env.world.forward()
        assert env.task.evaluate(h)["success"].tolist() == [filled], (inside, fast)
        assert env.task.shares(h)[0].tolist() == pytest.approx([inside / 200, 1 - inside / 200, 0.0, 0.0])


def test_the_expert_fills_the_beaker_and_every_grain_is_accounted_for() -> None:
    env = _make(2, config={"count": 60, "fill_radius": 0.00335})
    env.reset(seed=0)
    expert, solved = WaypointExecutor(env), torch.zeros(2, dtype=torch.bool)
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        solved |= info["success"]
        torch.testing.assert_close(env.task.shares(env.h).sum(1), torch.ones(2))
    assert solved.all() and not info["health"].any()


def test_other_tools_are_refused() -> None:
    with pytest.raises(ManikinError, match="panda\\+stick"):
        manikin.make("Fill-v1", robot="panda")
    with pytest.raises(ConfigError, match="1 to 1000"):
        manikin.make("Fill-v1", config={"count": 2000})
