"""The tasks for two arms: solved by their experts; rewards and success are the published ones, written a second time in
``robosuite_rules.py`` and computed here from MuJoCo's own state and contacts."""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.author.contracts import any_batch_size, start_anywhere
from manikin.author.under_test import TaskUnderTest, calls_of_a_step
from manikin.env.registry import task_class
from manikin.math import pose, quat_from_euler, quat_rotate
from manikin.plan.executor import WaypointExecutor
from manikin.props.hammer import hammers
from robosuite_rules import REFERENCE

# control steps in which the expert is done, rows it must solve of four, torch calls of a step, largest reward
ROWS = 4
TASKS = {
    "TwoArmHandover-v2": (350, 3, 190, 2.0),
    "TwoArmLift-v3": (75, 4, 160, 3.0),
    "TwoArmPegInHole-v2": (75, 4, 150, 5.0),
}


def _make(task: str, num_envs: int, **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    return manikin.make(task, num_envs=num_envs, **options)


@functools.cache
def _episodes(task: str, policy: str) -> SimpleNamespace:
    env = _make(task, ROWS)
    _, info = env.reset(seed=1000)
    out = SimpleNamespace(env=env, start=info, reward=[], terms=[], success=[], states=[])
    expert, rng = WaypointExecutor(env), torch.Generator().manual_seed(1)
    for k in range(TASKS[task][0] if policy == "expert" else 20):
        random = torch.rand(ROWS, env.single_action_space.shape[0], generator=rng) * 2 - 1
        _, reward, _, _, info = env.step(expert.act() if policy == "expert" else random)
        out.reward.append(reward)
        out.terms.append(info["reward_terms"])
        out.success.append(info["success"])
        for row in range(ROWS):
            if k % 3 == row % 3:
                out.states.append((_state(env, row), reward[row].item(), bool(info["success"][row])))
    return out


def _state(env: manikin.Env, row: int) -> SimpleNamespace:
    """Positions of bodies and TCPs, and which finger pushes on which geom, from MuJoCo."""
    model, data = env.world.data(row)
    force, touching = np.zeros(6), set()
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force)
        if np.any(force):
            one, two = data.contact[i].geom
            for a, b in ((one, two), (two, one)):
                touching.add((model.body(model.geom_bodyid[a]).name, model.geom(b).name))

    geoms = {model.geom(i).name: model.geom_size[i].copy() for i in range(model.ngeom)}
    hammer = [n for n in geoms if n.startswith("hammer/")]
    parts = [hammer, hammer[:1]] if hammer else [[f"pot/{i}" for i in range(5 + 3 * k, 8 + 3 * k)] for k in (0, 1)]

    def held(k: int) -> bool:
        robot = env.robots[k]
        fingers = [robot.prefix + f.body for f in robot.gripper.fingers]
        return all(any((finger, geom) in touching for geom in parts[k]) for finger in fingers)

    return SimpleNamespace(
        pos={model.body(i).name: data.xpos[i].copy() for i in range(model.nbody)},
        rot={model.body(i).name: data.xmat[i].reshape(3, 3).copy() for i in range(model.nbody)},
        tcp=[data.body(r.prefix + r.model.tcp_body).xpos.copy() for r in env.robots],
        size=[geoms[hammer[0]][0], geoms[hammer[0]][2], geoms[hammer[1]][1]] if hammer else [],
        held=held,
    )


@pytest.mark.parametrize("task", TASKS)
def test_expert_solves_and_chance_does_not(task: str) -> None:
    solved = torch.stack(_episodes(task, "expert").success).any(0)
    assert solved.sum() >= TASKS[task][1]
    assert not torch.stack(_episodes(task, "random").success).any()
    assert not _episodes(task, "random").start["success"].any()


