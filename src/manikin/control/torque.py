"""Controllers that command torques at every physics step. See ``docs/controllers.md`` for their laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from manikin.control.base import Drive, Kinematics, Limb, Reading
from manikin.control.dynamics import Dynamics
from manikin.control.goal import GainActions, PoseGoal
from manikin.control.joint import GripperMap
from manikin.control.numerics.law import (
    Array,
    clip,
    joint_law,
    operational,
    operational_torque,
    orientation_error,
    step_response,
)
from manikin.control.numerics.operational_code import OperationalProgram
from manikin.errors import ConfigError
from manikin.math import (
    pose_mul,
    quat_conj,
    quat_from_rotvec,
    quat_mul,
    quat_slerp,
    quat_to_matrix,
    quat_to_rotvec,
)
from manikin.spec.action import ActionCard, ActionDim
from manikin.spec.control import Control

__all__ = ["JointImpedance", "JointTorque", "JointVelocity", "OperationalSpace"]

_DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")


class _TorqueController:
    """What they share. The carry's columns are in ``_columns``; the arm's torques start from where it is."""

    every_substep = torques = True
    rate = 0.0
    gains: GainActions | None = None
    _fixed: tuple[Array, Array] | None = None  # stiffness and damping that no action changes

    def __init__(self, control: Control, robot: Limb, control_hz: float, columns: dict[str, int]) -> None:
        self.name, self.control, self._robot = control.word, control, robot
        self._n = len(robot.arm.joints)
        self._gripper = GripperMap(robot)
        world = robot.scope.world
        self._substeps = max(1, round(1.0 / (control_hz * world.timestep)))
        self._dt = world.timestep
        ends = list(accumulate(columns.values()))
        self._columns = {k: slice(end - w, end) for (k, w), end in zip(columns.items(), ends, strict=True)}
        self.dynamics = Dynamics(robot, robot.arm.joints, operational=control.name.startswith("osc"))

    def _make_card(self, dims: Sequence[ActionDim]) -> None:
        gains = self.gains.dims if self.gains is not None else ()
        self._moves = slice(len(gains), len(gains) + len(dims))
        self.card = ActionCard(
            controller=self.name,
            robot=self._robot.arm.name,
            dims=(*gains, *dims, *self._gripper.dims()),
            when="every physics step",
        )

    def _command(self, reading: Reading, action: Tensor) -> Tensor:
        """The gripper's command beside the arm's present torque, which the first physics step replaces."""
        arm = reading.ctrl[:, : self._n]
        return torch.cat([arm, self._gripper(action)], 1) if self._gripper.size else arm

    def _action(self, moves: Tensor) -> Tensor:
        """(n, size) with the usual gains before the moves."""
        parts = [moves.float(), moves.new_zeros(len(moves), self._gripper.size).float()]
        if self.gains is not None:
            parts = [self.gains.usual.expand(len(moves), -1), *parts]
        return torch.cat(parts, 1)

    def part(self, carry: Tensor, name: str) -> Tensor:
        return carry[:, self._columns[name]]

    def _stiffness(self, carry: Tensor) -> tuple[Array, Array]:
        """(N, k) stiffness [1/s^2] and damping [1/s] of each direction."""
        assert self.gains is not None
        if self._fixed is not None:
            return self._fixed
        ratio, kp = self.part(carry, "gains").double().chunk(2, 1)
        found = self.dynamics.array(kp), self.dynamics.array(2.0 * kp.sqrt() * ratio)
        if not self.gains.size:
            self._fixed = found
        return found

    def _drive(self, torque: Callable[[int], Array], rows: np.ndarray | None, carry: Callable[[], Tensor]) -> Drive:
        dynamics = self.dynamics

        def apply(value: Array) -> None:
            dynamics.apply(clip(value, dynamics.low, dynamics.high), rows)

        return Drive(torque, apply, carry)

    @property
    def _ramp_steps(self) -> int:
        """Physics steps until the goal is where the action puts it."""
        return max(1, math.ceil(self.control.ramp * self._substeps))

    def hold(self, carry: Tensor, reading: Reading) -> Tensor:
        return self._action(reading.qpos.new_zeros(len(reading.qpos), self._moves.stop - self._moves.start))


class OperationalSpace(_TorqueController):
    """``osc_pose`` and ``osc_position``: the tool behaves like unit masses on springs and dampers that pull it to the
    goal; the second keeps the orientation of the episode's start. Joints that the tool does not need are drawn to their
    posture at the start.

    A zero rotation leaves the orientation goal where it is, so that it does not creep.
    """

    reach = 1.0  # [m] half width of the cube that absolute goals span
    sharpest = 1.4  # [rad] the law goes by the sine of the turn, which falls off beyond a right angle

    def __init__(self, control: Control, robot: Limb, chain: Kinematics, control_hz: float) -> None:
        self.gains = GainActions(control, _DIRECTIONS, control.frame, robot.limits.device)
        n = len(robot.arm.joints)
        super().__init__(control, robot, control_hz, {"from": 7, "goal": 7, "posture": n, "gains": 12})
        self._chain, absolute = chain, control.goal == "absolute"
        self._pose = PoseGoal(
            frame=control.frame,
            poses="world",
            reference=control.goal,
            pos=self.reach if absolute else control.pos,
            rot=math.pi if absolute else control.rot,
            turns=control.name == "osc_pose",
            base=robot.base_pose,
            straight=robot.stands_straight,
            rest=chain.rest_pose[1],
        )
        self._base = robot.base_pose.double()
        self.rate = math.sqrt(control.kp) / (2.0 * max(control.damping_ratio, 1.0))
        d = self.dynamics
        self._program = (
            OperationalProgram(d.n, d.size, uncouple=control.uncouple, posture=control.posture, every=control.refresh)
            if d.numpy
            else None
        )
        self._eye = self.dynamics.array(np.tile(np.eye(6), (self.dynamics.n, 1, 1)))
        self._make_card(self._pose.dims())

    def start(self, reading: Reading) -> Tensor:
        assert self.gains is not None
        pose = reading.tcp_pose
        return torch.cat([pose, pose, reading.qpos[:, : self._n], self.gains.start(len(pose))], 1)

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        assert self.gains is not None
        goal, move = self.part(carry, "goal"), action[:, self._moves]
        start = self._from(carry, reading)
        pos, quat = self._pose(start[:, :3], start[:, 3:], move)
        if not self._pose.turns:
            quat = goal[:, 3:]
        elif not self._pose.absolute:  # no rotation asked for keeps the orientation goal
            quat = torch.where((move[:, 3:] == 0).all(1, keepdim=True), goal[:, 3:], quat)
        parts = [start, pos, quat, self.part(carry, "posture"), self.gains(action)]
        return self._command(reading, action), torch.cat(parts, 1)

    def _from(self, carry: Tensor, reading: Reading) -> Tensor:
        """(n, 7) what a relative action adds to."""
        return self.part(carry, "goal") if self._pose.reference == "commanded" else reading.tcp_pose

    def drive(self, carry: Tensor, rows: np.ndarray | None) -> Drive:
        d, refresh, uncouple = self.dynamics, self.control.refresh, self.control.uncouple
        stiffness, damping = self._stiffness(carry)
        posture, keep = d.array(self.part(carry, "posture")), self.control.posture
        goals = self.goals_between(self.part(carry, "from").double(), self.part(carry, "goal").double())
        if self._program is not None:
            return self._drive(self._straight(posture, stiffness, damping, goals), rows, lambda: carry)
        kept: dict[str, Array] = {}

        def torque(substep: int) -> Array:
            if substep % refresh == 0:
                kept["jacobian"] = d.jacobian()
                kept["to_torque"], kept["null"] = operational(
                    kept["jacobian"], d.inertia(), self._eye, uncouple=uncouple
                )
            pos, rotation = goals[min(substep, len(goals) - 1)]
            qvel = d.qvel
            return d.compensation() + operational_torque(
                (kept["to_torque"], kept["null"]),
                kept["jacobian"],
                pos - d.tcp_pos,
                orientation_error(d.tcp_rotation, rotation),
                qvel,
                stiffness,
                damping,
                posture - d.qpos,
                keep,
            )

        return self._drive(torque, rows, lambda: carry)

    def _straight(
        self, posture: Array, stiffness: Array, damping: Array, goals: list[tuple[Array, Array]]
    ) -> Callable[[int], Array]:
        """The same on the CPU; see :mod:`manikin.control.numerics.operational_code`."""
        d, program = self.dynamics, self._program
        assert program is not None
        wanted = [np.concatenate([posture, stiffness, damping, pos, turn.reshape(-1, 9)], 1) for pos, turn in goals]

        def configuration() -> tuple[Array, Array, Array]:
            return d.motion, d.offset, d.inertia_half

        def torque(substep: int) -> Array:
            return program.torque(substep, configuration, *d.state_parts, wanted[min(substep, len(wanted) - 1)])

        return torque

    def goals_between(self, start: Tensor, goal: Tensor) -> list[tuple[Array, Array]]:
        """Position and rotation matrix to reach at each physics step of the ramp."""
        steps, found = self._ramp_steps, []
        for k in range(1, steps + 1):
            share = k / steps
            pos = goal[:, :3] if k == steps else torch.lerp(start[:, :3], goal[:, :3], share)
            quat = goal[:, 3:] if k == steps else quat_slerp(start[:, 3:], goal[:, 3:], share)
            found.append((self.dynamics.array(pos), self.dynamics.array(quat_to_matrix(quat))))
        return found

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        start = self._from(carry, reading).double()
        to = torch.cat(self._chain.fk(qpos), 1)
        to = pose_mul(self._base.expand_as(to), to)
        if within is not None:
            to = self._beyond(reading.tcp_pose.double(), to, within)
        move = self._pose.inverse(start[:, :3], start[:, 3:], to[:, :3], to[:, 3:])
        # one factor for all dimensions, so that a long way is a straight way
        return self._action(move / move.abs().amax(1, keepdim=True).clamp_min(1.0))

    def _beyond(self, at: Tensor, to: Tensor, within: float) -> Tensor:
        """(n, 7) the goal that brings the tool from ``at`` to ``to``."""
        d = self.dynamics
        keeps, coasts = step_response(self.control.kp, self.control.damping_ratio, within)
        speed = (torch.as_tensor(d.jacobian()).double() @ torch.as_tensor(d.qvel).double()[..., None])[..., 0]
        coasted = speed * coasts
        shift = (to[:, :3] - at[:, :3] - coasted[:, :3]) / (1.0 - keeps)
        turn = (quat_to_rotvec(quat_mul(to[:, 3:], quat_conj(at[:, 3:]))) - coasted[:, 3:]) / (1.0 - keeps)
        angle = turn.square().sum(1, keepdim=True).sqrt()
        turn = turn * (self.sharpest / angle.clamp_min(self.sharpest))
        return torch.cat([at[:, :3] + shift, quat_mul(quat_from_rotvec(turn), at[:, 3:])], 1)

    def hold(self, carry: Tensor, reading: Reading) -> Tensor:
        if not self._pose.absolute:
            return super().hold(carry, reading)
        goal = self.part(carry, "goal").double()
        return self._action(self._pose.inverse(goal[:, :3], goal[:, 3:], goal[:, :3], goal[:, 3:]))


class JointImpedance(_TorqueController):
    """``joint_impedance``: joints behave like unit inertias on springs and dampers, whatever the arm's posture."""

    def __init__(self, control: Control, robot: Limb, control_hz: float) -> None:
        joints = robot.arm.joints
        self.gains = GainActions(control, joints, "joint", robot.limits.device)
        n = len(joints)
        super().__init__(control, robot, control_hz, {"from": n, "goal": n, "gains": 2 * n})
        device, (low, high) = robot.limits.device, robot.ranges[:n].unbind(1)  # the card's numbers are made on the host
        middle, step = torch.zeros(n, device="cpu"), torch.full((n,), control.step, device="cpu")
        self._absolute = control.goal == "absolute"
        if self._absolute:
            middle, step = (low + high) / 2, (high - low) / 2
        self._low, self._high = low.to(device).clone(), high.to(device).clone()
        self._middle, self._step = middle.to(device), step.to(device)
        self.rate = math.sqrt(control.kp) / (2.0 * max(control.damping_ratio, 1.0))
        self._make_card(
            [
                ActionDim(name=j, unit="rad", frame="joint", reference=control.goal, scale=s, offset=m)
                for j, s, m in zip(joints, step.tolist(), middle.tolist(), strict=True)
            ]
        )

    def start(self, reading: Reading) -> Tensor:
        assert self.gains is not None
        q = reading.qpos[:, : self._n]
        return torch.cat([q, q, self.gains.start(len(q))], 1)

    def _base(self, carry: Tensor, reading: Reading) -> Tensor:
        """(n, joints) what a relative action adds to."""
        return self.part(carry, "goal") if self.control.goal == "commanded" else reading.qpos[:, : self._n]

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        assert self.gains is not None
        base = self._base(carry, reading)
        goal = torch.addcmul(self._middle if self._absolute else base, action[:, self._moves], self._step)
        goal = torch.clamp(goal, self._low, self._high)
        return self._command(reading, action), torch.cat([base, goal, self.gains(action)], 1)

    def drive(self, carry: Tensor, rows: np.ndarray | None) -> Drive:
        d, refresh, steps = self.dynamics, self.control.refresh, self._ramp_steps
        stiffness, damping = self._stiffness(carry)
        start, goal = d.array(self.part(carry, "from").double()), d.array(self.part(carry, "goal").double())
        kept: dict[str, Array] = {}

        def torque(substep: int) -> Array:
            if substep % refresh == 0:
                kept["inertia"] = d.inertia()
            now = goal if substep + 1 >= steps else start + (goal - start) * ((substep + 1) / steps)
            return d.compensation() + joint_law(kept["inertia"], now - d.qpos, d.qvel, stiffness, damping)

        return self._drive(torque, rows, lambda: carry)

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        if within is not None:
            keeps, coasts = step_response(self.control.kp, self.control.damping_ratio, within)
            at = reading.qpos[:, : self._n]
            qpos = at + (qpos - at - coasts * torch.as_tensor(self.dynamics.qvel).float()) / (1.0 - keeps)
        move = (qpos - (self._middle if self._absolute else self._base(carry, reading))) / self._step
        if not self._absolute:
            move = move / move.abs().amax(1, keepdim=True).clamp_min(1.0)
        return self._action(move.clamp(-1, 1))

    def hold(self, carry: Tensor, reading: Reading) -> Tensor:
        if not self._absolute:
            return super().hold(carry, reading)
        return self._action((self.part(carry, "goal") - self._middle) / self._step)


