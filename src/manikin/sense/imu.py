"""Inertial measurement units: what an accelerometer and a gyroscope fixed to a body read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from torch import Tensor

from manikin.errors import ConfigError
from manikin.scene.builder import SceneBuilder
from manikin.scene.cameras import mount
from manikin.scene.handles import Handle
from manikin.sense.imperfect import Imperfection
from manikin.sense.kinds import built_in
from manikin.sense.source import Sight, Source

__all__ = ["Imu", "ImuHandle"]

_SENSORS = {
    "accelerometer": mujoco.mjtSensor.mjSENS_ACCELEROMETER,
    "gyro": mujoco.mjtSensor.mjSENS_GYRO,
}


class ImuHandle(Handle):
    """An inertial sensor in a scene; values are those of the last physics step."""

    def bind(self, model: mujoco.MjModel) -> None:
        self._channels = {}
        for what in _SENSORS:
            adr = int(model.sensor(f"{self.name}/{what}").adr[0])
            self._channels[what] = self.scope.world.channel([("sensordata", adr, adr + 3)])

    @property
    def accelerometer(self) -> Tensor:
        """(n, 3) [m/s^2] proper acceleration in the sensor's frame: at rest 9.81 upwards, in free fall 0."""
        return self._get(self._channels["accelerometer"])

    @property
    def gyro(self) -> Tensor:
        """(n, 3) [rad/s] angular velocity in the sensor's frame."""
        return self._get(self._channels["gyro"])


@built_in
@dataclass(frozen=True, kw_only=True)
class Imu(Source):
    """An inertial measurement unit as a source: ``accelerometer`` (n, 3) [m/s^2] and ``gyro`` (n, 3) [rad/s].

    A data sheet's noise density d [unit per root Hz] is ``Noise(d * sqrt(rate))`` at the rate at which the sensor is
    read, its bias at start ``Noise(..., bias_std=...)``, its random walk of the bias ``Drift(...)``.

    Attributes:
        on: what it is fixed to: a part, a robot (its base), ``robot/link``, or the robot's own unit by its name,
            ``robot/imu`` (:attr:`manikin.spec.robot.RobotSpec.sensors`), whose place and frame it then has.
        pos: [m] in the frame of that.
        quat: (w, x, y, z) of the sensor's frame in that of ``on``.
        accelerometer_noise, gyro_noise: imperfections of the two, in order; the episode's own, by its seed alone.

    Raises:
        ConfigError: values that are no numbers or no imperfections.
    """

    name: str = "imu"
    on: str = "robot"
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    accelerometer_noise: Sequence[Imperfection] = ()
    gyro_noise: Sequence[Imperfection] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_place(self, self.pos, self.quat)

    def declare(self, b: SceneBuilder) -> ImuHandle:
        """Add the two sensors to a scene; also for tasks, which read the handle."""
        handle = ImuHandle(b.scope, f"imu/{self.name}")
        own = {
            robot.prefix + unit.name: b.spec.site(robot.prefix + unit.name)
            for robot in b.robot_handles
            for unit in robot.arm.sensors
        }
        pos: Sequence[float]
        quat: Sequence[float]
        if self.on in own:
            body = own[self.on].parent
            pos, quat = _placed(own[self.on], self.pos, self.quat)
        else:
            body = mount(b.spec, self.on, b.robot_handles, f"imu {self.name!r}", own)
            pos, quat = self.pos, self.quat
        site = body.add_site(name=handle.name, pos=pos, quat=quat, size=(0.002, 0.002, 0.002), group=4)
        for what, kind in _SENSORS.items():
            b.spec.add_sensor(
                name=f"{handle.name}/{what}", type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site.name
            )
        b.handles.append(handle)
        return handle

    def observe(self, sight: Sight) -> Mapping[str, Tensor]:
        handle: ImuHandle = sight.declared
        return {"accelerometer": handle.accelerometer, "gyro": handle.gyro}

    def imperfections(self) -> Mapping[str, Sequence[Imperfection]]:
        both = {"accelerometer": self.accelerometer_noise, "gyro": self.gyro_noise}
        return {name: effects for name, effects in both.items() if effects}


def _placed(
    site: mujoco.MjsSite, pos: Sequence[float], quat: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """A place [m] and frame (w, x, y, z) given in a site's frame, in that of its body."""
    moved, turned = np.zeros(3), np.zeros(4)
    mujoco.mju_rotVecQuat(moved, np.array(pos, float), site.quat)
    mujoco.mju_mulQuat(turned, site.quat, np.array(quat, float))
    return (site.pos + moved).tolist(), turned.tolist()


def checked_place(sensor: Source, pos: Sequence[float], quat: Sequence[float]) -> None:
    """Raise :class:`ConfigError` unless these are a position and a quaternion."""
    for what, values, count in (("pos", pos, 3), ("quat", quat, 4)):
        numbers = not isinstance(values, str) and isinstance(values, Sequence) and len(values) == count
        if not numbers or not all(isinstance(v, int | float) and abs(v) < 1e6 for v in values):
            raise ConfigError(f"{what} of {sensor.name!r} must be {count} numbers, not {values!r:.80}")
    if not any(quat):
        raise ConfigError(f"quat of {sensor.name!r} must not be zero")