@pytest.mark.parametrize("policy", ["expert", "random"])
@pytest.mark.parametrize("task", TASKS)
def test_reward_and_success_are_the_published_ones(task: str, policy: str) -> None:
    run = _episodes(task, policy)
    env, most = run.env, TASKS[task][3]
    assert (env.horizon, env.control_hz, env.physics_hz, env.terminates) == (500, 20.0, 100.0, False)
    assert env.task.reward_max == most
    for reward, terms in zip(run.reward, run.terms, strict=True):
        assert set(terms) == set(env.task.reward_terms)
        assert ((reward >= 0) & (reward <= most * (1 + 1e-6))).all()
        torch.testing.assert_close(sum(terms.values()), reward, rtol=1e-6, atol=1e-6)
    flickers, seen = 0, set()
    for state, reward, success in run.states:
        expected, solved = REFERENCE[task](state)
        # the environment's contacts are those of the last physics step: a touch may just have begun or ended
        if bool(solved) != success or abs(reward - expected) > 2e-4:
            flickers += 1
        seen.add((round(float(expected), 1), bool(solved)))
    assert flickers <= 0.03 * len(run.states)
    if policy == "expert":
        assert {solved for _, solved in seen} == {False, True}
        assert len(seen) >= 4  # several stages were met


@pytest.mark.parametrize("task", TASKS)
def test_torch_calls_of_a_step(task: str) -> None:
    calls = calls_of_a_step(manikin.make(task, num_envs=1, autoreset="disabled"))
    assert calls.count <= TASKS[task][2]


@pytest.mark.parametrize("promise", [start_anywhere, any_batch_size])
@pytest.mark.parametrize("task", TASKS)
def test_rows_do_not_depend_on_one_another(task: str, promise: Any) -> None:
    promise(TaskUnderTest(task_class(task), {}, 3, range(3), None))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("robot", "arrangement"), [("baxter", "opposed"), ("panda,sawyer", "parallel")])
def test_other_robots_and_arrangements_run(task: str, robot: str, arrangement: str) -> None:
    env = _make(task, 1, robot=robot, config={"arrangement": arrangement})
    env.reset(seed=0)
    for _ in range(3):
        *_, info = env.step(torch.zeros(1, env.controller.card.size))
    assert not info["health"].any()
    bases = [r.base_pose[:3] for r in env.robots]
    if robot == "baxter":
        assert torch.equal(*bases)
    else:
        assert bases[0][0] == bases[1][0] and bases[0][1] == -bases[1][1] < 0


# ---- success of states made by hand ----------------------------------------------------------------------------------


def _judge(env: manikin.Env) -> dict[str, torch.Tensor]:
    env.world.forward()
    with torch.no_grad():
        ev = env.task.evaluate(env.h)
        return {**ev, "reward": sum(env.task.reward(env.h, ev, torch.zeros(1)).values())}


def test_pot_is_lifted_by_ten_centimetres_and_flat() -> None:
    env = _make("TwoArmLift-v3", 4)
    env.reset(seed=0)
    pos = torch.tensor([[0.0, 0.0, 0.07 + z] for z in (0.0999, 0.1001, 0.2, 0.2)])
    tilt = torch.tensor([0.0, 0.0, math.radians(29), math.radians(31)])
    env.h.pot.set_pose(pos, quat_from_euler(torch.stack([tilt, tilt * 0, tilt * 0], 1)))
    found = _judge(env)
    assert found["success"].tolist() == [False, True, True, True]
    torch.testing.assert_close(found["reward"][1:], torch.tensor([3.0, 3.0, 0.0]))


def test_pot_stands_within_its_square_and_turn() -> None:
    env = _make("TwoArmLift-v3", 64)
    env.reset(seed=0)
    assert env.h.pot.pos[:, :2].abs().max() <= 0.03 and env.h.pot.pos[:, :2].std(0).min() > 0.01
    turn = 2 * torch.atan(env.h.pot.quat[:, 3] / env.h.pot.quat[:, 0])
    assert turn.abs().max() <= math.pi / 3 and turn.std() > 0.4
    walls, handles = 0.14**2 * 0.01 + 4 * 0.14**2 * 0.01, 2 * (0.11 * 0.02**2 + 2 * 0.02 * 0.09 * 0.02)
    assert env.scene.model.body("pot").mass[0] == pytest.approx(1000 * (walls + handles), rel=1e-6)


def test_peg_is_in_the_hole_from_the_published_offsets_on() -> None:
    env = _make("TwoArmPegInHole-v2", 6)
    env.reset(seed=0)
    (_, hold), (through, _) = env.task.expert(env.h)[0], env.task.expert(env.h)[1]
    two = env.robots[1].ik(hold.pose)
    env.robots[1].set_qpos(two.q.float())
    axis = quat_rotate(through.pose[:, 3:], torch.tensor([[0.0, 0.0, 1.0]]).expand(6, 3))
    side = torch.tensor([[1.0, 0.0, 0.0]]).expand(6, 3)  # of the plate's hole, which the rule has 1 cm off
    along = torch.tensor([0.137, 0.143, -0.117, -0.123, 0.0, 0.0])[:, None]
    aside = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.045, 0.075])[:, None]
    pos = through.pose[:, :3] + axis * (0.03 - along) + side * aside
    one = env.robots[0].ik(pose(pos, through.pose[:, 3:]))
    assert one.reached.all() and two.reached.all()
    env.robots[0].set_qpos(one.q.float())
    assert _judge(env)["success"].tolist() == [True, False, True, False, True, False]


