"""Controllers by name, and inverse kinematics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from manikin.control.base import Controller, Drive, Reading
from manikin.control.composite import Composite, GroupController
from manikin.control.drive import BaseVelocity
from manikin.control.ee import EndEffectorController
from manikin.control.group import GroupChain, RobotGroup, check_groups
from manikin.control.ik import Chain, IkResult, IkSolver
from manikin.control.joint import GripperMap, JointController
from manikin.control.planned import PlannedPose
from manikin.control.target import TargetDeltaPose
from manikin.control.torque import JointImpedance, JointTorque, JointVelocity, OperationalSpace
from manikin.errors import ConfigError, UnknownNameError
from manikin.moved import old_names
from manikin.scene.handles import Robot
from manikin.spec.control import GRIPPER, Control, Whole, controls_word, parse_control
from manikin.spec.robot import FULL_POSE, POSE_CONTROLLERS, RobotSpec

__all__ = [
    "Chain",
    "Composite",
    "Controller",
    "Drive",
    "IkResult",
    "IkSolver",
    "GroupController",
    "Reading",
    "controller",
    "side_by_side",
    "torque_joints",
]


def torque_joints(control: str | Control | Whole, arm: RobotSpec) -> tuple[str, ...]:
    """The arm's joints that a controller drives by torque: what the scene must be built with."""
    control = parse_control(control)
    if isinstance(control, Control):
        return arm.joints if control.torques else ()
    groups = check_groups(control, arm)
    return tuple(j for name, part in control.parts if part.torques for j in groups[name])


def controller(control: str | Control | Whole, robot: Robot, chain: Chain, control_hz: float) -> Controller:
    """The controller that a word or :class:`Control` asks for, on a robot.

    Raises:
        UnknownNameError: no such controller, or not on this robot; lists what it has.
        ConfigError: options that do not go together.
    """
    control = parse_control(control)
    if isinstance(control, Whole):
        return _composite(control, robot, chain, control_hz)
    return _single(control, robot, chain, control_hz)


def _composite(whole: Whole, robot: Robot, chain: Chain, control_hz: float) -> Composite:
    """A controller for each group of a robot's joints, as one."""
    parts = []
    for name in check_groups(whole, robot.arm):
        control = dict(whole.parts)[name]
        group = RobotGroup(robot, name)
        own = GroupChain(chain.of_groups(group.groups, group.tool), robot, group.columns)
        parts.append(GroupController(name, _single(control, group, own, control_hz), group, group.columns))
    names = [name for name, _ in whole.parts]
    gripper, at = GripperMap(robot), names.index(GRIPPER) if GRIPPER in names else len(parts)
    if GRIPPER in names and not gripper.size:
        raise ConfigError(f"{whole.word!r}: {robot.arm.name} has no gripper here that opens; leave out {GRIPPER!r}")
    return Composite(whole.word, robot.arm.name, parts, gripper, gripper_at=at)


def side_by_side(
    controls: Sequence[Control | Whole], robots: Sequence[Robot], chains: Sequence[Chain], control_hz: float
) -> Composite:
    """A controller for each robot, as one: a :class:`~manikin.scene.handles.combined.CombinedRobot` is what it reads.

    Raises as :func:`controller` does.
    """
    parts, column, joint = [], 0, 0
    for control, robot, chain in zip(controls, robots, chains, strict=True):
        wide, joints = len(robot.joints), robot.arm_joints
        one = controller(control, robot, chain, control_hz)
        parts.append(
            GroupController(robot.name, one, robot, range(column, column + wide), range(joint, joint + joints))
        )
        column, joint = column + wide, joint + joints
    names = " and ".join(robot.arm.name for robot in robots)
    return Composite(controls_word(controls), names, parts, None)


def _single(control: Control, robot: Robot | RobotGroup, chain: Chain | GroupChain, control_hz: float) -> Controller:
    name = control.name
    if name not in robot.arm.controllers:
        count = len(robot.arm.ik_joints)
        few = name in POSE_CONTROLLERS and count < FULL_POSE
        hint = f"Its {count} joints cannot turn the tool in every way at every place, which takes six." if few else ""
        if name == "base_vel":
            hint = f"It drives a base, and {robot.arm.name} has none that does; try {robot.arm.name}@planar."
        raise UnknownNameError(f"controller of {robot.arm.name}", name, robot.arm.controllers, hint)
    if name.startswith("osc"):
        return OperationalSpace(control, robot, chain, control_hz)
    if control.torques:
        kinds: dict[str, Callable[..., Controller]] = {
            "joint_impedance": JointImpedance,
            "joint_vel_pid": JointVelocity,
            "joint_torque": JointTorque,
        }
        return kinds[name](control, robot, control_hz)
    if name.startswith("joint"):
        return JointController(control, robot, control_hz)
    if name == "base_vel":
        return BaseVelocity(control, robot, control_hz)
    if name == "ee_target_delta_pose":
        return TargetDeltaPose(control, robot, chain)
    if name == "ee_delta_pose_planned":
        return PlannedPose(control, robot, chain, control_hz)
    return EndEffectorController(control, robot, chain)


__getattr__ = old_names(__name__)
