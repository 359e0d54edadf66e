"""The wheel and the sdist hold all that they need: installed alone, they do the main job far from the checkout."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from alone import environment, install, needed, said

ROOT = Path(__file__).resolve().parents[2]


def tracked(*under: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-z", *under], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist of the checkout, and the wheel that is built of the sdist alone."""
    pytest.importorskip("hatchling", reason="builds the wheel: pip install hatchling")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)], cwd=ROOT, check=True)
    (sdist,) = folder.glob("*.tar.gz")
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*words, "-w", str(folder), str(sdist)], cwd=folder, check=True)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def test_they_hold_what_is_tracked_and_nothing_else(built: tuple[Path, Path]) -> None:
    sdist, wheel = built
    with zipfile.ZipFile(wheel) as file:
        inside = {name for name in file.namelist() if not name.endswith("/")}
    package = {name.removeprefix("src/") for name in tracked("src/manikin")}
    assert {name for name in inside if name.startswith("manikin/")} == package
    about = {name.partition("/")[2] for name in inside - package}
    assert about == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    wanted = tracked("src", "tests", "examples", "benchmarks", "docs", "constraints", "deploy")
    assert wanted <= names, sorted(wanted - names)[:5]
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "CHANGELOG.md", "PKG-INFO"} <= names


@pytest.mark.slow
def test_the_wheel_does_the_main_job_in_an_environment_of_its_own(built: tuple[Path, Path], tmp_path: Path) -> None:
    python = environment(tmp_path / "env", only=needed(built[1]))
    install(python, built[1])
    away = tmp_path / "elsewhere"
    away.mkdir()
    home = {"HOME": str(tmp_path / "home"), "MANIKIN_CACHE": str(tmp_path / "cache")}

    def run(*words: str) -> str:
        return said(python, *words, cwd=away, **home)

    place = run("-c", "import manikin; print(manikin.__file__)")
    assert str(tmp_path / "env") in place, "it is not the installed one"
    words = ["--episodes", "2", "--num-envs", "2"]
    command = str(tmp_path / "env" / "bin" / "manikin")
    assert "2 episodes" in run(command, "collect", "PickCube-v2", *words, "--out", "run.h5")
    assert "2 of 2" in run(command, "replay", "run.h5", "--check")
    protocol = 'format = 1\nname = "two"\ntasks = ["PickCube-v2"]\nobserve = "state"\n[episodes]\nseeds = [1, 2]\n'
    (away / "two.toml").write_text(protocol)
    words = ["--policy", "ppo-PickCube-v2", "--pictures", "0", "--out", "out"]
    assert "PickCube-v2  2  100.0%" in run(command, "eval", "two.toml", *words)
    assert (away / "out" / "report.json").is_file()
    with pytest.raises(
        AssertionError, match="No module named 'pytest'"
    ):  # nothing is there that the wheel does not name
        run("-c", "import pytest")
