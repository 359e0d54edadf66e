"""PushT: where the T starts, what it covers against dense and published rasters, and the plan of its pushes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError
from manikin.math import quat_from_yaw, quat_mul, quat_to_matrix, quat_to_yaw
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.pushing.push_plan import FlatThing
from maniskill_rules import covered

GOAL, YAW = torch.tensor([-0.156, -0.1]), 5 * math.pi / 3
SQUARE = ((-0.1, -0.05), (0.1, -0.05), (0.1, 0.05), (-0.1, 0.05))


def _placed(off: torch.Tensor, turn: torch.Tensor, **config: bool) -> manikin.Env:
    """Rows of the T's place from its goal (n, 2) [m], in the goal's frame, and its turn from it (n,) [rad]."""
    env = manikin.make("PushT-v1", len(off), autoreset="disabled", terminate=False, config=config)
    env.reset(seed=0)
    c, s = math.cos(YAW), math.sin(YAW)
    spot = GOAL + torch.stack([c * off[:, 0] - s * off[:, 1], s * off[:, 0] + c * off[:, 1]], 1)
    env.h.tee.set_pose(torch.cat([spot, torch.full((len(off), 1), 0.02)], 1), quat_from_yaw(YAW + turn))
    env.world.forward()
    return env


def _spread(n: int, far: float, turned: float) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    off, turn = rng.uniform(-far, far, (n, 2)), rng.uniform(-turned, turned, n)
    return torch.tensor(off, dtype=torch.float32), torch.tensor(turn, dtype=torch.float32)


def test_the_t_weighs_and_measures_what_is_published() -> None:
    model = manikin.make("PushT-v1").scene.model
    tee = model.body("tee")
    assert tee.mass[0] == pytest.approx(0.8)
    # the stem has 3/4 of the bar's mass, and its middle is 0.1 m from the bar's
    assert tee.ipos == pytest.approx([0, -0.0375 + 0.1 * 3 / 7, 0], abs=1e-9)
    sizes = [model.geom(f"tee/{k}").size.tolist() for k in (0, 1)]
    assert sizes == [pytest.approx([0.1, 0.025, 0.02]), pytest.approx([0.025, 0.075, 0.02])]
    assert [model.geom(f"tee/{k}").friction[0] for k in (0, 1)] == [(3 + 0.3) / 2] * 2
    assert manikin.make("PushT-v1", horizon=100).horizon == 100 < manikin.make("PushT-v1").horizon == 400


def test_it_starts_where_the_original_puts_it_and_the_stick_is_free() -> None:
    env = manikin.make("PushT-v1", 512)
    _, info = env.reset(seed=0)
    off, yaw = env.h.tee.pos[:, :2] - GOAL, quat_to_yaw(env.h.tee.quat)
    for values, low, high in ((off[:, 0], -0.1, 0.1), (off[:, 1], -0.1, 0.2), (yaw, -math.pi, math.pi)):
        room = 0.03 * (high - low)
        assert low - 1e-6 <= values.min() < low + room and high - room < values.max() <= high + 1e-6
    tip = env.h.robot.tcp_pos
    assert (tip[:, 2] > 0.01).all() and (tip.mean(0) - torch.tensor([-0.321, 0.284, 0.06])).abs().max() < 0.005
    assert not info["is_touched"].any() and env.task.overlap(env.h).max() < 0.85
    again = manikin.make("PushT-v1", 2)
    again.reset(seed=[7, 3])
    torch.testing.assert_close(again.h.tee.pose, env.h.tee.pose[[7, 3]])


def test_what_it_covers_is_the_area_of_both() -> None:
    """Against a raster of half millimetres; and moved along its bar by d it loses d times 0.2 m of 0.0175 m^2."""
    off, turn = _spread(24, 0.05, math.pi)
    found = _placed(off, turn).task
    env = _placed(off, turn)
    for row in range(24):
        axis = np.arange(-0.15, 0.15, 0.0005)
        points = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)

        def inside(p: np.ndarray) -> np.ndarray:
            bar = (np.abs(p[:, 0]) < 0.1) & (np.abs(p[:, 1] + 0.0375) < 0.025)
            return bar | ((np.abs(p[:, 0]) < 0.025) & (np.abs(p[:, 1] - 0.0625) < 0.075))

        a, moved = float(turn[row]), points - off[row].double().numpy()
        back = moved @ np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
        area = (inside(points) & inside(back)).sum() / inside(points).sum()
        assert float(found.overlap(env.h)[row]) == pytest.approx(area, abs=0.03)
    d = torch.tensor([0.0, 0.004, 0.012, 0.02])
    along = _placed(torch.stack([d, torch.zeros(4)], 1), torch.zeros(4))
    assert along.task.overlap(along.h).numpy() == pytest.approx(1 - d.numpy() * 0.2 / 0.0175, abs=0.03)


def test_success_is_nine_tenths_lying_flat() -> None:
    off = torch.tensor([[0.0, 0.0], [0.006, 0.0], [0.0, -0.006], [0.014, 0.0], [0.0, 0.014], [0.0, 0.0], [0.0, 0.0]])
    turn = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 0.06, 0.2])
    env = _placed(off, turn)
    assert env.task.evaluate(env.h)["success"].tolist() == [True, True, True, False, False, True, False]
    # lying on its face it has the same outline; standing on its bar, or in the air over its goal, it does not count
    env.h.tee.set_pose(
        (-0.156, -0.1, 0.02), quat_mul(quat_from_yaw(torch.tensor([YAW])), torch.tensor([[0.0, 0, 1, 0]])).expand(7, 4)
    )
    env.world.forward()
    assert env.task.evaluate(env.h)["success"].all()
    env.h.tee.set_pose((-0.156, -0.1, 0.05), quat_from_yaw(torch.full((7,), YAW)))
    env.world.forward()
    assert not env.task.evaluate(env.h)["success"].any()


def test_the_published_overlap_is_the_originals_and_has_holes() -> None:
    """Written again with loops: the corners of cells are cut off to whole numbers, and points of the T fill cells."""
    off, turn = _spread(12, 0.03, 0.6)
    off[0], turn[0] = 0.0, 0.0
    env = _placed(off, turn, published_overlap=True)
    ours, cell = _placed(off, turn), 0.3 / 64
    filled = {
        (i, j)
        for x0, x1, y0, y1 in ((-0.1, 0.1, -0.0625, -0.0125), (-0.025, 0.025, -0.0125, 0.1375))
        for i in range(int(x0 / cell + 32), int(x1 / cell + 32))
        for j in range(int(y0 / cell + 32), int(y1 / cell + 32))
    }
    unsure = 0
    for row in range(12):
        c, s = math.cos(float(turn[row])), math.sin(float(turn[row]))
        seen = set()
        for i, j in filled:
            x, y = (i + 0.5 - 32) * cell, (j + 0.5 - 32) * cell
            u, v = c * x - s * y + float(off[row, 0]), s * x + c * y + float(off[row, 1])
            seen.add((int(u / cell + 32), int(v / cell + 32)))
        expected = len(seen & filled) / len(filled)
        unsure += abs(float(env.task.overlap(env.h)[row]) - expected) > 1e-6
        assert float(env.task.overlap(env.h)[row]) == pytest.approx(
            expected, abs=0.01
        )  # single precision at the cells' edges
    assert unsure <= 6
    turned = torch.tensor([0.02, 0.05, 0.08])
    holes = _placed(torch.zeros(3, 2), turned, published_overlap=True)
    whole = _placed(torch.zeros(3, 2), turned)
    assert (holes.task.overlap(holes.h) < whole.task.overlap(whole.h)).any()
    assert float(ours.task.overlap(ours.h)[0]) == 1.0


def test_what_is_observed_is_what_the_reference_computes() -> None:
    env = manikin.make("PushT-v1", 16, observe="state_dict")
    seen, _ = env.reset(seed=5)
    for row in range(16):
        tee, goal = seen["privileged"]["tee_pose"][row].double(), seen["policy"]["goal_pose"][row].double()
        expected = covered(tee[:3], quat_to_matrix(tee[3:]), goal[:3], quat_to_matrix(goal[3:]))
        assert float(seen["privileged"]["overlap"][row]) == pytest.approx(expected, abs=0.005)


# ---- the plan of pushes --------------------------------------------------------------------------------------------


def test_a_sticking_push_keeps_the_contact_and_obeys_the_ellipsoid() -> None:
    """The point moves as it is pushed; and the force, along the centre's motion, has the moment that the turn needs."""
    thing = FlatThing(SQUARE, centre=(0.0, 0.0), length=0.07, turn_length=0.1, radius=0.008)
    rng = np.random.default_rng(1)
    turn, arm, step = (torch.tensor(rng.uniform(-1, 1, shape)) for shape in ((50,), (50, 2), (50, 2)))
    shift, more = thing.moved(turn, 0.1 * arm, 1e-3 * step)
    c, s = torch.cos(turn), torch.sin(turn)
    r = 0.1 * torch.stack([c * arm[:, 0] - s * arm[:, 1], s * arm[:, 0] + c * arm[:, 1]], 1)
    torch.testing.assert_close(shift + more[:, None] * torch.stack([-r[:, 1], r[:, 0]], 1), 1e-3 * step)
    torch.testing.assert_close(0.07**2 * more, r[:, 0] * shift[:, 1] - r[:, 1] * shift[:, 0])
    straight, none = thing.moved(torch.zeros(1), torch.tensor([[-0.05, 0.0]]), torch.tensor([[0.01, 0.0]]))
    assert straight[0].tolist() == pytest.approx([0.01, 0]) and float(none[0]) == 0.0


