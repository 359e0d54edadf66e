"""Code in a process of its own, forked from one that has imported torch and no more; and Python environments of their
own, made without a network: what packages need is borrowed from the environment of the tests.

A page of the documentation waits for that import once, not each time. Nothing runs in the server that forks, so there
are no threads that a fork would lose.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Set
from email.parser import BytesParser
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

__all__ = ["FORKS", "environment", "install", "needed", "run_code", "said"]

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "manikin.env.make"])


def run_code(path: str, code: str, folder: str, said: str) -> None:
    """Run code as a program would, in this process; what it prints goes into the file ``said``."""
    os.chdir(folder)  # what a page writes does not land in the tree
    with open(said, "w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # an error comes after what was printed
    sys.argv = ["-c", path]
    exec(compile(code, path, "exec"), {"__name__": "__main__"})


# what would lead another environment's Python or pip back to this one
ISOLATED = {"PYTHONPATH", "PYTHONHOME", "PIP_REQUIRE_VIRTUALENV"}


def needed(wheel: Path) -> set[str]:
    """Files and folders of site-packages that belong to what a wheel says that it needs, and to what that needs; no
    extras of its own."""
    with zipfile.ZipFile(wheel) as file:
        (place,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        told = BytesParser().parsebytes(file.read(place))
    waiting = [(one, "") for one in told.get_all("Requires-Dist", [])]
    seen, files = set[tuple[str, str]](), set[str]()
    while waiting:
        wanted, extra = waiting.pop()
        requirement = Requirement(wanted)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        found = metadata.distribution(requirement.name)
        files |= {path.parts[0] for path in found.files or () if path.parts[0] != ".."}
        new = {(requirement.name, one) for one in ("", *requirement.extras)} - seen
        seen |= new
        waiting += [(one, extra) for _, extra in sorted(new) for one in found.requires or ()]
    return files


def environment(folder: Path, *, only: Set[str] | None = None) -> Path:
    """A virtual environment that also finds the packages of this one, or ``only`` some files of its site-packages.

    Returns:
        Its Python.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    borrowed = folder / "borrowed"
    borrowed.mkdir()
    for place in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
        for path in Path(place).iterdir():
            wanted = path.name != "__pycache__" and (only is None or path.name in only)
            if wanted and not (borrowed / path.name).exists():
                (borrowed / path.name).symlink_to(path)
    python = folder / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(said(python, "-c", where).strip())
    (site / "borrowed.pth").write_text(f"import site; site.addsitedir({str(borrowed)!r})\n")
    return python


def said(python: Path, *words: str, cwd: Path | None = None, **more: str) -> str:
    """What a Python prints, run without the paths of this process. Raises :class:`AssertionError` where it fails."""
    kept = {name: value for name, value in os.environ.items() if name not in ISOLATED}
    done = subprocess.run(
        [str(python), *words], capture_output=True, text=True, cwd=cwd, env={**kept, **more}, timeout=500, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def install(python: Path, package: Path) -> None:
    """Install a folder or a wheel there with pip, and nothing that it needs."""
    words = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    build = [] if package.suffix == ".whl" else ["--no-build-isolation"]
    kept = {name: value for name, value in os.environ.items() if name not in ISOLATED}
    done = subprocess.run([*words, *build, str(package)], capture_output=True, text=True, env=kept, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