class JointVelocity(_TorqueController):
    """``joint_vel_pid``: torque from the error of joint velocity and its integral, which stands still while a motor is
    at its limit.

    robosuite's derivative term, 2 microseconds times the proportional gain at 500 Hz, is left out.
    """

    integral = 2.5  # [1/s] times the proportional gain: robosuite's 0.005 per physics step at 500 Hz

    def __init__(self, control: Control, robot: Limb, control_hz: float) -> None:
        n = len(robot.arm.joints)
        super().__init__(control, robot, control_hz, {"goal": n, "sum": n})
        self._step = control.step
        self._kp = control.kp * (self.dynamics.high - self.dynamics.low)  # [N m s/rad]
        self.rate = control_hz
        self._make_card(
            [
                ActionDim(name=j, unit="rad/s", frame="joint", reference="absolute", scale=control.step)
                for j in robot.arm.joints
            ]
        )

    def start(self, reading: Reading) -> Tensor:
        return reading.qpos.new_zeros(len(reading.qpos), 2 * self._n)

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        goal = action[:, self._moves] * self._step
        return self._command(reading, action), torch.cat([goal, self.part(carry, "sum")], 1)

    def drive(self, carry: Tensor, rows: np.ndarray | None) -> Drive:
        d = self.dynamics
        goal = d.array(self.part(carry, "goal").double())
        total = [d.array(self.part(carry, "sum").double())]  # [rad]

        def torque(substep: int) -> Array:
            error = goal - d.qvel
            summed = total[0] + error * self._dt
            wanted = d.compensation() + self._kp * (error + self.integral * summed)
            inside = (wanted > d.low) & (wanted < d.high)
            total[0] = total[0] + (summed - total[0]) * inside
            return wanted

        def after() -> Tensor:
            return torch.cat([self.part(carry, "goal"), torch.as_tensor(total[0]).float()], 1)

        return self._drive(torque, rows, after)

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        way = qpos - reading.qpos[:, : self._n]
        if within is None:
            move = way / (self._step * self._dt * self._substeps)
        else:  # inertia * a = kp (asked + integral * sum - speed), where the mean speed counts
            d = self.dynamics
            inertia, kp, speed = (torch.as_tensor(x) for x in (d.inertia(), self._kp, d.qvel))
            needed = 2.0 / (within * within) * (way.to(speed) - within * speed)
            asked = speed + (inertia @ needed[..., None])[..., 0] / kp + 0.5 * within * needed
            move = (asked / self._step).float()
            # what the integral adds is taken back whole; what is left of the range limits the motion
            held = (-self.integral / self._step * self.part(carry, "sum")).clamp(-1.0, 1.0)
            room = ((1.0 - held * move.sign()) / move.abs().clamp_min(1e-9)).amin(1, keepdim=True).clamp_max(1.0)
            return self._action(held + room * move)
        return self._action(move / move.abs().amax(1, keepdim=True).clamp_min(1.0))


