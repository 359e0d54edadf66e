"""Servos that follow their commands late."""

from __future__ import annotations

from manikin.scene.robot import RobotModel

__all__ = ["delayed"]


def delayed(model: RobotModel, hz: float) -> RobotModel:
    """The same assembled robot, whose groups' position servos follow commands after its ``delay``, in whole physics
    steps of which there are ``hz`` per second. Grippers follow at once."""
    steps = round(model.arm.delay * hz)
    for name in model.arm_actuators:
        if steps and name not in model.torque_joints:
            actuator = model.spec.actuator(name)
            # half a step less: the newest sample that old is the right one however the clock rounds
            actuator.delay, actuator.nsample = (steps - 0.5) / hz, steps + 1
    return model
