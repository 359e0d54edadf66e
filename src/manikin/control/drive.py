"""A controller of a base that drives: velocities in the base's own frame, as a driver means them."""

from __future__ import annotations

import torch
from torch import Tensor

from manikin.control.base import Limb, OncePerStep, Reading
from manikin.control.joint import servo_gain, servo_rate
from manikin.errors import ConfigError
from manikin.math import yaw_rotate
from manikin.spec.action import ActionCard, ActionDim
from manikin.spec.control import Control

__all__ = ["BaseVelocity", "Carried"]


class BaseVelocity(OncePerStep):
    """``base_vel``: forward, left and turn of a planar base, forward and turn of a differential one, in the frame of
    the base where it now is. The commanded pose advances at that velocity, at most ``lead`` ahead of the measured one.
    """

    lead = 0.3  # [m or rad], or [s] of a base that is faster than 1

    def __init__(self, control: Control, robot: Limb, control_hz: float) -> None:
        base = robot.arm.base
        if robot.arm.joints != base.joints:
            others = ", ".join(f"{name}: ..." for name in robot.arm.groups if name != "base")
            raise ConfigError(f'base_vel drives the base alone: write "base: base_vel, {others}"')
        self.name, self._n, self.rate = control.word, 3, servo_rate(robot.arm)
        self._dt = 1.0 / control_hz
        ways = ("forward", "left", "turn") if base.kind == "planar" else ("forward", "turn")
        self._at = slice(0, 3, 4 - len(ways))  # of the base's joints those that an action moves
        speeds = robot.arm.joint_speed[:3][self._at]
        self._speed = torch.tensor(speeds, device=robot.limits.device)
        self._low, self._high = robot.limits[:3].unbind(1)
        lead = [self.lead * max(1.0, speed) for speed in robot.arm.joint_speed]
        self._lead = torch.tensor(lead, device=robot.limits.device)
        self.card = ActionCard(
            controller=self.name,
            robot=robot.arm.name,
            dims=tuple(
                ActionDim(
                    name=way, unit="rad/s" if way == "turn" else "m/s", frame="base", reference="absolute", scale=speed
                )
                for way, speed in zip(ways, speeds, strict=True)
            ),
            notes="" if base.kind == "planar" else "it cannot move sideways",
        )

    def start(self, reading: Reading) -> Tensor:
        return reading.ctrl[:, :3].clone()

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        given = action * self._speed
        own = torch.zeros_like(carry)
        own[:, self._at] = given
        measured = reading.qpos[:, :3]
        goal = carry + yaw_rotate(own, measured[:, 2]) * self._dt
        near = torch.clamp(goal, measured - self._lead, measured + self._lead)
        ctrl = torch.clamp(near, self._low, self._high)
        return ctrl, ctrl

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        measured = reading.qpos[:, :3]
        # the commanded pose goes so far ahead of the measured one that the servo is at qpos in time
        way = measured + (qpos - measured) * servo_gain(self.rate, within or self._dt) - carry
        velocity = yaw_rotate(way, -measured[:, 2]) / (self._dt if within is None else within)
        action = velocity[:, self._at] / self._speed
        return action / action.abs().amax(1, keepdim=True).clamp_min(1.0)


class Carried:
    """Joints of a base that drives, among those that one controller moves: what it may be asked for at once.

    A servo follows a moving command at a distance of speed / rate. The base is never asked for more than that of what
    +1 of ``base_vel`` means, and one with two driven wheels is asked for nothing sideways. Its servo is slower than
    those of an arm, so it is asked for so much more, and both arrive together.
    """

    def __init__(self, robot: Limb) -> None:
        arm = robot.arm
        self._at = [arm.joints.index(joint) for joint in arm.base.joints]
        kp, kd, speed = arm.gains.kp, arm.gains.kd, arm.joint_speed
        lag = [kd[k] / kp[k] for k in self._at]
        lead = [speed[k] * late for k, late in zip(self._at, lag, strict=True)]
        table = torch.tensor([lead, [late * servo_rate(arm) for late in lag]], dtype=torch.float64, device="cpu")
        self._lead, self._more = table.to(robot.limits.device)
        self._sideways = arm.base.kind == "planar"

    def __call__(self, q: Tensor, to: Tensor) -> Tensor:
        """(n, joints) where all joints are asked to go, from ``q`` towards ``to``: one factor for all of them, so that
        the tool goes straight."""
        heading = q[:, self._at[2]]
        way = yaw_rotate((to - q)[:, self._at], -heading) * self._more
        if not self._sideways:
            way[:, 1] = 0.0
        factor = 1.0 / (way.abs() / self._lead).amax(1).clamp_min(1.0)
        move = to - q
        move[:, self._at] = yaw_rotate(way, heading)
        return q + move * factor[:, None]
