"""A script of benchmarks/ or docs/ as a module."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def script(name: str, folder: str = "benchmarks") -> ModuleType:
    """The module; what it imports from its own folder is found."""
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", ROOT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
