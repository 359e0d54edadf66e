"""Kinematics of the recorded arm (Kinova Mico, m1n6s300) up to the tracked frame, and the law that drives it.

Source: the released URDF; the numbers of its joints are those of kinova-ros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from manikin.fidelity.protocol import BASE_HEIGHT, GAIN, HZ

__all__ = ["JOINTS", "TRACKED", "commands", "wrist_pose"]

_P = math.pi
JOINTS: tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...] = (
    ((0, 0, 0.15675), (0, _P, 0)),
    ((0, 0.0016, -0.11875), (-_P / 2, _P, _P)),
    ((0, -0.290, 0), (0, _P, _P)),
    ((0, 0.1231, -0.0086), (-_P / 2, 0, _P)),
    ((0, -0.03703, -0.06414), (_P / 3, 0, _P)),
    ((0, -0.03703, -0.06414), (_P / 3, 0, _P)),
)
"""Place of each joint in the link before it: (x, y, z) [m] and (roll, pitch, yaw) [rad]. Each turns about its z."""
TRACKED = (((0, 0, -0.03513), (0, _P, -_P / 2)), ((0, 0, 0.0348), (0, -_P / 2, 0)))
"""From the last link to the far side of the force sensor, which the markers follow."""


def _place(xyz: Sequence[float], rpy: Sequence[float]) -> np.ndarray:
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    turn = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return np.block([[turn, np.reshape(xyz, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])


def wrist_pose(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the tracked frame is in the world.

    Args:
        q: (..., 6) joint angles [rad].

    Returns:
        Position (..., 3) [m] and rotation matrix (..., 3, 3).
    """
    q = np.asarray(q, float)
    found = np.broadcast_to(_place((0, 0, BASE_HEIGHT), (0, 0, 0)), (*q.shape[:-1], 4, 4))
    for k, (xyz, rpy) in enumerate(JOINTS):
        turn = np.zeros((*q.shape[:-1], 4, 4))
        cos, sin = np.cos(q[..., k]), np.sin(q[..., k])
        turn[..., 0, 0], turn[..., 0, 1], turn[..., 1, 0], turn[..., 1, 1] = cos, -sin, sin, cos
        turn[..., 2, 2] = turn[..., 3, 3] = 1
        found = found @ _place(xyz, rpy) @ turn
    for xyz, rpy in TRACKED:
        found = found @ _place(xyz, rpy)
    return found[..., :3, 3], found[..., :3, :3]


def commands(segments: Sequence[tuple[float, Sequence[float]]], steps: int, cap: float | np.ndarray) -> np.ndarray:
    """(steps, 6) [rad] joint positions that the arm is asked for at 10 Hz, from zero.

    The joint velocity is four times the difference to the target per second, at most ``cap`` [degrees/s],
    one number or (6,).
    """
    q, out = np.zeros(6), []
    for k in range(steps):
        target = next((t for end, t in segments if k / HZ < end), segments[-1][1])
        q = q + np.clip(GAIN * (np.array(target, float) - q), -cap, cap) / HZ
        out.append(np.radians(q))
    return np.array(out)
