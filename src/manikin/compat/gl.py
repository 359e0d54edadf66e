"""OpenGL contexts as MuJoCo and PyOpenGL make them: the order of loading and of cleaning up."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
from typing import Any

__all__ = ["free_before_platform", "make_context"]


def make_context(platform: str, width: int, height: int) -> Any:
    """MuJoCo's own context of a platform: ``egl``, ``osmesa``, ``cgl`` or ``glfw``.

    Raises:
        Exception: of any kind. PyOpenGL raises its own, or AttributeError after another platform.
    """
    if importlib.util.find_spec("triton"):  # torch for GPUs brings it; loaded after Mesa, its LLVM ends the process
        importlib.import_module("triton")
    return importlib.import_module(f"mujoco.{platform}").GLContext(width, height)


def free_before_platform(finalizer: Any) -> None:
    """Run a ``weakref.finalize`` at exit, before MuJoCo closes the display.

    ``mujoco.egl`` closes it by ``atexit`` too, and registers when its first context is made; what is registered later
    runs earlier. weakref's own turn may come too late.
    """
    finalizer.atexit = False
    atexit.register(finalizer)
