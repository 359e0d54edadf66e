"""Places for objects: held to MuJoCo's contacts, to inverse kinematics and to geometry; ways with few corners."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import SceneError
from manikin.homes import FreeSpace, Starts, apartment
from manikin.homes.free_space import CELL
from manikin.homes.objects import HOME_OBJECTS, home_objects
from manikin.math import pose, quat_from_yaw, quat_rotate
from manikin.robots import robot
from manikin.tasks.home.objects_at import Grips, Room, places, way_to
from manikin.tasks.home.scene import LAYOUTS
from manikin.tasks.home.ways import quick_way

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

LAYOUT = "apartment0"


@pytest.fixture(scope="module")
def env() -> Any:
    made = manikin.make("HomePick-v1", 1, autoreset="disabled", reward="none")
    made.reset(seed=0)
    yield made.parts()[0].env
    made.close()


@pytest.fixture(scope="module")
def checked() -> Starts:
    fetch = robot("fetch_mshab")
    return Starts(apartment(0), places(LAYOUT).space, (fetch.arm, fetch.gripper, False))


def joints_at(base: np.ndarray) -> torch.Tensor:
    rest = torch.tensor(robot("fetch_mshab").arm.keyframes["rest"])
    return torch.cat([torch.from_numpy(base.astype(np.float32)), rest[3:].expand(len(base), -1)], 1)


def test_places_lie_on_surfaces_and_starts_are_within_two_metres() -> None:
    found = places(LAYOUT)
    kinds = {name.split("/")[0] for name in found.names}
    assert kinds == {"table", "low_table", "sofa", "tv_stand", "counter", "chest"}
    away = np.linalg.norm(found.starts - found.points[:, None, :2], axis=2)
    assert away.max() < 2.0
    for point, corners, name in zip(found.points, found.corners, found.names, strict=True):
        side, to = np.roll(corners, -1, 0) - corners, point[:2] - corners
        assert (side[:, 0] * to[:, 1] - side[:, 1] * to[:, 0] > 0).all(), name
        owner, one = apartment(0).receptacle(name)
        assert point[2] == pytest.approx(owner.pos[2] + one.pos[2] - one.half[2], abs=1e-6)


def test_the_whole_robot_at_rest_touches_nothing_where_it_stands_and_starts(checked: Starts) -> None:
    found, rng = places(LAYOUT), np.random.default_rng(0)
    stands = np.unique(found.stands.reshape(-1, 3), axis=0)
    assert not checked.touches(joints_at(stands[rng.permutation(len(stands))[:60]])).any()
    number = rng.integers(0, len(found.points), 60)
    starts = found.starts[number, rng.integers(0, found.starts.shape[1], 60)]
    to = found.points[number, :2] - starts
    bases = np.c_[starts, np.arctan2(to[:, 1], to[:, 0])]
    assert not checked.touches(joints_at(bases)).any()


def test_every_place_is_within_reach_from_its_stands(env: Any) -> None:
    """By inverse kinematics, of a low object and of a high one."""
    found, rng = places(LAYOUT), np.random.default_rng(1)
    for k, name in itertools.product(range(len(found.points)), ("007_tuna_fish_can", "003_cracker_box")):
        stand = found.stands[k, rng.integers(0, found.stands.shape[1])]
        away = found.points[k, :2] - stand[:2]
        assert 0.5 - 1e-5 <= np.linalg.norm(away) <= 0.78 + 1e-5
        assert stand[2] == pytest.approx(math.atan2(away[1], away[0]), abs=1e-5)
        grips, thing = Grips(home_objects((name,))), torch.from_numpy(found.points[k : k + 1]).clone()
        thing[:, 2] += HOME_OBJECTS[name].height
        pick = torch.zeros(1, dtype=torch.int64)
        lies = pose(thing, torch.tensor([[1.0, 0, 0, 0]]))
        tool = grips.of(env.h.robot, pick, lies, torch.tensor([float(stand[2])]))
        assert bool(env.h.robot.ik(tool, joints_at(stand[None])).reached), (found.names[k], name)


@pytest.mark.parametrize("name", HOME_OBJECTS)
def test_a_grip_is_the_one_of_the_object_whichever_way_it_is_turned(env: Any, name: str) -> None:
    """The tool points down, its fingers close along the declared direction, up to the object's own symmetry."""
    thing, grips = HOME_OBJECTS[name], Grips(home_objects((name,)))
    pick = torch.zeros(1, dtype=torch.int64)
    for turn, facing in ((0.3, 0.0), (-2.5, 1.0), (3.0, -3.0)):
        lies = pose(torch.tensor([[1.0, 2.0, 0.5]]), quat_from_yaw(torch.tensor([turn])))
        tool = grips.of(env.h.robot, pick, lies, torch.tensor([facing]))
        x, y, z = (quat_rotate(tool[:, 3:], torch.eye(3)[k : k + 1])[0].numpy() for k in range(3))
        assert z == pytest.approx([0, 0, -1], abs=1e-5)
        away = (tool[0, :3] - lies[0, :3]).numpy()
        equal = []
        for k in range(thing.turns):
            by = turn + 2 * math.pi * k / thing.turns
            c, s = math.cos(by), math.sin(by)
            at = np.array([c * thing.grip[0] - s * thing.grip[1], s * thing.grip[0] + c * thing.grip[1], thing.grip[2]])
            opens = by + thing.yaw + math.pi / 2
            equal.append(np.allclose(away, at, atol=1e-5) and abs(y @ (math.cos(opens), math.sin(opens), 0)) > 0.99999)
        assert any(equal)
        off = math.remainder(math.atan2(x[1], x[0]) - facing, 2 * math.pi)
        assert abs(off) <= math.pi / thing.turns + 1e-5
        held = grips.held(env.h.robot, pick, tool)[0, :3]
        assert held.tolist() == pytest.approx(lies[0, :3].tolist(), abs=1e-5)


