"""Deterministic mode of Warp devices: the same bits in another process, the same contacts as in the default mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

from manikin.sim.warp import WarpWorld  # noqa: E402
from test_world import build  # noqa: E402


def course(*, deterministic: bool, steps: int) -> dict[str, Any]:
    """Three things fall beside a swinging arm, differently in both rows; contacts are counted every 20 timesteps."""
    b, arm, cube, ball, can, _ = build()
    world = WarpWorld(b.compile(), 2, deterministic=deterministic, nconmax=32, njmax=96)
    b.bind(world)
    arm.set_qpos(arm.keyframe())
    cube.set_pose(((0.05, 0.0, 0.08), (0.05, 0.0, 0.1)), (0.8, 0.6, 0, 0))
    ball.set_pose((0.05, 0.15, 0.1))
    can.set_pose((0.05, -0.15, 0.1), (0.96, 0.28, 0, 0))
    world.forward()
    rows, hashes = [], []
    for k in range(steps // 20):
        ctrl = world.read("ctrl").clone()
        ctrl[:, 0], ctrl[:, 3] = (0.5 if k % 2 else -0.5), -2.2 + 0.02 * k
        world.write("ctrl", ctrl)
        world.step(20)
        rows.append(world.read("nefc").ravel().tolist())
        hashes.append(world.state_hash().tolist())
    return {"rows": rows, "hashes": hashes, "health": world.health().tolist()}


def elsewhere(steps: int) -> subprocess.Popen:
    """The same in a process of its own, which prints it."""
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    program = f"import json, test_exact; print(json.dumps(test_exact.course(deterministic=True, steps={steps})))"
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})


def test_two_processes_end_a_thousand_steps_in_the_same_bits():
    process = elsewhere(1000)
    one = course(deterministic=True, steps=1000)
    default = course(deterministic=False, steps=100)
    out, _ = process.communicate(timeout=400)
    assert process.returncode == 0
    assert json.loads(out.splitlines()[-1]) == one
    assert len(one["hashes"]) == 50
    assert one["hashes"][-1][0] != one["hashes"][-1][1] and one["hashes"][0] != one["hashes"][-1]
    assert one["health"] == [0, 0]
    assert len({tuple(rows) for rows in one["rows"]}) > 3  # things begin and end to touch
    assert default["rows"] == one["rows"][:5]
