"""Processes that are forked from one that has environments: nothing in them hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
import torch

import manikin

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

START = """
import os, signal, sys
import numpy as np, torch
import manikin
from manikin.errors import ClosedError

env = manikin.make(TASK, num_envs=64, **OPTIONS)
env.reset(seed=0)
action = torch.zeros(64, env.single_action_space.shape[0])
env.step(action)
torch.rand(4_000_000).tanh()  # in several threads, where there are several processors

def refused(call):
    try:
        call()
    except ClosedError as error:
        print(str(error).replace(str(os.getppid()), "PARENT"))

child = os.fork()
if not child:
    signal.alarm(60)
"""
END = """
    sys.stdout.flush()
    os._exit(0)
_, status = os.waitpid(child, 0)
env.step(action)  # goes on
print("signal", status & 127, "status", status >> 8)
"""
WORDS = "belongs to process PARENT and cannot be used after a fork; make a new one in this process"


def _in_child(code: str, task: str = "PickCube-v1", **options: object) -> str:
    """What the child and then the parent print."""
    head = f"TASK, OPTIONS = {task!r}, {options!r}\n"
    script = head + START + textwrap.indent(textwrap.dedent(code), "    ") + END
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("task", ["PickCube-v1", "OpenCabinetDrawer-v1"])
def test_the_parents_environment_is_refused(task: str) -> None:
    said = _in_child(
        """
        refused(lambda: env.step(action))
        refused(lambda: env.reset(seed=1))
        refused(lambda: env.save())
        env.close()
        del env
        """,
        task,
    ).splitlines()
    assert len(said) == 4 and all(WORDS in line for line in said[:3])
    assert said[3] == "signal 0 status 0"


def test_its_world_is_refused_too_and_a_child_ends_in_the_usual_way() -> None:
    said = _in_child(
        """
        refused(lambda: env.world.step(1))
        refused(lambda: env.world.forward())
        refused(lambda: env.world.read("cvel"))
        sys.stdout.flush()
        sys.exit(7)
        """,
        observe="rgb+state",
    ).splitlines()
    assert len(said) == 4 and all("closed" in line or "another process" in line for line in said[:3])
    assert said[3] == "signal 0 status 7"


def test_a_child_makes_its_own_and_gets_the_same() -> None:
    said = _in_child(
        """
        own = manikin.make(TASK, num_envs=64)
        first = own.reset(seed=3)[0]
        seen = own.step(action)[0]
        many = float(torch.rand(4_000_000).tanh().sum())
        print("sum", many > 0, float(first.double().sum()), float(seen.double().sum()))
        own.close()
        """
    ).splitlines()
    env = manikin.make("PickCube-v1", num_envs=64)
    first = env.reset(seed=3)[0]
    seen = env.step(torch.zeros(64, 8))[0]
    assert said == [f"sum True {float(first.double().sum())} {float(seen.double().sum())}", "signal 0 status 0"]
    env.close()
