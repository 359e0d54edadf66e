"""PokeCube: where things start, when the head fits the cube, and the head that ManiSkill3 computes."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.math import quat_from_yaw, quat_to_yaw


def _placed(rows: list[tuple[float, float, float, float, float]], **options: bool) -> manikin.Env:
    """Rows of the peg's turn [rad], the cube's place [m] relative to the disc's, its height [m], and its turn [rad]."""
    env = manikin.make("PokeCube-v1", len(rows), autoreset="disabled", terminate=False, config=options)
    env.reset(seed=0)
    peg, x, y, z, turn = torch.tensor(rows).T
    goal = env.h.goal.value
    env.h.peg.set_pose(torch.tensor([0.0, 0.0, 0.025]), quat_from_yaw(peg))
    env.h.cube.set_pose(torch.stack([goal[:, 0] + x, goal[:, 1] + y, z], 1), quat_from_yaw(turn))
    env.world.forward()
    return env


def test_things_start_where_the_original_puts_them() -> None:
    env = manikin.make("PokeCube-v1", 256, observe="state_dict")
    seen, _ = env.reset(seed=0)
    peg, cube = env.h.peg.pos, env.h.cube.pos
    torch.testing.assert_close(cube[:, 0] - peg[:, 0], torch.full((256,), 0.22))
    torch.testing.assert_close(seen["policy"]["goal_pos"] - cube, torch.tensor([0.1, 0.0, -0.02]).expand(256, 3))
    torch.testing.assert_close(seen["privileged"]["head_to_cube"][:, 0], torch.full((256,), 0.1))
    for values, most in ((peg[:, :2], 0.1), (cube[:, 1:2], 0.1), (quat_to_yaw(env.h.cube.quat)[:, None], math.pi / 6)):
        assert (values.abs().amax(0) <= most + 1e-6).all() and (values.abs().amax(0) > 0.97 * most).all()
    assert (quat_to_yaw(env.h.peg.quat) == 0).all()
    assert torch.corrcoef(torch.stack([peg[:, 1], cube[:, 1]]))[0, 1].abs() < 0.2  # drawn apart from one another


def test_a_cube_over_the_disc_and_an_arm_that_stands_still_is_success() -> None:
    rows = [(0.0, 0.049, 0.0, 0.02, 0.0), (0.0, 0.0, -0.049, 0.02, 0.4), (0.0, 0.0, 0.051, 0.02, 0.0)]
    rows += [(0.0, 0.036, 0.036, 0.02, 0.0), (0.0, -0.1, 0.0, 0.02, 0.0)]
    env = _placed(rows)
    assert env.task.evaluate(env.h)["success"].tolist() == [True, True, False, False, False]
    moving = torch.full((5, 7), 0.0)
    moving[0, 3], moving[1, 3] = 0.21, 0.19
    env.h.robot.set_qpos(env.h.robot.keyframe(), qvel=moving)
    env.world.forward()
    assert env.task.evaluate(env.h)["success"].tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("published", [False, True])
def test_the_head_is_the_end_of_the_peg_unless_the_published_one_is_asked_for(published: bool) -> None:
    """The peg lies at the origin, turned; the cube is before its end, or where an unturned peg would end."""
    env = _placed([(0.5, 0.0, 0.0, 0.02, 0.5)] * 3, published_head=published)
    end, unturned = torch.tensor([math.cos(0.5), math.sin(0.5), 0.0]), torch.tensor([1.0, 0.0, 0.0])
    spots = torch.stack([0.144 * end, 0.144 * unturned, 0.147 * end]) + torch.tensor([0.0, 0.0, 0.02])
    env.h.cube.set_pose(spots, quat_from_yaw(torch.full((3,), 0.5)))
    env.world.forward()
    assert env.task.evaluate(env.h)["is_fit"].tolist() == [not published, published, False]
    head = (0.12 * (unturned if published else end) + torch.tensor([0.0, 0.0, 0.025])).expand(3, 3)
    torch.testing.assert_close(env.task.head_to_cube(env.h), env.h.cube.pos - head)


def test_the_head_fits_within_a_twentieth_of_a_radian() -> None:
    env = _placed([(0.3, 0.0, 0.0, 0.02, 0.3 + d) for d in (-0.051, -0.049, 0.049, 0.051)])
    head = 0.144 * torch.tensor([math.cos(0.3), math.sin(0.3), 0.0]) + torch.tensor([0.0, 0.0, 0.02])
    env.h.cube.set_pose(head.expand(4, 3), env.h.cube.quat)
    env.world.forward()
    assert env.task.evaluate(env.h)["is_fit"].tolist() == [False, True, True, False]
