"""Code in a process of its own, forked from one that has imported torch and no more.

A page of the documentation waits for that import once, not each time. Nothing runs in the server that forks, so there
are no threads that a fork would lose.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

__all__ = ["FORKS", "run_code"]

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
