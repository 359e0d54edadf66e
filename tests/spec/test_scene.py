"""The hash of a compiled scene."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import mujoco
from manikin.spec.scene import model_hash

model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
  <geom type="plane" size="0 0 1"/>
  <body><freejoint/><geom size=".0123456789" rgba=".123456789 .2 .3 1"/>
  <inertial pos="0 0 0" mass=".0123456789" diaginertia="2.375e-6 2.375e-6 2.375e-6"/></body>
</worldbody></mujoco>''')
print(model_hash(model))
"""


def test_the_hash_is_the_same_in_every_process() -> None:
    """Python hashes words otherwise in each process, so the order of a set differs; a hash must not follow it."""
    found = set()
    for seed in range(6):
        words = [sys.executable, "-c", SCRIPT]
        run = subprocess.run(words, env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        found.add(run.stdout)
    assert len(found) == 1
