"""Writes a small task that already runs, and a test for it, from templates."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from manikin.errors import ConfigError

__all__ = ["TEMPLATES", "names", "write_task"]

TEMPLATES = Path(__file__).parent / "templates"


def names(word: str) -> tuple[str, str, str]:
    """(class, id, module) from any way of writing a task's name: ``("StackBowls", "StackBowls-v1", "stack_bowls")``.

    Raises:
        ConfigError: it is no name.
    """
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9_ -]*?)(?:-v(\d+))?", word.strip())
    if not found:
        raise ConfigError(
            f"{word!r} is not a valid name for a task; use letters, digits and _, like StackBowls or stack_bowls"
        )
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", found[1])
    camel = "".join(p[:1].upper() + p[1:] for p in parts)
    return camel, f"{camel}-v{found[2] or 1}", "_".join(p.lower() for p in parts)


def write_task(name: str, folder: Path) -> tuple[Path, Path]:
    """Write ``<name>.py`` and ``test_<name>.py`` into a folder; returns their paths.

    Raises:
        ConfigError: no name for a task, or one of the files is there already.
    """
    camel, task_id, module = names(name)
    values = {"name": camel, "id": task_id, "module": module, "file": f"{module}.py"}
    paths = folder / f"{module}.py", folder / f"test_{module}.py"
    for path in paths:
        if path.exists():
            raise ConfigError(f"{path} is there already; choose another name or --dir")
    folder.mkdir(parents=True, exist_ok=True)
    for path, template in zip(paths, ("task.py.txt", "test.py.txt"), strict=True):
        path.write_text(
            Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(values), encoding="utf-8"
        )
    return paths
