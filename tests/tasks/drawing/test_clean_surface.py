"""A surface to wipe: its heights against rays and formulas, the rule of wiping against plain numpy, the expert."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.assets.heights import scan_heights
from manikin.errors import DataError
from manikin.plan.executor import WaypointExecutor

TASK = "CleanSurface-v1"


def make(n: int, **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    return manikin.make(TASK, n, **options)


def dome(file: Path, radius: float = 0.1, rings: int = 24) -> Path:
    """Half a ball as an OBJ, its flat side down."""
    lines, faces = [f"v 0 0 {radius}"], []
    for i in range(1, rings + 1):
        polar = i * math.pi / 2 / rings
        for k in range(48):
            turn = k * math.pi / 24
            x, y = math.sin(polar) * math.cos(turn), math.sin(polar) * math.sin(turn)
            lines.append(f"v {radius * x:.7f} {radius * y:.7f} {radius * math.cos(polar):.7f}")
    for k in range(48):
        faces.append(f"f 1 {2 + k} {2 + (k + 1) % 48}")
        for i in range(rings - 1):
            a, b = 2 + 48 * i + k, 2 + 48 * i + (k + 1) % 48
            faces += [f"f {a} {a + 48} {b}", f"f {b} {a + 48} {b + 48}"]
    base = 2 + 48 * (rings - 1)
    faces += [f"f {base} {base + k + 1} {base + k}" for k in range(1, 47)]
    file.write_text("\n".join([*lines, *faces]) + "\n")
    return file


def test_a_scan_has_the_heights_of_its_shape(tmp_path: Path) -> None:
    heights = scan_heights(dome(tmp_path / "dome.obj"), 0.3, cells=31)
    x, y = np.meshgrid(*[np.linspace(-0.15, 0.15, 31)] * 2)
    inside = np.hypot(x, y) < 0.095
    expected = np.sqrt(np.clip(0.1**2 - x**2 - y**2, 0, None))
    np.testing.assert_allclose(heights[inside], expected[inside], atol=1e-3)  # the mesh has flat faces
    assert (heights[np.hypot(x, y) > 0.1001] == 0).all()
    twice = scan_heights(tmp_path / "dome.obj", 0.6, cells=31, scale=2.0)
    np.testing.assert_allclose(twice, 2 * heights, atol=1e-6)


def test_what_is_no_scan_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty.obj").write_text("# nothing\n")
    for file, words in (("none.obj", "no such file"), ("scan.xyz", ".obj, .stl, .msh"), ("empty.obj", "as a mesh")):
        with pytest.raises(DataError, match=words):
            make(1, config={"scan": str(tmp_path / file)})


@pytest.mark.parametrize("scanned", [False, True])
def test_the_heights_are_those_that_rays_meet(tmp_path: Path, scanned: bool) -> None:
    env = make(1, config={"scan": str(dome(tmp_path / "dome.obj"))} if scanned else {})
    env.reset(seed=0)
    model, data = env.world.data(0)
    rng, worst, down = np.random.default_rng(0), 0.0, np.array([0.0, 0.0, -1.0])
    for xy in rng.uniform(-0.14, 0.14, (200, 2)) + np.array([-0.05, 0.0]):
        start = np.array([*xy, 1.0])
        distance = mujoco.mj_rayHfield(model, data, model.geom("surface").id, start, down, None)
        assert distance >= 0
        worst = max(worst, abs(1.0 - distance - float(env.task.height(torch.tensor(xy, dtype=torch.float32)))))
    assert worst < (4e-3 if scanned else 4e-4)  # [m] a cell is two triangles for MuJoCo; the dome's rim is a step


def test_marks_are_wiped_where_the_tip_is_low_and_near_and_the_reward_says_so() -> None:
    env = make(8)
    env.reset(seed=5)
    expert, shown, seen = WaypointExecutor(env), env.h.dirt.shown.clone(), 0
    for step in range(200):
        _, reward, _, _, info = env.step(expert.act())
        tip, pos = env.h.robot.tcp_pos.double().numpy(), env.h.dirt.pos.double().numpy()
        height = tip[:, 2] - env.task.height(env.h.robot.tcp_pos[:, :2]).double().numpy()
        sideways = np.linalg.norm(pos[..., :2] - tip[:, None, :2], axis=2)
        now = torch.from_numpy((sideways < 0.015) & (height < 0.008)[:, None])
        unsure = torch.from_numpy((abs(sideways - 0.015) < 1e-6) | (abs(height - 0.008) < 1e-6)[:, None])
        expected, shown = shown & ~now, env.h.dirt.shown.clone()
        assert torch.equal(expected | unsure, shown | unsure)
        seen += int((now & ~expected).any())
        if step % 20:
            continue
        for row in range(8):
            left = shown[row].numpy()
            away = np.linalg.norm(pos[row][left] - tip[row], axis=1)
            sum_of = (1 - math.tanh(5 * away.min()) if left.any() else 1.0) + 1 - left.mean()
            assert float(reward[row]) == pytest.approx(3.0 if info["success"][row] else sum_of, abs=1e-4)
    assert seen > 50
    assert (~shown).any(1).all()


def test_the_expert_wipes_everything_off_and_chance_does_not() -> None:
    env = make(64)
    env.reset(seed=list(range(64)))
    expert, once = WaypointExecutor(env), torch.zeros(64, dtype=torch.bool)
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        once |= info["success"]
    assert once.float().mean() >= 0.95
    env.reset(seed=0)
    rng = torch.Generator().manual_seed(0)
    for _ in range(100):
        *_, info = env.step(torch.rand(64, env.single_action_space.shape[0], generator=rng) * 2 - 1)
        assert not info["success"].any()


def test_marks_cost_no_physics_and_the_stick_meets_the_surface() -> None:
    few, many = (make(1, config={"marks": marks}).scene.model for marks in (1, 500))
    assert (few.nv, few.ngeom, few.nbody) == (many.nv, many.ngeom, many.nbody)
    env = make(4)
    env.reset(seed=1)
    expert, deepest, touched = WaypointExecutor(env), 0.0, False
    for _ in range(150):
        env.step(expert.act())
        data = env.world.data(0)[1]
        touched |= any(env.scene.model.geom("surface").id in contact.geom for contact in data.contact)
        deepest = min([deepest, *(contact.dist for contact in data.contact)])
    assert deepest > -2e-3  # [m]
    assert touched
