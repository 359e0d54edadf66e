"""The tasks in PyBullet: the paper's own row, made again."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace

import numpy as np
import pytest

from manikin.cli import main as manikin
from manikin.errors import AssetError, ConfigError, UnknownNameError
from manikin.fidelity import SUBGROUPS, published, score_folder
from manikin.fidelity.arm import commands, wrist_pose
from manikin.fidelity.bullet import CAP, main, simulated
from manikin.fidelity.protocol import REPEATS, TASKS
from manikin.fidelity.recordings.recording import read_repeats, write_repeats
from manikin.fidelity.submission import pack
from manikin.sysid.importers import data_file


@pytest.fixture(scope="module")
def engine():
    pytest.importorskip("pybullet", reason="PyBullet is not installed: pip install 'manikin[pybullet]'")
    try:
        return data_file("collins2020/urdf/m1n6s300_mujoco.urdf").parents[1]
    except AssetError as error:
        pytest.skip(str(error))


def scored(engine, folder, tasks):
    """Subgroups of tasks, each simulated once and written twenty times: PyBullet itself repeats to the bit."""
    for task in tasks:
        once = simulated(task, repeats=1, spread=0.0)
        many = replace(once, arm=np.repeat(once.arm, REPEATS, 0), objects=np.repeat(once.objects, REPEATS, 0))
        write_repeats(many, folder, REPEATS)
    return score_folder(folder, engine / "real_mean_10hz", mode="released").subgroups


def test_the_row_of_table_two_comes_out_again(engine, tmp_path):
    """Within 2 percent; rotation and pose are of another frame, and are not compared."""
    found, row = scored(engine, tmp_path, SUBGROUPS[1])[1], published()[1]["PyBullet"]
    for name in ("euclidean", "torque", "force", "moment"):
        assert found[name] == pytest.approx(row[name], rel=0.02), name
    assert found["velocity"] == pytest.approx(row["velocity"], rel=0.05)


def test_the_row_of_table_three_comes_out_again(engine, tmp_path):
    """Within 15 percent; objects are not compared, as the published ones fall off a table."""
    found, row = scored(engine, tmp_path, SUBGROUPS[2])[2], published()[2]["PyBullet"]
    for name in ("euclidean", "torque", "velocity", "acceleration", "force", "moment"):
        assert found[name] == pytest.approx(row[name], rel=0.15), name


def test_nothing_is_left_in_the_folder_for_temporary_files(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    simulated(9, repeats=1)
    assert not [*tmp_path.iterdir()]


def test_the_wrist_begins_and_ends_where_the_law_and_the_kinematics_say(engine):
    arm = simulated(9, repeats=1).arm[0]
    ideal = wrist_pose(commands(TASKS[9].segments, len(arm), CAP))[0]
    np.testing.assert_allclose(arm[0, :3], wrist_pose(np.zeros(6))[0], atol=1e-4)
    np.testing.assert_allclose(arm[-1, :3], ideal[-2], atol=0.002)


def test_the_command_writes_what_the_score_reads_and_the_seed_decides(engine, tmp_path):
    for seed, name in ((0, "a"), (0, "again"), (1, "other")):
        main([str(tmp_path / name), "--tasks", "9", "--repeats", "2", "--seed", str(seed)])
    a, again, other = (read_repeats(tmp_path / name, 9, 2) for name in ("a", "again", "other"))
    np.testing.assert_array_equal(a.objects, again.objects)
    assert np.abs(a.objects[:, 0, :2] - other.objects[:, 0, :2]).min() > 1e-5
    assert np.abs(a.objects[:, 0, :2] - (0.6, 0.0)).max() < 0.01 and a.objects[:, -1, 0].min() > 0.6  # pushed


def test_one_command_compares_engines(engine, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MANIKIN_DATA", str(engine.parent))
    words = ["fidelity", "run", "--tasks", "9", "--out", str(tmp_path), "--engine", "pybullet"]
    assert manikin([*words, "--films"]) == 2
    assert "not for PyBullet" in capsys.readouterr().err
    (tmp_path / "physics.toml").write_text("table_friction = 0.3\n")
    assert manikin([*words, "mujoco", "--json", "--config", str(tmp_path / "physics.toml")]) == 0
    out, told = capsys.readouterr()
    assert "PyBullet runs as the exemplar did, without --config" in " ".join(told.split())
    said = json.loads(out)
    names = [one["name"] for one in said["simulations"]]
    assert names[0] == "PyBullet here" and names[1].startswith("manikin ")
    assert pack(tmp_path / "pybullet", None, tmp_path / "sent")["tuned"]["lateral_friction"] == 0.5
    assert read_repeats(tmp_path / "pybullet", 9).repeats == read_repeats(tmp_path / "mujoco", 9).repeats == REPEATS


def test_another_task_is_named(engine):
    with pytest.raises(UnknownNameError, match="task of the benchmark"):
        simulated(11)


def test_without_pybullet_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pybullet", None)
    with pytest.raises(SystemExit, match="PyBullet is not installed"):
        main(["nowhere", "--tasks", "1"])
    with pytest.raises(ConfigError, match="pip install 'manikin\\[pybullet\\]'"):
        simulated(1)
