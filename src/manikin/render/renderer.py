"""One interface for pictures, whatever makes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import mujoco
import numpy as np

from manikin.errors import UnknownNameError
from manikin.render.view import View
from manikin.spec.camera import CameraSpec

__all__ = ["OUTPUTS", "Renderer", "check_outputs"]

OUTPUTS = ("rgb", "depth", "segmentation", "normals")


class Renderer(Protocol):
    """Makes pictures of a model in a state. Not for use by two threads at once; closed by the thread that made it.

    All backends draw geoms and sites of the groups 0, 1, 2 before the same vertical gradient, lit by the model's
    headlight and lights, without reflections, and dots (:mod:`manikin.sim.dots`) on them; skyboxes, haze, skins and
    tendons differ or are left out. What a camera is inside of it does not see.
    """

    outputs: frozenset[str]
    """The words of :data:`OUTPUTS` that it can give."""

    @property
    def name(self) -> str:
        """What makes the pictures, for example ``gl (egl)`` or ``rays``."""
        ...

    def images(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        camera: str | int | CameraSpec | View,
        outputs: tuple[str, ...] = ("rgb",),
        *,
        width: int | None = None,
        height: int | None = None,
        sites: bool = False,
    ) -> dict[str, np.ndarray]:
        """Pictures of one state from one camera, row 0 at the top, owned by the receiver.

        Args:
            model: the model; models that share meshes and textures share what was prepared for them.
            data: a state of it with ``mj_kinematics``, ``mj_comPos`` and ``mj_camlight`` run.
            camera: name or number in the model, a CameraSpec, or a View (which brings its own size).
            outputs: which of

                - ``rgb`` (height, width, 3) uint8;
                - ``depth`` (height, width) float32 [m] along the camera's axis, 0 where nothing is;
                - ``segmentation`` (height, width) int32, geom number + 1, 0 where none is; glass counts as it is;
                - ``normals`` (height, width, 3) float32 unit vectors in the world, 0 where nothing is.
            width: [pixels]; by default the camera's own, else 256.
            height: [pixels]; by default the camera's own, else 192.
            sites: draw sites (markers for human eyes) in ``rgb``. Pictures for policies leave them out.

        Raises:
            UnknownNameError: if the model has no such camera, or the renderer no such output.
            ConfigError: if the renderer is closed, or the camera, its pose or the size cannot work.
        """
        ...

    def rgb(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        camera: str | int | CameraSpec | View,
        *,
        width: int | None = None,
        height: int | None = None,
        sites: bool = True,
    ) -> np.ndarray:
        """The picture ``rgb`` of :meth:`images`, for human eyes: with sites."""
        ...

    def close(self) -> None:
        """Free what the renderer holds. Idempotent."""
        ...


def check_outputs(name: str, outputs: Iterable[str], valid: Iterable[str]) -> None:
    """Raise :class:`UnknownNameError` if a renderer cannot give one of the outputs."""
    for word in outputs:
        if word not in valid:
            raise UnknownNameError(f"output of renderer {name!r}", word, valid)
