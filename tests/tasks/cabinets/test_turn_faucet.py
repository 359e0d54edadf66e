"""TurnFaucet: a family that hangs together and stays shut, the published success, and the expert on every faucet."""

from __future__ import annotations

import itertools
import math

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.env.registry import task_class
from manikin.errors import UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.props.faucet import FAUCETS, SWITCHES, Faucet

KIND = task_class("TurnFaucet-v1")


def _one(layout: str, n: int = 1, seed: int = 0) -> manikin.Env:
    env = manikin.Env(
        KIND(arm="panda", layout=layout), num_envs=n, autoreset="disabled", terminate=False, observe="state_dict",
        reward="dense",
    )  # fmt: skip
    env.reset(seed=seed)
    return env


def test_there_are_two_dozen_different_ones_of_all_kinds() -> None:
    kinds = {(one.switch, one.front) for one in FAUCETS.values()}
    assert kinds == set(itertools.product(SWITCHES, (False, True)))
    assert len(FAUCETS) == len(set(FAUCETS.values())) == 24
    assert {one.sign for one in FAUCETS.values()} == {-1, 1}
    assert any(one.limits is None for one in FAUCETS.values()) and any(one.closed < 0 for one in FAUCETS.values())
    with pytest.raises(UnknownNameError, match="lever"):
        Faucet(switch="button", front=False, height=0.2, radius=0.02, reach=0.05, start=0.0, sign=1, limits=None,
               spout=0.0, spout_length=0.1, arched=False).build()  # fmt: skip


@pytest.mark.parametrize("name", FAUCETS)
def test_nothing_floats_and_nothing_is_in_the_table(name: str) -> None:
    """Shapes that touch or overlap are joined; from the foot all others are reached, however the switch is turned."""
    one, model = FAUCETS[name], FAUCETS[name].build().compile()
    data = mujoco.MjData(model)
    for q in (one.closed, one.opened(0.5), one.opened(1.0)):
        data.qpos[0] = q
        mujoco.mj_forward(model, data)
        near = np.array(
            [
                [mujoco.mj_geomDistance(model, data, a, b, 0.1, None) for b in range(model.ngeom)]
                for a in range(model.ngeom)
            ]
        )
        reached, new = set(), {0}
        while new:
            reached |= new
            new = {b for a in new for b in range(model.ngeom) if near[a, b] <= 0} - reached
        assert reached == set(range(model.ngeom))
        # lowest points: the foot is on z = 0, the rest above it
        low = data.geom_xpos[:, 2] - model.geom_rbound
        assert data.geom_xpos[0, 2] - model.geom_size[0, 1] == pytest.approx(0.0, abs=1e-9)
        spread = [g for g in range(2, model.ngeom) if low[g] < 0]
        for g in spread:
            radius, half = model.geom_size[g, :2]
            assert model.geom_type[g] == mujoco.mjtGeom.mjGEOM_CAPSULE
            assert data.geom_xpos[g, 2] - half * abs(data.geom_xmat[g, 8]) - radius > 0


