"""A robot that a task cannot be done with is refused with the names of those that can, and those can be made, reset and
stepped."""

from __future__ import annotations

import functools

import pytest
import torch

import manikin
from manikin.env.registry import task_class, task_ids
from manikin.errors import ConfigError, ManikinError, SceneError, UnknownNameError
from manikin.robots import arms, robot
from manikin.scene.robot import assemble

NEEDY = [task for task in task_ids() if task_class(task).robot_needs]
SLOW = ("Excavate-v1", "Fill-v1")  # grains settle first
LACKS = ("cart", "go2", "panda+none")  # one of them lacks what a task needs


def begun(task: str, word: str) -> None:
    env = manikin.make(task, robot=word)
    env.reset(seed=0)
    env.close()


def refused(task: str, word: str) -> tuple[ManikinError, str]:
    """The error, and all that it says."""
    with pytest.raises(ManikinError) as found:
        begun(task, word)
    return found.value, "; ".join([str(found.value), *getattr(found.value, "__notes__", [])])


@functools.cache
def named(task: str) -> tuple[str, ...]:
    """The robots that the task's refusal names."""
    for word in LACKS:
        try:
            manikin.make(task, robot=",".join([word] * task_class(task).robot_count)).close()
        except ConfigError as error:
            _, found, words = str(error).partition("it takes ")
            if found:
                return tuple(words.split(", "))
    raise AssertionError(f"{task} takes all of {LACKS}")


# ---- those that are named --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", NEEDY)
def test_robots_that_are_named_can_be_made_reset_and_stepped(task: str) -> None:
    words = named(task)
    assert set(task_class(task).robots) <= set(words)
    for word in words[::4] if task in SLOW else words:
        env = manikin.make(task, robot=word, terminate=False)
        env.reset(seed=0)
        for _ in range(3):
            seen, reward, *_, info = env.step(torch.zeros(1, env.single_action_space.shape[0]))
        assert torch.isfinite(reward).all() and not info.get("fail", torch.zeros(1, dtype=torch.bool)).any(), word
        for part in seen.values() if isinstance(seen, dict) else [seen]:
            for value in part.values() if isinstance(part, dict) else [part]:
                assert torch.isfinite(value).all(), word
        env.close()


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("HopperStand-v1", "hopper"),
        ("HumanoidStand-v1", "humanoid"),
        ("AntWalk-v1", "ant, humanoid"),
        ("LeggedStand-v1", "g1, h1"),
        ("TrackVelocity-v1", "ant, anymal_c, g1, go2, h1, spot, spot_arm"),
        ("TrackMotion-v1", "h1"),
        ("CarryBox-v1", "h1_upper_body"),
        ("InsertFlower-v1", "panda+allegro"),  # a hand on an arm is not looked for, and that one is tested
        ("RotateInHand-v1", "allegro, allegro_left"),
        ("ReorientCube-v1", "allegro, shadow"),
        ("TurnFaucet-v1", "panda"),
        ("OpenCabinetDoor-v1", "fetch, panda"),
    ],
)
def test_what_is_named(task: str, words: str) -> None:
    assert ", ".join(named(task)) == words


# ---- those that are refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "word", "lacks"),
    [
        ("HopperStand-v1", "ant", "vertical base"),
        ("HopperStand-v1", "humanoid", "link foot"),
        ("HumanoidStand-v1", "ant", "2 feet"),
        ("AntWalk-v1", "hopper", "free base"),
        ("LeggedStand-v1", "go2", "2 feet"),
        ("LeggedStand-v1", "hopper", "free base"),
        ("LeggedStand-v1", "g1_simplified_legs", "servos that hold it up"),
        ("TrackVelocity-v1", "hopper", "free base"),
        ("CarryBox-v1", "g1_upper_body", "h1_hand_left"),
        ("InsertFlower-v1", "panda", "ff"),
        ("TurnFaucet-v1", "ur5e", "keyframe raised"),
        ("TurnFaucet-v1", "xarm7", "keyframe raised"),
        ("TurnFaucet-v1", "go2", "tool"),
        ("PickSingleYCB-v2", "ur5e", "keyframe raised"),
        ("OpenCabinetDrawer-v2", "ur5e", "keyframe forward"),
        ("OpenCabinetDrawer-v2", "tiago", "keyframe forward"),
        ("OpenCabinetDrawer-v2", "go2", "tool"),
        ("OpenCabinetDoor-v1", "go2", "tool"),
        ("PushCube-v2", "go2", "tool"),
        ("PullCube-v2", "go2", "tool"),
        ("RollBall-v1", "go2", "tool"),
        ("Door-v2", "go2", "tool"),
        ("Door-v2", "spot_arm", "held base"),
    ],
)
def test_what_a_robot_lacks_is_said_when_the_environment_is_made(task: str, word: str, lacks: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"{task} needs a robot with .*, and '{word}' has .*no {lacks}\b.*; it takes"
    ):
        manikin.make(task, robot=word)


