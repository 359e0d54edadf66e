"""HomePick and HomePlace in an open drawer and in the open fridge: where things are, how they are held, experts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import manikin
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes import apartment
from manikin.homes.objects import FROM_FRONT, HOME_OBJECTS
from manikin.math import quat_rotate
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.home.doors.inside import one_front

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

KINDS = pytest.mark.parametrize("where", ["drawer", "fridge"])
CLOSED = -1.0


def begun(task: str, where: str, seeds: list[int], **config: Any) -> Any:
    options: dict[str, Any] = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict"}
    env = manikin.make(task, len(seeds), config={"where": where, **config}, **options)
    env.reset(seed=seeds)
    return env


def within(env: Any, where: str, pos: torch.Tensor) -> torch.Tensor:
    """(n,) bool: positions (n, 3) are in the receptacle, by where MuJoCo has it now."""
    home = env.h.home
    one = one_front(env.task.layout, where)
    name = f"{one.mechanism}/{one.joint}" if where == "drawer" else f"{one.mechanism}/middle"
    _, box = apartment(int(env.task.layout.removeprefix("apartment"))).receptacle(name)
    pose = home.receptacle(name)
    back = pose[:, 3:] * torch.tensor([1.0, -1.0, -1.0, -1.0])
    local = quat_rotate(back, pos - pose[:, :3])
    half = torch.tensor(box.half)
    return (local[:, :2].abs() < half[:2]).all(1) & (local[:, 2] > -half[2] - 1e-3) & (local[:, 2] < 0.25)


@KINDS
def test_things_lie_still_in_what_is_open_and_the_robot_touches_nothing(where: str) -> None:
    seeds = [0, 1, 5, 9]
    env = begun("HomePick-v1", where, seeds)
    before = [part.env.h.thing.pos for part in env.parts()]
    for _ in range(20):
        info = env.step(torch.zeros(len(seeds), 13))[-1]
    assert (info["robot_force"] == 0).all()
    for part, was in zip(env.parts(), before, strict=True):
        h, one = part.env.h, one_front(part.env.task.layout, where)
        opened = {"drawer": 0.45, "fridge": 1.5}[where]
        assert h.home.mechanism(one.mechanism).joint(one.joint).tolist() == pytest.approx([opened] * h.n, abs=0.02)
        assert within(part.env, where, h.thing.pos).all()
        assert (h.thing.pos - was).norm(dim=1).max() < 0.005
    env.close()


@KINDS
def test_a_goal_is_in_what_is_open_and_the_object_stays_in_hand(where: str) -> None:
    seeds = [0, 1, 5, 9]
    env = begun("HomePlace-v1", where, seeds)
    action = torch.zeros(len(seeds), 13)
    action[:, 7] = CLOSED
    for _ in range(20):
        info = env.step(action)[-1]
    assert info["is_grasped"].all() and (info["robot_force"] == 0).all()
    for part in env.parts():
        assert within(part.env, where, part.env.h.goal.value).all()
    env.close()


@KINDS
@pytest.mark.parametrize("task", ["HomePick-v1", "HomePlace-v1"])
def test_the_expert_succeeds(task: str, where: str) -> None:
    seeds = [0, 3, 4]
    env = begun(task, where, seeds)
    expert, won = WaypointExecutor(env), torch.zeros(len(seeds), dtype=torch.bool)
    for _ in range(200):
        won |= env.step(expert.act())[-1]["success"]
        if won.all():
            break
    assert won.all()
    env.close()


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(UnknownNameError, match="drawer, fridge, open"):
        begun("HomePick-v1", "oven", [0])
    with pytest.raises(ConfigError, match=r"024_bowl.*013_apple"):
        begun("HomePick-v1", "fridge", [0], objects=("013_apple", "024_bowl"))


def test_what_fits_is_narrower_than_the_gripper_opens() -> None:
    """By the published sizes: everything but the bowl and can 002."""
    assert set(HOME_OBJECTS) - set(FROM_FRONT) == {"002_master_chef_can", "024_bowl"}