class JointTorque(_TorqueController):
    """``joint_torque``: torques on top of what holds the arm against gravity and Coriolis forces, or with
    ``compensate=false`` nothing but the action's torques."""

    def __init__(self, control: Control, robot: Limb, control_hz: float) -> None:
        arm = robot.arm
        super().__init__(control, robot, control_hz, {"goal": len(arm.joints)})
        limits = arm.effort or arm.gains.force
        scales = (control.step,) * len(arm.joints) if control.step else limits
        self._step = torch.tensor(scales, dtype=torch.float32, device=robot.limits.device)
        slides = {joint.name for link in arm.links for joint in link.joints if joint.type == "slide"}
        units = ["N" if j in slides else "N m" for j in arm.joints]
        self._make_card(
            [
                ActionDim(name=j, unit=unit, frame="joint", reference="absolute", scale=scale)
                for j, unit, scale in zip(arm.joints, units, scales, strict=True)
            ]
        )

    def start(self, reading: Reading) -> Tensor:
        return reading.qpos.new_zeros(len(reading.qpos), self._n)

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        return self._command(reading, action), action[:, self._moves] * self._step

    def drive(self, carry: Tensor, rows: np.ndarray | None) -> Drive:
        goal, more = self.dynamics.array(carry.double()), self.dynamics.gravity
        torque = (lambda substep: goal + more()) if self.control.compensate else (lambda substep: goal)
        return self._drive(torque, rows, lambda: carry)

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        if within is None:
            raise ConfigError("joint_torque has no target position, so a move needs a duration: give within=SECONDS")
        d = self.dynamics
        speed = torch.as_tensor(d.qvel)
        way = (qpos - reading.qpos[:, : self._n]).to(speed) - within * speed
        needed = (torch.as_tensor(d.inertia()) @ (2.0 / (within * within) * way)[..., None])[..., 0]
        needed = needed + torch.as_tensor(d.compensation())
        if self.control.compensate:  # then all but the joints' friction is given
            needed = needed - torch.as_tensor(d.gravity())
        move = needed / self._step
        return self._action(move / move.abs().amax(1, keepdim=True).clamp_min(1.0))
