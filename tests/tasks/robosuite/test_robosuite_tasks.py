"""The tasks after robosuite: solved by their experts, and their rewards and success those of the published rules, which
``robosuite_rules.py`` writes a second time, from MuJoCo's own state and contacts."""

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
from manikin.arenas.two_bins import FROM, QUARTERS
from manikin.author.under_test import calls_of_a_step
from manikin.math import quat_from_yaw, quat_mul, quat_rotate, quat_to_yaw
from manikin.plan.executor import WaypointExecutor
from manikin.props.groceries import GROCERIES
from manikin.sim.dots import dot_groups
from manikin.tasks.robosuite.pick_place import PickPlaceMilk
from robosuite_rules import REFERENCE

# of each task: control steps in which its expert is done, how many of the rows it must solve, torch calls of a step
ROWS = 4
H = 0.5**0.5
TASKS = {
    "Door-v2": (125, 4, 60),
    "Lift-v2": (40, 4, 70),
    "NutAssembly-v4": (400, 4, 140),
    "NutAssemblyRound-v4": (180, 4, 120),
    "NutAssemblySquare-v4": (180, 3, 120),
    "PickPlace-v2": (400, 3, 160),
    "PickPlaceBread-v2": (110, 3, 120),
    "PickPlaceCan-v2": (110, 3, 120),
    "PickPlaceCereal-v2": (110, 3, 120),
    "PickPlaceMilk-v2": (110, 3, 120),
    "Stack-v2": (80, 4, 100),
}


