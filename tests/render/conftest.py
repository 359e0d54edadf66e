"""What renderers are compared with, and a scene to draw."""

from __future__ import annotations

import pytest

import manikin
from manikin.render import make_renderer
from manikin.render.backends import gl


@pytest.fixture(scope="module")
def reference():
    """OpenGL where it works, else MuJoCo's own rays."""
    renderer = make_renderer("gl" if gl.probe()[0] else "rays")
    yield renderer
    renderer.close()


@pytest.fixture(scope="module")
def pick_cube():
    env = manikin.make("PickCube-v2", num_envs=1)
    env.reset(seed=3)
    yield env.world.data(0)
    env.close()
