"""``--last-skipped`` runs what skipped before, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PARTS = """
import os
import pytest

@pytest.mark.parametrize("extra", ["A", "B", ""])
def test_part(extra):
    if extra and extra not in os.environ["THERE"]:
        pytest.skip(f"{extra} is not there")
    assert extra != os.environ["BROKEN"] or not extra

@pytest.mark.xfail(reason="known")
def test_known():
    assert False
"""
WHOLE = """
import os
import pytest

if "A" not in os.environ["THERE"]:
    pytest.skip("A is not there", allow_module_level=True)

def test_one():
    pass

def test_two():
    pass
"""


ALONE = {
    "PYTHONPATH": str(Path(__file__).parents[1] / "helpers"),
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}  # which starts quickly


def counts(folder: Path, *words: str, there: str = "", broken: str = "") -> dict[str, int]:
    """What pytest's last line says of a run in which these extras are there."""
    command = [sys.executable, "-m", "pytest", "-p", "last_skipped", *words]
    environment = {**ALONE, "THERE": there, "BROKEN": broken}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment})
    last = (done.stdout + done.stderr).strip().splitlines()[-1]
    return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", last.partition(" in ")[0])}


@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "2")], ids=["alone", "two workers"])
def test_what_skipped_runs_once_it_can(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_parts.py").write_text(PARTS)
    (tmp_path / "test_whole.py").write_text(WHOLE)
    assert counts(tmp_path, *workers) == {"passed": 1, "skipped": 3, "xfailed": 1}
    some, rest = ({}, {}) if workers else ({"deselected": 2}, {"deselected": 3})  # workers do not tell
    assert counts(tmp_path, *workers, "--last-skipped", there="A") == {"passed": 3, "skipped": 1, **some}
    with (tmp_path / "test_whole.py").open("a") as file:
        file.write("\nraise ImportError('nothing of this file is wanted')\n")
    assert counts(tmp_path, *workers, "--last-skipped", there="AB", broken="B") == {"failed": 1, **rest}
    assert "passed" not in counts(tmp_path, *workers, "--last-skipped", there="AB")  # all of it ran


def test_it_says_that_it_needs_the_cache(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "last_skipped", "-p", "no:cacheprovider", "--last-skipped"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **ALONE})
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "pytest's cache" in done.stderr
