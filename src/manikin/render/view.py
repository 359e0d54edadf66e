"""Where a picture is taken from, in one convention for all renderers.

Camera frames are OpenCV's: x right, y down, z forward. A pixel's integer coordinates are those of its centre, the upper
left one is (0, 0), so the middle of a W x H picture is ((W - 1) / 2, (H - 1) / 2). ``K`` (3, 3) takes points of the
camera frame to pixels; ``T`` (4, 4) takes points of the camera frame to the world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.spec.camera import MAX_SIZE, CameraSpec

__all__ = ["View", "extrinsics", "intrinsics", "mount_of", "view_of"]

DEFAULT_SIZE = (256, 192)  # width, height [pixels] when neither the caller nor the camera says


@dataclass(frozen=True, eq=False)
class View:
    """One picture's geometry.

    Attributes:
        pos: (3,) optical centre in the world [m].
        rotation: (3, 3), columns are the camera's right, down and forward in the world.
        K: (3, 3) intrinsics [pixels].
        width, height: [pixels].
    """

    pos: np.ndarray
    rotation: np.ndarray
    K: np.ndarray
    width: int
    height: int

    @property
    def T(self) -> np.ndarray:
        """(4, 4) camera to world."""
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = self.rotation, self.pos
        return matrix

    def frustum(self) -> tuple[float, float, float, float]:
        """Left, right, bottom, top edge of the picture on the plane one metre ahead, y up [m]."""
        fx, fy, cx, cy = self.K[0, 0], self.K[1, 1], self.K[0, 2], self.K[1, 2]
        return (
            (-0.5 - cx) / fx,
            (self.width - 0.5 - cx) / fx,
            -(self.height - 0.5 - cy) / fy,
            (0.5 + cy) / fy,
        )

    def project(self, points: np.ndarray) -> np.ndarray:
        """Points of the world (..., 3) [m] -> pixel coordinates (..., 2), meaningless for points behind the camera."""
        camera = (points - self.pos) @ self.rotation
        pixels = camera @ self.K.T
        return pixels[..., :2] / pixels[..., 2:]

    def rays(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Unit directions (..., 3) in the world through pixel coordinates ``u``, ``v`` (...)."""
        x, y = (u - self.K[0, 2]) / self.K[0, 0], (v - self.K[1, 2]) / self.K[1, 1]
        right, down, forward = self.rotation.T
        d = x[..., None] * right + y[..., None] * down + forward
        return d / np.sqrt(np.einsum("...i,...i->...", d, d))[..., None]

    def upward(self) -> np.ndarray:
        """(height, width) float32: how far up the rays through the pixels go, the z of their unit directions."""
        x = ((np.arange(self.width) - self.K[0, 2]) / self.K[0, 0]).astype(np.float32)
        y = ((np.arange(self.height) - self.K[1, 2]) / self.K[1, 1]).astype(np.float32)[:, None]
        right, down, forward = self.rotation[2].astype(np.float32)
        return (x * right + (y * down + forward)) / np.sqrt(x * x + (y * y + np.float32(1)))

    def enlarged(self, factor: int) -> View:
        """The same picture with ``factor`` times the pixels each way."""
        K = self.K * np.array([[factor], [factor], [1]])
        K[:2, 2] += (factor - 1) / 2
        return View(self.pos, self.rotation, K, self.width * factor, self.height * factor)


def intrinsics(fovy: float, width: int, height: int) -> np.ndarray:
    """K (3, 3) of square pixels, the principal point in the middle; ``fovy`` is the vertical field of view [rad]."""
    f = height / 2 / math.tan(fovy / 2)
    return np.array([[f, 0, (width - 1) / 2], [0, f, (height - 1) / 2], [0, 0, 1]])


def extrinsics(model: mujoco.MjModel, data: mujoco.MjData, camera: str | int | CameraSpec) -> np.ndarray:
    """T (4, 4), camera to world, of a camera as it is now (``data`` up to date by ``mj_forward``)."""
    return view_of(model, data, camera).T


