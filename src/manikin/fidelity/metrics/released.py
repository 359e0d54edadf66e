"""The metrics as the script computes them that the authors released, error for error. Tables II and III come from it.

Where it differs from the paper:

- All: the recording is cut to the simulation's length, or its last row is repeated. Rows at the end that have an exact
  zero in any column but the fingers' then become the last row without one.
- Mean arm: quaternions are averaged as they are, without a common sign, and not normalised.
- pose [rad^2]: the inverse of one rotation is multiplied with the other element by element, so that the distance of a
  pose to itself is not 0. No square root is drawn.
- max_acceleration and max_deceleration, of arm and object, are exchanged: (v_k - v_k+1) / dt grows where it brakes.
- min_torque, max_torque, torque: the first row is left out. The error is the mean absolute difference.
- max_force, force, max_moment, moment: sums of absolute values over the axes, and mean absolute differences.
- object_translation, object_rotation: the recording's last row but one, the simulation's last row. Euler angles are not
  unwrapped.
- Motion of the object: from the first to the last interval above 0.01 m/s, so that exchanged labels count.

One thing is not copied: where rounding makes the product of two quaternions larger than 1, the script's rotation error
is NaN. Here that row counts 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from manikin.errors import DataError
from manikin.fidelity.numerics import euler_degrees, mahalanobis, moving, rotation_matrices
from manikin.fidelity.protocol import HZ, REPEATS
from manikin.fidelity.recordings.recording import ARM, Recording

__all__ = ["as_read", "released"]

_SCALE = 37.0
_LEAST = 1000.0  # a minimum begins there
_NO_ZERO = 1e-20  # what SciPy's logarithm takes an eigenvalue of zero for


def released(real: Recording, sim: Recording) -> tuple[dict[str, float], list[str]]:
    """Values by name, and notes.

    Raises:
        DataError: fewer than 20 repeats of an object, or every row of the recording has a zero.
    """
    s = sim.arm.mean(0)
    d, objects = _reality(real, len(s))
    pos, quat = (s[:, ARM["pos"]], d[:, ARM["pos"]]), (s[:, ARM["quat"]], d[:, ARM["quat"]])
    apart = np.linalg.norm(pos[0] - pos[1], axis=1)
    velocity = [np.linalg.norm(np.diff(one, axis=0), axis=1) * HZ for one in pos]
    braking = [-np.diff(one) * HZ for one in velocity]
    load = {name: [np.abs(one[:, ARM[name]]).sum(1) for one in (s, d)] for name in ("torque", "force", "moment")}
    load["torque"] = [one[1:] for one in load["torque"]]
    error = {name: float(np.mean(np.abs(one - other))) for name, (one, other) in load.items()}
    largest = {name: float(np.fmax.reduce(one, initial=0)) for name, (one, _) in load.items()}
    found = {
        "euclidean": float(apart.mean()),
        "rotation": float(np.arccos(np.minimum(1, np.abs((quat[0] * quat[1]).sum(1)))).mean()),
        "pose": float((_logarithm(quat[0], quat[1]) + _SCALE * apart**2).mean()),
        "max_velocity": float(np.fmax.reduce(velocity[0], initial=0)),
        "velocity": float(np.mean(np.abs(velocity[0] - velocity[1]))),
        "max_acceleration": float(np.fmax.reduce(braking[0], initial=0)),
        "max_deceleration": float(-np.fmin.reduce(braking[0], initial=0)),
        "acceleration": float(np.mean(np.abs(braking[0] - braking[1]))),
        "min_torque": float(np.fmin.reduce(load["torque"][0], initial=_LEAST)),
        "max_torque": largest["torque"],
        "torque": error["torque"],
        "max_force": largest["force"],
        "force": error["force"],
        "max_moment": largest["moment"],
        "moment": error["moment"],
    }
    notes: list[str] = []
    if len(sim.objects):
        for word, one in (("recording", real), ("simulation", sim)):
            if len(one.objects) < REPEATS:
                raise DataError(f"the {word} {one.source} has {len(one.objects)} repeats; the script needs {REPEATS}")
        found |= _motion(sim.objects[:REPEATS, :, :3])
        for name, columns in (("object_translation", slice(0, 3)), ("object_rotation", slice(3, 7))):
            ends = [sim.objects[:REPEATS, -1, columns], objects[:REPEATS, -2, columns]]
            if name == "object_rotation":
                ends = [euler_degrees(one) for one in ends]
            distance, degenerate = mahalanobis(ends[0].mean(0), ends[1].mean(0), np.cov(ends[1].T))
            found[name] = float(distance)
            if degenerate:
                notes.append(f"{name}: the recordings do not spread in every direction; the script would fail")
    return found, notes


def as_read(real: Recording) -> Recording:
    """A recording as the script reads it: the mean arm and 20 objects, rows of zeros at the end replaced.

    Raises:
        DataError: every row has a zero.
    """
    arm, objects = _reality(real, real.rows)
    return replace(real, arm=arm[None], objects=objects[:REPEATS])


def _reality(real: Recording, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Arm (rows, 22) and objects (R, rows, 7) of the recording, at the simulation's length and without zeros at the
    end."""
    table = np.concatenate([real.arm.mean(0), *real.objects], axis=1)[:rows]
    table = np.concatenate([table, np.repeat(table[-1:], rows - len(table), axis=0)])
    watched = np.ones(table.shape[1], bool)
    watched[ARM["fingers"]] = False
    whole = np.flatnonzero((table[:, watched] != 0).all(1))
    if not len(whole):
        raise DataError(f"{real.source}: every row has a zero; the released script finds no row to begin with")
    table[whole[-1] + 1 :] = table[whole[-1]]
    return table[:, :22], table[:, 22:].reshape(rows, -1, 7).transpose(1, 0, 2)


