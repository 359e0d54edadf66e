"""HomeOpen and HomeClose: starts by MS-HAB's rules, what counts as open and shut, rewards by the formulas, limits of
force, experts, both devices."""

from __future__ import annotations

import math
from importlib.util import find_spec
from math import tanh
from typing import Any

import pytest
import torch

import manikin
from manikin.env.env import Env
from manikin.env.registry import task_class
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes import apartment
from manikin.homes.starts import Touching
from manikin.math import quat_to_yaw
from manikin.plan.executor import WaypointExecutor
from manikin.robots import robot
from manikin.robots.fetch_mshab import QPOS
from manikin.tasks.home.doors.fronts import fronts

WARP = find_spec("mujoco_warp") is not None
TASKS = ("HomeClose-v1", "HomeOpen-v1")


def made(task: str, layout: int = 0, num_envs: int = 4, mechanism: str = "either", **options: Any) -> Env:
    """One apartment's rows."""
    config = {"mechanism": mechanism, **options.pop("config", {})}
    given = task_class(task)(config, arm="fetch_mshab", layout=f"apartment{layout}")
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    return Env(given, num_envs=num_envs, **options)


def put(env: Env, share: float, base: tuple[float, float, float] | None = None) -> None:
    """All rows' first mechanism open by a share; the robot at rest, where it stands or at ``base``."""
    h = env.h
    word = env.task.config.mechanism
    one = fronts(env.task.layout, ("drawer", "fridge") if word == "either" else (word,)).each[int(h.target.value[0])]
    target = h.home.mechanism(one.mechanism)
    joint = target.joints.index(one.joint)
    qpos = torch.zeros(h.n, len(target.joints))
    qpos[:, joint] = share * float(target.limits[joint, 1])
    target.set_qpos(qpos)
    joints = h.robot.keyframe("rest").expand(h.n, -1).clone()
    joints[:, :3] = h.robot.arm_qpos[:, :3] if base is None else h.robot.base_joints(torch.tensor([base]))
    h.robot.set_qpos(joints, opening=0.3)
    env.world.forward()


def test_every_apartment_has_upper_drawers_and_a_fridge_whose_handles_are_where_mujoco_has_them() -> None:
    env = made("HomeOpen-v1", 3)
    env.reset(seed=0)
    model, data = env.world.data(0)
    for one in fronts("apartment3").each:
        site = data.site(f"{one.mechanism}/handle/{one.joint}").xpos
        assert site.tolist() == pytest.approx(list(one.handle), abs=1e-5)
        assert model.joint(f"{one.mechanism}/{one.joint}").range.tolist() == pytest.approx(list(one.limits), abs=1e-6)
    env.close()
    for k in range(8):
        kinds = [one.kind for one in fronts(f"apartment{k}").each]
        assert kinds.count("fridge") == 1 and 1 <= kinds.count("drawer") <= 4
        assert all(one.handle[2] > 0.6 for one in fronts(f"apartment{k}").each)


@pytest.mark.parametrize("task", TASKS)
def test_the_robot_starts_before_the_front_as_in_mshab_and_touches_nothing(task: str) -> None:
    rows = 24
    env = made(task, 2, rows)
    env.reset(seed=list(range(rows)))
    h, found = env.h, fronts("apartment2")
    target, share = h.target.value.long(), env.task.joint(h).share(h.began.value)
    assert {found.each[k].kind for k in target.tolist()} == {"drawer", "fridge"}
    base = torch.cat([h.robot.root_pose[:, :2], quat_to_yaw(h.robot.root_pose[:, 3:])[:, None]], 1)
    for row in range(rows):
        one = found.each[int(target[row])]
        x, y = float(base[row, 0]), float(base[row, 1])
        slid = float(h.began.value[row]) if one.kind == "drawer" else 0.0
        dx = x - one.frame[0] - slid * math.cos(one.yaw)
        dy = y - one.frame[1] - slid * math.sin(one.yaw)
        forth = dx * math.cos(one.yaw) + dy * math.sin(one.yaw)
        aside = dy * math.cos(one.yaw) - dx * math.sin(one.yaw)
        near, far = (0.933, 1.833) if one.kind == "fridge" else (0.3, 1.5)
        assert near - 0.3 <= forth <= far + 0.3 and abs(aside) <= 0.6 + 0.3  # noise is cut at 0.2 along each axis
        error = math.remainder(math.atan2(-dy, -dx) - float(base[row, 2]), 2 * math.pi)
        assert abs(error) <= 0.5 + 1e-5
        least = {"drawer": 0.9, "fridge": 0.75}[one.kind]
        assert (least - 1e-5 <= float(share[row]) <= 1.0) if task == "HomeClose-v1" else float(share[row]) == 0
    env.step(torch.zeros(rows, 13))
    info = env.step(torch.zeros(rows, 13))[-1]
    assert (info["robot_force"] == 0).all() and not info["success"].any() and not info["contact"].any()
    env.close()


