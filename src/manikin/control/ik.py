"""Batched inverse kinematics: damped least squares on MuJoCo's kinematics, joint limits respected.

Solved on a model of the robot alone, in the robot's base frame, in float64. A row's result does not depend on the other
rows: it stops changing when it has converged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch
from mujoco import batch
from torch import Tensor

from manikin.math import quat_conj, quat_mul, quat_to_rotvec
from manikin.scene.robot import assemble
from manikin.sim.device import processors
from manikin.spec.robot import GripperSpec, RobotSpec

if TYPE_CHECKING:
    from manikin.sim.warp.kernels.arm import WarpArm

__all__ = ["Chain", "IkResult", "IkSolver"]

_NONE, _POS = int(mujoco.mjtStage.mjSTAGE_NONE), int(mujoco.mjtStage.mjSTAGE_POS)
_CPU = torch.device("cpu")
_BASE_EASE = 0.3  # a base moves where an arm alone would move much: its metre or radian counts as so many more


@dataclass(frozen=True)
class IkResult:
    """Solution of n problems.

    Attributes:
        q: (n, joints) [rad] float64, within the limits; the best found where not reached.
        reached: (n,) bool, both errors within tolerance.
        pos_error: (n,) [m].
        rot_error: (n,) [rad].
    """

    q: Tensor
    reached: Tensor
    pos_error: Tensor
    rot_error: Tensor


class Chain:
    """Kinematics of one tool in the robot's base frame: TCP pose and Jacobian of (n, joints) configurations.

    On the CPU it is MuJoCo's; on a GPU a kernel of Warp's computes the same.
    """

    def __init__(
        self, arm: RobotSpec, gripper: GripperSpec | None, device: torch.device = _CPU, *, tool: str = ""
    ) -> None:
        robot = assemble(arm, gripper)
        spec = robot.spec
        spec.option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_EQUALITY)
        model = spec.compile()
        self._model, self.device, self._made_of = model, device, (arm, gripper)
        self.tool = tool or robot.tools[0].name
        joints = [model.joint(name).id for name in robot.arm_joints]
        self._qadr, self._joints = np.array([int(model.jnt_qposadr[j]) for j in joints]), np.array(joints)
        slide = [int(model.jnt_type[j]) == int(mujoco.mjtJoint.mjJNT_SLIDE) for j in joints]
        self._slide, self._slides = torch.tensor(slide, device=device), any(slide)
        self._tcp = int(model.body(next(t.tcp_body for t in robot.tools if t.name == self.tool)).id)
        commanded = [int(model.actuator(name).id) for name in robot.arm_actuators]
        self.limits = torch.tensor(model.actuator_ctrlrange[commanded].tolist(), dtype=torch.float64, device=device)
        moved = [name in arm.ik_joints for name in arm.joints]  # the others stay where they start
        self.moved = torch.tensor(moved, device=device)
        base = arm.base.joints if arm.base.drives and set(arm.base.joints) <= set(arm.ik_joints) else ()
        self.base = tuple(arm.joints.index(name) for name in base)  # x, y and yaw of a base that takes part
        self.rolls = bool(base) and arm.base.kind == "differential"  # it moves forward and turns, never sideways
        ease = [_BASE_EASE if name in base else 1.0 for name in arm.joints]
        self.ease = torch.tensor(ease, dtype=torch.float64, device=device)
        self.free = self.ease * self.moved
        self.pulled = torch.tensor([name not in base for name in arm.joints], device=device)  # to rest
        self.rest = torch.tensor(arm.keyframes["rest"], dtype=torch.float64, device=device)
        self.size = len(joints)
        self.on_device: WarpArm | None = None
        if device.type == "cpu":
            self._grow(1)
        else:
            self.on_device = self.warp()

    @cached_property
    def host(self) -> Chain:
        """The same on the CPU."""
        return self if self.device.type == "cpu" else Chain(*self._made_of, tool=self.tool)

    def of_groups(self, names: tuple[str, ...], tool: str) -> Chain:
        """The same robot's kinematics of a tool, of which inverse kinematics moves these groups of joints."""
        arm, gripper = self._made_of
        if tool == self.tool and arm.ik_joints == tuple(j for name in names for j in arm.groups[name].joints):
            return self
        return Chain(replace(arm, ik_groups=names), gripper, self.device, tool=tool)

    def solver(self, rotation_weight: float) -> IkSolver:
        """Its inverse kinematics; see :class:`IkSolver`."""
        return IkSolver(self, rotation_weight=rotation_weight)

    def warp(self) -> WarpArm:
        """The same as kernels of Warp's."""
        from manikin.sim.warp.kernels.arm import WarpArm

        rolls = self.base if self.rolls else ()
        given = self._model, self._joints.tolist(), self._tcp, self.limits, self.rest, self.moved
        return WarpArm(*given, ease=self.ease, pulled=self.pulled, rolls=rolls)

    def _grow(self, n: int) -> None:
        self._batch = batch.Batch(self._model, n, processors())
        self._outputs = [self._batch.bind(f) for f in ("xpos", "xquat", "xanchor", "xaxis")]
        self._batch.reset(stage=_NONE)  # kinematics alone are asked for
        self._qpos = self._batch.bind("qpos")

    def _solve(self, q: Tensor) -> None:
        n = len(q)
        if self._batch.nsim < n:
            self._grow(n)
        ids = None if self._batch.nsim == n else np.arange(n, dtype=np.int32)
        self._qpos[:n, self._qadr] = q.numpy()
        self._batch.forward(ids, stage=_POS)

    @property
    def rest_pose(self) -> tuple[Tensor, Tensor]:
        """TCP position (3,) [m] and quaternion (4,) at rest, in the base frame."""
        pos, quat = self.fk(self.rest[None])
        return pos[0], quat[0]

    def fk(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """TCP position (n, 3) [m] and quaternion (n, 4) wxyz in the base frame, float64, for q (n, joints)."""
        if self.on_device is not None:
            return self.on_device.forward(q.double())[:2]
        self._solve(q.double())
        xpos, xquat, _, _ = self._outputs
        n = len(q)
        return torch.tensor(xpos[:n, self._tcp]), torch.tensor(xquat[:n, self._tcp])

    def fk_jacobian(self, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """TCP position, quaternion and Jacobian (n, 6, joints): linear [m/rad] above angular, in the base frame."""
        if self.on_device is not None:
            pos, quat, anchor, axis = self.on_device.forward(q.double())
        else:
            pos, quat = self.fk(q)
            _, _, anchors, axes = self._outputs
            n = len(q)
            anchor, axis = torch.tensor(anchors[:n, self._joints]), torch.tensor(axes[:n, self._joints])
        linear = torch.linalg.cross(axis, pos[:, None] - anchor)
        if self._slides:
            linear = torch.where(self._slide[:, None], axis, linear)
            axis = axis * ~self._slide[:, None]
        return pos, quat, torch.cat([linear, axis], 2).transpose(1, 2)


class IkSolver:
    """Finds joint positions for TCP poses in the base frame.

    Args:
        chain: the arm.
        rotation_weight: [m/rad] how much a rotation error counts against a position error; 0 leaves rotation free.
    """

    def __init__(self, chain: Chain, *, rotation_weight: float = 0.2) -> None:
        self.chain = chain
        self._rotation_weight = rotation_weight
        self._weight = torch.tensor([1.0] * 3 + [rotation_weight] * 3, dtype=torch.float64, device=chain.device)
        self.free_rotation = rotation_weight == 0

    @cached_property
    def host(self) -> IkSolver:
        """The same on the CPU."""
        own = self.chain.device.type == "cpu"
        return self if own else IkSolver(self.chain.host, rotation_weight=self._rotation_weight)

    def solve(
        self,
        pos: Tensor,
        quat: Tensor,
        start: Tensor,
        *,
        iterations: int = 60,
        restarts: int = 0,
        pos_tolerance: float = 1e-4,
        rot_tolerance: float = 1e-3,
        posture: float = 0.02,
    ) -> IkResult:
        """Solve for pos (n, 3) [m] and quat (n, 4) wxyz from ``start`` (n, joints).

        Rows that do not converge are tried again from up to ``restarts`` other configurations, the same ones for every
        row: the rest pose, then points spread over the joint ranges. ``posture`` pulls redundant joints towards rest.
        """
        pos, quat, start = pos.double(), quat.double(), start.double()
        how = (iterations, pos_tolerance, rot_tolerance, posture)
        if self.chain.on_device is not None:
            begin = torch.stack([start, *(self._restart(k, start) for k in range(restarts))], 1)
            return self._descend_on_device(pos, quat, begin, *how)
        best = self._descend(pos, quat, start, *how)
        for attempt in range(restarts):
            todo = torch.nonzero(~best.reached).squeeze(1)
            if not len(todo):
                break
            again = self._descend(pos[todo], quat[todo], self._restart(attempt, start[todo]), *how)
            better = self._cost(again) < self._cost(best)[todo]
            rows = todo[better]
            for name in ("q", "reached", "pos_error", "rot_error"):
                getattr(best, name)[rows] = getattr(again, name)[better]
        return best

    def solutions(
        self,
        pos: Tensor,
        quat: Tensor,
        start: Tensor,
        *,
        count: int = 8,
        iterations: int = 60,
        pos_tolerance: float = 1e-4,
        rot_tolerance: float = 1e-3,
        posture: float = 0.02,
    ) -> IkResult:
        """What ``count`` starts lead to, for each of n problems: n * count results, those of a problem in a row.

        The first start is ``start``, the others are those of ``solve``. Within the joint limits, like all that is found
        here; several may be the same configuration.
        """
        pos, quat, start = pos.double(), quat.double(), start.double()
        begin = torch.stack([start, *(self._restart(k, start) for k in range(count - 1))], 1)
        pos, quat, begin = pos.repeat_interleave(count, 0), quat.repeat_interleave(count, 0), begin.flatten(0, 1)
        how = (iterations, pos_tolerance, rot_tolerance, posture)
        if self.chain.on_device is not None:
            return self._descend_on_device(pos, quat, begin[:, None], *how)
        return self._descend(pos, quat, begin, *how)

    def _descend_on_device(
        self, pos: Tensor, quat: Tensor, starts: Tensor, iterations: int, pos_tol: float, rot_tol: float, posture: float
    ) -> IkResult:
        """From each of ``starts`` (n, attempts, joints) in turn until one arrives."""
        assert self.chain.on_device is not None
        found = self.chain.on_device.descend(
            pos,
            quat,
            starts,
            iterations=iterations,
            pos_tolerance=pos_tol,
            rot_tolerance=rot_tol,
            rotation_weight=self._rotation_weight,
            posture=posture,
        )
        return IkResult(*found)

    def _cost(self, result: IkResult) -> Tensor:
        cost = result.pos_error + self._weight[-1] * result.rot_error
        return torch.where(result.reached, cost - 1e3, cost)

    def _restart(self, attempt: int, start: Tensor) -> Tensor:
        limits = self.chain.limits
        if attempt == 0:
            return torch.where(self.chain.moved, self.chain.rest, start)
        # additive recurrence with irrational steps: spread out, no generator needed
        steps = torch.arange(1, self.chain.size + 1, dtype=torch.float64, device=self.chain.device).sqrt()
        share = torch.frac(attempt * steps * 0.6180339887498949)
        spread = limits[:, 0] + share * (limits[:, 1] - limits[:, 0])
        return torch.where(self.chain.moved, 0.5 * (spread + self.chain.rest), start)

    def _descend(
        self, pos: Tensor, quat: Tensor, start: Tensor, iterations: int, pos_tol: float, rot_tol: float, posture: float
    ) -> IkResult:
        chain, low, high = self.chain, self.chain.limits[:, 0], self.chain.limits[:, 1]
        n = len(start)
        q = torch.minimum(torch.maximum(start, low), high)
        least = torch.full((n,), np.inf, dtype=torch.float64)
        best = IkResult(q.clone(), torch.zeros(n, dtype=torch.bool), least.clone(), least.clone())
        rows = torch.arange(n)  # those still moving; each row's arithmetic is its own
        eye = torch.eye(6, dtype=torch.float64)
        eye_q = torch.eye(chain.size, dtype=torch.float64)
        damping = torch.full((n, 1, 1), 1e-3, dtype=torch.float64)
        last = torch.full((n,), np.inf, dtype=torch.float64)
        for step in range(iterations + 1):
            at, rot, jac = chain.fk_jacobian(q)
            error_pos = pos - at
            error_rot = quat_to_rotvec(quat_mul(quat, quat_conj(rot)))
            size_pos, size_rot = (error_pos**2).sum(1).sqrt(), (error_rot**2).sum(1).sqrt()
            cost = size_pos + self._weight[-1] * size_rot
            done = (size_pos < pos_tol) & ((size_rot < rot_tol) | self.free_rotation)
            improved = done | (cost < least[rows])
            these = torch.nonzero(improved).squeeze(1)
            at_rows = rows.index_select(0, these)
            found = (
                (least, cost),
                (best.q, q),
                (best.reached, done),
                (best.pos_error, size_pos),
                (best.rot_error, size_rot),
            )
            for kept, now in found:
                kept.index_copy_(0, at_rows, now.index_select(0, these))
            go = torch.nonzero(~done).squeeze(1)
            if step == iterations or not len(go):
                break
            if len(go) < len(rows):
                rows, pos, quat, q, jac, cost, damping, last, error_pos, error_rot = (
                    value.index_select(0, go)
                    for value in (rows, pos, quat, q, jac, cost, damping, last, error_pos, error_rot)
                )
            damping = torch.where((cost > last)[:, None, None], damping * 4, (damping * 0.5).clamp_min(1e-6)).clamp_max(
                1.0
            )
            last = cost
            error = (torch.cat([error_pos, error_rot], 1) * self._weight)[:, :, None]
            weighted = jac * self._weight[:, None]
            q = self._step(q, weighted, error, damping, eye, eye_q, posture, low, high)
        return best

    def _step(
        self,
        q: Tensor,
        jac: Tensor,
        error: Tensor,
        damping: Tensor,
        eye: Tensor,
        eye_q: Tensor,
        posture: float,
        low: Tensor,
        high: Tensor,
    ) -> Tensor:
        """One damped step; a joint that would leave its range is held there and the others solve again."""
        chain = self.chain
        free = chain.free.expand_as(q)  # how easily a joint moves; 0 holds it
        if chain.rolls:
            jac = self._rolling(q, jac)
        for again in (False, True):
            active = jac * free[:, None]
            square = active @ active.transpose(1, 2) + damping * eye
            # does not see whether it could: never singular
            inverse = torch.linalg.solve_ex(square, torch.cat([error, active], 2)).result  # (n, 6, 1 + joints)
            move = (active.transpose(1, 2) @ inverse[:, :, :1]).squeeze(2)
            if chain.base:
                move = move * chain.ease
            if posture:
                null = eye_q - active.transpose(1, 2) @ inverse[:, :, 1:]
                pull = posture * (chain.rest - q)
                if chain.base:
                    pull = pull * chain.pulled
                move = move + (null @ pull[:, :, None]).squeeze(2) * free
            largest = move.abs().amax(1, keepdim=True)
            move = move * (0.3 / largest.clamp_min(0.3))  # at most 0.3 rad at once
            if chain.rolls:
                move = self._along(q, move)
            aimed = q + move
            held = torch.minimum(torch.maximum(aimed, low), high)
            out = held != aimed  # of joints that were within their ranges
            if again or not out.any():
                break
            free = torch.where(out, torch.zeros_like(free), free)
        return held

    def _rolling(self, q: Tensor, jac: Tensor) -> Tensor:
        """The Jacobian of a base that cannot move sideways: x is its way forward, y nothing."""
        x, y, yaw = self.chain.base
        jac = jac.clone()
        cos, sin = torch.cos(q[:, yaw, None]), torch.sin(q[:, yaw, None])
        jac[:, :, x] = cos * jac[:, :, x] + sin * jac[:, :, y]
        jac[:, :, y] = 0.0
        return jac

    def _along(self, q: Tensor, move: Tensor) -> Tensor:
        """A move whose x is the way forward, as x and y: along the heading halfway through the turn."""
        x, y, yaw = self.chain.base
        move = move.clone()
        heading, forward = q[:, yaw] + 0.5 * move[:, yaw], move[:, x].clone()
        move[:, x], move[:, y] = forward * torch.cos(heading), forward * torch.sin(heading)
        return move
