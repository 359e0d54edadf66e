"""`check_task`: right tasks pass, and each way of being wrong is found by the check that says what to change."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from manikin.author.checker import PROMISES, check_task
from manikin.author.compare import first_difference, state_name, unlike
from manikin.author.scaffold import write_task
from manikin.env.env import Env
from manikin.env.registry import task_class, task_family, task_ids
from manikin.env.task import Quantity
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import norm
from manikin.plan.executor import WaypointExecutor
from manikin.spec.budget import Budget
from manikin.tasks.home.long.sequence import LongTask
from manikin.tasks.tabletop.pick_cube import PickCube


def expert(env: Env):
    return WaypointExecutor(env).act


def failures(task, **options) -> dict[str, str]:
    """What fails, by check; six rows and few seeds are enough to notice."""
    options = {"num_envs": 6, "seeds": range(20), **options}
    return {check.name: check.detail for check in check_task(task, **options) if not check.passed}


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory):
    """The scaffold's task: small, and right."""
    file, _ = write_task("LiftThing", tmp_path_factory.mktemp("task"))
    return task_class(str(file))


@pytest.mark.parametrize("task_id", task_ids())
def test_every_built_in_task_keeps_every_promise(task_id: str) -> None:
    task = task_class(task_id)
    seeds = 20 if task.horizon_s > 10 else 64  # random actions play every seed to the end
    if hasattr(task.Config, "count") and task_family(task) == "soft":
        seeds = 8  # of hundreds of grains a step takes a hundred times as long; benchmarks/experts.py counts 64
    # of a sequence of subtasks the first four; benchmarks/home_tasks.py counts whole ones
    config = {"targets": 1} if issubclass(task, LongTask) else None
    assert not failures(task_id, num_envs=8, seeds=range(seeds), expert=expert, config=config)


def test_what_is_reported() -> None:
    told = []
    checks = check_task("PickCube-v2", expert=expert, on_check=told.append)
    assert [c.name for c in checks] == list(PROMISES)
    assert told == checks
    assert all(c.passed for c in checks), [c for c in checks if not c.passed]
    found = {c.name: c.detail for c in checks}
    assert found["robots"] == "panda, ur5e, xarm7, so101"
    assert "8 different starts" in found["start is repeatable"]
    assert found["expert"].startswith("succeeds in")


def test_the_scaffold_keeps_every_promise(good) -> None:
    assert not failures(good, expert=expert)


def test_another_robot_and_controller(good) -> None:
    assert not failures(good, robot="xarm7", control="ee_delta_pose", expert=expert)


# ---- wrong in one way each -----------------------------------------------------------------------------------------


def test_a_version_is_asked_for(good) -> None:
    class Unversioned(good):
        """Doc."""

        id = "LiftThing"

    assert "name with a version" in failures(Unversioned)["id"]


def test_words_are_asked_for(good) -> None:
    class Silent(good):
        """Doc."""

        instruction = " "

    assert "instruction is empty" in failures(Silent)["description"]


def test_numpy_random_in_start(good) -> None:
    class Global(good):
        """Doc."""

        def start(self, h, ep):
            super().start(h, ep)
            noise = np.random.uniform(-0.01, 0.01, (h.n, 7))  # noqa: NPY002
            h.robot.set_qpos(h.robot.keyframe() + torch.from_numpy(noise).float())

    found = failures(Global)
    assert "np.random" in found["start is repeatable"] and "qpos of robot/" in found["start is repeatable"]
    assert "other randomness" in found["start in any row"]


def test_a_start_that_depends_on_the_row(good) -> None:
    class Rowwise(good):
        """Doc."""

        def start(self, h, ep):
            super().start(h, ep)
            h.cube.set_pose(torch.stack([torch.arange(h.n) * 0.01, torch.zeros(h.n), torch.full((h.n,), 0.02)], 1))

    found = failures(Rowwise)
    assert "start is repeatable" not in found  # the same rows give the same starts
    assert "qpos of cube" in found["start in any row"] and "not ep.rows" in found["start in any row"]


def test_a_start_that_looks_at_the_episode_before(good) -> None:
    class Lagging(good):
        """Doc."""

        def start(self, h, ep):
            before = h.cube.pos  # physics has not been told of the new place yet
            super().start(h, ep)
            h.robot.set_qpos(h.robot.keyframe() + 0.01 * before[:, :1])

    assert "previous episode" in failures(Lagging)["start is repeatable"]


def test_a_start_that_writes_into_other_rows(good) -> None:
    class Reaching(good):
        """Doc."""

        def scene(self, b):
            return {**super().scene(b), "goal": b.variable("goal", (3,))}

        def start(self, h, ep):
            super().start(h, ep)
            h.goal.data[:] = ep.rng.uniform("goal", 0.0, 1.0, (3,))[:1]  # all rows, not only those that start

    assert "restarting row 1 changed row 0 (the variable 'goal')" in failures(Reaching)["partial reset"]


