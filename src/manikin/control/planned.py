"""The controller of the Google Robot in SIMPLER (Li et al. 2024, Algorithm 1): an action moves the measured tool, and
inverse kinematics turns that into joint positions. Jerk-limited motions lead there; each physics step commands their
next sample.
"""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import torch
from torch import Tensor

from manikin.control.base import Drive, Limb, Reading
from manikin.control.dynamics import Dynamics
from manikin.control.goal import PoseGoal
from manikin.control.group import GroupChain
from manikin.control.ik import Chain
from manikin.control.joint import GripperMap, servo_rate, straight, tool_between
from manikin.control.numerics.jerk import to_rest
from manikin.control.numerics.law import Array, clip
from manikin.errors import ConfigError
from manikin.spec.action import ActionCard, ActionDim
from manikin.spec.control import Control

__all__ = ["PlannedPose"]

_ITERATIONS = 15
_TOLERANCE = 7e-5  # [m] and [rad]: 1e-4 of both together, as of the original's inverse kinematics
_NEAR, _NEAR_TURN = 0.05, 0.5  # [m], [rad] a pose further beyond the joints' limits counts as out of reach
_FINGERS = (1.0, 7.0, 50.0)  # velocity [rad/s], acceleration [rad/s^2] and jerk [rad/s^3] of the gripper's motions
_SLACK = 0.0101  # [rad] how far beyond open the gripper may be told to go
_STILL, _STILL_ACTION = 1e-3, 0.01  # [rad], and of an action: the code's and the paper's least move of the gripper


