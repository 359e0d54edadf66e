"""Which renderer makes the pictures.

To add a backend, write a class with the protocol of :class:`manikin.render.renderer.Renderer` and name it in
:func:`make_renderer`; the rig, the environments and the tests of agreement take it from there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from manikin.errors import ConfigError, UnknownNameError
from manikin.render.renderer import OUTPUTS, Renderer, check_outputs

__all__ = ["BACKENDS", "choose", "make_renderer"]

BACKENDS = ("auto", "gl", "warp", "rays", "filament")

_GET_GL = "On Debian or Ubuntu: apt install libegl1 libgl1-mesa-dri (or libosmesa6)."
logged: set[str] = set()  # reasons already logged in this process

log = logging.getLogger("manikin.render")


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
    from manikin.render.backends import gl

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
        from manikin.render.backends import warp
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
        if "gl:" in why and why not in logged:
            logged.add(why)
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
        from manikin.render.backends import gl

        platform, why = gl.probe()
        if not platform:
            raise ConfigError(
                f"OpenGL does not work here ({why}). {_GET_GL} backend='auto' takes another renderer, backend='rays' "
                "needs no library."
            )
        return gl.GlRenderer(platform, samples=samples, shadows=shadows)
    if backend == "warp":
        from manikin.render.backends.warp import WarpRenderer

        return WarpRenderer(samples=samples, shadows=shadows)
    if backend == "filament":
        from manikin.render.backends.filament import FilamentRenderer

        return FilamentRenderer(samples=samples, shadows=shadows)
    from manikin.render.backends.rays import RayRenderer

    return RayRenderer(samples=samples, shadows=shadows)
