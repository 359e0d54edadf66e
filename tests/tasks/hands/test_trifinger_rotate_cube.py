"""TriFingerRotateCube: goals of each level, success, the published reward on plain numbers, and both devices."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import pose, quat_from_axis_angle, quat_to_matrix
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.hands.three_tips import tip_joints, tip_torques

RADIUS = 0.195 - 0.065 * math.sqrt(3) / 2  # [m] of the disc of goals


def made(level: int = 0, num_envs: int = 4, device: str = "cpu", **config) -> manikin.Env:
    env = manikin.make(
        "TriFingerRotateCube-v1", num_envs, autoreset="disabled", terminate=False, reward="dense",
        observe="state_dict", device=device, config={"level": level, **config},
    )  # fmt: skip
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("level", range(5))
def test_goals_are_where_the_level_says(level: int) -> None:
    env = made(level, 512)
    place, turn = env.h.goal.value[:, :3], quat_to_matrix(env.h.goal.value[:, 3:])
    far = place[:, :2].norm(dim=1)
    assert not env.task.evaluate(env.h)["success"].any()
    if level == 2:
        assert (place == torch.tensor([0.0, 0.0, 0.0825])).all()
    else:
        assert far.max() <= RADIUS + 1e-6 and far.max() > 0.97 * RADIUS
        assert ((far**2).mean() - RADIUS**2 / 2).abs() < 0.1 * RADIUS**2  # uniform over the disc
    low, high = {0: (0.0325,) * 2, 1: (0.0325,) * 2, 2: (0.0825,) * 2, 3: (0.0325, 0.1), 4: (0.0563, 0.1)}[level]
    assert place[:, 2].min() >= low - 1e-4 and place[:, 2].max() <= high + 1e-6
    if high > low:
        assert place[:, 2].max() - place[:, 2].min() > 0.95 * (high - low)
    unturned = (turn - torch.eye(3)).abs().amax((1, 2)) < 1e-6
    assert unturned.all() if level in (0, 2, 3) else not unturned.any()
    if level == 1:
        torch.testing.assert_close(turn[:, 2, 2], torch.ones(512))
    if level == 4:
        assert turn.mean(0).abs().max() < 0.1  # of orientations that are uniform, 0


def test_success_asks_for_the_place_and_where_the_level_says_for_the_turn() -> None:
    for level, published in ((0, False), (0, True), (1, False)):
        env = made(level, 4, published_orientation=published)
        goal = env.h.goal.value
        away = torch.tensor([[0.019, 0, 0], [0.021, 0, 0], [0, 0, 0], [0, 0, 0]])
        axis = torch.tensor([[0.0, 0.0, 1.0]]).expand(4, 3)
        turn = quat_from_axis_angle(axis, torch.tensor([0.0, 0.0, 0.09, 0.11]))
        base = torch.atan2(goal[:, 6], goal[:, 3]) * 2
        turn = quat_from_axis_angle(axis, base + torch.tensor([0.0, 0.0, 0.09, 0.11])) if level else turn
        env.h.cube.set_pose(goal[:, :3] + away, turn)
        env.world.forward()
        asks = level == 1 or published
        assert env.task.evaluate(env.h)["success"].tolist() == [True, False, True, not asks]
        assert env.task.evaluate(env.h)["is_near"].tolist() == [True, False, True, True]


@pytest.mark.parametrize(("level", "published"), [(0, False), (0, True), (3, False), (4, False)])
def test_the_reward_is_the_published_formula(level: int, published: bool) -> None:
    env = made(level, 16, published_orientation=published)
    generator = torch.Generator().manual_seed(1)
    place = torch.rand(16, 3, generator=generator) * 0.1
    turn = torch.nn.functional.normalize(torch.randn(16, 4, generator=generator), dim=1)
    env.h.cube.set_pose(place, turn)
    env.world.forward()
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(16, 9))

    def near(d: float) -> float:
        return 1 - math.tanh(5 * d)

    for row in range(16):
        goal = env.h.goal.value[row].double().numpy()
        tips = [env.robot.tools[f"tip_{n}"].tcp_pos[row].numpy() for n in (0, 120, 240)]
        reach = np.mean([near(np.linalg.norm(tip - place[row].numpy())) for tip in tips])
        left, whole = goal[:3] - place[row].numpy(), goal[:3] - np.array([0, 0, 0.0325])
        moved = near(np.linalg.norm(left)) - near(np.linalg.norm(whole))
        lifted = near(abs(left[2])) - near(abs(whole[2]))
        angle = 2 * math.acos(min(1.0, abs(float(goal[3:] @ turn[row].double().numpy()))))
        angle *= published or level in (1, 4)
        wanted = max(-15.0, min(15.0, 5 * (reach + moved + 5 * lifted - angle)))
        assert terms["total"][row].item() == pytest.approx(wanted, abs=2e-4)
    env.h.cube.set_pose(env.h.goal.value[:, :3], env.h.goal.value[:, 3:])
    env.world.forward()
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(16, 9))
    torch.testing.assert_close(sum(terms.values()), torch.full((16,), 15.0))


def test_the_normalized_reward_may_be_the_published_one() -> None:
    """ManiSkill3's is R / 30 + 1/2, R with a start of 32 mm; in success 1."""
    env = made(1, 16, published_reward=True)
    generator = torch.Generator().manual_seed(3)
    env.h.cube.set_pose(torch.rand(16, 3, generator=generator) * 0.1)
    env.world.forward()
    for row, paid in enumerate(_normalized(env)):
        goal = env.h.goal.value[row].double().numpy()
        place, start = env.h.cube.pos[row].double().numpy(), np.array([0, 0, 0.032])
        tips = [env.robot.tools[f"tip_{n}"].tcp_pos[row].double().numpy() for n in (0, 120, 240)]
        total = 5 * np.mean([1 - math.tanh(5 * math.dist(tip, place)) for tip in tips])
        total += 5 * (math.tanh(5 * math.dist(start, goal[:3])) - math.tanh(5 * math.dist(place, goal[:3])))
        total += 25 * (math.tanh(5 * abs(0.032 - goal[2])) - math.tanh(5 * abs(place[2] - goal[2])))
        total -= 5 * 2 * math.acos(min(1.0, abs(goal[3])))
        assert paid == pytest.approx(max(-15, min(15, total)) / 30 + 0.5, abs=1e-4)
    env.h.cube.set_pose(env.h.goal.value[:, :3], env.h.goal.value[:, 3:])
    env.world.forward()
    assert _normalized(env) == pytest.approx([1.0] * 16)