@pytest.mark.parametrize(("mechanism", "least"), [("drawer", 0.9), ("fridge", 0.75)])
def test_what_counts_as_open_and_as_shut(mechanism: str, least: float) -> None:
    """At rest, far from anything: open beyond the share of MS-HAB's code, shut below a hundredth."""
    for task, flag, cases in (
        ("HomeOpen-v1", "is_open", ((least - 0.005, False), (least + 0.005, True))),
        ("HomeClose-v1", "is_closed", ((0.012, False), (0.008, True))),
    ):
        env = made(task, 0, 1, mechanism)
        env.reset(seed=0)
        for share, done in cases:
            put(env, share, (1.0, 2.0, 0.0))
            found = env.task.evaluate(env.h)
            assert found[flag].item() is done and found["success"].item() is done
        env.close()


def test_pressing_too_hard_fails_and_is_no_success() -> None:
    env = made("HomeOpen-v1", 0, 1, "drawer", config={"force_limit": 300.0})
    env.reset(seed=0)
    put(env, 0.95, (1.0, 2.0, 0.0))
    for pressed, done in ((299.0, True), (300.0, False)):
        env.h.pressed.set(torch.tensor([pressed]))
        found = env.task.evaluate(env.h)
        assert found["success"].item() is done and found["fail"].item() is not done
    env.close()


def test_rewards_of_open_are_the_published_formulas_by_kind() -> None:
    """Rows with drawers and fridges in one batch."""
    env = made("HomeOpen-v1", 1, 16)
    env.reset(seed=list(range(16)))
    env.step(0.3 * torch.ones(16, 13))
    h, task = env.h, env.task
    terms = task.reward(h, task.evaluate(h), torch.zeros(16, 13))
    kinds = set()
    for row in range(16):
        one = fronts("apartment1").each[int(h.target.value[row])]
        kinds.add(one.kind)
        q = float(task.joint(h).q[row])
        goal = {"drawer": 0.9, "fridge": 0.75}[one.kind] * one.limits[1]
        away = math.dist(h.robot.tcp_pos[row].tolist(), h.home.mechanism(one.mechanism).handle_of(one.joint)[row])
        assert terms["reach"][row].item() == pytest.approx(3 * (1 - tanh(away)), abs=1e-4)
        assert terms["open"][row].item() == pytest.approx(6 * (1 - max(0.0, (goal - q) / goal)), abs=1e-4)
        assert terms["slow"][row].item() == 3 and terms["back"][row].item() == 0 and terms["success"][row].item() == 0
    assert kinds == {"drawer", "fridge"}
    env.close()


def test_a_drawer_shut_with_the_tool_far_away_is_not_pushed() -> None:
    """The reward's latch: shut, and the tool within 30 cm of the handle meanwhile; cleared when it is open again."""
    env = made("HomeClose-v1", 0, 1, "drawer")
    env.reset(seed=0)
    handle = fronts("apartment0", ("drawer",)).handle[env.h.target.value.long()]
    put(env, 0.0, (1.0, 2.0, 0.0))
    env.step(torch.zeros(1, 13))
    assert env.h.pushed.value.item() == 0
    tool = env.h.robot.tcp_pos - env.h.robot.root_pose[:, :3]
    reach = (handle - tool)[0]
    put(env, 0.0, (float(reach[0]), float(reach[1]), 0.0))  # the tool 0.5 m above the handle, and then at its height
    env.step(torch.zeros(1, 13))
    assert env.h.pushed.value.item() == 0
    env.h.pushed.set(torch.ones(1))
    put(env, 0.5, (1.0, 2.0, 0.0))
    env.step(torch.zeros(1, 13))
    assert env.h.pushed.value.item() == 0
    env.close()


