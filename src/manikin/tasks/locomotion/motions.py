"""Motions that a humanoid is to follow: three of H1 by formulas, and those in files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import mujoco
import numpy as np

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.scene.robot import assemble
from manikin.spec.robot import RobotSpec

__all__ = ["MOTIONS", "Motion", "built_in", "hands", "rates", "read_motion", "resampled"]

_SEGMENT = 0.4  # [m] length of H1's thigh, and of its shank
_NEAR = 1e-3  # by which a quaternion's length may differ from 1, and a joint from its limit [rad]


@dataclass(frozen=True)
class Motion:
    """Where a robot is, frame by frame.

    Attributes:
        qpos: (frames, 7 + joints): position [m] and quaternion (w, x, y, z) of its base, then its joints [rad].
        hz: frames per second.
        loops: the first frame follows the last, where the base has gone on by as much as from the first frame to the
            last over the ground; else it stays in the last.
    """

    qpos: np.ndarray
    hz: float
    loops: bool = True

    @property
    def lap(self) -> np.ndarray:
        """(2,) [m] that the base goes on over the ground from one round to the next."""
        return np.asarray(self.qpos[-1, :2] - self.qpos[0, :2]) if self.loops else np.zeros(2)


def _rise(t: np.ndarray, period: float) -> np.ndarray:
    """From 0 to 1 and back in each period [s], at rest at both ends."""
    return (1.0 - np.cos(2.0 * math.pi * t / period)) / 2.0


def _squat(t: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Go down by 14 cm and up again."""
    down = 0.14 * _rise(t, 3.0)
    return {}, down, down


def _step(t: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Lift the left foot by 6 cm, then the right one."""
    wave = np.sin(2.0 * math.pi * t)
    return {}, 0.06 * np.maximum(wave, 0.0) ** 2, 0.06 * np.minimum(wave, 0.0) ** 2


def _wave(t: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Raise the right hand to the shoulder's height, wave twice, and lower it."""
    up = _rise(np.minimum(np.minimum(t, 4.0 - t), 1.0), 2.0)
    moves = {
        "right_shoulder_pitch": -0.9 * up,
        "right_shoulder_roll": -0.4 * up,
        "right_shoulder_yaw": 0.4 * up * np.sin(2.0 * math.pi * t),
        "right_elbow": -0.9 * up,
    }
    return moves, np.zeros_like(t), np.zeros_like(t)


MOTIONS: dict[str, tuple[float, Callable[[np.ndarray], tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]]]] = {
    "squat": (3.0, _squat),
    "step": (1.0, _step),
    "wave": (4.0, _wave),
}
"""Motion of H1: [s] that a round lasts, and what at times t (frames,) joints differ from those at rest [rad], and by
how much the left and the right hip are nearer to their ankles than at rest [m]."""


