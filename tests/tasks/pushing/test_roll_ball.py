"""RollBall: where things start, how the ball rolls, and that the place behind it is remembered."""

from __future__ import annotations

import pytest
import torch

import manikin


def test_things_start_where_the_originals_code_puts_them() -> None:
    env = manikin.make("RollBall-v1", 512)
    env.reset(seed=0)
    ball, goal = env.h.ball.pos, env.h.goal.value
    for pos, axis, low, high in (
        (ball, 0, -0.4, 0.2),
        (ball, 1, 0.5, 0.7),
        (goal, 0, -0.4, 0.2),
        (goal, 1, -0.9, -0.7),
    ):
        least, most, room = pos[:, axis].min(), pos[:, axis].max(), 0.03 * (high - low)
        assert low - 1e-6 <= least < low + room and high - room < most <= high + 1e-6
    torch.testing.assert_close(ball[:, 2], torch.full((512,), 0.035))
    torch.testing.assert_close(env.h.marker.pos, goal)
    base = env.h.robot.base_pose
    assert base[:3].tolist() == pytest.approx([-0.1, 1.0, 0.0])
    assert (env.h.robot.tcp_pos[:, 1] < 0.6).all()  # it faces the disc


def test_a_ball_that_slides_ends_up_rolling_at_five_sevenths_of_its_speed() -> None:
    """Whatever the friction, angular momentum about the point of contact stays; a rolling ball then keeps its speed."""
    env = manikin.make("RollBall-v1", autoreset="disabled", terminate=False)
    env.reset(seed=0)
    env.h.ball.set_pose((0.3, 0.9, 0.035))
    env.h.ball.set_velocity((0.0, -0.7, 0.0))
    hold, speeds = torch.zeros(1, env.controller.card.size), []
    for _ in range(40):
        env.step(hold)
        speeds.append(env.h.ball.linvel[0, 1].item())
    assert speeds[9] == pytest.approx(-0.5, abs=0.01) and speeds[-1] == pytest.approx(speeds[9], abs=0.005)
    assert env.h.ball.angvel[0, 0].item() == pytest.approx(-speeds[-1] / 0.035, rel=0.02)


def test_a_ball_counts_only_over_the_disc_and_rolling_on_does_not_matter() -> None:
    env = manikin.make("RollBall-v1", 4, autoreset="disabled", terminate=False)
    env.reset(seed=0)
    off = torch.tensor([[0.0, 0.099, 0.0], [0.071, 0.071, 0.0], [-0.07, 0.07, 0.0], [0.0, 0.101, 0.0]])
    env.h.ball.set_pose(env.h.goal.value + off + torch.tensor([0.0, 0.0, 0.034]))
    env.h.ball.set_velocity((0.0, -0.5, 0.0))
    env.world.forward()
    assert env.task.evaluate(env.h)["success"].tolist() == [True, False, True, False]


@pytest.mark.parametrize("reward", ["dense", "none"])
def test_having_been_behind_the_ball_is_remembered_until_the_episode_ends(reward: str) -> None:
    env = manikin.make("RollBall-v1", 2, autoreset="disabled", terminate=False, reward=reward)
    env.reset(seed=0)
    hold = torch.zeros(2, env.controller.card.size)
    tcp, goal = env.h.robot.tcp_pos.clone(), env.h.goal.value
    ahead = (goal - tcp) / (goal - tcp).norm(dim=1, keepdim=True)
    env.h.ball.set_pose(tcp + torch.tensor([[0.085 + 0.03], [0.085 + 0.06]]) * ahead)
    env.step(hold)
    assert env.h.reached.value.tolist() == [1.0, 0.0]
    env.h.ball.set_pose((0.5, 0.0, 0.035))
    env.step(hold)
    assert env.h.reached.value.tolist() == [1.0, 0.0]
    env.reset(seed=1)
    assert env.h.reached.value.tolist() == [0.0, 0.0]