def test_the_ready_arm_of_a_dog_is_no_part_of_what_its_legs_are_asked() -> None:
    env = manikin.make("TrackVelocity-v1", robot="spot_arm", terminate=False)
    env.reset(seed=0)
    count = env.single_action_space.shape[0]
    env.step(torch.full((1, count), 0.5))
    asked = env.task.asked(env.h)
    assert asked.shape == (1, 12)
    torch.testing.assert_close(asked, torch.full((1, 12), 0.25), atol=1e-5, rtol=0)  # [rad] half of a step
    env.close()


@pytest.mark.parametrize("task", ["AntWalk-v1", "HumanoidStand-v1"])
@pytest.mark.parametrize("word", ["panda", "go2", "g1"])
def test_walkers_of_the_control_suite_need_feet_and_a_measured_centre(task: str, word: str) -> None:
    error, said = refused(task, word)
    assert isinstance(error, ConfigError) and f"and {word!r} has no " in said
    able = said.partition("it takes ")[2].split(", ")
    assert "humanoid" in able
    for name in able:
        assert robot(name).arm.measures_centre and robot(name).arm.feet


@pytest.mark.parametrize(
    ("task", "tool"), [("DrawTriangle-v1", "stick"), ("FreeDraw-v1", "stick"), ("Wipe-v2", "eraser")]
)
@pytest.mark.parametrize("word", ["panda", "panda+none", "so101", "go2"])
def test_drawing_needs_a_stick_and_wiping_an_eraser(task: str, tool: str, word: str) -> None:
    error, said = refused(task, word)
    assert isinstance(error, ConfigError) and f"{task} needs a robot with {tool}, and {word!r} has no {tool}" in said
    able = said.partition("it takes ")[2].split(", ")
    assert f"panda+{tool}" in able and f"ur5e+{tool}" in able and f"so101+{tool}" not in able


def test_the_arms_that_are_named_for_a_stick_are_those_that_can_carry_one() -> None:
    able = []
    for name in arms():
        one = robot(f"{name}+stick")
        try:
            assemble(one.arm, one.gripper, menagerie=one.menagerie)
        except ConfigError:
            continue
        able.append(f"{name}+stick")
    assert list(named("DrawTriangle-v1")) == able


@pytest.mark.parametrize("word", ["ur5e+stick", "ur5e@planar+stick"])
def test_an_arm_with_the_stick_is_taken(word: str) -> None:
    for task in ("FreeDraw-v1", "PushT-v1"):
        begun(task, word)


@pytest.mark.parametrize(
    ("task", "word", "kind", "tested"),
    [
        ("PickCube-v2", "go2", SceneError, "'panda' or 'ur5e' or 'xarm7' or 'so101'"),
        ("PlugCharger-v1", "panda+stick", SceneError, "'panda'"),
        ("TwoArmLift-v3", "go2,go2", SceneError, "'panda,panda' or 'baxter'"),
        ("DrawTriangle-v1", "baxter", ConfigError, "'panda+stick'"),
        ("KitchenTurnOnMicrowave-v1", "ur5e@planar", UnknownNameError, "'panda@planar'"),  # only reset asks for it
    ],
)
def test_other_errors_name_the_robots_that_a_task_is_tested_with(
    task: str, word: str, kind: type[Exception], tested: str
) -> None:
    error, said = refused(task, word)
    assert isinstance(error, kind) and f"{task} is tested with {tested}" in said


def test_an_error_with_a_robot_that_the_task_is_tested_with_does_not_name_robots() -> None:
    with pytest.raises(UnknownNameError, match="unknown controller") as found:
        manikin.make("PickCube-v2", robot="ur5e", control="joint_poss")
    assert not getattr(found.value, "__notes__", [])
