"""`manikin deploy` with a network of random weights; LeRobot's arms by name, with modules that stand for LeRobot."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import manikin
from manikin.cli import main
from manikin.deploy import lerobot_robot
from manikin.errors import ConfigError, UnknownNameError
from manikin.policy.networks.cloned import Cloned
from manikin.policy.trained import about_env, save_trained


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    env = manikin.make("GraspCube-v1", observe="policy")
    torch.manual_seed(0)
    options = {"observations": 13, "actions": 6, "window": 1, "hidden": [8], "activation": "relu"}
    path = tmp_path_factory.mktemp("run") / "policy.safetensors"
    about = {"algorithm": "bc", **about_env(env)}
    save_trained(path, Cloned(**options), network={"kind": "bc", "options": options}, about=about)
    env.close()
    return path


def test_it_runs_a_checkpoint_and_says_how_it_went(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["deploy", str(checkpoint), "--seconds", "0.2", "--episodes", "2", "--latency-ms", "40", "--seed", "5"]
    assert main(words) == 1  # random weights do not grasp
    out = capsys.readouterr().out
    assert "seed 5: 6 steps at 30.0 Hz" in out and "7 late actions" in out
    assert "0 of 2 episodes succeeded" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--robot", "so101"], "--robot is sim or lerobot:so101_follower, not 'so101'"),
        (["--robot", "lerobot:so101_follower"], "a real robot needs --port"),
        (["--robot", "lerobot:so102", "--port", "x"], "unknown follower arm 'so102'"),
        (["--robot", "lerobot:koch_follower", "--port", "x", "--camera", "0"], "must read NAME=INDEX"),
        (["--seconds", "0"], "--seconds positive"),
        (["--latency-ms", "-1"], "must be 0 s or more"),
        (["--flip", "elbow", "--robot", "lerobot:so101_follower", "--port", "x"], "unknown motor 'elbow'"),
    ],
)
def test_bad_words_are_named(checkpoint: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(["deploy", str(checkpoint), *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_without_lerobot_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lerobot", None)
    with pytest.raises(ConfigError, match=r"pip install 'lerobot\[feetech\]'"):
        lerobot_robot("so101_follower", port="/dev/ttyACM0")
    with pytest.raises(UnknownNameError, match="koch_follower, so100_follower, so101_follower"):
        lerobot_robot("so101", port="/dev/ttyACM0")


def test_lerobot_gets_port_calibration_and_cameras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of LeRobot 0.4.4."""

    @dataclass
    class Camera:
        index_or_path: int
        fps: int

    @dataclass
    class Config:
        port: str
        id: str
        use_degrees: bool
        cameras: dict[str, Any] = field(default_factory=dict)

        @staticmethod
        def get_choice_class(kind: str) -> type:
            assert kind == "so101_follower"
            return Config

    made = {
        "lerobot": {},
        "lerobot.robots": {"RobotConfig": Config},
        "lerobot.robots.so_follower": {},
        "lerobot.robots.utils": {"make_robot_from_config": lambda config: config},
        "lerobot.cameras": {},
        "lerobot.cameras.opencv": {},
        "lerobot.cameras.opencv.configuration_opencv": {"OpenCVCameraConfig": Camera},
    }
    for name, content in made.items():
        module = ModuleType(name)
        module.__path__ = []  # type: ignore[attr-defined]
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    robot: Any = lerobot_robot("so101_follower", port="p", id="a", cameras={"front": {"index_or_path": 0, "fps": 30}})
    assert robot == Config("p", "a", True, {"front": Camera(0, 30)})
    with pytest.raises(ConfigError, match="LeRobot refuses the cameras"):
        lerobot_robot("so101_follower", port="p", cameras={"front": {"number": 0}})
