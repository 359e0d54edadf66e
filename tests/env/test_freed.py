"""An environment that nobody needs is freed at once, without waiting for the garbage collector. What waits lies between
what comes next, so that memory grows although nothing is lost."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import pytest
import torch

import manikin
from manikin.env.registry import task_ids
from manikin.sense.imperfect import Noise


def hidden(env: Any) -> tuple[Any, ...]:
    return env._builder, env._loop, env._observer  # house: private, what must be gone lies inside


def _use(task: str, **options: Any) -> list[weakref.ref[Any]]:
    """Make one, step it beyond an episode's end, close it; and what must be gone now."""
    env = manikin.make(task, num_envs=2, horizon=2, **options)
    env.reset(seed=0)
    for _ in range(3):
        env.step(torch.zeros(2, env.single_action_space.shape[0]))
    inside = [part.env for part in env.parts()]
    parts = ((one, one.task, one.world, one.scene, *hidden(one)) for one in inside)
    kept = [env, *itertools.chain(*parts)]
    env.close()
    return [weakref.ref(part) for part in kept]


def _alive(task: str, **options: Any) -> list[str]:
    gc.disable()  # what it would find is new, so nothing needs to be collected before
    try:
        return [type(found).__name__ for ref in _use(task, **options) if (found := ref()) is not None]
    finally:
        gc.enable()


@pytest.mark.parametrize("task", task_ids())
def test_no_environment_waits_for_the_garbage_collector(task: str) -> None:
    assert _alive(task) == []


@pytest.mark.parametrize(
    "options",
    [
        {"control": "osc_pose"},
        {"control": "ee_delta_pose"},
        {"autoreset": "next_step"},
        {"observe": "state_dict", "sensors": {"policy/qpos": [Noise(0.01)]}},
        {"observe": "rgb+state"},
    ],
    ids=str,
)
def test_nor_with_other_controllers_sensors_and_cameras(options: dict[str, Any]) -> None:
    assert _alive("PickCube-v2", **options) == []


def test_what_is_still_needed_stays() -> None:
    """A handle or a task that the caller keeps goes on working when the environment's name is gone."""
    env = manikin.make("PickCube-v2")
    env.reset(seed=0)
    robot, task, h, observer = env.robot, env.task, env.h, env._observer  # house: private, it is kept alone
    cube = h.cube
    del env
    gc.collect()
    assert not robot.is_grasping(cube).any()
    assert task.evaluate(h)["success"].shape == (1,)
    assert observer.groups()["policy"]["qpos"].shape == (1, 9)
