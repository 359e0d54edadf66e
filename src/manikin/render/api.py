"""One interface for pictures, whatever makes them.

To add a backend, write a class with the protocol of :class:`Renderer` and name it in :func:`make_renderer`; the rig,
the environments and the tests of agreement take it from there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

import mujoco
import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.render.view import View
from manikin.spec.camera import CameraSpec

__all__ = ["BACKENDS", "OUTPUTS", "Renderer", "check_outputs", "choose", "make_renderer"]

BACKENDS = ("auto", "gl", "warp", "rays", "filament")
OUTPUTS = ("rgb", "depth", "segmentation", "normals")

_GET_GL = "On Debian or Ubuntu: apt install libegl1 libgl1-mesa-dri (or libosmesa6)."
_told: set[str] = set()  # reasons already logged in this process

log = logging.getLogger("manikin.render")


class Renderer(Protocol):
    """Makes pictures of a model in a state. Not for use by two threads at once; closed by the thread that made it.

    All backends draw geoms and sites of the groups 0, 1, 2 before the same vertical gradient, lit by the model's
    headlight and lights, without reflections; skyboxes, haze, skins and tendons differ or are left out. What a camera
    is inside of it does not see.
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


# Pixels up to which Warp's ray tracer was quicker than OpenGL on two cores with two threads, by OpenGL's passes: colour
# and depth are one, segmentation another (crossover_ms in benchmarks/results/render.json).
_WARP_UP_TO = {1: 32 * 32, 2: 48 * 48}


def choose(outputs: Iterable[str] = ("rgb",), *, pixels: int | None = None) -> tuple[str, str]:
    """The backend ``auto`` takes on this machine, and why not one before it.

    OpenGL where it works, except for small pictures where it draws with the processor and Warp's ray tracer, quicker
    there, is installed: up to 32 x 32 pixels, 48 x 48 if segmentation is asked for beside colour or depth. Without
    OpenGL, Warp where installed, else MuJoCo's own rays, which also take over when normals are asked for.

    Args:
        outputs: what will be asked for.
        pixels: of the largest picture, samples counted; None for pictures of any size.
    """
    words = set(outputs)
    check_outputs("auto", words, OUTPUTS)
    if "normals" in words:
        return "rays", "gl gives no normals"
    from manikin.render import gl

    platform, why = gl.probe()
    passes = ("segmentation" in words) + bool(words & {"rgb", "depth"})
    small = pixels is not None and pixels <= _WARP_UP_TO[max(1, passes)]
    if platform and not (small and gl.software()):
        return "gl", ""
    missing = _without_warp()
    if not missing:
        return "warp", "" if platform else f"gl: {why}"
    return ("gl", "") if platform else ("rays", f"gl: {why}; warp: {missing}")


def _without_warp() -> str:
    """Empty where Warp's ray tracer is installed, else what is missing."""
    try:
        from manikin.render import warp
    except ImportError as error:
        return str(error)
    return warp.probe()


def make_renderer(
    backend: str = "auto",
    *,
    outputs: Iterable[str] = ("rgb",),
    samples: int = 1,
    shadows: bool = False,
    pixels: int | None = None,
) -> Renderer:
    """A renderer that works on this machine.

    Args:
        backend: ``gl`` is MuJoCo's OpenGL renderer, headless by EGL or OSMesa on Linux; ``warp`` MuJoCo Warp's ray
            tracer; ``rays`` casts rays with MuJoCo itself and needs no driver; ``filament`` is physically based;
            ``auto`` is what :func:`choose` says. Whether OpenGL works is tried once per process, in a process of its
            own (about a second).
        outputs: what will be asked of it.
        samples: samples per pixel each way, 1 to 4: smooth edges at samples^2 times the cost (``rays``: of the edges).
        shadows: draw shadows of the lights that cast them.
        pixels: of the largest picture that will be asked for, for ``auto``; None for any.

    Raises:
        UnknownNameError: for another backend, or an output that it cannot give.
        ConfigError: if the backend does not work here, or ``samples`` is out of range.
    """
    if backend not in BACKENDS:
        raise UnknownNameError("renderer", backend, BACKENDS)
    if not 1 <= samples <= 4:
        raise ConfigError(f"samples per pixel each way must be 1 to 4; got {samples}")
    outputs = tuple(outputs)
    if backend == "auto":
        backend, why = choose(outputs, pixels=None if pixels is None else pixels * samples**2)
        if "gl:" in why and why not in _told:
            _told.add(why)
            log.warning("pictures are made by %s, OpenGL does not work here (%s). %s", backend, why, _GET_GL)
    made = _make(backend, samples, shadows)
    try:
        check_outputs(made.name, outputs, made.outputs)
    except UnknownNameError:
        made.close()
        raise
    return made


def _make(backend: str, samples: int, shadows: bool) -> Renderer:
    if backend == "gl":
        from manikin.render import gl

        platform, why = gl.probe()
        if not platform:
            raise ConfigError(
                f"OpenGL does not work here ({why}). {_GET_GL} backend='auto' takes another renderer, backend='rays' "
                "needs no library."
            )
        return gl.GlRenderer(platform, samples=samples, shadows=shadows)
    if backend == "warp":
        from manikin.render.warp import WarpRenderer

        return WarpRenderer(samples=samples, shadows=shadows)
    if backend == "filament":
        from manikin.render.filament import FilamentRenderer

        return FilamentRenderer(samples=samples, shadows=shadows)
    from manikin.render.rays import RayRenderer

    return RayRenderer(samples=samples, shadows=shadows)
