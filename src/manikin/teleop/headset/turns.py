"""Quaternions (w, x, y, z) of single hands, with MuJoCo's own functions; float64."""

from __future__ import annotations

import math

import mujoco
import numpy as np

__all__ = ["about_z", "conj", "log", "matrix_quat", "mul", "rotate", "slerp", "turn_of"]


def mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The turn ``b``, then ``a``."""
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, a, b)
    return out


def conj(a: np.ndarray) -> np.ndarray:
    """The turn back."""
    return np.asarray(a * (1.0, -1.0, -1.0, -1.0))


def rotate(a: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The vector (3,), turned."""
    out = np.zeros(3)
    mujoco.mju_rotVecQuat(out, np.asarray(v, float), a)
    return out


def log(a: np.ndarray) -> np.ndarray:
    """(3,) rotation vector [rad], at most half a turn."""
    out = np.zeros(3)
    mujoco.mju_quat2Vel(out, a, 1.0)
    return out


def turn_of(vector: np.ndarray) -> np.ndarray:
    """The quaternion of a rotation vector (3,) [rad]."""
    angle, out = float(np.linalg.norm(vector)), np.zeros(4)
    mujoco.mju_axisAngle2Quat(out, vector / angle if angle else np.array([1.0, 0.0, 0.0]), angle)
    return out


def about_z(angle: float) -> np.ndarray:
    """A turn about z [rad]."""
    return np.array([math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)])


def slerp(a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
    """From ``a`` a share of the way to ``b``, the short way."""
    return mul(turn_of(share * log(mul(b, conj(a)))), a)


def matrix_quat(matrix: np.ndarray) -> np.ndarray:
    """The quaternion of a rotation matrix (3, 3)."""
    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(matrix, float).reshape(9))
    return out
