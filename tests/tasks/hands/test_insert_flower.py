"""InsertFlower: what counts as in the vase, the published reward on plain numbers, starts, and both devices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError

LOW, HIGH = np.array([-0.3, -0.25, 0.25]), np.array([-0.2, -0.15, 0.35])


def made(num_envs: int = 4, device: str = "cpu", **config) -> manikin.Env:
    env = manikin.make(
        "InsertFlower-v1", num_envs, autoreset="disabled", terminate=False, reward="dense", observe="state_dict",
        device=device, config=config,
    )  # fmt: skip
    env.reset(seed=0)
    return env


def test_a_flower_that_stands_in_the_vase_is_a_success_and_stays_one() -> None:
    env = made(2)
    env.h.flower.set_pose(torch.tensor([[-0.2509, -0.2027, 0.295], [-0.2509, -0.2027, 0.36]]))
    env.world.forward()
    assert env.task.evaluate(env.h)["success"].tolist() == [True, False]  # above the box it is not
    for _ in range(40):
        *_, info = env.step(torch.zeros(2, 23))
    assert info["success"].all()  # both lean in the vase
    _, data = env.world.data(0)
    assert data.body("flower").xpos[2] > 0.25


def test_a_flower_held_above_the_vase_is_a_success_only_as_published() -> None:
    upside_down = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    for published in (False, True):
        env = made(1, published_success=published)
        env.h.flower.set_pose(torch.tensor([[-0.25, -0.2, 0.3]]), upside_down)
        env.world.forward()
        assert env.task.evaluate(env.h)["success"].tolist() == [published]


def test_the_reward_of_each_row_is_the_published_formula() -> None:
    env = made(16)
    generator = torch.Generator().manual_seed(0)
    place = (torch.rand(16, 3, generator=generator) - 0.5) * 0.5 + torch.tensor([-0.25, -0.2, 0.3])
    env.h.flower.set_pose(place, torch.nn.functional.normalize(torch.randn(16, 4, generator=generator), dim=1))
    env.world.forward()
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(16, 23))
    for row in range(16):
        _, data = env.world.data(row)
        at = data.body("flower").xpos
        outside = np.maximum(np.maximum(LOW - at, at - HIGH), 0)
        assert terms["place"][row].item() == pytest.approx(math.exp(-5 * np.linalg.norm(outside)), abs=1e-5)
        middle = at - 0.14 * data.body("flower").xmat.reshape(3, 3)[:, 2]
        away = np.linalg.norm(middle - env.robot.tcp_pos[row].numpy())
        assert terms["reach"][row].item() == pytest.approx(1 - math.tanh(5 * away), abs=1e-5)
    env.h.flower.set_pose(torch.tensor([[-0.2509, -0.2027, 0.295]]).expand(16, 3))
    env.world.forward()
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(16, 23))
    torch.testing.assert_close(sum(terms.values()), torch.full((16,), 3.0))


def test_flowers_lie_on_the_table_where_the_original_puts_them() -> None:
    env = made(64)
    place = env.h.flower.pos
    assert (place[:, :2] - torch.tensor([-0.242, 0.0])).abs().max() < 0.08  # a few centimetres on while it settles
    assert place[:, 2].min() > 0.0 and place[:, 2].max() < 0.05
    for _ in range(10):
        *_, info = env.step(torch.zeros(64, 23))
    assert not info["success"].any() and not info["is_lifted"].any() and not info["is_touched"].any()


def test_warp_agrees() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    envs = [made(2, device=device) for device in ("cpu", "warp:cpu")]
    generator = torch.Generator().manual_seed(2)
    action = torch.rand(2, 23, generator=generator) * 2 - 1
    (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
    assert torch.allclose(here, there.cpu(), atol=5e-3)
    for group in one:
        for name, value in one[group].items():
            assert torch.allclose(value, other[group][name].cpu(), atol=1e-2, rtol=1e-3), name


def test_a_robot_without_a_hand_is_refused() -> None:
    with pytest.raises(ConfigError, match="InsertFlower-v1 needs a robot with ff"):
        manikin.make("InsertFlower-v1", robot="panda")
