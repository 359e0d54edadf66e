"""How many threads torch takes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from manikin.learn.common.threads import torch_threads

CORES = "from manikin.learn.common.threads import CORES; print(CORES)"


def _run(code, value):
    environment = {**os.environ, "MANIKIN_CORES": value}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_the_variable_asks_for_fewer_cores_and_never_for_more_than_there_are():
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert int(_run(CORES, "").stdout) == there
    assert int(_run(CORES, "1").stdout) == 1
    assert int(_run(CORES, "9999").stdout) == there


def test_the_variable_holds_for_physics_too():
    """The threads of a process that has stepped: the main one, and those of MuJoCo's pool."""
    code = (
        "import os, manikin; before = len(os.listdir('/proc/self/task')); env = manikin.make('PushCube-v2', 8); "
        "env.reset(seed=0); env.step(env.action_space.sample()); print(len(os.listdir('/proc/self/task')) - before)"
    )
    if not os.path.isdir("/proc/self/task") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs Linux and two cores")
    assert int(_run(code, "1").stdout) < int(_run(code, "2").stdout)


def test_a_number_of_cores_that_is_none_is_named():
    for value in ("0", "-1", "two"):
        assert f"MANIKIN_CORES must be a whole number of cores, 1 or more; got {value!r}" in _run(CORES, value).stderr


def test_the_number_of_before_comes_back_also_after_an_error():
    before = torch.get_num_threads()
    try:
        with torch_threads(before + 1):
            assert torch.get_num_threads() == before + 1
            raise KeyError
    except KeyError:
        pass
    assert torch.get_num_threads() == before