def _make(task: str, num_envs: int, **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    return manikin.make(task, num_envs=num_envs, **options)


@functools.cache
def _episodes(task: str, policy: str) -> SimpleNamespace:
    steps = TASKS[task][0] if policy == "expert" else 25
    env = _make(task, ROWS)
    observation, info = env.reset(seed=1000)
    out = SimpleNamespace(env=env, start=info, observation=observation, reward=[], terms=[], success=[], states=[])
    expert, rng = WaypointExecutor(env), torch.Generator().manual_seed(1)
    for k in range(steps):
        random = torch.rand(ROWS, env.single_action_space.shape[0], generator=rng) * 2 - 1
        _, reward, _, _, info = env.step(expert.act() if policy == "expert" else random)
        out.reward.append(reward)
        out.terms.append(info["reward_terms"])
        out.success.append(info["success"])
        if k % 3 == 0:
            row = (k // 3) % ROWS
            out.states.append((_state(env, row, info), reward[row].item(), bool(info["success"][row])))
    return out


def _state(env: manikin.Env, row: int, info: dict[str, Any]) -> SimpleNamespace:
    """Positions of bodies and TCP, and which pairs of bodies push on each other, from MuJoCo.

    The environment's contacts are those of the last substep, half a millimetre earlier: ``flags`` is what it saw.
    """
    model, data = env.world.data(row)
    force, touching = np.zeros(6), set()
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force)
        if np.any(force):
            pair = [model.body(model.geom_bodyid[g]).name for g in data.contact[i].geom]
            touching |= {tuple(pair), tuple(pair[::-1])}
    fingers = [env.robot.prefix + f.body for f in env.robot.gripper.fingers]
    return SimpleNamespace(
        pos={model.body(i).name: data.xpos[i].copy() for i in range(model.nbody)},
        rot={model.body(i).name: data.xmat[i].reshape(3, 3).copy() for i in range(model.nbody)},
        tcp=data.body(env.robot.prefix + env.robot.model.tcp_body).xpos.copy(),
        touching=touching,
        held=lambda thing: all((f, thing) in touching for f in fingers),
        fingered=lambda thing: any((f, thing) in touching for f in fingers),
        joint=lambda name: float(data.joint(name).qpos[0]),
        handle=data.site("door/handle").xpos.copy() if env.task.id == "Door-v2" else None,
        flags=[bool(v[row]) for k, v in info.items() if k.endswith("_grasped")],
    )


THINGS = {
    "Lift-v2": ("cube",),
    "NutAssembly-v4": ("square", "round"),
    "NutAssemblyRound-v4": ("round",),
    "NutAssemblySquare-v4": ("square",),
    "PickPlace-v2": ("milk", "bread", "cereal", "can"),
    "PickPlaceBread-v2": ("bread",),
    "PickPlaceCan-v2": ("can",),
    "PickPlaceCereal-v2": ("cereal",),
    "PickPlaceMilk-v2": ("milk",),
    "Stack-v2": ("red",),
}


# ---- every task ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_expert_solves_and_chance_does_not(task: str) -> None:
    solved = torch.stack(_episodes(task, "expert").success).any(0)
    assert solved.sum() >= TASKS[task][1]
    assert not torch.stack(_episodes(task, "random").success).any()


@pytest.mark.parametrize("task", TASKS)
def test_rates_and_scales_are_the_published_ones(task: str) -> None:
    env = _episodes(task, "random").env
    assert (env.horizon, env.control_hz, env.physics_hz, env.terminates) == (500, 20.0, 100.0, False)
    most = {"Lift-v2": 2.25, "Stack-v2": 2.0, "PickPlace-v2": 4.0, "NutAssembly-v4": 2.0}
    assert env.task.reward_max == most.get(task, 1.0)


@pytest.mark.parametrize("policy", ["expert", "random"])
@pytest.mark.parametrize("task", TASKS)
def test_reward_and_success_are_the_published_ones(task: str, policy: str) -> None:
    run = _episodes(task, policy)
    most = run.env.task.reward_max
    for reward, terms in zip(run.reward, run.terms, strict=True):
        assert set(terms) == set(run.env.task.reward_terms)
        assert ((reward >= 0) & (reward <= most * (1 + 1e-6))).all()
        torch.testing.assert_close(sum(terms.values()), reward, rtol=1e-6, atol=1e-6)
    seen, late = set(), 0
    for state, reward, success in run.states:
        expected, solved = REFERENCE[task](state)
        if reward != pytest.approx(float(expected), abs=2e-4) and state.flags:  # a finger met or left within a substep
            flags = dict(zip(THINGS[task], state.flags, strict=True))
            expected, solved = REFERENCE[task](SimpleNamespace(**{**vars(state), "held": flags.__getitem__}))
            late += 1
        assert bool(solved) == success
        assert reward == pytest.approx(float(expected), abs=2e-4)
        seen.add((round(float(expected), 1), bool(solved)))
    assert late <= math.ceil(len(run.states) / 40)
    if policy == "expert":
        assert {solved for _, solved in seen} == {False, True}
        assert len(seen) >= 3  # several stages were met
        done, paid = torch.stack(run.success), torch.stack(run.reward)
        torch.testing.assert_close(paid[done], torch.full_like(paid[done], most))
        assert paid[~done].max() < most


@pytest.mark.parametrize("task", TASKS)
def test_no_task_starts_successful_and_every_observation_has_a_unit(task: str) -> None:
    run = _episodes(task, "random")
    assert not run.start["success"].any()
    seen = {name for group in run.observation.values() for name in group} - {"qpos", "qvel"}
    assert seen == set(run.env.task.observations)
    assert all(q.unit for q in run.env.task.observations.values())


@pytest.mark.parametrize("task", TASKS)
def test_torch_calls_of_a_step(task: str) -> None:
    calls = calls_of_a_step(manikin.make(task, num_envs=1, autoreset="disabled"))
    assert calls.count <= TASKS[task][2]


# ---- single tasks --------------------------------------------------------------------------------------------------


def _judge(env: manikin.Env) -> torch.Tensor:
    env.world.forward()
    with torch.no_grad():
        return env.task.evaluate(env.h)["success"]


def _put(part: Any, rows: list[tuple[float, float, float]]) -> None:
    part.set_pose(torch.tensor(rows))


def test_cube_is_lifted_above_four_centimetres() -> None:
    env = _make("Lift-v2", 3)
    env.reset(seed=0)
    _put(env.h.cube, [(0.2, 0.2, 0.0399), (0.2, 0.2, 0.0401), (0.2, 0.2, 0.3)])
    assert _judge(env).tolist() == [False, True, True]


def test_cubes_of_lift_have_three_sides_of_their_own() -> None:
    env = _make("Lift-v2", 64)
    env.reset(seed=0)
    size = env.h.cube.size
    assert (size >= 0.020).all() and (size <= 0.022).all() and size.std(0).min() > 3e-4
    torch.testing.assert_close(env.h.cube.pos[:, 2], size[:, 2] + 0.01)  # and fall on the table
    assert env.h.cube.pos[:, :2].abs().max() <= 0.03
    model = env.world.data(5)[0]
    assert model.body("cube").mass[0] == pytest.approx(8000 * float(size[5].prod()), rel=1e-5)


def test_stacked_means_resting_on_the_other_cube_and_let_go() -> None:
    env = _make("Stack-v2", 4)
    env.reset(seed=0)
    _put(env.h.green, [(0.2, 0.2, 0.025)] * 4)
    # on it, above it in the air, beside it on the table, on it but off centre
    _put(env.h.red, [(0.2, 0.2, 0.0699), (0.2, 0.2, 0.09), (0.1, 0.2, 0.02), (0.22, 0.2, 0.0699)])
    assert _judge(env).tolist() == [True, False, False, True]
    tcp = env.h.robot.tcp_pos.clone()
    tcp[:, 2] -= 0.002
    env.h.red.set_pose(tcp)  # between the open fingers of a hand in the air
    env.h.green.set_pose(tcp - torch.tensor([0.0, 0.0, 0.0449]))
    assert _judge(env).all()
    env.h.robot.set_qpos(env.h.robot.arm_qpos.clone(), opening=0.45)  # closed on it
    env.world.forward()
    with torch.no_grad():
        ev = env.task.evaluate(env.h)
    assert ev["is_grasped"].all() and not ev["success"].any()


def test_can_counts_in_its_own_quarter_low_and_let_go() -> None:
    env = _make("PickPlaceCan-v2", 7)
    env.reset(seed=0)
    x, y = QUARTERS[3]
    edge = (0.1, 0.28)  # where the four quarters meet
    rows = [(x, y, 0.06), (x, y, 0.11), (x, y, -0.01), (edge[0] + 0.001, edge[1] + 0.001, 0.06)]
    rows += [(edge[0] - 0.001, edge[1] + 0.001, 0.06), (0.1 + 0.1949, 0.28 + 0.2449, 0.06), (*QUARTERS[0], 0.06)]
    _put(env.h.parts[0], rows)
    assert _judge(env).tolist() == [True, False, False, True, False, True, False]


def test_a_thing_is_let_go_of_where_the_published_reach_falls_below_six_tenths() -> None:
    env = _make("PickPlaceCan-v2", 2)
    env.reset(seed=0)
    aim = torch.tensor([QUARTERS[3][0] - 0.05, QUARTERS[3][1] - 0.06, 0.12])
    found = env.h.robot.ik(torch.cat([aim, torch.tensor([0.0, 1.0, 0.0, 0.0])]).expand(2, 7))
    env.h.robot.set_qpos(found.q.float())
    env.world.forward()
    tcp = env.h.robot.tcp_pos.clone()
    edge = math.atanh(0.4) / 10  # [m]
    _put(env.h.parts[0], [(*tcp[0, :2].tolist(), float(tcp[0, 2]) - d) for d in (edge - 1e-3, edge + 1e-3)])
    assert (env.h.parts[0].pos[:, 2] < 0.1).all()
    assert _judge(env).tolist() == [False, True]


def test_groceries_start_inside_the_first_bin_and_apart() -> None:
    env = _make("PickPlace-v2", 64)
    env.reset(seed=0)
    pos = torch.stack([p.pos for p in env.h.parts], 1)
    radius = torch.tensor([0.0280, 0.03124, 0.0522, 0.025])
    off = (pos[..., :2] - torch.tensor([0.1, -0.25])).abs()
    assert (off <= torch.tensor([0.145, 0.195]) - radius[:, None] + 1e-4).all()
    for i in range(4):
        for j in range(i):
            assert ((pos[:, i] - pos[:, j])[:, :2].norm(dim=1) >= radius[i] + radius[j] - 1e-3).all()
    env.step(torch.zeros(64, 8))
    assert all(p.linvel.norm(dim=1).max() < 0.02 for p in env.h.parts)  # they stand
    masses = [env.world.data(0)[0].body(n).mass[0] for n in ("milk", "bread", "cereal", "can")]
    volumes = [0.0396**2 * 0.144, 0.048 * 0.04 * 0.048, 0.03 * 0.1 * 0.15, math.pi * 0.025**2 * 0.08]
    assert masses == pytest.approx([d * v for d, v in zip((100, 50, 150, 100), volumes, strict=True)], rel=1e-3)


def test_what_fell_over_is_taken_as_it_lies() -> None:
    class Fallen(PickPlaceMilk):
        def start(self, h: Any, ep: manikin.Episode) -> None:
            super().start(h, ep)
            flat = quat_mul(quat_from_yaw(ep.rng.uniform("fallen", -3.0, 3.0)), torch.tensor([H, H, 0.0, 0.0]))
            spot = torch.tensor([FROM]) + ep.rng.uniform("spot", -0.06, 0.06, (2,))
            h.parts[0].set_pose(torch.cat([spot, torch.full((h.n, 1), 0.042)], 1), flat)

    env = manikin.make(Fallen, 3, autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=[0, 1, 2])
    lie = env.task.as_they_lie(env.h)
    across, along, high = GROCERIES["milk"].half  # it was turned about x, so its y is vertical now
    assert torch.allclose(lie.half[:, 0], torch.tensor([high, across, along]), atol=1e-6)
    upright = quat_rotate(env.h.parts[0].quat, torch.tensor([[0.0, 0.0, 1.0]]).expand(3, 3))
    assert torch.allclose(lie.yaw[:, 0], torch.atan2(upright[:, 1], upright[:, 0]), atol=1e-6)
    expert, solved = WaypointExecutor(env), torch.zeros(3, dtype=torch.bool)
    for _ in range(160):
        *_, info = env.step(expert.act())
        solved |= info["success"]
    assert solved.all()


def test_what_is_carried_passes_above_what_stands_in_the_bin() -> None:
    env = manikin.make("PickPlace-v2", 2, autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=[1028, 1059])  # of these the milk stands on the way of the cereal
    expert, milk = WaypointExecutor(env), env.h.parts[0]
    for _ in range(90):
        env.step(expert.act())
    assert (env.h.parts[2].pos[:, 1] > 0.3).all(), "the cereal is in the other bin"
    assert (milk.pos[:, 2] > 0.09).all(), "the milk still stands"


@pytest.mark.parametrize(("task", "y"), [("NutAssemblySquare-v4", 0.1), ("NutAssemblyRound-v4", -0.1)])
def test_nut_counts_around_its_peg_and_low(task: str, y: float) -> None:
    env = _make(task, 6)
    env.reset(seed=0)
    x = 0.23
    rows = [(x, y, 0.02), (x + 0.029, y - 0.029, 0.02), (x + 0.031, y, 0.02), (x, y + 0.031, 0.02), (x, y, 0.051)]
    _put(env.h.parts[0], [*rows, (x, -y, 0.02)])
    assert _judge(env).tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize("task", ["NutAssemblySquare-v4", "NutAssemblyRound-v4"])
def test_nut_falls_over_its_peg_and_only_there(task: str) -> None:
    """Dropped over the peg's middle it slides down to the table; held to the peg's edge it stays on top."""
    env = _make(task, 2)
    env.reset(seed=0)
    x, y = (0.23, 0.1 if task == "NutAssemblySquare-v4" else -0.1)
    _put(env.h.parts[0], [(x, y, 0.15), (x + 0.04, y, 0.15)])
    hold = torch.zeros(2, 8)
    for _ in range(16):
        env.step(hold)
    height = env.h.parts[0].pos[:, 2]
    assert height[0] == pytest.approx(0.01, abs=1e-3)
    assert height[1] > 0.05 or (env.h.parts[0].pos[1, :2] - torch.tensor([x, y])).norm() > 0.03


def test_nuts_start_in_their_strips() -> None:
    env = _make("NutAssembly-v4", 64)
    env.reset(seed=0)
    for part, low, high in zip(env.h.parts, (0.11, -0.225), (0.225, -0.11), strict=True):
        assert (part.pos[:, 0] >= -0.115).all() and (part.pos[:, 0] <= -0.11).all()
        assert (part.pos[:, 1] >= low).all() and (part.pos[:, 1] <= high).all()
        assert part.pos[:, 1].max() - part.pos[:, 1].min() > 0.1


def test_door_opens_beyond_three_tenths() -> None:
    env = _make("Door-v2", 3)
    env.reset(seed=0)
    env.h.door.set_qpos(torch.tensor([[0.299, 1.5], [0.301, 0.0], [0.4, 0.0]]))
    assert _judge(env).tolist() == [False, True, True]
    seen = env.task.observe(env.h)["privileged"]
    torch.testing.assert_close(seen["hinge"][:, 0], torch.tensor([0.299, 0.301, 0.4]))
    torch.testing.assert_close(seen["latch"][:, 0], torch.tensor([1.5, 0.0, 0.0]))


def test_latch_holds_the_door_until_the_lever_is_turned() -> None:
    for latch, free in ((True, [False, True]), (False, [True, True])):
        env = _make("Door-v2", 2, config={"latch": latch})
        env.reset(seed=0)
        speed = torch.zeros(2, len(env.h.door.joints))
        speed[:, 0] = 3.0  # [rad/s] pushed open; the first with the lever at rest, the second with it turned
        if latch:
            env.h.door.set_qpos(torch.tensor([[0.0, 0.0], [0.0, 1.5]]))
        env.h.door.set_qpos(env.h.door.qpos.clone(), speed)
        most = torch.zeros(2)
        for _ in range(8):
            env.step(torch.zeros(2, 8))
            most = torch.maximum(most, env.h.door.qpos[:, 0])
        assert (most > 0.3).tolist() == free
        assert most[0] < 0.1 or not latch


def test_doors_stand_where_they_are_published_to() -> None:
    env = _make("Door-v2", 64)
    env.reset(seed=0)
    middle = env.h.door.places[:, 0]  # robosuite's origin is 0.08 m from there, along the door
    turn = quat_to_yaw(env.h.place.value[:, 3:]) + math.pi / 2
    turn = turn - 2 * math.pi * (turn > 0)
    origin = middle[:, :2] - 0.08 * torch.stack([torch.sin(turn), -torch.cos(turn)], 1)
    assert ((origin[:, 0] + 0.2 >= 0.07) & (origin[:, 0] + 0.2 <= 0.09)).all()
    assert ((origin[:, 1] + 0.35).abs() <= 0.01 + 1e-6).all()
    assert ((turn >= -math.pi / 2 - 0.25 - 1e-5) & (turn <= -math.pi / 2 + 1e-5)).all()
    assert turn.max() - turn.min() > 0.2
    torch.testing.assert_close(middle[:, 2], torch.full((64,), 0.3))


def _under(env: manikin.Env) -> torch.Tensor:
    """(n, marks) bool: the mark is inside the rectangle of the eraser's face and within 2 cm of it, from MuJoCo."""
    out = []
    for row in range(env.num_envs):
        data = env.world.data(row)[1]
        tcp = data.body(env.robot.prefix + env.robot.model.tcp_body)
        local = (env.h.dirt.pos[row].double().numpy() - tcp.xpos) @ tcp.xmat.reshape(3, 3)
        out.append((np.abs(local) < [0.025, 0.06, 0.02]).all(1))
    return torch.from_numpy(np.stack(out))


def test_wiping_is_the_published_rule_and_reward() -> None:
    env = _make("Wipe-v2", 3)
    env.reset(seed=0)
    expert, wiped, stages = WaypointExecutor(env), torch.zeros(3, 50, dtype=torch.bool), set()
    for _ in range(90):
        _, reward, _, _, info = env.step(expert.act())
        force = env.h.eraser_force.value.norm(dim=1)
        new = _under(env) & ~wiped & (force > 0)[:, None]
        wiped |= new
        assert torch.equal(~env.h.dirt.shown, wiped)
        left = ~wiped
        for row in range(3):
            expected = 50.0 * int(new[row].sum()) + 0.01 * bool(force[row] > 3)
            expected -= 0.01 * float(force[row]) * bool(force[row] > 70)
            if left[row].any():
                away = (env.h.dirt.pos[row][left[row]] - env.h.robot.tcp_pos[row]).norm(dim=1)
                expected += 5 * (1 - math.tanh(5 * float(away.mean())))
            else:
                expected += 25.5
            assert not info["is_unsafe"][row]
            assert float(reward[row]) == pytest.approx(expected, abs=2e-3)
            assert bool(info["success"][row]) == (not left[row].any())
            stages.add((int(new[row].sum()) > 0, bool(force[row] > 0), not left[row].any()))
    assert info["success"].all() and len(stages) >= 4
    norm = _make("Wipe-v2", 1, reward="normalized_dense")
    norm.reset(seed=0)
    plain = _make("Wipe-v2", 1)
    plain.reset(seed=0)
    still = torch.zeros(1, 7)
    ratio = float(norm.step(still)[1] / plain.step(still)[1])
    assert ratio == pytest.approx(500 / (50 * 50 + 500 * (0.01 + 25.5)), rel=1e-5)


def test_wiping_with_the_arm_or_at_a_joint_limit_costs_ten() -> None:
    assert _make("Wipe-v2", 1).task.config.limit_margin == 0.1
    env = _make("Wipe-v2", 3, config={"limit_margin": 0.05})  # [rad] so that the arm can lean down to the table
    env.reset(seed=0)
    rest = env.h.robot.arm_qpos.clone()
    low = env.h.robot.limits[:7, 0]
    rest[0, 5] = low[5] + 0.04  # [rad] near its limit
    rest[1, 5] = low[5] + 0.06
    rest[2, 1], rest[2, 3] = 1.7, -1.4  # the wrist in the table
    env.h.robot.set_qpos(rest)
    env.world.forward()
    with torch.no_grad():
        ev = env.task.evaluate(env.h)
        terms = env.task.reward(env.h, ev, torch.zeros(3, 7))
    assert ev["is_unsafe"].tolist() == [True, False, True]
    assert env.h.arm_force.value[2].norm() > 1.0
    total = sum(terms.values())
    assert total[[0, 2]].tolist() == [-10.0, -10.0] and total[1] > 0


def test_dirt_is_a_trail_within_the_published_part_of_the_table() -> None:
    env = _make("Wipe-v2", 64)
    env.reset(seed=0)
    dirt = env.h.dirt.pos
    step = (dirt[:, 1:] - dirt[:, :-1])[..., :2].norm(dim=2)
    torch.testing.assert_close(step, torch.full_like(step, 0.005), atol=1e-6, rtol=0)
    assert (dirt[..., 0].abs() <= 0.3 * 0.6 - 0.02 + 1e-6).all() and (
        dirt[..., 1].abs() <= 0.4 * 0.6 - 0.02 + 1e-6
    ).all()
    assert dirt[:, 0, 1].abs().max() > 0.2 and (dirt[:, 0] - dirt[:, -1]).norm(dim=1).std() > 0.01
    (shown,) = dot_groups(env.world.data(3)[0])
    np.testing.assert_array_equal(shown.places[:, :3], dirt[3].numpy())
    assert shown.places[:, 3].all() and env.scene.model.nmocap == 0


def test_random_actions_do_not_wipe_the_table() -> None:
    env = _make("Wipe-v2", 4)
    _, info = env.reset(seed=0)
    rng = torch.Generator().manual_seed(0)
    for _ in range(40):
        assert not info["success"].any()
        *_, info = env.step(torch.rand(4, 7, generator=rng) * 2 - 1)
