"""What native code says while it is hushed is not heard later either, when a C library empties its buffer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
from manikin.render.quiet import hushed
say = ctypes.CDLL(None).printf
say(b"before ")
try:
    with hushed():
        say(b"inside ")
        print("inside", end=" ")
        if {fails}:
            raise ValueError("why")
except ValueError:
    pass
say(b"after ")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a C library without a name")
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("buffered", [True, False])
def test_what_was_hushed_is_not_heard_later(fails: bool, buffered: bool) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    environment |= {} if buffered else {"PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", PROGRAM.format(fails=fails)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0 and done.stdout == "before after "
    assert sorted(done.stderr.split()) == ["inside"] * 2 * fails  # shown where an error passes
