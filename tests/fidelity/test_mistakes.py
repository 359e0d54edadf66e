"""Other units, columns and rates: put in on purpose, named with their rows, and seen in nothing that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from manikin.errors import DataError
from manikin.fidelity import TASKS, Recording, find_defects, read_reality, score_task
from manikin.fidelity.arm import commands, wrist_pose
from manikin.fidelity.recordings.defects import check_usable
from manikin.fidelity.recordings.recording import ARM
from manikin.fidelity.recordings.synthetic import averaged, synthetic_recording

REFUSED = {"units", "columns", "rate"}
Edit = Callable[[np.ndarray, np.ndarray], None]


def edited(one: Recording, edit: Edit) -> Recording:
    arm, objects = one.arm.copy(), one.objects.copy()
    edit(arm, objects)
    return replace(one, arm=arm, objects=objects)


def times(columns: slice, factor: float, *, thing: bool = False, first: int = 0) -> Edit:
    """Columns in another unit, from a row on."""

    def edit(arm: np.ndarray, objects: np.ndarray) -> None:
        (objects if thing else arm)[:, first:, columns] *= factor

    return edit


def exchange(one: slice, other: slice) -> Edit:
    def edit(arm: np.ndarray, objects: np.ndarray) -> None:
        arm[..., one], arm[..., other] = arm[..., other].copy(), arm[..., one].copy()

    return edit


def w_last(*, thing: bool = False) -> Edit:
    def edit(arm: np.ndarray, objects: np.ndarray) -> None:
        table = objects if thing else arm
        table[..., 3:7] = table[..., [4, 5, 6, 3]]

    return edit


def euler(*, degrees: bool, last: bool, thing: bool = False) -> Edit:
    """Roll, pitch and yaw in three of the four columns of a quaternion; the first or the last is empty."""

    def edit(arm: np.ndarray, objects: np.ndarray) -> None:
        table = objects if thing else arm
        turns = Rotation.from_quat(table[..., 3:7].reshape(-1, 4), scalar_first=True)
        found = turns.as_euler("xyz", degrees=degrees).reshape(*table.shape[:-1], 3)
        table[..., 3:7] = 0
        table[..., slice(3, 6) if last else slice(4, 7)] = found

    return edit


TORQUE, FORCE, MOMENT, POS = ARM["torque"], ARM["force"], ARM["moment"], slice(0, 3)
MISTAKES: dict[str, tuple[Edit, str, str]] = {
    "dm": (times(POS, 10), "units", "arm rows 0-129 (130 rows): 9.44"),
    "inches": (times(POS, 39.3701), "units", "these are inches"),
    "feet": (times(POS, 3.28084), "units", "these are feet"),
    "cm": (times(POS, 100), "units", "these are centimetres"),
    "mm from a row on": (times(POS, 1000, first=40), "units", "arm rows 40-129 (90 rows)"),
    "dm from a row on": (times(POS, 10, first=40), "units", "arm rows 40-129 (90 rows)"),
    "object in dm": (times(POS, 10, thing=True), "units", "object synthetic_01 rows 0-129"),
    "object in inches": (times(POS, 39.3701, thing=True, first=90), "units", "object synthetic_01 rows 90-129"),
    "radians": (euler(degrees=False, last=True), "units", "angles in radians"),
    "radians, first column empty": (euler(degrees=False, last=False), "units", "angles in radians"),
    "degrees": (euler(degrees=True, last=True), "units", "angles in degrees"),
    "object in radians": (euler(degrees=False, last=True, thing=True), "units", "object synthetic_01 rows 0-129"),
    "x, y, z, w": (w_last(), "columns", "arm row 0 (1 row): quaternions as x, y, z, w"),
    "object x, y, z, w": (
        w_last(thing=True),
        "columns",
        "object synthetic_01 row 0 (1 row): quaternions as x, y, z, w",
    ),
    "N mm": (times(TORQUE, 1000), "units", "the columns of torque add up to"),
    "N mm from a row on": (times(TORQUE, 1000, first=100), "units", "arm rows 100-129 (30 rows)"),
    "kN": (times(FORCE, 1e-3), "units", "these are kN"),
    "mN": (times(FORCE, 1e3), "units", "these are mN"),
    "moments in N mm": (times(MOMENT, 1000), "units", "forces, and moments in N mm"),
    "torque and force": (exchange(slice(7, 13), slice(16, 22)), "columns", "arm row 0 (1 row): columns 16 to 21 hold"),
    "force and moment": (exchange(FORCE, MOMENT), "columns", "these are moments and forces"),
    "fingers": (times(ARM["fingers"], 1000), "fingers", "arm row 0 (1 row): 2000 counts at the start"),
    "fingers far": (times(ARM["fingers"], 1e4, first=50), "fingers", "arm rows 50-129 (80 rows)"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_rows_and_nothing_is_repaired(name: str) -> None:
    edit, kind, said = MISTAKES[name]
    real, sim = averaged(synthetic_recording(3)), synthetic_recording(3, seed=1)
    wrong = edited(real, edit)
    told = [str(one) for one in find_defects(wrong) if one.kind == kind]
    assert told and said in told[0], told
    if kind in REFUSED:
        with pytest.raises(DataError, match=f"synthetic task 3: {kind}, "):
            score_task(wrong, sim)
        with pytest.raises(DataError, match=f"synthetic task 3: {kind}, "):  # and of a simulation
            score_task(real, edited(sim, edit), mode="released")
    else:  # no metric has the fingers
        assert score_task(wrong, sim).values == score_task(real, sim).values


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("hz", [8.0, 12.0, 15.0])
def test_another_rate_is_told_from_the_motion(task: int, hz: float) -> None:
    whole = averaged(synthetic_recording(task))
    at = np.round(np.arange(int((whole.rows - 1) / 10 * hz) + 1) / hz * 10).astype(int)
    other = replace(whole, arm=whole.arm[:, at], objects=whole.objects[:, at])
    (told,) = [one for one in find_defects(other) if one.kind == "rate"]
    ends = [end for end, _ in TASKS[task].segments[:-1]]
    assert f"at about {hz:g} rows a second" in told.words
    assert told.rows.tolist() == [round(end * hz) for end in ends]
    with pytest.raises(DataError, match="rate, arm row"):
        check_usable(other, [told])


@pytest.mark.parametrize("cap", [10.0, 15.0, 90.0])
@pytest.mark.parametrize("task", [1, 3, 9])
def test_a_slow_arm_or_a_short_file_is_no_other_rate(task: int, cap: float) -> None:
    """Longer than the task, or cut off: rows after the end, or too few of them."""
    seconds = TASKS[task].seconds
    q = np.concatenate([np.zeros((1, 6)), commands(TASKS[task].segments, round(13 * seconds) - 1, cap)])
    whole = np.repeat(averaged(synthetic_recording(task)).arm, 2, axis=1)[:, : len(q)].copy()
    whole[0, :, :3] = wrist_pose(q)[0]
    objects = np.zeros((0, len(q), 7))
    for rows, kind in ((len(q), "after_end"), (round(7 * seconds), "short")):
        one = Recording(task=task, arm=whole, objects=objects).cut(rows)
        assert kind in {defect.kind for defect in find_defects(one)} and not REFUSED & {
            defect.kind for defect in find_defects(one)
        }


@pytest.mark.parametrize("task", TASKS)
def test_real_recordings_are_in_the_right_units_columns_and_rate(task: int, data_root: Path) -> None:
    """No false alarm; and the same mistakes are found in them."""
    real = read_reality(data_root / "collins2020" / "real_mean_10hz", task)
    assert not (REFUSED | {"fingers"}) & {one.kind for one in find_defects(real)}
    for name in ("dm", "inches", "radians", "x, y, z, w", "N mm", "kN", "torque and force", "force and moment"):
        edit, kind, _ = MISTAKES[name]
        whole = real.cut(TASKS[task].rows - 1)  # without the rows of zeros at the end
        assert kind in {one.kind for one in find_defects(edited(whole, edit))}, name