@pytest.mark.parametrize("name", FAUCETS)
def test_it_opens_beyond_nine_tenths_of_the_range_or_at_a_quarter_turn(name: str) -> None:
    env = _one(name, 4)
    joint = env.scene.model.joint("faucet/switch")
    assert (joint.frictionloss[0], joint.damping[0]) == (0.1, 2.0)
    limited = bool(env.scene.model.jnt_limited[joint.id])
    low, high = joint.range if limited else (0.0, 0.0)
    goal = low + 0.9 * (high - low) if limited else math.pi / 2
    assert env.h.faucet.qpos[:, 0].tolist() == pytest.approx([low] * 4)
    env.h.faucet.set_qpos(torch.tensor([[low], [goal - 0.01], [goal + 0.01], [(low + goal) / 2]]))
    env.world.forward()
    found = env.task.evaluate(env.h)
    assert found["success"].tolist() == [False, False, True, False]
    assert found["is_turned"].tolist() == [False, True, True, True]
    seen = env.task.observe(env.h)
    left = seen["privileged"]["turn_left"]
    assert left.tolist() == pytest.approx([goal - low, 0.01, -0.01, (goal - low) / 2], abs=1e-5)
    # the axis is the one about which the handle goes when the joint does
    pivot, axis = (seen["policy"][name].clone() for name in ("switch_pos", "switch_axis"))
    handle = seen["privileged"]["handle_pos"].clone()
    env.h.faucet.set_qpos(env.h.faucet.qpos + 1e-3)
    env.world.forward()
    moved = (env.h.faucet.handle_of("switch") - handle) / 1e-3
    torch.testing.assert_close(moved, torch.linalg.cross(axis, handle - pivot), atol=1e-3, rtol=0.0)
    # its own reward: a share of the way, 2 for having begun, 5 in success
    env.h.faucet.set_qpos(torch.tensor([[low], [goal - 0.01], [goal + 0.01], [(low + goal) / 2]]))
    env.world.forward()
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(4, 8))
    away = (env.h.faucet.handle_of("switch") - env.h.robot.tcp_pos).norm(dim=1)[0].item()
    wanted = [1 - math.tanh(5 * away), 2 + 2 * (1 - 0.01 / (goal - low)), 5.0, 3.0]
    assert sum(terms.values()).tolist() == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("name", ["front_lever_0", "front_knob_1", "front_cross_2", "top_lever_0"])
def test_it_stays_shut_and_the_arm_is_clear_of_it(name: str) -> None:
    """The switch's friction holds its weight; and where the robot starts, it does not touch the faucet."""
    env = _one(name, 16)
    hold = torch.zeros(16, env.controller.card.size)
    began = env.h.faucet.qpos.clone()
    for _ in range(40):
        *_, info = env.step(hold)
        assert not info["is_touched"].any() and not info["success"].any()
    assert (env.h.faucet.qpos - began).abs().max() < 0.02


def test_it_stands_where_the_original_puts_it_and_rows_have_their_own() -> None:
    env = manikin.make("TurnFaucet-v1", 48, observe="state_dict")
    seen, info = env.reset(seed=list(range(48)))
    assert [KIND.layouts[k] for k in info["layout"].tolist()] == [*FAUCETS, *FAUCETS]
    base = env.gather(lambda one: one.h.faucet.link_pose("body"))
    assert base[:, :2].abs().max() <= 0.05 and base[:, :2].abs().amax(0).min() > 0.045 and (base[:, 2] == 0).all()
    yaw = 2 * torch.atan2(base[:, 6], base[:, 3])
    assert yaw.abs().max() <= math.pi / 12 + 1e-6 and yaw.abs().max() > 0.9 * math.pi / 12
    assert {name for group in seen.values() for name in group} - {"qpos", "qvel"} == set(KIND.observations)


def test_the_expert_opens_every_faucet_and_chance_opens_none() -> None:
    for policy in ("expert", "random"):
        env = manikin.make("TurnFaucet-v1", 24, autoreset="disabled", terminate=False, reward="dense")
        env.reset(seed=list(range(24)))
        expert, rng = WaypointExecutor(env), torch.Generator().manual_seed(0)
        once, best = torch.zeros(24, dtype=torch.bool), 0.0
        for _ in range(env.horizon if policy == "expert" else 60):
            random = torch.rand(24, env.single_action_space.shape[0], generator=rng) * 2 - 1
            _, reward, *_, info = env.step(expert.act() if policy == "expert" else random)
            once |= info["success"]
            assert ((reward >= 0) & (reward <= 5 + 1e-5)).all() and not info["health"].any()
            best = max(best, float(reward[~info["success"]].max()) if not info["success"].all() else 0.0)
        assert best < 5
        assert once.sum() >= 23 if policy == "expert" else once.sum() <= 1
        env.close()
