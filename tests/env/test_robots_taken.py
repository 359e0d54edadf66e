"""A robot that a task cannot be done with is refused with the names of those that can."""

from __future__ import annotations

import pytest

import manikin
from manikin.errors import ConfigError, ManikinError, SceneError, UnknownNameError
from manikin.robots import arms, robot
from manikin.scene.robot import assemble


def refused(task: str, word: str) -> tuple[ManikinError, str]:
    """The error, and all that it says."""
    with pytest.raises(ManikinError) as found:
        manikin.make(task, robot=word)
    return found.value, "; ".join([str(found.value), *getattr(found.value, "__notes__", [])])


@pytest.mark.parametrize("task", ["AntWalk-v1", "HumanoidStand-v1"])
@pytest.mark.parametrize("word", ["panda", "go2", "g1"])
def test_walkers_of_the_control_suite_need_feet_and_a_measured_centre(task: str, word: str) -> None:
    error, said = refused(task, word)
    assert isinstance(error, ConfigError) and f"and {word!r} has no " in said
    able = said.partition("it takes ")[2].split(", ")
    assert {"ant", "humanoid"} <= set(able)
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
    assert refused("DrawTriangle-v1", "panda")[1].partition("it takes ")[2].split(", ") == able


@pytest.mark.parametrize("word", ["ur5e+stick", "ur5e@planar+stick"])
def test_an_arm_with_the_stick_is_taken(word: str) -> None:
    manikin.make("FreeDraw-v1", robot=word).close()


@pytest.mark.parametrize(
    ("task", "word", "kind", "tested"),
    [
        ("PickCube-v2", "go2", SceneError, "'panda' or 'ur5e' or 'xarm7' or 'so101'"),
        ("PlugCharger-v1", "panda+stick", SceneError, "'panda'"),
        ("TwoRobotPickCube-v2", "go2,go2", SceneError, "'panda,panda'"),
        ("OpenCabinetDrawer-v2", "cart", UnknownNameError, "'panda'"),  # which has not the task's controller
        ("DrawTriangle-v1", "baxter", ConfigError, "'panda+stick'"),
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
