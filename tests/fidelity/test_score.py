"""Scores of folders, submissions, the page, and `manikin fidelity` as people run it."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collins_script import recorded, script, simulated
from manikin.cli import main
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.fidelity import (
    TASKS,
    Recording,
    fidelity_metrics,
    masked,
    published,
    read_reality,
    read_repeats,
    score_folder,
    write_repeats,
    write_summary,
)
from manikin.fidelity.page import compared, render_page
from manikin.fidelity.recordings.synthetic import averaged, synthetic_recording, write_synthetic
from manikin.fidelity.score import as_values
from manikin.fidelity.submission import check_immutable, immutable, pack, read_about, write_about

ABOUT = """
simulator = "MyEngine 2.1"
run_time_s = 412
system = "8 cores, Linux"

[immutable]
gravity_m_s2 = -9.81
task3.object_mass_kg = 0.068
task3.object_size_m = [0.075, 0.075, 0.075]

[tuned]
table_friction = 0.4
joint.damping = [1, 2, 3]
"""


def unlabelled(one: Recording) -> Recording:
    """As if it had been measured: what a test needs to see what is refused of synthetic ones."""
    return replace(one, synthetic=False, header={})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic recordings ``real`` and simulations ``sim`` of all tasks."""
    return write_synthetic(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def arm_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks 1 and 2, not called synthetic."""
    folder = tmp_path_factory.mktemp("arm")
    for task in (1, 2):
        write_summary(unlabelled(averaged(synthetic_recording(task))), folder / "real")
        write_repeats(unlabelled(synthetic_recording(task, seed=1)), folder / "MyEngine")
    return folder


# ---- scores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["paper", "released"])
def test_a_score_is_the_metrics_of_its_tasks(mode: str, made: Path) -> None:
    found = score_folder(made / "sim", made / "real", mode=mode, tasks=(1, 2, 3, 9))  # type: ignore[arg-type]
    assert tuple(found.tasks) == (1, 2, 3, 9) and found.synthetic and found.name == "sim"
    for task, one in found.tasks.items():
        real, sim = read_reality(made / "real", task), read_repeats(made / "sim", task)
        expected, _ = fidelity_metrics(real, sim, mode)  # type: ignore[arg-type]
        assert one.values == expected and not one.real_defects and not one.sim_defects
    errors = [found.tasks[task].values["euclidean"] for task in (1, 2)]
    assert found.subgroups[1]["euclidean"] == pytest.approx(np.mean(errors)) and found.lacking(1) == ()


def test_a_missing_task_leaves_its_subgroup_out(made: Path) -> None:
    found = score_folder(made / "sim", made / "real", tasks=(2, 3, 1))
    assert list(found.subgroups) == [1] and found.lacking(2) == (4, 5, 6, 7, 8, 9, 10)
    with pytest.raises(UnknownNameError, match="task of the benchmark '12'"):
        score_folder(made / "sim", made / "real", tasks=(12,))


def test_masks_apply_in_the_papers_mode_only(tmp_path: Path) -> None:
    write_summary(averaged(synthetic_recording(3, defects=("zero_rows",))), tmp_path / "real")
    write_repeats(synthetic_recording(3, seed=1), tmp_path / "sim")
    folders = (tmp_path / "sim", tmp_path / "real")
    hidden, shown = score_folder(*folders), score_folder(*folders, mask=())
    assert hidden.tasks[3].values["euclidean"] < 0.002 < 0.004 < shown.tasks[3].values["euclidean"]
    assert "zero_rows" in hidden.masked and shown.masked == () and hidden.tasks[3].real_defects
    released = score_folder(*folders, mode="released")
    assert released.masked == () and released.tasks[3].values["euclidean"] < 0.002  # the script's own repair
    with pytest.raises(ConfigError, match="masks nothing"):
        score_folder(*folders, mode="released", mask=("zero_rows",))


def test_a_wrong_unit_or_rate_is_refused_with_its_row(tmp_path: Path) -> None:
    write_summary(averaged(synthetic_recording(1)), tmp_path / "real")
    one = synthetic_recording(1)
    millimetres = one.arm.copy()
    millimetres[4, 30:, :3] *= 1000
    write_repeats(replace(one, arm=millimetres), tmp_path / "mm")
    with pytest.raises(DataError, match=r"units, arm of repeat 5 rows 30-99 .*millimetres"):
        score_folder(tmp_path / "mm", tmp_path / "real")
    fast = replace(one, arm=np.repeat(one.arm, 10, axis=1))
    write_repeats(fast, tmp_path / "fast")
    for path in (tmp_path / "fast").iterdir():  # no line says the rate
        path.write_text("\n".join(line for line in path.read_text().splitlines() if "Rate" not in line))
    with pytest.raises(DataError, match=r"1000 rows; 10 s at 10 Hz are 100\. About 100 Hz"):
        score_folder(tmp_path / "fast", tmp_path / "real")
    found = score_folder(tmp_path / "fast", tmp_path / "real", hz=100)
    assert found.tasks[1].values["euclidean"] == pytest.approx(0, abs=1e-8)
    assert found.tasks[1].sim.rows == 100
    raw = score_folder(tmp_path / "fast", tmp_path / "fast", hz=100, reality_hz=100)  # single repeats as recordings
    assert raw.tasks[1].real.arm.shape == (20, 100, 22) and raw.tasks[1].values["pose"] == 0


def test_synthetic_scores_are_not_put_beside_published_ones(made: Path, arm_alone: Path) -> None:
    synthetic = score_folder(made / "sim", made / "real", tasks=(1, 2))
    measured = score_folder(arm_alone / "MyEngine", arm_alone / "real")
    half = score_folder(arm_alone / "MyEngine", made / "real", tasks=(1, 2))  # synthetic recordings
    assert list(compared([measured])[1])[:2] == ["PyBullet (published)", "V-Rep Bullet2.78 (published)"]
    assert compared([measured])[1]["MyEngine"] == measured.subgroups[1]
    assert list(compared([measured, measured])[1])[-2:] == ["MyEngine", "MyEngine (2)"]
    for scores in ([synthetic], [measured, synthetic], [half]):
        assert not [name for name in compared(scores)[1] if "published" in name]
        assert "published" not in as_values(scores) and as_values(scores)["synthetic"]
        page = render_page(scores)
        assert "SYNTHETIC" in page and "PyBullet" not in page
    page = render_page([measured])
    assert "SYNTHETIC" not in page and "0.1311" in page and "lacks task 3, 4, 5" in page


def test_a_fallen_object_is_scored_and_gaps_are_null(tmp_path: Path) -> None:
    write_summary(averaged(synthetic_recording(3)), tmp_path / "real")
    one = synthetic_recording(3)
    fallen, gap = one.objects.copy(), one.arm.copy()
    fallen[..., 2] -= np.linspace(0, 40, 130)
    gap[:, 7, 8] = gap[:, 9, 4] = np.nan
    fallen[3, -1] = np.nan
    write_repeats(replace(one, arm=gap, objects=fallen), tmp_path / "sim")
    found = score_folder(tmp_path / "sim", tmp_path / "real", mode="released")
    assert {defect.kind for defect in found.tasks[3].sim_defects} == {"far", "gap"}
    values = json.loads(json.dumps(as_values([found])))["simulations"][0]["tasks"]["3"]["values"]
    assert values["torque"] is values["pose"] is values["object_translation"] is None and values[
        "euclidean"
    ] == pytest.approx(0, abs=1e-8)
    paper = score_folder(tmp_path / "sim", tmp_path / "real")
    assert paper.tasks[3].values["torque"] == pytest.approx(0, abs=1e-8)  # without that row
    assert paper.tasks[3].values["object_translation"] > 1000


def test_published_rows_are_those_of_the_tables() -> None:
    rows = published()
    assert list(rows) == [1, 2] and len(rows[1]) == len(rows[2]) == 6
    assert rows[1]["V-Rep Vortex"]["euclidean"] == 0.1288 and rows[2]["V-Rep ODE"]["object_translation"] == 34.0668


def test_the_page_draws_every_task_and_lists_every_metric(made: Path) -> None:
    page = render_page([score_folder(made / "sim", made / "real", tasks=(2, 5), mode="released")])
    assert page.count("<svg") == 3 and page.count("15 metrics") == 1 and page.count("23 metrics") == 1
    assert "rad^2" in page and "rolling resistance" in page and "NaN" not in page and ">nan" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


# ---- submissions -----------------------------------------------------------------------------------------------------


def test_a_submission_can_be_scored_and_says_what_was_tuned(arm_alone: Path, tmp_path: Path) -> None:
    about = tmp_path / "about.toml"
    about.write_text(ABOUT)
    said = pack(arm_alone / "MyEngine", about, tmp_path / "out")
    assert said["tuned"] == {"table_friction": 0.4, "joint/damping": [1, 2, 3]} and said["tasks"] == [1, 2]
    assert said["immutable"] == immutable() and len(said["sha256"]) == 40
    assert json.loads((tmp_path / "out" / "submission.json").read_text())["run_time_s"] == 412
    found = score_folder(tmp_path / "out", arm_alone / "real")
    assert found.name == "MyEngine 2.1" and found.about["system"] == "8 cores, Linux"
    assert found.subgroups == score_folder(arm_alone / "MyEngine", arm_alone / "real").subgroups
    with pytest.raises(ConfigError, match="not an empty folder"):
        pack(arm_alone / "MyEngine", about, tmp_path / "out")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.068", "0.08", "task3/object_mass_kg is immutable: 0.07, not 0.08"),
        ("-9.81", "-9.8", "gravity_m_s2 is immutable"),
        ("0.075]", "0.08]", "task3/object_size_m is immutable"),
        ("table_friction = 0.4", "gravity_m_s2 = -9.0", "gravity_m_s2 is immutable: -9.81. It may not be tuned"),
        ("gravity_m_s2", "gravity", "unknown immutable 'gravity'"),
        ("run_time_s = 412", "", "needs run_time_s"),
        ("412", "-1", "needs run_time_s"),
        ('system = "8 cores, Linux"', "", 'needs system = "..."'),
        ("[tuned]", "[changed]", "unknown part of .*'changed'"),
        ("[tuned]", "[tuned", "cannot be read"),
    ],
)
def test_what_is_immutable_stays(old: str, new: str, said: str, tmp_path: Path) -> None:
    about = tmp_path / "about.toml"
    about.write_text(ABOUT)
    assert read_about(about)["simulator"] == "MyEngine 2.1"
    about.write_text(ABOUT.replace(old, new))
    with pytest.raises((ConfigError, DataError, UnknownNameError), match=said):
        read_about(about)


def spun(one: Recording, axis: int, degrees: float) -> Recording:
    """Its object turned about an axis of its own at the start of the first repeat."""
    objects = one.objects.copy()
    turn = Rotation.from_quat(objects[0, 0, 3:], scalar_first=True) * Rotation.from_rotvec(
        np.radians(degrees) * np.eye(3)[axis]
    )
    objects[0, 0, 3:] = turn.as_quat(scalar_first=True)
    return replace(one, objects=objects)


def moved(one: Recording, table: str, rows: slice, by: tuple[float, float, float]) -> Recording:
    """Places of its arm or object shifted in the third repeat."""
    found = getattr(one, table).copy()
    found[2, rows, :3] += by
    return replace(one, **{table: found})


def test_what_the_data_show_is_compared_with_what_is_immutable() -> None:
    """Not only what the submission says of itself."""
    sound = {task: unlabelled(synthetic_recording(task)) for task in (1, 3, 5, 7, 9)}
    for one in sound.values():
        check_immutable(one)
    longer = np.concatenate([sound[1].arm, sound[1].arm[:, -5:]], 1)
    cases = (
        (sound[3].cut(120), "task 3: 120 rows; seconds is immutable: 13, which is 130 rows"),
        (replace(sound[1], arm=longer, objects=np.zeros((0, 105, 7))), "105 rows; seconds is immutable: 10"),
        (moved(sound[3], "objects", slice(0, None), (0.02, 0, 0)), "object of repeat 3 begins 2[0-9] mm elsewhere"),
        (moved(sound[3], "arm", slice(0, None), (0, 0, -0.055)), "repeat 3 begins 5[0-9] mm from home; height"),
        (moved(sound[3], "arm", slice(100, None), (0.1, 0, 0)), "repeat 3 ends .* mm from where the targets lead"),
        (spun(sound[3], 0, 20.0), "repeat 1 begins turned by 2[0-9] degrees"),
        (spun(sound[5], 0, 20.0), "repeat 1 begins turned by"),
        (spun(sound[7], 0, 180.0), "repeat 1 begins turned by 1[78]"),
        (spun(sound[9], 0, 90.0), "repeat 1 begins turned by"),
    )
    for one, said in cases:
        with pytest.raises(ConfigError, match=said):
            check_immutable(one)
    # a quarter of a cube, and any turn of a cylinder or a cone about its axis
    for one in (spun(sound[3], 0, 90.0), spun(sound[5], 2, 70.0), spun(sound[7], 2, 70.0), spun(sound[5], 0, 180.0)):
        check_immutable(one)
    lost = sound[3].objects.copy()
    lost[4, 0] = np.nan
    with pytest.raises(ConfigError, match="object of repeat 5 begins inf mm elsewhere"):
        check_immutable(replace(sound[3], objects=lost))


def test_about_files_come_back_as_they_were_written(tmp_path: Path) -> None:
    used = {"base_height_m": 0.055, "task3/object_mass_kg": 0.07}
    path = write_about(tmp_path / "a.toml", simulator='My "Engine"', run_time_s=4.5, tuned={"cap": "fitted"}, used=used)
    said = read_about(path)
    assert said["simulator"] == 'My "Engine"' and said["run_time_s"] == 4.5 and said["tuned"] == {"cap": "fitted"}
    assert "cores" in said["system"] and said["immutable"] == immutable()
    with pytest.raises(UnknownNameError, match="immutable 'gravity'"):
        write_about(tmp_path / "b.toml", simulator="a", run_time_s=1, tuned={}, used={"gravity": -9})


def test_nothing_synthetic_or_incomplete_is_packed(made: Path, arm_alone: Path, tmp_path: Path) -> None:
    about = tmp_path / "about.toml"
    about.write_text(ABOUT)
    with pytest.raises(DataError, match="task 1 is SYNTHETIC"):
        pack(made / "sim", about, tmp_path / "out")
    write_repeats(unlabelled(synthetic_recording(3, repeats=19)), tmp_path / "few")
    with pytest.raises(DataError, match="has 19 of the 20 repeats"):
        pack(tmp_path / "few", about, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_prints_tables(
    made: Path, arm_alone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fidelity", "score", str(arm_alone / "MyEngine"), "--reality", str(arm_alone / "real")]
    assert main([*words, "--out", str(tmp_path / "page")]) == 0
    said = capsys.readouterr().out
    assert "PyBullet (published)" in said and "SYNTHETIC" not in said and "subgroup 2 is not reported" in said
    assert "MyEngine, released" in said and (tmp_path / "page" / "index.html").is_file()
    assert json.loads((tmp_path / "page" / "score.json").read_text())["published"]["1"]["PyBullet"]["torque"] == 36.6548
    words = ["fidelity", "score", str(made / "sim"), "--reality", str(made / "real")]
    assert main([*words, "--tasks", "3", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["synthetic"] and "published" not in values
    assert len(values["simulations"][0]["tasks"]["3"]["values"]) == 23
    assert main([*words, "--mode", "paper", "--tasks", "3", "4", "--mask", "none"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("SYNTHETIC") and "published)" not in said and "masked in the recordings: nothing" in said


def test_the_command_packs(arm_alone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = tmp_path / "about.toml"
    about.write_text(ABOUT)
    words = ["fidelity", "pack", str(arm_alone / "MyEngine"), "--about", str(about), "--out", str(tmp_path / "sent")]
    assert main(words) == 0 and "MyEngine 2.1: 2 tasks, 40 files" in capsys.readouterr().out
    about.write_text(ABOUT.replace("0.068", "0.2"))
    assert main(words) == 2 and "object_mass_kg is immutable" in capsys.readouterr().err


def test_the_command_says_what_is_missing(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    assert main(["fidelity", "score", str(made / "sim")]) == 2
    assert "MANIKIN_DATA is not set; name their folder with --reality" in capsys.readouterr().err
    assert main(["fidelity", "score"]) == 2
    assert "which simulation?" in capsys.readouterr().err


@pytest.mark.parametrize("task", [1, 2, 3, 7, 9])
def test_the_mode_released_is_the_scripts_loops(task: int, made: Path, data_root: Path, tmp_path: Path) -> None:
    """On real recordings, which are longer, shorter or end in zeros, from the files to the numbers."""
    real = data_root / "collins2020" / "real_mean_10hz"
    lines = lzma.decompress((real / f"Task{task:02d}_mean10Hz.csv.xz").read_bytes()).decode().splitlines()
    lengths = (200,) if task == 7 else (TASKS[task].rows, TASKS[task].rows + 15)  # of the cone its first 20 s
    for rows in lengths:
        sim = synthetic_recording(task, seed=2, push=0.7)
        longer = np.concatenate([sim.arm, sim.arm[:, -15:]], 1), np.concatenate([sim.objects, sim.objects[:, -15:]], 1)
        write_repeats(replace(sim, arm=longer[0], objects=longer[1]).cut(rows), tmp_path)
        table = simulated(tmp_path, task)
        expected = script(table, recorded(lines, len(table)))
        if task == 7:  # too short for a score, long enough for the formulas
            found = fidelity_metrics(read_reality(real, task), read_repeats(tmp_path, task), "released")[0]
        else:
            found = dict(score_folder(tmp_path, real, tasks=(task,), mode="released").tasks[task].values)
        for name, value in zip(found, expected, strict=True):
            assert found[name] == pytest.approx(value, rel=1e-7, abs=1e-9), name


def test_a_replay_of_the_real_recordings(data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the released formulas leave even then."""
    real = data_root / "collins2020" / "real_mean_10hz"
    for task in (1, 3):
        write_repeats(read_reality(real, task), tmp_path / "replay", 20)
    assert main(["fidelity", "score", str(tmp_path / "replay"), "--reality", str(real), "--json"]) == 0
    tasks = json.loads(capsys.readouterr().out)["simulations"][0]["tasks"]
    assert tasks["3"]["values"]["pose"] == pytest.approx(12.55, abs=0.005) and len(tasks["1"]["values"]) == 15
    assert any(said.startswith("start, arm row 0") for said in tasks["1"]["recording_defects"])


def test_real_recordings_score_a_synthetic_arm(made: Path, data_root: Path) -> None:
    """The controller's law without inertia stays within the published simulators' distance: the frames agree."""
    found = score_folder(made / "sim", data_root / "collins2020" / "real_mean_10hz", mode="released")
    for group, rows in published().items():
        assert found.subgroups[group]["euclidean"] < min(row["euclidean"] for row in rows.values())
    assert found.synthetic and tuple(found.tasks) == tuple(TASKS)
    for task, one in found.tasks.items():
        real = masked(one.real, one.real_defects)
        paper, _ = fidelity_metrics(real, one.sim)
        assert all(np.isfinite(value) for value in paper.values()), task
