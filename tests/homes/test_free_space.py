"""Maps of apartments, held to MuJoCo's own collision checks of a cylinder, and to lengths that can be worked out."""

from __future__ import annotations

import itertools
from typing import Any

import mujoco
import numpy as np
import pytest

from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.homes import VARIATIONS, Apartment, FreeSpace, apartment, free_space
from manikin.homes.footprints import footprints
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics
from manikin.spec.prop import Shape

RADIUS, HEIGHT = 0.3, 1.5


def room(*blocks: Shape) -> Apartment:
    """An empty room of 4 x 4 m with ``blocks``."""
    walls = [((2.05, 0, 1), (0.05, 2, 1)), ((-2.05, 0, 1), (0.05, 2, 1))]
    walls += [((0, 2.05, 1), (2.1, 0.05, 1)), ((0, -2.05, 1), (2.1, 0.05, 1))]
    shapes = [Shape(type="box", size=size, pos=pos) for pos, size in walls]
    return Apartment(name="room", low=(-2, -2), high=(2, 2), walls=(*shapes, *blocks))


@pytest.fixture(scope="module")
def halves() -> FreeSpace:
    """A wall from y = -2 to y = 0.5 in the middle of the room."""
    return free_space(room(Shape(type="box", size=(0.05, 1.25, 1), pos=(0, -0.75, 1))), radius=RADIUS)


@pytest.mark.parametrize("seed", range(VARIATIONS + 4))  # and those of the validation split
def test_what_is_called_free_is_free(seed: int, cylinder: Any) -> None:
    """0 of 1,000 random poses that the map calls free touch anything, and few free ones are missed."""
    home = apartment(seed)
    free, checked = free_space(home, radius=RADIUS, height=HEIGHT), cylinder(home, RADIUS, HEIGHT)
    rng = np.random.default_rng(seed)
    points = rng.uniform(np.subtract(home.low, 0.2), np.add(home.high, 0.2), (1000, 2))
    says, touches = free.is_free(points), checked.touches(points)
    inside = ((points > home.low) & (points < home.high)).all(1)
    assert not (says & touches).any()
    assert not (says & ~inside).any()
    missed = (~says & ~touches & inside).sum()
    assert missed <= 0.06 * (~touches & inside).sum()
    assert (free.clearance_at(points)[says] >= RADIUS).all()


def test_sampled_poses_and_ways_touch_nothing(cylinder: Any) -> None:
    home = apartment(3)
    free, checked = free_space(home, radius=RADIUS, height=HEIGHT), cylinder(home, RADIUS, HEIGHT)
    numbers = np.random.default_rng(0).uniform(size=(200, 3))
    poses = free.sample(numbers)
    assert not checked.touches(poses[:, :2]).any() and free.reachable(poses[:, :2]).all()
    assert np.ptp(poses[:, 0]) > 4 and np.ptp(poses[:, 2]) > 6
    for start, goal in poses[:10, :2].reshape(5, 2, 2):
        way = free.path(start, goal)
        points = np.concatenate([np.linspace(a, b, 60) for a, b in itertools.pairwise(way)])
        assert not checked.touches(points).any()
        length = np.linalg.norm(np.diff(way, axis=0), axis=1).sum()
        assert np.linalg.norm(goal - start) <= length <= free.distances(start[None], goal)[0] + 0.08


def test_poses_near_a_place_look_at_it() -> None:
    home = apartment(0)
    free, fridge = free_space(home, radius=RADIUS), np.array(home.of_kind("fridge")[0].pos[:2])
    poses = free.sample(np.random.default_rng(1).uniform(size=(100, 3)), near=fridge, within=2.0, facing=fridge)
    away = fridge - poses[:, :2]
    assert (np.linalg.norm(away, axis=1) < 2.0).all()
    ahead = np.stack([np.cos(poses[:, 2]), np.sin(poses[:, 2])], -1)
    assert np.allclose((ahead * away).sum(1), np.linalg.norm(away, axis=1))
    assert np.array_equal(free.sample(np.full((3, 3), 0.25)), free.sample(np.full((3, 3), 0.25)))


def test_the_way_round_a_wall_is_as_long_as_geometry_says(halves: FreeSpace) -> None:
    """A string round the end of the wall, thickened by the robot: two tangents and an arc."""
    start, goal = np.array([-1.0, -1.0]), np.array([1.0, -1.0])
    corner = np.array([-0.05, 0.5])
    reach = np.linalg.norm(start - corner)
    tangent = np.sqrt(reach**2 - RADIUS**2)
    to_corner = np.arctan2(*(corner - start)[::-1])
    heading = to_corner + np.arcsin(RADIUS / reach)  # of the tangent that passes on the left of the corner
    arc = RADIUS * (heading - 0.0)  # until it goes along the end of the wall
    exact = 2 * tangent + 2 * arc + 0.1
    found = halves.distances(start[None], goal)[0]
    assert exact - 0.01 < found < exact * 1.03 + 0.03
    way = halves.path(start, goal)
    drawn = np.linalg.norm(np.diff(way, axis=0), axis=1).sum()
    assert exact - 0.01 < drawn < exact * 1.02 + 0.02
    assert halves.distances(goal[None], start)[0] == pytest.approx(found)
    assert halves.distances(np.stack([start, start]), np.stack([goal, start])) == pytest.approx([found, 0.0])


