"""Inverse kinematics of several tools of one robot at once, in which some joints move less than others.

Damped least squares on MuJoCo's own kinematics of the robot alone, in its base frame, in float64, one configuration at
a time: for a person who drives two hands. :class:`~manikin.control.ik.IkSolver` solves many rows for one tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.scene.robot import ToolModel, assemble
from manikin.spec.robot import GripperSpec, RobotSpec

__all__ = ["CoupledIk", "CoupledResult", "ToolFrames"]

STEP = 0.3  # of a joint at once [rad or m]


class ToolFrames:
    """Where the tools of a robot are, and how its joints move them. Joints that follow others do so here, too.

    Args:
        arm: the robot.
        gripper: what its first tool carries.
        tools: names of the tools; all by default.

    Attributes:
        tools: their names.
        joints: names of the joints of all groups.
        limits: (joints, 2) [rad or m].
        rest: (joints,) the keyframe.

    Raises:
        UnknownNameError: the robot has no such tool.
    """

    def __init__(self, arm: RobotSpec, gripper: GripperSpec | None, tools: Sequence[str] | None = None) -> None:
        robot = assemble(arm, gripper)
        robot.spec.option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_EQUALITY)
        self._model = model = robot.spec.compile()
        self._data = mujoco.MjData(model)
        bodies = {tool.name: int(model.body(tool.tcp_body).id) for tool in robot.tools}
        self.tools = tuple(bodies if tools is None else tools)
        for name in self.tools:
            if name not in bodies:
                raise UnknownNameError(f"tool of {arm.name}", name, bodies)
        self._bodies = [bodies[name] for name in self.tools]
        self._pads = {
            tool.name: [(int(model.body(body).id), int(model.site(site).id)) for body, site in _pads(tool)]
            for tool in robot.tools
        }
        self.joints = robot.arm_joints
        ids = [int(model.joint(name).id) for name in self.joints]
        commanded = [int(model.actuator(name).id) for name in robot.arm_actuators]
        self.limits = np.array(model.actuator_ctrlrange[commanded], float)
        self.rest = np.asarray(arm.keyframes["rest"], float)
        # (nq, joints) and (nv, joints): what each joint moves, those that follow it included
        self._places, self._speeds = np.zeros((model.nq, len(ids))), np.zeros((model.nv, len(ids)))
        for k, joint in enumerate(ids):
            self._move(joint, k, 1.0)
        for name, k, ratio in zip(arm.followers, *robot.following, strict=True):
            self._move(int(model.joint(name).id), k, ratio)
        self._moved = (self._places != 0).any(1)

    def _move(self, joint: int, column: int, ratio: float) -> None:
        self._places[self._model.jnt_qposadr[joint], column] = ratio
        self._speeds[self._model.jnt_dofadr[joint], column] = ratio

    def _put(self, q: np.ndarray) -> None:
        model, data = self._model, self._data
        data.qpos[:] = np.where(self._moved, self._places @ q, model.qpos0)
        mujoco.mj_kinematics(model, data)

    def poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (tools, 3) [m] and quaternions (tools, 4) wxyz in the base frame, for q (joints,)."""
        self._put(q)
        return self._data.xpos[self._bodies].copy(), self._data.xquat[self._bodies].copy()

    def jacobians(self, q: np.ndarray) -> np.ndarray:
        """(tools, 6, joints): linear [m/rad] above angular, in the base frame."""
        self._put(q)
        model, data = self._model, self._data
        mujoco.mj_comPos(model, data)
        each = np.zeros((len(self._bodies), 6, model.nv))
        for one, body in zip(each, self._bodies, strict=True):
            mujoco.mj_jacBody(model, data, one[:3], one[3:], body)
        return each @ self._speeds

    def pressing(self, tool: str, q: np.ndarray) -> np.ndarray:
        """(joints,) [m/rad] how far each joint moves the pads of a tool's fingers the way in which they press, the sum
        over fingers; zeros for a tool without fingers."""
        self._put(q)
        model, data = self._model, self._data
        mujoco.mj_comPos(model, data)
        found, jac = np.zeros(model.nv), np.zeros((3, model.nv))
        for body, site in self._pads[tool]:
            shapes = np.flatnonzero(model.geom_bodyid == body)
            middle = data.geom_xpos[shapes].mean(0) if len(shapes) else data.xpos[body]
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, _times(data.xquat[body], model.site_quat[site]))
            mujoco.mj_jac(model, data, jac, None, middle, body)
            found += turn.reshape(3, 3)[:, 2] @ jac
        return np.asarray(found @ self._speeds)

    def carrier(self, tool: str) -> np.ndarray:
        """(3,) [m] where the body that carries a tool has its origin, in the tool's frame."""
        model, body = self._model, self._bodies[self.tools.index(tool)]
        out, back = np.zeros(3), np.zeros(4)
        mujoco.mju_negQuat(back, model.body_quat[body])
        mujoco.mju_rotVecQuat(out, -model.body_pos[body], back)
        return out


