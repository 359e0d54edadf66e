"""Stands before the open fridge, tried with the whole robot, and the way in from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.tasks.home.doors.inside import inside, joints_of, one_front
from manikin.tasks.home.doors.reach_in import REACH, READY, touched

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

LAYOUT = "apartment0"  # of seed 0
OPEN = joints_of(LAYOUT, "fridge")


def shelf() -> list[tuple[np.ndarray, np.ndarray]]:
    """Places (3,) in the fridge and stands (k, 3) before each."""
    found = inside(LAYOUT, "fridge")
    mine = [k for k, name in enumerate(found.names) if name == "fridge"]
    return [(found.points[k].astype(float), np.unique(found.stands[k].astype(float), axis=0)) for k in mine]


@pytest.fixture(scope="module")
def env() -> Any:
    options = {"autoreset": "disabled", "terminate": False, "reward": "none", "observe": "state"}
    env = manikin.make("HomePick-v1", 1, config={"where": "fridge"}, **options)
    env.reset(seed=[0])
    (part,) = env.parts()
    yield part.env
    env.close()


def with_others(env: Any, joints: torch.Tensor) -> set[str]:
    """Bodies that the robot touches at joints (joints,), without the object; by MuJoCo, in the task's own scene."""
    env.h.robot.set_qpos(joints[None])
    env.world.forward()
    model, data = env.model_data(0)
    prefix, found = env.h.robot.prefix, set()
    for geoms in data.contact.geom[: data.ncon]:
        bodies = [model.body(model.geom_bodyid[g]).name for g in geoms]
        if sum(name.startswith(prefix) for name in bodies) == 1:
            found |= {name for name in bodies if not name.startswith(prefix)}
    return {name for name in found if not name.startswith("object")} - {"world"}


def test_from_the_stands_that_are_kept_the_robot_touches_nothing_on_its_way_in(env: Any) -> None:
    joints, tried = env.h.robot.keyframe("rest").clone(), 0
    joints[-8:] = READY.like(joints)
    for place, stands in shelf():
        for x, y, yaw in stands.tolist():
            ahead, far = np.array([np.cos(yaw), np.sin(yaw)]), np.linalg.norm(place[:2] - (x, y))
            for away in (far, (far + REACH) / 2, REACH):
                joints[:3] = torch.tensor([*(place[:2] - away * ahead), yaw])
                assert not with_others(env, joints)
                tried += 1
    assert tried > 24
    joints[:3] = torch.tensor([*(place[:2] - 0.6 * ahead), yaw])  # with its base in the fridge
    assert with_others(env, joints)


def test_a_door_in_the_way_and_a_side_wall_are_touched() -> None:
    one, (place, stands) = one_front(LAYOUT, "fridge"), shelf()[0]
    assert (touched(LAYOUT, OPEN, place, stands) == 0).all()
    half_open = {one.mechanism: {one.joint: 0.6}}  # it stands before a half of the shelf
    assert (touched(LAYOUT, half_open, place, stands) > 0).all()
    wall = place + 0.3 * np.array([-np.sin(one.yaw), np.cos(one.yaw), 0.0])
    aside = stands + np.array([*(wall - place)[:2], 0.0])
    assert (touched(LAYOUT, OPEN, wall, aside) > 0).any()


def test_a_stand_is_judged_alone_as_among_others() -> None:
    place, stands = shelf()[1]
    stands = np.concatenate([stands, stands[:1] + np.array([0.0, 0.0, 0.8])])
    together = touched(LAYOUT, OPEN, place, stands)
    alone = [touched(LAYOUT, OPEN, place, one[None])[0] for one in stands]
    assert together.tolist() == alone and together[-1] > 0


def test_whole_turns_make_no_difference() -> None:
    """The joint that turns the base ends after one turn; a robot that stops there faces elsewhere."""
    place, stands = shelf()[0]
    wall = place + np.array([0.2, 0.0, 0.0])
    for where in (place, wall):
        count = touched(LAYOUT, OPEN, where, stands)
        assert touched(LAYOUT, OPEN, where, stands + np.array([0.0, 0.0, 2 * np.pi])).tolist() == count.tolist()


@pytest.mark.parametrize("off", [(0.04, 0.0, 0.0), (0.0, -0.04, 0.1), (0.03, 0.03, -0.12)])
def test_the_base_ends_straight_behind_what_it_takes_however_it_stands(env: Any, off: tuple[float, ...]) -> None:
    h = env.h
    stand = env.task.expert(h)[0].base[:, -1]
    joints = h.robot.keyframe("rest")[None].clone()
    joints[:, :3] = stand + torch.tensor([off])
    h.robot.set_qpos(joints)
    env.world.forward()
    stages = {one.name: one for one in env.task.expert(h)}
    tool, yaw = stages["around"].pose[:, :2], stand[:, 2]
    behind = tool - REACH * torch.stack([torch.cos(yaw), torch.sin(yaw)], 1)
    assert (stages["in"].base[:, :2] - behind).norm(dim=1).max() < 1e-3
    turn = stages["in"].base[:, 2] - yaw
    assert torch.atan2(turn.sin(), turn.cos()).abs().max() < 1e-3