def test_what_is_observed() -> None:
    """The handle and the way that it opens, in the frame of the base."""
    env = made("HomeOpen-v1", 0, 8)
    seen, _ = env.reset(seed=list(range(8)))
    h = env.h
    for row in range(8):
        one = fronts("apartment0").each[int(h.target.value[row])]
        x, y, yaw = *h.robot.root_pose[row, :2].tolist(), float(quat_to_yaw(h.robot.root_pose[:, 3:])[row])
        dx, dy = one.handle[0] - x, one.handle[1] - y
        c, s = math.cos(yaw), math.sin(yaw)
        expected = [dx * c + dy * s, dy * c - dx * s, one.handle[2]]
        assert seen["policy"]["goal_from_base"][row].tolist() == pytest.approx(expected, abs=1e-4)
        along = seen["privileged"]["opens_along"][row].tolist()
        assert math.hypot(*along) == pytest.approx(1.0, abs=1e-5)
        if one.kind == "drawer":
            assert along == pytest.approx([math.cos(one.yaw - yaw), math.sin(one.yaw - yaw)], abs=1e-5)
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_the_expert_succeeds_under_the_published_limit(task: str) -> None:
    env = made(task, 1, 4, "drawer", terminate=True)
    env.reset(seed=[1, 9, 17, 25])
    expert, done = WaypointExecutor(env), torch.zeros(4, dtype=torch.bool)
    won = done.clone()
    while not done.all():
        _, _, terminated, truncated, info = env.step(expert.act(), active=~done)
        won |= info["success"] & ~done
        done |= terminated | truncated
    assert won.sum() >= 3 and (info["robot_force"] < 10_000).all() and not info["health"].any()
    env.close()


@pytest.mark.parametrize(
    ("task", "seeds"), [("HomeOpen-v1", [45, 101, 141, 181]), ("HomeClose-v1", [37, 133, 141, 181])]
)
def test_beside_a_wall_the_expert_touches_nothing_hard_and_drawers_stay_where_they_were_left(
    task: str, seeds: list[int]
) -> None:
    """A base that pressed on the wall or a hand that took the drawer along made these fail."""
    env = made(task, 5, 4, "drawer")
    env.reset(seed=seeds)
    expert = WaypointExecutor(env)
    for _ in range(200):
        info = env.step(expert.act())[-1]
    assert info["success"].all() and (info["robot_force"] < 10_000).all()
    env.close()


def test_the_expert_shuts_the_fridge_also_where_a_wall_is_beside_its_hinge() -> None:
    """In this apartment there is no way round the open door for a hand."""
    env = made("HomeClose-v1", 4, 2, "fridge")
    env.reset(seed=[4, 12])
    expert, won, swung = WaypointExecutor(env), torch.zeros(2, dtype=torch.bool), []
    for _ in range(200):
        info = env.step(expert.act())[-1]
        swung.append(env.task.joint(env.h).q.clone())
        won |= info["success"]
    way = torch.stack(swung)
    assert won.all() and (way[0] > 1.4).all() and (way.amin(0) < 0.019).all() and (info["robot_force"] < 10_000).all()
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_drawers_and_the_fridge_go_in_one_batch_by_actions_that_each_has_alone(task: str) -> None:
    """Each kind is a part of the expert; a row's actions are those of the expert of its kind."""
    seeds = list(range(5, 53, 8))
    env = made(task, 5, len(seeds))
    env.reset(seed=seeds)
    cold = env.task.cold(env.h).clone()
    assert cold.any() and not cold.all()
    expert, won = WaypointExecutor(env), torch.zeros(len(seeds), dtype=torch.bool)
    alone, row = made(task, 5, 1), int(cold.nonzero()[0])
    alone.reset(seed=[seeds[row]])
    lone = WaypointExecutor(alone)
    for k in range(200):
        action = expert.act()
        if k < 40:
            assert torch.equal(lone.act()[0], action[row])
            alone.step(action[row : row + 1])
        won |= env.step(action)[-1]["success"]
        if won.all():
            break
    assert won[cold].any() and won[~cold].any() and won.sum() >= len(seeds) - 1
    env.close()
    alone.close()


