"""A robot on a stand, beside what it works on."""

from __future__ import annotations

import torch

from manikin.math import quat_from_yaw
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.spec.prop import Shape

__all__ = ["on_stand"]

RADIUS = 0.09  # [m]


def on_stand(
    b: SceneBuilder, *, pos: tuple[float, float, float], yaw: float = 0.0, floor: float, name: str = "robot"
) -> Robot:
    """The next robot, its base at ``pos`` [m] turned by ``yaw`` [rad], on a column that stands at height ``floor``."""
    half = (pos[2] - floor) / 2
    column = Shape(type="cylinder", size=(RADIUS, half), pos=(pos[0], pos[1], floor + half), rgba=(0.35, 0.36, 0.38, 1))
    b.fixture(f"stand/{name}", column)
    quat = quat_from_yaw(torch.tensor([yaw], device="cpu"))[0].tolist()
    return b.robot(pos=pos, quat=quat, name=name)