def test_an_observation_that_is_not_declared(good) -> None:
    class Undeclared(good):
        """Doc."""

        def observe(self, h):
            seen = super().observe(h)
            return {**seen, "policy": {**seen["policy"], "height": h.cube.pos[:, 2]}}

    assert "'height'" in failures(Undeclared)["observations"]

    class Frameless(good):
        """Doc."""

        observations = {**good.observations, "cube_pose": Quantity("m, quaternion wxyz")}

    assert "must say unit and frame" in failures(Frameless)["observations"]

    class Spare(good):
        """Doc."""

        observations = {**good.observations, "height": Quantity("m")}

    assert "does not return" in failures(Spare)["observations"]


def test_an_observation_that_is_not_finite(good) -> None:
    class Infinite(good):
        """Doc."""

        observations = {**good.observations, "ratio": Quantity("1")}

        def observe(self, h):
            seen = super().observe(h)
            return {**seen, "policy": {**seen["policy"], "ratio": 1 / (h.cube.pos[:, 2] * 0)}}

    assert "not finite" in failures(Infinite)["spaces"]


def test_evaluate_that_is_not_pure(good) -> None:
    class Counting(good):
        """Doc."""

        def scene(self, b):
            return {**super().scene(b), "count": b.variable("count")}

        def evaluate(self, h):
            h.count.set(h.count.value + 1)
            return super().evaluate(h)

    found = failures(Counting)["pure functions"]
    assert found.startswith("evaluate() changes the variable 'count'")
    assert "advance()" in found


def test_an_expert_or_observe_that_moves_things(good) -> None:
    class Pushing(good):
        """Doc."""

        def observe(self, h):
            h.cube.set_pose(h.cube.pos + 0.001)
            return super().observe(h)

    assert "observe() changes qpos of cube" in failures(Pushing)["pure functions"]


def test_a_borrowed_tensor_that_is_kept(good) -> None:
    class Keeping(good):
        """Doc."""

        observations = {**good.observations, "before": Quantity("m", "world")}

        def advance(self, h):
            self._now, self._before = h.cube.pos, getattr(self, "_now", h.cube.pos)

        def observe(self, h):
            seen = super().observe(h)
            before = getattr(self, "_before", h.cube.pos)
            return {**seen, "privileged": {**seen["privileged"], "before": before}}

    found = failures(Keeping)
    assert "after the step it belongs to" in found["nothing borrowed"]
    assert 'b.variable("now", shape)' in found["no hidden memory"]


def test_memory_on_the_task(good) -> None:
    class Remembering(good):
        """Doc."""

        observations = {**good.observations, "far": Quantity("m")}

        def advance(self, h):
            moved = norm(h.cube.pos)
            self.most = torch.maximum(getattr(self, "most", moved), moved)

        def observe(self, h):
            seen = super().observe(h)
            return {**seen, "policy": {**seen["policy"], "far": getattr(self, "most", h.cube.pos[:, 0] * 0)}}

    found = failures(Remembering)
    assert "self.most changes" in found["no hidden memory"]
    assert {"partial reset", "save and load", "autoreset"} & set(found)


def test_a_reward_without_a_bound(good) -> None:
    class Unbounded(good):
        """Doc."""

        def reward(self, h, ev, action):
            return {**super().reward(h, ev, action), "reach": 100 * norm(h.cube.pos - h.robot.tcp_pos)}

    found = failures(Unbounded)["rewards"]
    assert "above reward_max = 3" in found and "random actions" in found

    class Undescribed(good):
        """Doc."""

        def reward(self, h, ev, action):
            return {**super().reward(h, ev, action), "effort": -norm(action)}

    assert "['effort']" in failures(Undescribed)["rewards"]


def test_a_reward_whose_bits_depend_on_the_batch(good) -> None:
    class Mixing(good):
        """Doc."""

        def reward(self, h, ev, action):
            near = 1 - torch.tanh(norm(h.cube.pos - h.robot.tcp_pos))
            return {**super().reward(h, ev, action), "reach": near / near.max()}

    assert failures(Mixing)["any batch size"].startswith("the reward differs between batches")


def test_success_at_the_start_and_by_chance(good) -> None:
    class Given(good):
        """Doc."""

        def evaluate(self, h):
            return {**super().evaluate(h), "success": h.cube.pos[:, 2] > 0}

    found = failures(Given)
    assert "20 of 20 episodes begin with success" in found["no success at start"]
    assert "make the success condition stricter" in found["random policy"]


