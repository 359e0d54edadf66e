"""Mistakes that make every number of a recording wrong: other units, other columns, another rate. Found, not repaired.

Each is told from what the task itself fixes: where the arm and the object begin, how the weight of the arm bends the
joints, and when the targets change.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from manikin.fidelity.arm import commands, wrist_pose
from manikin.fidelity.protocol import HZ, BenchmarkTask, benchmark_task
from manikin.fidelity.recordings.recording import ARM, Recording

__all__ = [
    "LENGTHS",
    "Mistake",
    "angles",
    "exchanged",
    "fingers",
    "home",
    "lengths",
    "lies",
    "loads",
    "order",
    "pace",
]

LENGTHS = {"millimetres": 1000.0, "centimetres": 100.0, "inches": 1 / 0.0254, "decimetres": 10.0, "feet": 1 / 0.3048}
"""Unit -> how many are a metre."""
_MARKERS = (-0.745, -0.015, 0.667, 0.011)  # w, x, y, z of the recorded wrist at home: the markers' frame
_NEAR, _APART, _FAR = 0.08, 0.3, 1.8  # [m] of a place in another unit, of one in metres, more than the tasks reach
_FIT, _OFF = 10.0, 30.0  # [degrees] a quaternion in the right order, and in a wrong one
_HEAVY, _UNSTABLE = 400.0, 1e5  # sums of absolute torques [N m] and forces [N]; a simulation that broke down has more
_LEVER, _TURN = 2.0, 1.0  # moment per force that no hand has [m], and more than moments add up to [N m]
_LIGHT = (5e-4, 0.05)  # [N] largest force of a whole task in kN; a sensor without load has less
_OPEN, _CLOSED = 100.0, 7000.0  # [encoder counts]
_CAPS = (np.array([10.0] * 3 + [20.0] * 3), *(np.full(6, cap) for cap in (10.0, 15, 20, 25, 30, 40, 57.3, 80)))
_RATES = (5.0, 6, 7, 8, 9, 11, 12, 12.5, 15, 16, 18, 20, 24, 25)


class Mistake(NamedTuple):
    """What was found: see :class:`manikin.fidelity.recordings.defects.Defect`."""

    kind: str
    where: str
    rows: np.ndarray
    words: str
    repeat: int = 0


# ---- of a track ------------------------------------------------------------------------------------------------------


def lengths(pos: np.ndarray, start: np.ndarray, where: str, index: int) -> Iterator[Mistake]:
    """Positions (N, 3) in another unit than metres: from the start, or from the row on in which they jump.

    ``start`` (3,) is where the track begins in metres.
    """
    known = np.flatnonzero(np.isfinite(pos).all(1) & (pos != 0).any(1))
    here, before = pos[known], np.concatenate([start[None], pos[known][:-1]])
    for k in np.flatnonzero(np.linalg.norm(here - before, axis=1) > _APART):
        fits = {name: float(np.linalg.norm(here[k] / times - before[k])) for name, times in LENGTHS.items()}
        name = min(fits, key=lambda one: fits[one])
        size = np.linalg.norm(here, axis=1)
        if fits[name] < _NEAR and size[k] > _FAR:
            rows = known[k:][(size[k:] > _FAR) & (size[k:] < 2.5 * LENGTHS[name])]
            words = f"{size[k]:.4g} from the origin, where {np.linalg.norm(before[k]):.2g} m is right; these are {name}"
            yield Mistake("units", where, rows, words, index)
            return


def angles(quat: np.ndarray, valid: np.ndarray, where: str, index: int) -> Iterator[Mistake]:
    """Columns of quaternions (N, 4) that hold angles. ``valid`` (N,) are the rows that are looked at.

    Most rows are not of unit length, and the columns are longer than 1, or one of them is empty. A mean over
    quaternions is shorter than 1 and leaves no column empty.
    """
    filled = np.nan_to_num(quat)
    size = np.linalg.norm(filled, axis=1)
    off = valid & (np.abs(size - 1) > 0.02)
    if valid.sum() < 3 or off.sum() <= 0.5 * valid.sum():
        return
    empty = (filled[valid] == 0).all(0)
    if size[valid].max() <= 1.02 and not (empty.any() and np.ptp(size[valid]) > 1e-3):
        return
    unit = "degrees" if np.abs(filled[valid]).max() > 2 * np.pi + 0.1 else "radians"
    words = f"a quaternion of length {size[valid].max():.4g}; these are angles in {unit}"
    yield Mistake("units", where, np.flatnonzero(off), words, index)


def order(quat: np.ndarray, start: np.ndarray, where: str, index: int) -> Iterator[Mistake]:
    """Quaternions (N, 4) as x, y, z, w: so they fit one of the turns ``start`` (K, 4) of the first row."""
    size = np.linalg.norm(quat[0])
    if not 0.5 < size < 1.02:  # a mean with a repeat of zeros is shorter than 1
        return
    first = quat[0] / size
    as_is, other = (min(_apart(one, turn) for turn in start) for one in (first, first[[3, 0, 1, 2]]))
    if other < _FIT and as_is > _OFF:
        words = f"quaternions as x, y, z, w: in this order the start is {other:.0f} degrees off, as w, x, y, z "
        yield Mistake("columns", where, np.zeros(1, int), f"{words}{as_is:.0f}", index)


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    """[degrees] between two unit quaternions."""
    return float(np.degrees(2 * np.arccos(np.clip(abs(a @ b), 0, 1))))


def _quaternion(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """(4,) of turns about the fixed axes x, y, z [rad]."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(half := np.array([roll, pitch, yaw]) / 2), np.sin(half)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def lies(task: BenchmarkTask) -> tuple[np.ndarray, np.ndarray]:
    """Where the object of a task begins: (3,) [m], and (1, 4) its turn."""
    start = np.zeros(6) if task.thing is None else np.array(task.thing.start, float)
    return start[:3], _quaternion(*start[3:])[None]


