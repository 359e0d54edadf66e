"""What a result depends on besides its seed."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manikin._version import __version__
from manikin.env.observe import Vision
from manikin.scene.chosen import ChosenPart

if TYPE_CHECKING:
    from manikin.env.env import Env

__all__ = ["fingerprint", "machine", "processor", "task_place", "versions"]

_PACKAGES = ("mujoco", "mujoco-warp", "torch", "numpy", "gymnasium")


def versions() -> dict[str, str]:
    """Versions of manikin and of what results depend on."""
    found = {"manikin": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


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


def task_place(task: type) -> str | None:
    """Where a task of one's own can be loaded from, ``folder/file.py:Class`` or ``package.module:Class``.

    A file is named as seen from the current folder where it lies in it, so that a project may be moved.

    None for manikin's own, and for what cannot be loaded: of a script that is being run, or made inside a function.
    """
    module = task.__module__
    file = getattr(sys.modules.get(module), "__file__", None)
    if module.startswith("manikin.") or module == "__main__" or file is None or "<locals>" in task.__qualname__:
        return None
    path, here = Path(file).resolve(), Path.cwd().resolve()
    path = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{module if '.' in module else path.as_posix()}:{task.__qualname__}"


def fingerprint(env: Env) -> dict[str, Any]:
    """Task, config, robot, control, rates, compiled model, software and processor, ready for JSON."""
    vision = env.vision.describe()
    chosen = [h for h in env._builder.handles if isinstance(h, ChosenPart)]
    return {
        "task": env.task.id,
        "task_class": task_place(type(env.task)),
        "config": json.loads(json.dumps(dataclasses.asdict(env.task.config))),  # as it is read again: lists
        "robot": env.robot_word,
        "control": env.controller.name,
        "action_names": [dim.name for dim in env.controller.card.dims],
        "observe": env.observe,
        "vision": None if vision == Vision().describe() else vision,
        "sensors": None if env.sensors is None else env.sensors.describe(),
        "device": env.device_word,
        "budget": None if env.budget is None else dataclasses.asdict(env.budget),
        "deterministic": None if env.device_word == "cpu" else env._deterministic,
        "reward": env.reward_mode,
        "control_hz": env.control_hz,
        "physics_hz": env.physics_hz,
        "horizon": env.horizon,
        "terminate": env.terminates,
        "looks": None if env.looks is None else env._dresser.looks.describe(),
        "props": {part.name: {p.name: p.source for p in part.props} for part in chosen},
        "model_hash": env.scene.hash,
        "versions": versions(),
        "machine": machine(env.device_word),
    }
