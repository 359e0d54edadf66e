"""Recordings of tasks of your own: files, what is refused of them, and their metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis
from scipy.spatial.transform import Rotation, Slerp

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.fidelity import METRICS, Recording, fidelity_metrics, find_defects, masked, score_folder, score_task
from manikin.fidelity.page import overlay, render_page
from manikin.fidelity.recordings.made_up import made_up, write_made_up
from manikin.fidelity.recordings.own import is_own, layouts_in, read_own, read_tasks, write_own

ERRORS = ("euclidean", "rotation", "pose", "velocity", "acceleration", "torque", "force", "moment")
ENDS = ("object_translation", "object_rotation")


def with_part(one: Recording, name: str, values: np.ndarray) -> Recording:
    """The recording with other values (A, N, width) of a part of the arm."""
    arm = one.arm.copy()
    arm[..., one.columns[name]] = values
    return replace(one, arm=arm)


def with_track(one: Recording, thing: str, values: np.ndarray) -> Recording:
    objects, at = one.objects.copy(), 7 * one.things.index(thing)
    objects[..., at : at + 7] = values
    return replace(one, objects=objects)


def without(one: Recording, *names: str) -> Recording:
    return replace(one, columns={name: at for name, at in one.columns.items() if name not in names})


def posed(track: np.ndarray, turn: Rotation, shift: np.ndarray) -> np.ndarray:
    """Positions and quaternions (..., 7) in another world frame."""
    flat = track.reshape(-1, 7)
    quat = (turn * Rotation.from_quat(flat[:, 3:], scalar_first=True)).as_quat(scalar_first=True)
    return np.concatenate([turn.apply(flat[:, :3]) + shift, quat], 1).reshape(track.shape)


def moved(one: Recording, turn: Rotation, shift: np.ndarray) -> Recording:
    pose = posed(np.concatenate([one.part("pos"), one.part("quat")], -1), turn, shift)
    found = with_part(with_part(one, "pos", pose[..., :3]), "quat", pose[..., 3:])
    for thing in one.things:
        found = with_track(found, thing, posed(one.track(thing), turn, shift))
    return found


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("joints", "objects", "loads"), [(7, ("cube", "can"), True), (6, (), False)])
def test_numbers_go_from_csv_to_hdf5_and_back_to_the_bit(
    joints: int, objects: tuple[str, ...], loads: bool, tmp_path: Path
) -> None:
    one = made_up(joints=joints, objects=objects, loads=loads, repeats=3, hz=30, seconds=2)
    rng = np.random.default_rng(1)
    arm = one.arm * np.exp(rng.normal(0, 30, one.arm.shape))  # of all sizes
    arm[0, 3, 1], arm[1, 40:], arm[2, 7, :] = np.nan, np.nan, [5e-324, 1 / 3, *np.pi * np.ones(one.arm.shape[-1] - 2)]
    ends = one.objects.copy()
    ends[1:2, 40:] = np.nan
    one = replace(one, arm=arm, objects=ends, header={**one.header, "notes": {"room": "a, b", "n": 2, "x": [1.5]}})
    write_own(one, tmp_path / "csv")
    first = read_own(tmp_path / "csv")
    write_own(first, tmp_path / "both.h5")
    second = read_own(tmp_path / "both.h5")
    write_own(second, tmp_path / "again")
    for back in (first, second, read_own(tmp_path / "again")):
        assert np.array_equal(back.arm, one.arm, equal_nan=True) and back.arm.dtype == np.float64
        assert np.array_equal(back.objects, one.objects, equal_nan=True)
        assert (back.task, back.hz, back.things, back.columns) == (one.task, one.hz, one.things, one.columns)
        assert back.labels == one.labels and back.synthetic and back.lengths == (60, 40, 60)
        assert back.header["notes"] == {"room": "a, b", "n": 2, "x": [1.5]}
    for path in (tmp_path / "csv").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_columns_may_stand_in_any_order_and_name_their_unit(tmp_path: Path) -> None:
    one = made_up(repeats=2, seconds=1, objects=())
    write_own(one, tmp_path / "a")
    for path in (tmp_path / "a").glob("*.csv"):
        cells = [line.split(",")[::-1] for line in path.read_text().splitlines()]
        cells[0] = [name.replace("pos.x", "pos.x [m]").replace("time", " time [s] ") for name in cells[0]]
        text = "\n".join(",".join(line) for line in cells)
        path.write_text(f"# run of a Tuesday\n\n{text}\n")
    back = read_own(tmp_path / "a")
    assert np.array_equal(back.arm, one.arm) and back.first_line == 4
    with pytest.raises(ConfigError, match="is there already"):
        write_own(one, tmp_path / "a")


def test_a_folder_may_hold_several_tasks(tmp_path: Path) -> None:
    folder = write_made_up(tmp_path / "lab")
    assert layouts_in(folder / "real") == [folder / "real" / "push", folder / "real" / "wave"]
    write_own(made_up("stack", repeats=2, seconds=1), folder / "real" / "third.h5")
    assert list(read_tasks(folder / "real")) == ["push", "stack", "wave"] and not is_own(folder)
    write_own(made_up("stack", repeats=2, seconds=1), folder / "real" / "fourth.h5")
    with pytest.raises(DataError, match=r"fourth.h5 and .*third.h5 are both of the task 'stack'"):
        read_tasks(folder / "real")
    with pytest.raises(DataError, match=r"has no recording: a folder with recording\.toml"):
        read_tasks(folder)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Recording:
    return made_up("push", joints=2, repeats=2, hz=10, seconds=1)


def csv_edit(name: str, change: Callable[[list[list[str]]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / name
        cells = [line.split(",") for line in path.read_text().splitlines()]
        change(cells)
        path.write_text("\n".join(",".join(line) for line in cells) + "\n")

    return edit


def cell(line: int, name: str, value: str) -> Callable[[Path], None]:
    """Of the second repeat."""
    return csv_edit("repeat_02.csv", lambda cells: cells[line].__setitem__(cells[0].index(name), value))


def column(name: str, change: Callable[[float], float]) -> Callable[[Path], None]:
    def edit(cells: list[list[str]]) -> None:
        at = cells[0].index(name)
        for line in cells[1:]:
            line[at] = repr(change(float(line[at])))

    return csv_edit("repeat_02.csv", edit)


def dropped(name: str) -> Callable[[Path], None]:
    def edit(cells: list[list[str]]) -> None:
        at = cells[0].index(name)
        for line in cells:
            del line[at]

    return csv_edit("repeat_02.csv", edit)


def head(old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "recording.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return edit


def lines(change: Callable[[list[list[str]]], object]) -> Callable[[Path], None]:
    return csv_edit("repeat_02.csv", change)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (cell(4, "qpos.2", "fast"), r"repeat_02.csv: row 3 \(line 5\), column 9 \(qpos.2\): 'fast' is not a number"),
        (cell(4, "force.x", "inf"), r"repeat_02.csv: row 3 \(line 5\), column 12 \(force.x\) is infinite"),
        (cell(4, "time", ""), r"repeat_02.csv: row 3 \(line 5\), time is missing"),
        (cell(4, "time", "0.1"), r"row 3 \(line 5\), time is 0.1 s, after 0.2 s; time goes on"),
        (cell(4, "time", "0.32"), r"row 3 \(line 5\), time is 0.32 s; at 10 Hz it is 0.3 s\. Write lost rows with"),
        (lambda f: lines(lambda c: c.pop(4))(f), r"row 3 \(line 5\), time is 0.4 s; at 10 Hz it is 0.3 s"),
        (column("time", lambda t: t + 1.7e9), r"row 0 \(line 2\), time is 1.7e\+09 s; it counts from the begin"),
        (column("time", lambda t: t / 10), "the header says 10 Hz, the times are those of 100 Hz"),
        (column("time", lambda t: 1000 * t), "the times are those of 0.01 Hz; these are milliseconds"),
        (cell(0, "pos.x", "pos_x"), r"unknown column 1 'pos_x'\. Did you mean 'pos.x'\? Valid: time, pos.x"),
        (cell(0, "cube.pos.x", "box.pos.x"), "unknown column 18 'box.pos.x'"),
        (cell(0, "qpos.2", "qpos.3"), "has qpos.1, qpos.3, but no qpos.2"),
        (cell(0, "qpos.2", "qpos.1"), r"column 9 \(qpos.1\) is there twice"),
        (cell(0, "pos.x", "pos.x [mm]"), r"column 1 \(pos.x\) is in 'mm'; the layout has 'm'"),
        (cell(0, "qpos.1", "qpos.1 [deg]"), r"column 8 \(qpos.1\) is in 'deg'; the layout has 'rad or m'"),
        (dropped("quat.w"), "has quat.x, quat.y, quat.z, but no quat.w"),
        (dropped("time"), "repeat_02.csv has no time"),
        (dropped("torque.2"), "has different numbers of joints: qpos 2, torque 1"),
        (lines(lambda c: [line.__delitem__(slice(12, 15)) for line in c]), "do not have the same columns: force"),
        (lines(lambda c: [line.__delitem__(slice(18, None)) for line in c]), "has no cube.pos; the header names the"),
        (lines(lambda c: c[5].pop()), r"row 4 \(line 6\) has 24 columns, the row of names has 25"),
        (lines(lambda c: c.__delitem__(slice(3, None))), "has 2 rows; accelerations need 3"),
        (lines(lambda c: c.__delitem__(slice(1, None))), "has no rows below the names"),
        (lines(lambda c: c.__delitem__(0)), "line 1 has numbers; the first row names the columns"),
        (lines(lambda c: c.clear()), "repeat_02.csv is empty"),
        (lambda f: [path.unlink() for path in f.glob("*.csv")], "holds no repeat"),
        (head('"push"', '"push'), "recording.toml cannot be read"),
        (head('task = "push"\n', ""), "recording.toml does not say task: name of the task"),
        (head("hz = 10", "hz = -10"), "hz is -10.0; it is a rate"),
        (head("hz = 10.0", 'hz = "10"'), "hz is '10'; it says rows per second"),
        (head("version = 1", "version = 2"), "has version 2; this manikin reads version 1"),
        (head("manikin-recording", "my-log"), "its format is 'my-log', not 'manikin-recording'"),
        (head("robot =", "robbot ="), r"unknown key 'robbot'\. Did you mean 'robot'\?"),
        (head('"SI"', '"mm"'), r"units is 'mm'; a recording is in metres"),
        (head('["cube"]', '["cube", "cube"]'), "objects is .* different names"),
        (head('["cube"]', '["a.b"]'), r"objects is \['a.b'\]; it is a list of different names"),
        (head('["cube"]', '["cube"]\njoints = ["a", "b", "c"]'), "qpos 2, torque 2, joints of the header 3"),
        (head('["cube"]', '["cube"]\ntool = [0, 0, 0]'), "tool is .* 7 numbers"),
    ],
)
def test_a_malformed_folder_is_refused_with_its_place(
    edit: Callable[[Path], object], said: str, small: Recording, tmp_path: Path
) -> None:
    folder = write_own(small, tmp_path / "push")
    assert read_own(folder).arm.shape == (2, 10, 17)
    edit(folder)
    with pytest.raises(DataError, match=said):
        read_own(folder)


def attribute(name: str, key: str, value: object) -> Callable[[h5py.File], None]:
    return lambda file: file[name].attrs.__setitem__(key, value)


def instead(name: str, values: object) -> Callable[[h5py.File], None]:
    def edit(file: h5py.File) -> None:
        del file[name]
        file[name] = values

    return edit


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (attribute("repeat_02/pos", "units", "mm"), r"repeat_02/pos: its attribute units is 'mm'; the layout has 'm'"),
        (attribute("repeat_02/quat", "columns", "x y z w"), "columns is 'x y z w'; the layout has 'w x y z'"),
        (instead("repeat_02/pos", np.zeros((9, 3))), r"pos has shape \(9, 3\); there are 10 times, so it is \(10, 3\)"),
        (instead("repeat_02/pos", np.zeros((10, 4))), r"pos has shape \(10, 4\)"),
        (instead("repeat_02/pos", np.full((10, 3), np.inf)), "repeat_02: row 0, pos is infinite"),
        (instead("repeat_02/pos", np.array([b"a"] * 10)), "holds .*S1, not numbers"),
        (lambda file: file["repeat_02"].__delitem__("time"), r"there are 0 times"),
        (
            lambda file: file["repeat_02"].__setitem__("speed", np.zeros(10)),
            "repeat_02/speed is no array of the layout",
        ),
        (lambda file: file.__setitem__("more", np.zeros(3)), "more is no group"),
        (lambda file: file.attrs.__delitem__("task"), "does not say task"),
        (lambda file: file.attrs.__setitem__("format", "manikin-episodes"), "first: manikin fidelity export"),
        (
            lambda file: file["repeat_02"]["time"].__setitem__(4, 9.0),
            r"push.h5: repeat_02: row 5, time is 0.5 s, after",
        ),
    ],
)
def test_a_malformed_hdf5_file_is_refused_with_its_place(
    edit: Callable[[h5py.File], object], said: str, small: Recording, tmp_path: Path
) -> None:
    path = write_own(small, tmp_path / "push.h5")
    with h5py.File(path, "r+") as file:
        edit(file)
    with pytest.raises(DataError, match=said):
        read_own(path)
    path.write_bytes(b"no HDF5")
    with pytest.raises(DataError, match="is not an HDF5 file"):
        read_own(path)


# ---- metrics ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joints", "objects", "loads"), [(7, ("cube", "can"), True), (7, ("cube",), True), (6, (), False)]
)
def test_a_recording_of_your_own_has_no_distance_to_itself(joints: int, objects: tuple[str, ...], loads: bool) -> None:
    one = made_up(joints=joints, objects=objects, loads=loads)
    found = score_task(one, one)
    suffixes = {0: (), 1: ("",), 2: ("/cube", "/can")}[len(objects)]
    named = [name for name in METRICS if not name.startswith("object") and (loads or not set(name.split("_")) & LOADS)]
    expected = {*named, *(f"{name}{s}" for s in suffixes for name in METRICS if name.startswith("object"))}
    assert set(found.values) == expected and not found.real_defects and not found.sim_defects
    for name in found.values:
        if name in ERRORS or name.partition("/")[0] in ENDS:
            assert found.values[name] == pytest.approx(0, abs=1e-12), name
    if loads and objects:
        assert found.left_out == {}
    if not loads:
        said = "the recordings have no joint torques; the simulation has no joint torques"
        assert found.left_out["torque"] == said and found.left_out["object_translation"] == "there is no object"
        assert set(found.left_out) | set(found.values) == set(METRICS)


LOADS = {"torque", "force", "moment"}


def test_a_tool_that_is_10_mm_beside_scores_10_mm() -> None:
    one = made_up(hz=25)
    beside = score_task(one, with_part(one, "pos", one.part("pos") + np.array([0.006, 0.0, -0.008]))).values
    assert beside["euclidean"] == pytest.approx(0.01, abs=1e-12)
    assert beside["pose"] == pytest.approx(0.01 * np.sqrt(37), abs=1e-12)
    for name in ("rotation", "velocity", "acceleration", "torque", "force", "moment", *ENDS):
        assert beside[name] == pytest.approx(0, abs=1e-9), name


def test_known_turns_and_loads() -> None:
    one = made_up(noise=0)
    turned = Rotation.from_quat(one.part("quat").reshape(-1, 4), scalar_first=True) * Rotation.from_rotvec([0.4, 0, 0])
    other = with_part(one, "quat", turned.as_quat(scalar_first=True).reshape(one.part("quat").shape))
    other = with_part(other, "force", one.part("force") + np.array([0.5, 0.25, -0.25]))
    stronger = one.part("torque") + np.where(one.part("torque") > 0, 1.0, -1.0)  # 1 N m more in each of 7 joints
    found = score_task(one, with_part(other, "torque", stronger)).values
    assert found["rotation"] == pytest.approx(0.2) and found["pose"] == pytest.approx(0.4 * np.sqrt(2))
    assert found["force"] == pytest.approx(-0.5)
    assert found["torque"] == pytest.approx(-7.0)


def test_errors_of_your_own_do_not_depend_on_the_world_frame() -> None:
    real, sim = made_up(objects=("cube", "can")), made_up(objects=("cube", "can"), seed=1, late=0.3, push=0.8)
    before, _ = fidelity_metrics(real, sim)
    turn, shift = Rotation.from_rotvec([0.3, -1.2, 0.7]), np.array([2.0, -1.0, 0.5])
    after, _ = fidelity_metrics(moved(real, turn, shift), moved(sim, turn, shift))
    assert before["euclidean"] > 0.005 and before["object_translation/can"] > 1
    for name in before:
        if not name.startswith("object_rotation"):  # Euler angles depend on the frame
            assert after[name] == pytest.approx(before[name], rel=1e-8, abs=1e-12), name


def test_each_of_two_objects_has_its_own_metrics() -> None:
    real, sim = (made_up(objects=("cube", "can"), seed=k, push=1 - 0.3 * k) for k in range(2))
    found = score_task(real, sim).values
    ends = [one.track("can")[:, -1, :3] for one in (sim, real)]
    inverse = np.linalg.inv(np.cov(ends[1].T))
    assert found["object_translation/can"] == pytest.approx(mahalanobis(ends[0].mean(0), ends[1].mean(0), inverse))
    for k, thing in enumerate(real.things):
        at = slice(7 * k, 7 * k + 7)
        alone = [replace(one, objects=one.objects[..., at], things=(thing,)) for one in (real, sim)]
        for name, value in score_task(*alone).values.items():
            if name.startswith("object"):
                assert found[f"{name}/{thing}"] == value
    other = score_task(real, replace(sim, objects=sim.objects[..., :7], things=("cube",)))
    assert other.left_out["object_translation/can"] == other.left_out["object_moving_time/can"]
    assert other.left_out["object_moving_time/can"] == "the simulation has no can"
    assert other.values["object_translation/cube"] == found["object_translation/cube"]
    few = score_task(replace(real, arm=real.arm[:3], objects=real.objects[:3], labels=real.labels[:3]), sim)
    assert few.left_out["object_translation/can"].startswith(
        "the recordings have an end of can in 3 repeats; at least 4"
    )


def test_what_one_side_lacks_is_left_out_by_name() -> None:
    real, sim = made_up(), made_up(seed=1)
    found = score_task(without(real, "torque", "quat"), without(sim, "force"))
    assert found.left_out["torque"] == "the recordings have no joint torques"
    assert found.left_out["rotation"] == found.left_out["pose"] == "the recordings have no orientation of the tool"
    assert found.left_out["force"] == found.left_out["max_force"] == "the simulation has no force at the wrist"
    assert "max_torque" in found.values and set(found.left_out) == {"torque", "rotation", "pose", "force", "max_force"}
    whole = score_task(real, sim).values
    assert {name: whole[name] for name in found.values} == dict(found.values)


def test_objects_alone_and_joints_alone_are_recordings_too(tmp_path: Path) -> None:
    whole = [made_up(seed=k, push=1 - 0.3 * k) for k in range(2)]
    things = [replace(one, arm=one.arm[..., :0], columns={}) for one in whole]
    for name, one in zip(("real", "sim"), things, strict=True):
        write_own(one, tmp_path / f"{name}.h5")
    found = score_folder(tmp_path / "sim.h5", tmp_path / "real.h5")
    assert found.tasks["push"].values == {
        name: value for name, value in score_task(*whole).values.items() if name.startswith("object")
    }
    assert "<svg" in render_page([found])
    joints = [replace(without(one, "pos", "quat", "torque", "force", "moment"), things=()) for one in whole]
    joints = [replace(one, objects=np.zeros((0, one.rows, 0))) for one in joints]
    nothing = score_task(*joints)
    assert nothing.values == {} and set(nothing.left_out) == set(METRICS)
    assert [title for title, _ in overlay(*joints)] == [f"joint {k} [rad]" for k in range(1, 8)]
    blank = replace(whole[0], arm=np.full_like(whole[0].arm, np.nan), objects=np.full_like(whole[0].objects, np.nan))
    with pytest.raises(DataError, match="a repeat has values in 0 rows only"):
        score_task(whole[1], blank)


def test_repeats_are_compared_up_to_the_end_of_the_shortest(tmp_path: Path) -> None:
    real, sim = made_up(), made_up(seed=1)
    arm, objects = sim.arm.copy(), sim.objects.copy()
    arm[4, 80:], objects[4, 80:] = np.nan, np.nan
    found = score_task(real, replace(sim, arm=arm, objects=objects))
    assert found.real.rows == found.sim.rows == 80
    assert found.values == score_task(real.cut(80), sim.cut(80)).values
    assert "only the first 80 rows are compared" in found.notes[0]
    assert [str(one) for one in found.sim_defects] == ["short, arm of repeat_05: 80 rows; the longest repeat has 120"]


def test_only_the_papers_formulas_are_for_your_own_tasks() -> None:
    one = made_up(repeats=4)
    with pytest.raises(ConfigError, match="the mode released is the script of the benchmark's ten tasks"):
        fidelity_metrics(one, one, "released")
    with pytest.raises(DataError, match="the recording is of task push, the simulation of task pull"):
        score_task(one, replace(one, task="pull"))
    with pytest.raises(DataError, match=r"has 7 columns of qpos, .* has 6"):
        score_task(one, made_up(repeats=4, joints=6))


# ---- defects ---------------------------------------------------------------------------------------------------------


def test_a_sound_recording_of_your_own_has_no_defects() -> None:
    assert not find_defects(made_up(objects=("cube", "can"), hz=10)) and not find_defects(made_up(objects=(), joints=6))


@pytest.mark.parametrize(
    ("edit", "kind", "said"),
    [
        (lambda arm, objects: arm[1, :, :3].__imul__(1000), "units", "arm of repeat_02 rows 0-119 (120 rows)"),
        (lambda arm, objects: arm[1, :, 3:7].__imul__(57.3), "units", "a quaternion of length 57.3; these are angles"),
        (lambda arm, objects: arm[1, :, 7:14].__imul__(57.3), "units", "beyond two turns; these are degrees"),
        (lambda arm, objects: objects[2, :, 7:10].__imul__(1000), "units", "object can of repeat_03 rows 0-119"),
        (lambda arm, objects: arm[0, 5:9].__setitem__(slice(None), np.nan), "gap", "arm of repeat_01 rows 5-8"),
        (lambda arm, objects: arm[0].__setitem__((7, 16), np.nan), "gap", "arm of repeat_01 row 7 (1 row)"),
        (lambda arm, objects: objects[0, 7, 7:].__imul__(np.nan), "gap", "object can of repeat_01 row 7 (1 row)"),
        (lambda arm, objects: objects[0, 9, :3].__imul__(0), "zero_rows", "object cube of repeat_01 row 9 (1 row)"),
        (lambda arm, objects: arm[0, 9, :3].__imul__(0), "zero_rows", "arm of repeat_01 row 9 (1 row)"),
        (lambda arm, objects: objects[0, 9, 3:7].__imul__(0.9), "quaternion", "lengths from 0.9 to 0.9"),
        (lambda arm, objects: objects[3, 40:50, 7].__iadd__(0.05), "label_swap", "object can of repeat_04 rows 40, 50"),
        (lambda arm, objects: arm[3, 40:50, 1].__iadd__(0.05), "label_swap", "arm of repeat_04 rows 40, 50"),
    ],
)
def test_mistakes_in_your_own_recordings_are_named_with_their_rows(
    edit: Callable[[np.ndarray, np.ndarray], object], kind: str, said: str
) -> None:
    one = made_up(objects=("cube", "can"))
    arm, objects = one.arm.copy(), one.objects.copy()
    edit(arm, objects)
    bad = replace(one, arm=arm, objects=objects)
    told = [str(defect) for defect in find_defects(bad) if defect.kind == kind]
    assert len(told) == 1 and said in told[0], told
    if kind == "units":
        with pytest.raises(DataError, match="units, "):
            score_task(one, bad)


def test_masks_of_your_own_recordings_are_an_option() -> None:
    one = made_up(objects=("cube", "can"))
    arm, objects = one.arm.copy(), one.objects.copy()
    arm[:, 30, :3], objects[3, 40:50, 7] = 0, objects[3, 40:50, 7] + 0.05
    bad = replace(one, arm=arm, objects=objects)
    hidden, shown = score_task(bad, one), score_task(bad, one, mask=())
    assert hidden.values["euclidean"] == 0 < 0.005 < shown.values["euclidean"]
    assert np.isnan(hidden.real.arm[:, 30]).all() and not np.isnan(hidden.real.objects).any()
    swaps = masked(bad, find_defects(bad), ["label_swap"])
    assert np.argwhere(np.isnan(swaps.objects[..., 7:]).all(-1)).tolist() == [[3, 40], [3, 50]]
    assert not np.isnan(swaps.objects[..., :7]).any() and np.array_equal(bad.objects, objects)
    with pytest.raises(UnknownNameError, match="kind of defect that can be masked"):
        score_task(bad, one, mask=("rate",))


def test_another_order_of_quaternions_and_another_start_are_told() -> None:
    """Also where both sides have it; nothing is repaired."""
    real, sim = made_up(swing=1.5), made_up(seed=1, swing=1.5)
    assert not score_task(real, sim).sim_defects
    xyzw = with_part(sim, "quat", np.roll(sim.part("quat"), -1, axis=-1))
    told = score_task(real, xyzw)
    assert [one.kind for one in told.sim_defects] == ["columns"] and not told.real_defects
    assert "degrees apart, and 0.1 if these are read as x, y, z, w" in str(told.sim_defects[0])
    assert told.values["rotation"] > 0.3
    assert [one.kind for one in score_task(xyzw, real).real_defects] == ["columns"]
    track = sim.track("cube")
    rolled = np.concatenate([track[..., :3], np.roll(track[..., 3:], -1, axis=-1)], -1)
    told = score_task(real, with_track(sim, "cube", rolled))
    assert [one.where for one in told.sim_defects] == ["object cube"]
    away = score_task(real, with_part(sim, "pos", sim.part("pos") + np.array([0, 0.05, 0]))).sim_defects
    assert [one.kind for one in away] == ["start"] and "50 mm from the recordings' start" in away[0].words


# ---- rates -----------------------------------------------------------------------------------------------------------


def test_another_rate_is_refused_with_both_rates_or_interpolated_if_asked(tmp_path: Path) -> None:
    fast, slow = made_up(hz=50, noise=0), made_up(hz=10, noise=0, repeats=10)
    write_own(fast, tmp_path / "fast")
    write_own(slow, tmp_path / "slow.h5")
    with pytest.raises(DataError, match=r"slow.h5 is at 10 Hz, .*fast at 50 Hz\. .*--resample 10"):
        score_folder(tmp_path / "fast", tmp_path / "slow.h5")
    found = score_folder(tmp_path / "fast", tmp_path / "slow.h5", resample=10).tasks["push"]
    assert found.sim.hz == 10 and found.values["euclidean"] == pytest.approx(0, abs=1e-12)
    assert found.values["torque"] == pytest.approx(0, abs=1e-9)
    with pytest.raises(ConfigError, match=r"slow\.h5: repeat_01 is at 10 Hz; 20 Hz would make rows up"):
        score_folder(tmp_path / "fast", tmp_path / "slow.h5", resample=20)
    for hz in (0.0, -1.0, np.nan):
        with pytest.raises(ConfigError, match="a rate in rows per second is above 0"):
            read_own(tmp_path / "fast", resample=hz)


def test_uneven_times_are_interpolated_on_straight_lines_and_great_circles(tmp_path: Path) -> None:
    one = made_up(repeats=1, hz=100, seconds=3, noise=0)
    folder = write_own(one, tmp_path / "even")
    path = folder / "repeat_01.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    at = [rows[0].index(name) for name in ("time", "pos.x", "quat.w", "quat.z")]
    time = np.arange(300) / 100 + np.random.default_rng(0).uniform(-0.002, 0.002, 300)
    time[0] = 0.0
    for k, line in enumerate(rows[1:]):
        line[at[0]], line[at[1]] = repr(float(time[k])), repr(float(0.2 * time[k] + 0.5))
    kept = [*rows[:101], *rows[141:]]  # 0.4 s are lost
    path.write_text("\n".join(",".join(line) for line in kept) + "\n")
    with pytest.raises(DataError, match="--resample HZ"):
        read_own(folder)
    found = read_own(folder, resample=20)
    grid = np.arange(found.rows) / 20
    lost = (grid > time[99]) & (grid < time[140])
    assert lost.sum() >= 7 and np.array_equal(np.isnan(found.part("pos")[0, :, 0]), lost)
    assert found.part("pos")[0, ~lost, 0] == pytest.approx(0.2 * grid[~lost] + 0.5, abs=1e-12)
    turns = Slerp(time, Rotation.from_quat(one.part("quat")[0], scalar_first=True))(grid[~lost])
    apart = turns.inv() * Rotation.from_quat(found.part("quat")[0, ~lost], scalar_first=True)
    assert np.abs(apart.magnitude()).max() < 1e-7
    assert [one.kind for one in find_defects(found)] == ["gap", "gap"]
