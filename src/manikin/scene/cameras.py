"""What cameras and sensors are fixed to, and the cameras of a scene in MuJoCo's terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import mujoco
import numpy as np

from manikin.errors import UnknownNameError
from manikin.scene.handles.robot import Robot
from manikin.spec.camera import CameraSpec

__all__ = ["add_camera", "mount"]

_PIXEL = 1e-5  # [m] on the sensor of a camera with intrinsics; only ratios count


def mount(
    spec: mujoco.MjSpec, on: str, robots: Sequence[Robot], what: str, others: Iterable[str] = ()
) -> mujoco.MjsBody:
    """The body that something is fixed to: of a part, of a robot (its base), ``robot/link``, or "" for the world.
    ``others`` are further names that the caller knows, for the error.

    Raises:
        UnknownNameError: there is nothing of that name; lists what there is.
    """
    names = [body.name for body in spec.bodies]
    of_robot = {robot.name: f"{robot.prefix}{robot.model.base_body}" for robot in robots}
    where = of_robot.get(on, on)
    if where and where not in names:
        raise UnknownNameError(f"mount of {what}", on, {*names[1:], *of_robot, *others})
    return spec.body(where) if where else spec.worldbody


def add_camera(spec: mujoco.MjSpec, camera: CameraSpec, robots: Sequence[Robot]) -> None:
    """Add a camera to a scene, in the world or on what it names: a body, or a robot's base.

    Raises:
        UnknownNameError: there is nothing of that name.
    """
    body = mount(spec, camera.on, robots, f"camera {camera.name!r}")
    flip = camera.rotation * np.array([1.0, -1.0, -1.0])  # MuJoCo's cameras have y up and look along -z
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, flip.flatten())
    made = body.add_camera(name=camera.name, pos=camera.pos, quat=quat, resolution=(camera.width, camera.height))
    made.fovy = float(np.rad2deg(camera.fovy))
    if camera.intrinsics is not None:
        fx, fy, cx, cy = camera.intrinsics
        size = np.array([camera.width, camera.height])
        made.sensor_size = size * _PIXEL
        made.focal_length = np.array([fx, fy]) * _PIXEL
        made.principal_length = ((size - 1) / 2 - (cx, cy)) * _PIXEL