def test_clearance_is_the_distance_to_the_walls_less_a_cell(halves: FreeSpace) -> None:
    points = np.array([[1.0, 0.0], [-1.0, 1.0], [1.0, 1.5], [0.0, 1.2]])
    exact = np.array([0.95, 1.0, 0.5, 0.7])
    found = halves.clearance_at(points)
    assert (found <= exact).all() and (found > exact - 0.045).all()
    assert (halves.clearance_at(np.array([[5.0, 0.0], [2.2, 0.0]])) == 0).all()


@pytest.mark.parametrize(
    ("shape", "exact"),
    [
        (Shape(type="box", size=(0.2, 0.1, 0.5), pos=(0, 0, 0.5)), (0.2, 0.1)),
        (Shape(type="cylinder", size=(0.2, 0.5), pos=(0, 0, 0.5)), (0.2, 0.2)),
        (Shape(type="sphere", size=(0.2,), pos=(0, 0, 0.5)), (0.2, 0.2)),
        (Shape(type="box", size=(0.2, 0.1, 0.1), pos=(0, 0, 2.0)), None),
        (Shape(type="box", size=(0.2, 0.1, 0.5), pos=(0, 0, 1.9)), (0.2, 0.1)),
        # half of a wedge stands on its edge: only what is below the robot's height counts
        (
            Shape(type="box", size=(1.0, 0.1, 1.0), pos=(0, 0, 1.0 + 2**0.5 - 1.0), quat=(0.92388, 0, 0.38268, 0)),
            (2**0.5, 0.1),
        ),
    ],
)
def test_footprints_are_cut_to_the_robots_height(shape: Shape, exact: tuple[float, float] | None) -> None:
    b = SceneBuilder([], Physics())
    b.fixture("it", shape)
    model = b.compile().model
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    found = footprints(model, data, low=0.01, high=1.5)
    if exact is None:
        assert not found
        return
    assert found[0].max(0) == pytest.approx(exact, rel=0.03, abs=1e-4)
    lower = footprints(model, data, low=0.01, high=0.3)
    if shape.quat != (1, 0, 0, 0):
        assert lower[0].max(0) == pytest.approx((0.3, 0.1), abs=1e-3)


def test_an_open_door_is_in_the_way() -> None:
    home = apartment(0)
    closed = free_space(home, radius=RADIUS)
    opened = free_space(home, radius=RADIUS, joints={"fridge": {"top_door": 1.5}})
    assert opened.inside.sum() < closed.inside.sum() - 100


def test_what_cannot_be_is_named(halves: FreeSpace) -> None:
    home = room()
    with pytest.raises(SceneError, match="no room"):
        free_space(home, radius=2.5)
    with pytest.raises(ConfigError, match="radius above 0"):
        free_space(home, radius=0.0)
    with pytest.raises(UnknownNameError, match="mechanism of room"):
        free_space(home, radius=0.3, joints={"fridge": {}})
    with pytest.raises(UnknownNameError, match="top_door"):
        free_space(apartment(0), radius=0.3, joints={"fridge": {"lid": 1.0}})
    with pytest.raises(SceneError, match=r"the goal \(0.00, -1.00\) m is not where .* nearest such place"):
        halves.distances(np.array([[1.0, 0.0]]), np.array([0.0, -1.0]))
    with pytest.raises(SceneError, match=r"no place within 0.1 m of \(0.00, -1.00\)"):
        halves.sample(np.zeros((1, 3)), near=np.array([0.0, -1.0]), within=0.1)


def test_the_nearest_of_several_goals_is_the_nearest_of_each(halves: FreeSpace) -> None:
    goals = np.array([(-1.0, -1.0), (1.0, -1.0), (1.2, 1.2)])
    nearest = halves.nearest(goals)
    each = np.stack([halves.ways(goal) for goal in goals]).min(0)
    inside = np.isfinite(each)
    assert inside.any() and np.array_equal(np.isfinite(nearest), inside)
    assert nearest[inside] == pytest.approx(each[inside])


def test_it_sees_past_the_end_of_a_wall_and_not_through_it(halves: FreeSpace) -> None:
    """The wall ends at y = 0.5, and the disc has a radius of 0.3 m."""
    starts = np.array([(-1.0, 0.95), (-1.0, 0.7), (-1.0, -1.0), (-1.0, -1.0)])
    ends = np.array([(1.0, 0.95), (1.0, 0.7), (1.0, -1.0), (-1.0, 1.0)])
    assert halves.sees(starts, ends).tolist() == [True, False, False, True]
    assert halves.sees(starts[:0], ends[:0]).shape == (0,)


def test_the_closest_place_is_beside_what_stands_there(halves: FreeSpace) -> None:
    """The wall is 5 cm thick each way and the robot's radius 30 cm, so 35 cm from the middle of the wall, on the side
    of the point; a place within reach is its own, to half a cell each way."""
    near = halves.closest(np.array([(0.04, -1.0), (-0.04, -1.0), (1.0, 0.5), (9.0, 0.0)]))
    assert near[0] == pytest.approx((0.35, -1.0), abs=0.05) and near[1] == pytest.approx((-0.35, -1.0), abs=0.05)
    assert near[2] == pytest.approx((1.0, 0.5), abs=0.0126) and near[3] == pytest.approx((1.7, 0.0), abs=0.05)
    assert halves.inside[tuple(np.rint((near - halves.origin) / 0.025).astype(int).T)].all()
