"""The limit of force and the shape of goals as options of long tasks, as the subtasks have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes import apartment
from manikin.math import quat_to_yaw
from manikin.tasks.home.long.places import long_places
from manikin.tasks.home.pick import HomePick

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

LAYOUT, SEEDS = "apartment1", [1 + 8 * k for k in range(8)]
NEAR = 0.15  # [m] MS-HAB's figure
PLACES = {  # which target of a task is tried, and where its goals can be
    "TidyHouse-v1": (0, ("",), ("open",)),
    "PrepareGroceries-v1": (2, ("fridge",), ("fridge", "counter")),
    "SetTable-v1": (1, ("", "drawer", "fridge"), ("drawer", "table", "fridge")),
}


def begun(task: str = "TidyHouse-v1", rows: int = 1, **config: Any) -> Any:
    config = {"navigation": "teleported", **config}
    env = manikin.make(task, rows, config=config, autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=SEEDS[:rows])
    return env


def inner(env: Any) -> Any:
    (part,) = env.parts()
    return part.env


@pytest.mark.parametrize("limit", [0, 0.0, -1.0])
def test_a_limit_that_is_none_is_refused_as_by_the_subtask(limit: float) -> None:
    with pytest.raises(ConfigError) as alone:
        HomePick({"force_limit": float(limit)})
    with pytest.raises(ConfigError) as found:
        begun(force_limit=limit)
    assert str(float(limit)) in str(found.value) and str(found.value) == str(alone.value)


@pytest.mark.parametrize("limit", ["much", float("inf"), float("nan"), True])
def test_a_limit_is_a_number(limit: Any) -> None:
    with pytest.raises(ConfigError, match="force_limit"):
        begun(force_limit=limit)


def test_a_shape_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownNameError, match="cylinder"):
        begun(goal_shape="cube")


def test_under_a_limit_of_next_to_nothing_the_first_contact_fails_and_without_one_none_does() -> None:
    """The robot drives straight into the furniture before it, with the same bits under every limit."""
    action = torch.zeros(2, 13)
    action[:, 11] = 1.0
    told = {}
    for limit in (1e-6, None, 1e9):
        env = begun(rows=2, force_limit=limit)
        assert "base" in env.controller.card.dims[11].name
        infos = [env.step(action)[-1] for _ in range(60)]
        told[limit] = [
            torch.stack([one[key].clone().float() for one in infos]) for key in ("robot_force", "excessive_collisions")
        ]
        env.close()
    (force, failed), (_, published), (again, free) = told.values()
    assert (force[0] == 0).all() and (force[-1] > 7500).all(), "free at first, and then it presses"
    assert torch.equal(failed.bool(), force > 0)
    assert torch.equal(force, again)
    assert torch.equal(published.bool(), force >= 5000), "in Pick"
    assert not free.any()


@pytest.mark.parametrize(("kind", "subtask"), [("pick", 0), ("place", 1)])
def test_the_limit_is_that_of_each_subtask(kind: str, subtask: int) -> None:
    env = begun(rows=2, force_limit=300.0)
    inner(env).h.subtask.set(float(subtask))
    inner(env).h.pressed.set(torch.tensor([299.0, 300.0]))
    info = env.step(torch.zeros(2, 13))[-1]
    assert info["excessive_collisions"].tolist() == [False, True]
    env.close()


def test_navigate_has_no_limit() -> None:
    env = begun(rows=1, navigation="driven", force_limit=300.0)
    inner(env).h.pressed.set(1e6)
    assert not env.step(torch.zeros(1, 13))[-1]["fail"].any()
    env.close()


def at_goal(env: Any, target: int, points: torch.Tensor) -> list[bool]:
    """What Place of a target says of it at points (n, 3) [m], without physics, which would push it out of things."""
    h, task = inner(env).h, inner(env).task
    steps = task.steps()
    number = next(k for k, one in enumerate(steps) if (one.kind, one.target) == ("place", target))
    h.subtask.set(float(number))
    h.things[target].set_pose(points)
    inner(env).world.forward()
    task.advance(h)
    return task.evaluate(h)["at_goal"].tolist()


def box_under(task: str, place: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Middle (2,) [m], turn [rad] and half sides (2,) [m] of the receptacle on which a goal is, by the apartment."""
    _, states, kinds = PLACES[task]
    name = long_places(LAYOUT, states, kinds).names[place]
    home = apartment(1)
    name = next(one for one in home.receptacles if one == name or (name == "fridge" and one == "fridge/middle"))
    frame = home.middle(name)
    turn = float(quat_to_yaw(torch.tensor(frame[None, 3:]))[0])
    return np.array(frame[:2]), turn, np.array(home.receptacle(name)[1].half[:2])


