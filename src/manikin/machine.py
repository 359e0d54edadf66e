"""The kind of machine: what the last bits of a result depend on. Imports nothing heavy."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from manikin._version import __version__

__all__ = ["cpu_kind", "different", "exact_machine", "machine", "processor"]

_PACKAGES = ("mujoco", "torch", "numpy")


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


def exact_machine(device: str = "cpu") -> dict[str, str]:
    """What two workers must have in common so that they compute the same bits: :func:`machine`, the device, the
    processor in more words than its name, which many kinds share in a cloud, and the versions of what computes.

    Args:
        device: that simulates.
    """
    versions = {"manikin": __version__}
    for package in (*_PACKAGES, *(() if device == "cpu" else ("mujoco-warp", "warp-lang"))):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "absent"
    return {**machine(device), "device": device, "cpu": _cpu(), **versions}


def different(then: Mapping[str, str], here: Mapping[str, str]) -> str:
    """In what two of :func:`exact_machine` differ, in words; empty where they are the same.

    Args:
        then: of the run.
        here: of this process.
    """
    names = [name for name in {**then, **here} if then.get(name) != here.get(name)]
    return "; ".join(f"{name}: {here.get(name, 'unknown')} here, {then.get(name, 'unknown')} there" for name in names)


def cpu_kind(cpuinfo: str) -> str:
    """Maker, family, model and stepping of a processor, or implementer, part and revision of one of ARM, and a digest
    of its flags, whose order does not count. Cores of several kinds are all named.

    Args:
        cpuinfo: text as Linux has it in ``/proc/cpuinfo``. Empty comes out where it says nothing of these.
    """
    kinds: set[str] = set()
    for core in cpuinfo.split("\n\n"):
        pairs = (line.partition(":") for line in core.splitlines())
        told = {name.strip(): value.strip() for name, _, value in pairs}
        said = [f"{word}{told[name]}" for name, word in _CPU.items() if name in told]
        flags = " ".join(sorted((told.get("flags") or told.get("Features") or "").split()))
        if said:
            kinds.add(" ".join([*said, f"flags {hashlib.sha256(flags.encode()).hexdigest()[:8]}"]))
    return " and ".join(sorted(kinds))


_CPU = {
    "vendor_id": "",
    "cpu family": "family ",
    "model": "model ",
    "stepping": "stepping ",
    "CPU implementer": "implementer ",
    "CPU part": "part ",
    "CPU variant": "variant ",
    "CPU revision": "revision ",
}


def _cpu() -> str:
    with suppress(OSError), open("/proc/cpuinfo") as file:
        return cpu_kind(file.read()) or platform.processor()
    with suppress(OSError, subprocess.SubprocessError):  # macOS
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    return platform.processor()


def processor(device: str) -> str:
    """Name of what simulates on a device: the graphics card's, or the processor's."""
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name(torch.device(device)))
    return machine()["processor"] + (" (Warp's kernels)" if device != "cpu" else "")
