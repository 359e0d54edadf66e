"""Controllers by name, and inverse kinematics."""

from __future__ import annotations

from manikin.control.base import Controller, Reading
from manikin.control.ee import EndEffectorController
from manikin.control.ik import Chain, IkResult, IkSolver
from manikin.control.joint import JointController
from manikin.errors import UnknownNameError
from manikin.scene.handles import Robot

__all__ = ["Chain", "Controller", "IkResult", "IkSolver", "Reading", "controller"]


def controller(name: str, robot: Robot, chain: Chain, control_hz: float) -> Controller:
    """The controller called ``name`` for a robot. Raises :class:`UnknownNameError` listing what the robot has."""
    if name not in robot.arm.controllers:
        raise UnknownNameError(f"controller of {robot.arm.name}", name, robot.arm.controllers)
    if name.startswith("joint"):
        return JointController(name, robot, control_hz)
    return EndEffectorController(name, robot, chain)
