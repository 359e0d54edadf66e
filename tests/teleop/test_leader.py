"""Leader arms, through a LeRobot that the tests make up: what is tried is the way from its readings to the robot's
joints. No leader arm was there to try it on."""

from __future__ import annotations

import math
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

import manikin
from manikin.cli.teleop import TeleopOptions, run
from manikin.data.recording.read import EpisodeFile
from manikin.errors import ConfigError, UnknownNameError
from manikin.robots import arm
from manikin.teleop.device import Motion
from manikin.teleop.leader import LeaderArm
from manikin.teleop.loop import TeleopLoop
from manikin.teleop.pilot import Pilot

# the names and calls of LeRobot 0.4.4 that are used; the arm's readings are in a file that a test writes
LEROBOT = """
    import json, os, sys
    from dataclasses import dataclass
    from pathlib import Path

    KINDS = {}

    class TeleoperatorConfig:
        @classmethod
        def get_choice_class(cls, kind):
            return KINDS[kind]

    @dataclass
    class Degrees:
        port: str
        id: str
        use_degrees: bool = True

    @dataclass
    class Percent:
        port: str
        id: str

    class Arm:
        def __init__(self, config):
            self.config = config

        def connect(self, calibrate):
            assert calibrate is False
            print("chatter of a library")
            if not Path(self.config.port).exists():
                raise ConnectionError(f"no arm at {self.config.port}")

        @property
        def is_calibrated(self):
            return self.config.id != "new"

        def get_action(self):
            return {k + ".pos": v for k, v in json.loads(Path(self.config.port).read_text()).items()}

        def disconnect(self):
            Path(self.config.port + ".let-go").touch()

    def make_teleoperator_from_config(config):
        return Arm(config)
"""
MOTORS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a made-up leader arm is plugged in; its readings are what this file says."""
    package = tmp_path / "lerobot" / "teleoperators"
    package.mkdir(parents=True)
    (tmp_path / "lerobot" / "__init__.py").touch()
    (package / "__init__.py").write_text(textwrap.dedent(LEROBOT))
    for module, kind, config in (("so_leader", "so101_leader", "Degrees"), ("koch_leader", "koch_leader", "Percent")):
        (package / f"{module}.py").write_text(f"from lerobot.teleoperators import *\nKINDS[{kind!r}] = {config}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    port = tmp_path / "tty"
    _hold(port, *[0.0] * 5, 100.0)
    return port


def _hold(port: Path, *values: float) -> None:
    readings = ", ".join(f'"{name}": {value}' for name, value in zip(MOTORS, values, strict=True))
    new = port.with_suffix(".new")
    new.write_text("{" + readings + "}")
    new.replace(port)


def _read_until(device: LeaderArm, wanted: float) -> Motion:
    until = time.monotonic() + 60
    while (motion := device.read()).joints[0] != pytest.approx(wanted) and time.monotonic() < until:
        time.sleep(0.01)
    return motion


def test_degrees_are_radians_and_percent_a_share_of_the_joints_range(port: Path) -> None:
    with LeaderArm("so101_leader", port=str(port), id="a", flip=["wrist_roll"]) as device:
        _hold(port, 10.0, -20.0, 30.0, 40.0, 50.0, 25.0)
        before = time.monotonic()
        motion = _read_until(device, math.radians(10))
        assert motion.joints == pytest.approx([math.radians(v) for v in (10, -20, 30, 40, -50)])
        assert motion.grip == pytest.approx(-0.5)
        assert before <= motion.at <= time.monotonic()
    assert Path(f"{port}.let-go").exists()
    ranges = {j.name: j.range for link in arm("koch").links for j in link.joints}
    with LeaderArm("koch_leader", port=str(port), id="a") as device:
        _hold(port, 100.0, -100.0, 0.0, 50.0, 0.0, 50.0)
        motion = _read_until(device, ranges[arm("koch").joints[0]][1])
        low, high = zip(*(ranges[name] for name in arm("koch").joints), strict=True)
        expected = [high[0], low[1], (low[2] + high[2]) / 2, low[3] + 0.75 * (high[3] - low[3]), (low[4] + high[4]) / 2]
        assert motion.joints == pytest.approx(expected)
        assert motion.grip == 1.0  # half is open for this one


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"id": "new"}, "lerobot-calibrate --teleop.type=so101_leader"),
        ({"port": "/nowhere/tty"}, "no arm at /nowhere/tty"),
        ({"python": "/nowhere/python"}, "cannot start the Python of the leader arm, /nowhere/python"),
    ],
)
def test_an_arm_that_cannot_be_read_says_why(port: Path, options: dict, says: str) -> None:
    device = LeaderArm("so101_leader", **{"port": str(port), "id": "a", **options})
    with pytest.raises(ConfigError, match=says):
        device.start()


def test_a_python_without_lerobot_is_named(port: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    device = LeaderArm("so101_leader", port=str(port), python=sys.executable)
    with pytest.raises(ConfigError, match=r"No module named 'lerobot'.*pip install 'lerobot\[feetech\]'"):
        device.start()


def test_an_arm_that_is_unplugged_is_missed(port: Path) -> None:
    with LeaderArm("so101_leader", port=str(port), id="a") as device:
        assert device.read().joints is not None
        port.unlink()
        with pytest.raises(ConfigError, match="lost: FileNotFoundError"):
            _read_until(device, math.nan)


def test_unknown_words_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="so101_leader"):
        LeaderArm("panda_leader", port="x")
    with pytest.raises(UnknownNameError, match="wrist_roll"):
        LeaderArm("so101_leader", port="x", flip=["elbow"])
    with pytest.raises(ConfigError, match="leader:so101_leader,port="):
        run(TeleopOptions(device="leader:so101_leader,id=a"))
    with pytest.raises(ConfigError, match="finite"):
        Motion(joints=(0.0, math.nan))


def test_a_robot_with_other_joints_is_refused() -> None:
    env = manikin.make("PickCube-v2", 1, autoreset="disabled")
    with pytest.raises(ConfigError, match="leader arm has 5 joints, but panda has 7"):
        Pilot(env, joints=5)


@pytest.mark.parametrize("control", ["joint_pos", "joint_delta_pos"])
def test_the_robot_goes_where_the_leader_is_and_the_episode_is_kept(port: Path, tmp_path: Path, control: str) -> None:
    env = manikin.make("PickCube-v2", 1, robot="so101", control=control, autoreset="disabled", horizon=200)
    rest = [math.degrees(q) for q in arm("so101").keyframes["rest"]]
    _hold(port, *rest, 100.0)
    with LeaderArm("so101_leader", port=str(port), id="a") as device:
        _read_until(device, math.radians(rest[0]))
        loop = TeleopLoop(env, device, out=tmp_path / "led.h5")
        loop.begin()
        for _ in range(3):
            assert loop.tick() is None  # it rests, so nothing begins
        goal = [q + d for q, d in zip(rest, (20.0, 10.0, -15.0, 10.0, 30.0), strict=True)]
        _hold(port, *goal, 0.0)
        _read_until(device, math.radians(goal[0]))
        for _ in range(60):
            assert loop.tick() is not None
        away = env.robot.arm_qpos[0] - torch.tensor([math.radians(v) for v in goal])
        assert away.abs().max() < math.radians(5)  # its servos sag
        assert float(env.robot.opening[0]) < 0.3
        loop.keep()
        loop.close()
    with EpisodeFile(tmp_path / "led.h5") as recorded:
        assert list(recorded.numbers) == [0]
