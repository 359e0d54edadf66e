"""The metrics as the paper defines them.

Over the instants k that both have, with positions p, unit quaternions q, rotation matrices R, joint torques tau, d the
mean of the recordings and s the mean of the simulation's repeats:

- euclidean [m]: mean of norm(p_d - p_s).
- rotation [rad]: mean of arccos(abs(q_d . q_s)), which is half the angle between them, from 0 to pi/2.
- pose [rad]: mean of sqrt(norm(log(R_d' R_s))^2 + 37 norm(p_d - p_s)^2). The Frobenius norm of the logarithm is
  sqrt(2) times the angle; 37 scales the workspace.
- velocity [m/s], acceleration [m/s^2]: mean absolute differences of the speeds v_k = norm(p_k+1 - p_k) / dt, and of
  their changes (v_k+1 - v_k) / dt.
- max_velocity, max_acceleration, max_deceleration: largest speed, largest and most negative change, simulated.
- min_torque, max_torque [N m]: of T_k, the sum of abs(tau) over the joints, simulated.
- torque [N m]: mean of T_d - T_s. It has a sign, so differences may cancel.
- max_force [N], max_moment [N m]: largest sum of the three axes with their signs, simulated.
- force, moment: mean of the recorded sum less the simulated one. They have a sign, too.
- object_max_velocity, object_mean_velocity, object_max_acceleration, object_max_deceleration,
  object_mean_acceleration: of each simulated repeat while the object moves, then the mean over repeats; 0 if it never
  does.
- object_moving_time [s]: from the first to the last interval whose speed, after a median over half a second (5 samples
  at 10 Hz), is above 0.02 m/s. The first 0.3 s do not count. Mean over repeats.
- object_translation: Mahalanobis distance of the mean simulated end to the recorded ends.
- object_rotation: the same of the Euler angles x, y, z [degrees], as differences to the recordings' circular mean.

Not in the paper: the median, which the exchanged labels of the markers need; the common sign of quaternions before
they are averaged; NaN, which is left out where either side has it. An end is the last valid sample of the final
second; a repeat without one does not count. Of several objects each has its metrics, called
``object_translation/cube`` and so on.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from manikin.errors import DataError
from manikin.fidelity.numerics import accelerations, euler_degrees, mahalanobis, mean, median, moving, speeds
from manikin.fidelity.protocol import HZ
from manikin.fidelity.recordings.recording import ARM, Recording

__all__ = ["final", "half_angle", "mean_arm", "mean_parts", "moving_times", "paper", "rolling_times", "suffixes"]

_SCALE = 37.0
_MEDIAN, _LONG, _THRESHOLD, _LATE = 0.5, 2.0, 0.02, 0.3  # [s], [s] of a rolling time, [m/s], [s]


def paper(real: Recording, sim: Recording, skip: Container[str] = ()) -> tuple[dict[str, float], list[str]]:
    """Values by name, and notes.

    Args:
        real: the recordings.
        sim: the simulation, at the same rate.
        skip: names of metrics that are not computed.

    Raises:
        DataError: fewer than two recorded ends of the object.
    """
    rows, hz = min(real.rows, sim.rows), sim.hz
    d, s = mean_parts(real, rows), mean_parts(sim, rows)
    apart = np.linalg.norm(d["pos"] - s["pos"], axis=1)
    half = half_angle(d["quat"], s["quat"])
    speed = [speeds(one["pos"], hz) for one in (s, d)]
    change = [accelerations(one, hz) for one in speed]
    torque = [np.abs(one["torque"]).sum(1) for one in (s, d)]
    force = [one["force"].sum(1) for one in (s, d)]
    moment = [one["moment"].sum(1) for one in (s, d)]
    found = {
        "euclidean": mean(apart),
        "rotation": mean(half),
        "pose": mean(np.sqrt(2 * (2 * half) ** 2 + _SCALE * apart**2)),
        "max_velocity": _largest(speed[0]),
        "velocity": mean(np.abs(speed[1] - speed[0])),
        "max_acceleration": max(0.0, _largest(change[0])),
        "max_deceleration": max(0.0, _largest(-change[0])),
        "acceleration": mean(np.abs(change[1] - change[0])),
        "min_torque": -_largest(-torque[0]),
        "max_torque": _largest(torque[0]),
        "torque": mean(torque[1] - torque[0]),
        "max_force": _largest(force[0]),
        "force": mean(force[1] - force[0]),
        "max_moment": _largest(moment[0]),
        "moment": mean(moment[1] - moment[0]),
    }
    notes = []
    for thing, suffix in suffixes(real, sim).items() if len(sim.objects) else ():
        if thing not in sim.things:
            continue
        found |= {f"{name}{suffix}": value for name, value in _motion(sim.track(thing), hz).items()}
        if not len(real.objects):
            notes += [] if real.own else ["the recordings have no object, so its end is not compared"]
            continue
        for name, measure in (("object_translation", _positions), ("object_rotation", _angles)):
            if f"{name}{suffix}" not in skip:
                ends = [final(one.cut(rows).track(thing), hz) for one in (sim, real)]
                found[f"{name}{suffix}"], said = _distance(f"{name}{suffix}", measure(*ends), real, sim)
                notes += said
    return {name: value for name, value in found.items() if name not in skip}, notes


def suffixes(real: Recording, sim: Recording) -> dict[str, str]:
    """Object -> what the names of its metrics end in: ``/cube``, or nothing where there is one object."""
    things = list(dict.fromkeys([*real.things, *sim.things]))
    return {thing: f"/{thing}" if len(things) > 1 else "" for thing in things}


def mean_parts(recording: Recording, rows: int) -> dict[str, np.ndarray]:
    """Name -> (rows, width) of the mean arm; (rows, 1) of NaN where the benchmark has it and it was not recorded."""
    arm, at = mean_arm(recording)[:rows], recording.columns
    lost = np.full((rows, 1), np.nan)
    return {name: arm[:, at[name]] if name in at else lost for name in {**ARM, **at}}


def mean_arm(recording: Recording) -> np.ndarray:
    """(N, C) mean of the arm over repeats; quaternions get the sign of the first repeat's and unit length."""
    if "quat" not in recording.columns:
        return np.asarray(recording.arm.mean(0))
    quat = recording.part("quat")
    sign = np.where((quat * quat[:1]).sum(-1, keepdims=True) < 0, -1.0, 1.0)
    found = recording.arm.mean(0)
    summed = (quat * sign).sum(0)
    with np.errstate(invalid="ignore"):
        found[:, recording.columns["quat"]] = summed / np.linalg.norm(summed, axis=-1, keepdims=True)
    return np.asarray(found)