def test_peg_has_its_radius_and_hangs_on_the_flange() -> None:
    env = _make("TwoArmPegInHole-v2", 64)
    env.reset(seed=0)
    size = env.h.peg.size
    assert (size[:, 0] >= 0.015).all() and (size[:, 0] <= 0.03).all() and size[:, 0].std() > 0.003
    model, _ = env.world.data(7)
    radius = float(size[7, 0])
    assert model.body("peg").mass[0] == pytest.approx(1000 * math.pi * radius**2 * 0.26, rel=1e-5)
    assert model.body("plate").mass[0] == pytest.approx(1000 * 0.02 * (2 * 0.12 * 0.34 + 2 * 0.1 * 0.12), rel=1e-6)
    axis = quat_rotate(env.h.peg.quat, torch.tensor([[0.0, 0.0, 1.0]]).expand(64, 3))
    torch.testing.assert_close(env.h.peg.pos, env.robots[0].tcp_pos + 0.13 * axis, atol=1e-5, rtol=0)


def test_hammer_counts_as_lifted_by_the_published_height() -> None:
    env = _make("TwoArmHandover-v2", 3)
    env.reset(seed=0)
    edge, expected = [], []
    for row, angle in enumerate((0.0, 0.5, -0.5)):  # of the head above the handle
        model, _ = env.world.data(row)
        (radius, _, half), size = model.geom("hammer/shape/box0").size, model.geom("hammer/shape/box1").size[1]
        edge.append(0.1 + radius + (half + 2 * size) * math.sin(angle))
        expected.append(angle)
    turn = math.pi / 2 - torch.tensor(expected)
    quat = quat_from_euler(torch.stack([turn * 0, turn, turn * 0], 1))
    for more, lifted in ((-1e-3, False), (1e-3, True)):
        env.h.hammer.set_pose(torch.tensor([[0.0, 0.5, z + more] for z in edge]), quat)
        found = _judge(env)
        assert found["is_lifted"].tolist() == [lifted] * 3 and not found["success"].any()


def test_hammers_lie_still_at_the_start() -> None:
    env = _make("TwoArmHandover-v2", 16)
    env.reset(seed=0)
    before, turned = env.h.hammer.pos.clone(), env.h.hammer.quat.clone()
    for _ in range(10):
        *_, info = env.step(torch.zeros(16, env.single_action_space.shape[0]))
    assert (env.h.hammer.pos - before).abs().max() < 6e-3 and not info["is_lifted"].any()
    assert ((env.h.hammer.quat * turned).sum(1).abs() > math.cos(math.radians(3))).all()


def test_hammers_fill_the_published_ranges() -> None:
    kinds = hammers(64)
    for name, low, high in (("radius", 0.015, 0.02), ("length", 0.1, 0.25), ("density", 100, 250), ("friction", 3, 5)):
        values = np.array([getattr(kind, name) for kind in kinds])
        assert low <= values.min() < low + 0.05 * (high - low) and high - 0.05 * (high - low) < values.max() <= high
    ratio = np.array([kind.head / kind.radius for kind in kinds])
    assert ratio.min() >= 1 and ratio.max() <= 1.2 and ratio.std() > 0.04
    env = _make("TwoArmHandover-v2", 8)
    env.reset(seed=0)
    for row in range(8):
        kind, model = kinds[int(env.h.hammer.choice[row])], env.world.data(row)[0]
        assert model.geom("hammer/shape/box0").friction[0] == pytest.approx(kind.friction)
        r, s = kind.radius, kind.head
        handle = 4 * r * r * kind.length
        head = 16 * s**3 + math.pi * s**3 * (0.4 * 0.64 + 0.8) + 8 * 0.5 * 0.95 * s**3
        assert model.body("hammer").mass[0] == pytest.approx(kind.density * (handle + 2 * head), rel=1e-4)
