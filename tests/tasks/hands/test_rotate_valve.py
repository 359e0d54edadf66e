"""RotateValve: its valves beside the published sizes, success and reward on plain numbers, the claw's reach, and both
devices."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.env.registry import task_class
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.props.hands.valve import valve
from manikin.tasks.hands.claw import finger_bases, finger_joints

LENGTH, THICK, HEIGHT = 0.061706, 0.0195, 0.039854 + 0.03  # [m] of ROBEL's valve


def made(level: int = 0, num_envs: int = 4, **options) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    env = manikin.make("RotateValve-v1", num_envs, config={"level": level}, **options)
    env.reset(seed=0)
    return env


def turned(env: manikin.Env, by: torch.Tensor, rate: float = 0.0) -> None:
    """Turn the rows' valves on by so much (n,) from where they began."""
    env.h.valve.set_qpos((env.h.began.value + by)[:, None], rate)
    env.world.forward()


def arms_of(env: manikin.Env, row: int) -> list[tuple[float, float, float]]:
    """Direction from the valve's joint [rad], length and radius [m] of each arm that is above the table, as MuJoCo has
    them in a row."""
    model, data = env.world.data(row)
    hub, found = data.body("valve/valve"), []
    for k in range(5):
        body = model.body(f"valve/arm{k}")
        geom = int(body.geomadr[0])
        along = data.geom_xmat[geom].reshape(3, 3)[:, 2]
        radius, half = model.geom_size[geom, :2]
        ends = [data.geom_xpos[geom] + s * half * along for s in (-1, 1)]
        if data.geom_xpos[geom, 2] < 0:
            assert max(end[2] for end in ends) + radius < 0  # all of it is in the table
            continue
        inner, outer = sorted(ends, key=lambda end: float(np.linalg.norm(end - hub.xpos)))
        assert np.allclose(inner, hub.xpos, atol=1e-6) and outer[2] == pytest.approx(HEIGHT, abs=1e-6)
        away = outer - hub.xpos
        angle = math.atan2(away[1], away[0]) - float(data.joint("valve/valve").qpos[0])
        assert model.geom_rbound[geom] == pytest.approx(half + radius, abs=1e-6)
        found.append((angle % (2 * math.pi), float(np.linalg.norm(away)), float(radius)))
    return sorted(found)


def test_each_level_has_its_valves() -> None:
    counts: dict[int, set[int]] = {}
    for level in range(5):
        env = made(level, 48)
        lengths, widths = [], []
        for row in range(48):
            angles, long, wide = zip(*arms_of(env, row), strict=True)
            counts.setdefault(level, set()).add(len(angles))
            gaps = np.diff([*angles, angles[0] + 2 * math.pi])
            assert gaps.min() >= math.pi / 6 - 1e-5
            if level < 2:
                assert np.allclose(gaps, 2 * math.pi / len(angles), atol=1e-5)
            assert np.ptp(long) < 1e-6 and np.ptp(wide) < 1e-6
            lengths.append(long[0] / LENGTH)
            widths.append(wide[0] / THICK)
        if level < 3:
            assert np.allclose(lengths, 1, atol=1e-5) and np.allclose(widths, 1, atol=1e-5)
        else:
            for scale in (lengths, widths):
                assert 0.06 < np.std(scale) < 0.14 and min(scale) >= 0.7 - 1e-5 and max(scale) <= 1.3 + 1e-5
        env.close()
    assert counts == {0: {3}, **{level: {3, 4, 5} for level in range(1, 5)}}


def test_the_joint_is_the_published_one_and_nothing_turns_by_itself() -> None:
    model = valve().compile()
    joint = model.joint("valve")
    assert joint.damping[0] == 2.0 and joint.frictionloss[0] == 0.02 and not joint.limited[0]
    cylinder, ends = math.pi * THICK**2 * LENGTH * 1000, 4 / 3 * math.pi * THICK**3 * 1000
    assert float(model.body("valve").mass[0]) == pytest.approx(3 * (cylinder + ends), rel=1e-9)
    env = made(4, 8)
    for _ in range(20):
        *_, info = env.step(torch.zeros(8, 9))
        assert not info["is_touched"].any()  # the fingers start clear of it, and buried arms touch nothing
    assert env.task.turned(env.h).abs().max() < 1e-6
    assert env.world.data(0)[1].ncon == 0


@pytest.mark.parametrize(("level", "angle"), list(enumerate((math.pi / 2, math.pi, math.pi, math.pi, 2 * math.pi))))
def test_success_is_the_levels_angle_in_the_direction_asked_for(level: int, angle: float) -> None:
    env = made(level, 32)
    assert env.horizon == (80, 150, 150, 150, 300)[level]
    sense = env.h.sense.value
    assert set(sense.tolist()) == ({1.0, -1.0} if level == 4 else {1.0})
    for by, solved in ((angle - 1e-3, False), (angle + 1e-3, True), (-angle - 1e-3, False)):
        turned(env, by * sense)
        found = env.task.evaluate(env.h)
        assert found["success"].tolist() == [solved] * 32 and found["is_turned"].tolist() == [by > 0] * 32


