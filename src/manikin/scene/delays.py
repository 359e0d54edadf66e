"""Servos that follow their commands late."""

from __future__ import annotations

from manikin.scene.robot import RobotModel

__all__ = ["delay_commands"]


def delay_commands(model: RobotModel, delay: float, hz: float) -> None:
    """Have the position servos of an assembled robot's groups follow commands ``delay`` [s] later, in whole physics
    steps of which there are ``hz`` per second; grippers follow at once."""
    steps = round(delay * hz)
    for name in model.arm_actuators:
        if steps and name not in model.torque_joints:
            actuator = model.spec.actuator(name)
            # half a step less: the newest sample that old is the right one however the clock rounds
            actuator.delay, actuator.nsample = (steps - 0.5) / hz, steps + 1
