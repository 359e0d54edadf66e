"""Range finders: distances along rays, of a single beam or of a fan of them as in a planar lidar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.scene.builder import SceneBuilder
from manikin.scene.cameras import mount
from manikin.scene.handles import Handle, Scope
from manikin.sense.imperfect import Imperfection
from manikin.sense.imu import checked_place
from manikin.sense.kinds import built_in
from manikin.sense.source import Sight, Source

__all__ = ["RangeFinder", "RangeHandle"]

_DISTANCE = (1 << int(mujoco.mjtRayDataField.mjRAYDATA_DIST), 0, 0)


class RangeHandle(Handle):
    """Rays in a scene; distances are those of the last physics step."""

    def __init__(self, scope: Scope, name: str, rays: int, far: float) -> None:
        super().__init__(scope, name)
        self.rays, self.far = rays, far

    def bind(self, model: mujoco.MjModel) -> None:
        adr = [int(model.sensor(f"{self.name}/{k}").adr[0]) for k in range(self.rays)]
        self._channel = self.scope.world.channel([("sensordata", a, a + 1) for a in adr])

    @property
    def distance(self) -> Tensor:
        """(n, rays) [m] to the nearest surface; ``far`` where there is none before it."""
        found = self._get(self._channel)
        return torch.where(found < 0, self.far, found.clamp(max=self.far))


@built_in
@dataclass(frozen=True, kw_only=True)
class RangeFinder(Source):
    """Distances (n, rays) [m] along rays that lie in the x-y plane of the sensor's frame, as a laser scanner's do.

    A ray does not see the body that the sensor is fixed to, nor what is wholly transparent.

    Attributes:
        on: what it is fixed to: a part, a robot (its base), ``robot/link``, or "" for the world.
        pos: [m] in the frame of that, where the rays begin.
        quat: (w, x, y, z) of the sensor's frame in that of ``on``.
        rays: how many.
        angles: [rad] of the first and the last ray about z, 0 along x; one ray takes the middle.
        far: [m] what is reported where nothing is nearer.
        noise: imperfections, in order; the episode's own, by its seed alone.

    Raises:
        ConfigError: values that cannot be.
    """

    name: str = "range"
    on: str = "robot"
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    rays: int = 1
    angles: tuple[float, float] = (-math.pi / 2, math.pi / 2)
    far: float = 10.0
    noise: Sequence[Imperfection] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_place(self, self.pos, self.quat)
        if isinstance(self.rays, bool) or not isinstance(self.rays, int) or not 1 <= self.rays <= 4096:
            raise ConfigError(f"rays of {self.name!r} must be a whole number from 1 to 4096, not {self.rays!r:.40}")
        if not isinstance(self.far, int | float) or not 0 < self.far < 1e6:
            raise ConfigError(f"far of {self.name!r} must be a positive number, not {self.far!r:.40}")
        if len(self.angles) != 2 or not all(isinstance(a, int | float) and abs(a) < 100 for a in self.angles):
            raise ConfigError(f"angles of {self.name!r} must be two numbers [rad], not {self.angles!r:.40}")

    def declare(self, b: SceneBuilder) -> RangeHandle:
        """Add a sensor per ray to a scene; also for tasks, which read the handle."""
        handle = RangeHandle(b.scope, f"range/{self.name}", self.rays, float(self.far))
        body = mount(b.spec, self.on, b.robot_handles, f"range finder {self.name!r}")
        for k, angle in enumerate(self._directions()):
            name, along, quat = f"{handle.name}/{k}", np.array([math.cos(angle), math.sin(angle), 0.0]), np.zeros(4)
            mujoco.mju_quatZ2Vec(quat, along)  # MuJoCo's rays go along a site's z
            turned = np.zeros(4)
            mujoco.mju_mulQuat(turned, np.asarray(self.quat, float) / np.linalg.norm(self.quat), quat)
            body.add_site(name=name, pos=self.pos, quat=turned, size=(0.002, 0.002, 0.002), group=4)
            b.spec.add_sensor(
                name=name,
                type=mujoco.mjtSensor.mjSENS_RANGEFINDER,
                objtype=mujoco.mjtObj.mjOBJ_SITE,
                objname=name,
                intprm=_DISTANCE,
            )
        b.handles.append(handle)
        return handle

    def _directions(self) -> list[float]:
        low, high = self.angles
        return [(low + high) / 2] if self.rays == 1 else np.linspace(low, high, self.rays).tolist()

    def observe(self, sight: Sight) -> Tensor:
        handle: RangeHandle = sight.declared
        return handle.distance

    def imperfections(self) -> Mapping[str, Sequence[Imperfection]]:
        return {"": self.noise} if self.noise else {}
