"""Write: where letters are, what counts as written, and that the volume of the layer stays."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.errors import ConfigError, ManikinError
from manikin.plan.executor import WaypointExecutor
from manikin.spec.budget import Budget
from manikin.tasks.soft.write import LETTERS


def _make(num_envs: int = 1, **options: object) -> manikin.Env:
    return manikin.make("Write-v1", num_envs, **{"autoreset": "disabled", "terminate": False, **options})


def test_every_letter_comes_in_its_size_and_lies_on_the_layer() -> None:
    env = _make(64)
    env.reset(seed=0)
    strokes = env.h.strokes.value.view(64, 3, 2, 2)
    lengths = (strokes[:, :, 1] - strokes[:, :, 0]).norm(dim=2)
    known = []
    for letter in LETTERS.values():
        whole = [math.hypot(c - a, d - b) * 0.13 for a, b, c, d in letter]
        known.append(whole + [whole[-1]] * (3 - len(whole)))
    found = torch.cdist(lengths, torch.tensor(known)).min(1)
    assert found.values.max() < 1e-3 and len(found.indices.unique()) == len(LETTERS)
    assert ((strokes - torch.tensor([-0.1, 0.0])).abs() < 44 * 0.005 / 2 - 0.008).all()
    assert (env.task.overlap(env.h) == 0).all()
    assert (env.h.target.value.sum(1) > 100).all()


def _press(env: manikin.Env, mask: torch.Tensor) -> dict[str, torch.Tensor]:
    """Columns (n, columns) of the layer pressed by hand; what is said of it."""
    env.h.height.set(torch.where(mask, torch.tensor(0.0079), torch.tensor(0.012)))
    return env.task.evaluate(env.h)


def test_what_counts_as_written() -> None:
    env = _make(reward="dense")
    env.reset(seed=0)
    target = env.h.target.value > 0
    order = target[0].nonzero()[:, 0]
    whole = len(order)
    for missing, right in ((0, True), (int(0.19 * whole), True), (int(0.21 * whole) + 1, False)):
        mask = target.clone()
        mask[0, order[:missing]] = False
        ev = _press(env, mask)
        assert ev["success"].tolist() == [right]
        assert env.task.overlap(env.h).item() == pytest.approx((whole - missing) / whole, abs=1e-6)
        terms = env.task.reward(env.h, ev, torch.zeros(1, env.controller.card.size))
        assert terms["overlap"].item() == pytest.approx(3 * (whole - missing) / whole, abs=1e-5)
        if right:
            assert sum(terms.values()).item() == pytest.approx(5.0)
    beside = target.clone()
    beside[0, (~target[0]).nonzero()[: int(0.26 * whole), 0]] = True
    assert not _press(env, beside)["success"].item(), "too much beside the letter"
    env.h.height.set(torch.where(target, torch.tensor(0.0081), torch.tensor(0.012)))
    assert env.task.overlap(env.h).item() == 0.0, "pressed by less than 4 mm"


def test_the_expert_writes_and_the_volume_of_the_layer_stays() -> None:
    env = _make(8)
    env.reset(seed=0)
    volume = env.task.layer.volume.clone()
    torch.testing.assert_close(volume, torch.full((8,), (44 * 0.005) ** 2 * 0.012), rtol=1e-5, atol=0.0)
    expert, solved = WaypointExecutor(env), torch.zeros(8, dtype=torch.bool)
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        solved |= info["success"]
    assert solved.all() and not info["health"].any()
    torch.testing.assert_close(env.task.layer.volume, volume, rtol=1e-4, atol=0.0)
    assert (env.h.height.value > 0.0125).any(1).all(), "what is pressed down rises beside the grooves"


def test_both_devices_press_alike_for_ten_steps() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    found = []
    for options in ({}, {"device": "warp:cpu", "budget": Budget(nconmax=16, njmax=64)}):
        env = _make(**options)
        env.reset(seed=0)
        spot = torch.cat([env.h.strokes.value[:, 0, :2].cpu(), torch.full((1, 1), 0.014)], 1)
        down = torch.cat([spot, torch.tensor([[0.0, 1.0, 0.0, 0.0]])], 1)
        q = env.h.robot.ik(down.to(env.world.device)).q.float()
        env.h.robot.set_qpos(q)
        env.world.forward()
        for _ in range(10):
            env.step(torch.zeros(1, env.controller.card.size))
        found.append(env.h.height.value[0].cpu().clone())
        env.close()
    assert found[0].min() < 0.008, "the stylus is in the layer"
    assert (found[0] - found[1]).abs().max() < 1e-4


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="above 0"):
        manikin.make("Write-v1", config={"cells": 0})
    with pytest.raises(ManikinError, match="panda\\+stick"):
        manikin.make("Write-v1", robot="panda")