def _normalized(env: manikin.Env) -> list[float]:
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(env.num_envs, 9))
    return (sum(terms.values()) / env.task.reward_max).tolist()


def test_the_cube_lies_still_and_stays_within_the_rim() -> None:
    env = made(0, 4)
    for _ in range(10):
        *_, info = env.step(torch.zeros(4, 9))
    assert (env.h.cube.pos - torch.tensor([0.0, 0.0, 0.0325])).abs().max() < 1e-3
    assert not info["is_moved"].any()
    env.h.cube.set_velocity((1.5, 0.7, 0.0))  # thrown at the rim
    for _ in range(40):
        env.step(torch.zeros(4, 9))
    assert (env.h.cube.pos[:, :2].norm(dim=1) < 0.195).all()
    model, _ = env.world.data(0)
    assert float(model.body("cube").mass[0]) == pytest.approx(1000 * 0.065**3, rel=1e-6)


def test_the_tips_get_where_the_closed_form_says() -> None:
    env = made(0)
    generator = torch.Generator().manual_seed(0)
    wanted = torch.tensor([[0.1, 0.06, 0.05], [0.0, -0.11, 0.05], [-0.1, 0.05, 0.05]]) + (
        torch.rand(len(env.h.robot.qpos), 3, 3, generator=generator) - 0.5
    ) * torch.tensor([0.06, 0.06, 0.04])
    joints = tip_joints(wanted)
    low, high = env.robot.limits.unbind(1)
    assert (joints > low).all() and (joints < high).all()
    env.robot.set_qpos(joints)
    env.world.forward()
    tips = torch.stack([env.robot.tools[f"tip_{n}"].tcp_pos for n in (0, 120, 240)], 1)
    assert torch.allclose(tips, wanted, atol=1e-5)  # MuJoCo's places of the tips


def test_the_tips_push_with_the_torques_of_the_closed_form() -> None:
    env = made(0)
    forces = torch.tensor([[3.0, -2.0, 1.0], [0.0, 4.0, -1.0], [-2.0, 0.5, 2.0]]).expand(len(env.h.robot.qpos), 3, 3)
    tips = [env.robot.tools[f"tip_{n}"] for n in (0, 120, 240)]
    found = tip_torques(torch.stack([tip.tcp_pos for tip in tips], 1), forces)
    model, data = env.world.data(0)
    expected = np.zeros(model.nv)
    for n, force in zip((0, 120, 240), forces[0], strict=True):
        places_by_joints = np.zeros((3, model.nv))
        mujoco.mj_jacSite(model, data, places_by_joints, None, model.site(f"robot/tip_{n}_tcp").id)
        expected += places_by_joints.T @ force.numpy()
    assert np.allclose(found[0], expected[:9], atol=0.01)  # [N m]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_the_expert_carries_it_to_the_goal(level: int) -> None:
    env = made(level, 8)
    env.reset(seed=100)
    expert, won = WaypointExecutor(env), torch.zeros(8, dtype=torch.bool)
    for _ in range(env.horizon):
        action = expert.act()
        assert action.abs().max() <= 1
        won |= env.step(action)[-1]["success"]
        if won.all():
            break
    assert won.sum() >= 7


def test_what_the_expert_carries_stays_at_the_goal() -> None:
    env = made(3, 4)
    env.reset(seed=100)
    expert = WaypointExecutor(env)
    for step in range(env.horizon):
        *_, info = env.step(expert.act())
        assert step < 150 or info["success"].all()


def test_the_expert_knows_no_orientation_but_about_the_vertical() -> None:
    with pytest.raises(ConfigError, match="turns the cube about the vertical alone: levels 0 to 3"):
        WaypointExecutor(made(4)).act()


def test_warp_agrees() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    envs = [made(4, 2, device=device) for device in ("cpu", "warp:cpu")]
    generator = torch.Generator().manual_seed(2)
    for k in range(5):
        action = torch.rand(2, 9, generator=generator) * 2 - 1
        (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
        if k < 2:  # the cube just touches the table, which single precision finds a substep later
            continue
        assert torch.allclose(here, there.cpu(), atol=1e-3)
        for group in one:
            for name, value in one[group].items():
                assert torch.allclose(value, other[group][name].cpu(), atol=1e-3, rtol=1e-3), name
    assert torch.allclose(envs[0].h.goal.value, pose(*envs[1].h.goal.value.cpu().split((3, 4), 1)), atol=1e-6)


def test_what_cannot_be_is_refused_with_what_can() -> None:
    with pytest.raises(UnknownNameError, match=r"level of TriFingerRotateCube-v1 5.*Valid: 0, 1, 2, 3, 4"):
        made(5)
    with pytest.raises(ConfigError, match=r"TriFingerRotateCube-v1 needs a robot with middle.*it takes trifinger"):
        manikin.make("TriFingerRotateCube-v1", robot="panda")
