"""`import manikin` is quick, silent and loads nothing heavy; every public name resolves when asked for."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import manikin

HEAVY = ("torch", "mujoco", "warp", "mujoco_warp", "h5py", "av", "tyro", "rich", "scipy")


def run_python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **env},
        check=False,
    )


def test_import_loads_nothing_heavy_and_prints_nothing() -> None:
    result = run_python(f"import sys, manikin; sys.exit(sum(m in sys.modules for m in {HEAVY!r}))")
    assert (result.stdout, result.stderr) == ("", "")
    assert result.returncode == 0


def test_import_takes_less_than_half_a_second() -> None:
    code = "import time; t = time.process_time(); import manikin; print(time.process_time() - t)"
    seconds = min(float(run_python(code).stdout) for _ in range(3))  # the best of three: the machine may be busy
    assert seconds < 0.5


def test_import_leaves_global_state_alone() -> None:
    code = (
        "import os, random, sys, warnings, logging, json\n"
        "def state(): return [random.getstate()[1][:5], {**os.environ}, logging.getLogger().handlers, sys.path]\n"
        "import gymnasium\n"  # its own import sets an environment variable
        "before = json.dumps(state()); import manikin; print(before == json.dumps(state()))"
    )
    assert run_python(code).stdout.strip() == "True"


@pytest.mark.parametrize("name", manikin.__all__)
def test_public_name_resolves_and_is_listed(name: str) -> None:
    assert getattr(manikin, name) is not None
    assert name in dir(manikin)


def test_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(AttributeError, match=r"'mak'.*\bmake\b"):
        manikin.mak  # noqa: B018


def test_type_checkers_see_the_same_names_as_the_interpreter() -> None:
    tree = ast.parse(Path(manikin.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imported = {alias.name: node.module for node in block.body for alias in node.names}
    assert set(imported) | {"__version__"} == set(manikin.__all__)
    for name, module in imported.items():
        assert getattr(importlib.import_module(module), name) is getattr(manikin, name)


def test_gymnasium_knows_the_tasks_without_loading_them() -> None:
    code = (
        "import sys, json, gymnasium, manikin\n"
        "ids = [i for i in gymnasium.registry if i.startswith('manikin/')]\n"
        "print(json.dumps([ids, 'torch' in sys.modules, 'mujoco' in sys.modules]))"
    )
    ids, torch, mujoco = json.loads(run_python(code).stdout)
    assert "manikin/PickCube-v2" in ids
    assert not torch
    assert not mujoco
