"""Physics backends by device."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from manikin.sim.device import DEVICES, on_device, torch_device
from manikin.spec.budget import Budget
from manikin.spec.scene import CompiledScene

if TYPE_CHECKING:
    from manikin.sim.world import World

__all__ = ["DEVICES", "Budget", "make_world", "on_device", "torch_device"]


def make_world(
    scene: CompiledScene,
    num_worlds: int,
    *,
    device: str = "cpu",
    threads: int = 0,
    poison: bool = False,
    budget: Budget | None = None,
    deterministic: bool = False,
) -> World:
    """A World of a scene on a device.

    ``cpu`` is MuJoCo's batch on processor threads, in float64. ``cuda`` (the process's current GPU) and ``cuda:1`` are
    MuJoCo Warp, in float32. ``warp:cpu`` runs the GPU path's kernels on the processor, slowly: for tests of that path.
    ``budget`` and ``deterministic`` concern Warp alone: the CPU has room for everything and gives the same bits always.

    Raises:
        UnknownNameError, AssetError, ConfigError: see :func:`torch_device`.
    """
    torch_device(device)
    if device == "cpu":
        from manikin.sim.cpu import CpuWorld

        return CpuWorld(scene, num_worlds, threads=threads, poison=poison)
    from manikin.sim.warp.world import WarpWorld

    room = dataclasses.asdict(budget or Budget())
    return WarpWorld(scene, num_worlds, device=device, deterministic=deterministic, **room)
