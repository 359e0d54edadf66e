"""Laws of motion of the torque controllers, one source for NumPy (the CPU, float64) and torch (a device, float32).

Of fixed shape and without a branch on values: a row's result depends on no other row, and on a device nothing waits for
the processor. Vectors are (n, k); m is the number of joints.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "clip",
    "joint_law",
    "operational",
    "operational_torque",
    "orientation_error",
    "step_response",
    "task_jacobian",
    "whiten",
]

Array = Any
"""np.ndarray or torch.Tensor."""

LIGHTEST = 2.5e-4
"""[1/kg, 1/(kg m^2)] Added to how easily each direction moves, so that none is heavier than 1 / LIGHTEST: near a
singularity the apparent mass grows without bound. robosuite cuts off at this figure."""

_YZX, _ZXY = (1, 2, 0), (2, 0, 1)
_LOWER, _UPPER = (7, 2, 3), (5, 6, 1)  # of a 3 x 3 matrix, what its skew part is made of
_INDEX: dict[tuple[int, ...], np.ndarray] = {c: np.array(c) for c in (_YZX, _ZXY, _LOWER, _UPPER)}
_ON_DEVICE: dict[tuple[tuple[int, ...], torch.device], Tensor] = {}


def _cat(parts: list[Array], axis: int) -> Array:
    return torch.cat(parts, axis) if isinstance(parts[0], Tensor) else np.concatenate(parts, axis)


def _take(value: Array, columns: tuple[int, ...]) -> Array:
    """Columns of the last axis."""
    if not isinstance(value, Tensor):
        return value.take(_INDEX[columns], -1)
    key = (columns, value.device)
    if key not in _ON_DEVICE:  # made once: a new tensor would wait for the processor
        _ON_DEVICE[key] = torch.tensor(columns, device=value.device)
    return value.index_select(-1, _ON_DEVICE[key])


def _cross(a: Array, b: Array) -> Array:
    """A (n, m, 3) x b (n, 3)."""
    return _take(a, _YZX) * _take(b, _ZXY)[:, None] - _take(a, _ZXY) * _take(b, _YZX)[:, None]


def clip(value: Array, low: Array, high: Array) -> Array:
    """Element by element."""
    if isinstance(value, Tensor):
        return torch.clamp(value, low, high)
    return np.minimum(np.maximum(value, low), high)


def whiten(matrix: Array, columns: Array) -> Array:
    """L^-1 X (..., k, c) of ``matrix`` A = L L^T (..., k, k), ``columns`` X: then X^T A^-1 Z = (L^-1 X)^T L^-1 Z.

    NumPy has no triangular solve, and torch's small factorizations take a third of the time of NumPy's.
    """
    if isinstance(matrix, Tensor):
        if matrix.is_cuda:
            from manikin.sim.warp.kernels import solve as warp_solve

            return warp_solve.whiten(matrix, columns)
        lower, _ = torch.linalg.cholesky_ex(matrix)
        return torch.linalg.solve_triangular(lower, columns, upper=False)
    return whiten(torch.from_numpy(matrix), torch.from_numpy(columns)).numpy()


def task_jacobian(motion: Array, offset: Array) -> Array:
    """(n, 6, m) linear [m] above angular velocity of a point per joint velocity, in the world.

    Args:
        motion: (n, m, 6) motion axis of each joint, angular then linear, at a reference point.
        offset: (n, 3) [m] from the reference point to the point.
    """
    turn, shift = motion[..., :3], motion[..., 3:]
    return _cat([shift + _cross(turn, offset), turn], 2).swapaxes(1, 2)


def operational(jacobian: Array, inertia: Array, eye: Array, *, uncouple: bool) -> tuple[Array, Array]:
    """What operational-space control needs of the robot's present configuration.

    Args:
        jacobian: J (n, 6, m).
        inertia: M (n, m, m), that of motors included.
        eye: (n, 6, 6).
        uncouple: an inertia each for position and orientation, Lambda = diag(Lambda_pos, Lambda_ori); else one of both.

    Returns:
        J^T Lambda (n, m, 6), which turns accelerations of the tool into torques; and M - J^T Lambda_full J (n, m, m),
        which turns joint accelerations into torques that do not accelerate the tool.
    """
    n, m = inertia.shape[:2]
    rows = whiten(inertia, jacobian.swapaxes(1, 2))
    light = rows.swapaxes(1, 2) @ rows + LIGHTEST * eye  # J M^-1 J^T
    if not uncouple:
        whole = whiten(light, _cat([jacobian, eye], 2))
        moves, turned = whole[:, :, :m], whole[:, :, :m].swapaxes(1, 2)
        return turned @ whole[:, :, m:], inertia - turned @ moves
    moves = whiten(light, jacobian)
    null = inertia - moves.swapaxes(1, 2) @ moves
    halves = whiten(_blocks(light), _cat([jacobian.reshape(n, 2, 3, m), _blocks(eye)], 3))
    each = halves[..., :m].swapaxes(2, 3) @ halves[..., m:]  # (n, 2, m, 3)
    return each.swapaxes(1, 2).reshape(n, m, 6), null


def _blocks(matrix: Array) -> Array:
    """(n, 2, 3, 3) the diagonal blocks of (n, 6, 6)."""
    return _cat([matrix[:, None, :3, :3], matrix[:, None, 3:, 3:]], 1)


def orientation_error(rotation: Array, goal: Array) -> Array:
    """(n, 3) axis times sine of the angle of the turn from ``rotation`` to ``goal`` (n, 3, 3), in the world."""
    turn = (goal @ rotation.swapaxes(1, 2)).reshape(-1, 9)
    return 0.5 * (_take(turn, _LOWER) - _take(turn, _UPPER))


def operational_torque(
    operators: tuple[Array, Array],
    jacobian: Array,
    offset: Array,
    turn: Array,
    qvel: Array,
    stiffness: Array,
    damping: Array,
    posture_error: Array,
    posture: float,
) -> Array:
    """(n, m) torques [N m] that give the tool the acceleration stiffness * error - damping * velocity.

    Args:
        operators: of :func:`operational`.
        jacobian: (n, 6, m).
        offset: (n, 3) [m] from the tool to the goal.
        turn: (n, 3) [rad] from the tool to the goal.
        qvel: (n, m).
        stiffness: (n, 6) [1/s^2].
        damping: (n, 6) [1/s].
        posture_error: (n, m) [rad] to the posture kept where the tool does not mind.
        posture: its stiffness [1/s^2].
    """
    to_torque, null = operators
    velocity = (jacobian @ qvel[..., None])[..., 0]
    wanted = stiffness * _cat([offset, turn], 1) - damping * velocity
    settle = posture * posture_error - 2.0 * math.sqrt(posture) * qvel
    return (to_torque @ wanted[..., None] + null @ settle[..., None])[..., 0]


def step_response(stiffness: float, ratio: float, seconds: float) -> tuple[float, float]:
    """What is left of a unit offset from the goal, and how far a unit speed has carried [s], after some seconds of
    x'' = -stiffness x - 2 ratio sqrt(stiffness) x'."""
    own = math.sqrt(stiffness)
    bend = own * math.sqrt(abs(1.0 - ratio * ratio))  # [1/s] of the oscillation, or of the two rates' half difference
    if bend * seconds < 1e-4:
        even, odd = 1.0, seconds
    elif ratio < 1.0:
        even, odd = math.cos(bend * seconds), math.sin(bend * seconds) / bend
    else:
        even, odd = math.cosh(bend * seconds), math.sinh(bend * seconds) / bend
    decay = math.exp(-ratio * own * seconds)
    return decay * (even + ratio * own * odd), decay * odd


def joint_law(inertia: Array, error: Array, qvel: Array, stiffness: Array, damping: Array) -> Array:
    """(n, m) torques [N m] that give the joints the acceleration stiffness * error - damping * qvel."""
    return (inertia @ (stiffness * error - damping * qvel)[..., None])[..., 0]
