"""PrepareGroceries: the open fridge, what lies in it, how it is taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import manikin
from manikin.errors import ConfigError
from manikin.homes import apartment
from manikin.homes.objects import HOME_OBJECTS
from manikin.math import quat_rotate
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.home.doors.inside import one_front
from manikin.tasks.home.objects_at import Grips

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

LAYOUT = "apartment1"  # of seeds 1, 9, 17


@pytest.fixture(scope="module")
def env() -> Any:
    options = {"autoreset": "disabled", "terminate": False, "reward": "none", "observe": "state"}
    env = manikin.make("PrepareGroceries-v1", 3, config={"navigation": "teleported"}, **options)
    env.reset(seed=[1, 9, 17])
    yield env
    env.close()


def inner(env: Any) -> Any:
    (part,) = env.parts()
    return part.env


def in_fridge(pos: torch.Tensor) -> torch.Tensor:
    """(n,) bool: above the middle shelf, within its sides."""
    home = apartment(1)
    middle, (_, box) = torch.tensor(home.middle("fridge/middle")[:3]), home.receptacle("fridge/middle")
    x, y, z = box.half
    return ((pos.double() - middle).abs() < torch.tensor([y, x, z + 1e-3])).all(1)  # it faces along y


@pytest.mark.parametrize(
    ("task", "objects"),
    [
        ("PrepareGroceries-v1", ("003_cracker_box", "002_master_chef_can")),
        ("SetTable-v1", ("024_bowl", "002_master_chef_can")),  # the second is in the fridge
    ],
)
def test_what_is_too_wide_for_the_fridge_is_named_as_by_pick(task: str, objects: tuple[str, ...]) -> None:
    wide = HOME_OBJECTS[objects[1]]
    assert min(wide.size[:2]) > 0.1, "the gripper opens 10 cm"
    with pytest.raises(ConfigError) as alone:
        manikin.make("HomePick-v1", config={"where": "fridge", "objects": objects[1:]})
    with pytest.raises(ConfigError, match="002_master_chef_can is too wide to be taken from the front") as e:
        manikin.make(task, config={"objects": objects})
    assert str(e.value) == str(alone.value)


def test_on_a_table_it_may_be_as_wide_as_it_is() -> None:
    manikin.make("TidyHouse-v1", config={"objects": ("002_master_chef_can",), "targets": 1}).close()


def test_two_lie_in_the_fridge_and_the_third_goes_there(env: Any) -> None:
    h = inner(env).h
    assert [bool(in_fridge(thing.pos).all()) for thing in h.things] == [True, True, False]
    assert [bool(in_fridge(goal).all()) for goal in h.goal.value.unbind(1)] == [False, False, True]
    apart = (h.things[0].pos - h.things[1].pos).norm(dim=1)
    assert apart.min() > 0.2


def test_the_fridge_is_open_as_published(env: Any) -> None:
    """By 1.5 rad, Habitat's figure."""
    one, h = one_front(LAYOUT, "fridge"), inner(env).h
    assert h.home.mechanism("fridge").joint(one.joint).tolist() == pytest.approx([1.5] * 3, abs=0.02)


def test_all_stays_where_it_lies(env: Any) -> None:
    env.reset(seed=[1, 9, 17])
    h = inner(env).h
    before = torch.stack([thing.pos for thing in h.things])
    for _ in range(20):
        env.step(torch.zeros(3, 13))
    assert (torch.stack([thing.pos for thing in h.things]) - before).norm(dim=2).max() < 5e-3


def test_objects_from_the_fridge_are_narrow_enough_for_the_gripper(env: Any) -> None:
    width = inner(env).h.robot.gripper.max_width
    assert all(HOME_OBJECTS[name].width < width for name in inner(env).task.config.objects)


def test_the_grip_from_the_front_points_thirty_degrees_down_across_the_narrow_side(env: Any) -> None:
    """Of a sugar box whose broad side faces the robot's side: ahead along x, the pads left and right of it."""
    box = HOME_OBJECTS["004_sugar_box"]
    pose = torch.tensor([[2.0, 1.0, 0.5 + box.height, 2**-0.5, 0.0, 0.0, 2**-0.5]])  # its x is the world's y
    grip = Grips([box]).from_front(torch.tensor([0]), pose, torch.tensor([0.1]))
    ahead = quat_rotate(grip[:, 3:], torch.tensor([[0.0, 0.0, 1.0]]))[0]
    assert ahead.tolist() == pytest.approx([3**0.5 / 2, 0.0, -0.5], abs=1e-5)
    opens = quat_rotate(grip[:, 3:], torch.tensor([[0.0, 1.0, 0.0]]))[0]
    assert opens[1].abs().item() == pytest.approx(1.0, abs=1e-5)
    assert grip[0, 1].item() == pytest.approx(1.0, abs=1e-5) and grip[0, 2].item() > 0.5


NAVIGATE, PICK = 0, 5  # to the first object; of the second, which also lies in the fridge


def test_rows_in_different_subtasks_are_as_alone() -> None:
    """One drives to the first object, the other, whose first object is at its goal, reaches into the fridge."""
    seen = []
    for rows in ([1], [9], [1, 9]):
        options = {"autoreset": "disabled", "terminate": False, "reward": "sparse", "observe": "state_dict"}
        env = manikin.make("PrepareGroceries-v1", len(rows), **options)
        env.reset(seed=rows)
        h, expert = inner(env).h, WaypointExecutor(env)
        picks = torch.tensor([seed == 9 for seed in rows])
        if picks.any():
            h.subtask.set(torch.where(picks, float(PICK), float(NAVIGATE)))
            goal = h.goal.value[:, 0].clone()
            h.robot.scope.move(picks, lambda goal=goal, h=h, picks=picks: h.things[0].set_pose(goal[picks]))
        states = []
        for _ in range(15):
            observation, *_, info = env.step(expert.act())
            flat = [value for group in observation.values() for value in group.values()]
            states.append(torch.cat([x.reshape(len(rows), -1).float() for x in flat], 1))
        assert info["subtask"].tolist() == torch.where(picks, PICK, NAVIGATE).tolist() and not info["fail"].any()
        seen.append((torch.stack(states), env.state_hash().tolist(), expert.waypoint))
        env.close()
    (one, first, drives), (other, second, reaches), (both, together, parts) = seen
    assert drives + reaches == parts and drives != reaches
    assert torch.equal(one[:, 0], both[:, 0]) and torch.equal(other[:, 0], both[:, 1])
    assert first + second == together
    assert (one[-1] - one[0]).abs().max() > 0.05 and (other[-1] - other[0]).abs().max() > 0.05  # they moved
