"""ReorientCube: how goals follow one another, what is paid, starts in both hands, and both devices."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.errors import ConfigError
from manikin.math import quat_angle, quat_from_axis_angle, quat_mul

HANDS = ("shadow", "allegro")


def made(robot: str = "shadow", num_envs: int = 4, device: str = "cpu", **config) -> manikin.Env:
    env = manikin.make(
        "ReorientCube-v1", num_envs, robot=robot, autoreset="disabled", terminate=False, reward="dense",
        observe="state_dict", device=device, config=config,
    )  # fmt: skip
    env.reset(seed=0)
    return env


def put(env: manikin.Env, quat: torch.Tensor) -> dict[str, torch.Tensor]:
    """Turn the rows' cubes to these orientations, as in one step; returns the reward's terms."""
    env.h.cube.set_pose(env.h.cube.pos.clone(), quat)
    env.world.forward()
    env.task.advance(env.h)
    return env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(env.num_envs, 1))


def off(goal: torch.Tensor, angle: float) -> torch.Tensor:
    """Orientations that are ``angle`` [rad] from the goals (n, 4)."""
    axis = torch.nn.functional.normalize(torch.tensor([[1.0, 2.0, -0.5]]), dim=1).expand(len(goal), 3)
    return quat_mul(goal, quat_from_axis_angle(axis, torch.full((len(goal),), angle)))


def test_one_goal_after_another_is_reached_within_the_tolerance() -> None:
    env = made(num_envs=3, goals=3)
    goals = env.h.goals.value.clone()
    for k in range(3):
        seen = env.task.observe(env.h)["policy"]["goal_quat"]
        torch.testing.assert_close(seen, goals[:, k])
        before = env.h.left.value.clone()
        terms = put(env, off(goals[:, k], 0.41))
        torch.testing.assert_close(terms["turn"], before - 0.41, atol=1e-3, rtol=0)
        assert terms["reached"].tolist() == [0.0] * 3 and env.h.count.value.tolist() == [float(k)] * 3
        terms = put(env, off(goals[:, k], 0.39))
        torch.testing.assert_close(terms["turn"], torch.full((3,), 0.02), atol=1e-3, rtol=0)
        assert terms["reached"].tolist() == [5.0] * 3
        assert env.task.evaluate(env.h)["success"].tolist() == [k == 2] * 3
        if k < 2:  # from now on the way to the next goal counts
            torch.testing.assert_close(
                env.h.left.value, quat_angle(off(goals[:, k], 0.39), goals[:, k + 1]), atol=1e-3, rtol=0
            )
    terms = put(env, goals[:, 2])
    assert terms["reached"].tolist() == [0.0] * 3 and env.h.count.value.tolist() == [3.0] * 3  # there are no more


def test_what_is_paid_adds_up_to_the_way() -> None:
    env = made(num_envs=2, goals=1)
    goal, paid = env.h.goals.value[:, 0].clone(), torch.zeros(2)
    first = env.h.left.value.clone()
    for angle in (2.0, 2.5, 1.0, 0.5):
        paid += put(env, off(goal, angle))["turn"]
    torch.testing.assert_close(paid, first - 0.5, atol=1e-3, rtol=0)


@pytest.mark.parametrize("robot", HANDS)
def test_cubes_begin_above_the_palm_in_any_orientation_and_never_at_the_goal(robot: str) -> None:
    env = made(robot, 256)
    half, mass = {"shadow": (0.025, 567 * 0.05**3), "allegro": (0.035, 0.108)}[robot]
    model, _ = env.world.data(0)
    assert model.geom("cube/0").size.tolist() == pytest.approx([half] * 3)
    assert float(model.body("cube").mass[0]) == pytest.approx(mass, rel=1e-3)
    assert (quat_angle(env.h.cube.quat, env.h.goals.value[:, 0]) > 0.8).all()
    # the angle between two orientations that are uniform is on average pi/2 + 2/pi
    among = quat_angle(env.h.goals.value[:, 1], env.h.goals.value[:, 2])
    assert abs(among.mean().item() - (math.pi / 2 + 2 / math.pi)) < 0.1
    touching = 0
    for row in range(0, 256, 8):
        _, data = env.world.data(row)
        touching += any(contact.dist < -1e-3 for contact in data.contact)
    assert touching == 0
    env.close()
    env = made(robot, 32)
    for _ in range(20):  # a hand that holds still keeps most of them
        *_, info = env.step(torch.zeros(32, env.single_action_space.shape[0]))
    assert info["fail"].float().mean() < 0.3 and not info["success"].any()


def test_warp_agrees() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    envs = [made("allegro", 2, device=device) for device in ("cpu", "warp:cpu")]
    generator = torch.Generator().manual_seed(2)
    action = torch.rand(2, 16, generator=generator) * 2 - 1
    (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
    assert torch.allclose(here, there.cpu(), atol=5e-3)
    for group in one:
        for name, value in one[group].items():
            assert torch.allclose(value, other[group][name].cpu(), atol=5e-3, rtol=1e-3), name


def test_what_cannot_be_is_refused_with_what_can() -> None:
    with pytest.raises(ConfigError, match="'goals' of ReorientCube-v1 must be at least 1, not 0"):
        made(goals=0)
    with pytest.raises(ConfigError, match="does not know how to hold 'allegro_left'; it takes allegro, shadow"):
        made("allegro_left")
    with pytest.raises(ConfigError, match="ReorientCube-v1 needs a robot with palm"):
        manikin.make("ReorientCube-v1", robot="panda")