def _leg(near: np.ndarray, rest: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(frames,) [rad] of pitch, knee and ankle with which the ankle is so much nearer [m] to the hip than at rest,
    straight up from where it is, the foot flat. ``rest`` is pitch and knee at rest."""
    pitch, knee = rest
    ahead = -_SEGMENT * (math.sin(pitch) + math.sin(pitch + knee))  # of the ankle, from the hip
    high = _SEGMENT * (math.cos(pitch) + math.cos(pitch + knee)) - near
    bent = 2.0 * np.arccos(np.hypot(ahead, high) / (2.0 * _SEGMENT))
    pitches = np.arctan2(-ahead, high) - bent / 2.0
    return pitches, bent, -(pitches + bent)


def built_in(name: str, arm: RobotSpec, hz: float) -> Motion:
    """A motion of :data:`MOTIONS`, about rest.

    The feet that carry H1 stay flat and where they are: the base goes up and down as far as the leg that is longer.

    Args:
        name: of the motion.
        arm: H1.
        hz: frames per second.

    Raises:
        UnknownNameError: there is no such motion.
        ConfigError: it is another robot.
    """
    if name not in MOTIONS:
        raise UnknownNameError("motion", name, MOTIONS, "(or give a file)")
    if arm.name != "h1":
        raise ConfigError(f"the built-in motions are H1's; for {arm.name} give a file: config={{'file': 'my.npz'}}")
    period, made = MOTIONS[name]
    frames, joints = round(period * hz), list(arm.joints)
    moves, *near = made(np.arange(frames) / hz)
    qpos = np.tile(np.array([*arm.base_pos, 1.0, 0.0, 0.0, 0.0, *arm.keyframes["rest"]]), (frames, 1))
    for joint, by in moves.items():
        qpos[:, 7 + joints.index(joint)] += by
    for side, by in zip(("left", "right"), near, strict=True):
        columns = [7 + joints.index(f"{side}_{joint}") for joint in ("hip_pitch", "knee", "ankle")]
        pitch, knee, _ = qpos[0, columns]
        qpos[:, columns] = np.stack(_leg(by, (pitch, knee)), 1)
    qpos[:, 2] -= np.minimum(*near)
    return Motion(qpos=qpos, hz=hz)


def read_motion(path: str | Path, arm: RobotSpec, *, loops: bool) -> Motion:
    """A motion in a file ``.npz`` with the arrays ``qpos`` (frames, 7 + joints) and ``hz``, as :class:`Motion` has
    them; the joints in the robot's order.

    Raises:
        DataError: the file is not there, lacks an array, or does not fit the robot.
    """

    def wrong(what: str) -> DataError:
        return DataError(f"motion {os.fspath(path)!r}: {what}")

    try:
        with np.load(path) as file:  # without pickle: a motion holds numbers only
            found = {name: np.asarray(file[name], np.float64) for name in ("qpos", "hz")}
    except FileNotFoundError as error:
        raise wrong("there is no such file") from error
    except KeyError as error:
        raise wrong("it needs the arrays qpos (frames, 7 + joints) and hz") from error
    except (OSError, ValueError) as error:
        raise wrong("it is no .npz file of numbers") from error
    qpos, hz, wide = found["qpos"], found["hz"], 7 + len(arm.joints)
    if qpos.ndim != 2 or qpos.shape[1] != wide or len(qpos) < 2:
        raise wrong(f"qpos must be (2 frames or more, {wide}) for {arm.name}, but it is {qpos.shape}")
    if hz.size != 1 or not 0 < float(hz.reshape(())) < 1e4:
        raise wrong(f"hz must be one number between 0 and 10,000, but it is {hz}")
    if not np.isfinite(qpos).all():
        raise wrong("qpos has numbers that are not finite")
    if (np.abs(np.linalg.norm(qpos[:, 3:7], axis=1) - 1.0) > _NEAR).any():
        raise wrong("quaternions (w, x, y, z) in qpos[:, 3:7] must have length 1")
    limits = {joint.name: joint.range for link in arm.links for joint in link.joints}
    for column, name in enumerate(arm.joints, 7):
        low, high = limits.get(name) or (-math.inf, math.inf)
        if qpos[:, column].min() < low - _NEAR or qpos[:, column].max() > high + _NEAR:
            raise wrong(f"{name} leaves its limits, {low} to {high} rad")
    return Motion(qpos=qpos, hz=float(hz.reshape(())), loops=loops)


def resampled(motion: Motion, hz: float) -> Motion:
    """The same motion with so many frames per second: straight between frames, quaternions normalized."""
    whole = _aligned(motion)
    last = len(whole) - 1
    frames = round(last / motion.hz * hz) if motion.loops else math.floor(last / motion.hz * hz + 1e-6) + 1
    at = np.minimum(np.arange(max(frames, 1)) * (motion.hz / hz), last)
    before = np.minimum(at.astype(int), last - 1)
    share = (at - before)[:, None]
    qpos = (1.0 - share) * whole[before] + share * whole[before + 1]
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    return replace(motion, qpos=qpos, hz=hz)


def _aligned(motion: Motion) -> np.ndarray:
    """Its frames, where it loops with the first one after the last, and quaternions on one side of the sphere."""
    whole = motion.qpos.copy()
    if motion.loops:
        whole = np.concatenate([whole, whole[:1]])
        whole[-1, :2] += motion.lap
    for before, now in pairwise(whole):
        if before[3:7] @ now[3:7] < 0:
            now[3:7] *= -1.0
    return whole


def rates(motion: Motion) -> np.ndarray:
    """(frames, 6 + joints) velocities from the frames before and after: linear [m/s] in the world, angular [rad/s] in
    the base's frame, joints [rad/s]. Before its first frame and after its last a motion that does not loop rests."""
    whole = _aligned(motion)
    if motion.loops:
        before = whole[-2].copy()
        before[:2] -= motion.lap
        whole = np.concatenate([before[None], whole])
    else:
        whole = np.concatenate([whole[:1], whole, whole[-1:]])
    moved = whole[2:] - whole[:-2]
    turned = np.zeros((len(moved), 3))
    for out, now, then in zip(turned, whole[:-2], whole[2:], strict=True):
        mujoco.mju_subQuat(out, then[3:7], now[3:7])
    return np.concatenate([moved[:, :3], turned, moved[:, 7:]], 1) * (motion.hz / 2.0)


def hands(motion: Motion, arm: RobotSpec) -> np.ndarray:
    """(frames, tools, 3) [m] where the robot's tools are in its base's frame, by MuJoCo's kinematics."""
    made = assemble(arm, None)
    model = made.spec.compile()
    data = mujoco.MjData(model)
    joints = [int(model.jnt_qposadr[model.joint(name).id]) for name in made.arm_joints]
    tools = [int(model.body(tool.tcp_body).id) for tool in made.tools]
    root = int(model.body(arm.links[0].name).id)
    found = np.zeros((len(motion.qpos), len(tools), 3))
    for out, qpos in zip(found, motion.qpos, strict=True):
        data.qpos[joints] = qpos[7:]
        mujoco.mj_kinematics(model, data)
        out[:] = (data.xpos[tools] - data.xpos[root]) @ data.xmat[root].reshape(3, 3)
    return found
