"""What cannot be loaded after OpenGL's libraries is loaded before them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from manikin.errors import ConfigError
from manikin.render.backends import gl


def test_triton_comes_first_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for both: the context's failure says what is loaded."""

    def context(*size: int) -> None:
        raise RuntimeError(f"triton is loaded: {'triton' in sys.modules}")

    monkeypatch.setitem(sys.modules, "mujoco.pretend", SimpleNamespace(GLContext=context))
    real = importlib.util.find_spec
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    with monkeypatch.context() as without:
        without.setattr(importlib.util, "find_spec", lambda name, *at: None if name == "triton" else real(name, *at))
        with pytest.raises(ConfigError, match="triton is loaded: False"):
            gl.GlRenderer("pretend")
    (tmp_path / "triton.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="triton is loaded: True"):
        gl.GlRenderer("pretend")
    sys.modules.pop("triton")  # the stand-in; a real one comes back


def test_a_process_that_draws_can_load_triton() -> None:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed; torch for GPUs brings it")
    if gl.probe()[0] is None:
        pytest.skip(f"no OpenGL here: {gl.probe()[1]}")
    code = "from manikin.render.api import make_renderer; make_renderer('gl'); import triton; print('alive')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
