"""moved.py: every old module and name still works, is the very thing it was, and warns with the new name."""

from __future__ import annotations

import ast
import importlib
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from manikin import moved

SOURCE = Path(moved.__file__).resolve().parent
# Public modules before they moved, each with the names in its ``__all__``.
FORMER = {
    line.split()[0]: line.split()[1:]
    for line in Path(__file__).with_name("moved_names.txt").read_text().splitlines()
    if line and not line.startswith("#")
}
OPTIONAL = {"warp", "mujoco_warp", "av", "pyarrow"}


def new_place(old: str, name: str) -> str:
    return (moved.NAMES.get(old, {}).get(name) or moved.MODULES.get(old, old)).partition(":")[0]


def new_name(old: str, name: str) -> str:
    return moved.NAMES.get(old, {}).get(name, "").partition(":")[2] or name


def import_or_skip(module: str) -> object:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or "").split(".")[0] in OPTIONAL:
            pytest.skip(f"{error.name} is not installed")
        raise


def test_every_old_module_is_in_the_table_or_where_it_was() -> None:
    there = {".".join(p.relative_to(SOURCE.parent).with_suffix("").parts) for p in SOURCE.rglob("*.py")}
    there |= {one.removesuffix(".__init__") for one in there}
    lost = [old for old in FORMER if old not in moved.MODULES and old not in there]
    assert not lost, "moved without a line in manikin.moved"
    assert not [old for old in moved.MODULES if old in there], "a module of today cannot be an old name"
    places = (new.partition(":")[0] for names in moved.NAMES.values() for new in names.values())
    news = {*moved.MODULES.values(), *places}
    assert not news - there, "moved to where nothing is"
    assert set(moved.MODULES) <= set(FORMER), "add its names to tests/house/moved_names.txt"


@pytest.mark.parametrize("old", sorted(FORMER))
def test_old_names_are_the_things_they_were_and_warn(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FORMER[old]:
        import_or_skip(new_place(old, name))
    is_moved, names = old in moved.MODULES, moved.NAMES.get(old, {})
    if is_moved:
        monkeypatch.delitem(sys.modules, old, raising=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scope: dict[str, object] = {}
        exec(f"from {old} import {', '.join(FORMER[old])}" if FORMER[old] else f"import {old}", scope)
    ours = [one for one in said if one.category is DeprecationWarning and "has moved to" in str(one.message)]
    words = [str(one.message) for one in ours]
    assert {one.filename for one in ours} <= {"<string>"}  # the line that has the old name
    if is_moved:
        assert words[0].startswith(f"{old} has moved to {moved.MODULES[old]};")
    for name in FORMER[old]:
        assert scope[name] is getattr(importlib.import_module(new_place(old, name)), new_name(old, name))
        if not is_moved and name in names:
            new = f"{new_place(old, name)}.{new_name(old, name)}"
            assert any(one.startswith(f"{old}.{name} has moved to {new};") for one in words)


def test_an_old_module_is_the_new_one_itself() -> None:
    """So that what is set in it is set, and importing it again reads no file twice."""
    from manikin.data.recording import durable

    spec = durable.__spec__
    sys.modules.pop("manikin.data.durable", None)
    with pytest.warns(DeprecationWarning, match=r"manikin\.data\.recording\.durable"):
        old = importlib.import_module("manikin.data.durable")
    assert old is durable and durable.__spec__ is spec and durable.__name__ == "manikin.data.recording.durable"


def test_what_was_pickled_under_an_old_name_is_read() -> None:
    from manikin.data.recording.format import Header

    sys.modules.pop("manikin.data.format", None)
    written = b"cmanikin.data.format\nHeader\n."
    with pytest.warns(DeprecationWarning, match="has moved to"):
        assert pickle.loads(written) is Header


def test_an_unknown_name_is_an_error_as_ever() -> None:
    with pytest.raises(ImportError):
        importlib.import_module("manikin.data.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        importlib.import_module("manikin.data.replay").nothing  # noqa: B018


def test_the_library_itself_uses_new_names() -> None:
    """Also inside functions, where no test may come by."""
    hits = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
                gone = [a.name for a in node.names if a.name in moved.NAMES.get(node.module, {})]
                hits += [f"{path.relative_to(SOURCE)}:{node.lineno} {node.module}.{name}" for name in gone]
            hits += [f"{path.relative_to(SOURCE)}:{node.lineno} {m}" for m in modules if m in moved.MODULES]
    assert not hits


def test_the_table_costs_nothing_until_it_is_needed() -> None:
    code = "import sys, manikin; print(any(m.startswith('manikin.data') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
