"""PlaceAppleInBowl: what success is, where things start and rest, what the hand holds, who may do it."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.errors import ConfigError
from manikin.math import quat_to_yaw
from manikin.plan.executor import WaypointExecutor

TOP, RADIUS, MIDDLE = 0.7, 0.0335, 0.053  # [m] of the counter; of the apple; of the bowl's middle over the counter


def _env(num_envs: int = 1, **options: object) -> manikin.Env:
    env = manikin.make("PlaceAppleInBowl-v1", num_envs, autoreset="disabled", terminate=False, **options)
    env.reset(seed=0)
    return env


def test_an_apple_near_the_bowl_s_middle_under_a_high_hand_succeeds() -> None:
    env = _env(4)
    high = env.h.robot.tools["right"].tcp_pos[:, 2:] - TOP - MIDDLE  # of the hand over the middle of a bowl at rest
    aside = torch.tensor([[0.0, 0.0], [0.049, 0.0], [0.0, 0.051], [0.0, 0.0]])
    lower = high - torch.tensor([[0.126], [0.126], [0.126], [0.124]])  # the bowl is moved instead of the hand
    bowl = torch.cat([torch.tensor([[0.3, -0.6]]).expand(4, 2), TOP + lower], 1)
    env.h.bowl.set_pose(bowl)
    env.h.apple.set_pose(bowl + torch.cat([aside, torch.full((4, 1), MIDDLE)], 1))
    env.world.forward()
    found = env.task.evaluate(env.h)
    assert found["success"].tolist() == [True, True, False, False]
    assert found["is_placed"].tolist() == [True, True, False, True]
    assert found["is_outside"].tolist() == [True, True, True, False]


def test_things_start_where_the_original_puts_them() -> None:
    env = _env(256)
    for part, y, height in ((env.h.apple, 0.0, TOP + RADIUS), (env.h.bowl, -0.4, TOP)):
        away = part.pos[:, :2] - torch.tensor([0.0, y])
        assert away.abs().max() <= 0.025 + 1e-6 and away.amax(0).min() > 0.023 and away.amin(0).max() < -0.023
        torch.testing.assert_close(part.pos[:, 2], torch.full((256,), height))
    yaw = quat_to_yaw(env.h.apple.quat)
    assert yaw.min() < -3 and yaw.max() > 3
    assert env.h.apple.pos[0, 2].item() == pytest.approx(0.7335)  # the published height


def test_an_apple_that_is_let_go_over_the_bowl_comes_to_rest_in_it_and_succeeds() -> None:
    """From 0.15 m over its middle, and up to 0.025 m beside it, as the reward wants it."""
    env = _env(4)
    beside = torch.tensor([[0.0, 0.0], [0.025, 0.0], [0.0, -0.025], [-0.017, 0.017]])
    above = torch.cat([beside, torch.full((4, 1), MIDDLE + 0.15)], 1)
    env.h.apple.set_pose(env.h.bowl.pos + above)
    hold = env.hold()
    for _ in range(40):
        *_, info = env.step(hold)
    away = env.h.apple.pos - env.h.bowl.pos
    assert info["is_placed"].all()
    assert away[:, 2].tolist() == pytest.approx([0.008 + RADIUS] * 4, abs=1e-3)  # on the bowl's floor
    assert env.h.apple.linvel.norm(dim=1).max() < 0.02


def test_the_hand_holds_the_apple_while_it_is_in_the_air() -> None:
    env = _env(2)
    expert, carried = WaypointExecutor(env), 0
    for _ in range(100):
        *_, info = env.step(expert.act())
        late = torch.tensor([stage == "over" for stage in expert.waypoint])
        carried += int((late & info["is_grasped"] & (env.h.apple.pos[:, 2] > 0.8)).sum())
    assert carried > 20 and info["success"].all()
    weight = env.model_data(0)[0].body("apple").mass[0]
    assert weight == pytest.approx(1000 * 4 / 3 * math.pi * RADIUS**3)


@pytest.mark.parametrize("robot", ["panda", "h1_upper_body", "g1"])
def test_robots_without_such_hands_are_refused_with_the_name_of_one_that_has_them(robot: str) -> None:
    with pytest.raises(ConfigError, match=r"PlaceAppleInBowl-v1 needs a robot with .*; it takes g1_upper_body"):
        manikin.make("PlaceAppleInBowl-v1", robot=robot)