def test_rows_are_the_same_alone() -> None:
    together, alone = made("HomeClose-v1", 5, 3), made("HomeClose-v1", 5, 1)
    seeds = [5, 13, 21]
    together.reset(seed=seeds)
    actions = torch.rand(4, 3, 13, generator=torch.Generator().manual_seed(0)) * 2 - 1
    rewards = [together.step(action)[1] for action in actions]
    for row, seed in enumerate(seeds):
        alone.reset(seed=seed)
        for action, reward in zip(actions, rewards, strict=True):
            assert torch.equal(alone.step(action[row : row + 1])[1], reward[row : row + 1])
    together.close()
    alone.close()


@pytest.mark.skipif(not WARP, reason="needs pip install 'manikin[gpu]'")
def test_both_devices_agree() -> None:
    envs = [made("HomeOpen-v1", 0, 2, device=device) for device in ("cpu", "warp:cpu")]
    for env in envs:
        env.reset(seed=[0, 8])
    random = torch.rand(4, 2, 13, generator=torch.Generator().manual_seed(1)) * 2 - 1
    for action in random:
        (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
        assert torch.allclose(here, there.cpu(), atol=2e-3)
        for group in one:
            for name, value in one[group].items():
                assert torch.allclose(value, other[group][name].cpu(), atol=3e-3), name


@pytest.mark.parametrize("task", TASKS)
def test_the_published_state_is_ms_habs_42_numbers(task: str) -> None:
    """By option. The physics, the reward and what else is observed are the same."""
    own, published = made(task, 1, 2), made(task, 1, 2, config={"published_state": True})
    action = torch.rand(2, 13, generator=torch.Generator().manual_seed(0)) * 2 - 1
    for env in (own, published):
        env.reset(seed=[3, 4])
    (mine, reward, *_), (theirs, same, *_) = (env.step(action) for env in (own, published))
    assert torch.equal(reward, same)
    seen, names = theirs["policy"], list(published.task.observations)[:6]
    assert [name for name in seen if name in names] == names and sum(seen[name][0].numel() for name in names) == 42
    for row in range(2):
        model, data = published.world.data(row)
        joints = [model.joint(f"robot/{name}") for name in QPOS[3:]]
        assert seen["joints"][row].tolist() == pytest.approx([data.qpos[j.qposadr[0]] for j in joints], abs=1e-5)
        assert seen["joint_speeds"][row].tolist() == pytest.approx([data.qvel[j.dofadr[0]] for j in joints], abs=1e-5)
    assert not seen["object_from_base"].any()  # nothing is in the drawer, or in the fridge
    for name in ("tcp_from_base", "goal_from_base", "is_grasped"):
        assert torch.equal(seen[name], mine["policy"][name])
    assert all(torch.equal(theirs["privileged"][name], value) for name, value in mine["privileged"].items())
    own.close()
    published.close()


def test_bad_input_is_named() -> None:
    with pytest.raises(UnknownNameError, match="drawer, either, fridge"):
        made("HomeOpen-v1", mechanism="oven")
    with pytest.raises(ConfigError, match="fetch_mshab"):
        manikin.make("HomeOpen-v1", robot="panda", config={"mechanism": "drawer"})


def test_an_open_door_is_in_the_way() -> None:
    """The same pose of the robot, with the fridge shut and open."""
    fetch = robot("fetch_mshab")
    touching = Touching(apartment(0), (fetch.arm, fetch.gripper, False))
    one = fronts("apartment0", ("fridge",)).each[0]
    joints = torch.tensor(fetch.arm.keyframes["rest"])[None].clone()
    joints[0, :3] = torch.tensor(
        [one.hinge[0] + 0.75 * math.cos(one.yaw), one.hinge[1] + 0.75 * math.sin(one.yaw), one.yaw]
    )
    opened = torch.zeros(1, 2)
    opened[:, apartment(0).of_kind("fridge")[0].joints.index("top_door")] = 1.5
    assert not touching.touches(joints)[0] and touching.touches(joints, {"fridge": opened})[0]
    assert not touching.touches(joints)[0]
    with pytest.raises(UnknownNameError, match="counter"):
        touching.touches(joints, {"oven": opened})
