"""MuJoCo Warp as a library: found, with its kernels in manikin's folder, and what it can simulate of a model."""

from __future__ import annotations

import copy
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mujoco
import torch

from manikin.assets.paths import cache_root
from manikin.compat.warp import peak_bytes, trim_graph_memory
from manikin.errors import AssetError, ConfigError

__all__ = [
    "Scratch",
    "in_torch_order",
    "launch_rows",
    "modules",
    "supported",
    "torch_stream",
    "trim_graphs",
    "warp_device",
]

_streams: dict[tuple[torch.device, int], Any] = {}


def modules() -> tuple[Any, Any]:
    """``(warp, mujoco_warp)``, imported on first use with kernels cached in manikin's folder.

    Raises:
        AssetError: they are not installed; says how to get them.
    """
    os.environ.setdefault("WARP_CACHE_PATH", str(cache_root() / "warp"))
    try:
        import warp

        warp.config.log_level = warp.LOG_ERROR  # every compiled kernel is a line of output otherwise
        warp.init()
        import mujoco_warp
    except ImportError as error:
        raise AssetError(f"MuJoCo Warp is not installed ({error}): pip install 'manikin[gpu]'") from None
    return warp, mujoco_warp


def warp_device(device: torch.device) -> Any:
    """Warp's name for a device of torch's.

    Raises:
        ConfigError: torch sees this GPU and Warp does not: their builds are for different versions of CUDA.
    """
    wp, _ = modules()
    if device.type == "cuda" and device.index >= wp.get_cuda_device_count():
        built = ".".join(map(str, wp.get_cuda_toolkit_version()))
        raise ConfigError(
            f"device {str(device)!r}: torch sees this GPU, Warp {wp.__version__} does not. It is built with CUDA "
            f"{built}: update the NVIDIA driver, or install a Warp built with an older CUDA; or use device='cpu'"
        )
    return wp.device_from_torch(device)


def torch_stream(device: torch.device) -> Any:
    """Warp's name for torch's present stream on a GPU. It is kept: Warp forgets a stream as soon as any of its names is
    gone, and torch hands out the same few streams again and again."""
    import warp

    stream = torch.cuda.current_stream(device)
    key = (device, int(stream.cuda_stream))
    if key not in _streams:
        _streams[key] = warp.stream_from_torch(stream)
    return _streams[key]


def in_torch_order(device: torch.device) -> AbstractContextManager[Any]:
    """Warp's kernels on torch's present stream, so that neither waits for the other; nothing on a processor."""
    if device.type == "cpu":
        return nullcontext()
    import warp

    stream: AbstractContextManager[Any] = warp.ScopedStream(torch_stream(device), sync_enter=False)
    return stream


def launch_rows(kernel: Any, rows: int, arguments: list[Any], device: torch.device) -> None:
    """Start a kernel in which each thread has a row's whole work, in torch's order. Small blocks spread few rows over
    many of a GPU's processors."""
    import warp

    with in_torch_order(device):
        warp.launch(kernel, rows, arguments, device=warp.device_from_torch(device), block_dim=32)


def trim_graphs(device: torch.device) -> None:
    """Give back what a GPU keeps for recorded graphs that are gone."""
    trim_graph_memory(warp_device(device).ordinal)


def supported(model: mujoco.MjModel) -> mujoco.MjModel:
    """A copy for MuJoCo Warp. It has no autoreset to switch off.

    With the flag of the general algorithm for convex shapes Warp takes that one for two boxes too, and where an edge
    presses by tenths of a millimetre finds normals up to 3 degrees off. Without it, it takes MuJoCo's own for boxes: to
    0.02 degrees the CPU's normals, and as many contacts.

    Raises:
        ConfigError: it asks for what Warp does not have.
    """
    if model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_DISCRETE) and model.opt.noslip_iterations:
        raise ConfigError(
            "MuJoCo Warp has no noslip_iterations with the discrete integrator: leave them at 0, or take "
            "Physics(integrator='implicitfast', hz=200)"
        )
    plain = copy.copy(model)
    plain.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
    plain.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_NATIVECCD)  # no other pair of shapes heeds it
    allowed = plain.tree_sleep_policy == int(mujoco.mjtSleepPolicy.mjSLEEP_ALLOWED)  # which Warp does not know
    plain.tree_sleep_policy[allowed] = int(mujoco.mjtSleepPolicy.mjSLEEP_AUTO_ALLOWED)
    return plain


class Scratch:
    """What Warp allocates inside a ``with``, on all devices, by its own tracker.

    Attributes:
        most: bytes in use at once, at most; what was there before does not count.
    """

    def __init__(self) -> None:
        self._wp, _ = modules()
        self._tracker = self._wp.ScopedMemoryTracker("manikin", print=False)
        self.most = 0

    def __enter__(self) -> Scratch:
        self._tracker.__enter__()
        self._tracker.clear()
        return self

    def __exit__(self, *error: object) -> None:
        self.most = peak_bytes()
        self._tracker.__exit__(*error)
