"""A user's own Python file as a module: a task, a policy, a robot."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import sys
from pathlib import Path
from types import ModuleType

from manikin.assets.paths import absolute
from manikin.errors import AssetError

__all__ = ["class_place", "run_file"]


def run_file(path: str | os.PathLike[str]) -> ModuleType:
    """Run a Python file and return it as a module.

    Its name in ``sys.modules`` begins with ``own_``, so that a file ``json.py`` does not take the place of the standard
    ``json``; files of one name in two folders are two modules. A file that is run again replaces what it was before.

    Raises:
        AssetError: when there is no such file.
    """
    place = absolute(path)
    if not place.is_file():
        raise AssetError(f"there is no file {path}")
    base = "own_" + re.sub(r"\W", "_", place.stem)
    names = itertools.chain([base], (f"{base}_{n}" for n in itertools.count(2)))
    name = next(n for n in names if n not in sys.modules or getattr(sys.modules[n], "__file__", "") == str(place))
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None and spec.loader is not None
    module, before = importlib.util.module_from_spec(spec), sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:  # what failed half-way is not kept, as with import
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


def class_place(cls: type) -> str | None:
    """Where a class of one's own can be loaded from, ``folder/file.py:Class`` or ``package.module:Class``.

    A file is named as seen from the current folder where it lies in it, so that a project may be moved.

    None for manikin's own, and for what cannot be loaded: of a script that is being run, or made inside a function.
    """
    module = cls.__module__
    file = getattr(sys.modules.get(module), "__file__", None)
    if module.startswith("manikin.") or module == "__main__" or file is None or "<locals>" in cls.__qualname__:
        return None
    path, here = Path(file).resolve(), Path.cwd().resolve()
    path = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{module if '.' in module else path.as_posix()}:{cls.__qualname__}"
