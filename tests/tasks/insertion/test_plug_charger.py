"""PlugCharger: what counts as plugged in, that the holes are where the prongs go, and where things start."""

from __future__ import annotations

import math

import mujoco
import pytest
import torch

import manikin
from manikin.math import quat_from_yaw, quat_mul, quat_rotate, quat_to_yaw


def _placed(offsets: list[tuple[float, float, float]], turn: torch.Tensor | None = None) -> manikin.Env:
    """Rows whose charger is so far from where it is plugged in, in the goal's frame [m], turned by ``turn`` (n, 4)."""
    env = manikin.make("PlugCharger-v1", len(offsets), autoreset="disabled", terminate=False)
    env.reset(seed=0)
    goal = env.h.goal.value
    place = goal[:, :3] + quat_rotate(goal[:, 3:], torch.tensor(offsets, dtype=torch.float32))
    env.h.charger.set_pose(place, goal[:, 3:] if turn is None else quat_mul(goal[:, 3:], turn))
    env.world.forward()
    return env


def _success(env: manikin.Env) -> list[bool]:
    return env.task.evaluate(env.h)["success"].tolist()


def test_within_five_millimetres_is_plugged_in() -> None:
    offsets = [(0, 0, 0), (-0.0049, 0, 0), (-0.0051, 0, 0), (0, 0.0049, 0), (0, 0, -0.0051), (-0.0036, 0.0036, 0)]
    assert _success(_placed(offsets)) == [True, True, False, True, False, False]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_within_a_fifth_of_a_radian_is_plugged_in(axis: int) -> None:
    angles = torch.tensor([0.19, -0.19, 0.21, -0.21, math.pi])
    turn = torch.zeros(5, 4)
    turn[:, 0], turn[:, 1 + axis] = (angles / 2).cos(), (angles / 2).sin()
    assert _success(_placed([(0, 0, 0)] * 5, turn)) == [True, True, False, False, False]


def test_prongs_fit_their_holes_with_half_a_millimetre_to_spare() -> None:
    """Plugged in and moved sideways or up, the charger touches the receptacle only beyond the clearance."""
    moves = [(0, 0), (0.00045, 0), (-0.00045, 0), (0, 0.00045), (0, -0.00045)]
    moves += [(0.00055, 0), (-0.00055, 0), (0, 0.00055), (0, -0.00055), (0.014, 0)]
    env = _placed([(-0.001, y, z) for y, z in moves])  # its body a millimetre before the face
    touching = []
    for row in range(len(moves)):
        model, data = env.world.data(row)
        bodies = {model.body("charger").id, model.body("receptacle").id}
        touching.append(any({int(b) for b in model.geom_bodyid[[c.geom1, c.geom2]]} == bodies for c in data.contact))
    assert touching == [False] * 5 + [True] * 5


def test_a_charger_beside_the_holes_is_stopped_by_the_face() -> None:
    """Its tips on the face, pushed with 0.5 N for a second: it goes in, and a millimetre off the holes it does not."""
    found = []
    for off in (0.0, 0.001):
        env = _placed([(-0.016, off, 0.0)])
        model, data = env.world.data(0)
        model.opt.gravity[:] = 0
        push = 0.5 * data.body("charger").xmat.reshape(3, 3)[:, 0]
        for _ in range(100):
            data.body("charger").xfrc_applied[:3] = push
            mujoco.mj_step(model, data)
        away = data.body("charger").xpos - env.h.goal.value[0, :3].numpy()
        found.append(float((away @ push) / 0.5))
    assert found[0] > -0.001 and found[1] == pytest.approx(-0.016, abs=1e-4)


def test_things_start_where_the_original_puts_them() -> None:
    env = manikin.make("PlugCharger-v1", 256, observe="state_dict")
    seen, _ = env.reset(seed=0)
    plug, wall = env.h.charger, env.h.receptacle
    fields = [
        (plug.pos[:, 0], -0.1, -0.026),
        (plug.pos[:, 1], -0.2, 0.2),
        (quat_to_yaw(plug.quat), -math.pi / 3, math.pi / 3),
    ]
    fields += [(wall.pos[:, 0], 0.01, 0.1), (wall.pos[:, 1], -0.1, 0.1)]
    facing = quat_to_yaw(quat_mul(wall.quat, quat_from_yaw(torch.full((256,), math.pi))))
    for values, low, high in (*fields, (facing, -math.pi / 8, math.pi / 8)):
        assert low - 1e-6 <= values.min() < low + 0.03 * (high - low)
        assert high - 0.03 * (high - low) < values.max() <= high + 1e-6
    torch.testing.assert_close(plug.pos[:, 2], torch.full((256,), 0.012))
    torch.testing.assert_close(wall.pos[:, 2], torch.full((256,), 0.1))
    goal = seen["privileged"]["goal_pose"]
    torch.testing.assert_close(goal[:, :3], wall.pos)
    torch.testing.assert_close(quat_to_yaw(goal[:, 3:]), facing)
