"""RouteCable: where pegs and cable start, on which side a cable passes, and that it is led there on both devices."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.errors import ManikinError
from manikin.math import quat_from_yaw
from manikin.plan.executor import WaypointExecutor
from manikin.spec.budget import Budget


def _make(num_envs: int = 1, **options: object) -> manikin.Env:
    return manikin.make("RouteCable-v1", num_envs, **{"autoreset": "disabled", "terminate": False, **options})


def test_pegs_and_cable_start_where_they_should() -> None:
    env = _make(256)
    env.reset(seed=0)
    h = env.h
    for value, low, high in (
        (h.first.pos[:, 0], -0.1, -0.02),
        (h.second.pos[:, 0], -0.1, -0.02),
        (h.first.pos[:, 1], -0.08, -0.04),
        (h.second.pos[:, 1], 0.06, 0.1),
        (h.first.pos[:, 1] - h.cable.points[:, 0, 1], 0.08, 0.12),
    ):
        room = 0.05 * (high - low)
        assert low - 1e-5 <= value.min() < low + room and high - room < value.max() <= high + 1e-5
    counts = torch.unique(h.sides.value, dim=0, return_counts=True)
    assert counts[0].tolist() == [[-1, -1], [-1, 1], [1, -1], [1, 1]] and counts[1].min() > 40
    assert (h.cable.points[:, -1, 1] < h.cable.points[:, 0, 1] - 0.3).all(), "it lies away from the pegs"
    for k, peg in enumerate((h.first, h.second)):
        gate = h.gates[k].pos
        assert torch.equal(torch.sign(gate[:, 0] - peg.pos[:, 0]), h.sides.value[:, k])
    assert not env.task.routed(h).any()


def _lay(env: manikin.Env, x: float, y: float, yaw: float, height: float = 0.006) -> list[bool]:
    """The cable of the only row laid straight from a place, x and y beside the first peg; which pegs it passes."""
    first = env.h.first.pos[0]
    at = torch.tensor([[first[0] + x, first[1] + y, height]])
    env.h.cable.lay(at, quat_from_yaw(torch.tensor([yaw])))
    env.world.forward()
    return env.task.routed(env.h)[0].tolist()


@pytest.mark.parametrize(
    ("x", "height", "right"),
    [(0.03, 0.006, True), (-0.03, 0.006, False), (0.119, 0.006, True), (0.121, 0.006, False), (0.03, 0.041, False)],
)
def test_which_side_counts(x: float, height: float, right: bool) -> None:
    """A straight cable along y, so far beside pegs of one x: on the other side of it, too far, or above it."""
    env = _make(config={"peg_x": (-0.05, -0.05)})
    env.reset(seed=0)
    for side in (1.0, -1.0):
        env.h.sides.set(torch.full((1, 2), side))
        assert _lay(env, side * x, -0.1, math.pi / 2, height) == [right, right]
    env.h.sides.set(torch.tensor([[1.0, -1.0]]))
    assert _lay(env, 0.03, -0.1, math.pi / 2) == [True, False]
    assert _lay(env, 0.03, -0.5, math.pi / 2) == [False, False], "it ends before the pegs"
    assert _lay(env, 0.03, 0.01, math.pi / 2) == [False, False], "it begins beyond the first"


def test_success_asks_for_a_cable_at_rest_and_the_reward_is_its_formula() -> None:
    env = _make(reward="dense", config={"peg_x": (-0.05, -0.05)})
    env.reset(seed=0)
    env.h.sides.set(torch.ones(1, 2))

    def judged() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        ev = env.task.evaluate(env.h)
        return ev, env.task.reward(env.h, ev, torch.zeros(1, env.controller.card.size))

    _lay(env, 0.03, -0.1, math.pi / 2)
    ev, terms = judged()
    assert ev["success"].item() and sum(terms.values()).item() == pytest.approx(7.0)
    start = int(env.world.scene.model.joint("cable").dofadr[0])
    moving = env.world.read("qvel").clone()
    moving[0, start + 8] = 0.51
    env.world.write("qvel", moving)
    env.world.forward()
    assert not judged()[0]["success"].item() and judged()[0]["is_routed"].item()
    _lay(env, 0.03, -0.5, math.pi / 2)
    ev, terms = judged()
    end = env.h.cable.points[0, 0]
    gate = env.h.first.pos[0] + torch.tensor([0.06, 0.0, 0.006])
    assert terms["guide"].item() == pytest.approx(1 - math.tanh(5 * (end - gate).norm()), abs=1e-5)
    assert terms["reach"].item() == pytest.approx(1 - math.tanh(5 * (end - env.h.robot.tcp_pos[0]).norm()), abs=1e-5)
    assert terms["routed"].item() == terms["grasp"].item() == terms["success"].item() == 0.0


def test_the_expert_leads_the_cable_past_pegs_on_both_sides() -> None:
    env = _make(4)
    env.reset(seed=0)
    assert len(torch.unique(env.h.sides.value, dim=0)) >= 3
    expert, solved = WaypointExecutor(env), torch.zeros(4, dtype=torch.bool)
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        solved |= info["success"]
    points = env.h.cable.points
    torch.testing.assert_close((points[:, 1:] - points[:, :-1]).norm(dim=2), torch.full((4, 21), 0.02))
    assert solved.all() and not info["health"].any()


def test_both_devices_move_the_cable_alike_for_ten_steps() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    found = []
    for options in ({}, {"device": "warp:cpu", "budget": Budget(nconmax=128, njmax=512)}):
        env = _make(**options)
        env.reset(seed=0)
        for _ in range(10):
            env.step(torch.full((1, env.controller.card.size), 0.1))
        found.append((env.h.cable.points[0].cpu().clone(), env.h.robot.qpos[0].cpu().clone()))
        env.close()
    (cable, arm), (other_cable, other_arm) = found
    assert (cable - other_cable).abs().max() < 1e-4
    assert (arm - other_arm).abs().max() < 1e-4


def test_a_stick_cannot_grasp_a_cable() -> None:
    with pytest.raises(ManikinError, match="panda"):
        manikin.make("RouteCable-v1", robot="panda+stick")
