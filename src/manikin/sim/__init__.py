"""Physics backends by device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manikin.errors import UnknownNameError
from manikin.spec.scene import CompiledScene

if TYPE_CHECKING:
    from manikin.sim.world import World

__all__ = ["DEVICES", "make_world"]

DEVICES = ("cpu", "warp:cpu")


def make_world(
    scene: CompiledScene, num_worlds: int, *, device: str = "cpu", threads: int = 0, poison: bool = False
) -> World:
    """A World of a scene on a device.

    ``cpu`` is MuJoCo's batch on processor threads, in float64. ``warp:cpu`` runs the GPU path's kernels on the
    processor, slowly and in float32: for tests of that path.
    """
    if device == "cpu":
        from manikin.sim.cpu import CpuWorld

        return CpuWorld(scene, num_worlds, threads=threads, poison=poison)
    if device == "warp:cpu":
        from manikin.sim.warp import WarpWorld

        return WarpWorld(scene, num_worlds, device=device)
    raise UnknownNameError("device", device, DEVICES)
