"""SIMPLER's WidowX tasks against the original's figures: poses, trials, rules of success."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.assets.paths import data_root
from manikin.errors import AssetError, ConfigError, SceneError, UnknownNameError
from manikin.eval.protocol import load_protocol
from manikin.math import quat_angle
from manikin.plan.executor import WaypointExecutor
from manikin.sense.pixels import Photograph
from manikin.tasks.simpler.common import lies_in_box

TASKS = ("WidowXSpoonOnTowel-v2", "WidowXCarrotOnPlate-v2", "WidowXStackCube-v2", "WidowXEggplantInBasket-v2")
DATA = data_root() is not None and (data_root() / "simpler" / "real_inpainting").is_dir()
needs_data = pytest.mark.skipif(not DATA, reason="MANIKIN_DATA has no simpler/real_inpainting")


def env_of(task: str, n: int = 1, **options: Any) -> manikin.Env:
    config = {"trials": "grid", **options.pop("config", {})}
    return manikin.make(task, num_envs=n, config=config, autoreset="disabled", **options)


@needs_data
def test_carrot_and_plate_lie_where_the_original_logged_them() -> None:
    """Episode 5 in the frame of the robot's base at (0.147, 0.028, 0.87), which is turned by half a turn."""
    env = env_of("WidowXCarrotOnPlate-v2")
    env.reset(seed=[5])
    assert np.allclose(env.h.source.pos[0], (-0.234995, -0.076536, 0.887528), atol=2e-4)
    assert np.allclose(env.h.target.pos[0], (-0.085, 0.075, 0.869532), atol=2e-4)
    w, x, y, z = -0.706719, 0.0305475, -0.0305745, -0.706173
    logged = torch.tensor([[-z, -y, x, w]])  # half a turn about z before it
    assert float(quat_angle(env.h.source.quat, logged)) < 2e-3
    env.close()


@pytest.mark.parametrize(
    ("task", "trial", "source", "target", "yaw"),
    [
        ("WidowXCarrotOnPlate-v2", 0, (-0.235, -0.075), (-0.235, 0.075), math.pi),
        ("WidowXCarrotOnPlate-v2", 23, (-0.085, 0.075), (-0.085, -0.075), -math.pi / 2),
        ("WidowXSpoonOnTowel-v2", 7, (-0.235, 0.075), (-0.235, -0.075), math.pi / 2),
        ("WidowXStackCube-v2", 11, (-0.11, 0.05), (-0.11, -0.05), 0.0),
        ("WidowXStackCube-v2", 12, (-0.26, -0.1), (-0.26, 0.1), 0.0),
    ],
)
def test_trials_are_in_the_originals_order(
    task: str, trial: int, source: tuple[float, float], target: tuple[float, float], yaw: float
) -> None:
    row = manikin.make(task).task.grid[trial].tolist()
    assert np.allclose(row, (*source, yaw, *target), atol=1e-6)


def test_the_eggplant_has_eight_places_and_three_turns() -> None:
    rows = manikin.make("WidowXEggplantInBasket-v2").task.grid
    assert rows.shape == (24, 5)
    assert np.allclose(rows[7, :3], (-0.115, 0.211, math.pi / 4)) and np.allclose(rows[12, :2], (-0.095, 0.191))


@pytest.mark.parametrize("task", TASKS)
def test_things_rest_and_the_robot_is_at_its_start(task: str) -> None:
    env = env_of(task, 2)
    env.reset(seed=[0, 17])
    at = (-0.122719, 0.127508, 1.077593) if "Eggplant" in task else (-0.145069, 0.034091, 1.005321)
    assert torch.allclose(env.robot.tcp_pos, torch.tensor([at]), atol=1e-4)
    assert env.h.source.linvel.norm(dim=1).max() < 0.01
    assert not bool(env.step(env.hold())[4]["success"].any())
    assert env.control_hz == 5 and env.physics_hz == 500
    assert env.horizon == (120 if "Eggplant" in task else 60)
    env.close()


