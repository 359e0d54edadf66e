"""Insertion by touch: the parts fit, what fingertips feel is what MuJoCo's contacts give, and what touch is worth."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.errors import UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.props.insertion.keyed import GRIP, HOLE_DEPTH, keyed_hole, keyed_peg
from manikin.spec.prop import Shape

TASKS = ("TactilePeg-v1", "TactileLock-v1")
ROOT = Path(__file__).resolve().parents[3]


def make(task: str, n: int, config: dict[str, Any] | None = None, **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "observe": "state_dict", "reward": "dense", **options}
    return manikin.make(task, n, config=config or {}, **options)


@functools.cache
def played(task: str, search: str, error: float) -> SimpleNamespace:
    env = make(task, 16, {"search": search, "error": error})
    env.reset(seed=list(range(500, 516)))
    expert, out = WaypointExecutor(env), SimpleNamespace(success=[], reward=[], terms=[], away=[])
    for _ in range(env.horizon):
        _, reward, _, _, info = env.step(expert.act())
        out.success.append(info["success"])
        out.reward.append(reward)
        out.terms.append(info["reward_terms"])
        out.away.append(env.task.away(env.h).clone())
    assert not info["health"].any()
    return out


def covered(shapes: list[Shape], x: np.ndarray, y: np.ndarray, z: float) -> np.ndarray:
    """Whether points lie inside one of the boxes."""
    at = np.stack([x, y, np.full_like(x, z)], -1)
    return np.any([(np.abs(at - shape.pos) < shape.size).all(-1) for shape in shapes], 0)


@pytest.mark.parametrize("lug", [False, True])
def test_the_hole_leaves_the_clearance_on_every_side(lug: bool) -> None:
    """Seen from above, on a grid of 0.1 mm: the distance from the peg to the block is the clearance everywhere."""
    clearance, step = 0.0004, 0.0001
    x, y = np.meshgrid(*[np.arange(-0.02, 0.02, step) + step / 2] * 2, indexing="ij")
    peg, block = covered(keyed_peg(lug=lug), x, y, 0.005), covered(keyed_hole(clearance, lug=lug), x, y, 0.005)
    assert not (peg & block).any()
    cells = round(clearance / step)
    moved = [np.roll(peg, (i, j), (0, 1)) for i in range(-cells, cells + 1) for j in range(-cells, cells + 1)]
    grown = np.any(moved, 0)
    assert not (grown & block).any()  # a peg that is larger by the clearance still fits
    assert (grown | block).all()  # and fills the hole
    assert covered(keyed_peg(lug=lug), np.array([0.012]), np.array([0.0]), 0.005)[0] == lug


@pytest.mark.parametrize("task", TASKS)
def test_it_starts_in_the_hand_beside_a_hole_that_is_not_quite_where_it_is_said_to_be(task: str) -> None:
    env = make(task, 256)
    env.reset(seed=0)
    tcp, peg = env.h.robot.tcp_pos, env.h.peg.pos
    torch.testing.assert_close(peg, tcp - torch.tensor([0.0, 0.0, GRIP]), atol=2e-5, rtol=0)
    said, off = env.h.said.value, env.h.block.pos[:, :2] - env.h.said.value
    for values, half in ((said, 0.03), (off, 0.004)):
        assert values.abs().max() <= half + 1e-7
        assert values.std(0) == pytest.approx([half / math.sqrt(3)] * 2, rel=0.12)
    for _ in range(10):
        *_, info = env.step(torch.cat([torch.zeros(256, env.single_action_space.shape[0] - 1), -torch.ones(256, 1)], 1))
    assert info["is_held"].all() and not info["is_felt"].any() and not info["success"].any()


def outside_forces(env: manikin.Env, row: int) -> list[np.ndarray]:
    """Forces [N] in the world of the contacts between the peg and what is no part of the robot, from MuJoCo."""
    model, data = env.world.data(row)
    peg, found, wrench = model.body("peg").id, [], np.zeros(6)
    for number, contact in enumerate(data.contact):
        bodies = set(model.geom_bodyid[contact.geom].tolist())
        if peg in bodies and not any("/" in model.body(body).name for body in bodies):
            mujoco.mj_contactForce(model, data, number, wrench)
            found.append(contact.frame.reshape(3, 3).T @ wrench[:3])
    return found


def test_fingertips_carry_what_the_block_presses_with_less_the_weight() -> None:
    env = make("TactilePeg-v1", 8, {"search": "none"})
    env.reset(seed=3)
    expert = WaypointExecutor(env)
    for _ in range(100):
        env.step(expert.act())
    compared = 0
    for row in range(8):
        up = -float(env.world.data(row)[0].body("peg").mass[0]) * 9.81
        up += sum(abs(force[2]) for force in outside_forces(env, row))
        felt = float(env.task.prints(env.h)[1][row, :, 1].sum())
        if up > 2.0 and felt > 2.0:
            assert felt == pytest.approx(up, rel=0.02)
            compared += 1
    assert compared >= 4


@pytest.mark.parametrize("task", TASKS)
def test_touch_finds_holes_that_are_missed_without(task: str) -> None:
    rate = {
        (search, error): torch.stack(played(task, search, error).success).any(0).float().mean()
        for search, error in (("touch", 0.004), ("none", 0.004), ("none", 0.0))
    }
    assert rate["touch", 0.004] >= 0.9
    assert rate["none", 0.004] <= 0.2
    assert rate["none", 0.0] >= 0.9


@pytest.mark.parametrize("task", TASKS)
def test_reward_and_success_are_what_they_say(task: str) -> None:
    run = played(task, "touch", 0.004)
    seen = set()
    for reward, terms, success, away in zip(run.reward, run.terms, run.success, run.away, strict=True):
        torch.testing.assert_close(sum(terms.values()), reward, rtol=1e-6, atol=1e-6)
        for row in (0, 7, 15):
            x, y, z = away[row].double().tolist()
            near = 1 - math.tanh(200 * math.hypot(x, y))
            depth = 1 - min(max(z / HOLE_DEPTH, 0.0), 1.0)
            expected = 3.0 if success[row] else near + depth
            assert float(reward[row]) == pytest.approx(expected, abs=1e-4)
            if success[row]:
                assert z < 0.003 and math.hypot(x, y) < 0.003
            seen.add(bool(success[row]))
    assert seen == {False, True}


@pytest.mark.parametrize("search", ["touch", "spiral", "none"])
def test_no_expert_looks_at_the_hole(search: str) -> None:
    """While nothing is felt, actions do not depend on where the hole really is."""
    one, other = (make("TactilePeg-v1", 4, {"search": search, "error": error}) for error in (0.0, 0.006))
    acts = []
    for env in (one, other):
        env.reset(seed=7)
        acts.append(WaypointExecutor(env))
    assert not torch.equal(one.h.block.pos, other.h.block.pos)
    assert torch.equal(one.h.said.value, other.h.said.value)
    steps = 0
    while not any(outside_forces(env, row) for env in (one, other) for row in range(4)):
        steps += 1
        actions = [act.act() for act in acts]
        assert torch.equal(*actions)
        for env, action in zip((one, other), actions, strict=True):
            env.step(action)
    assert 5 <= steps < 40


def test_another_search_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="none, spiral, touch"):
        make("TactilePeg-v1", 1, {"search": "eyes"})


def test_the_published_comparison_has_every_cell() -> None:
    cells = json.loads((ROOT / "benchmarks" / "results" / "tactile.json").read_text())["cells"]
    for task in TASKS:
        for search in ("touch", "spiral", "none"):
            assert {"0", "1", "2", "4", "6"} == set(cells[task][search])
        assert cells[task]["touch"]["4"]["low"] > cells[task]["none"]["4"]["high"]
