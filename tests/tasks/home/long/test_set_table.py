"""SetTable: where things lie at first, when Open and Close are done, what Navigate to a handle asks for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.homes import apartment
from manikin.homes.starts import Touching
from manikin.plan.executor import WaypointExecutor
from manikin.robots import robot
from manikin.tasks.home.doors.inside import inside, one_front
from manikin.tasks.home.doors.reach_in import REACH, READY
from manikin.tasks.home.long.places import long_places
from manikin.tasks.home.rules import ARTICULATIONS

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

LAYOUT = "apartment1"  # of seeds 1, 9, 17


def begun(seeds: list[int], targets: int = 2, navigation: str = "teleported") -> Any:
    env = manikin.make(
        "SetTable-v1",
        len(seeds),
        config={"targets": targets, "navigation": navigation},
        observe="state_dict",
        autoreset="disabled",
        terminate=False,
        reward="sparse",
    )
    env.reset(seed=seeds)
    return env


def inner(env: Any) -> Any:
    (part,) = env.parts()
    return part.env


def idle(env: Any) -> Any:
    return env.step(torch.zeros(env.num_envs, 13))[-1]


@pytest.fixture(scope="module")
def env() -> Any:
    env = begun([1, 9])
    yield env
    env.close()


def opened_by(h: Any, kind: str, share: float) -> None:
    """Set the joint of the drawer or the fridge to a share of its range."""
    one, piece = one_front(LAYOUT, kind), h.doors[kind].pieces[0]
    q = torch.zeros(len(piece.joints))
    q[piece.joints.index(one.joint)] = one.limits[0] + share * (one.limits[1] - one.limits[0])
    piece.set_qpos(q)


def at_rest(h: Any) -> None:
    rest = torch.cat([h.robot.arm_qpos[:, :3], h.robot.keyframe("rest")[3:].expand(len(h.begun.value), -1)], 1)
    h.robot.set_qpos(rest, opening=0.3)


def test_the_bowl_lies_in_the_shut_drawer_and_the_apple_on_the_shelf(env: Any) -> None:
    """Both inside the boxes of their receptacles, whose middles the apartment says."""
    env.reset(seed=[1, 9])
    h, home = inner(env).h, apartment(1)
    drawer = one_front(LAYOUT, "drawer")
    for k, name in enumerate((f"{drawer.mechanism}/{drawer.joint}", f"{one_front(LAYOUT, 'fridge').mechanism}/middle")):
        middle, (_, box) = torch.tensor(home.middle(name)[:3]), home.receptacle(name)
        away = (h.things[k].pos.double() - middle).abs()
        x, y, z = box.half
        assert (away[:, 0] < y).all() and (away[:, 1] < x).all() and (away[:, 2] < z).all()  # they face along y
    before = [thing.pos.clone() for thing in h.things]
    for _ in range(10):
        idle(env)
    for thing, pos in zip(h.things, before, strict=True):
        assert (thing.pos - pos).norm(dim=1).max() < 5e-3


def test_the_bowl_is_within_reach_once_the_drawer_is_open(env: Any) -> None:
    """0.45 m further out it is at one of the places of the open drawer, which have stands."""
    env.reset(seed=[1, 9])
    found, one = inside(LAYOUT, "drawer"), one_front(LAYOUT, "drawer")
    places = torch.tensor(found.points)[[name == "drawer" for name in found.names], :2]
    out = torch.tensor([math.cos(one.yaw), math.sin(one.yaw)])
    bowl = inner(env).h.things[0].pos[:, :2] + 0.45 * out
    assert (bowl[:, None] - places).norm(dim=2).min(dim=1).values.max() < 1e-4


@pytest.mark.parametrize(("kind", "subtask"), [("drawer", 0), ("fridge", 4)])
def test_open_is_done_beyond_its_share_of_the_range(env: Any, kind: str, subtask: int) -> None:
    """And not before it, by a hundredth; the robot stands at rest."""
    share = ARTICULATIONS[kind].open_share
    for less, done in ((-0.01, False), (0.01, True)):
        env.reset(seed=[1, 9])
        h = inner(env).h
        h.subtask.set(float(subtask))
        h.things[0].set_pose(h.goal.value[:, 0].clone())
        at_rest(h)
        opened_by(h, kind, share + less)
        info = idle(env)
        assert info["subtask_done"].all() == done and info["is_open"].all() == done
        assert not info["fail"].any()


def test_close_is_done_when_it_is_shut(env: Any) -> None:
    for share, done in ((0.02, False), (0.0, True)):
        env.reset(seed=[1, 9])
        h = inner(env).h
        h.subtask.set(3.0)
        h.things[0].set_pose(h.goal.value[:, 0].clone())
        at_rest(h)
        opened_by(h, "drawer", share)
        info = idle(env)
        assert info["subtask_done"].all() == done == info["is_closed"].all()


def test_rows_in_different_subtasks_are_as_alone() -> None:
    """One opens the drawer, the other begins to close it."""
    seen = []
    for rows in ([1], [9], [1, 9]):
        env = begun(rows, targets=1)
        h, expert = inner(env).h, WaypointExecutor(env)
        if 9 in rows:
            closing = torch.tensor([seed == 9 for seed in rows])
            h.subtask.set(torch.where(closing, 3.0, 0.0))
            goal = h.goal.value[:, 0].clone()
            h.robot.scope.move(closing, lambda goal=goal, h=h, closing=closing: h.things[0].set_pose(goal[closing]))
        states = []
        for _ in range(12):
            observation = env.step(expert.act())[0]
            flat = [value for group in observation.values() for value in group.values()]
            states.append(torch.cat([x.reshape(len(rows), -1).float() for x in flat], 1))
        seen.append(torch.stack(states))
        env.close()
    one, other, both = seen
    assert torch.equal(one[:, 0], both[:, 0]) and torch.equal(other[:, 0], both[:, 1])


@pytest.mark.parametrize("layout", ["apartment1", "apartment4"])  # with chairs at the table
def test_from_the_front_the_base_goes_on_without_touching_anything(layout: str) -> None:
    """From each stand before the table, in eight poses on the way to where the arm reaches the place. The whole robot
    is tried in MuJoCo, its arm stretched out as on that way."""
    found = long_places(layout, ("", "drawer", "fridge"), ("drawer", "table", "fridge"))
    fetch = robot("fetch_mshab")
    tries = Touching(apartment(int(layout[-1])), (fetch.arm, fetch.gripper, False))
    poses = []
    for place in (k for k, name in enumerate(found.names) if name == "table/top"):
        for x, y, yaw in found.stands[0][place][1].tolist():
            ahead = np.array([math.cos(yaw), math.sin(yaw)])
            end = found.points[place, :2] - REACH * ahead
            share = np.linspace(0.0, 1.0, 8)[:, None]
            line = (1 - share) * np.array([x, y]) + share * end
            poses += [np.append(at, math.remainder(yaw, 2 * math.pi)) for at in line]
    joints = tries.robot.keyframe("rest").repeat(len(poses), 1)
    joints[:, :3] = torch.tensor(np.array(poses)).float()
    joints[:, -8:] = READY.like(joints)
    assert len(poses) >= 100
    assert not tries.touches(joints).any()