def _logarithm(sim: np.ndarray, real: np.ndarray) -> np.ndarray:
    """(N,) squared Frobenius norm of the matrix logarithm of what the script takes for a rotation; NaN stays NaN."""
    found = np.full(len(sim), np.nan)
    known = np.isfinite(sim).all(1) & np.isfinite(real).all(1)
    product = np.linalg.inv(rotation_matrices(real[known])) * rotation_matrices(sim[known])
    values, vectors = np.linalg.eig(product)
    values = np.where(values == 0, _NO_ZERO, values.astype(complex))
    log = vectors @ (np.log(values)[..., None] * np.linalg.inv(vectors))
    found[known] = (np.abs(log) ** 2).sum((1, 2))
    return found


def _motion(pos: np.ndarray) -> dict[str, float]:
    """Of the simulated object's positions (20, N, 3)."""
    each: dict[str, list[float]] = {"max": [], "mean": [], "up": [], "down": [], "change": [], "time": []}
    for one in pos:
        speed = np.linalg.norm(np.diff(one, axis=0), axis=1) * HZ
        window = moving(speed, 0.01)
        first, last = (window[0] + 1, window[1] + 1) if window else (0, 0)
        inside, braking = speed[first:last], -np.diff(speed)[first : max(first, last - 1)] * HZ
        length = max(1, last - first)
        each["max"].append(np.fmax.reduce(inside, initial=0))
        each["mean"].append(inside.sum() / length)
        each["up"].append(np.fmax.reduce(braking, initial=0))
        each["down"].append(np.fmin.reduce(braking, initial=0))
        each["change"].append(np.abs(braking).sum() / length)
        each["time"].append((last - first) / HZ)
    mean = {name: float(np.mean(values)) for name, values in each.items()}
    return {
        "object_max_velocity": mean["max"],
        "object_mean_velocity": mean["mean"],
        "object_max_acceleration": mean["up"],
        "object_max_deceleration": abs(mean["down"]),
        "object_mean_acceleration": mean["change"],
        "object_moving_time": mean["time"],
    }
