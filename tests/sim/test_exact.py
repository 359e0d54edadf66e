"""Deterministic mode of Warp devices: the same bits in another process, the same contacts as in the default mode.

On Warp's CPU device the default mode gives the same bits too; that the option does something there is seen in Warp's
model alone. tests/sim/test_gpu.py compares two processes where it matters.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manikin

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

from manikin.sim.warp.library import modules  # noqa: E402
from manikin.sim.warp.world import WarpWorld  # noqa: E402
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
    contacts, hashes = [], []
    for k in range(steps // 20):
        ctrl = world.read("ctrl").clone()
        ctrl[:, 0], ctrl[:, 3] = (0.5 if k % 2 else -0.5), -2.2 + 0.02 * k
        world.write("ctrl", ctrl)
        world.step(20)
        found = world.mjw_data.contact.worldid.numpy()[: int(world.mjw_data.nacon.numpy()[0])]
        contacts.append(np.bincount(found, minlength=2).tolist())
        hashes.append(world.state_hash().tolist())
    mode = int(world.mjw_model.opt.deterministic)
    return {"contacts": contacts, "hashes": hashes, "health": world.health().tolist(), "mode": mode}


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
    assert len({tuple(each) for each in one["contacts"]}) >= 3  # things begin and end to touch
    assert default["contacts"] == one["contacts"][:5] and sum(map(sum, default["contacts"])) > 0
    kinds = modules()[1].DeterminismType
    assert one["mode"] == int(kinds.ALL) != int(kinds.NONE) == default["mode"]


@pytest.mark.parametrize("options", [{}, {"deterministic": True}], ids=["default", "deterministic"])
@pytest.mark.parametrize("task", ["CartpoleBalance-v1", "OpenCabinetDrawer-v2"])
def test_the_option_reaches_the_physics_of_every_environment(task, options):
    """Of each layout too."""
    kinds = modules()[1].DeterminismType
    env = manikin.make(task, 1, device="warp:cpu", budget=manikin.Budget(nconmax=64, njmax=256), **options)
    env.reset(seed=[len(env.task.layouts) // 2])
    wanted = int(kinds.ALL if options else kinds.NONE)
    assert {part.env.world.mjw_model.opt.deterministic for part in env.parts()} == {wanted}
    env.close()