def test_the_best_push_brings_it_nearer_and_there_is_none_at_the_goal() -> None:
    thing = FlatThing(SQUARE, centre=(0.0, 0.0), length=0.07, turn_length=0.1, radius=0.008)
    pos, turn = torch.tensor([[0.1, 0.0], [0.0, -0.05], [0.02, 0.03], [0.0, 0.0]]), torch.tensor([0.0, 0.0, 0.5, 0.0])
    goal = torch.zeros(2)
    everywhere = torch.ones(4, thing.places(pos, turn)[0].shape[1], dtype=torch.bool)
    push, off = thing.best(pos, turn, goal, 0.0, everywhere), thing.off(pos, turn, goal, 0.0)
    assert off.tolist() == pytest.approx([0.1, 0.05, math.hypot(0.02, 0.03, 0.05), 0.0])
    assert (push.off[:3] < 0.5 * off[:3]).all() and (push.way[:3] > 0).all()
    assert push.way[3] == 0 and push.off[3] == 0
    # straight to the goal: from the far side, by the whole way
    assert push.ahead[0].tolist() == pytest.approx([-1, 0], abs=1e-6) and float(push.way[0]) == pytest.approx(
        0.1, abs=0.01
    )
    assert push.ahead[1].tolist() == pytest.approx([0, 1], abs=1e-6) and float(push.contact[1, 1]) == pytest.approx(
        -0.1
    )
    assert ((push.start - push.contact).norm(dim=1)[:2] > 0.008).all()
    onward = thing.onward(pos, turn, push.start, goal, 0.0)
    torch.testing.assert_close(onward.off[:3], push.off[:3], atol=0.01, rtol=0.0)
    nowhere = thing.best(pos, turn, goal, 0.0, everywhere & (torch.arange(everywhere.shape[1]) == 0))
    assert (nowhere.contact - thing.places(pos, turn)[0][:, 0]).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"points": 0}, "'points' and 'raster' of PushT-v1 must be positive, but they are 0 and 0.3"),
        ({"raster": 0.0}, "must be positive, but they are 64 and 0.0"),
        ({"points": 2}, "no point of the raster on the T: 2 points on 0.3 m; their defaults are 64 and 0.3"),
    ],
)
def test_a_raster_without_a_point_on_the_t_is_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        manikin.make("PushT-v1", config=given)


@pytest.mark.parametrize("word", ["ur5e+stick", "xarm6+stick"])
def test_another_arm_starts_at_rest_and_pushes_the_t_home(word: str) -> None:
    env = manikin.make("PushT-v1", 2, robot=word, config={"noise": 0.0}, autoreset="disabled", terminate=False)
    env.reset(seed=[1, 2])
    torch.testing.assert_close(env.h.robot.arm_qpos, env.h.robot.keyframe().expand(2, -1), atol=1e-6, rtol=0)
    expert, done = WaypointExecutor(env), torch.zeros(2, dtype=torch.bool)
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        done |= info["success"]
        if done.all():
            break
    assert done.all()