def half_angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(N,) arccos |a . b| of unit quaternions, from the chord between them, so that it is exactly 0 of a and a."""
    chord = np.minimum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    return np.asarray(2 * np.arcsin(np.minimum(1, chord / 2)))


def _largest(values: np.ndarray) -> float:
    found = np.fmax.reduce(values)
    return float(found)


# ---- object ----------------------------------------------------------------------------------------------------------


def moving_times(recording: Recording, thing: str | None = None) -> np.ndarray:
    """(R,) [s] how long an object, by default the first, moves in each repeat; in the benchmark in the first 20."""
    track = recording.track(thing or recording.things[0])
    windows = [_window(one, recording.hz) for one in speeds(track[..., :3], recording.hz)]
    return np.array([0.0 if one is None else (one[1] - one[0]) / recording.hz for one in windows])


def rolling_times(recording: Recording) -> np.ndarray:
    """(R,) [s] how long the first object rolls in each repeat, robust against exchanged labels.

    From the first to the last window of 2 s in which the median speed is above 0.02 m/s and at least a third of the
    speeds is known. Not one of the 23 metrics: its window is longer than short pushes, and mask ``label_swap`` first.
    """
    found, hz = [], recording.hz
    for speed in speeds(recording.track(recording.things[0])[..., :3], hz):
        around = _around(speed, _LONG, hz, constant_values=np.nan)
        known = 3 * np.isfinite(around).sum(-1) >= around.shape[1]
        window = moving(np.where(known, median(around), np.nan), _THRESHOLD, round(_LATE * hz))
        found.append(0.0 if window is None else (window[1] - window[0]) / hz)
    return np.array(found)


def _window(speed: np.ndarray, hz: float) -> tuple[int, int] | None:
    return moving(median(_around(speed, _MEDIAN, hz, mode="edge")), _THRESHOLD, round(_LATE * hz))


def _around(values: np.ndarray, seconds: float, hz: float, **pad: Any) -> np.ndarray:
    """(N, K) neighbours of each of N values, with those that ``numpy.pad`` puts beyond the ends."""
    side = int(seconds * hz / 2)
    return np.lib.stride_tricks.sliding_window_view(np.pad(values, side, **pad), 2 * side + 1)


def _motion(track: np.ndarray, hz: float) -> dict[str, float]:
    """Means over repeats, of an object's motion (R, N, 7) in the simulation."""
    rows = []
    for speed in speeds(track[..., :3], hz):
        window = _window(speed, hz)
        inside = speed[window[0] : window[1] + 1] if window else np.zeros(1)
        change = accelerations(inside, hz)
        up, down = (max(0.0, np.fmax.reduce(sign * change, initial=0)) for sign in (1, -1))
        length = (window[1] - window[0]) / hz if window else 0.0
        rows.append((_largest(inside), mean(inside), up, down, mean(np.abs(change)) if len(change) else 0.0, length))
    most, average, up, down, bend, time = [mean(one) for one in np.array(rows).T]
    return {
        "object_max_velocity": most,
        "object_mean_velocity": average,
        "object_max_acceleration": up,
        "object_max_deceleration": down,
        "object_mean_acceleration": bend,
        "object_moving_time": time,
    }


