"""The fingerprint: everything that a result depends on besides its seed."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manikin._version import __version__
from manikin.assets.python_file import class_place
from manikin.env.observe import Vision
from manikin.errors import ConfigError
from manikin.machine import machine
from manikin.scene.handles import Part, Robot
from manikin.scene.handles.articulation import Articulation
from manikin.scene.handles.variant import VariantPart

if TYPE_CHECKING:
    from manikin.env.assemble import Assembly

__all__ = ["fingerprint", "source_of", "sources", "task_code", "versions"]

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


def task_code(task: type) -> str | None:
    """SHA-256 of the code of a task of one's own, 64 hex digits; None for manikin's own tasks.

    Of the files of its class and of all that it is derived from, and of what these import from the same folder or
    package. Where the files lie does not count, nor how their lines end; comments do.

    Raises:
        ConfigError: a file of it cannot be read, as for a class that was typed at a prompt.
    """
    if task.__module__.startswith("manikin."):
        return None
    classes = [one for one in task.__mro__ if not one.__module__.startswith(("manikin.", "builtins"))]
    waiting = [(one.__module__, getattr(sys.modules.get(one.__module__), "__file__", None)) for one in classes]
    roots = [_root(name, Path(file)) for name, file in waiting[:1] if file is not None]
    digests: dict[Path, str] = {}
    while waiting:
        module, file = waiting.pop()
        if file is None or Path(file).resolve() in digests:
            if file is None and module == task.__module__:
                raise ConfigError(
                    f"task {task.__qualname__} is not defined in a file, so its code has no hash; move it into a .py "
                    "file"
                )
            continue
        path = Path(file).resolve()
        try:
            text = path.read_text(encoding="utf-8")
            imported = _imports(text, module if path.name == "__init__.py" else module.rpartition(".")[0])
        except (OSError, ValueError, SyntaxError) as error:
            raise ConfigError(f"the code of task {task.__qualname__} cannot be read: {error}") from None
        digests[path] = hashlib.sha256(text.encode()).hexdigest()  # lines end with \n, as read
        for name in imported:
            found = getattr(sys.modules.get(name), "__file__", None)
            if found is not None and _is_own(Path(found).resolve(), roots):
                waiting.append((name, found))
    return hashlib.sha256("".join(sorted(digests.values())).encode()).hexdigest()


_INSTALLED = {"site-packages", "dist-packages"}


def _root(module: str, file: Path) -> Path:
    """The folder whose code belongs to a module's: that of its package, or where it lies; alone among what is
    installed."""
    path = file.resolve()
    if "." in module:
        return path.parents[module.count(".") - (path.name != "__init__.py")]
    return path if path.parent.name in _INSTALLED else path.parent


def _is_own(path: Path, roots: list[Path]) -> bool:
    """Whether a file belongs to one of the roots, and not to what is installed below it."""
    library = Path(__file__).resolve().parents[2]
    own = (root for root in roots if path.is_relative_to(root) and not path.is_relative_to(library))
    return any(path.suffix == ".py" and not _INSTALLED & {*path.relative_to(root).parts} for root in own)


def _imports(text: str, package: str) -> set[str]:
    """Names of what the text of a module in a package imports, and of modules that may be among what it takes."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            names |= {source, *(f"{source}.{one.name}" for one in node.names)}
    return names | {name.rpartition(".")[0] for name in names}


def fingerprint(made: Assembly) -> dict[str, Any]:
    """Task, config, robot, control, rates, compiled model, software and processor, ready for JSON."""
    options, vision = made.options, made.vision.describe()
    chosen = [h for h in made.builder.handles if isinstance(h, VariantPart)]
    return {
        "task": made.task.id,
        "task_class": class_place(type(made.task)),
        "config": json.loads(json.dumps(dataclasses.asdict(made.task.config))),  # as it is read again: lists
        "robot": made.robot_word,
        "control": made.controller.name,
        "action_names": [dim.name for dim in made.controller.card.dims],
        "observe": made.observation.plain,
        "vision": None if vision == Vision().describe() else vision,
        "sensors": None if made.sensors is None else made.sensors.describe(),
        "device": options.device,
        "budget": None if made.budget is None else dataclasses.asdict(made.budget),
        "deterministic": None if options.device == "cpu" else options.deterministic,
        "reward": options.reward,
        "control_hz": made.control_hz,
        "physics_hz": made.physics_hz,
        "horizon": made.horizon,
        "terminate": made.terminates,
        "looks": None if options.looks is None else made.dresser.looks.describe(),
        "props": {part.name: {p.name: p.source for p in part.props} for part in chosen},
        "model_hash": made.scene.hash,
        "versions": versions(),
        "machine": machine(options.device),
    }


def source_of(thing: Robot | Part | Articulation) -> str:
    """Where a thing's shapes come from, in words: meshes, or what stands in for them."""
    if isinstance(thing, Robot) and not thing.source:
        return "the maker's meshes" if thing.model.menagerie else "stand-in: primitives"
    return thing.source or "shapes of the task"


def sources(things: Iterable[Robot | Part | Articulation]) -> dict[str, str]:
    """:func:`source_of` by the thing's name; of a part that differs between rows for each ``PART: CANDIDATE``."""
    found: dict[str, str] = {}
    for thing in things:
        if isinstance(thing, VariantPart):
            found |= {f"{thing.name}: {prop.name}": prop.source or "shapes of the task" for prop in thing.props}
        else:
            found[thing.name] = source_of(thing)
    return found