@cache
def home() -> tuple[np.ndarray, np.ndarray]:
    """Where the wrist begins: (3,) [m], and (2, 4) its turn by the arm's kinematics and by the recordings' markers."""
    pos, turn = wrist_pose(np.zeros(6))
    w = np.sqrt(max(0.0, 1 + np.trace(turn))) / 2
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / (4 * w)
    return pos, np.array([[w, *axis], _MARKERS]) / np.linalg.norm([[w, *axis], _MARKERS], axis=1, keepdims=True)


# ---- of the arm ------------------------------------------------------------------------------------------------------


def loads(arm: np.ndarray, where: str, index: int) -> Iterator[Mistake]:
    """Joint torques and forces of an arm (N, 22) in smaller units, and forces in kN."""
    for name, unit in (("torque", "N mm"), ("force", "mN")):
        summed = np.nan_to_num(np.abs(arm[:, ARM[name]]).sum(1))
        rows = np.flatnonzero(summed > _HEAVY)
        if len(rows) >= 5 and summed.max() < _UNSTABLE and np.median(summed[rows]) > 2 * _HEAVY:
            words = f"the columns of {name} add up to {np.median(summed[rows]):.4g}; these are {unit}"
            yield Mistake("units", where, rows, words, index)
    force = np.nan_to_num(np.abs(arm[:, ARM["force"]]).sum(1))
    if _LIGHT[0] < force.max() < _LIGHT[1]:
        words = f"forces add up to {force.max():.2g} at most, and the sensor carries a hand; these are kN"
        yield Mistake("units", where, np.flatnonzero(force), words, index)


def exchanged(arm: np.ndarray, where: str, index: int) -> Iterator[Mistake]:
    """Columns of joint torques and of the force sensor that stand in each other's place, or its forces and moments;
    and moments in N mm.

    The torque of joint 2 carries the arm: it grows as the wrist reaches out. No force at the sensor does so as closely.
    A moment [N m] is less than half of its force [N], as the hand is shorter than half a metre.
    """
    known = np.isfinite(arm).all(1) & (arm[:, :3] != 0).any(1)
    arm = arm[known]
    if len(arm) < 10:
        return
    reach = np.hypot(arm[:, 0], arm[:, 1])
    torque, force = (_follows(np.abs(arm[:, column]), reach) for column in (ARM["torque"].start + 1, 17))
    if force > 0.8 and force - torque > 0.1 and np.abs(arm[:, ARM["torque"]]).sum(1).max() > 0:
        words = "columns 16 to 21 hold the joints' torques and 7 to 12 force and moment: column 17 grows as the wrist "
        yield Mistake("columns", where, np.flatnonzero(known)[:1], f"{words}reaches out, column 8 does not", index)
        return
    pull, turn = (np.abs(arm[:, ARM[name]]).sum(1) for name in ("force", "moment"))
    small, large = np.median(pull), np.median(turn)
    if large > max(0.5, _LEVER * small) and turn.max() < _UNSTABLE:
        words = f"columns 16 to 18 add up to {small:.2g} and 19 to 21 to {large:.2g}, in the median; these are "
        kind, said = ("columns", "moments and forces") if small < _TURN else ("units", "forces, and moments in N mm")
        yield Mistake(kind, where, np.flatnonzero(known)[:1], words + said, index)