@pytest.mark.parametrize("task", PLACES)
def test_a_zone_is_the_surface_under_the_goal(task: str) -> None:
    """Random points over the surface and beside it."""
    target, *_ = PLACES[task]
    envs = {shape: begun(task, len(SEEDS), goal_shape=shape) for shape in ("zone", "sphere")}
    goal = inner(envs["zone"]).h.goal.value[:, target].clone()
    assert torch.equal(goal, inner(envs["sphere"]).h.goal.value[:, target])
    numbers = inner(envs["zone"]).h.goal_place.value[:, target].long().tolist()
    boxes = [box_under(task, number) for number in numbers]
    rng, seen = np.random.default_rng(0), []
    for _ in range(6):
        points, expected = goal.clone(), []
        for row, (middle, turn, half) in enumerate(boxes):
            local, up = rng.uniform(-1.5, 1.5, 2) * half, rng.choice([0.03, 0.1, 0.2])
            c, s = np.cos(turn), np.sin(turn)
            points[row, :2] = torch.tensor(middle + np.array([[c, -s], [s, c]]) @ local)
            points[row, 2] += up
            expected.append(bool((np.abs(local) <= half).all() and up <= NEAR))
        away = (points - goal).norm(dim=1)
        zone, sphere = (at_goal(envs[shape], target, points) for shape in ("zone", "sphere"))
        assert zone == expected
        assert sphere == (away <= NEAR).tolist()
        seen += list(zip(zone, sphere, strict=True))
    assert (True, False) in seen and (False, False) in seen
    for env in envs.values():
        env.close()


def test_a_cylinder_is_wider_than_a_sphere() -> None:
    for shape, inside in (("sphere", False), ("cylinder", True)):
        env = begun(goal_shape=shape)
        goal = inner(env).h.goal.value[:, 0]
        assert at_goal(env, 0, goal + torch.tensor([0.12, 0.0, 0.13])) == [inside]
        env.close()


def test_what_was_placed_in_a_zone_is_done_and_stays_so() -> None:
    """The robot at rest with empty hands, the object at the far side of the surface."""
    for shape, done in (("zone", True), ("sphere", False)):
        env = begun(goal_shape=shape, targets=2)
        h = inner(env).h
        middle, turn, half = box_under("TidyHouse-v1", int(h.goal_place.value[0, 0]))
        goal = h.goal.value[0, 0].clone()
        ends = [middle + f * half[0] * np.array([np.cos(turn), np.sin(turn)]) for f in (-0.8, 0.8)]
        goal[:2] = torch.tensor(max(ends, key=lambda end: np.linalg.norm(end - goal[:2].numpy())))
        h.robot.set_qpos(torch.cat([h.robot.arm_qpos[:, :3], h.robot.keyframe("rest")[None, 3:]], 1), opening=1.0)
        for subtask, flag in ((1.0, "subtask_done"), (2.0, "undone")):
            h.subtask.set(subtask)
            h.things[0].set_pose(goal[None])
            found = env.step(torch.zeros(1, 13))[-1][flag].item()
            assert found is (done if flag == "subtask_done" else not done), flag
        env.close()