def final(objects: np.ndarray, hz: float = HZ) -> np.ndarray:
    """(R, 7) last valid sample of each repeat (R, N, 7) in its final second; NaN where there is none."""
    objects = objects[:, -max(1, round(hz)) :]
    valid = np.isfinite(objects).all(-1)
    last = valid.shape[1] - 1 - valid[:, ::-1].argmax(1)
    found = objects[np.arange(len(objects)), last]
    return np.where(valid.any(1)[:, None], found, np.nan)


def _positions(sim: np.ndarray, real: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return sim[:, :3], real[:, :3]


def _angles(sim: np.ndarray, real: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Euler angles [degrees] as differences to the recordings' circular mean, from -180 to 180."""
    simulated, recorded = euler_degrees(sim[:, 3:]), euler_degrees(real[:, 3:])
    turn = np.radians(recorded[np.isfinite(recorded).all(1)])
    middle = np.degrees(np.arctan2(np.sin(turn).mean(0), np.cos(turn).mean(0)))
    return tuple((one - middle + 180) % 360 - 180 for one in (simulated, recorded))


def _distance(
    name: str, ends: tuple[np.ndarray, np.ndarray], real: Recording, sim: Recording
) -> tuple[float, list[str]]:
    """Mahalanobis distance of the mean simulated end, and notes: the mean distance of single ends, degeneracy."""
    simulated, recorded = (one[np.isfinite(one).all(1)] for one in ends)
    if len(recorded) < 2:
        raise DataError(f"{real.source}: {len(recorded)} repeats have an end of the object; a spread needs two")
    if not len(simulated):
        raise DataError(f"{sim.source}: no repeat has an end of the object")
    centre, covariance = recorded.mean(0), np.cov(recorded.T)
    distance, degenerate = mahalanobis(simulated.mean(0), centre, covariance)
    each, _ = mahalanobis(simulated, centre, covariance)
    lost = len(ends[1]) - len(recorded)
    notes = [f"{name}: {lost} recorded ends are unknown or masked"] if lost else []
    notes.append(f"{name}: single repeats are {float(np.mean(each)):.4g} away in the mean")
    if degenerate:
        notes.append(f"{name}: the recordings do not spread in every direction; those without spread do not count")
    return float(distance), notes
