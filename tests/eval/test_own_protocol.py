"""Protocols with tasks of one's own: what their hash covers, what is not compared, and what the report calls them."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from manikin.cli import main
from manikin.env.registry import task_class
from manikin.env.state.provenance import task_code
from manikin.errors import ConfigError, ManikinError
from manikin.eval.evaluation import evaluate
from manikin.eval.pages.report import render_html
from manikin.eval.protocol import Protocol, load_protocol
from manikin.eval.report import as_dict, compare, read_report
from manikin.policy.random_policy import RandomPolicy

REST = """
from dataclasses import dataclass

import manikin
from manikin.arenas.table import table


class Rest(manikin.Task):
    id = "Rest-v1"
    horizon_s = 0.2
    instruction = "rest"

    @dataclass(frozen=True)
    class Config:
        far: float = 9.0
        turn: tuple[float, float] = (0.0, 1.0)

    def scene(self, b):
        table(b)
        return {"robot": b.robot()}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h):
        return {"success": h.robot.qpos[:, 0] > self.config.far}

    def observe(self, h):
        return {}
"""
PROTOCOL = """
format = 1
name = "rest"
tasks = ["{word}"]
horizon = 2
reward = "sparse"

[episodes]
seeds = [3, 4]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rest.py").write_text(REST)
    Path("rest.toml").write_text(PROTOCOL.format(word="rest.py:Rest"))
    return tmp_path


def digest(**changes: Any) -> str:
    options: dict[str, Any] = {"name": "x", "tasks": ("rest.py",), "seeds": (1,), **changes}
    return Protocol(**options).hash


def test_the_hash_of_a_file_is_that_of_its_text(folder: Path) -> None:
    text = hashlib.sha256(REST.encode()).hexdigest()
    assert task_code(task_class("rest.py")) == hashlib.sha256(text.encode()).hexdigest()
    assert task_code(task_class("PickCube-v2")) is None


def test_the_hash_follows_the_code_and_the_configuration_of_own_tasks(folder: Path) -> None:
    first = digest()
    Path("rest.py").write_bytes(REST.replace("\n", "\r\n").encode())
    assert digest() == first == digest(tasks=("rest.py:Rest",))  # the same code
    Path("elsewhere").mkdir()
    Path("elsewhere/other_name.py").write_text(REST)
    assert digest(tasks=("elsewhere/other_name.py",)) == first  # where it lies does not count
    assert digest(config={"rest.py": {"far": 9.0}}) == first  # its default
    assert digest(config={"rest.py": {"turn": [0.0, 1.0]}}) == first
    assert digest(config={"rest.py": {"far": 8.0}}) != first
    for change in (("far: float = 9.0", "far: float = 8.0"), ("> self", ">= self"), ("v1", "v2")):
        Path("rest.py").write_text(REST.replace(*change))
        assert digest() != first, change
    protocol = Protocol(name="x", tasks=("rest.py",), seeds=(1,))
    fixed = protocol.hash
    Path("rest.py").write_text(REST)
    assert protocol.hash == fixed != first  # of one protocol it does not change while it is being run


def test_the_hash_follows_what_the_file_imports_from_beside_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    package = folder / "rest_parts"
    (package / "deep").mkdir(parents=True)
    for name, text in (
        ("__init__.py", ""),
        ("numbers.py", "from .deep import base\nFAR = base.FAR\n"),
        ("deep/__init__.py", "from . import base\n"),
        ("deep/base.py", "FAR = 9.0\n"),
        ("unused.py", "FAR = 1.0\n"),
    ):
        (package / name).write_text(text)
    Path("rest.py").write_text("from rest_parts.numbers import FAR\n" + REST.replace("= 9.0", "= FAR"))
    first = digest()
    (package / "unused.py").write_text("FAR = 2.0\n")
    assert digest() == first
    (package / "deep" / "base.py").write_text("FAR = 9.0  # m\n")
    assert digest() != first
    for name in [name for name in sys.modules if name.startswith("rest_parts")]:
        del sys.modules[name]
    Path("rest_parts/tasks.py").write_text("from .deep.base import FAR\n" + REST)
    assert task_code(task_class("rest_parts.tasks:Rest")) is not None
    before = digest(tasks=("rest_parts.tasks:Rest",))
    (package / "deep" / "base.py").write_text("FAR = 7.0\n")
    assert digest(tasks=("rest_parts.tasks:Rest",)) != before


def test_shipped_tasks_do_not_change_a_hash_and_wrong_ones_are_named(folder: Path) -> None:
    plain = Protocol(name="x", tasks=("PickCube-v2",), seeds=(1,))
    assert plain.own_tasks == {} and '"own"' not in plain.canonical()
    Path("twin.py").write_text(REST)
    with pytest.raises(ConfigError, match="two of its tasks have the same id: Rest-v1, Rest-v1"):
        digest(tasks=("rest.py", "twin.py"))
    with pytest.raises(ManikinError, match="option of Rest-v1"):
        digest(config={"rest.py": {"near": 1.0}})
    with pytest.raises(ManikinError, match=r"gone\.py"):
        digest(tasks=("gone.py",))
    load_protocol("rest.toml")  # reading it runs no file
    Path("rest.py").write_text("raise RuntimeError")
    load_protocol("rest.toml")


def test_reports_name_the_task_and_are_not_compared_across_changes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "rest.toml", "--policy", "random", "--pictures", "0", "--num-envs", "2", "--out"]
    assert main([*words, "first"]) == 0
    assert "Rest-v1" in capsys.readouterr().out
    report = read_report("first/report.json")
    assert [t["task"] for t in report["per_task"]] == ["Rest-v1"] and report["per_task"][0]["named"] == "rest.py:Rest"
    assert report["protocol"]["own"][0]["config"] == {"far": 9.0, "turn": [0.0, 1.0]}
    page = Path("first/report.html").read_text()
    assert "<h2>Rest-v1</h2>" in page and "from rest.py:Rest" in page
    assert main([*words, "second", "--against", "first/report.json"]) == 0
    Path("rest.py").write_text(REST.replace("9.0", "8.5"))
    capsys.readouterr()
    assert main([*words, "third", "--against", "first/report.json"]) == 2
    assert "Rest-v1 has other code and config" in " ".join(capsys.readouterr().err.split())


def test_the_same_code_in_another_folder_is_comparable(folder: Path) -> None:
    Path("copy.py").write_text(REST)
    reports = []
    for word in ("rest.py", "copy.py"):
        protocol = Protocol(name="x", tasks=(word,), seeds=(1, 2), horizon=2, reward="sparse")
        reports.append(as_dict(evaluate(protocol, RandomPolicy, num_envs=2)))
        assert "from copy.py" in render_html(reports[-1]) or word == "rest.py"
    assert compare(*reports)[0]["task"] == "Rest-v1" and compare(*reports)[0]["episodes"] == 2
