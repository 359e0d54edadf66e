"""Controllers by name, and inverse kinematics."""

from __future__ import annotations

from collections.abc import Callable

from manikin.control.base import Controller, Drive, Reading
from manikin.control.ee import EndEffectorController
from manikin.control.ik import Chain, IkResult, IkSolver
from manikin.control.joint import JointController
from manikin.control.torque import JointImpedance, JointTorque, JointVelocity, OperationalSpace
from manikin.errors import UnknownNameError
from manikin.scene.handles import Robot
from manikin.spec.control import Control, Whole, parse_control
from manikin.spec.robot import ArmSpec

__all__ = ["Chain", "Controller", "Drive", "IkResult", "IkSolver", "Reading", "controller", "torque_joints"]


def torque_joints(control: str | Control | Whole, arm: ArmSpec) -> tuple[str, ...]:
    """The arm's joints that a controller drives by torque: what the scene must be built with."""
    control = parse_control(control)
    assert isinstance(control, Control)
    return arm.joints if control.every_substep else ()


def controller(control: str | Control | Whole, robot: Robot, chain: Chain, control_hz: float) -> Controller:
    """The controller that a word or :class:`Control` asks for, on a robot.

    Raises:
        UnknownNameError: no such controller, or not on this robot; lists what it has.
        ConfigError: options that do not go together.
    """
    control = parse_control(control)
    assert isinstance(control, Control)
    name = control.name
    if name not in robot.arm.controllers:
        raise UnknownNameError(f"controller of {robot.arm.name}", name, robot.arm.controllers)
    if name.startswith("osc"):
        return OperationalSpace(control, robot, chain, control_hz)
    if control.every_substep:
        kinds: dict[str, Callable[..., Controller]] = {
            "joint_impedance": JointImpedance,
            "joint_vel_pid": JointVelocity,
            "joint_torque": JointTorque,
        }
        return kinds[name](control, robot, control_hz)
    if name.startswith("joint"):
        return JointController(control, robot, control_hz)
    return EndEffectorController(control, robot, chain)
