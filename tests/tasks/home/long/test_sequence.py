"""Long tasks: their order, when a row goes on or fails, teleported navigation, rows of a batch beside single ones."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
import torch

import manikin
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes.objects import OBJECT_SETS, home_objects
from manikin.math import pose_inv, pose_mul, quat_angle
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.home.long.set_table import SetTable
from manikin.tasks.home.long.tidy_house import TidyHouse
from manikin.tasks.home.objects_at import Grips
from manikin.tasks.home.rules import RULES, SEQUENCES

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

WARP = find_spec("mujoco_warp") is not None
TELEPORTED = {"navigation": "teleported", "targets": 2}  # pick 0, place 0, pick 1, place 1


def begun(seeds: list[int], **options: Any) -> Any:
    options = {"config": TELEPORTED, "autoreset": "disabled", "terminate": False, "reward": "sparse", **options}
    env = manikin.make("TidyHouse-v1", len(seeds), observe="state_dict", **options)
    env.reset(seed=seeds)
    return env


def inner(env: Any) -> Any:
    """Of rows that are all in one apartment."""
    (part,) = env.parts()
    return part.env


def idle(env: Any) -> Any:
    return env.step(torch.zeros(env.num_envs, 13))[-1]


def lay_at_goal(h: Any, k: int, beside: float = 0.0) -> None:
    """Put an object down at its goal, or so far beside it [m]."""
    goal = h.goal.value[:, k].clone()
    goal[:, 0] += beside
    h.things[k].set_pose(goal)


def test_the_order_and_the_horizons_are_those_of_the_rules() -> None:
    steps = TidyHouse(layout="apartment0").steps()
    assert tuple(step.kind for step in steps) == SEQUENCES["tidy_house"] and len(steps) == 20
    assert [step.target for step in steps] == [k for k in range(5) for _ in range(4)]
    assert [step.carrying for step in steps] == [False, False, True, True] * 5
    assert [step.to_goal for step in steps] == [False, False, True, False] * 5
    horizons = sum(RULES[step.kind].horizon for step in steps)
    assert horizons == 7000 == round(TidyHouse.horizon_s * TidyHouse.control_hz)
    teleported = TidyHouse({"navigation": "teleported", "targets": 2}, layout="apartment0").steps()
    assert [step.name for step in teleported] == ["pick 0", "place 0", "pick 1", "place 1"]


def test_options_that_are_not_there_are_named() -> None:
    with pytest.raises(ConfigError, match="1 to 5 targets, not 6"):
        TidyHouse({"targets": 6}, layout="apartment0").steps()
    with pytest.raises(ConfigError, match=r"SetTable-v1 has 2 objects, .* not 1: 013_apple"):
        SetTable({"objects": ("013_apple",)}, layout="apartment0").steps()
    with pytest.raises(UnknownNameError, match="driven"):
        TidyHouse({"navigation": "flown"}, layout="apartment0").steps()


def test_a_subtask_fails_when_its_horizon_is_over() -> None:
    """After 200 control steps; not after 199."""
    env = begun([1])
    inner(env).h.steps.set(198.0)
    assert not idle(env)["fail"].any()
    info = idle(env)
    assert info["fail"].all() and info["out_of_time"].all() and not info["excessive_collisions"].any()
    assert idle(env)["out_of_time"].all()  # and it stays so
    env.close()


def test_a_subtask_fails_at_its_own_limit_of_force() -> None:
    env = begun([1, 9])
    h = inner(env).h
    h.pressed.set(torch.tensor([RULES["pick"].force_limit, RULES["pick"].force_limit - 1.0]))
    info = idle(env)
    assert info["excessive_collisions"].tolist() == [True, False] == info["fail"].tolist()
    env.close()


def test_what_was_placed_must_stay_at_its_goal() -> None:
    """In the third subtask: the first object lies within 15 cm of its goal, or 20 cm beside it."""
    for beside, broken in ((0.0, False), (0.2, True)):
        env = begun([1])
        h = inner(env).h
        h.subtask.set(2.0)
        lay_at_goal(h, 0, beside)
        info = idle(env)
        assert info["undone"].all() == broken == info["fail"].all()
        env.close()


def test_before_it_is_placed_an_object_may_lie_anywhere() -> None:
    env = begun([1])
    for subtask in (0.0, 1.0):
        inner(env).h.subtask.set(subtask)
        assert not idle(env)["fail"].any()
    env.close()


def test_a_row_goes_on_in_the_step_in_which_place_is_done() -> None:
    """The robot at rest with empty hands, the object at its goal. Its clock and its force begin anew, and the robot is
    where the next subtask may begin."""
    env = begun([1, 9])
    h = inner(env).h
    rest = torch.cat([h.robot.arm_qpos[:, :3], h.robot.keyframe("rest")[3:].expand(2, -1)], 1)
    h.robot.set_qpos(rest, opening=1.0)
    h.subtask.set(torch.tensor([1.0, 0.0]))
    h.pressed.set(100.0)
    h.steps.set(50.0)
    lay_at_goal(h, 0)
    action = torch.zeros(2, 13)
    action[:, 7] = 1.0
    info = env.step(action)[-1]
    assert info["subtask_done"].tolist() == [True, False]
    assert info["subtask"].tolist() == [1.0, 0.0]  # to which the step belonged
    assert h.subtask.value.tolist() == [2.0, 0.0]
    assert h.steps.value.tolist() == [0.0, 51.0] and h.pressed.value[0] == 0.0
    spawn = h.spawns.value[0, 2]
    assert h.robot.root_pose[0, :2].numpy() == pytest.approx(spawn[:2].numpy(), abs=1e-3)
    assert h.robot.root_pose[1, :2].numpy() == pytest.approx(rest[1, :2].numpy(), abs=5e-3)
    env.close()


def test_all_done_is_success() -> None:
    env = begun([1], config={**TELEPORTED, "targets": 1})
    h = inner(env).h
    h.subtask.set(1.0)
    lay_at_goal(h, 0)
    h.robot.set_qpos(torch.cat([h.robot.arm_qpos[:, :3], h.robot.keyframe("rest")[None, 3:]], 1), opening=1.0)
    assert idle(env)["success"].all()
    env.close()


def take(h: Any, row: int) -> None:
    """Put the first object into the gripper of a row, at rest."""
    grips = Grips(home_objects(OBJECT_SETS["tidy_house"].targets))
    joints = torch.cat([h.robot.arm_qpos[:, :3], h.robot.keyframe("rest")[3:].expand(len(h.begun.value), -1)], 1)
    tool = torch.cat(h.robot.solver.chain.fk(joints.double()), 1).float()
    choice = h.things[0].choice
    thing = grips.held(h.robot, choice, pose_mul(h.robot.base_pose.expand_as(tool), tool))
    mask, opening = torch.arange(len(joints)) == row, grips.opening(h.robot, choice)

    def write() -> None:
        h.things[0].set_pose(thing[mask, :3], thing[mask, 3:])
        h.robot.set_qpos(joints[mask], opening=opening[mask])

    h.robot.scope.move(mask, write)


def test_rows_in_different_subtasks_are_as_alone_and_what_is_held_is_carried_along() -> None:
    """One robot has the object in hand at rest: its Pick is done, it is put elsewhere with the object, and drives on to
    the goal. The other still drives to its object."""
    seen = []
    for rows in ([1], [9], [1, 9]):
        env = begun(rows)
        h, expert = inner(env).h, WaypointExecutor(env)
        if 1 in rows:
            take(h, 0)
        states, flags = [], []
        for _ in range(25):
            before = pose_mul(pose_inv(h.robot.tcp_pose), h.things[0].pose)
            base = h.robot.root_pose.clone()
            action = expert.act()
            holds = h.grasps[0].value | (h.things[0].pos - h.robot.tcp_pos).norm(dim=1).lt(0.1)
            action[holds] *= h.subtask.value[holds, None]  # it stands still until Pick is done
            action[holds, 7] = -1.0
            observation, *_, info = env.step(action)
            on = info["subtask_done"]
            if on.any():
                after = pose_mul(pose_inv(h.robot.tcp_pose), h.things[0].pose)
                assert (after - before)[on, :3].abs().max() < 2e-3
                assert quat_angle(after[on, 3:], before[on, 3:]).max() < 0.01
                assert (h.robot.root_pose - base)[on, :2].abs().amax() > 0.1
            flat = [value for group in observation.values() for value in group.values()]
            states.append(torch.cat([x.reshape(len(rows), -1).float() for x in flat], 1))
            flags.append(torch.stack([info["subtask"], info["is_grasped"].float()], 1))
        seen.append((torch.stack(states), torch.stack(flags)))
        env.close()
    (first, one), (second, other), (both, flags) = seen
    assert torch.equal(first[:, 0], both[:, 0]) and torch.equal(second[:, 0], both[:, 1])
    assert torch.equal(torch.cat([one, other], 1), flags)
    assert flags[-1, :, 0].tolist() == [1.0, 0.0], "the rows are in different subtasks"
    carrying = flags[..., 0] == 1
    assert flags[..., 1][carrying].all()


def test_the_goal_that_is_seen_is_that_of_the_subtask() -> None:
    """None of Pick; of Place the object's goal, seen from the base."""
    env = begun([1])
    e = inner(env)
    assert not e.task.observe(e.h)["policy"]["goal_from_base"].any()
    e.h.subtask.set(3.0)
    found = e.task.observe(e.h)["policy"]["goal_from_base"]
    root = e.h.robot.root_pose
    pose = torch.cat([e.h.goal.value[:, 1], torch.tensor([[1.0, 0, 0, 0]])], 1)
    assert found.numpy() == pytest.approx(pose_mul(pose_inv(root), pose)[:, :3].numpy(), abs=1e-5)
    env.close()


@pytest.mark.skipif(not WARP, reason="needs pip install 'manikin[warp]'")
def test_a_device_puts_robots_elsewhere_too() -> None:
    places = []
    for device in ("cpu", "warp:cpu"):
        env = begun([1, 9], device=device)
        h = inner(env).h
        h.subtask.set(torch.tensor([1.0, 0.0]))
        lay_at_goal(h, 0)
        rest = torch.cat([h.robot.arm_qpos[:, :3], h.robot.keyframe("rest")[3:].expand(2, -1)], 1)
        h.robot.set_qpos(rest, opening=1.0)
        info = idle(env)
        assert info["subtask_done"].tolist() == [True, False]
        places.append(h.robot.root_pose.clone())
        env.close()
    assert places[0].numpy() == pytest.approx(places[1].numpy(), abs=2e-3)