class PlannedPose:
    """``ee_delta_pose_planned``: x, y, z [m] and a rotation vector [rad] about the base's axes, relative to the
    measured tool. The gripper's number says how far it opens (+1: all the way) or closes, relative to its last command.

    The arm's motions keep the limits of its ``motion``, all joints arriving together; joints that inverse kinematics
    does not move (a head) are planned with them and asked to stay. Where a pose is out of reach the goal is where the
    arm is; where only a joint's limit is in the way, the nearest pose. The original's inverse kinematics knows no
    limits, and its joints stop at them.

    ``start=plan`` begins the arm's motion where the last one is now and the gripper's where it is measured;
    ``start=measured`` the other way round. The first step of an episode begins where the robot is.

    The force of a servo and its damping together stays within the arm's ``effort``: the command of each physics step
    stays near enough to the joint. The gripper also follows the velocity of its motion: its command is ahead by
    kd / kp times that. A move of the gripper below a threshold keeps its last goal: 0.001 rad, or with
    ``start=measured`` an action of 0.01.
    """

    every_substep, torques = True, False

    def __init__(self, control: Control, robot: Limb, chain: Chain | GroupChain, control_hz: float) -> None:
        arm, world = robot.arm, robot.scope.world
        self.name, self._chain, self._n = control.word, chain, len(arm.joints)
        moved = [joint in arm.ik_joints for joint in arm.joints]
        low, high = robot.limits[: self._n].double().unbind(1)
        self._moved, self._lowest, self._highest = torch.tensor(moved, device=low.device), low + 1e-5, high - 1e-5
        self._measured, self._device = control.start == "measured", robot.limits.device
        self._numpy = isinstance(world.flat("ctrl"), np.ndarray)
        self._solver, self.rate = chain.solver(0.2), servo_rate(arm)
        self._gripper = GripperMap(robot)
        if self._gripper.size > 1:
            raise ConfigError(f"{control.name} moves one gripper, and {arm.name} has {self._gripper.size}")
        hand = robot.gripper.gains if robot.drivers else None
        hands, wide = len(robot.drivers), self._n + len(robot.drivers)
        d = self._dynamics = Dynamics(robot, (*arm.joints, *robot.drivers), operational=False)
        steps = max(1, round(1.0 / (control_hz * world.timestep)))
        self._times = self._array([(k + 1) * world.timestep for k in range(steps)])
        gains = [arm.gains] if hand is None else [arm.gains, hand]
        kp, kd = (self._array([x for one in gains for x in getattr(one, what)]) for what in ("kp", "kd"))
        force = self._array([*(arm.effort or arm.gains.force), *(() if hand is None else hand.force)])
        self._lag, self._room = d.array(kd / kp), d.array(force / kp)  # [s], [rad]
        self._lead = kd / kp * self._array([0.0] * self._n + [1.0] * hands)  # [s]
        motion = [x if len(x) > 1 else x * self._n for x in astuple(arm.motion)[:3]]
        every = zip(("velocity", "acceleration", "jerk"), motion, _FINGERS, strict=True)
        self._limits = {what: self._array([*own, *[finger] * hands]) for what, own, finger in every}
        self._groups = (slice(0, self._n), slice(self._n, wide)) if hands else (slice(0, wide),)
        middle, half = self._gripper.middle.double(), self._gripper.half.double()
        self._opens = 2.0 * half  # [rad] of each finger at +1
        self._low, self._high = middle - half.abs(), middle + half.abs()
        beyond = _SLACK * half.sign()  # an open gripper may be told to go this much further
        self._low, self._high = self._low + beyond.clamp_max(0.0), self._high + beyond.clamp_min(0.0)
        self._pose = PoseGoal(
            frame="base",
            poses="base",
            reference="measured",
            pos=1.0,
            rot=1.0,
            turns=True,
            base=robot.base_pose,
            straight=robot.stands_straight,
            rest=chain.rest_pose[1],
        )
        self._columns = {name: slice(k * wide, (k + 1) * wide) for k, name in enumerate(("at", "speed", "goal"))}
        names = ("gripper",) * self._gripper.size
        fingers = (ActionDim(name=n, unit="opening", frame="gripper", reference="commanded", scale=1.0) for n in names)
        self.card = ActionCard(
            controller=self.name, robot=arm.name, dims=(*self._pose.dims(), *fingers), when="every physics step"
        )

    def _array(self, value: list[float]) -> Array:
        """Float64 of the kind that the physics has."""
        return np.array(value) if self._numpy else torch.tensor(value, dtype=torch.float64, device=self._device)

    def _taken(self, carry: Tensor, name: str) -> Array:
        value = carry[:, self._columns[name]].double()
        return value.numpy() if self._numpy else value

    def start(self, reading: Reading) -> Tensor:
        q = reading.qpos
        return torch.cat([q, reading.qvel, q], 1)

    def goal(self, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        """Commanded TCP position (n, 3) and quaternion (n, 4) in the base frame, float64, before any limit."""
        pos, quat = self._chain.fk(reading.qpos[:, : self._n])
        return self._pose(pos, quat, action.double())

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        q, speed, n = reading.qpos, reading.qvel, self._n
        pos, quat = self.goal(reading, action)
        found = self._solver.solve(
            pos, quat, q[:, :n], iterations=_ITERATIONS, pos_tolerance=_TOLERANCE, rot_tolerance=_TOLERANCE, posture=0.0
        )
        ends = (((found.q <= self._lowest) | (found.q >= self._highest)) & self._moved).any(1)
        near = ends & (found.pos_error < _NEAR) & (found.rot_error < _NEAR_TURN)
        arm = torch.where((found.reached | near)[:, None], found.q.float(), q[:, :n])
        at, was, last = (carry[:, self._columns[name]] for name in ("at", "speed", "goal"))
        parts = [arm]
        if self._gripper.size:
            moves = action[:, -1:].double()
            asked = moves * self._opens
            still = moves.abs() < _STILL_ACTION if self._measured else asked.abs() < _STILL
            there = torch.clamp(at[:, n:] + asked, self._low, self._high)
            parts.append(torch.where(still, last[:, n:].double(), there).float())
        planned, sensed = (at, was), (q, speed)
        of_arm, of_hand = (sensed, planned) if self._measured else (planned, sensed)
        begin = [torch.cat([a[:, :n], b[:, n:]], 1) for a, b in zip(of_arm, of_hand, strict=True)]
        return reading.ctrl.clone(), torch.cat([*begin, *parts], 1)

    def drive(self, carry: Tensor, rows: np.ndarray | None) -> Drive:
        d = self._dynamics
        at, speed, goal = (self._taken(carry, name) for name in ("at", "speed", "goal"))
        q, qd = to_rest(at, speed, goal, **self._limits, groups=self._groups).sample(self._times)
        targets, last = d.array(q + self._lead * qd), len(self._times) - 1  # settling may take longer than a step

        def command(substep: int) -> Array:
            now = d.qpos + self._lag * d.qvel
            return clip(targets[:, min(substep, last)], now - self._room, now + self._room)

        def after() -> Tensor:
            ends = [torch.as_tensor(x[:, -1]).float() for x in (q, qd)]
            return torch.cat([*ends, carry[:, self._columns["goal"]]], 1)

        return Drive(command, lambda value: d.apply(value, rows), after)

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        now, to = reading.qpos[:, : self._n], qpos[:, : self._n]
        pos, quat, to_pos, to_quat = tool_between(self._chain, now, to, self.rate, within)
        move = self._pose.inverse(pos, quat, to_pos, to_quat)
        return straight(move, self._gripper.size)

    def hold(self, carry: Tensor, reading: Reading) -> Tensor:
        return reading.qpos.new_zeros(len(reading.qpos), self.card.size)
