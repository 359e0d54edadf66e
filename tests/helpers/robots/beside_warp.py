"""A robot that moves in the air, on the CPU and on MuJoCo Warp."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.author.card import FreeArm


def ends_on_both(word: str, low: float, high: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Joints (2, n) after ten control steps with actions from ``low`` to ``high``, on ``cpu`` and ``warp:cpu``; each
    must have moved by more than 0.02. Skips where Warp is missing."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    ends = []
    for device in ("cpu", "warp:cpu"):
        env = manikin.make(
            FreeArm, num_envs=2, robot=word, control="joint_target_delta_pos", device=device, reward="none"
        )
        env.reset(seed=0)
        start, size = env.robot.qpos.clone(), env.controller.card.size
        for k in range(10):
            env.step(torch.linspace(low, high, 2 * size).reshape(2, size) * math.cos(0.5 * k))
        ends.append(env.robot.qpos.clone())
        assert (ends[-1] - start).abs().max() > 0.02
    return ends[0], ends[1]