def test_the_reward_is_the_published_formula() -> None:
    env = made(4, 16)
    for by, rate in ((0.5, 0.3), (-2.0, -0.1), (6.2, 0.0)):
        turned(env, by * env.h.sense.value, rate)
        terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(16, 9))
        for row in range(16):
            _, data = env.world.data(row)
            sense = float(env.h.sense.value[row])
            hub, length = data.body("valve/valve").xpos[:2], float(env.h.size.value[row, 0])
            tips = [data.body(env.robot.prefix + env.robot.arm.tools[f].body) for f in ("f1", "f2", "f3")]
            ends = [tip.xpos + tip.xmat.reshape(3, 3)[:, 0] * 0.0715 for tip in tips]
            error = np.linalg.norm([np.linalg.norm(end[:2] - hub) - (length - 0.01) for end in ends])
            assert terms["reach"][row].item() == pytest.approx(1 - math.tanh(10 * error), abs=1e-5)
            assert terms["turn"][row].item() == pytest.approx(4 * math.tanh(5 * rate * sense), abs=1e-5)
            assert terms["progress"][row].item() == pytest.approx(by / (2 * math.pi), abs=1e-5)
    turned(env, 6.4 * env.h.sense.value)
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(16, 9))
    torch.testing.assert_close(sum(terms.values()), torch.full((16,), 6.0))
    assert set(terms) == set(env.task.reward_terms)


def test_the_fingers_get_where_the_closed_form_says() -> None:
    env = made(0, 64)
    generator = torch.Generator().manual_seed(0)
    out = torch.tensor([math.radians(a) for a in (30.0, 150.0, 270.0)])
    radius = 0.05 + 0.05 * torch.rand(64, 3, generator=generator)
    angle = out + (torch.rand(64, 3, generator=generator) - 0.5) * 1.6
    height = 0.09 + 0.02 * torch.rand(64, 3, generator=generator)
    goal = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle), height], 2)
    bases = finger_bases(env.robot.base_pose[:3].expand(64, 3))
    joints = finger_joints(goal - bases)
    env.robot.set_qpos(joints)
    env.world.forward()
    inside = ((joints >= env.robot.limits[:, 0]) & (joints <= env.robot.limits[:, 1])).reshape(64, 3, 3).all(1)
    assert inside.float().mean() > 0.6
    tips = torch.stack([env.robot.tools[f].tcp_pos for f in ("f1", "f2", "f3")], 1)
    away = (tips - goal).norm(dim=2)[inside]
    assert away.max() < 0.003 and away.median() < 0.0015


def test_the_expert_turns_it_and_chance_does_not() -> None:
    for policy in ("expert", "random"):
        env = made(0, 64)
        expert, generator = WaypointExecutor(env), torch.Generator().manual_seed(0)
        once = torch.zeros(64, dtype=torch.bool)
        for _ in range(env.horizon):
            action = expert.act() if policy == "expert" else torch.rand(64, 9, generator=generator) * 2 - 1
            _, reward, *_, info = env.step(action)
            once |= info["success"]
            assert (reward <= 6 + 1e-5).all() and not info["health"].any()
        assert once.sum() >= 58 if policy == "expert" else once.sum() <= 3
        env.close()


def test_warp_agrees() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    envs = [made(3, 3, device=device) for device in ("cpu", "warp:cpu")]
    generator = torch.Generator().manual_seed(2)
    for _ in range(5):
        action = torch.rand(3, 9, generator=generator) * 2 - 1
        (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
        assert torch.allclose(here, there.cpu(), atol=2e-3)
        for group in one:
            for name, value in one[group].items():
                assert torch.allclose(value, other[group][name].cpu(), atol=2e-3, rtol=1e-3), name


def test_what_cannot_be_is_refused_with_what_can() -> None:
    with pytest.raises(UnknownNameError, match=r"level of RotateValve-v1 7.*Valid: 0, 1, 2, 3, 4"):
        made(7)
    with pytest.raises(ConfigError, match=r"RotateValve-v1 needs a robot with claw.*dclaw"):
        manikin.make("RotateValve-v1", robot="panda")
    env = made(0, 2)
    with pytest.raises(UnknownNameError, match="arm0"):
        env.h.valve.set_links(["arm9"], torch.zeros(2, 1, 7))
    with pytest.raises(SceneError, match="'mount' of valve has 2 shapes"):
        env.h.valve.set_links(["mount"], torch.zeros(2, 1, 7), torch.zeros(2, 1, 3))
    assert mujoco.mj_name2id(env.scene.model, mujoco.mjtObj.mjOBJ_BODY, "valve/arm4") > 0
    assert task_class("RotateValve-v1").horizon_s == 4.0
