"""Keeping a robot on its two feet by feedback: a linear-quadratic regulator of the scene's own physics.

Where the robot stands, what a control step does is linear in small differences of state and commands; steps of the
simulator from states that differ a little say how. The feet are taken to stay where they are. Then the joints and the
tilt of the base say where the base is, and the feedback needs neither its place nor its heading.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.math import quat_rotate_inv
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Handle
from manikin.scene.handles.robot import Robot
from manikin.scene.robot import FREE

__all__ = ["Balance", "Regulator", "balance", "regulator", "riccati"]

_STIFF, _DAMP = 5000.0, 100.0  # [N m/rad, N m s/rad] of the springs that hold the joints while it comes to rest
_SETTLE = 3.0  # [s] for that
_SLOWS = 0.5  # [1] of its speed that is left after each physics step then
_SMALL = 1e-6  # [rad, m, rad/s, m/s] differences
_LEANS, _BENT, _MOVES = 1000.0, 1.0, 0.1  # costs of squared differences: middle over the feet [m], angles, velocities
_CLOSE = 1e-8  # of a cost, at which its iteration ends


class Regulator(NamedTuple):
    """How to stand.

    Attributes:
        rest: (joints,) [rad] where the joints are when it stands still.
        down: (3,) gravity's direction in the base's frame then.
        hold: (commands,) that keep it there.
        gain: (commands, 8 + 2 joints) what to take from that, per tilt of the base about its x and y [rad], joints from
            rest [rad], velocity and turn rate of the base in its own frame [m/s, rad/s], rates of the joints [rad/s].
    """

    rest: np.ndarray
    down: np.ndarray
    hold: np.ndarray
    gain: np.ndarray


def riccati(a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray, *, most: int = 5000) -> np.ndarray:
    """(k, n) gain K with which commands u = -K x make the sum of x'qx + u'ru least, where x becomes ax + bu."""
    p = q.copy()
    gain = np.zeros((b.shape[1], len(a)))
    for _ in range(most):
        gain = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        then = q + a.T @ p @ (a - b @ gain)
        done = np.abs(then - p).max() <= _CLOSE * np.abs(then).max()
        p = (then + then.T) / 2
        if done:
            break
    return gain


def regulator(
    model: mujoco.MjModel,
    robot: Robot,
    *,
    posture: Sequence[float],
    substeps: int,
    effort: float | np.ndarray,
    acts: slice | None = None,
) -> Regulator:
    """The regulator about where a robot with a free base comes to rest when its joints are held.

    Args:
        model: of a scene in which nothing but the robot moves.
        robot: bound to it.
        posture: (joints,) [rad] at which they are held.
        substeps: physics steps of a control step.
        effort: how much of each command costs 1.
        acts: which of its joints act; the others keep their commands. None for all.
    """
    p, arm = robot.prefix, robot.arm
    joints = [model.joint(p + name) for name in arm.joints]
    places, dofs = (
        [int(adr[0]) for adr in each] for each in zip(*((j.qposadr, j.dofadr) for j in joints), strict=True)
    )
    motors = [int(model.actuator(p + name).id) for name in robot.model.actuators[: len(joints)]]
    free = model.joint(p + FREE)
    root, first = int(free.qposadr[0]), int(free.dofadr[0])

    held = copy.copy(model)
    held.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    held.actuator_gainprm[:], held.actuator_biasprm[:] = 0.0, 0.0
    held.jnt_stiffness[[j.id for j in joints]] = _STIFF
    held.dof_damping[dofs] = _DAMP
    data = mujoco.MjData(held)
    data.qpos[root : root + 7] = robot.base_pose.cpu().numpy()
    data.qpos[places] = held.qpos_spring[places] = posture
    for _ in range(round(_SETTLE / held.opt.timestep)):
        mujoco.mj_step(held, data)
        data.qvel[:] *= _SLOWS  # it would rock
    mujoco.mj_forward(held, data)
    there, torque = data.qpos.copy(), data.qfrc_passive[dofs].copy()

    data = mujoco.MjData(model)
    data.qpos[:] = there
    mujoco.mj_forward(model, data)
    torque -= data.qfrc_passive[dofs]  # springs of its own
    hold = (torque - model.actuator_biasprm[motors, 1] * there[places]) / model.actuator_gainprm[motors, 0]
    data.ctrl[motors] = hold
    mujoco.mj_forward(model, data)
    warm, nv = data.qacc_warmstart.copy(), model.nv
    moving = motors[acts] if acts else motors

    def step(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = there, x[nv:], warm
        mujoco.mj_integratePos(model, data.qpos, x[:nv], 1.0)
        data.ctrl[motors] = hold
        data.ctrl[moving] += u
        for _ in range(substeps):
            mujoco.mj_step(model, data)
        away = np.zeros(nv)
        mujoco.mj_differentiatePos(model, away, 1.0, there, data.qpos)
        return np.concatenate([away, data.qvel])

    count = len(moving)
    still, none = np.zeros(2 * nv), np.zeros(count)
    change = _SMALL * np.eye(2 * nv), _SMALL * np.eye(count)
    a = np.stack([step(d, none) - step(-d, none) for d in change[0]], 1) / (2 * _SMALL)
    b = np.stack([step(still, d) - step(still, -d) for d in change[1]], 1) / (2 * _SMALL)

    data.qpos[:], data.qvel[:] = there, 0.0
    mujoco.mj_forward(model, data)
    feet, middle = np.zeros((4, nv)), np.zeros((3, nv))
    for name in arm.feet:
        moves, turns = np.zeros((3, nv)), np.zeros((3, nv))
        mujoco.mj_jacBody(model, data, moves, turns, model.body(p + name).id)
        feet += np.concatenate([moves, turns[2:]]) / len(arm.feet)
    base = int(model.body(p + robot.model.base_body).id)
    mujoco.mj_jacSubtreeCom(model, data, middle, base)
    leans = (middle - feet[:3])[:2]
    kept = [first + 3, first + 4, *dofs]
    bent = np.zeros(nv)
    bent[kept] = _BENT
    cost = np.zeros((2 * nv, 2 * nv))
    cost[:nv, :nv] = _LEANS * leans.T @ leans + np.diag(bent)
    cost[nv:, nv:] = _MOVES * np.eye(nv)
    whole = riccati(a, b, cost, np.eye(count) / np.square(effort))
    follows = [first, first + 1, first + 2, first + 5]  # what the feet say
    places_too = whole[:, kept] - whole[:, follows] @ np.linalg.solve(feet[:, follows], feet[:, kept])
    gain = np.concatenate([places_too, whole[:, [nv + k for k in (*range(first, first + 6), *dofs)]]], 1)
    return Regulator(there[places], -data.xmat[base].reshape(3, 3)[2], hold[acts] if acts else hold, gain)


class Balance(Handle):
    """Commands with which a robot stands. Made by :func:`balance`; its regulator is found when first asked for."""

    def __init__(self, name: str, robot: Robot, control_hz: float, acts: slice | None, **how: Any) -> None:
        super().__init__(robot.scope, name)
        self._robot, self._hz, self._acts, self._how = robot, control_hz, acts, how
        self._found: tuple[Tensor, ...] | None = None

    def bind(self, model: mujoco.MjModel) -> None:
        self._model = model

    def commands(self, joints: Tensor | None = None, rates: Tensor | None = None) -> Tensor:
        """(n, commands) for the actuators that act, in the robot's order.

        Args:
            joints: (n, joints) [rad] where they are to be instead of at rest; only of a robot with position servos.
            rates: (n, joints) [rad/s] and how fast.
        """
        if self._found is None:
            steps = max(1, round(1.0 / (self._hz * self._model.opt.timestep)))
            found = regulator(self._model, self._robot, substeps=steps, acts=self._acts, **self._how)
            self._found = tuple(torch.tensor(value, dtype=torch.float32, device=self.scope.device) for value in found)
        rest, down, hold, gain = self._found
        robot = self._robot
        quat = robot.root_pose[:, 3:]
        tilt = quat_rotate_inv(quat, torch.tensor([0.0, 0.0, -1.0]).expand(len(quat), 3)) - down
        velocity = robot.root_velocity
        to = rest if joints is None else joints
        bent = robot.arm_qpos - to
        turns = robot.arm_qvel if rates is None else robot.arm_qvel - rates
        x = [-tilt[:, 1:2], tilt[:, :1], bent, quat_rotate_inv(quat, velocity[:, :3]), velocity[:, 3:], turns]
        ctrl = hold - (torch.cat(x, 1)[:, None] * gain).sum(2)
        if joints is None:
            return ctrl
        return ctrl + (joints - rest)[:, self._acts or slice(None)]


def balance(
    b: SceneBuilder,
    robot: Robot,
    *,
    control_hz: float,
    effort: float | np.ndarray,
    posture: Sequence[float] | None = None,
    acts: slice | None = None,
) -> Balance:
    """What keeps a robot in the scene standing.

    Args:
        b: the scene.
        robot: with a free base and feet.
        control_hz: [Hz] of its commands.
        effort: how much of a command costs as much as leaning by 3 cm; one number, or one for each command.
        posture: (joints,) [rad] in which it stands; by default that of the keyframe ``rest``.
        acts: which of its joints act. None for all.
    """
    posture = robot.arm.keyframes["rest"] if posture is None else posture
    handle = Balance(f"balance of {robot.name}", robot, control_hz, acts, posture=posture, effort=effort)
    b.handles.append(handle)
    return handle
