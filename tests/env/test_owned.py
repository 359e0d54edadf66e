"""What an environment gives belongs to the caller: nothing that is done to it changes what the environment gives later.

Every task plays an episode twice. The second time all that was given, and the actions too, is overwritten at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.env.loop.graph import owned
from manikin.env.observe import Vision
from manikin.env.registry import task_class, task_ids
from manikin.env.task import Task

CAMERAS = {"vision": Vision(size=(16, 12)), "observe": "rgb+depth+segmentation+pointcloud+voxel+state"}
WARP = [
    pytest.mark.xdist_group("warp"),
    pytest.mark.skipif(find_spec("mujoco_warp") is None, reason="MuJoCo Warp is not installed"),
]


def leaves(tree: Any) -> Iterator[torch.Tensor | np.ndarray]:
    if isinstance(tree, Mapping):
        tree = tree.values()
    elif isinstance(tree, torch.Tensor | np.ndarray):
        yield tree
        return
    elif not isinstance(tree, tuple):
        return
    for part in tree:
        yield from leaves(part)


def overwrite(tree: Any) -> None:
    """Every number in place by one that it was not."""
    for leaf in leaves(tree):
        tensor = torch.as_tensor(leaf)
        if tensor.dtype == torch.bool:
            tensor.logical_not_()
        elif tensor.is_floating_point():
            tensor.fill_(torch.nan)
        else:
            tensor.bitwise_not_()


def course(env: Any, *, spoil: bool) -> list[Any]:
    """Everything given in a few steps, in which episodes end and rows are left out, and started alone."""
    given: list[Any] = []

    def keep(what: Any) -> None:
        given.append(owned(what))
        if spoil:
            overwrite(what)

    keep(env.reset(seed=5))
    random = np.random.default_rng(0)
    size = env.single_action_space.shape[0]
    for k in range(5):
        action = torch.from_numpy(random.uniform(-1, 1, (env.num_envs, size)).astype(np.float32))
        keep(env.step(action, active=np.array([True, False]) if k == 1 else None))
        if spoil:
            overwrite(action)
        if env.reward_mode != "none":
            keep(env.reward_of(torch.zeros(env.num_envs, size)))
        keep(env.reset(options={"reset_mask": np.array([k == 3, False])}))
    keep(env.load(env.save()))
    keep(env.state_hash())
    return given


def check(env: Any) -> None:
    plain, spoiled = (course(env, spoil=spoil) for spoil in (False, True))
    ended = 0
    for k, (one, two) in enumerate(zip(plain, spoiled, strict=True)):
        for name, (x, y) in paths(one, two):
            ended += name.endswith("_final_obs")
            assert torch.equal(x, y) or (x.is_floating_point() and torch.equal(x.nan_to_num(), y.nan_to_num())), (
                f"answer {k}, {name}: {x} became {y}"
            )
    assert ended >= 1  # an episode ended on the way


def paths(one: Any, two: Any, name: str = "") -> Iterator[tuple[str, tuple[torch.Tensor, torch.Tensor]]]:
    if isinstance(one, Mapping):
        assert one.keys() == two.keys(), name
        for key in one:
            yield from paths(one[key], two[key], f"{name}/{key}")
    elif isinstance(one, tuple):
        for k, pair in enumerate(zip(one, two, strict=True)):
            yield from paths(*pair, f"{name}[{k}]")
    elif isinstance(one, torch.Tensor):
        yield name, (one, two)


@pytest.mark.parametrize("task", task_ids())
def test_every_task(task: str) -> None:
    dense = task_class(task).reward is not Task.reward
    env = manikin.make(task, 2, observe="state_dict", horizon=3, reward="dense" if dense else "sparse")
    check(env)
    env.close()


@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=WARP)])
@pytest.mark.parametrize("options", [{}, CAMERAS], ids=["state", "pictures"])
def test_devices_and_pictures(device: str, options: dict[str, Any]) -> None:
    env = manikin.make("PickCube-v2", 2, horizon=3, device=device, **options)
    check(env)
    env.close()


class Bare(Task):
    """Returns from every method what it read, without arithmetic."""

    id = "Bare-v1"
    horizon_s = 1.0

    def scene(self, b):
        robot, cube = b.robot(pos=(-0.6, 0, 0)), b.box("cube", half_size=(0.02, 0.02, 0.02))
        b.grasp(robot, cube)
        return {"robot": robot, "cube": cube, "count": b.variable("count")}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())
        h.cube.set_pose((0.4, 0.0, 0.02))

    def advance(self, h):
        h.count.set(h.count.value + 1)

    def evaluate(self, h):
        return {"success": h.robot.is_grasping(h.cube), "height": h.cube.pos[:, 2], "count": h.count.value}

    def observe(self, h):
        return {"policy": {"cube": h.cube.pos}}

    def reward(self, h, ev, action):
        return {"height": ev["height"], "count": h.count.value}


def test_a_task_that_returns_what_it_read() -> None:
    env = manikin.make(Bare, 2, observe="state_dict", horizon=3, reward="dense")
    check(env)
    env.close()
