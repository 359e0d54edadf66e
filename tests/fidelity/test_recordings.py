"""Files of the benchmark: read, refused with the place that is wrong, written, and their defects found."""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.fidelity import (
    TASKS,
    Recording,
    find_defects,
    masked,
    read_reality,
    read_recording,
    read_repeats,
    write_repeats,
    write_summary,
)
from manikin.fidelity.recordings.recording import ARM, LABELS, tasks_in
from manikin.fidelity.recordings.synthetic import averaged, synthetic_recording, write_synthetic

BLOCKS = {1: 0, 2: 0, 3: 21, 4: 20, 5: 20, 6: 21, 7: 20, 8: 22, 9: 21, 10: 21}  # repeats in the real files
ROWS = {1: 101, 2: 141, 3: 130, 4: 131, 5: 984, 6: 984, 7: 783, 8: 781, 9: 92, 10: 92}


@pytest.fixture
def real(data_root: Path) -> Path:
    return data_root / "collins2020" / "real_mean_10hz"


def kinds(recording: Recording) -> dict[str, int]:
    """Kind of defect -> how many rows have it, over all tracks."""
    found: dict[str, int] = {}
    for one in find_defects(recording):
        found[one.kind] = found.get(one.kind, 0) + len(one.rows)
    return found


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [1, 3])
@pytest.mark.parametrize("packed", [False, True])
def test_a_summary_comes_back_as_it_was_written(task: int, packed: bool, tmp_path: Path) -> None:
    one = averaged(synthetic_recording(task))
    path = write_summary(one, tmp_path)
    assert path.name == f"synthetic_Task{task:02d}_mean10Hz.csv"
    if packed:
        path = path.rename(path.with_name(path.name + ".xz"))
        path.write_bytes(lzma.compress(path.read_bytes()))
    back = read_reality(tmp_path, task)
    assert back.arm == pytest.approx(one.arm, rel=1e-8, abs=1e-12)
    assert back.objects == pytest.approx(one.objects, rel=1e-8, abs=1e-12)
    assert back.labels == one.labels and back.hz == 10 and back.summary and back.synthetic
    assert back.header["Generator"].startswith("manikin synthetic 1: seed 0") and back.source == str(path)
    assert path.suffix != ".csv" or path.read_text().splitlines()[back.first_line - 2].startswith("x,y,z,w,")


def test_repeats_come_back_as_they_were_written(tmp_path: Path) -> None:
    one = synthetic_recording(9)
    files = write_repeats(one, tmp_path)
    assert [path.name for path in files[:2]] == ["task09_01.csv", "task09_02.csv"] and len(files) == 20
    back = read_repeats(tmp_path, 9)
    assert back.arm == pytest.approx(one.arm, rel=1e-8, abs=1e-12) and back.arm.shape == (20, 90, 22)
    assert back.objects == pytest.approx(one.objects, rel=1e-8, abs=1e-12) and back.objects.shape == (20, 90, 7)
    assert back.synthetic and not back.summary and tasks_in(tmp_path) == (9,)
    plain = np.genfromtxt(files[3], comments="#", delimiter=",")  # as the released script reads it
    assert plain == pytest.approx(np.concatenate([one.arm[3], one.objects[3]], 1), rel=1e-8, abs=1e-12)
    assert read_reality(tmp_path, 9).arm.shape == (20, 90, 22)
    with pytest.raises(ConfigError, match=r"21 repeats: .* has 1 to 20"):
        write_repeats(one, tmp_path, 21)
    assert len(write_repeats(averaged(synthetic_recording(1)), tmp_path / "mean")) == 20
    write_repeats(averaged(one), tmp_path / "mean")
    assert read_repeats(tmp_path / "mean", 9).arm == pytest.approx(np.tile(averaged(one).arm, (20, 1, 1)), abs=1e-8)


