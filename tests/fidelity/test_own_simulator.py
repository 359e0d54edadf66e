"""A lab's way: its own log, manikin's episodes exported beside it, and one command that scores both."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

import manikin
from manikin.cli import main
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.errors import DataError
from manikin.eval.runner import run_episodes
from manikin.fidelity import Score, score_folder, score_task
from manikin.fidelity.export import exported
from manikin.fidelity.page import compared, omitted, render_page
from manikin.fidelity.recordings.made_up import made_up, write_made_up
from manikin.fidelity.recordings.motions import own_motions
from manikin.fidelity.recordings.own import read_own, write_own
from manikin.fidelity.score import as_values
from manikin.policy.random_policy import RandomPolicy
from manikin.sysid.importers import recording as manikins
from manikin.tasks.tabletop.push_cube import PushCube


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_made_up(tmp_path_factory.mktemp("made") / "lab")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five episodes of PushCube as ``manikin collect`` records them."""
    path = tmp_path_factory.mktemp("collected") / "run.h5"
    words = ["collect", "PushCube-v2", "--episodes", "5", "--num-envs", "2", "--out", str(path), "--seed", "3"]
    assert main(words) == 0
    return path


# ---- export ----------------------------------------------------------------------------------------------------------


def test_an_exported_episode_is_what_was_recorded(run: Path) -> None:
    """Tool and joints as system identification finds them by forward kinematics, the cube as MuJoCo places it."""
    one, known = exported(run, num_envs=2), manikins(run)
    assert one.task == "PushCube-v2" and one.hz == 20 and one.things == ("cube",) and one.arm.shape[0] == 5
    assert set(one.columns) == {"pos", "quat", "qpos", "qvel", "torque", "fingers", "actions"}
    env = manikin.make("PushCube-v2")
    model, data = env.scene.model, mujoco.MjData(env.scene.model)
    base = env.robot.base_pose[:3].numpy()
    with read_episodes(run) as file:
        for k, (episode, trajectory) in enumerate(zip(file, known.items, strict=True)):
            steps = len(episode)
            assert one.lengths[k] == steps + 1 and one.labels[k] == f"episode_{episode.number:04d}"
            assert one.part("pos")[k, :steps] == pytest.approx(trajectory.pos, abs=1e-6)
            assert np.abs((one.part("quat")[k, :steps] * trajectory.quat).sum(1)) == pytest.approx(1, abs=1e-6)
            assert np.array_equal(one.part("qpos")[k, :steps], trajectory.qpos)
            assert np.array_equal(one.part("actions")[k, :steps], trajectory.actions)
            assert np.isnan(one.part("actions")[k, steps]).all()
            for row in (0, steps // 2, steps):
                mujoco.mj_setState(model, data, episode.states[row], mujoco.mjtState.mjSTATE_INTEGRATION)
                mujoco.mj_forward(model, data)
                cube = data.body("cube")
                assert one.track("cube")[k, row, :3] == pytest.approx(cube.xpos - base, abs=1e-6)
                assert np.abs(one.track("cube")[k, row, 3:] @ cube.xquat) == pytest.approx(1, abs=1e-6)
                dofs = [int(model.joint(f"{env.robot.prefix}joint{j}").dofadr[0]) for j in range(1, 8)]
                motors = data.qfrc_actuator[dofs] + data.qfrc_passive[dofs]
                assert one.part("torque")[k, row] == pytest.approx(motors, abs=1e-3)
            if not k:  # at rest the motors carry the arm
                mujoco.mj_setState(model, data, episode.states[0], mujoco.mjtState.mjSTATE_INTEGRATION)
                mujoco.mj_forward(model, data)
                assert one.part("torque")[k, 0] == pytest.approx(data.qfrc_bias[dofs], abs=1e-3)
    env.close()


def test_an_export_goes_through_files_to_a_score(run: Path, tmp_path: Path) -> None:
    """A perturbed copy stands for the lab's log: 10 mm in x, and an action of system identification is still there."""
    words = [
        "fidelity",
        "export",
        str(run),
        "--out",
        str(tmp_path / "sim"),
        "--name",
        "push",
        "--episodes",
        "0",
        "2",
        "3",
        "4",
    ]
    assert main(words) == 0
    sim = read_own(tmp_path / "sim")
    assert sim.task == "push" and sim.labels == tuple(f"episode_{k:04d}" for k in (0, 2, 3, 4)) and not sim.synthetic
    assert sim.header["robot"] == "panda" and sim.header["notes"]["policy"] == "expert"
    arm = sim.arm.copy()
    arm[..., sim.columns["pos"]] += [0.01, 0, 0]
    real = replace(sim, arm=arm, header={**sim.header, "source": "a lab"}, synthetic=True)
    write_own(real, tmp_path / "real.h5")
    found = score_folder(tmp_path / "sim", tmp_path / "real.h5")
    values = found.tasks["push"].values
    assert values["euclidean"] == pytest.approx(0.01) and values["pose"] == pytest.approx(0.01 * np.sqrt(37))
    for name in ("rotation", "velocity", "acceleration", "torque", "object_translation", "object_rotation"):
        assert values[name] == pytest.approx(0, abs=1e-9), name
    assert found.name.startswith("manikin ") and found.synthetic
    assert set(found.tasks["push"].left_out) == {"force", "moment", "max_force", "max_moment"}


def test_a_task_with_a_wrist_sensor_exports_its_force(tmp_path: Path) -> None:
    class PushCubeFelt(PushCube):
        """Push a cube with a sensor at the wrist.

        Success: as in PushCube.
        """

        id = "PushCubeFelt-v0"

        def scene(self, b: manikin.SceneBuilder) -> object:
            handles = super().scene(b)
            handles.felt = b.force_torque(handles.robot)
            return handles

    env = manikin.make(PushCubeFelt, 2, autoreset="disabled", horizon=4)
    with Recorder(env, tmp_path / "run.h5", policy="random") as recorder:
        run_episodes(env, RandomPolicy(env), range(2), observers=[recorder])
    model = env.scene.model
    hand = int(model.body(env.robot.prefix + env.robot.gripper.links[0].name).id)
    weight = float(model.body_subtreemass[hand]) * 9.81
    env.close()
    one = exported(tmp_path / "run.h5", task=PushCubeFelt)
    assert one.part("force").shape == (2, 5, 3) and one.part("moment").shape == (2, 5, 3)
    assert np.linalg.norm(one.part("force")[:, 0], axis=-1) == pytest.approx(weight, rel=1e-3)  # at rest
    assert one.part("force")[:, 0, 2] == pytest.approx(weight, rel=0.02)  # which points down


def test_what_cannot_be_exported_says_why(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = manikin.make("TwoRobotPickCube-v2", 1, autoreset="disabled", horizon=3)
    with Recorder(env, tmp_path / "two.h5", policy="random") as recorder:
        run_episodes(env, RandomPolicy(env), range(1), observers=[recorder])
    env.close()
    with pytest.raises(DataError, match="holds several robots; a log in this layout is of one"):
        exported(tmp_path / "two.h5")
    with pytest.raises(DataError, match="has no episode 9"):
        exported(run, numbers=[9])
    env = manikin.make("PushCube-v2", 1, autoreset="disabled", horizon=3)
    with Recorder(env, tmp_path / "bare.h5", policy="random", states=False) as recorder:
        run_episodes(env, RandomPolicy(env), range(1), observers=[recorder])
    env.close()
    with pytest.raises(DataError, match="has no recorded states"):
        exported(tmp_path / "bare.h5")
    assert main(["fidelity", "score", str(run), "--reality", str(run)]) == 2
    assert "first: manikin fidelity export run.h5 --out FOLDER" in capsys.readouterr().err


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_scores_several_simulators_of_your_own(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fidelity", "score", str(lab / "early"), str(lab / "late"), "--reality", str(lab / "real")]
    assert main([*words, "--out", str(tmp_path / "page")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("SYNTHETIC") and "published)" not in said and "subgroup" not in said
    assert (
        re.search(r"^made-up engine, early, paper", said, re.MULTILINE)
        and "masked in the recordings: zero_rows" in said
    )
    assert "task wave, left out: object_max_velocity" in said and "object_rotation: there is no object" in said
    values = json.loads((tmp_path / "page" / "score.json").read_text())
    assert values["synthetic"] and "published" not in values and len(values["simulations"]) == 2
    found = score_folder(lab / "late", lab / "real")
    assert values["simulations"][1]["tasks"]["push"]["values"] == dict(found.tasks["push"].values)
    assert values["simulations"][1]["tasks"]["wave"]["left_out"]["object_rotation"] == "there is no object"
    assert f"{found.tasks['push'].values['euclidean']:.4g}" in said
    text = (tmp_path / "page" / "index.html").read_text()
    assert "SYNTHETIC" in text and text.count("<h2>Errors: ") == 2 and "PyBullet" not in text
    drawings = [ET.fromstring(one) for one in re.findall(r"<svg.*?</svg>", text)]
    assert len(drawings) == 4  # curves and ends of two tasks
    titles = [node.text for node in drawings[0].iter() if node.tag.endswith("text")]
    for title in (
        "tool z [m]",
        "torque [N m]",
        "moment [N m]",
        "cube speed, median [m/s]",
        "joint 7 [rad]",
        "recorded",
    ):
        assert title in titles
    assert "made-up engine, late" in titles and "end of the tool" in str(ET.tostring(drawings[3]))
    assert main([*words, "--json", "--tasks", "wave", "--resample", "10"]) == 0
    tasks = json.loads(capsys.readouterr().out)["simulations"][0]["tasks"]
    assert list(tasks) == ["wave"] and len(tasks["wave"]["values"]) == 15


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "which recordings? Name the real arm's with --reality"),
        (("--reality", "REAL", "--tasks", "stack"), "has no task 'stack'; it has 'push', 'wave'"),
        (("--reality", "REAL", "--mode", "released"), "the mode released "),
        (("--reality", "REAL", "--hz", "100"), "--hz is of the benchmark's files"),
        (("--reality", "REAL", "--resample", "50"), "is at 20 Hz; 50 Hz would make rows up"),
        (("--reality", "REAL", "--mask", "rate"), "kind of defect that can be masked"),
        (("--reality", "NOTHING"), "has no recording: a folder with recording.toml, or an HDF5 file"),
    ],
)
def test_the_command_says_what_does_not_go_with_your_own_recordings(
    more: tuple[str, ...], said: str, lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [{"REAL": str(lab / "real"), "NOTHING": str(tmp_path)}.get(word, word) for word in more]
    assert main(["fidelity", "score", str(lab / "early"), *words]) == 2
    assert said in capsys.readouterr().err


def test_resampling_is_not_for_the_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fidelity", "score", str(tmp_path), "--reality", str(tmp_path), "--resample", "5"]) == 2
    assert "--resample is for recordings of your own" in capsys.readouterr().err


def test_a_page_of_measured_recordings_is_not_called_synthetic() -> None:
    real, sim = (replace(made_up(objects=("cube", "can"), seed=k), synthetic=False) for k in range(2))
    one = Score(name="mine", mode="paper", tasks={"push": score_task(real, sim)}, about={})
    assert "SYNTHETIC" not in render_page([one]) and "published" not in as_values([one])
    rows = compared([one, one])["push"]
    assert list(rows) == ["mine", "mine (2)"] and rows["mine"]["object_translation/can"] > 0
    text = render_page([one])
    assert "object translation error, can" in text and "The can moves: recorded" in text and ">nan<" not in text
    assert omitted(one.tasks["push"]) == []


# ---- system identification -------------------------------------------------------------------------------------------


def test_one_layout_serves_system_identification_too(run: Path, tmp_path: Path) -> None:
    write_own(exported(run), tmp_path / "sim.h5")
    found, known = own_motions(tmp_path / "sim.h5"), manikins(run)
    assert (found.robot, found.control, found.control_hz, found.units) == (
        "panda",
        "joint_delta_pos",
        20.0,
        "normalized",
    )
    assert found.tracks == known.tracks == ("pos", "quat", "qpos")
    for mine, theirs in zip(found.items, known.items, strict=True):
        assert np.array_equal(mine.actions, theirs.actions) and mine.pos == pytest.approx(theirs.pos, abs=1e-6)
    with pytest.raises(DataError, match="has no actions, which system identification follows"):
        own_motions(write_own(made_up(repeats=1), tmp_path / "bare"))
    one = read_own(tmp_path / "sim.h5")
    bare = {key: value for key, value in one.header.items() if key != "control"}
    with pytest.raises(DataError, match="does not say control"):
        own_motions(write_own(replace(one, header=bare), tmp_path / "unsaid"))


def test_the_command_identifies_from_your_own_layout(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_own(exported(run, numbers=[0]), tmp_path / "log")
    words = ["sysid", str(tmp_path / "log"), "--vary", "kd=50:200:tied", "--methods", "squares", "--physics-hz", "100"]
    assert main([*words, "--out", str(tmp_path / "found")]) == 0
    said = capsys.readouterr().out
    assert "1 trajectory of panda under joint_delta_pos at 20 Hz" in said
    assert 95 < float(re.search(r"kd: 100 -> ([\d.]+)", said)[1]) < 105  # what the simulator has
