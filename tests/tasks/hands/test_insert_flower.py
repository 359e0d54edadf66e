"""InsertFlower: what counts as in the vase, the published reward on plain numbers, starts, and both devices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError
from manikin.math import quat_rotate
from manikin.plan.executor import WaypointExecutor

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


def test_the_tips_of_the_expert_meet_on_both_sides_of_the_stem() -> None:
    env = made(4)
    stages = {one.name: one.joints for one in env.task.expert(env.h)}
    place = env.h.flower.pos - 0.085 * quat_rotate(env.h.flower.quat, torch.tensor([[0.0, 0.0, 1.0]]).expand(4, 3))
    stem = torch.stack([torch.from_numpy(env.world.data(row)[1].body("flower").xmat[2::3]) for row in range(4)])
    wide = {}
    for name in ("down", "close"):
        env.robot.set_qpos(stages[name])
        env.world.forward()
        tips = [env.robot.tools[tip].tcp_pos - place for tip in ("ff", "mf", "rf", "th")]
        across = torch.linalg.cross(stem.float(), torch.tensor([[0.0, 0.0, -1.0]]).expand(4, 3))
        side = torch.stack([(tip * across).sum(1) / across.norm(dim=1) for tip in tips], 1)
        assert (side[:, :3] < -0.005).all() and (side[:, 3] > 0.005).all()
        wide[name] = side[:, 3] - side[:, 1]
    assert (wide["down"] > 0.06).all() and (wide["close"] < 0.04).all()


def test_the_expert_puts_the_flower_into_the_vase_and_lets_go_of_it() -> None:
    env = made(4)
    env.reset(seed=100)
    expert, won = WaypointExecutor(env), torch.zeros(4, dtype=torch.bool)
    for _ in range(150):
        *_, info = env.step(expert.act())
        won |= info["success"]
    assert won.sum() >= 3
    assert expert.waypoint == ["open"] * 4
    tips = torch.stack([env.robot.tools[tip].tcp_pos for tip in ("mf", "th")], 1)
    assert ((tips[:, 0] - tips[:, 1]).norm(dim=1) > 0.06).all()  # the stem is 12 mm thick
    up = quat_rotate(env.h.flower.quat, torch.tensor([[0.0, 0.0, 1.0]]).expand(4, 3))
    assert (up[won, 2] > 0.8).all()  # it leans in the vase


def test_the_expert_knows_the_panda_alone() -> None:
    env = manikin.make("InsertFlower-v1", robot="ur5e+allegro", autoreset="disabled", terminate=False)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r"has joints of panda\+allegro, not of ur5e\+allegro"):
        WaypointExecutor(env).act()


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
