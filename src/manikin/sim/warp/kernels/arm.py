"""Kinematics of an arm and its inverse on a GPU, each row by one thread: one call of a kernel in a CUDA graph.

The law is that of :class:`~manikin.control.ik.IkSolver`, which on a processor takes MuJoCo's kinematics and torch; in
torch's small calls it would be thousands per control step. Tests hold one to the other on Warp's CPU device.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import mujoco
import numpy as np
import torch
import warp as wp
from torch import Tensor

from manikin.sim.warp.library import launch_rows, modules

__all__ = ["WarpArm"]

modules()  # kernels are kept in manikin's folder
wp.set_module_options({"enable_backward": False})


@wp.struct
class _Path:
    """The way from the base to the TCP, joint by joint; what is fixed between two of them is one transform."""

    pos: wp.array[wp.vec3d]  # (joints + 1,) from the joint before to this one's body; the last to the TCP
    quat: wp.array[wp.quatd]
    anchor: wp.array[wp.vec3d]  # (joints,) in the joint's body
    axis: wp.array[wp.vec3d]
    zero: wp.array[wp.float64]  # where the body stands as in the model
    column: wp.array[wp.int32]  # of q
    slide: wp.array[wp.bool]
    low: wp.array[wp.float64]  # these by column
    high: wp.array[wp.float64]
    rest: wp.array[wp.float64]
    moved: wp.array[wp.bool]
    ease: wp.array[wp.float64]  # how easily a joint moves, beside the others
    pulled: wp.array[wp.bool]  # to rest
    rolls: wp.array[wp.int32]  # columns x, y and yaw of a base that cannot move sideways; of others empty


@wp.struct
class _LawArguments:
    iterations: wp.int32
    pos_tol: wp.float64
    rot_tol: wp.float64
    rot_weight: wp.float64
    posture: wp.float64


@wp.func
def _to_tcp(
    path: _Path,
    i: int,
    q: wp.array2d[wp.float64],
    anchors: wp.array2d[wp.vec3d],
    axes: wp.array2d[wp.vec3d],
) -> wp.transformd:
    """Pose of the TCP; anchors and axes of row i's joints on the way."""
    pos = wp.vec3d()
    quat = wp.quatd(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
    joints = path.axis.shape[0]
    for k in range(joints):
        c = path.column[k]
        pos += wp.quat_rotate(quat, path.pos[k])
        quat = quat * path.quat[k]
        at = pos + wp.quat_rotate(quat, path.anchor[k])
        along = wp.quat_rotate(quat, path.axis[k])
        anchors[i, c] = at
        axes[i, c] = along
        by = q[i, c] - path.zero[k]
        if path.slide[k]:
            pos += along * by
        else:
            quat = quat * wp.quat_from_axis_angle(path.axis[k], by)
            pos = at - wp.quat_rotate(quat, path.anchor[k])
    pos += wp.quat_rotate(quat, path.pos[joints])
    return wp.transformd(pos, quat * path.quat[joints])


@wp.kernel
def _forward(
    path: _Path,
    q: wp.array2d[wp.float64],
    pos: wp.array2d[wp.float64],
    quat: wp.array2d[wp.float64],
    anchors: wp.array2d[wp.vec3d],
    axes: wp.array2d[wp.vec3d],
) -> None:
    i = wp.tid()
    tcp = _to_tcp(path, i, q, anchors, axes)
    p = wp.transform_get_translation(tcp)
    r = wp.transform_get_rotation(tcp)
    quat[i, 0] = r[3]
    for c in range(3):
        pos[i, c] = p[c]
        quat[i, c + 1] = r[c]


@wp.func
def _rotvec(q: wp.quatd) -> wp.vec3d:
    """As :func:`manikin.math.quat_to_rotvec`."""
    u = wp.vec3d(q[0], q[1], q[2])
    n = wp.max(wp.length(u), wp.float64(1e-12))
    quarter = wp.atan(n / (wp.abs(q[3]) + wp.float64(1.0)))
    if q[3] < wp.float64(0.0):
        quarter = -quarter
    return u * (wp.float64(4.0) * quarter / n)


@wp.func
def _clamped(x: wp.float64, low: wp.float64, high: wp.float64) -> wp.float64:
    if x < low:
        return low
    if x > high:
        return high
    return x  # NaN too


@wp.func
def _solved(a: wp.spatial_matrixd, b: wp.spatial_vectord) -> wp.spatial_vectord:
    """A^-1 b by Cholesky's factor, A positive."""
    for j in range(6):
        for r in range(j, 6):
            t = a[r, j]
            for p in range(j):
                t -= a[r, p] * a[j, p]
            if r == j:
                a[j, j] = wp.sqrt(t)
            else:
                a[r, j] = t / a[j, j]
    for j in range(6):
        t = b[j]
        for p in range(j):
            t -= a[j, p] * b[p]
        b[j] = t / a[j, j]
    for back in range(6):
        j = 5 - back
        t = b[j]
        for p in range(j + 1, 6):
            t -= a[p, j] * b[p]
        b[j] = t / a[j, j]
    return b


@wp.func
def _weighted(linear: wp.vec3d, angular: wp.vec3d, weight: wp.float64) -> wp.spatial_vectord:
    turn = angular * weight
    return wp.spatial_vectord(linear[0], linear[1], linear[2], turn[0], turn[1], turn[2])


@wp.func
def _pull(path: _Path, law: _LawArguments, i: int, c: int, q: wp.array2d[wp.float64]) -> wp.float64:
    """How far posture asks a joint to go at once, before its ease."""
    if path.pulled[c]:
        return law.posture * (path.rest[c] - q[i, c])
    return wp.float64(0.0)


@wp.func
def _step(
    path: _Path,
    law: _LawArguments,
    i: int,
    q: wp.array2d[wp.float64],
    move: wp.array2d[wp.float64],
    held: wp.array2d[wp.bool],
    linear: wp.array2d[wp.vec3d],
    angular: wp.array2d[wp.vec3d],
    error: wp.spatial_vectord,
    damping: wp.float64,
) -> None:
    """One damped step of row i; a joint that would leave its range is held there and the others solve again."""
    joints = q.shape[1]
    for c in range(joints):
        held[i, c] = not path.moved[c]
    for _ in range(2):
        square = damping * wp.identity(n=6, dtype=wp.float64)
        aim = error
        for c in range(joints):
            if not held[i, c]:
                column = _weighted(linear[i, c], angular[i, c], law.rot_weight) * path.ease[c]
                square += wp.outer(column, column)
                aim -= column * _pull(path, law, i, c, q)
        pull = _solved(square, aim)
        largest = wp.float64(0.3)  # [rad] at most at once
        for c in range(joints):
            by = wp.float64(0.0)
            if not held[i, c]:
                column = _weighted(linear[i, c], angular[i, c], law.rot_weight) * path.ease[c]
                by = (wp.dot(column, pull) + _pull(path, law, i, c, q)) * path.ease[c]
            move[i, c] = by
            largest = wp.max(largest, wp.abs(by))
        out = wp.int32(0)
        for c in range(joints):
            move[i, c] = move[i, c] * (wp.float64(0.3) / largest)
        if path.rolls.shape[0] == 3:
            heading = q[i, path.rolls[2]] + wp.float64(0.5) * move[i, path.rolls[2]]
            forward = move[i, path.rolls[0]]
            move[i, path.rolls[0]] = forward * wp.cos(heading)
            move[i, path.rolls[1]] = forward * wp.sin(heading)
        for c in range(joints):
            by = move[i, c]
            to = q[i, c] + by
            if (to < path.low[c] and by < wp.float64(0.0)) or (to > path.high[c] and by > wp.float64(0.0)):
                held[i, c] = True
                out += 1
        if out == 0:
            break
    for c in range(joints):
        q[i, c] = _clamped(q[i, c] + move[i, c], path.low[c], path.high[c])


@wp.kernel
def _descend(
    path: _Path,
    law: _LawArguments,
    starts: wp.array3d[wp.float64],
    goal_pos: wp.array2d[wp.float64],
    goal_quat: wp.array2d[wp.float64],
    q: wp.array2d[wp.float64],
    move: wp.array2d[wp.float64],
    held: wp.array2d[wp.bool],
    linear: wp.array2d[wp.vec3d],
    angular: wp.array2d[wp.vec3d],
    best: wp.array2d[wp.float64],
    reached: wp.array[wp.bool],
    pos_error: wp.array[wp.float64],
    rot_error: wp.array[wp.float64],
) -> None:
    """From each start in turn until one arrives; what came nearest of all is kept."""
    i = wp.tid()
    joints = q.shape[1]
    aim = wp.vec3d(goal_pos[i, 0], goal_pos[i, 1], goal_pos[i, 2])
    turn = wp.quatd(goal_quat[i, 1], goal_quat[i, 2], goal_quat[i, 3], goal_quat[i, 0])
    reached[i] = False
    pos_error[i] = wp.float64(wp.inf)
    rot_error[i] = wp.float64(wp.inf)
    least = wp.float64(wp.inf)
    for attempt in range(starts.shape[1]):
        for c in range(joints):
            q[i, c] = _clamped(starts[i, attempt, c], path.low[c], path.high[c])
            if attempt == 0:
                best[i, c] = q[i, c]
        damping = wp.float64(1e-3)
        last = wp.float64(wp.inf)
        for step in range(law.iterations + 1):
            tcp = _to_tcp(path, i, q, linear, angular)
            at = wp.transform_get_translation(tcp)
            ahead = aim - at
            askew = _rotvec(turn * wp.quat_inverse(wp.transform_get_rotation(tcp)))
            size_pos = wp.length(ahead)
            size_rot = wp.length(askew)
            cost = size_pos + law.rot_weight * size_rot
            there = size_pos < law.pos_tol and (size_rot < law.rot_tol or law.rot_weight == wp.float64(0.0))
            if there or cost < least:
                least = cost
                reached[i] = there
                pos_error[i] = size_pos
                rot_error[i] = size_rot
                for c in range(joints):
                    best[i, c] = q[i, c]
            if there or step == law.iterations:
                break
            if cost > last:
                damping = wp.min(damping * wp.float64(4.0), wp.float64(1.0))
            else:
                damping = wp.max(damping * wp.float64(0.5), wp.float64(1e-6))
            last = cost
            for k in range(path.axis.shape[0]):
                c = path.column[k]
                along = angular[i, c]
                if path.slide[k]:
                    linear[i, c] = along
                    angular[i, c] = wp.vec3d()
                else:
                    linear[i, c] = wp.cross(along, at - linear[i, c])
            if path.rolls.shape[0] == 3:  # x is the way forward, y nothing
                x = path.rolls[0]
                y = path.rolls[1]
                heading = q[i, path.rolls[2]]
                linear[i, x] = linear[i, x] * wp.cos(heading) + linear[i, y] * wp.sin(heading)
                linear[i, y] = wp.vec3d()
            error = _weighted(ahead, askew, law.rot_weight)
            _step(path, law, i, q, move, held, linear, angular, error, damping)
        if reached[i]:
            break


def _way(model: mujoco.MjModel, joints: list[int], body: int) -> tuple[list[Any], list[int]]:
    """The joints on the way to a body, and the fixed transforms (position, quaternion) before, between and after."""
    way = []
    while body:
        way.append(body)
        body = int(model.body_parentid[body])
    here = (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    fixed, found, last = [], [], here
    for b in reversed(way):
        pos, quat = np.zeros(3), np.zeros(4)
        mujoco.mju_mulPose(pos, quat, *last, model.body_pos[b], model.body_quat[b])
        last = (pos, quat)
        for j in range(model.body_jntadr[b], model.body_jntadr[b] + model.body_jntnum[b]):
            if j in joints:
                fixed.append(last)
                found.append(j)
                last = here
    return [*fixed, last], found


def _vectors(t: Tensor) -> Any:
    return wp.from_torch(t, dtype=wp.vec3d)


class WarpArm:
    """Kinematics of the bodies from a model's world to one body, in float64.

    Args:
        model: of the robot alone.
        joints: ids of the joints that move; others on the way stay at their reference.
        body: whose pose is wanted.
        limits: (joints, 2) [rad or m], on the device to compute on.
        rest: (joints,) where ``posture`` pulls to.
        moved: (joints,) bool, False for those that inverse kinematics leaves alone.
        ease: (joints,) how easily each moves beside the others.
        pulled: (joints,) bool, False for those that ``posture`` leaves alone.
        rolls: columns of x, y and yaw of a base that cannot move sideways.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        joints: list[int],
        body: int,
        limits: Tensor,
        rest: Tensor,
        moved: Tensor,
        *,
        ease: Tensor,
        pulled: Tensor,
        rolls: tuple[int, ...],
    ) -> None:
        fixed, found = _way(model, joints, body)

        def made(value: Any, dtype: torch.dtype = torch.float64) -> Tensor:
            return torch.tensor(np.asarray(value).tolist(), dtype=dtype, device=limits.device)

        self._tables = {
            "pos": made([pos for pos, _ in fixed]),
            "quat": made([[*quat[1:], quat[0]] for _, quat in fixed]),
            "anchor": made(model.jnt_pos[found]),
            "axis": made(model.jnt_axis[found]),
            "zero": made(model.qpos0[model.jnt_qposadr[found]]),
            "column": made([joints.index(j) for j in found], torch.int32),
            "slide": made(model.jnt_type[found] == int(mujoco.mjtJoint.mjJNT_SLIDE), torch.bool),
            "low": limits[:, 0].contiguous(),
            "high": limits[:, 1].contiguous(),
            "rest": rest,
            "moved": moved,
            "ease": ease,
            "pulled": pulled,
            "rolls": made(list(rolls), torch.int32),
        }

    @cached_property
    def _path(self) -> Any:
        path = _Path()
        for name, table in self._tables.items():
            kind = {"pos": wp.vec3d, "anchor": wp.vec3d, "axis": wp.vec3d, "quat": wp.quatd}.get(name)
            setattr(path, name, wp.from_torch(table, dtype=kind))
        return path

    def forward(self, q: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Position (n, 3), quaternion (n, 4) wxyz, and each joint's anchor and axis (n, joints, 3), in the base frame,
        for q (n, joints), all float64."""
        n, joints = q.shape
        pos, quat = q.new_empty(n, 3), q.new_empty(n, 4)
        anchor, axis = q.new_zeros(n, joints, 3), q.new_zeros(n, joints, 3)  # zeros: joints that are not on the way
        given = [self._path, *map(wp.from_torch, (q.contiguous(), pos, quat)), _vectors(anchor), _vectors(axis)]
        launch_rows(_forward, n, given, q.device)
        return pos, quat, anchor, axis

    def descend(
        self,
        pos: Tensor,
        quat: Tensor,
        starts: Tensor,
        *,
        iterations: int,
        pos_tolerance: float,
        rot_tolerance: float,
        rotation_weight: float,
        posture: float,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Inverse kinematics for pos (n, 3) and quat (n, 4) wxyz from starts (n, attempts, joints), each tried where
        none before it arrived.

        Of the best that was found: q (n, joints), reached (n,) bool, errors of position [m] and rotation [rad] (n,).
        All float64.
        """
        n, _, joints = starts.shape
        law = _LawArguments()
        law.iterations, law.pos_tol, law.rot_tol = iterations, pos_tolerance, rot_tolerance
        law.rot_weight, law.posture = rotation_weight, posture
        best, q, move = (starts.new_empty(n, joints) for _ in range(3))
        linear, angular = (starts.new_zeros(n, joints, 3) for _ in range(2))
        held = torch.empty_like(best, dtype=torch.bool)
        pos_error, rot_error = (starts.new_empty(n) for _ in range(2))
        reached = torch.empty_like(pos_error, dtype=torch.bool)
        goal = pos.contiguous(), quat.contiguous()
        given = [self._path, law, *map(wp.from_torch, (starts.contiguous(), *goal, q, move, held))]
        given += [_vectors(linear), _vectors(angular), *map(wp.from_torch, (best, reached, pos_error, rot_error))]
        launch_rows(_descend, n, given, starts.device)
        return best, reached, pos_error, rot_error
