"""Hang: where rope and rod start, what counts as hung, and that the rope is one."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import manikin
from manikin import Task
from manikin.errors import ConfigError
from manikin.math import quat_mul
from manikin.plan.executor import WaypointExecutor
from manikin.props.soft.rope import rope


def _make(num_envs: int = 1, **options: object) -> manikin.Env:
    return manikin.make("Hang-v1", num_envs, **{"autoreset": "disabled", "terminate": False, **options})


def test_rod_and_rope_start_where_they_should() -> None:
    env = _make(256)
    env.reset(seed=0)
    rod, points = env.h.rod.pos, env.h.rope.points
    away, turn = rod[:, :2].norm(dim=1), torch.atan2(rod[:, 1], rod[:, 0])
    for value, low, high in ((away, 0.2, 0.23), (turn, math.pi / 4, math.pi * 3 / 4), (rod[:, 2], 0.2, 0.3)):
        room = 0.03 * (high - low)
        assert low - 1e-6 <= value.min() < low + room and high - room < value.max() <= high + 1e-6
    assert points.shape == (256, 16, 3)
    torch.testing.assert_close(points[..., 2], torch.full((256, 16), 0.006), atol=1e-5, rtol=0.0)
    torch.testing.assert_close((points[:, 1:] - points[:, :-1]).norm(dim=2), torch.full((256, 15), 0.02))
    gap = rod[:, 1] - points[:, 0, 1]
    assert (gap >= 0.08 - 1e-5).all() and (gap <= 0.12 + 1e-5).all()
    assert (points[:, -1, 1] < points[:, 0, 1]).all(), "the rope lies away from the rod"


class Pendulum(Task):
    """A rope that falls from a straight line in the air.

    Randomization: none.
    Success: never.
    """

    id = "FallingRope-v0"
    horizon_s = 5.0

    def scene(self, b: Any) -> dict[str, Any]:
        return {"robot": b.robot(pos=(-2.0, 0, 0)), "rope": rope(b, "rope", length=0.3, radius=0.006)}

    def start(self, h: Any, ep: Any) -> None:
        h.robot.set_qpos(h.robot.keyframe())
        h.rope.lay(torch.tensor([[0.0, 0.0, 3.0]]).expand(h.n, 3), torch.tensor([[1.0, 0.0, 0.0, 0.0]]).expand(h.n, 4))

    def evaluate(self, h: Any) -> dict[str, torch.Tensor]:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: Any) -> dict[str, dict[str, torch.Tensor]]:
        return {"policy": {}, "privileged": {"points": h.rope.points.flatten(1)}}


def test_a_straight_rope_falls_freely_and_keeps_its_length() -> None:
    env = manikin.make(Pendulum, autoreset="disabled", reward="none")
    env.reset(seed=0)
    start = env.h.rope.points.clone()
    for _ in range(8):
        env.step(torch.zeros(1, env.controller.card.size))
    fell = (start - env.h.rope.points)[0, :, 2]
    torch.testing.assert_close(fell, torch.full((16,), 0.5 * 9.81 * 0.4**2), rtol=0.04, atol=0.0)  # steps of 10 ms
    assert (env.h.rope.points[0, -1] - env.h.rope.points[0, 0]).norm().item() == pytest.approx(0.3, abs=1e-3)
    env.close()


def test_what_counts_as_hung() -> None:
    """A rope of two straight halves over the rod, bent at its middle; then the same a little elsewhere."""
    env = _make()
    env.reset(seed=0)
    h, world = env.h, env.world
    rod = h.rod.pos[0].clone()
    q = world.scene.model.joint("rope").qposadr[0]

    def lay(shift: float, height: float, apex: float = 0.3) -> dict[str, torch.Tensor]:
        """Up to the apex on one side, down on the other; the links' two directions are ``apex`` off the vertical."""
        up, turn = math.pi / 2 - apex, -(math.pi - 2 * apex)
        quat = torch.tensor([[math.cos(math.pi / 4), 0.0, 0.0, math.sin(math.pi / 4)]])  # x along the world's y
        tilt = torch.tensor([[math.cos(up / 2), 0.0, -math.sin(up / 2), 0.0]])  # and up
        half = 8 * 0.02
        begin = rod + torch.tensor([0.0, shift - half * math.sin(apex), height - half * math.cos(apex)])
        h.rope.lay(begin[None], quat_mul(quat, tilt))
        state = world.read("qpos").clone()
        at = int(q) + 7 + 4 * 7  # the joint between the eighth piece and the ninth
        state[0, at : at + 4] = torch.tensor([math.cos(-turn / 2), 0.0, math.sin(-turn / 2), 0.0])
        world.write("qpos", state)
        world.forward()
        return env.task.evaluate(h)

    assert lay(0.0, 0.02)["success"].item()
    points = h.rope.points[0] - rod
    assert points[8].tolist() == pytest.approx([0.0, 0.0, 0.02], abs=1e-3)
    assert env.task.sides(h)[0].tolist() == pytest.approx([0.16, 0.14], abs=1e-4)
    assert not lay(0.0, 0.055)["success"].item(), "too high above the rod"
    assert not lay(0.0, -0.005)["success"].item(), "below the rod"
    assert not lay(0.07, 0.02)["success"].item(), "both ends on one side"
    if rod[2] < 0.2:
        assert not lay(0.0, 0.02)["success"].item(), "it touches the table"


def test_a_lying_rope_is_not_hung_and_the_reward_is_its_formula() -> None:
    env = _make(2, reward="dense")
    env.reset(seed=0)
    ev = env.task.evaluate(env.h)
    assert not ev["success"].any() and not ev["is_grasped"].any()
    terms = env.task.reward(env.h, ev, torch.zeros(2, env.controller.card.size))
    assert torch.equal(terms["across"], torch.zeros(2))
    for row in range(2):
        short = float(env.h.rod.pos[row, 2]) + 0.02 - 0.006
        assert terms["lift"][row].item() == pytest.approx(1 - math.tanh(5 * short), abs=1e-4)
        away = (env.h.rope.points[row, 0] - env.h.robot.tcp_pos[row]).norm().item()
        assert terms["reach"][row].item() == pytest.approx(1 - math.tanh(5 * away), abs=1e-5)


def test_the_expert_hangs_the_rope() -> None:
    env = _make(4)
    env.reset(seed=0)
    expert, solved = WaypointExecutor(env), torch.zeros(4, dtype=torch.bool)
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        solved |= info["success"]
        points = env.h.rope.points
        torch.testing.assert_close((points[:, 1:] - points[:, :-1]).norm(dim=2), torch.full((4, 15), 0.02))
    assert solved.all() and info["success"].all() and not info["health"].any()


def test_a_rope_of_one_piece_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 links or more"):
        manikin.make("Hang-v1", config={"links": 1})
