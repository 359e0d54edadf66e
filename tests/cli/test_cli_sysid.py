"""`manikin sysid` as people run it: a file of trajectories in, a robot word and a page out."""

from __future__ import annotations

from pathlib import Path

import pytest

import manikin
from manikin.cli import main
from manikin.data.recorder import Recorder
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.robots import robot
from manikin.sysid import importers
from manikin.sysid.objective import Objective
from manikin.sysid.parameters import parse_parameter
from manikin.sysid.rollout import Rollout
from motions import moved

VARY = ["kd/waist=100:500", "kd/elbow=100:500"]


def test_from_a_file_to_a_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = moved(VARY, [430.0, 390.0], control="joint_pos", steps=6, noise=1e-4).save(tmp_path / "motions.h5")
    out = tmp_path / "found"
    words = ["sysid", str(file), "--vary", *VARY, "--physics-hz", "100", "--methods", "squares", "--out", str(out)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert (
        "3 trajectories of widowx_bridge under joint_pos at 5 Hz" in said and f"--robot {out}/identified.toml" in said
    )
    assert robot(str(out / "identified.toml")).arm.gains.kd[0] == pytest.approx(430, rel=0.02)
    page = (out / "index.html").read_text()
    assert page.count("<svg") == 3 and "kd/waist" in page and "What the recordings determine" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    env = manikin.make("PickCube-v2", robot=str(out / "identified.toml"))
    assert env.robot.arm.gains.kd[2] == pytest.approx(390, rel=0.02)
    env.close()
    assert main(words) == 2 and "--resume" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0
    assert main([*words[:-1], str(tmp_path / "b"), "--trajectories", "motion 9"]) == 2
    assert "there is no trajectory 'motion 9'; there are: motion 0" in capsys.readouterr().err
    assert main(["sysid", str(tmp_path / "a.pkl"), "--vary", *VARY]) == 2
    assert "give --robot, --control, --control-hz" in capsys.readouterr().err


def test_a_recording_is_followed_without_error(tmp_path: Path) -> None:
    """The robot alone under the recorded actions goes where it went in its task, until it touches something."""
    env = manikin.make("PickCube-v2", 1, robot="widowx", control="joint_delta_pos", autoreset="disabled", horizon=12)
    recorder = Recorder(env, tmp_path / "run.h5", policy="expert")
    run_episodes(env, ExpertPolicy(env), range(1), observers=[recorder])
    recorder.close()
    hz = env.physics_hz
    env.close()
    recorded = importers.recording(tmp_path / "run.h5")
    assert recorded.units == "normalized" and recorded.tracks == ("pos", "quat", "qpos")
    rollout = Rollout(recorded, [parse_parameter("damping=0:1:tied")], physics_hz=hz, batch=1)
    assert Objective(rollout, "pose").losses(rollout.space.unit(rollout.space.present)[None])[0] < 1e-4
    rollout.close()
