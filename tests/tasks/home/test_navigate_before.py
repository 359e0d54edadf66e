"""HomeNavigate to what each subtask is about: drawers and fridges, shut and open, and with an object in hand."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.robots.fetch_mshab import QPOS
from manikin.tasks.home.doors.inside import one_front

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

BOXES = {"drawer": (0.3, 1.5), "fridge": (0.933, 1.833)}  # [m] ahead of it, and 0.6 m aside; MS-HAB's figures


def made(rows: int = 1, device: str = "cpu", **config: Any) -> Any:
    options = {
        "device": device,
        "autoreset": "disabled",
        "terminate": False,
        "reward": "dense",
        "observe": "state_dict",
    }
    env = manikin.make("HomeNavigate-v1", rows, config=config, **options)
    env.reset(seed=[8 * k for k in range(rows)])
    return env


def inner(env: Any) -> Any:
    (part,) = env.parts()
    return part.env


def put(env: Any, base: torch.Tensor) -> dict[str, torch.Tensor]:
    """What is said of robots at rest whose bases are at (n, 3)."""
    h, task = inner(env).h, inner(env).task
    joints = h.robot.keyframe("rest").expand(len(base), -1).clone()
    joints[:, :3] = h.robot.base_joints(base)
    h.robot.set_qpos(joints)
    inner(env).world.forward()
    return task.evaluate(h)


@pytest.mark.parametrize(
    ("config", "error", "match"),
    [
        ({"before": "wash"}, UnknownNameError, "close, open, pick, place"),
        ({"where": "sofa"}, UnknownNameError, "drawer, fridge, open"),
        ({"before": "close"}, ConfigError, "where='drawer'"),
        ({"objects": ("013_apple",)}, ConfigError, "before place"),
        ({"before": "place", "where": "fridge", "objects": ("024_bowl",)}, ConfigError, "too wide"),
        ({"before": "place", "objects": ("a_spoon",)}, UnknownNameError, "013_apple"),
    ],
)
def test_options_that_do_not_fit_are_named(config: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        made(**config)


@pytest.mark.parametrize("before", ["open", "close"])
@pytest.mark.parametrize("door", BOXES)
def test_before_a_door_the_base_has_to_stand_in_its_box(door: str, before: str) -> None:
    """Random places around it, all facing the goal."""
    env = made(before=before, where=door)
    h, task, rng = inner(env).h, inner(env).task, np.random.default_rng(0)
    one = one_front("apartment0", door)
    opened = float(h.home.mechanism(one.mechanism).joint(one.joint)[0])
    assert (opened > 0.4) is (before == "close")
    out = np.array([math.cos(one.yaw), math.sin(one.yaw)])
    left = np.array([-out[1], out[0]])
    frame = np.array(one.frame) + (opened * out if door == "drawer" else 0.0)
    goal = task.goal(h)[0, :2].numpy()
    handle = np.array(one.handle[:2]) + opened * out if door == "drawer" else np.array(one.frame)
    assert goal == pytest.approx(handle, abs=1e-3)
    found = []
    for _ in range(80):
        forth, aside = rng.uniform(0.0, 2.2), rng.uniform(-1.0, 1.0)
        place = frame + forth * out + aside * left
        to = goal - place
        yaw = math.atan2(to[1], to[0]) + rng.choice([0.0, 0.45, 0.55])
        ev = put(env, torch.tensor([[*place, yaw]], dtype=torch.float32))
        near, far = BOXES[door]
        inside = near <= forth <= far and abs(aside) <= 0.6 and np.linalg.norm(to) <= 2
        facing = abs(math.remainder(yaw - math.atan2(to[1], to[0]), math.tau)) < 0.5
        assert (ev["is_near"].item(), ev["is_facing"].item()) == (inside, facing)
        assert ev["success"].item() is (inside and facing)
        found.append(ev["success"].item())
    assert 0 < sum(found) < len(found)
    env.close()


def test_the_goal_goes_along_with_the_drawer() -> None:
    env = made(before="close", where="drawer")
    h, task = inner(env).h, inner(env).task
    one, before = one_front("apartment0", "drawer"), task.goal(h).clone()
    piece = h.home.mechanism(one.mechanism)
    piece.set_qpos(piece.vector({one.joint: 0.25}))
    inner(env).world.forward()
    moved = float((task.goal(h) - before)[0].norm())
    assert moved == pytest.approx(0.45 - 0.25, abs=1e-3)
    env.close()


@pytest.mark.parametrize("where", ["open", "fridge"])
def test_what_is_carried_is_held_from_the_start_and_has_to_be_at_the_end(where: str) -> None:
    """Driving does not lose it. At rest before the goal with the object elsewhere it is not done."""
    env = made(before="place", where=where)
    h, task = inner(env).h, inner(env).task
    (thing,), robot = h.things, h.robot
    before, begun = thing.pos - robot.tcp_pos, robot.root_pose[:, :2].clone()
    expert = WaypointExecutor(env)
    for _ in range(80):
        info = env.step(expert.act())[-1]
        assert info["is_grasped"].all()
    assert (robot.root_pose[:, :2] - begun).norm() > 0.3
    assert ((thing.pos - robot.tcp_pos).norm(dim=1) - before.norm(dim=1)).abs().max() < 0.02
    reward = task.reward(h, task.evaluate(h), torch.zeros(1, 13))
    assert (reward["hold"] == 2).all() and (reward["drive"] > 0).all()
    thing.set_pose(thing.pos + torch.tensor([0.0, 0.0, 1.0]))
    info = env.step(torch.zeros(1, 13))[-1]
    assert not info["is_grasped"].any()
    reward = task.reward(h, task.evaluate(h), torch.zeros(1, 13))
    assert (reward["hold"] == 0).all() and (reward["drive"] == 0).all()
    goal = task.goal(h)
    base = torch.stack([goal[:, 0] - 1.5, goal[:, 1], torch.zeros(1)], 1)
    ev = put(env, base)
    assert ev["is_near"].all() and ev["is_facing"].all() and not ev["success"].any()
    env.close()


@pytest.mark.parametrize("before", ["pick", "place"])
def test_the_published_state_is_ms_habs_42_numbers(before: str) -> None:
    """With what is carried; 0 where nothing is."""
    env = made(before=before, published_state=True)
    env.step(WaypointExecutor(env).act())  # fingers press from here on
    one, task = inner(env), inner(env).task
    seen = task.observe(one.h)["policy"]
    assert [*seen, "way"] == list(task.observations) and sum(value[0].numel() for value in seen.values()) == 42
    model, data = one.world.data(0)
    base = data.body("robot/base_link")
    joints = [model.joint(f"robot/{name}") for name in QPOS[3:]]
    assert seen["joints"][0].tolist() == pytest.approx([data.qpos[joint.qposadr[0]] for joint in joints], abs=1e-5)
    local = base.xmat.reshape(3, 3).T @ (task.goal(one.h)[0].numpy() - base.xpos)
    assert seen["goal_from_base"][0].tolist() == pytest.approx(local, abs=1e-5)
    if before == "place":
        thing = base.xmat.reshape(3, 3).T @ (data.body("object").xpos - base.xpos)
        assert seen["object_from_base"][0, :3].tolist() == pytest.approx(thing, abs=1e-5) and seen["is_grasped"].all()
    else:
        assert not seen["object_from_base"].any() and not seen["is_grasped"].any()
    env.close()


@pytest.mark.parametrize(
    "config", [{"before": "place"}, {"before": "open", "where": "fridge"}, {"before": "close", "where": "drawer"}]
)
def test_the_expert_arrives(config: dict[str, str]) -> None:
    env = made(2, **config)
    expert, arrived = WaypointExecutor(env), torch.zeros(2, dtype=torch.bool)
    words = {"place": "bring the object", "open": "drive to the fridge", "close": "drive to the drawer"}
    assert env.instruction[0].startswith(words[config["before"]])
    for _ in range(env.horizon):
        info = env.step(expert.act())[-1]
        arrived |= info["success"]
        if arrived.all():
            break
    assert arrived.all()
    env.close()


@pytest.mark.skipif(find_spec("mujoco_warp") is None, reason="needs pip install 'manikin[warp]'")
def test_both_devices_agree() -> None:
    told = []
    for device in ("cpu", "warp:cpu"):
        env = made(before="place", where="drawer", device=device)
        for _ in range(3):
            observation, reward, *_, info = env.step(torch.zeros(1, 13))
        told.append((observation["policy"]["goal_from_base"].cpu(), reward.cpu(), info["is_grasped"].cpu()))
        env.close()
    (goal, reward, held), (other, again, too) = told
    assert held.all() and too.all()
    assert torch.allclose(goal, other, atol=3e-3) and torch.allclose(reward, again, atol=2e-2)