def test_on_a_device_things_settle_as_on_the_cpu() -> None:
    """The first physics step after placing begins with the forces at that place."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    both = [env_of("WidowXStackCube-v2", 1, device=device) for device in ("cpu", "warp:cpu")]
    for env in both:
        env.reset(seed=[3])
    one, two = (env.world.read("qpos").cpu() for env in both)
    assert torch.allclose(one, two, atol=2e-6) and both[1].robot.arm_qvel.abs().max() < 1e-6
    for env in both:
        env.close()


def test_a_seed_that_is_no_trial_is_named() -> None:
    env = env_of("WidowXStackCube-v2", 2)
    with pytest.raises(SceneError, match=r"number of a trial, 0 to 23; it is another, rows \[1\]"):
        env.reset(seed=[0, 24])
    with pytest.raises(UnknownNameError, match=r"way to choose trials 'all'.*grid, random"):
        env_of("WidowXStackCube-v2", config={"trials": "all"}).reset(seed=0)


def test_random_trials_are_those_of_the_grid() -> None:
    env = manikin.make("WidowXStackCube-v2", num_envs=16, autoreset="disabled")
    env.reset(seed=1_000_000)
    grid = env.task.grid[:, :2]
    nearest = (env.h.source.pos[:, None, :2] - grid).norm(dim=2).amin(1)
    assert nearest.max() < 1e-3 and len({tuple(p) for p in env.h.source.pos[:, :2].round(decimals=3).tolist()}) > 4
    env.close()


def test_the_box_test_has_the_originals_limits() -> None:
    """Of cubes: 24.2 mm to the side, 50 mm up; written out by hand."""
    half = torch.full((1, 3), 0.015)
    least = math.hypot(0.015, 0.015) + 0.003
    for offset, inside in (
        ((least - 1e-4, 0, 0.03), True),
        ((least + 1e-4, 0, 0.03), False),
        ((0, 0, 0.0499), True),
        ((0, 0, 0.0501), False),
        ((0, 0, -1e-6), False),
    ):
        assert bool(lies_in_box(torch.tensor([offset]), half, half, above=0.02)) is inside


def test_a_carrot_that_touches_the_table_is_not_on_the_plate() -> None:
    """The contact rule: over the plate's box but on the table beside it is no success, and on it is."""
    env = env_of("WidowXCarrotOnPlate-v2")
    env.reset(seed=[0])
    plate = env.h.target.pos.clone()
    found = []
    for away, height in ((0.0, 0.026), (0.075, 0.02)):
        env.h.source.set_pose(plate + torch.tensor([[away, 0.0, height]]), env.h.source.quat)
        env.world.step(250)
        found.append(bool(env.task.evaluate(env.h)["success"]))
        gap = (env.h.source.com - env.h.target.com)[0]
        assert gap[:2].norm() < 0.0808 and 0 < gap[2] <= 0.042
    assert found == [True, False]
    env.close()


@pytest.mark.parametrize("task", TASKS[:3])
def test_the_expert_solves_it_and_latches_say_so(task: str) -> None:
    env = env_of(task, 1)
    env.reset(seed=[8])
    expert = WaypointExecutor(env)
    seen = {"is_grasped": 0, "consecutive_grasp": False}
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        seen["is_grasped"] += bool(info["is_grasped"])
        if bool(info["consecutive_grasp"]) and not seen["consecutive_grasp"]:
            assert seen["is_grasped"] >= 5
            seen["consecutive_grasp"] = True
    assert bool(info["success"]) and seen["consecutive_grasp"] and not bool(info["is_grasped"])
    assert bool(info["is_src_obj_grasped"]) and bool(info["moved_correct_obj"]) and not bool(info["moved_wrong_obj"])
    env.close()


def test_pictures_are_the_cameras_and_a_missing_photograph_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    env = env_of("WidowXStackCube-v2", observe="rgb", renderer="rays")
    assert env.vision.names == ["3rd_view_camera"] and not env.vision.stages
    env.close()
    with pytest.raises(UnknownNameError, match=r"look of WidowXStackCube-v2 'real'.*matched, plain"):
        env_of("WidowXStackCube-v2", config={"look": "real"})  # of states, too
    with pytest.raises(UnknownNameError, match=r"robot of WidowXStackCube-v2 'panda'.*widowx_bridge"):
        env_of("WidowXStackCube-v2", robot="panda", control="joint_pos")  # it lacks the pose at the table
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path))
    with pytest.raises(AssetError, match=r"MANIKIN_DATA/simpler/real_inpainting/bridge_real_eval_1.png.*look='plain'"):
        env_of("WidowXStackCube-v2", observe="rgb", config={"look": "matched"})


@needs_data
def test_the_photograph_is_behind_robot_and_things() -> None:
    env = env_of("WidowXStackCube-v2", observe="rgb+segmentation", renderer="rays", config={"look": "matched"})
    (stage,) = env.vision.stages
    assert isinstance(stage, Photograph) and stage.keep == ("robot", "green", "yellow")
    env.close()


def test_the_suite_has_96_trials() -> None:
    for name in ("simpler_widowx", "simpler_widowx_matched"):
        suite = load_protocol(name)
        assert set(suite.tasks) == set(TASKS) and suite.trials == 96 and suite.success == "at_end"
        assert all(suite.seeds_of(task) == tuple(range(24)) for task in suite.tasks)
        assert not suite.terminate and suite.control == "ee_target_delta_pose"


def test_configs_of_other_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match="option 'trials' of WidowXStackCube-v2"):
        manikin.make("WidowXStackCube-v2", config={"trials": 3})
