"""What observations with cameras are made of."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manikin.env.observe.views import CAMERA_WORDS, TABLE_CLOUD, TABLE_GRID
from manikin.errors import ConfigError, UnknownNameError
from manikin.render.rig import CameraRig
from manikin.scene.builder import SceneBuilder
from manikin.sense.kinds import describe, made
from manikin.sense.pixels import Jitter, Photograph, Resize
from manikin.sense.pointcloud import PointCloudSpec
from manikin.sense.stages import On, checked_stages
from manikin.sense.voxel import VoxelSpec
from manikin.sim.world import World
from manikin.spec.camera import CameraSpec

__all__ = ["STAGES", "Vision"]

STAGES = (Photograph, Jitter, Resize, On)
"""The stages of pictures that come with manikin; imperfections are stages too."""


@dataclass(frozen=True, kw_only=True)
class Vision:
    """What observations with cameras are made of.

    Attributes:
        cameras: names of declared ones, and :class:`CameraSpec` of further ones (one of a declared name replaces it);
            None for the task's ``base_camera``.
        size: width and height [pixels] of all of them; None for each camera's own.
        renderer: see :func:`manikin.render.make_renderer`.
        pointcloud: of which cameras, cropped to what (by default what is above and around the middle of the table) and
            sampled how; ``voxel`` counts every point of the same cameras.
        voxel: the grid of ``voxel``.
        stages: what happens to every picture after it is drawn, in order; see :mod:`manikin.sense.stages`. Clouds are
            made of the pictures that come out.
    """

    cameras: Sequence[CameraSpec | str] | None = None
    size: tuple[int, int] | None = None
    renderer: str = "auto"
    pointcloud: PointCloudSpec = TABLE_CLOUD
    voxel: VoxelSpec = TABLE_GRID
    stages: Sequence[Any] = ()

    def __post_init__(self) -> None:
        """Raises ConfigError for values of other kinds."""
        cameras, size = self.cameras, self.size
        if not (cameras is None or isinstance(cameras, Sequence)) or isinstance(cameras, str | bytes):
            raise ConfigError(f"Vision: cameras must be a list of names or CameraSpecs, not {cameras!r:.80}")
        if wrong := [camera for camera in cameras or () if not isinstance(camera, str | CameraSpec)]:
            raise ConfigError(f"Vision: a camera must be a name or a CameraSpec, not {wrong[0]!r:.80}")
        if size is not None and not (isinstance(size, tuple | list) and [type(side) for side in size] == [int, int]):
            raise ConfigError(f"Vision: size must be (width, height) in whole pixels, not {size!r:.80}")
        for name, kind in (("renderer", str), ("pointcloud", PointCloudSpec), ("voxel", VoxelSpec)):
            if not isinstance(value := getattr(self, name), kind):
                raise ConfigError(f"Vision: {name} must be a {kind.__name__}, not {value!r:.80}")
        object.__setattr__(self, "stages", checked_stages(self.stages, self.names))

    @classmethod
    def of(cls, given: Any) -> Vision:
        """What was given, by default a plain one; or what :meth:`describe` gave, also after a way through JSON.

        Raises:
            ConfigError: it is something else.
        """
        if isinstance(given, Mapping):
            return cls._described(given)
        if given is not None and not isinstance(given, cls):
            raise ConfigError(f"vision must be a Vision, not {given!r}")
        return given or cls()

    @classmethod
    def _described(cls, plain: Mapping[str, Any]) -> Vision:
        try:
            fields = {name: _tuples(value) for name, value in plain.items() if name != "stages"}
            fields["stages"] = tuple(made(stage, object, "stage of pictures") for stage in plain.get("stages", ()))
            if fields["cameras"] is not None:
                cameras = (c if isinstance(c, str) else CameraSpec(**c) for c in fields["cameras"])
                fields["cameras"] = tuple(cameras)
            clouds = {"pointcloud": PointCloudSpec(**fields["pointcloud"]), "voxel": VoxelSpec(**fields["voxel"])}
            return cls(**{**fields, **clouds})
        except (KeyError, TypeError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigError(
                f"vision is a Vision(...), or a dictionary as a fingerprint describes one, not {plain!r:.200}: {what}"
            ) from error

    def describe(self) -> dict[str, Any]:
        """All of it as plain values for JSON; :meth:`of` reads them."""
        fields = dataclasses.asdict(dataclasses.replace(self, stages=()))
        plain: dict[str, Any] = json.loads(json.dumps(fields, default=lambda number: number.tolist()))
        del plain["stages"]  # recorded fingerprints without stages do not name them
        return plain | ({"stages": [describe(stage) for stage in self.stages]} if self.stages else {})

    def over(self, other: Vision) -> Vision:
        """This one, and what it leaves at its default as in the other: a size alone leaves the other's cameras. A name
        of a camera that the other brings as a :class:`CameraSpec` means that."""
        brought = {c.name: c for c in other.cameras or () if isinstance(c, CameraSpec)}
        plain, changed = Vision(), dict[str, Any]()
        for one in dataclasses.fields(self):
            mine = getattr(self, one.name)
            changed[one.name] = getattr(other, one.name) if mine == getattr(plain, one.name) else mine
        if self.cameras is not None:
            changed["cameras"] = tuple(brought.get(c, c) if isinstance(c, str) else c for c in self.cameras)
        return Vision(**changed)

    def declare(self, b: SceneBuilder) -> None:
        """Add the cameras that robots bring and those given as specs to a scene being built."""
        for robot in b.robot_handles:
            b.robot_cameras(robot)
        for camera in self.cameras or ():
            if isinstance(camera, CameraSpec):
                b.camera(camera, replace=True)
        if self.size is not None:
            for name in self.names:
                b.camera(_declared(name, b.cameras).resized(*self.size), replace=True)

    @property
    def names(self) -> list[str]:
        """Of the cameras that are looked through."""
        return [c if isinstance(c, str) else c.name for c in self.cameras or ("base_camera",)]

    def rig(self, outputs: Sequence[str], world: World, declared: Mapping[str, CameraSpec]) -> CameraRig | None:
        """The cameras for the outputs that an observation looks at; None when it looks at none."""
        if not outputs:
            return None
        needed = {*outputs, *(word for stage in self.stages for word in getattr(stage, "needs", ()))}
        outputs = tuple(word for word in CAMERA_WORDS if word in needed)
        chosen = [_declared(name, declared) for name in self.names]
        return CameraRig(world, chosen, outputs, backend=self.renderer)


def _tuples(plain: Any) -> Any:
    """Lists as tuples, inside as well."""
    if isinstance(plain, Mapping):
        return {name: _tuples(value) for name, value in plain.items()}
    return tuple(_tuples(value) for value in plain) if isinstance(plain, list | tuple) else plain


def _declared(name: str, cameras: Mapping[str, CameraSpec]) -> CameraSpec:
    if name not in cameras:
        raise UnknownNameError("camera", name, cameras)
    return cameras[name]