def view_of(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    camera: str | int | CameraSpec | View,
    width: int | None = None,
    height: int | None = None,
) -> View:
    """The view of a camera: its name or number in the model, a :class:`CameraSpec`, or a View, returned as it is.

    ``width`` and ``height`` [pixels] default to the camera's own, else to 256 x 192. Sensor sizes and focal lengths of
    a model's camera are honoured.

    Raises:
        UnknownNameError: if the model has no such camera, or not what the camera is fixed to.
        ConfigError: if the camera is orthographic, its pose is not finite, or the size is not possible.
    """
    if isinstance(camera, View):
        return camera
    if isinstance(camera, CameraSpec):
        width, height = _size(width, height, (camera.width, camera.height))
        pos, rotation = np.array(camera.pos, float), camera.rotation
        if camera.on:
            body = mount_of(model, camera)
            frame = data.xmat[body].reshape(3, 3)
            pos, rotation = data.xpos[body] + frame @ pos, frame @ rotation
        _check_finite(pos, rotation, camera.name)
        return View(pos, rotation, camera.K(width, height), width, height)
    number = _camera_id(model, camera)
    if model.cam_projection[number] == int(mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC):
        raise ConfigError(f"camera {camera!r} is orthographic; only perspective cameras can be rendered")
    resolution = tuple(int(n) for n in model.cam_resolution[number])
    width, height = _size(width, height, resolution if min(resolution) > 1 else DEFAULT_SIZE)
    # MuJoCo's camera frame has y up and looks along -z.
    rotation = data.cam_xmat[number].reshape(3, 3) * np.array([1.0, -1.0, -1.0])
    sensor = model.cam_sensorsize[number].astype(float)
    if sensor[1] == 0:
        K = intrinsics(math.radians(model.cam_fovy[number]), width, height)
    else:
        focal, offset = np.split(model.cam_intrinsic[number].astype(float), 2)
        f = focal / sensor * (width, height)
        # MuJoCo shifts the picture towards the principal point, x to the right and y upside down.
        centre = (0.5 - offset * (1, 1) / sensor) * (width, height) - 0.5
        K = np.array([[f[0], 0, centre[0]], [0, f[1], centre[1]], [0, 0, 1]])
    _check_finite(data.cam_xpos[number], rotation, model.camera(number).name)
    return View(data.cam_xpos[number].copy(), rotation, K, width, height)


def mount_of(model: mujoco.MjModel, camera: CameraSpec) -> int:
    """The body a camera is fixed to: the one of that name, or the base of the robot of that name."""
    names = [model.body(i).name for i in range(model.nbody)]
    if camera.on in names:
        return names.index(camera.on)
    of_robot = [i for i, name in enumerate(names) if name.startswith(f"{camera.on}/")]
    if not of_robot:
        raise UnknownNameError(f"mount of camera {camera.name!r}", camera.on, names[1:])
    return of_robot[0]


def _check_finite(pos: np.ndarray, rotation: np.ndarray, name: str) -> None:
    if not (np.isfinite(pos).all() and np.isfinite(rotation).all()):
        raise ConfigError(f"camera {name!r} has a pose that is not finite: {pos}; the simulation has diverged")


def _camera_id(model: mujoco.MjModel, camera: str | int) -> int:
    if isinstance(camera, str):
        number = mujoco.mj_name2id(model, int(mujoco.mjtObj.mjOBJ_CAMERA), camera)
        if number < 0:
            raise UnknownNameError("camera", camera, (model.camera(i).name for i in range(model.ncam)))
        return int(number)
    if not 0 <= camera < model.ncam:
        raise UnknownNameError("camera number", camera, (str(i) for i in range(model.ncam)))
    return int(camera)


def _size(width: int | None, height: int | None, default: tuple[int, ...]) -> tuple[int, int]:
    size = (default[0] if width is None else int(width), default[1] if height is None else int(height))
    if not 1 <= min(size) <= max(size) <= MAX_SIZE:
        raise ConfigError(f"a picture must have 1 to {MAX_SIZE} pixels in each direction, not {size[0]} x {size[1]}")
    return size
