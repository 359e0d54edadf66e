"""Controllers in joint space. Position servos in the simulator do the rest; gains are the robot's."""

from __future__ import annotations

import math
import statistics

import torch
from torch import Tensor

from manikin.control.base import Kinematics, Limb, OncePerStep, Reading
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import quat_slerp
from manikin.spec.action import ActionCard, ActionDim
from manikin.spec.control import Control
from manikin.spec.robot import RobotSpec

__all__ = ["GripperMap", "JointController", "servo_gain", "servo_rate", "straight", "tool_between"]


def servo_rate(arm: RobotSpec) -> float:
    """[1/s] how fast a position servo closes in on its command: it is overdamped, and this is its slow pole."""
    return statistics.median(p / d for p, d in zip(arm.gains.kp, arm.gains.kd, strict=True))


def servo_gain(rate: float, within: float | None) -> float:
    """How many times the way to command, for a servo of this rate to have gone the way after ``within`` [s]."""
    return 1.0 if within is None else 1.0 / (1.0 - math.exp(-rate * within))


def tool_between(
    chain: Kinematics, now: Tensor, to: Tensor, rate: float, within: float | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Place and turn of the tool at joints ``now`` (n, joints), and those to ask for so that it gets to where it is at
    ``to``: these themselves, or with ``within`` [s] those that a servo of ``rate`` [1/s] approaches so far."""
    pos, quat = chain.fk(now)
    to_pos, to_quat = chain.fk(to)
    if within is not None:
        gain = servo_gain(rate, within)
        to_pos, to_quat = pos + gain * (to_pos - pos), quat_slerp(quat, to_quat, gain)
    return pos, quat, to_pos, to_quat


def straight(action: Tensor, gripper: int) -> Tensor:
    """An action in [-1, 1], with ``gripper`` zeros behind. One factor for all dimensions, so that a long way is a
    straight way."""
    action = (action / action.abs().amax(1, keepdim=True).clamp_min(1.0)).float()
    return torch.cat([action, action.new_zeros(len(action), gripper)], 1)


class GripperMap:
    """The grippers' share of an action: one dimension each, -1 commanded closed, +1 open, all its driven joints
    together.

    Args:
        robot: whose.
        step: where it is not 0, an action of +1 opens what is commanded by so much [rad or m] instead.
    """

    def __init__(self, robot: Limb, step: float = 0.0) -> None:
        device = robot.limits.device
        opening = [tool for tool in robot.tools.values() if tool.drivers] if robot.drivers else []
        self.size, self._names = len(opening), [tool.key for tool in opening]
        ends = [[q for tool in opening for q in getattr(tool.gripper, end)] for end in ("open_q", "closed_q")]
        opened, closed = (torch.tensor(q, device=device) for q in ends)
        self.middle, self.half = (opened + closed) / 2, (opened - closed) / 2  # (drivers,) [rad or m]
        links = [*robot.arm.links, *(link for tool in opening for link in tool.gripper.links)]
        kinds = {joint.type for link in links for joint in link.joints if joint.name in robot.drivers}
        self._step, self._unit = step, "m" if "slide" in kinds else "rad"
        self.moves = step * torch.sign(opened - closed) if step else self.half  # (drivers,) of the command, at +1
        self.ends = torch.minimum(opened, closed), torch.maximum(opened, closed)
        # of the action's last ``size`` numbers, the one that moves each driver
        self.columns = torch.tensor([k for k, tool in enumerate(opening) for _ in tool.drivers], device=device).long()

    def __call__(self, action: Tensor) -> Tensor:
        """Driver targets (n, drivers) [rad or m] of the last columns of ``action``."""
        own = action[:, -self.size :]
        return torch.addcmul(self.middle, own if self.size == 1 else own.index_select(1, self.columns), self.half)

    def dims(self) -> tuple[ActionDim, ...]:
        """Card entries."""
        names = ["gripper"] if self.size == 1 else [f"{name}/gripper" for name in self._names]
        if self._step:
            return tuple(
                ActionDim(name=name, unit=self._unit, frame="gripper", reference="commanded", scale=self._step)
                for name in names
            )
        return tuple(
            ActionDim(name=name, unit="opening", frame="gripper", reference="absolute", scale=0.5, offset=0.5)
            for name in names
        )


class JointController(OncePerStep):
    """Joint position (absolute, delta on measured, delta on commanded) and joint velocity.

    ``joint_pos``: [-1, 1] spans the joint's range; with the option ``about`` it is ``step`` to either side of a
    keyframe, within the range. ``joint_delta_pos``: adds to the measured position.
    ``joint_target_delta_pos``: adds to the commanded position, so that delays and load do not swallow motion; with the
    option ``gripper`` the gripper's number does, too.
    ``joint_vel``: the commanded position advances at the given velocity, at most ``lead`` ahead of the measured one.
    """

    lead = 0.5  # [rad or m] a velocity command never winds up further than this

    def __init__(self, control: Control, robot: Limb, control_hz: float) -> None:
        name, arm = control.name, robot.arm
        self.name, self._n, self.rate = control.word, len(arm.joints), servo_rate(arm)
        self._gripper = GripperMap(robot, control.gripper)
        if control.gripper and not self._gripper.size:
            raise ConfigError(f"{self.name}: {arm.name} has no gripper here that opens; leave out gripper=")
        device, ranges = robot.limits.device, robot.ranges[: self._n]  # the card's numbers are made on the host
        low, high = ranges.unbind(1)
        step = torch.tensor(arm.joint_delta or (0.1,) * self._n, device="cpu")
        middle = torch.zeros(self._n, device="cpu")
        per, reference = "", "measured"
        if name == "joint_pos" and control.about:
            if control.about not in arm.keyframes:
                raise UnknownNameError(f"keyframe of {arm.name}", control.about, arm.keyframes)
            middle, reference = torch.tensor(arm.keyframes[control.about], dtype=low.dtype, device="cpu"), "absolute"
            step = torch.full_like(step, control.step) if control.step else step
        elif name == "joint_pos":
            middle, step, reference = (low + high) / 2, (high - low) / 2, "absolute"
        elif name == "joint_target_delta_pos":
            reference = "commanded"
            step = torch.full_like(step, control.step) if control.step else step
        elif name == "joint_vel":
            step, per, reference = torch.tensor(arm.joint_speed, device="cpu"), "/s", "absolute"
        self._absolute, self._keeps_target = name == "joint_pos", name in ("joint_target_delta_pos", "joint_vel")
        self._leads = name == "joint_vel"
        move = step * (1.0 / control_hz) if name == "joint_vel" else step  # [rad or m] per control step at +1
        self._middle, self._move = middle.to(device), move.to(device)
        # Of all driven joints, arm and gripper: a command is what an action of zero asks for, plus action times scale.
        fingers = self._gripper.middle
        free = torch.full_like(fingers, math.inf)
        self._zero, self._scale = torch.cat([self._middle, fingers]), torch.cat([self._move, self._gripper.moves])
        ends = self._gripper.ends if control.gripper else (-free, free)
        self._low, self._high = torch.cat([low.to(device), ends[0]]), torch.cat([high.to(device), ends[1]])
        self._is_arm = torch.arange(len(self._zero), device=device) < self._n
        self._kept = len(self._zero) if control.gripper else self._n  # joints whose target is the carry
        # of the action: one number moves all fingers of a gripper
        self._columns = torch.cat([torch.arange(self._n, device=device), self._n + self._gripper.columns])
        slides = {joint.name for link in arm.links for joint in link.joints if joint.type == "slide"}
        dims = tuple(
            ActionDim(
                name=j,
                unit=("m" if j in slides else "rad") + per,
                frame="joint",
                reference=reference,
                scale=s,
                offset=m,
            )
            for j, s, m in zip(arm.joints, step.tolist(), middle.tolist(), strict=True)
        )
        self.card = ActionCard(controller=self.name, robot=arm.name, dims=(*dims, *self._gripper.dims()))

    def start(self, reading: Reading) -> Tensor:
        return (
            reading.ctrl[:, : self._kept].clone()
            if self._keeps_target
            else reading.ctrl.new_zeros(len(reading.ctrl), 0)
        )

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        if len(self._columns) > self.card.size:
            action = action.index_select(1, self._columns)
        ctrl = torch.addcmul(self._base(carry, reading), action, self._scale)
        if self._leads:
            measured = reading.qpos[:, : self._n]
            near = torch.clamp(ctrl[:, : self._n], measured - self.lead, measured + self.lead)
            ctrl = torch.cat([near, ctrl[:, self._n :]], 1)
        ctrl = torch.clamp(ctrl, self._low, self._high)
        return ctrl, ctrl[:, : self._kept] if self._keeps_target else carry

    def _base(self, carry: Tensor, reading: Reading) -> Tensor:
        """(n, joints) or (joints,) what an action of zero commands, arm and gripper."""
        if self._absolute:
            return self._zero
        if self._kept > self._n:
            return carry
        if self._keeps_target:
            return torch.cat([carry, self._gripper.middle.expand(len(carry), -1)], 1)
        return torch.where(self._is_arm, reading.qpos, self._zero)

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        measured = reading.qpos[:, : self._n]
        base = self._middle if self._absolute else carry[:, : self._n] if self._keeps_target else measured
        if within is not None:
            qpos = measured + (qpos - measured) * servo_gain(self.rate, within)
        arm = (qpos - base) / self._move
        if not self._absolute:  # one factor for all joints, so that a long way is a straight way
            arm = arm / arm.abs().amax(1, keepdim=True).clamp_min(1.0)
        arm = arm.clamp(-1, 1)
        return torch.cat([arm, arm.new_zeros(len(arm), self._gripper.size)], 1)
