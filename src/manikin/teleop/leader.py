"""A leader arm: a small copy of the robot that a person moves, and the robot follows."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import Any

from manikin.deploy.units import MOTORS
from manikin.errors import ConfigError, UnknownNameError
from manikin.robots import arm as arm_named
from manikin.teleop.device import Device, Motion

__all__ = ["LEADERS", "LeaderArm"]

LEADERS = {"so101_leader": "so101", "so100_leader": "so101", "koch_leader": "koch"}
"""LeRobot's names of leader arms -> the arm each is a copy of."""
OPEN = {"koch_leader": 50.0}  # of 100, where the gripper of a leader rests
STALE = 0.5  # [s] without a reading, after which it is lost
START = 90.0  # [s] that LeRobot may take to begin


class LeaderArm(Device):
    """A leader arm that LeRobot knows, read by LeRobot in a process of its own.

    LeRobot and manikin need not share an environment: name the Python that has ``lerobot`` with its motors' extra.
    Joints in degrees are taken as they are, joints in percent (Koch) as a share of the simulated joint's range.

    Args:
        kind: of :data:`LEADERS`.
        port: the serial port, ``/dev/ttyACM0``.
        id: the name under which LeRobot has its calibration.
        python: the interpreter that has LeRobot; by default this one.
        flip: names of motors that turn the other way than the simulated joint.

    Raises:
        UnknownNameError: no such kind, or a motor to flip that the arm does not have.
    """

    name = "leader"
    help = (("the leader arm", "the robot's joints and gripper follow it"),)

    def __init__(
        self,
        kind: str = "so101_leader",
        *,
        port: str,
        id: str | None = None,
        python: str | Path = sys.executable,
        flip: Collection[str] = (),
    ) -> None:
        if kind not in LEADERS:
            raise UnknownNameError("leader arm", kind, LEADERS)
        arm = arm_named(LEADERS[kind])
        for motor in flip:
            if motor not in MOTORS:
                raise UnknownNameError("motor", motor, MOTORS)
        self.joints = len(arm.joints)
        ranges = {joint.name: joint.range for link in arm.links for joint in link.joints}
        self._ranges = [ranges[name] or (-math.pi, math.pi) for name in arm.joints]
        self._signs = [-1.0 if motor in flip else 1.0 for motor in MOTORS]
        self._open = OPEN.get(kind, 100.0)
        self._about = {"kind": kind, "port": port, "id": id}
        self._python = str(python)
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self._latest: tuple[dict[str, Any], float] | None = None
        self._error: str | None = None
        self._complaints: deque[str] = deque(maxlen=5)

    def start(self) -> None:
        """Begin to read it.

        Raises:
            ConfigError: no such Python, LeRobot is missing in it, or the arm does not answer or is not calibrated.
        """
        script = Path(__file__).with_name("leader_process.py")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONHOME"}
        try:
            self._process = subprocess.Popen(
                [self._python, str(script), json.dumps(self._about)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                env=environment,
            )
        except OSError as error:
            raise ConfigError(f"cannot start the Python of the leader arm, {self._python}: {error}") from None
        readers = (self._listen, self._overhear)
        self._readers = [threading.Thread(target=reader, args=(self._process,), daemon=True) for reader in readers]
        for thread in self._readers:
            thread.start()
        until = time.monotonic() + START
        while self._latest is None and self._error is None and time.monotonic() < until:
            time.sleep(0.02)
            if self._process.poll() is not None:
                time.sleep(0.1)  # for its last words
                break
        if self._latest is None:
            self.close()
            why: str = self._error or " ".join(self._complaints) or "it says nothing"
            hint = ": pip install 'lerobot[feetech]' there" if "lerobot" in why else ""
            raise ConfigError(f"the leader arm at {self._about['port']} cannot be read by {self._python} ({why}){hint}")

    def read(self) -> Motion:
        """Where it is.

        Raises:
            ConfigError: it was lost, and no reading has come for half a second.
        """
        if self._latest is None:
            raise ConfigError("the leader arm was not started")
        reading, at = self._latest
        if time.monotonic() - at > STALE:
            raise ConfigError(f"the leader arm was lost: {self._error or 'no reading for half a second'}")
        values = reading["values"]
        joints = []
        for motor, sign, (low, high) in zip(MOTORS, self._signs, self._ranges, strict=True):
            value = sign * values[motor]
            if reading["unit"] == "degrees":
                joints.append(math.radians(value))
            else:
                joints.append(low + (high - low) * (value + 100.0) / 200.0)
        grip = min(1.0, max(-1.0, 2.0 * values["gripper"] / self._open - 1.0))
        return Motion(joints=tuple(joints), grip=grip, at=at)

    def close(self) -> None:
        """Let go of it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for thread in self._readers:
            thread.join()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                said = json.loads(line)
                if "error" in said:
                    self._error = said["error"]
                else:
                    self._latest = said, time.monotonic()

    def _overhear(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self._complaints.append(line.strip())
