"""The task file: one import line, typed handles, values once per step, waypoints that hold, old names."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import manikin
import manikin.toolkit
from manikin import Handles, Part, Robot, Task, Waypoint
from manikin.arenas.table import table
from manikin.author.scaffold import write_task
from manikin.errors import UnknownNameError
from manikin.toolkit import closeness, per_step


@dataclass
class Things(Handles):
    robot: Robot
    cube: Part


class Near(Task):
    """Come near a cube."""

    id = "Near-v1"
    horizon_s = 1.0
    instruction = "come near the cube"
    returned: type = Things
    computed = 0

    def scene(self, b):
        table(b)
        handles = {"robot": b.robot(), "cube": b.box("cube", half_size=(0.02,) * 3)}
        return handles if self.returned is dict else self.returned(**handles)

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())
        h.cube.set_pose(torch.tensor([0.0, 0.0, 0.02]).expand(h.n, 3))

    @per_step
    def distance(self, h):
        type(self).computed += 1
        return (h.cube.pos - h.robot.tcp_pos).norm(dim=1)

    def evaluate(self, h):
        return {"success": self.distance(h) < 0.01}

    def observe(self, h):
        return {"policy": {"distance": self.distance(h)[:, None]}}

    def reward(self, h, ev, action):
        return {"near": closeness(self.distance(h), 5.0)}


@dataclass(frozen=True)
class Frozen(Handles):
    robot: Robot
    cube: Part


class Plain:
    """Neither a dictionary nor ``Handles``."""

    def __init__(self, robot, cube):
        self.robot, self.cube = robot, cube


@pytest.mark.parametrize("kind", [Things, Frozen, dict, Plain])
def test_handles_of_any_kind_know_their_rows(kind, monkeypatch) -> None:
    monkeypatch.setattr(Near, "returned", kind)
    env = manikin.make(Near, num_envs=3)
    seen, _ = env.reset(seed=0)
    assert env.h.n == 3 and env.h.cube.name == "cube" and isinstance(env.h, Handles)
    assert type(env.h) is (kind if issubclass(kind, Handles) else Handles)
    assert torch.isfinite(seen).all()
    env.close()


def test_a_derived_task_extends_handles_as_it_likes() -> None:
    class More(Near):
        id = "More-v1"

        def scene(self, b):
            return {**super().scene(b), "count": b.variable("count")}

    class Set(Near):
        id = "Set-v1"

        def scene(self, b):
            things = super().scene(b)
            things["count"] = b.variable("count")
            return things

    for task in (More, Set):
        env = manikin.make(task, num_envs=2)
        assert env.h.count.value.shape == (2,) and env.h.robot.name == "robot"
        assert sorted(env.h.keys()) == ["count", "cube", "robot"] and env.h["cube"] is env.h.cube
        with pytest.raises(UnknownNameError, match="count, cube, robot"):
            env.h["cub"]
        env.close()


def test_two_environments_share_no_handles() -> None:
    one, two = manikin.make(Near, num_envs=2), manikin.make(Near, num_envs=5)
    assert (one.h.n, two.h.n) == (2, 5)


def test_a_value_is_computed_once_per_step_and_anew_for_rows_that_start() -> None:
    env = manikin.make(Near, num_envs=2, autoreset="disabled")
    env.reset(seed=0)
    action = torch.zeros(2, env.controller.card.size)
    for _ in range(3):
        Near.computed = 0
        env.step(action)
        assert Near.computed == 1
    near = env.task.distance(env.h)
    assert env.task.distance(env.h) is near
    expected = (env.h.cube.pos - env.h.robot.tcp_pos).norm(dim=1)
    assert torch.equal(near, expected)
    env.h.cube.set_pose((0.3, 0.0, 0.02))
    env.world.forward()
    assert not torch.equal(env.task.distance(env.h), near)


def test_tasks_of_one_class_remember_apart() -> None:
    first, second = manikin.make(Near), manikin.make(Near)
    for env, x in ((first, 0.1), (second, 0.3)):
        env.reset(seed=0)
        env.h.cube.set_pose((x, 0.0, 0.02))
        env.world.forward()
    assert not torch.equal(first.task.distance(first.h), second.task.distance(second.h))


def test_closeness_of_several_is_that_of_each() -> None:
    distances = [torch.rand(7, generator=torch.Generator().manual_seed(k)) for k in range(3)]
    for together, alone in zip(closeness(distances, 5.0), distances, strict=True):
        assert torch.equal(together, closeness(alone, 5.0))
        assert torch.allclose(together, 1 - torch.tanh(5 * alone))


def test_a_waypoint_holds() -> None:
    pose = torch.zeros(1, 7)
    held = Waypoint(pose=pose, gripper=-1, name="goal", speed=0.3).hold()
    assert (held.pos_tol, held.name, held.speed) == (0.0, "goal", 0.3) and held.timeout_s >= 1e9
    assert Waypoint(pose=pose, gripper=1).hold(0.5).timeout_s == 0.5


# -- names ------------------------------------------------------------------------------------------------------------


def test_every_name_of_the_toolkit_is_there_and_described() -> None:
    for name in manikin.toolkit.__all__:
        value = getattr(manikin.toolkit, name)
        assert not callable(value) or value.__doc__, name


def test_a_task_written_with_old_names_plays(tmp_path: Path) -> None:
    """The shape of 0.1: a dictionary, OncePerStep, imports from where things were."""
    (tmp_path / "old.py").write_text(
        textwrap.dedent('''
        import torch
        from manikin.arenas.table import table
        from manikin.env.task import Quantity, Task
        from manikin.tasks.labels import GRASP
        from manikin.tasks.tabletop.common import OncePerStep, noisy_rest

        class Old(Task):
            """Old."""
            id = "Old-v1"
            horizon_s = 1.0
            labels = GRASP

            def scene(self, b):
                table(b)
                self._offset = OncePerStep(self._measure)
                robot, cube = b.robot(), b.box("cube", half_size=(0.02,) * 3)
                return {"robot": robot, "cube": cube, "grasp": b.grasp(robot, cube)}

            def start(self, h, ep):
                noisy_rest(h.robot, ep)
                h.cube.set_pose(torch.tensor([0.0, 0.0, 0.02]).expand(h.n, 3))

            def _measure(self, h):
                return h.cube.pos - h.robot.tcp_pos

            def evaluate(self, h):
                return {"success": self._offset(h)[:, 2] > 0.1, "is_grasped": h.grasp.value}

            def observe(self, h):
                return {"policy": {"offset": self._offset(h)}}
        ''')
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        env = manikin.make(f"{tmp_path / 'old.py'}:Old", num_envs=2, reward="sparse")
    env.reset(seed=0)
    env.step(torch.zeros(2, env.controller.card.size))
    env.close()


def test_mypy_checks_a_new_task(tmp_path: Path) -> None:
    """The names of handles are known: a right file passes, a wrong name is found."""
    pytest.importorskip("mypy")
    file, _ = write_task("LiftCube", tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(file.read_text().replace("h.cube.pos[:, 2]", "h.cub.pos[:, 2]"))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports"]
    command += ["--cache-dir", str(tmp_path / "cache"), str(file), str(wrong)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout.splitlines()
    assert len(said) == 2 and said[0].startswith(str(wrong)), said  # the error, and how many there are
    assert '"LiftCubeHandles" has no attribute "cub"' in said[0]
