"""Controllers in joint space. Position servos in the simulator do the rest; gains are the robot's."""

from __future__ import annotations

import math
import statistics

import torch
from torch import Tensor

from manikin.control.base import Limb, OncePerStep, Reading
from manikin.spec.action import ActionCard, ActionDim
from manikin.spec.control import Control
from manikin.spec.robot import ArmSpec

__all__ = ["GripperMap", "JointController", "servo_gain", "servo_rate"]


def servo_rate(arm: ArmSpec) -> float:
    """[1/s] how fast a position servo closes in on its command: it is overdamped, and this is its slow pole."""
    return statistics.median(p / d for p, d in zip(arm.gains.kp, arm.gains.kd, strict=True))


def servo_gain(rate: float, within: float | None) -> float:
    """How many times the way to command, for a servo of this rate to have gone the way after ``within`` [s]."""
    return 1.0 if within is None else 1.0 / (1.0 - math.exp(-rate * within))


class GripperMap:
    """The gripper's share of an action: one dimension, -1 commanded closed, +1 open, all driven joints together."""

    def __init__(self, robot: Limb) -> None:
        self.size = 1 if robot.drivers else 0
        if self.size:
            device = robot.limits.device
            opened = torch.tensor(robot.gripper.open_q, device=device)
            closed = torch.tensor(robot.gripper.closed_q, device=device)
            self._middle, self._half = (opened + closed) / 2, (opened - closed) / 2

    def __call__(self, action: Tensor) -> Tensor:
        """Driver targets (n, drivers) [rad or m] of the last column of ``action``."""
        return torch.addcmul(self._middle, action[:, -1:], self._half)

    def dims(self) -> tuple[ActionDim, ...]:
        """Card entries."""
        if not self.size:
            return ()
        return (
            ActionDim(name="gripper", unit="opening", frame="gripper", reference="absolute", scale=0.5, offset=0.5),
        )


class JointController(OncePerStep):
    """Joint position (absolute, delta on measured, delta on commanded) and joint velocity.

    ``joint_pos``: [-1, 1] spans the joint's range. ``joint_delta_pos``: adds to the measured position.
    ``joint_target_delta_pos``: adds to the commanded position, so that delays and load do not swallow motion.
    ``joint_vel``: the commanded position advances at the given velocity, at most ``lead`` ahead of the measured one.
    """

    lead = 0.5  # [rad or m] a velocity command never winds up further than this

    def __init__(self, control: Control, robot: Limb, control_hz: float) -> None:
        name, arm = control.word, robot.arm
        self.name, self._n, self.rate = name, len(arm.joints), servo_rate(arm)
        self._gripper = GripperMap(robot)
        device, ranges = robot.limits.device, robot.ranges[: self._n]  # the card's numbers are made on the host
        low, high = ranges.unbind(1)
        step = torch.tensor(arm.joint_delta or (0.1,) * self._n, device="cpu")
        middle = torch.zeros(self._n, device="cpu")
        per, reference = "", "measured"
        if name == "joint_pos":
            middle, step, reference = (low + high) / 2, (high - low) / 2, "absolute"
        elif name == "joint_target_delta_pos":
            reference = "commanded"
        elif name == "joint_vel":
            step, per, reference = torch.full((self._n,), arm.joint_speed, device="cpu"), "/s", "absolute"
        self._low, self._high, self._middle = low.to(device).clone(), high.to(device).clone(), middle.to(device)
        self._dt, self._absolute = 1.0 / control_hz, name == "joint_pos"
        # [rad or m] per control step at +1
        self._move = (step * self._dt if name == "joint_vel" else step).to(device)
        self._keeps_target = name in ("joint_target_delta_pos", "joint_vel")
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
        self.card = ActionCard(controller=name, robot=arm.name, dims=(*dims, *self._gripper.dims()))

    def start(self, reading: Reading) -> Tensor:
        return (
            reading.ctrl[:, : self._n].clone() if self._keeps_target else reading.ctrl.new_zeros(len(reading.ctrl), 0)
        )

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        n = self._n
        measured = reading.qpos[:, :n]
        base = self._middle if self._absolute else carry if self._keeps_target else measured
        arm = torch.addcmul(base, action[:, :n], self._move)
        if self.name == "joint_vel":
            arm = torch.clamp(arm, measured - self.lead, measured + self.lead)
        arm = torch.clamp(arm, self._low, self._high)
        ctrl = torch.cat([arm, self._gripper(action)], 1) if self._gripper.size else arm
        return ctrl, arm if self._keeps_target else carry

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        measured = reading.qpos[:, : self._n]
        base = self._middle if self._absolute else carry if self._keeps_target else measured
        if within is not None:
            qpos = measured + (qpos - measured) * servo_gain(self.rate, within)
        arm = (qpos - base) / self._move
        if not self._absolute:  # one factor for all joints, so that a long way is a straight way
            arm = arm / arm.abs().amax(1, keepdim=True).clamp_min(1.0)
        arm = arm.clamp(-1, 1)
        return torch.cat([arm, arm.new_zeros(len(arm), self._gripper.size)], 1)