def _pads(tool: ToolModel) -> list[tuple[str, str]]:
    return list(zip(tool.finger_bodies, tool.finger_sites, strict=True))


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, a, b)
    return out


@dataclass(frozen=True)
class CoupledResult:
    """What was found.

    Attributes:
        q: (joints,) [rad or m], within the limits; the best found where not reached.
        pos_error: (tools,) [m].
        rot_error: (tools,) [rad].
    """

    q: np.ndarray
    pos_error: np.ndarray
    rot_error: np.ndarray


class CoupledIk:
    """Finds joint positions that bring all tools to their poses.

    Each joint has a weight, its soft mask: 1 moves freely, 0 stays, and between them a joint moves less than a free
    one that could do the same. With W the weights, J the tools' Jacobians and e their errors, one above the other, a
    step is W Jᵀ (J W Jᵀ + damping)⁻¹ e. Where a task leaves joints free they are drawn to rest.

    Args:
        frames: the tools.
        weights: (joints,) from 0 to 1.
        rotation_weights: (tools,) [m/rad] how much a rotation error counts against a position error.
        posture: share of the way to rest per step.

    Raises:
        ConfigError: numbers that do not fit or are out of range.
    """

    def __init__(
        self,
        frames: ToolFrames,
        *,
        weights: Sequence[float] | np.ndarray,
        rotation_weights: Sequence[float] | None = None,
        posture: float = 0.02,
    ) -> None:
        self.frames, self.posture = frames, posture
        self.weights = np.asarray(weights, float)
        if self.weights.shape != (len(frames.joints),) or not ((self.weights >= 0) & (self.weights <= 1)).all():
            raise ConfigError(
                f"a soft mask has a number from 0 to 1 for each of the joints {', '.join(frames.joints)}; got {weights}"
            )
        rotation = np.asarray((0.2,) * len(frames.tools) if rotation_weights is None else rotation_weights, float)
        if rotation.shape != (len(frames.tools),) or not (rotation >= 0).all():
            raise ConfigError(f"rotation_weights has a number for each of {', '.join(frames.tools)}; got {rotation}")
        self._rotation = rotation
        self._rows = np.concatenate([np.ones((len(rotation), 3)), np.repeat(rotation[:, None], 3, 1)], 1).reshape(-1)

    def solve(
        self, pos: np.ndarray, quat: np.ndarray, start: np.ndarray, *, iterations: int = 30, tolerance: float = 1e-5
    ) -> CoupledResult:
        """Solve for pos (tools, 3) [m] and quat (tools, 4) wxyz in the base frame, from ``start`` (joints,).

        It ends when every error, rotations by their weights, is below ``tolerance`` [m].
        """
        low, high = self.frames.limits.T
        q = np.clip(np.asarray(start, float), low, high)
        damping, last, best = 1e-3, np.inf, None
        for step in range(iterations + 1):
            error = self._errors(pos, quat, q)
            sizes = np.sqrt((error**2).sum(2))
            cost = float((sizes[:, 0] + self._rotation * sizes[:, 1]).sum())
            if best is None or cost < best[0]:
                best = cost, CoupledResult(q, sizes[:, 0], sizes[:, 1])
            if (
                step == iterations
                or (sizes * np.stack([np.ones_like(self._rotation), self._rotation], 1)).max() < tolerance
            ):
                break
            damping = min(1.0, damping * 4) if cost > last else max(1e-6, damping * 0.5)
            last = cost
            q = self._step(q, error.reshape(-1) * self._rows, damping, low, high)
        assert best is not None
        return best[1]

    def _errors(self, pos: np.ndarray, quat: np.ndarray, q: np.ndarray) -> np.ndarray:
        """(tools, 2, 3): of place [m] and of turn [rad]."""
        at, turn = self.frames.poses(q)
        out = np.zeros((len(at), 2, 3))
        out[:, 0] = pos - at
        back, between = np.zeros(4), np.zeros(4)
        for k in range(len(at)):
            mujoco.mju_negQuat(back, turn[k])
            mujoco.mju_mulQuat(between, np.asarray(quat[k], float), back)
            mujoco.mju_quat2Vel(out[k, 1], between, 1.0)
        return out

    def _step(self, q: np.ndarray, error: np.ndarray, damping: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """One damped step; a joint that would leave its range is held there and the others solve again."""
        jac = self.frames.jacobians(q).reshape(-1, len(q)) * self._rows[:, None]
        weights = self.weights.copy()
        move = np.zeros_like(q)
        for _ in range(3):
            back = weights[:, None] * jac.T
            inverse = np.linalg.solve(jac @ back + damping * np.eye(len(jac)), np.concatenate([error[:, None], jac], 1))
            rest = weights * self.posture * (self.frames.rest - q)
            move = back @ inverse[:, 0] + rest - back @ (inverse[:, 1:] @ rest)
            move *= STEP / max(STEP, float(np.abs(move).max()))
            out = ((q + move < low) & (move < 0)) | ((q + move > high) & (move > 0))
            if not (out & (weights > 0)).any():
                break
            weights[out] = 0.0
        return np.clip(q + move, low, high)
