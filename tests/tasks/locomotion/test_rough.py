"""Rough ground: the heights that the task reads are those that MuJoCo has; starts, the scan, the patches."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.arenas.terrain import KINDS, patchwork
from manikin.errors import ConfigError


def rough(num_envs: int = 4, **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    env = manikin.make("TrackVelocityRough-v1", num_envs, **options)
    env.reset(seed=0)
    return env


def beneath(model: mujoco.MjModel, data: mujoco.MjData, points: np.ndarray) -> np.ndarray:
    """(n,) [m] height of the height field at points (n, 2), by MuJoCo's rays."""
    geom, found = np.zeros(1, np.int32), []
    for x, y in points:
        only = np.zeros(6, np.uint8)
        only[model.geom("terrain").group[0]] = 1
        start = np.array([x + 3e-5, y + 2e-5, 5.0])  # through a corner a ray may pass between triangles
        hidden = [k for k in range(model.ngeom) if model.geom(k).name not in ("terrain", "floor")]
        model.geom_rgba[hidden, 3] = 0  # rays do not see what is transparent
        far = mujoco.mj_ray(model, data, start, np.array([0, 0, -1.0]), only, 1, -1, geom)
        found.append(5.0 - far)
    return np.array(found)


def test_heights_are_those_of_the_physics() -> None:
    env = rough(1)
    model, data = env.world.data(0)
    terrain, rng = env.task.terrain, np.random.default_rng(3)
    at_points = np.round(rng.uniform(-15.9, 15.9, (150, 2)) / terrain.cell) * terrain.cell  # of the field itself
    found = terrain.at(env.task.heights, torch.tensor(at_points, dtype=torch.float32)).numpy()
    assert found == pytest.approx(beneath(model, data, at_points), abs=2e-3)
    between = rng.uniform(-15.9, 15.9, (150, 2))  # triangles there, a bilinear patch here: a quarter of the twist apart
    found = terrain.at(env.task.heights, torch.tensor(between, dtype=torch.float32)).numpy()
    assert np.abs(found - beneath(model, data, between)).max() < 0.05
    assert np.abs(found - beneath(model, data, between)).mean() < 0.005
    assert found.max() > 0.2


def test_beyond_the_field_the_ground_is_flat() -> None:
    terrain = patchwork(0)
    heights = terrain.tensor()
    out = torch.tensor([[17.0, 0.3], [-40.0, 40.0], [0.0, -16.0]])
    assert torch.allclose(terrain.at(heights, out), torch.zeros(3), atol=1e-3)


def test_patches_are_of_three_kinds_and_get_harder() -> None:
    terrain = patchwork(0)
    side, tiles = 40, [terrain.heights[r : r + 41, c : c + 41] for r in range(0, 320, 40) for c in range(0, 320, 40)]
    assert terrain.heights.shape == (321, 321) and terrain.half == pytest.approx(16.0)
    assert (terrain.heights >= 0).all() and terrain.heights.max() < 0.5
    tops = np.array([tile.max() for tile in tiles]).reshape(8, 8)
    assert (np.diff(tops.max(1)) > 0).all()
    assert all((tile[0] == 0).all() and (tile[:, -1] == 0).all() for tile in tiles)  # patches meet at height 0
    found = set()
    for tile in tiles:
        steps = np.abs(np.diff(tile[side // 2]))
        rises = steps[steps > 1e-9]
        kind = "stairs" if len(rises) < 10 else "slope" if rises.std() < 1e-3 else "noise"
        found.add(kind)
    assert found == set(KINDS)
    steepest = max(np.abs(np.diff(tile[side // 2])).max() for tile in tiles)
    assert steepest == pytest.approx(0.12, abs=1e-3)  # the highest stair


def test_the_seed_makes_the_ground() -> None:
    assert np.array_equal(patchwork(5).heights, patchwork(5).heights)
    assert not np.array_equal(patchwork(5).heights, patchwork(6).heights)
    one, other = rough(1), rough(1, config={"terrain_seed": 1})
    assert one.scene.hash != other.scene.hash


@pytest.mark.parametrize("options", [{"tiles": 0}, {"tile": 0.25}, {"cell": 0.3}])
def test_patches_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="at least 1 of at least 4 whole cells"):
        patchwork(0, **options)


def test_robots_begin_above_the_ground_on_patches_of_the_easier_share() -> None:
    env = rough(64, config={"hardest": 0.25})
    spots = env.h.robot.root_pose
    assert spots[:, 1].max() < -8 + 0.3 and spots[:, 1].min() > -16  # the first two of eight rows of patches
    assert spots[:, 0].max() > 8 and spots[:, 0].min() < -8
    assert (env.robot.foot_forces < 1e-6).float().mean() > 0.5  # no foot begins deep in the ground
    everywhere = rough(64)
    assert everywhere.h.robot.root_pose[:, 1].max() > 8
    for _ in range(25):
        *_, info = env.step(torch.zeros(64, 12))
    assert (env.robot.foot_forces.sum(1) > 50).all() and info["fail"].float().mean() < 0.1


def test_the_scan_sees_the_ground_as_the_robot_faces() -> None:
    env = rough(8)
    for _ in range(10):
        seen = env.step(torch.zeros(8, 12))[0]
    scan, terrain = seen["policy"]["scan"], env.task.terrain
    assert scan.shape == (8, 77)
    for row in range(8):
        x, y, z, *quat = env.h.robot.root_pose[row].tolist()
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, np.array(quat))
        yaw = math.atan2(turn[3], turn[0])
        for k, (dx, dy) in enumerate((a, b) for a in np.linspace(-0.5, 0.5, 11) for b in np.linspace(-0.3, 0.3, 7)):
            px = (x + math.cos(yaw) * dx - math.sin(yaw) * dy + 16) / 0.1
            py = (y + math.sin(yaw) * dx + math.cos(yaw) * dy + 16) / 0.1
            i, j = int(py), int(px)
            u, v = px - j, py - i
            ground = np.array([1 - v, v]) @ terrain.heights[i : i + 2, j : j + 2] @ np.array([1 - u, u])
            assert scan[row, k].item() == pytest.approx(ground - (z - 0.287), abs=2e-3)


def test_low_is_low_over_the_ground_and_not_over_zero() -> None:
    env = rough(2, config={"start_noise": 0.0})
    terrain = env.task.terrain
    row, column = np.unravel_index(terrain.heights.argmax(), terrain.heights.shape)
    spot = [column * 0.1 - 16, row * 0.1 - 16, terrain.heights.max() + 0.1]
    env.h.robot.set_root(torch.tensor([[*spot, 1, 0, 0, 0], [*spot[:2], spot[2] + 0.1, 1, 0, 0, 0]]))
    env.world.forward()
    assert env.task.clearance(env.h).tolist() == pytest.approx([0.1, 0.2], abs=1e-4)
    assert env.task.evaluate(env.h)["fail"][0].item()


def test_the_flat_floor_lies_below_the_field_that_would_flicker_with_it() -> None:
    env = manikin.make("TrackVelocityRough-v1", 1)
    model = env.world.scene.model
    assert model.geom("floor").pos[2] == pytest.approx(-0.005)
    assert float(env.task.heights.min()) >= 0.0


@pytest.mark.parametrize("hardest", [0.0, -0.5, 5.0])
def test_the_share_of_patches_is_above_0_and_at_most_1(hardest: float) -> None:
    with pytest.raises(ConfigError, match=f"'hardest' of TrackVelocityRough-v1 must be above 0 .* it is {hardest}"):
        manikin.make("TrackVelocityRough-v1", config={"hardest": hardest})
