"""Defects of recordings: found, told with their rows, and masked where the caller asks for it. Nothing is repaired.

A masked sample becomes NaN, which the metrics of the mode ``paper`` leave out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manikin.errors import DataError, UnknownNameError
from manikin.fidelity.arm import wrist_pose
from manikin.fidelity.numerics import median, rotation_matrices
from manikin.fidelity.protocol import HZ, benchmark_task
from manikin.fidelity.recordings import mistakes
from manikin.fidelity.recordings.recording import ARM, Recording

__all__ = ["KINDS", "MASKED", "MASKED_OWN", "Defect", "check_usable", "find_defects", "masked", "summary"]

KINDS: dict[str, str] = {
    "units": "positions, torques, forces or moments in another unit, or angles instead of quaternions",
    "columns": "columns in another order: w last, torques and forces, or forces and moments exchanged",
    "far": "positions beyond 10 m: an object that fell off, or an unstable simulation",
    "rate": "another rate than 10 Hz",
    "gap": "missing values",
    "zero_rows": "rows in which every position is exactly zero",
    "zero_repeat": "rows of a mean in which some repeats are zero",
    "quaternion": "quaternions that are not of unit length",
    "label_swap": "jumps of an object, or of your own tool, and back: the markers' labels were exchanged",
    "after_end": "rows after the nominal end of the task",
    "short": "fewer rows than the task lasts",
    "fingers": "fingers that do not begin open, or beyond their encoder",
    "start": "the wrist begins elsewhere than where the arm at home has it",
    "orientation": "turns of the wrist that do not agree with the arm's kinematics",
}
"""Kind of a defect -> what it is."""
MASKED = ("zero_rows", "zero_repeat", "quaternion", "label_swap", "after_end")
"""What ``masked`` masks unless told otherwise. ``orientation`` can be named, too."""
_REFUSED = ("units", "columns", "rate")
_FARTHEST, _HOME = 10.0, 0.03  # [m]
_UNIT, _JUMP, _STEADY, _TURN = 0.02, 0.02, 0.005, 10.0  # of a quaternion's length, [m], [m], [degrees]

MASKED_OWN = ("zero_rows", "quaternion")
"""What is masked in recordings of your own: a jump at an unknown rate may be a push."""
_TURNS, _ANGLES = 4 * np.pi, 1.5  # [rad] beyond which no joint turns, and a length that no quaternion has


@dataclass(frozen=True, eq=False)
class Defect:
    """One defect.

    Attributes:
        kind: of :data:`KINDS`.
        where: ``arm``, or the name of an object's repeat.
        rows: (K,) rows that have it, ascending; empty where it is of the whole file.
        words: what was found.
        index: repeat of the arm or the object.
        thing: which of several objects.
    """

    kind: str
    where: str
    rows: np.ndarray
    words: str
    index: int = 0
    thing: int = 0

    def __str__(self) -> str:
        count = len(self.rows)
        at = "" if not count else f" {ranges(self.rows)} ({count} row{'s' if count > 1 else ''})"
        return f"{self.kind}, {self.where}{at}: {self.words}"


def ranges(rows: Sequence[int] | np.ndarray, most: int = 4) -> str:
    """``row 5``, ``rows 0-2, 7, 9-12 and others``."""
    rows = np.asarray(rows)
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    said = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:most]]
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(said)}{' and others' if len(runs) > most else ''}"


def find_defects(recording: Recording) -> list[Defect]:
    """All defects of a recording, those of the whole file first."""
    if recording.own:
        return [*_own(recording)]
    found = [*_whole(recording)]
    (home, turns), lies = mistakes.home(), mistakes.lies(benchmark_task(recording.task))
    for k, arm in enumerate(recording.arm):
        name = _arm(recording, k)
        found += _track(arm[:, :7], name, k, recording.summary, home)
        for look in (mistakes.loads, mistakes.exchanged, mistakes.fingers):
            found += [Defect(*one) for one in look(arm, name, k)]
        found += [Defect(*one) for one in mistakes.order(arm[:, ARM["quat"]], turns, name, k)]
        rest = _rows(np.isnan(arm[:, 7:]).any(1) & ~np.isnan(arm[:, :7]).any(1))
        found += [Defect("gap", name, rest, "values are missing", k)] if len(rest) else []
    turned: list[mistakes.Mistake] = []
    for k, track in enumerate(recording.objects):
        name = recording.labels[k] if k < len(recording.labels) else f"repeat {k + 1}"
        found += _track(track, f"object {name}", k, False, lies[0])
        found += _swaps(track, f"object {name}", k)
        turned += mistakes.order(track[:, 3:], lies[1], f"object {name}", k)
    # of a single one it may be chance: markers of a cylinder lie about its axis as they like
    return found + ([Defect(*one) for one in turned] if 2 * len(turned) > len(recording.objects) else [])


def summary(defects: Sequence[Defect], first_line: int) -> list[str]:
    """A line for each kind of defect: how many tracks and rows have it, and the first of them."""
    found = []
    for kind in dict.fromkeys(one.kind for one in defects):
        these = [one for one in defects if one.kind == kind]
        rows = sum(len(one.rows) for one in these)
        first = these[0]
        line = f", from line {first_line + int(first.rows[0])}" if len(first.rows) and first_line else ""
        more = f" ({len(these)} tracks, {rows} rows in all)" if len(these) > 1 else ""
        found.append(f"{first}{line}{more}")
    return found


def check_usable(recording: Recording, defects: Iterable[Defect]) -> None:
    """Raise :class:`DataError` for a defect that makes every number wrong: units, columns or rate."""
    bad = [one for one in defects if one.kind in _REFUSED]
    if bad:
        raise DataError(f"{recording.source}: {bad[0]}")


def masked(recording: Recording, defects: Iterable[Defect], kinds: Sequence[str] = MASKED) -> Recording:
    """The recording with defective samples as NaN, and without the rows after the nominal end.

    Args:
        recording: as it was read.
        defects: what :func:`find_defects` found in it.
        kinds: which kinds to mask: of :data:`MASKED`, and ``orientation``, which masks all turns of the wrist.

    Raises:
        UnknownNameError: a kind that cannot be masked.
    """
    valid = (*MASKED, "orientation")
    for kind in kinds:
        if kind not in valid:
            raise UnknownNameError("kind of defect that can be masked", kind, valid)
    arm, objects, rows = recording.arm.copy(), recording.objects.copy(), recording.rows
    for one in defects:
        if one.kind not in kinds:
            continue
        if one.kind == "after_end":
            rows = min(rows, int(one.rows[0]))
        elif one.kind == "orientation":
            arm[..., recording.columns.get("quat", slice(0, 0))] = np.nan
        elif one.where.startswith("object"):
            objects[one.index, one.rows, 7 * one.thing : 7 * one.thing + 7] = np.nan
        else:
            arm[one.index, one.rows] = np.nan
    return replace(recording, arm=arm, objects=objects).cut(rows)


# ---- what is looked for ----------------------------------------------------------------------------------------------


def _rows(where: np.ndarray) -> np.ndarray:
    return np.flatnonzero(where)


def _whole(recording: Recording) -> Iterator[Defect]:
    task, none = benchmark_task(recording.task), np.zeros(0, int)
    expected = round(task.seconds * recording.hz)
    times = recording.rows / task.rows
    if abs(recording.hz - HZ) > 1e-9:
        words = f"{recording.hz:g} rows per second; the benchmark has {HZ:g}. Say the rate, to take every so many rows"
        yield Defect("rate", "file", none, words)
    elif times > 1.8 or times < 0.6:
        words = f"{recording.rows} rows; {task.seconds:g} s at {HZ:g} Hz are {task.rows}"
        words += f". About {times * HZ:.3g} Hz, or cut short?"
        yield Defect("rate", "file", none, words)
    elif paced := [*mistakes.pace(recording)]:
        yield from (Defect(*one) for one in paced)
    elif recording.rows > expected + 1:
        rows = np.arange(expected, recording.rows)
        yield Defect("after_end", "file", rows, f"the task ends after {task.seconds:g} s")
    elif recording.rows < expected - 2:
        yield Defect("short", "file", none, f"{recording.rows} rows; {task.seconds:g} s are {expected}")
    home, _ = wrist_pose(np.zeros(6))
    away = np.linalg.norm(recording.arm[:, 0, :3] - home, axis=1)
    if np.nanmax(away, initial=0) > _HOME:
        k = int(np.nanargmax(away))
        words = f"{1000 * away[k]:.0f} mm from home: another frame, another start, or a mean over foreign repeats"
        yield Defect("start", _arm(recording, k), np.zeros(1, int), words, k)
    yield from _orientation(recording)


def _arm(recording: Recording, index: int) -> str:
    return "arm" if len(recording.arm) == 1 else f"arm of repeat {index + 1}"


def _track(pose: np.ndarray, where: str, index: int, mean: bool, start: np.ndarray) -> Iterator[Defect]:
    """Of positions and quaternions (N, 7) that begin at ``start`` (3,)."""
    pos, size = pose[:, :3], np.linalg.norm(pose[:, 3:], axis=1)
    lost, zero = np.isnan(pose).any(1), (pos == 0).all(1)
    named = [Defect(*one) for one in mistakes.lengths(pos, start, where, index)]
    yield from named or _wide(np.linalg.norm(pos, axis=1), where, index)
    if turned := [Defect(*one) for one in mistakes.angles(pose[:, 3:], ~zero & np.isfinite(pos).all(1), where, index)]:
        yield from turned
        return
    if lost.any():
        yield Defect("gap", where, _rows(lost), "values are missing", index)
    if zero.any():
        yield Defect("zero_rows", where, _rows(zero), "the position is exactly zero", index)
    short = (np.abs(size - 1) > _UNIT) & ~zero & ~lost
    if mean:
        bad = short | (_shrunk(pos) & ~zero)
        if bad.any():
            words = "repeats that are zero, or of the other sign, are in the mean"
            if short.any():
                words += f"; quaternions have lengths from {size[short].min():.3g} to {size[short].max():.3g}"
            yield Defect("zero_repeat", where, _rows(bad), words, index)
    elif short.any():
        words = f"lengths from {size[short].min():.3g} to {size[short].max():.3g}"
        yield Defect("quaternion", where, _rows(short), words, index)


def _wide(distance: np.ndarray, where: str, index: int) -> Iterator[Defect]:
    """Of distances (N,) from the origin: beyond 10 m at the start or by a factor of units, or otherwise."""
    rows = _rows(distance > _FARTHEST)
    if not len(rows):
        return
    first = int(rows[0])
    before = distance[:first][distance[:first] > 0]
    times = distance[first] / (before[-1] if len(before) else 1.0)
    words = f"{distance[first]:.4g} from the origin"
    if not len(before) or 50 < times < 3000:
        name = "millimetres" if times > 300 else "centimetres"
        yield Defect("units", where, rows, f"{words}; in metres it is below {_FARTHEST:g}, so these are {name}", index)
    else:
        yield Defect("far", where, rows, f"{words}, and {np.nanmax(distance):.4g} at most", index)


def _shrunk(pos: np.ndarray) -> np.ndarray:
    """(N,) rows after which a mean (N, 3), of its last five, falls towards the origin: some repeats ended earlier."""
    found = np.zeros(len(pos), bool)
    for k in _rows((pos != 0).any(1))[1:][-5:]:
        before, step = pos[k - 1], pos[k] - pos[k - 1]
        length = np.linalg.norm(step)
        toward = -(step @ before) / max(1e-12, length * np.linalg.norm(before))
        still = np.linalg.norm(np.diff(pos[max(0, k - 4) : k], axis=0), axis=1).max(initial=0)
        if length > _JUMP and toward > 0.998 and still < _STEADY:
            found[k:] = True
    return found


def _swaps(track: np.ndarray, where: str, index: int) -> Iterator[Defect]:
    """Rows after a step that is more than 20 mm away from the median of the three steps on either side."""
    pos = np.where((track[:, :3] == 0).all(1, keepdims=True), np.nan, track[:, :3])
    step = np.diff(pos, axis=0)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(step, ((3, 3), (0, 0)), constant_values=np.nan), 7, axis=0)
    others = np.delete(around, 3, axis=-1)
    away = np.linalg.norm(step - median(others), axis=1)
    jumps = _rows(away > _JUMP)
    if len(jumps):
        words = f"{len(jumps)} jumps of {1000 * away[jumps].min():.0f} to {1000 * away[jumps].max():.0f} mm"
        yield Defect("label_swap", where, jumps + 1, words, index)


def _orientation(recording: Recording) -> Iterator[Defect]:
    """Whether the turns between poses at rest are those of the arm's kinematics, as their distances are. Of the first
    repeat."""
    task, arm = benchmark_task(recording.task), recording.arm[0]
    rows = []
    for end, _ in task.segments:
        k = round(end * recording.hz) - 1
        if k < 3 or k >= len(arm) or not np.isfinite(arm[k - 2 : k + 1, :7]).all():
            continue
        size = np.linalg.norm(arm[k, ARM["quat"]])
        if np.linalg.norm(np.diff(arm[k - 2 : k + 1, :3], axis=0), axis=1).max() < _STEADY and abs(size - 1) < _UNIT:
            rows.append((k, end))
    if len(rows) < 2:
        return
    targets = np.radians([next(t for e, t in task.segments if e == end) for _, end in rows])
    pos, turn = wrist_pose(targets)
    at = np.array([k for k, _ in rows])
    recorded = rotation_matrices(arm[at, ARM["quat"]])
    apart = []
    for i in range(len(at)):
        for j in range(i):
            lengths = [np.linalg.norm(one[i] - one[j]) for one in (pos, arm[at, :3])]
            if abs(lengths[0] - lengths[1]) < 0.03:
                apart.append(abs(_angle(turn[i].T @ turn[j]) - _angle(recorded[i].T @ recorded[j])))
    if apart and np.mean(apart) > _TURN:
        words = (
            f"turns between poses at rest are {np.mean(apart):.0f} degrees off in the mean, {np.max(apart):.0f} at "
            "most, where positions agree within 30 mm. Rotation and pose errors have a floor"
        )
        yield Defect("orientation", "arm", at, words)


def _angle(turn: np.ndarray) -> float:
    """[degrees] of a rotation matrix."""
    return float(np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))))


# ---- of a task of your own, of which nothing is known ----------------------------------------------------------------


def _own(recording: Recording) -> Iterator[Defect]:
    """Of each repeat up to its end."""
    ends = [max(2, end) for end in recording.lengths]
    others = [at for name, at in recording.columns.items() if name not in ("pos", "quat", "actions")]
    for k, (arm, end) in enumerate(zip(recording.arm, ends, strict=True)):
        name = f"arm of {recording.labels[k]}"
        if end < recording.rows:
            yield Defect("short", name, _rows(arm[:0]), f"{end} rows; the longest repeat has {recording.rows}", k)
        if "qpos" in recording.columns:
            far = np.nanmax(np.abs(arm[:end, recording.columns["qpos"]]), axis=1, initial=0)
            words = f"a joint is at {far.max():.4g}, beyond two turns; these are degrees or millimetres"
            yield from [Defect("units", name, _rows(far > _TURNS), words, k)] if (far > _TURNS).any() else []
        lost = np.zeros(end, bool)
        if "pos" in recording.columns:
            pose = arm[:end, recording.columns["pos"]]
            if "quat" in recording.columns:
                pose = np.concatenate([pose, arm[:end, recording.columns["quat"]]], axis=1)
            yield from _own_track(pose, name, k)
            lost = np.isnan(pose).any(1)
        rest = np.any([np.isnan(arm[:end, at]).any(1) for at in others] or [lost], axis=0) & ~lost
        yield from [Defect("gap", name, _rows(rest), "values are missing", k)] if rest.any() else []
    for j, thing in enumerate(recording.things):
        for k, track in enumerate(recording.track(thing)):
            found = _own_track(track[: ends[k]], f"object {thing} of {recording.labels[k]}", k)
            yield from (replace(one, thing=j) for one in found)


def _own_track(pose: np.ndarray, where: str, index: int) -> Iterator[Defect]:
    """Of positions (N, 3), or with quaternions (N, 7)."""
    pos, size = pose[:, :3], np.linalg.norm(pose[:, 3:], axis=1)
    lost, zero = np.isnan(pose).any(1), (pos == 0).all(1)
    off = (np.abs(size - 1) > _UNIT) & ~lost & ~zero & (pose.shape[1] > 3)
    yield from _wide(np.linalg.norm(pos, axis=1), where, index)
    if (size[off] > _ANGLES).any():
        words = f"a quaternion of length {size[off].max():.4g}; these are angles, or degrees"
        yield Defect("units", where, _rows(off & (size > _ANGLES)), words, index)
    elif off.any():
        words = f"lengths from {size[off].min():.3g} to {size[off].max():.3g}"
        yield Defect("quaternion", where, _rows(off), words, index)
    yield from [Defect("gap", where, _rows(lost), "values are missing", index)] if lost.any() else []
    yield from [Defect("zero_rows", where, _rows(zero), "the position is exactly zero", index)] if zero.any() else []
    yield from _swaps(pose, where, index)