def test_pads_of_a_gripper_that_holds_are_half_a_millimetre_in_the_object(env: Any) -> None:
    """As MuJoCo has the pads once the robot is put so."""
    h, rest = env.h, env.h.robot.keyframe("rest")
    grips = Grips(home_objects(tuple(HOME_OBJECTS)))
    for k, thing in enumerate(HOME_OBJECTS.values()):
        h.robot.set_qpos(rest, opening=grips.opening(h.robot, torch.tensor([k])))
        env.world.forward()
        model, data = env.world.data(0)
        pads = [
            g for g in range(model.ngeom) if "finger" in model.body(model.geom_bodyid[g]).name and model.geom_contype[g]
        ]
        assert len(pads) == 2
        hand = data.body("robot/gripper_link").xmat.reshape(3, 3)
        (one, other) = ((data.geom_xpos[g] @ hand)[1] for g in pads)
        gap = abs(one - other) - sum(model.geom_size[g][1] for g in pads)
        assert gap == pytest.approx(thing.width - 0.001, abs=2e-4), thing.name


def hall(wall: bool) -> FreeSpace:
    """6 m x 4 m without anything, or with a wall at x = 3 that ends at y = 2.5."""
    clearance = np.full((241, 161), 2.0)
    if wall:
        x, y = np.meshgrid(np.arange(241) * CELL, np.arange(161) * CELL, indexing="ij")
        clearance = np.hypot(x - 3.0, np.maximum(y - 2.5, 0.0))
    return FreeSpace(0.3, np.zeros(2), clearance)


def test_a_way_is_straight_where_it_can_be() -> None:
    space, base = hall(wall=False), np.array([1.0, 1.0, 0.0])
    stands = np.array([[3.0, 1.0, 0.2], [1.0, 3.5, 1.5], [4.5, 3.0, 0.0]])
    way = quick_way(space, space.inside, base, stands)
    assert way.shape == (1, 3) and way[0] == pytest.approx([3.0, 1.0, 0.2])


def test_round_a_wall_it_has_one_corner_and_every_leg_is_free() -> None:
    space, base = hall(wall=True), np.array([2.2, 2.0, 0.0])
    stand = np.array([[3.8, 2.0, -1.0]])
    way = quick_way(space, space.inside, base, stand)
    assert way.shape == (2, 3) and way[-1] == pytest.approx(stand[0])
    for a, b in itertools.pairwise(np.concatenate([base[None, :2], way[:, :2]])):
        assert space.is_free(np.linspace(a, b, 400)).all()
    assert way[0, 2] == pytest.approx(math.atan2(way[0, 1] - base[1], way[0, 0] - base[0]))  # as it comes there
    narrow = space.inside & (np.arange(161) * CELL > 3.2)
    assert quick_way(space, narrow, base, stand)[0, 1] > 3.2 - CELL


def test_where_no_way_has_one_corner_it_has_two() -> None:
    """Two walls across the hall, open at opposite ends."""
    x, y = np.meshgrid(np.arange(241) * CELL, np.arange(161) * CELL, indexing="ij")
    walls = np.hypot(x - 2.2, np.maximum(y - 2.8, 0.0)), np.hypot(x - 4.0, np.maximum(1.2 - y, 0.0))
    space = FreeSpace(0.3, np.zeros(2), np.minimum(*walls))
    base, stand = np.array([1.4, 2.4, 0.0]), np.array([[4.8, 1.6, 0.5]])
    way = quick_way(space, space.inside & (np.abs(y - 2.0) > 1.2), base, stand)
    assert way.shape == (3, 3) and way[-1] == pytest.approx(stand[0])
    for a, b in itertools.pairwise(np.concatenate([base[None, :2], way[:, :2]])):
        assert space.is_free(np.linspace(a, b, 400)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_before_a_seat_it_stands_at_the_front_and_things_keep_from_the_armrests(layout: str) -> None:
    """The sofa looks along its own x; half its width less the armrests is where things may lie."""
    found = places(layout)
    sofa = next(one for one in apartment(LAYOUTS.index(layout)).fixtures if one.kind == "sofa")
    yaw = 2 * math.atan2(sofa.quat[3], sofa.quat[0])
    front, aside = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    seats = [k for k, name in enumerate(found.names) if name.endswith("/seat")]
    assert seats
    half = sofa.receptacles[0].half[1]
    for k in seats:
        to = found.stands[k][:, :2] - found.points[k, :2]
        assert (to @ front >= 0.6 * np.linalg.norm(to, axis=1) - 1e-3).all()
        assert abs(float((found.points[k, :2] - np.array(sofa.pos[:2])) @ aside)) <= half - 0.12 + 1e-5


def test_ways_in_an_apartment_end_at_a_stand() -> None:
    found, rng = places(LAYOUT), np.random.default_rng(2)
    for k in rng.integers(0, len(found.points), 6):
        start = found.starts[k, rng.integers(0, found.starts.shape[1])]
        way = way_to(found, int(k), float(start[0]), float(start[1]), 0.0)
        assert np.abs(found.stands[k] - way[-1]).max(1).min() < 1e-5
        for a, b in itertools.pairwise(np.concatenate([start[None], way[:, :2]])):
            assert (found.space.clearance_at(np.linspace(a, b, 200)) >= found.space.radius - 0.02).all()


def test_an_apartment_without_room_before_anything_is_named() -> None:
    room = Room("apartment0")
    with pytest.raises(SceneError, match="in apartment0 there is no place before table/top"):
        room.with_places([room.spot("table/top", np.zeros(3), np.zeros((4, 2)), np.zeros((0, 3)))])
