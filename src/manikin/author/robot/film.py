"""A film of a robot: it moves each joint and the gripper, then shows the points that the TCP reaches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np

from manikin.author.robot.check import Reach
from manikin.render import make_renderer, write_video
from manikin.render.files.caption import caption
from manikin.robots import RobotSelection
from manikin.scene.robot import RobotModel, assemble
from manikin.spec.camera import CameraSpec

__all__ = ["film_robot", "portrait"]

_FPS = 20.0
_FRAMES = 12  # per joint
_COLOURS = {"down": (0.15, 0.75, 0.25, 1), "anyhow": (0.95, 0.75, 0.1, 1), "never": (0.85, 0.2, 0.15, 0.35)}


def film_robot(
    path: str | os.PathLike[str],
    robot: RobotSelection,
    reached: Reach | None = None,
    *,
    width: int = 320,
    height: int = 320,
    renderer: str = "auto",
) -> Path:
    """Write the film; returns its path.

    Joints move as they are told, without physics. The points of ``reached`` come last, seen from all round: green where
    the TCP points as at rest, yellow where only its position is reached, red where neither is.

    Raises:
        ConfigError: when PyAV is not installed.
    """
    return write_video(path, _frames(robot, reached, width, height, renderer), _FPS)


def portrait(
    robot: RobotSelection, *, width: int = 160, height: int = 160, hand: bool = False, renderer: str = "auto"
) -> np.ndarray:
    """A picture (height, width, 3) uint8 of the robot at rest, from ahead and to its left; ``hand``: of its wrist."""
    built, model, data = _stage(robot, None)
    _pose(built, model, data, built.arm_qpos(), 1.0)
    view = _view(built, model, data)
    if hand:
        tcp = data.body(built.tcp_body)
        middle = tcp.xpos - 0.08 * tcp.xmat.reshape(3, 3)[:, 2]
        view = CameraSpec(name="film", pos=tuple(np.add(middle, (0.34, 0.26, 0.1))), target=tuple(middle), fovy=0.75)
    drawing = make_renderer(renderer, samples=3, shadows=True)
    picture = drawing.rgb(model, data, view, width=width, height=height)
    drawing.close()
    return picture


def _frames(
    robot: RobotSelection, reached: Reach | None, width: int, height: int, backend: str
) -> Iterator[np.ndarray]:
    renderer = make_renderer(backend, samples=2, shadows=False)
    built, model, data = _stage(robot, None)
    rest = built.arm_qpos()
    _pose(built, model, data, rest, 1.0)
    view = _view(built, model, data)
    swing = np.sin(np.linspace(0, 2 * np.pi, _FRAMES, endpoint=False))
    for i, name in enumerate(built.arm_joints):
        joint = model.joint(name)
        slides = int(joint.type[0]) == int(mujoco.mjtJoint.mjJNT_SLIDE)
        low, high = joint.range if model.jnt_limited[joint.id] else (-np.inf, np.inf)
        for s in swing:
            q = rest.copy()
            q[i] = np.clip(rest[i] + (0.1 if slides else 0.8) * s, low, high)
            _pose(built, model, data, q, 1.0)
            text = f"{name}  {q[i]:+.2f} {'m' if slides else 'rad'}"
            yield caption(renderer.rgb(model, data, view, width=width, height=height), [text])
    if built.gripper_joints:
        for s in swing:
            opening = 0.5 + 0.5 * np.sin(np.pi / 2 + np.arcsin(s))
            _pose(built, model, data, rest, float(opening))
            yield caption(renderer.rgb(model, data, view, width=width, height=height), [f"gripper  {opening:.0%} open"])
    if reached is not None:
        built, model, data = _stage(robot, reached)
        _pose(built, model, data, rest, 1.0)
        text = f"reach  {reached.anyhow.mean():.0%}, as at rest {reached.down.mean():.0%}"
        for turn in np.linspace(0, 2 * np.pi, 2 * _FRAMES, endpoint=False):
            seen = _view(built, model, data, turn=float(turn), points=reached.points)
            yield caption(renderer.rgb(model, data, seen, width=width, height=height), [text])
    renderer.close()


def _stage(robot: RobotSelection, reached: Reach | None) -> tuple[RobotModel, mujoco.MjModel, mujoco.MjData]:
    built = assemble(robot.arm, robot.gripper, menagerie=robot.menagerie)
    spec = built.spec
    spec.worldbody.add_light(pos=(2, 2, 4), dir=(-0.4, -0.4, -0.8))
    if reached is not None:
        size = 0.02 * max(float(np.abs(reached.points).max()), 0.1)
        for point, anyhow, down in zip(reached.points, reached.anyhow, reached.down, strict=True):
            colour = _COLOURS["down" if down else "anyhow" if anyhow else "never"]
            spec.worldbody.add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(size, 0, 0), pos=point, rgba=colour, contype=0, conaffinity=0
            )
    model = spec.compile()
    return built, model, mujoco.MjData(model)


def _pose(built: RobotModel, model: mujoco.MjModel, data: mujoco.MjData, arm: np.ndarray, gripper: float) -> None:
    data.qpos[[model.joint(n).qposadr[0] for n in built.joints]] = built.whole_qpos(arm, gripper=gripper)
    mujoco.mj_forward(model, data)


def _view(
    built: RobotModel,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    turn: float = 0.0,
    points: np.ndarray | None = None,
) -> CameraSpec:
    """A camera that has all of the robot (or all points) in the picture."""
    shown = np.flatnonzero(model.geom_bodyid > 0)
    low = (data.geom_xpos[shown] - model.geom_rbound[shown, None]).min(0)
    high = (data.geom_xpos[shown] + model.geom_rbound[shown, None]).max(0)
    if points is not None:
        low, high = np.minimum(low, points.min(0)), np.maximum(high, points.max(0))
    middle, size = (low + high) / 2, float(np.linalg.norm(high - low)) / 2
    angle = 0.7 + turn
    away = np.array([np.cos(angle), np.sin(angle), 0.45]) * size * 2.1
    return CameraSpec(name="film", pos=tuple(middle + away), target=tuple(middle), fovy=0.85)