def spoilt(change: Callable[[list[list[str]]], object]) -> Callable[[Path], Path]:
    """A repeat of task 3 in which something was changed; cells by line."""

    def write(folder: Path) -> Path:
        path = write_repeats(synthetic_recording(3, repeats=1), folder)[0]
        cells = [line.split(",") for line in path.read_text().splitlines()]
        change(cells)
        path.write_text("\n".join(",".join(line) for line in cells) + "\n")
        return path

    return write


def cell(line: int, column: int, value: str) -> Callable[[list[list[str]]], object]:
    return lambda cells: cells[line].__setitem__(column, value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cell(14, 8, "fast"), r"row 10 \(line 15\), column 8 \(J2\): 'fast' is not a number"),
        (cell(14, 25, "1,5"), r"row 10 \(line 15\) has 30 columns, row 0 has 29"),
        (cell(14, 25, "inf"), r"row 10 \(line 15\), column 25 \(object w\) is infinite"),
        (lambda cells: cells[20].pop(), r"row 16 \(line 21\) has 28 columns, row 0 has 29"),
        (lambda cells: [line.append("0") for line in cells[4:]], "has 30 columns; the layout has 22, or 29"),
        (lambda cells: [line.__delitem__(slice(21, None)) for line in cells[4:]], "has 21 columns; the layout has 22"),
        (lambda cells: cells.__delitem__(slice(6, None)), "has 2 rows of numbers"),
        (cell(0, 0, "# Task: 4"), "header, file name and caller say different tasks: 3, 4"),
        (cell(0, 0, "# Task: cube"), "the header says Task: 'cube'"),
        (lambda cells: cells.insert(9, [""]), r"row 5 \(line 10\) has 0 columns"),
        (lambda cells: cells.insert(4, ["x", "y", *LABELS[2:7], *"xyzwxyz"]), "column 7 is called 'x'.* 'J1'"),
        (lambda cells: cells.insert(4, [*LABELS, *"xyzxyzw"]), "column 25 is called 'x'; the layout has 'w'"),
        (lambda cells: [cells.insert(4, ["a"]) for _ in range(3)], "3 rows of text before the numbers"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(
    change: Callable[[list[list[str]]], object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said):
        read_recording(spoilt(change)(tmp_path))


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    files = write_repeats(synthetic_recording(3), tmp_path)
    content = files[6].read_text()
    files[6].write_text("\n".join(content.splitlines()[:-1]))
    with pytest.raises(DataError, match=r"task03_07.csv has 129 rows, .*task03_01.csv has 130"):
        read_repeats(tmp_path, 3)
    files[6].write_text(content.replace("Rate: 10 Hz", "Rate: 20 Hz"))
    with pytest.raises(DataError, match=r"task03_07.csv is at 20 Hz"):
        read_repeats(tmp_path, 3)
    files[6].unlink()
    with pytest.raises(DataError, match=r"has 19 of the 20 repeats of task 3; it lacks task03_07.csv"):
        read_repeats(tmp_path, 3)
    assert read_reality(tmp_path, 3).arm.shape[0] == 19  # of recordings, those that are there
    (tmp_path / "task03_21.csv").write_text(content.replace("# Rate: 10 Hz", "#"))
    with pytest.raises(DataError, match=r"has repeats 1, 2, .*, 21 of task 3; need repeats 1 to 20"):
        read_repeats(tmp_path, 3)
    (tmp_path / "TASK03_21.csv").write_text(content)
    with pytest.raises(DataError, match=r"has repeat 21 of task 3 twice"):
        read_repeats(tmp_path, 3)
    for path in tmp_path.glob("*_21.csv"):
        path.unlink()
    write_summary(averaged(synthetic_recording(3)), tmp_path)
    write_summary(replace(averaged(synthetic_recording(3)), synthetic=False), tmp_path)
    with pytest.raises(DataError, match="several summaries of task 3"):
        read_reality(tmp_path, 3)
    with pytest.raises(DataError, match="is not a folder"):
        read_reality(tmp_path / "nowhere", 3)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no files of the benchmark"):
        tasks_in(tmp_path / "empty")


def test_a_file_of_unknown_task_or_kind_is_refused(tmp_path: Path) -> None:
    lines = [",".join(["1"] * 22)] * 5
    other = tmp_path / "mine.csv"
    other.write_text("\n".join(lines))
    with pytest.raises(DataError, match="which task is it"):
        read_recording(other)
    assert read_recording(other, 2).arm.shape == (1, 5, 22)
    with pytest.raises(UnknownNameError, match="unknown task of the benchmark '11'"):
        read_recording(other, 11)
    other.write_text("\n".join(line + ",1" * 7 for line in lines))
    with pytest.raises(DataError, match="task 1 has no object, so 22 are right"):
        read_recording(other, 1)
    (tmp_path / "b.csv.xz").write_bytes(lzma.compress(bytes(200_000_001), preset=0))
    with pytest.raises(DataError, match=r"b.csv.xz is damaged, or holds more than 200 MB"):
        read_recording(tmp_path / "b.csv.xz")
    (tmp_path / "a.csv.xz").write_bytes(b"no archive")
    for path in (tmp_path / "a.csv.xz", tmp_path / "missing.csv"):
        with pytest.raises(DataError, match="cannot be read"):
            read_recording(path, 1)


def test_another_rate_is_cut_only_when_it_is_said(tmp_path: Path) -> None:
    one = synthetic_recording(3)
    fast = replace(one, arm=np.repeat(one.arm, 10, axis=1), objects=np.repeat(one.objects, 10, axis=1), hz=100.0)
    slow = fast.at_benchmark_rate(100)
    assert slow.hz == 10 and np.array_equal(slow.arm, one.arm) and np.array_equal(slow.objects, one.objects)
    for hz in (25.0, 5.0, math.nan, math.inf):
        with pytest.raises(ConfigError, match=f"a recording at {hz:g} Hz cannot be cut to 10 Hz"):
            one.at_benchmark_rate(hz)
    with pytest.raises(DataError, match="is at 100 Hz, as it says itself, not at 50 Hz"):
        fast.at_benchmark_rate(50)


# ---- defects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_a_sound_recording_has_no_defects(task: int) -> None:
    one = synthetic_recording(task)
    assert not find_defects(one) and not find_defects(averaged(one))


def test_defects_that_were_put_in_are_found_with_their_rows() -> None:
    clean = synthetic_recording(3)
    one = averaged(synthetic_recording(3, defects=("zero_repeat", "zero_rows", "label_swap")))
    found = find_defects(one)
    assert {defect.kind for defect in found} == {"zero_repeat", "zero_rows", "label_swap", "start"}
    arm = {defect.kind: defect for defect in found if defect.where == "arm"}
    assert arm["zero_rows"].rows.tolist() == [129] and len(arm["zero_repeat"].rows) == 129
    assert "lengths from 0.95 to 0.95" in str(arm["zero_repeat"])
    swapped = np.abs(one.objects[..., 0] - clean.objects[..., 0]) > 0.02
    swapped[:, -1] = False
    jumps = np.diff(swapped.astype(int), axis=1, prepend=swapped[:, :1]) != 0
    jumps[:, -1] = False
    told = np.zeros_like(jumps)
    for defect in found:
        if defect.kind == "label_swap":
            told[defect.index, defect.rows] = True
    assert jumps.sum() > 30 and np.array_equal(told, jumps)


def test_masks_hide_what_was_found_and_nothing_else() -> None:
    one = averaged(synthetic_recording(3, defects=("zero_rows", "label_swap")))
    found = find_defects(one)
    hidden = masked(one, found, ["zero_rows"])
    assert np.isnan(hidden.arm[0, -1]).all() and np.isnan(hidden.objects[:, -1]).all()
    assert np.array_equal(hidden.arm[:, :-1], one.arm[:, :-1])
    assert np.array_equal(hidden.objects[:, :-1], one.objects[:, :-1])
    assert np.isnan(masked(one, found).objects).sum() > np.isnan(hidden.objects).sum()
    assert np.array_equal(masked(one, found, []).arm, one.arm) and not np.isnan(one.arm).any()
    with pytest.raises(UnknownNameError, match="kind of defect that can be masked"):
        masked(one, found, ["rate"])


def changed(one: Recording, edit: Callable[[np.ndarray, np.ndarray], object]) -> Recording:
    arm, objects = one.arm.copy(), one.objects.copy()
    edit(arm, objects)
    return replace(one, arm=arm, objects=objects)


@pytest.mark.parametrize(
    ("edit", "kind", "said"),
    [
        (lambda arm, objects: arm[..., :3].__imul__(1000), "units", "these are millimetres"),
        (lambda arm, objects: arm[..., 2].__isub__(0.055), "start", "row 0 (1 row): 55 mm from home"),
        (lambda arm, objects: arm[..., :3].__imul__(100), "units", "these are centimetres"),
        (lambda arm, objects: objects[3, 50:, :3].__imul__(1000), "units", "object synthetic_04 rows 50-129"),
        (lambda arm, objects: objects[3, :, 2].__isub__(np.linspace(0, 300, 130)), "far", "300 at most"),
        (lambda arm, objects: arm[..., 3:7].__imul__(57.3), "units", "a quaternion of length 57.3"),
        (lambda arm, objects: arm[0].__setitem__((slice(5, 9), 16), np.nan), "gap", "rows 5-8 (4 rows)"),
        (lambda arm, objects: objects[0].__setitem__(7, np.nan), "gap", "object synthetic_01 row 7 (1 row)"),
        (lambda arm, objects: objects[2, 9, 3:].__imul__(0.9), "quaternion", "lengths from 0.9 to 0.9"),
        (lambda arm, objects: arm[0, 128:, :3].__imul__(20 / 21), "zero_repeat", "rows 128-129 (2 rows)"),
    ],
)
def test_a_mistake_is_named_with_its_rows(
    edit: Callable[[np.ndarray, np.ndarray], object], kind: str, said: str
) -> None:
    one = changed(averaged(synthetic_recording(3)), edit)
    told = [str(defect) for defect in find_defects(one) if defect.kind == kind]
    assert told and any(said in words for words in told), told


def test_other_lengths_and_rates_are_named() -> None:
    one = averaged(synthetic_recording(3))
    longer = replace(one, arm=np.repeat(one.arm, 10, axis=1), objects=np.repeat(one.objects, 10, axis=1))
    rests = [np.concatenate([track, np.repeat(track[:, -1:], 30, axis=1)], 1) for track in (one.arm, one.objects)]
    rest = replace(one, arm=rests[0], objects=rests[1])
    cases: Sequence[tuple[Recording, str, str]] = (
        (one.cut(100), "short", "100 rows; 13 s are 130"),
        (longer, "rate", "1300 rows; 13 s at 10 Hz are 130. About 100 Hz"),
        (rest, "after_end", "rows 130-159 (30 rows)"),
        (replace(one, hz=100.0), "rate", "100 rows per second"),
    )
    for recording, kind, said in cases:
        told = [str(defect) for defect in find_defects(recording) if defect.kind == kind]
        assert len(told) == 1 and said in told[0], (kind, told)
    assert masked(rest, find_defects(rest)).rows == 130


def test_turns_that_do_not_fit_the_arm_are_doubtful() -> None:
    """Angles about z, x, y that were read as angles about x, y, z."""
    one = averaged(synthetic_recording(3))
    angles = Rotation.from_quat(one.arm[0, :, ARM["quat"]], scalar_first=True).as_euler("zxy")
    mixed = Rotation.from_euler("XYZ", angles).as_quat(scalar_first=True)
    other = changed(one, lambda arm, objects: arm.__setitem__((0, slice(None), ARM["quat"]), mixed))
    told = [defect for defect in find_defects(other) if defect.kind == "orientation"]
    assert len(told) == 1 and "degrees off" in told[0].words
    assert np.isnan(masked(other, told, ["orientation"]).arm[0, :, ARM["quat"]]).all()
    assert np.array_equal(masked(other, told).arm, other.arm)


# ---- the real recordings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_real_files_have_the_known_shape_and_defects(task: int, real: Path) -> None:
    one = read_reality(real, task)
    assert one.arm.shape == (1, ROWS[task], 22) and one.objects.shape[0] == BLOCKS[task] and one.first_line == 12
    assert one.summary and not one.synthetic and one.header["Task"] == str(task) and one.hz == 10
    found = kinds(one)
    assert ("label_swap" in found) == (task > 2)
    assert ("orientation" in found) == (task in (2, 3, 4, 9, 10))
    assert ("start" in found) == (task in (1, 4))
    assert ("after_end" in found) == (task in (5, 6, 7, 8, 9, 10)) and "units" not in found and "rate" not in found
    arm = {defect.kind: defect.rows.tolist() for defect in find_defects(one) if defect.where == "arm"}
    zeros = {1: [100], 2: [140], 4: [130], 5: [982, 983], 6: [982, 983], 7: [782], 9: [90, 91], 10: [90, 91]}
    assert arm.get("zero_rows", []) == zeros.get(task, [])
    if task == 1:
        assert len(set(arm["zero_repeat"]) & set(range(100))) == 95
    assert {3: [129], 4: [129], 7: [781]}.get(task, arm.get("zero_repeat", [])) == arm.get("zero_repeat", [])


def test_one_repeat_in_the_mean_of_real_task_4_is_shifted_by_a_column(real: Path) -> None:
    """Tasks 3 and 4 have the same targets."""
    cube, wood = (read_reality(real, task).arm[0][:129, ARM["pos"]] for task in (3, 4))
    shifted = np.concatenate([np.zeros((129, 1)), cube[:, :2]], axis=1)
    away = np.linalg.norm(wood - cube, axis=1), np.linalg.norm(wood - (19 * cube + shifted) / 20, axis=1)
    assert away[0].mean() > 0.035 and away[1].mean() < 0.002


def test_the_protocol_is_the_released_one(data_root: Path) -> None:
    said = json.loads((data_root / "collins2020" / "protocol_upstream.json").read_text())
    assert said["control"]["kp_per_s"] == 4 and said["robot"]["base_height_m"] == 0.055
    for number, task in TASKS.items():
        there = said["tasks"][str(number)]
        assert task.seconds == there["duration_s"]
        for time in np.arange(0, task.seconds, 0.5):
            asked = [one["target_deg"] for one in there["segments"] if one["t_start"] <= time][-1]
            assert next(target for end, target in task.segments if time < end) == tuple(asked), (number, time)
        assert (task.thing is None) == (there["object"] is None)
        if task.thing is not None:
            shape = said["objects"][there["object"]]
            assert (task.thing.shape, task.thing.material) == (there["object"], there["material"])
            assert task.thing.mass == there["mass_kg"]
            assert task.thing.start == (*shape["start_pos"], *shape["start_rpy"])
            radius = shape.get("radius_m", shape.get("base_radius_m", 0))
            sizes = shape.get("size_m") or [2 * radius, shape.get("length_m", shape.get("height_m"))]
            assert task.thing.size == pytest.approx(sizes)


def test_synthetic_files_say_so(tmp_path: Path) -> None:
    folder = write_synthetic(tmp_path, (1, 3), defects=("zero_rows",))
    for path in [*folder.rglob("*.csv")]:
        assert "##SYNTHETIC: true" in path.read_text().splitlines()[:12]
    assert len([*folder.rglob("*.csv")]) == 42 and read_repeats(folder / "sim", 1).synthetic
    with pytest.raises(UnknownNameError, match="synthetic defect"):
        synthetic_recording(3, defects=("rust",))
