"""RotateInHand: which turns count, starts, the published reward on plain numbers, and both devices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import quat_from_axis_angle, quat_mul


def made(num_envs: int = 4, level: int = 0, device: str = "cpu", **config) -> manikin.Env:
    env = manikin.make(
        "RotateInHand-v1", num_envs, autoreset="disabled", terminate=False, reward="dense", observe="state_dict",
        device=device, config={"level": level, **config},
    )  # fmt: skip
    env.reset(seed=0)
    return env


def turned_by(env: manikin.Env, angle: float, axis: torch.Tensor) -> torch.Tensor:
    """Turn every row's thing about ``axis`` (n, 3) by so much, as in one step; returns what counted (n,)."""
    quat = quat_mul(quat_from_axis_angle(axis, torch.full((len(axis),), angle)), env.h.thing.quat)
    env.h.thing.set_pose(env.h.thing.pos.clone(), quat)
    env.world.forward()
    env.task.advance(env.h)
    return env.h.step.value.clone()


def test_turns_count_with_their_sign_and_at_most_nine_degrees() -> None:
    env = made(16, level=3, objects=("004_sugar_box",))
    axis = env.h.axis.value.clone()
    assert sorted(set(map(tuple, axis.tolist()))) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    for angle, counts in ((0.1, 0.1), (-0.07, -0.07), (0.5, math.pi / 20), (-0.5, -math.pi / 20)):
        torch.testing.assert_close(turned_by(env, angle, axis), torch.full((16,), counts), atol=1e-5, rtol=0)
    torch.testing.assert_close(env.h.turned.value, torch.full((16,), 0.03), atol=1e-5, rtol=0)
    across = torch.roll(axis, 1, 1)
    for _ in range(5):
        assert turned_by(env, 0.02, across).abs().max() < 0.01  # a turn about another axis does not count


def test_two_turns_succeed_and_to_and_fro_does_not() -> None:
    for published in (False, True):
        env = made(2, published_angle=published)
        axis = env.h.axis.value.clone()
        for k in range(100):  # 100 times 0.13 rad: two turns are 12.57
            turned_by(env, 0.13 if k % 2 else -0.13, axis)
        assert env.task.evaluate(env.h)["success"].tolist() == [published] * 2
    env, count = made(2), 0
    while not env.task.evaluate(env.h)["success"].any():
        turned_by(env, 0.13, axis)
        count += 1
    assert count == math.ceil(4 * math.pi / 0.13)


def test_things_begin_above_the_palm_in_the_published_spread() -> None:
    env = made(256)
    place = env.h.thing.pos
    assert place[:, :2].abs().max() < 0.02 * 5 and (place[:, :2].std(0) - 0.02).abs().max() < 0.003
    assert place[:, 2].min() >= 0.25 + 0.013 + 0.04 - 1e-6
    for row in range(0, 256, 16):
        _, data = env.world.data(row)
        assert not any(contact.dist < 0 for contact in data.contact)
    for level in (1, 2):
        env = made(64, level)
        size = env.h.thing.size[:, 0] if level == 1 else env.h.thing.extents[:, 2]
        assert size.unique().numel() > 5
        assert (env.h.thing.pos[:, 2] - size >= 0.25 + 0.013 - 1e-6).all()
        if level == 1:
            assert (size.mean() - 0.04).abs() < 0.002 and 0.002 < size.std() < 0.006
        env.close()


def test_the_reward_is_the_published_formula() -> None:
    env = made(8)
    generator = torch.Generator().manual_seed(3)
    for _ in range(12):
        _, reward, *_, info = env.step(torch.rand(8, 16, generator=generator) * 2 - 1)
        terms = info["reward_terms"]
        for row in range(8):
            _, data = env.world.data(row)
            thing, joints = data.body("thing"), [data.joint(env.robot.prefix + j) for j in env.robot.joints]
            q, v = (np.array([getattr(joint, what)[0] for joint in joints]) for what in ("qpos", "qvel"))
            torque = np.clip(400 * (env.robot.ctrl[row].numpy() - q) - 10 * v, -50, 50)
            tips = [env.robot.tools[f].tcp_pos[row].numpy() for f in ("ff", "mf", "rf", "th")]
            near = np.mean([min(1.0, 0.1 / (0.02 + 4 * np.linalg.norm(tip - thing.xpos))) for tip in tips])
            wanted = {
                "turn": 20 * env.h.step.value[row].item(),
                "speed": -0.1 * np.linalg.norm(data.joint("thing").qvel[:3]),
                "dropped": -50.0 * (thing.xpos[2] < 0.2),
                "power": -0.0003 * abs(torque @ v),
                "torque": -0.0003 * np.linalg.norm(torque),
                "reach": near,
            }
            assert set(wanted) == set(terms) == set(env.task.reward_terms)
            for name, value in wanted.items():
                assert terms[name][row].item() == pytest.approx(float(value), abs=2e-3), name
            assert reward[row].item() == pytest.approx(sum(map(float, wanted.values())), abs=5e-3)


def test_what_is_dropped_has_failed() -> None:
    env = made(2)
    env.h.thing.set_pose(torch.tensor([[0.0, 0.0, 0.201], [0.3, 0.0, 0.199]]))
    env.world.forward()
    assert env.task.evaluate(env.h)["fail"].tolist() == [False, True]


def test_warp_agrees() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    envs = [made(2, level=1, device=device) for device in ("cpu", "warp:cpu")]
    generator = torch.Generator().manual_seed(2)
    for _ in range(2):  # in the air
        action = torch.rand(2, 16, generator=generator) * 2 - 1
        (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
        assert torch.allclose(here, there.cpu(), atol=5e-3)
        for group in one:
            for name, value in one[group].items():
                assert torch.allclose(value, other[group][name].cpu(), atol=5e-3, rtol=1e-3), name


def test_what_cannot_be_is_refused_with_what_can() -> None:
    with pytest.raises(UnknownNameError, match=r"level of RotateInHand-v1 4.*Valid: 0, 1, 2, 3"):
        made(2, level=4)
    with pytest.raises(ConfigError, match="does not know how to hold 'shadow'; it takes allegro, allegro_left"):
        manikin.make("RotateInHand-v1", robot="shadow")
    with pytest.raises(ConfigError, match="RotateInHand-v1 needs a robot with palm"):
        manikin.make("RotateInHand-v1", robot="panda")
