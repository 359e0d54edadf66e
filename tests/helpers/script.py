"""A script of benchmarks/ or docs/: as a module, or in a process of its own.

Such a process has torch already: to import it takes longer than most scripts run. One process imports it and waits.
For each script it makes a copy of itself, which goes on as ``python SCRIPT ARGUMENTS`` would: with the script's folder
first on the path, its own environment, its exit status, and an end like any other's.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["ran", "script"]

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = ("torch", "gymnasium")  # of others, and nothing that looks at the environment when it is imported


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


def ran(words: Sequence[str], folder: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    """What became of ``python SCRIPT ARGUMENTS`` in a folder. ``words`` begin with this Python.

    Raises:
        TimeoutExpired: it took longer; it was ended, with all that it had started.
    """
    python, path, *arguments = words
    assert python == sys.executable, f"{python} is another Python"
    if os.name != "posix":
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=timeout)
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as place:
        said = {name: os.path.join(place, name) for name in ("out", "err")}
        about = {"script": path, "arguments": arguments, "folder": str(folder), "environment": dict(os.environ)}
        server.stdin.write(json.dumps({**about, **said}) + "\n")
        server.stdin.flush()
        number = int(server.stdout.readline())
        late = not select.select([server.stdout], [], [], timeout)[0]
        if late:
            os.killpg(number, signal.SIGKILL)
        status = int(server.stdout.readline())
        out, err = (Path(said[name]).read_text() for name in ("out", "err"))
    if late:
        raise subprocess.TimeoutExpired(list(words), timeout, out, err)
    return subprocess.CompletedProcess(list(words), status, out, err)


@functools.cache
def _server() -> subprocess.Popen[str]:
    """Ends with this process, whose end closes its input."""
    return subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def serve() -> dict[str, Any]:
    """Make copies until nobody asks for more. In a copy: what it is to do."""
    for name in IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        number = os.fork()
        if number == 0:
            about: dict[str, Any] = json.loads(line)
            return about
        print(number, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)
    sys.exit()


def become(about: dict[str, Any]) -> None:
    """Go on as a script."""
    os.setsid()
    for descriptor, path, how in (
        (0, os.devnull, os.O_RDONLY),
        (1, about["out"], os.O_WRONLY | os.O_CREAT),
        (2, about["err"], os.O_WRONLY | os.O_CREAT),
    ):
        os.dup2(os.open(path, how), descriptor)
    os.chdir(about["folder"])
    os.environ.clear()
    os.environ.update(about["environment"])
    sys.argv = [about["script"], *about["arguments"]]
    sys.path[0] = str(Path(about["script"]).parent)
    runpy.run_path(about["script"], run_name="__main__")


if __name__ == "__main__":
    become(serve())
