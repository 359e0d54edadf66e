"""The kind of machine: what the last bits of a result depend on. Imports nothing heavy."""

from __future__ import annotations

import platform

__all__ = ["machine", "processor"]


def machine(device: str = "cpu") -> dict[str, str]:
    """Kind of processor, and of the graphics card that simulates on a ``cuda`` device: trajectories on a CPU are exact
    on the same kind and may differ in last bits on another."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            model = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    found = {"system": platform.system(), "architecture": platform.machine(), "processor": model}
    return found | {"gpu": processor(device)} if device.startswith("cuda") else found


def processor(device: str) -> str:
    """Name of what simulates on a device: the graphics card's, or the processor's."""
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name(torch.device(device)))
    return machine()["processor"] + (" (Warp's kernels)" if device != "cpu" else "")
