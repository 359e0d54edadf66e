"""Pinch: where the clay starts, what counts as the target shape, and that volume stays while it is pinched."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.errors import ManikinError
from manikin.math import yaw_rotate
from manikin.plan.executor import WaypointExecutor


def _make(num_envs: int = 1, **options: object) -> manikin.Env:
    return manikin.make("Pinch-v1", num_envs, **{"autoreset": "disabled", "terminate": False, **options})


def test_the_clay_starts_whole_and_its_target_is_turned_with_it() -> None:
    env = _make(64)
    env.reset(seed=0)
    h = env.h
    away = h.clay.middle - torch.tensor([-0.1, 0.0, 0.0265])
    assert away[:, :2].abs().max() <= 0.081 and away[:, 2].abs().max() < 1e-3
    turn = torch.atan2(h.clay.ahead[:, 1], h.clay.ahead[:, 0])
    assert -0.41 < turn.min() < -0.35 and 0.35 < turn.max() < 0.41
    torch.testing.assert_close(h.clay.volume, torch.full((64,), 0.045**3), rtol=5e-3, atol=0.0)
    torch.testing.assert_close(env.task.distance(h), torch.ones(64), atol=0.1, rtol=0.0)
    own = yaw_rotate(h.target.value, -turn[:, None])
    size = own.amax(1) - own.amin(1)
    along, across = torch.where(h.axis.value[:, None] > 0, size[:, [1, 0]], size[:, :2]).unbind(1)
    assert (along < across - 0.005).all(), "pinched along the axis that was drawn"
    assert 20 < h.axis.value.sum() < 44
    marks = (h.marks[1].pos - h.marks[0].pos)[:, :2]
    found = torch.atan2(marks[:, 1], marks[:, 0])
    torch.testing.assert_close(found, turn + h.axis.value * math.pi / 2, atol=0.02, rtol=0.0)


def test_what_counts_as_the_shape() -> None:
    """The target itself anywhere, and on the way to it from the block; not that of the other axis."""
    env = _make(reward="dense")
    env.reset(seed=0)
    h, task = env.h, env.task
    start = h.clay.pos - h.clay.middle[:, None]
    place = torch.tensor([0.05, 0.1, 0.03])

    def judged(points: torch.Tensor) -> tuple[bool, dict[str, torch.Tensor]]:
        h.clay.set_pos(points + place)
        env.world.forward()
        ev = task.evaluate(h)
        assert torch.equal(ev["success"], ev["is_shaped"])
        return ev["success"].item(), task.reward(h, ev, torch.zeros(1, env.controller.card.size))

    good, terms = judged(h.target.value)
    assert good and sum(terms.values()).item() == pytest.approx(5.0) and task.distance(h).item() < 1e-3
    assert not judged(start)[0]
    assert not judged(yaw_rotate(h.target.value, torch.full((1, 1), math.pi / 2)))[0]
    good, terms = judged(start + 0.5 * (h.target.value - start))
    assert not good and terms["shape"].item() == pytest.approx(3 * (1 - task.distance(h).item()), abs=1e-5)
    h.clay.set_pos(h.target.value + place)
    vel = env.world.read("qvel").clone()
    vel[0, int(env.scene.model.body("clay/5").dofadr[0])] = 0.06
    env.world.write("qvel", vel)
    env.world.forward()
    ev = task.evaluate(h)
    assert ev["is_shaped"].item() and not ev["success"].item(), "it still moves"


def test_the_expert_pinches_both_ways_and_the_volume_stays_within_five_percent() -> None:
    many = _make(16)
    many.reset(seed=list(range(16)))
    env = _make(2)
    env.reset(seed=[many.h.axis.value.tolist().index(axis) for axis in (0.0, 1.0)])
    expert, solved, first = WaypointExecutor(env), torch.zeros(2, dtype=torch.bool), env.h.clay.volume
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        solved |= info["success"]
        assert ((env.h.clay.volume / first - 1.0).abs() < 0.05).all()
    assert solved.all() and info["success"].all() and not info["health"].any()


def test_clay_that_is_drawn_out_beyond_15_cm_fails() -> None:
    env = _make()
    env.reset(seed=0)
    points = env.h.clay.pos - env.h.clay.middle[:, None]
    length = float((points.amax(1) - points.amin(1))[0, 0])
    for wanted, torn in ((0.149, False), (0.151, True)):
        env.h.clay.set_pos(points * torch.tensor([wanted / length, 1.0, 1.0]) + torch.tensor([0.0, 0.0, 0.03]))
        env.world.forward()
        assert env.task.evaluate(env.h)["fail"].tolist() == [torn]


def test_a_stick_cannot_pinch() -> None:
    with pytest.raises(ManikinError, match="panda"):
        manikin.make("Pinch-v1", robot="panda+stick")
