"""What a task is about is in the picture that its policies see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from manikin import make
from manikin.env.observe import Vision

SEES = {"observe": "segmentation", "vision": Vision(cameras=("base_camera",))}


def pictures(env: Any) -> np.ndarray:
    """(n, 128, 128) of ``base_camera`` at the start."""
    return np.asarray(env.reset(seed=range(env.num_envs))[0]["cameras"]["base_camera"]["segmentation"])


@pytest.mark.parametrize(
    "task, robot, things",
    [
        ("ReorientCube-v1", "shadow", {"goal_cube": 100, "cube": 40}),
        ("ReorientCube-v1", "allegro", {"goal_cube": 100, "cube": 40}),
        ("CarryBox-v1", "h1_upper_body", {"box": 200}),
    ],
)
def test_the_base_camera_sees_what_the_task_is_about(task: str, robot: str, things: dict[str, int]) -> None:
    env = make(task, robot=robot, num_envs=4, **SEES)
    seen = pictures(env)
    for thing, least in things.items():
        assert np.isin(seen, env.segmentation_table.ids(thing=thing)).sum((1, 2)).min() >= least, thing


@pytest.mark.parametrize("task", ["OpenCabinetDrawer-v2", "OpenCabinetDoor-v1"])
@pytest.mark.parametrize("robot", ["panda", "fetch"])
def test_the_base_camera_sees_a_cabinets_fronts(task: str, robot: str) -> None:
    """Drawers and doors with their handles, and not its back."""
    env = make(task, robot=robot, num_envs=6, **SEES)
    seen = pictures(env)
    for row in range(6):
        table = env.part(row)[0].segmentation_table
        for front in {body for body in table.bodies if body.startswith("cabinet/") and body != "cabinet/body"}:
            assert np.isin(seen[row], table.ids(body=front)).sum() >= 40, (row, front)
