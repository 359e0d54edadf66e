"""Joint positions of a simulated arm in the units of LeRobot's motors, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from manikin.errors import ConfigError, RobotError, UnknownNameError
from manikin.scene.handles import Robot

__all__ = ["MOTORS", "JointUnits"]

MOTORS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
"""The arm's motors of LeRobot's SO-100, SO-101 and Koch, from the base to the jaw; ``gripper`` is the sixth."""


class JointUnits:
    """Radians of the simulated joints <-> the numbers of LeRobot's motors, in float64: a float32 position comes back
    with the same bits.

    Args:
        robot: the simulated arm, with five joints and a jaw.
        degrees: body motors are in degrees, zero where the simulated joint is zero; else in percent, -100 and 100 being
            the ends of the simulated joint's range.
        flip: names of motors that turn the other way than the simulated joint.

    Attributes:
        names: ``NAME.pos`` of each motor, in the order of the simulated joints.
        low, high: (joints,) [rad] limits of what may be commanded.

    Raises:
        ConfigError: the robot has not five joints and a jaw.
        UnknownNameError: there is no motor to flip of that name.
    """

    def __init__(self, robot: Robot, *, degrees: bool = True, flip: Collection[str] = ()) -> None:
        gripper, motors = robot.gripper, (*MOTORS, "gripper")
        if gripper is None or len(robot.arm.joints) != len(MOTORS) or len(robot.drivers) != 1:
            raise ConfigError(
                f"LeRobot's arms have {len(MOTORS)} joints and a jaw; {robot.arm.name} has "
                f"{len(robot.arm.joints)} joints and {len(robot.drivers)} driven fingers. Use so101 or koch"
            )
        for motor in flip:
            if motor not in motors:
                raise UnknownNameError("motor", motor, motors)
        self.names = tuple(f"{motor}.pos" for motor in motors)
        self.low, self.high = robot.ranges.double().numpy().T
        self._degrees = degrees
        self._sign = np.array([-1.0 if motor in flip else 1.0 for motor in motors])
        opens = gripper.open_q[0] > gripper.closed_q[0]
        # the jaw: 0 is closed
        self._shut, self._wide = (self.low[-1], self.high[-1]) if opens else (self.high[-1], self.low[-1])

    def to_motors(self, q: np.ndarray) -> dict[str, float]:
        """Positions (joints,) [rad] by the names of motors."""
        q = np.asarray(q, np.float64)
        body = np.rad2deg(q) if self._degrees else 200.0 * (q - self.low) / (self.high - self.low) - 100.0
        body = self._sign * body
        body[-1] = 100.0 * (q[-1] - self._shut) / (self._wide - self._shut)
        return dict(zip(self.names, body.tolist(), strict=True))

    def to_joints(self, motors: Mapping[str, Any]) -> np.ndarray:
        """Positions (joints,) [rad], float64, of what the motors say.

        Raises:
            RobotError: a motor is missing, or says no finite number.
        """
        values: Sequence[float] = [_number(motors, name) for name in self.names]
        body = self._sign * np.array(values)
        q = np.deg2rad(body) if self._degrees else self.low + (body + 100.0) * (self.high - self.low) / 200.0
        q[-1] = self._shut + values[-1] * (self._wide - self._shut) / 100.0
        return q


def _number(motors: Mapping[str, Any], name: str) -> float:
    if name not in motors:
        raise RobotError(f"the robot says nothing of {name}; it says {', '.join(sorted(motors))}")
    try:
        value = float(motors[name])
    except (TypeError, ValueError):
        value = float("nan")
    if not np.isfinite(value):
        raise RobotError(f"the robot's {name} is {motors[name]!r:.40}, not a finite number")
    return value
