"""What both modes of the metrics compute with: speeds, rotations, windows of motion, distances to a distribution."""

from __future__ import annotations

import numpy as np

__all__ = ["accelerations", "euler_degrees", "mahalanobis", "mean", "median", "moving", "rotation_matrices", "speeds"]


def speeds(pos: np.ndarray, hz: float) -> np.ndarray:
    """(..., N-1) [m/s] of positions (..., N, 3) [m]."""
    return np.asarray(np.linalg.norm(np.diff(pos, axis=-2), axis=-1) * hz)


def accelerations(speed: np.ndarray, hz: float) -> np.ndarray:
    """(..., N-1) [m/s^2] change of speed (..., N) [m/s]; positive where it grows."""
    return np.asarray(np.diff(speed, axis=-1) * hz)


def moving(speed: np.ndarray, threshold: float, late: int = 3) -> tuple[int, int] | None:
    """First and last interval of (N-1,) speeds [m/s] above a threshold [m/s], the first few left out; None without.

    NaN is not above.
    """
    found = np.flatnonzero(speed[late:] > threshold) + late
    return (int(found[0]), int(found[-1])) if len(found) else None


def rotation_matrices(quat: np.ndarray) -> np.ndarray:
    """(..., 3, 3) of quaternions (..., 4); of others than unit quaternions what the formula gives, no rotation."""
    w, x, y, z = np.moveaxis(np.asarray(quat, float), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)


def euler_degrees(quat: np.ndarray) -> np.ndarray:
    """(..., 3) roll, pitch, yaw [degrees] about the fixed axes x, y, z; the sine of pitch is clamped to [-1, 1]."""
    w, x, y, z = np.moveaxis(np.asarray(quat, float), -1, 0)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return np.asarray(np.degrees(np.stack([roll, pitch, yaw], -1)))


def mahalanobis(point: np.ndarray, centre: np.ndarray, covariance: np.ndarray) -> tuple[float | np.ndarray, bool]:
    """Distance of points (..., D) to a distribution, and whether its covariance (D, D) is degenerate.

    Degenerate is a smallest eigenvalue below 1e-9 of the largest; the pseudo-inverse then leaves that direction out.
    Of a covariance with NaN the distance is NaN.
    """
    if not np.isfinite(covariance).all():
        return (float("nan") if np.ndim(point) == 1 else np.full(point.shape[:-1], np.nan)), False
    values = np.linalg.eigvalsh(covariance)
    degenerate = bool(values[0] < 1e-9 * values[-1]) or not values[-1] > 0
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) if degenerate else np.linalg.inv(covariance)
    away = point - centre
    found = np.sqrt(np.maximum(np.einsum("...i,ij,...j", away, inverse, away), 0))
    return (float(found) if np.ndim(found) == 0 else found), degenerate


def median(values: np.ndarray) -> np.ndarray:
    """(...) median over the last dimension of what is not NaN; NaN without any."""
    ordered, known = np.sort(values, axis=-1), np.isfinite(values).sum(-1)  # NaN at the end
    middle = np.stack([np.maximum(known - 1, 0) // 2, known // 2], -1)
    return np.asarray(np.take_along_axis(ordered, middle, axis=-1).mean(-1))


def mean(values: np.ndarray) -> float:
    """Mean of the finite ones; NaN without any."""
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if len(kept) else float("nan")