def _follows(values: np.ndarray, others: np.ndarray) -> float:
    """Correlation; 0 of what does not change."""
    if np.ptp(values) < 1e-9 or np.ptp(others) < 1e-9:
        return 0.0
    return float(np.corrcoef(values, others)[0, 1])


def fingers(arm: np.ndarray, where: str, index: int) -> Iterator[Mistake]:
    """Fingers of an arm (N, 22) that are not open at the start, or beyond what their encoders count."""
    counts = np.nan_to_num(np.abs(arm[:, ARM["fingers"]]).max(1))
    rows = np.flatnonzero(counts > _CLOSED)
    if len(rows):
        words = f"{counts.max():.4g} counts, where a closed finger has 6400; another unit?"
    elif counts[0] > _OPEN:
        rows = np.zeros(1, int)
        words = f"{counts[0]:.4g} counts at the start, where fingers are open and have 0; another unit?"
    else:
        return
    yield Mistake("fingers", where, rows, words, index)


# ---- of the whole ----------------------------------------------------------------------------------------------------


def pace(recording: Recording) -> Iterator[Mistake]:
    """Another rate than 10 Hz, told from the motion: the wrist follows the targets only if rows are so many a second.

    Looked at where the number of rows is not the task's. Each rate is tried with several caps and delays of the
    controller, so that a slow arm is not taken for a rate.
    """
    task, pos = benchmark_task(recording.task), recording.arm[0][:, ARM["pos"]]
    more = recording.rows / task.rows - 1
    known = np.isfinite(pos).all(1) & (pos != 0).any(1)
    if abs(recording.rows - task.rows) < 3 or known.sum() < 10:
        return
    at = np.flatnonzero(known)
    usual = _distance(task, pos[at], at / HZ)
    found = {rate: _distance(task, pos[at], at / rate) for rate in _RATES if (rate > HZ) == (more > 0)}
    best = min(found, key=lambda rate: found[rate])
    if found[best] < min(0.8 * usual, usual - 0.008):
        rows = np.array([round(end * best) for end, _ in task.segments[:-1]])
        words = (
            f"the wrist follows the targets within {1000 * found[best]:.0f} mm at about {best:g} rows a second, and "
        )
        words += f"within {1000 * usual:.0f} mm at {HZ:g}: targets would change in these rows"
        yield Mistake("rate", "arm", rows[rows < recording.rows], words)


def _distance(task: BenchmarkTask, pos: np.ndarray, time: np.ndarray) -> float:
    """[m] mean distance of positions (N, 3) at their times (N,) [s] from the best of the paths."""
    least = float("inf")
    for path in _paths(task.number):
        use = time <= (len(path) - 1) / HZ
        for delay in np.arange(0, 0.7, 0.1):
            when = np.clip(time[use] - delay, 0, None) * HZ
            there = np.stack([np.interp(when, np.arange(len(path)), axis) for axis in path.T], 1)
            least = min(least, float(np.linalg.norm(there - pos[use], axis=1).mean()))
    return least


@cache
def _paths(number: int) -> tuple[np.ndarray, ...]:
    """Ways of the wrist (N, 3) at 10 Hz by the law of the controller: with several caps, and in tasks 5 to 8 also with
    the recorded times of the targets."""
    task, found = benchmark_task(number), []
    for late in (1.0, 2.0) if number in (5, 6, 7, 8) else (1.0,):
        segments = [(late * end, target) for end, target in task.segments]
        steps = round((segments[-2][0] + 8) * HZ)  # at rest from then on
        asked = [np.concatenate([np.zeros((1, 6)), commands(segments, steps, cap)]) for cap in _CAPS]
        found += [wrist_pose(one)[0] for one in asked]
    return tuple(found)
