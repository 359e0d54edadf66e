"""AssemblingKits: when a piece is in its recess, shape by shape, and where things start."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.math import quat_from_yaw, quat_mul
from manikin.props.insertion.kit import SHAPES, kit_shape

ALL = len(SHAPES)


def _kits(rows: int, shape: torch.Tensor) -> manikin.Env:
    env = manikin.make("AssemblingKits-v1", rows, autoreset="disabled", terminate=False)
    env.reset(seed=0)
    env.h.piece.set_choice(shape)
    env.h.recess.set_choice(shape)
    return env


def _put(env: manikin.Env, turn: torch.Tensor, x: torch.Tensor | float = 0.0, z: torch.Tensor | float = 0.0) -> None:
    """The piece turned and moved away from its place in the recess."""
    goal = env.h.goal.value
    place = goal[:, :3].clone()
    place[:, 0] += x
    place[:, 2] += z
    env.h.piece.set_pose(place, quat_mul(quat_from_yaw(turn), goal[:, 3:]))
    env.world.forward()


def _settled(env: manikin.Env) -> torch.Tensor:
    """(n,) how high pieces are above the bottom of their recess [m] after half a second, the arm still."""
    hold = torch.zeros(env.num_envs, *env.single_action_space.shape)
    hold[:, -1] = 1.0
    env.h.robot.set_qpos(env.h.robot.keyframe() - torch.tensor([0, 0.6, 0, 0, 0, 0, 0]))  # out of the way
    for _ in range(10):
        env.step(hold)
    return env.h.piece.pos[:, 2].clone()


def test_every_piece_goes_into_its_recess_and_rests_there() -> None:
    env = _kits(ALL, torch.arange(ALL))
    _put(env, torch.zeros(ALL), z=0.002)
    high = dict(zip(SHAPES, _settled(env).tolist(), strict=True))
    assert all(abs(z) < 2e-4 for z in high.values()), high
    assert env.task.evaluate(env.h)["success"].all()
    assert env.h.piece.linvel.norm(dim=1).max() < 1e-3


@pytest.mark.parametrize("whole", [True, False])
def test_it_fits_turned_by_its_symmetry_and_not_by_half_of_that(whole: bool) -> None:
    names = [name for name in SHAPES if kit_shape(name).order > 1]
    env = _kits(len(names), torch.tensor([SHAPES.index(name) for name in names]))
    turn = torch.tensor([2 * math.pi / kit_shape(name).order for name in names]) * (1.0 if whole else 0.5)
    _put(env, turn, z=0.001 if whole else 0.009)
    high = dict(zip(names, _settled(env).tolist(), strict=True))
    done = env.task.evaluate(env.h)["success"]
    assert done.all() if whole else not done.any()
    # an octagon turned by half its symmetry lies on the edge all the same
    assert all((abs(z) < 2e-4) == whole for z in high.values()), high


def test_another_shape_stays_out() -> None:
    env = _kits(ALL, torch.arange(ALL))
    env.h.piece.set_choice(torch.full((ALL,), SHAPES.index("H")))
    _put(env, torch.zeros(ALL), z=0.009)
    low = _settled(env) < 0.003
    assert [name for name, inside in zip(SHAPES, low.tolist(), strict=True) if inside] == ["H"]


def test_turn_place_and_depth_count_each() -> None:
    """Four degrees, two centimetres, three millimetres; a square counts modulo a quarter turn, a disc always."""
    square, letter, disc = (SHAPES.index(name) for name in ("square", "L", "disc"))
    near, far, quarter = math.radians(3.9), math.radians(4.1), math.pi / 2
    cases = [  # shape, turn, x, z, success
        (letter, 0.0, 0.0, 0.0, True),
        (letter, near, 0.0, 0.0, True),
        (letter, -far, 0.0, 0.0, False),
        (letter, quarter, 0.0, 0.0, False),
        (letter, math.pi, 0.0, 0.0, False),
        (square, quarter + near, 0.0, 0.0, True),
        (square, quarter - far, 0.0, 0.0, False),
        (square, math.pi, 0.0, 0.0, True),
        (disc, 1.234, 0.0, 0.0, True),
        (letter, 0.0, 0.0199, 0.0, True),
        (letter, 0.0, -0.0201, 0.0, False),
        (letter, 0.0, 0.0, 0.0029, True),
        (letter, 0.0, 0.0, 0.0031, False),
        (letter, 0.0, 0.0, 0.008, False),  # on the board
    ]
    env = _kits(len(cases), torch.tensor([case[0] for case in cases]))
    _put(env, *(torch.tensor([case[k] for case in cases]) for k in (1, 2, 3)))
    assert env.task.evaluate(env.h)["success"].tolist() == [case[4] for case in cases]


def test_pieces_start_flat_on_the_board_and_off_the_recess() -> None:
    env = manikin.make("AssemblingKits-v1", 256, observe="state_dict")
    seen, _ = env.reset(seed=0)
    pos = seen["privileged"]["piece_pose"][:, :3].clone()
    torch.testing.assert_close(pos[:, 2], torch.full((256,), 0.008))
    assert 0.097 < pos[:, 0].abs().max() <= 0.1 and 0.177 < pos[:, 1].abs().max() <= 0.182
    away = (pos - seen["privileged"]["goal_pose"][:, :3])[:, :2].norm(dim=1)
    assert away.min() > 0.08
    assert env.h.piece.choice.unique().numel() == ALL  # every shape comes up
    assert seen["privileged"]["goal_pose"][:, :2].unique(dim=0).shape[0] == 5
    others = torch.stack([env.h.recess.choice, *(part.choice for part in env.h.inlays)], 1)
    assert all(row.unique().numel() == 5 for row in others)
    torch.testing.assert_close(env.h.recess.choice, env.h.piece.choice)
    hold = torch.zeros(256, *env.single_action_space.shape)
    for _ in range(6):
        env.step(hold)
    assert (env.h.piece.pos - pos)[:, 2].abs().max() < 1.5e-3  # inlays are half a millimetre higher than the board


def test_fewer_shapes_can_be_asked_for() -> None:
    env = manikin.make("AssemblingKits-v1", 32, config={"shapes": ("disc", "star5", "L", "T", "U")})
    env.reset(seed=0)
    assert {env.h.piece.props[k].name for k in env.h.piece.choice.tolist()} == {"disc", "star5", "L", "T", "U"}
    with pytest.raises(manikin.errors.UnknownNameError, match="shape of a kit"):
        manikin.make("AssemblingKits-v1", config={"shapes": ("disc", "star5", "L", "T", "teapot")})
    with pytest.raises(manikin.errors.ConfigError, match="5 different shapes"):
        manikin.make("AssemblingKits-v1", config={"shapes": ("disc", "star5", "L", "T")})
