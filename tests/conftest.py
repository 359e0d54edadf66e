"""Shared by all tests: one torch thread, roots of real data, and the header that says what ran."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from own_arm import arm_text

pytest_plugins = ["last_skipped"]
torch.set_num_threads(1)  # two workers on two cores
os.environ["MANIKIN_CORES"] = "1"  # trainers too


def pytest_report_header() -> list[str]:
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("torch", "mujoco", "gymnasium", "numpy"))
    roots = (f"{name}={os.environ.get(name, '(not set)')}" for name in ("MANIKIN_DATA", "MENAGERIE_ROOT"))
    return [", ".join(versions), ", ".join(roots)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("mujoco_warp") is None:
        for item in items:
            params = item.callspec.params.values() if hasattr(item, "callspec") else ()
            if any(isinstance(value, str) and value == "warp:cpu" for value in params):  # others may be arrays
                item.add_marker(pytest.mark.skip(reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'"))
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(autouse=True)
def forget_own_robots() -> Iterator[None]:
    """What a test registers is gone after it: other tests list the robots there are."""
    yield
    for name in ("manikin.robots", "manikin.grippers"):
        if name in sys.modules:
            sys.modules[name].forget()


@pytest.fixture
def no_own_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test knows none of the tasks that others registered, and they none of its own."""
    from manikin.env import registry

    monkeypatch.setattr(registry, "_registered", {})  # house: private, tests' modules register theirs once
    monkeypatch.setattr(registry, "_tell_gymnasium", lambda task_id: None)  # house: private, which cannot forget


def _root(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set (real models and recordings; see CONTRIBUTING.md)")
    path = Path(value)
    if not path.is_dir():
        pytest.fail(f"{variable}={value} is not a folder")
    return path


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of real recordings and models; the test skips where there is none."""
    return _root("MANIKIN_DATA")


@pytest.fixture(scope="session")
def menagerie_root() -> Path:
    """Folder of MuJoCo Menagerie robots; the test skips where there is none."""
    return _root("MENAGERIE_ROOT")


@pytest.fixture
def six(tmp_path: Path) -> Path:
    """File of a robot of one's own: an arm of six joints."""
    path = tmp_path / "six.urdf"
    path.write_text(arm_text())
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, for this test alone."""
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
