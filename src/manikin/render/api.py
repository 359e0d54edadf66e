"""One interface for pictures, whatever makes them."""

from __future__ import annotations

from typing import Protocol

import mujoco
import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.render.view import View
from manikin.spec.camera import CameraSpec

__all__ = ["Renderer", "make_renderer"]

BACKENDS = ("auto", "gl", "rays")


class Renderer(Protocol):
    """Makes pictures of a model in a state. Not for use by two threads at once.

    Both backends draw geoms and sites of the groups 0, 1, 2 before the same vertical gradient, lit by the model's
    headlight and lights, without reflections; skyboxes, haze, skins and tendons differ or are left out.
    """

    @property
    def name(self) -> str:
        """What makes the pictures, for example ``gl (egl)`` or ``rays``."""
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
        """A picture (height, width, 3) uint8, row 0 at the top.

        Args:
            model: the model; models that share meshes and textures share what was prepared for them.
            data: a state of it with ``mj_forward`` run.
            camera: name or number in the model, a CameraSpec, or a View (which brings its own size).
            width: [pixels]; by default the camera's own, else 256.
            height: [pixels]; by default the camera's own, else 192.
            sites: draw sites (markers for human eyes). Pictures for policies leave them out.

        Raises:
            UnknownNameError: if the model has no such camera.
            ConfigError: if the renderer is closed, or the camera or the size cannot work.
        """
        ...

    def close(self) -> None:
        """Free what the renderer holds. Idempotent."""
        ...


def make_renderer(backend: str = "auto", *, samples: int = 1, shadows: bool = False) -> Renderer:
    """A renderer that works on this machine.

    Args:
        backend: ``gl`` is MuJoCo's OpenGL renderer, headless by EGL or OSMesa on Linux; ``rays`` casts rays with MuJoCo
            itself and needs no driver; ``auto`` is the first of the two that works. Whether OpenGL works is tried once
            per process, in a process of its own (about a second).
        samples: samples per pixel each way, 1 to 4: smooth edges at samples^2 times the cost (``rays``: of the edges).
        shadows: draw shadows of the lights that cast them.

    Raises:
        UnknownNameError: for another backend.
        ConfigError: if ``gl`` was asked for and does not work here, or ``samples`` is out of range.
    """
    if backend not in BACKENDS:
        raise UnknownNameError("renderer", backend, BACKENDS)
    if not 1 <= samples <= 4:
        raise ConfigError(f"samples per pixel each way must be 1 to 4; got {samples}")
    if backend != "rays":
        from manikin.render import gl

        platform, why = gl.probe()
        if platform:
            return gl.GlRenderer(platform, samples=samples, shadows=shadows)
        if backend == "gl":
            raise ConfigError(f"OpenGL does not work here ({why}); backend='rays' needs none")
    from manikin.render.rays import RayRenderer

    return RayRenderer(samples=samples, shadows=shadows)