def test_an_expert_that_fails(good) -> None:
    class Timid(good):
        """Doc."""

        def expert(self, h):
            return super().expert(h)[:1]

    said = failures(Timid, expert=expert)["expert"]
    assert "succeeds in 0 of 20, wanted 80%" in said
    assert said.endswith("Of 20 failures: 20 ended at 'above', with none timed out")


def test_the_waypoint_that_timed_out_is_named(good) -> None:
    class Stretching(good):
        """Doc."""

        def expert(self, h):
            above, down, *others = super().expert(h)
            far = down.pose + torch.tensor([0.0, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0])  # out of the arm's reach
            return [above, dataclasses.replace(down, name="far", pose=far, timeout_s=0.4), *others]

    said = failures(Stretching, expert=expert)["expert"]
    found = re.search(r"waypoint 'far' timed out first in (\d+), up to ([\d.]+) mm and [\d.]+ rad from its pose", said)
    assert found, said
    assert int(found[1]) == int(re.search(r"Of (\d+) failures", said)[1]) and float(found[2]) > 300
    assert "(pos_tol 5 mm, rot_tol 0.05 rad, timeout_s 0.4)" in said


def test_a_task_that_raises_is_shown_with_its_line_and_nothing_else_is_tried(good) -> None:
    class Raising(good):
        """Doc."""

        def evaluate(self, h):
            return {"success": h.cub.pos[:, 2] > 1}

    checks = check_task(Raising)
    assert checks[-1].name == "runs" and not checks[-1].passed
    assert "no attribute 'cub'" in checks[-1].detail
    assert Path(__file__).name in checks[-1].detail and "in evaluate" in checks[-1].detail

    class Shaped(good):
        """Doc."""

        def evaluate(self, h):
            return {"success": h.cube.pos > 1}

    assert "of shape (n,), got (6, 3)" in failures(Shaped)["runs"]


def test_a_robot_that_cannot_do_it(good) -> None:
    class Many(good):
        """Doc."""

        robots = ("panda", "so101")

        def start(self, h, ep):
            super().start(h, ep)
            h.robot.set_qpos(torch.zeros(7))

    assert "does not run with 'so101'" in failures(Many)["robots"]


# ---- bad input, and the comparison itself --------------------------------------------------------------------------


def test_bad_arguments() -> None:
    with pytest.raises(ConfigError, match="num_envs >= 3"):
        check_task(PickCube, num_envs=2)
    with pytest.raises(ConfigError, match="as many seeds"):
        check_task(PickCube, seeds=range(3))
    with pytest.raises(UnknownNameError, match="panda"):
        check_task(PickCube, robot="pandda")
    with pytest.raises(UnknownNameError, match="PickCube-v2"):
        check_task("PickCub-v2")


def test_columns_of_the_state_have_names() -> None:
    env = Env(PickCube)
    env.reset(seed=0)
    model, state = env.scene.model, env.save().state
    assert state_name(model, 0) == "time"
    assert state_name(model, 1) == "qpos of robot/joint1"
    assert state_name(model, 1 + model.nq - 1) == "qpos of cube"
    assert state_name(model, 1 + model.nq) == "qvel of robot/joint1"
    assert state_name(model, state.shape[1] - 1) != f"column {state.shape[1] - 1} of the state"
    one, two = env.save(), env.save()
    assert not first_difference(model, one, two)
    two.state[0, 3] += 1e-12
    assert first_difference(model, one, two).startswith("qpos of robot/joint3")


@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=pytest.mark.xdist_group("warp"))])
def test_a_field_that_varies_on_one_side_only_is_a_difference(device: str) -> None:
    """Where it is not the compiled value."""
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    env = Env(PickCube, num_envs=2, device=device, budget=None if device == "cpu" else Budget())
    env.reset(seed=0)
    model, before = env.scene.model, env.save()
    slide = float(model.geom("cube/0").friction[0])
    env.h.cube.set_property("friction", torch.tensor([slide, 0.1]))
    after = env.save()
    assert "geom_friction" not in before.model and "geom_friction" in after.model
    for one, two in (before, after), (after, before):
        assert first_difference(model, one, two) == "the model's geom_friction"
        assert first_difference(model, one, two, 1, 1) == "the model's geom_friction"
        assert first_difference(model, one, two, 0, 0) == ""


def test_unlike_names_what_differs() -> None:
    nan = torch.tensor([float("nan")])
    assert not unlike({"a": nan, "b": (1, "x")}, {"a": nan.clone(), "b": (1, "x")})
    assert unlike({"a": nan, "b": 2}, {"a": nan, "b": 3}) == "b"
    assert unlike(torch.zeros(2), torch.zeros(3)) == "value"
