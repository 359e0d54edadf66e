"""What two recordings of a task of your own have in common: which metrics apply, and what does not agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manikin.errors import DataError
from manikin.fidelity.metrics.paper import final, half_angle, mean_arm, suffixes
from manikin.fidelity.numerics import mean
from manikin.fidelity.recordings.defects import Defect
from manikin.fidelity.recordings.layout import JOINTS
from manikin.fidelity.recordings.recording import Recording

__all__ = ["check_pair", "left_out", "pair_defects"]

_BOTH = {  # metrics that compare -> what they need of both sides
    "euclidean": ("pos",),
    "rotation": ("quat",),
    "pose": ("pos", "quat"),
    "velocity": ("pos",),
    "acceleration": ("pos",),
    "torque": ("torque",),
    "force": ("force",),
    "moment": ("moment",),
}
_SIMULATED = {  # metrics of the simulation alone
    **dict.fromkeys(("max_velocity", "max_acceleration", "max_deceleration"), "pos"),
    **dict.fromkeys(("min_torque", "max_torque"), "torque"),
    "max_force": "force",
    "max_moment": "moment",
}
_WORDS = {
    "pos": "position of the tool",
    "quat": "orientation of the tool",
    "torque": "joint torques",
    "force": "force at the wrist",
    "moment": "moment at the wrist",
}
_ENDS = ("object_translation", "object_rotation")
_MOTION = (
    *("object_max_velocity", "object_mean_velocity", "object_max_acceleration", "object_max_deceleration"),
    *("object_mean_acceleration", "object_moving_time"),
)
_LEAST = 4  # ends: fewer have no regular covariance of three numbers
_START, _WIDE, _NARROW = 0.03, 20.0, 10.0  # [m], [degrees], [degrees]


def check_pair(real: Recording, sim: Recording) -> None:
    """Raise :class:`DataError` for two recordings that cannot be compared: other rates or numbers of joints."""
    if abs(real.hz - sim.hz) > 1e-9 * real.hz:
        low = min(real.hz, sim.hz)
        raise DataError(
            f"{real.source} is at {real.hz:g} Hz, {sim.source} at {sim.hz:g} Hz. Metrics compare rows of equal times: "
            f"interpolate both to one rate, --resample {low:g} (resample= in Python)"
        )
    for name in JOINTS:
        widths = [one.part(name).shape[-1] for one in (real, sim) if name in one.columns]
        if len({*widths}) > 1:
            raise DataError(f"{real.source} has {widths[0]} columns of {name}, {sim.source} has {widths[1]}")


def left_out(real: Recording, sim: Recording) -> dict[str, str]:
    """Metric -> why it does not apply: what it needs was not recorded, or too few repeats have it."""
    sides = {"the recordings have": real, "the simulation has": sim}
    found: dict[str, str] = {}
    for name, needs in _BOTH.items():
        lost = [f"{who} no {_WORDS[part]}" for part in needs for who, one in sides.items() if part not in one.columns]
        found |= {name: "; ".join(lost)} if lost else {}
    for name, part in _SIMULATED.items():
        found |= {} if part in sim.columns else {name: f"the simulation has no {_WORDS[part]}"}
    things = suffixes(real, sim)
    if not things:
        found |= dict.fromkeys((*_MOTION, *_ENDS), "there is no object")
    rows = min(real.rows, sim.rows)
    for thing, suffix in things.items():
        if thing not in sim.things:
            found |= dict.fromkeys((f"{name}{suffix}" for name in (*_MOTION, *_ENDS)), f"the simulation has no {thing}")
            continue
        for (who, one), least in zip(sides.items(), (_LEAST, 1), strict=True):
            known = _ends(one, thing, rows) if thing in one.things else None
            if known is None:
                found |= dict.fromkeys((f"{name}{suffix}" for name in _ENDS), f"{who} no {thing}")
            elif known < least:
                said = f"{who} an end of {thing} in {known} repeats; at least {least} are needed"
                found |= dict.fromkeys((f"{name}{suffix}" for name in _ENDS), said)
    return found


def _ends(one: Recording, thing: str, rows: int) -> int:
    return int(np.isfinite(final(one.cut(rows).track(thing), one.hz)).all(1).sum())


def pair_defects(real: Recording, sim: Recording) -> tuple[list[Defect], list[Defect]]:
    """What does not agree between the recordings and the simulation: defects of the one and of the other."""
    rows = min(real.rows, sim.rows)
    arms = [mean_arm(one)[:rows] for one in (real, sim)]
    found: tuple[list[Defect], list[Defect]] = ([], [])
    if "pos" in real.columns and "pos" in sim.columns:
        starts = [arm[0, one.columns["pos"]] for arm, one in zip(arms, (real, sim), strict=True)]
        away = float(np.linalg.norm(starts[1] - starts[0]))
        if away > _START:
            words = f"{1000 * away:.0f} mm from the recordings' start: another frame, or another start"
            found[1].append(Defect("start", "arm", np.zeros(1, int), words))
    for where, quats in _orientations(real, sim, arms, rows):
        for side, words in _order(*quats):
            found[side].append(Defect("columns", where, np.zeros(0, int), words))
    return found


def _orientations(
    real: Recording, sim: Recording, arms: list[np.ndarray], rows: int
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Name, and quaternions (N, 4) of both, of the tool and of each object; of an object in the first repeat."""
    if "quat" in real.columns and "quat" in sim.columns:
        yield "arm", [arm[:, one.columns["quat"]] for arm, one in zip(arms, (real, sim), strict=True)]
    for thing in real.things:
        if thing in sim.things:
            yield f"object {thing}", [one.track(thing)[0, :rows, 3:] for one in (real, sim)]


def _order(real: np.ndarray, sim: np.ndarray) -> Iterator[tuple[int, str]]:
    """The side (0 or 1) whose quaternions agree with the other's if their columns are x, y, z, w."""
    as_is = np.degrees(2 * mean(half_angle(real, sim)))
    turned = [np.degrees(2 * mean(half_angle(np.roll(real, 1, -1), sim)))]
    turned += [np.degrees(2 * mean(half_angle(real, np.roll(sim, 1, -1))))]
    side = int(turned[1] <= turned[0])
    if as_is > _WIDE and turned[side] < min(_NARROW, as_is / 4):
        yield (
            side,
            (
                f"{as_is:.0f} degrees apart, and {turned[side]:.1f} if these are read as x, y, z, w: another order, or "
                "another frame of the tool"
            ),
        )
