"""Writes packages to start from: one with a task, a robot and a policy, and one that shows a task to LeRobot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from manikin.author.scaffold import TEMPLATES, names
from manikin.env.make import lerobot_envs
from manikin.env.registry import task_class
from manikin.errors import ConfigError

__all__ = ["write_envhub", "write_package"]

OBSERVED = {"agent_pos": "STATE", "environment_state": "ENV", "pixels": "VISUAL"}
SHOWN = {"agent_pos": "observation.state", "environment_state": "observation.environment_state"}


def write_package(name: str, folder: Path) -> Path:
    """Write a folder with an installable package: a task, a robot, a policy, tests and a file for CI.

    Args:
        name: of the task, in any way of writing it; the package is called like it.
        folder: where the package's folder is made.

    Returns:
        The package's folder.

    Raises:
        ConfigError: no name, or the folder is there already.
    """
    camel, task_id, module = names(name)
    distribution = module.replace("_", "-")
    root, package = folder / distribution, f"src/{module}"
    values = {"name": camel, "id": task_id, "module": module, "distribution": distribution, "file": task_id}
    files = {
        "pyproject.toml": "package/pyproject.toml.txt",
        "README.md": "package/README.md.txt",
        ".github/workflows/test.yml": "package/ci.yml.txt",
        f"{package}/__init__.py": "package/init.py.txt",
        f"{package}/task.py": "task.py.txt",
        f"{package}/robot.py": "package/robot.py.txt",
        f"{package}/arm.urdf": "package/arm.urdf.txt",
        f"{package}/policy.py": "package/policy.py.txt",
        f"tests/test_{module}.py": "package/test.py.txt",
    }
    _write(root, files, values)
    return root


def write_envhub(task: str, folder: Path, *, observe: str = "state_dict") -> Path:
    """Write a folder with which ``lerobot-eval`` runs a task: LeRobot's EnvHub layout, and a package of LeRobot's.

    Args:
        task: an id of a built-in task, or of one of an installed package.
        folder: where the folder is made.
        observe: ``state_dict``, or ``rgb+state`` for cameras, too.

    Returns:
        The folder that was made.

    Raises:
        UnknownNameError: no such task.
        ConfigError: the folder is there already, or the observation has no names.
    """
    found = task_class(task)
    if found.id != task.removeprefix("manikin/"):
        raise ConfigError(f"an environment for LeRobot needs the id of a task that is installed there, not {task!r}")
    camel, _, module = names(found.id.rpartition("-v")[0])
    env = lerobot_envs(found.id, 1, observe=observe)["manikin"][0]
    seen, _ = env.reset(seed=[0])
    size, fps = env.batched.controller.card.size, env.metadata["render_fps"]
    env.close()
    features: dict[str, tuple[str, tuple[int, ...]]] = {"action": ("ACTION", (size,))}
    shown = {"action": "action"}
    for name, value in seen.items():
        if name == "pixels":
            for camera, pictures in value.items():
                features[f"{name}/{camera}"] = OBSERVED[name], pictures.shape[1:]
                shown[f"{name}/{camera}"] = f"observation.images.{camera}"
        else:
            features[name], shown[name] = (OBSERVED[name], value.shape[1:]), SHOWN[name]
    indent, kind = " " * 12, "PolicyFeature(type=FeatureType"
    lines = [f'{indent}"{name}": {kind}.{word}, shape={shape}),' for name, (word, shape) in features.items()]
    table = [f"| `{shown[name]}` | {' x '.join(map(str, shape))} |" for name, (_, shape) in features.items()]
    values = {"name": camel, "id": found.id, "module": module, "observe": observe, "fps": str(fps)} | {
        "instruction": found.instruction,
        "features": "\n".join(lines),
        "features_map": "\n".join(f'{indent}"{name}": "{to}",' for name, to in shown.items()),
        "table": "\n".join(table),
    }
    root = folder / module
    files = {
        "env.py": "envhub/env.py.txt",
        f"lerobot_env_{module}.py": "envhub/plugin.py.txt",
        "pyproject.toml": "envhub/pyproject.toml.txt",
        "README.md": "envhub/README.md.txt",
    }
    _write(root, files, values)
    return root


def _write(root: Path, files: Mapping[str, str], values: Mapping[str, str]) -> None:
    if root.exists():
        raise ConfigError(f"{root} is there already; choose another name or --dir")
    for name, template in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(values)
        path.write_text(text, encoding="utf-8")
