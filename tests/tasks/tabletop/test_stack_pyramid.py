"""StackPyramid: what counts as a pyramid, and what ManiSkill3 counts besides."""

from __future__ import annotations

import math

import pytest
import torch

import manikin

LOW, HIGH, TOP = 0.02, 0.06, 0.10  # [m] heights of cubes that lie on the table, on a cube, and on two
# places of red, green and blue [m]; whether it is a pyramid, and whether ManiSkill3 says so
ARRANGED = {
    "a pyramid": ((0, 0, LOW), (0.042, 0, LOW), (0.021, 0, HIGH), True, True),
    "across a corner": ((0, 0, LOW), (0.041, 0.041, LOW), (0.0205, 0.0205, HIGH), True, True),
    "as they start": ((0, 0, LOW), (0.1, 0, LOW), (0, 0.1, LOW), False, False),
    "too far apart": ((0, 0, LOW), (0.063, 0, LOW), (0.0315, 0, HIGH), False, False),
    "blue on red alone": ((0, 0, LOW), (0.058, 0, LOW), (0, 0, HIGH), False, True),
    "blue beside them": ((0, 0, LOW), (0.042, 0, LOW), (0.021, 0.042, LOW), False, False),
    "blue in the air": ((0, 0, LOW), (0.042, 0, LOW), (0.021, 0, HIGH + 0.006), False, True),
    "a tower": ((0, 0, LOW), (0, 0, HIGH), (0, 0, TOP), False, True),
    "a tower on blue": ((0, 0, HIGH), (0, 0, TOP), (0, 0, LOW), False, True),
}


def _arranged(**options: bool) -> manikin.Env:
    env = manikin.make("StackPyramid-v1", len(ARRANGED), autoreset="disabled", terminate=False, config=options)
    env.reset(seed=0)
    for k, cube in enumerate((env.h.red, env.h.green, env.h.blue)):
        cube.set_pose(torch.tensor([places[k] for places in ARRANGED.values()], dtype=torch.float32))
    env.world.forward()
    return env


@pytest.mark.parametrize("published", [False, True])
def test_only_a_pyramid_counts_unless_the_published_rule_is_asked_for(published: bool) -> None:
    env = _arranged(published_success=published)
    found = env.task.evaluate(env.h)["success"].tolist()
    wanted = [row[4 if published else 3] for row in ARRANGED.values()]
    assert dict(zip(ARRANGED, found, strict=True)) == dict(zip(ARRANGED, wanted, strict=True))


@pytest.mark.parametrize(("moving", "published"), [("red", False), ("green", False), ("green", True), ("blue", False)])
def test_cubes_that_move_are_no_pyramid_yet(moving: str, published: bool) -> None:
    """The published rule does not ask whether the green cube is at rest."""
    env = _arranged(published_success=published)
    for linear, angular, still in ((0.009, 0.0, True), (0.011, 0.0, False), (0.0, 0.49, True), (0.0, 0.51, False)):
        getattr(env.h, moving).set_velocity((linear, 0.0, 0.0), (0.0, 0.0, angular))
        env.world.forward()
        assert bool(env.task.evaluate(env.h)["success"][0]) == (still or published)


def test_cubes_start_apart_in_the_published_field() -> None:
    env = manikin.make("StackPyramid-v1", 256)
    env.reset(seed=0)
    cubes = torch.stack([env.h.red.pos, env.h.green.pos, env.h.blue.pos], 1)
    for one, two in ((0, 1), (0, 2), (1, 2)):
        assert (cubes[:, one] - cubes[:, two]).norm(dim=1).min() >= 2 * math.hypot(0.02, 0.02) - 1e-6
    assert cubes[..., 0].abs().max() <= 0.1 and cubes[..., 1].abs().max() <= 0.2
    assert cubes[..., 0].abs().max() > 0.098 and cubes[..., 1].abs().max() > 0.196
    torch.testing.assert_close(cubes[..., 2], torch.full((256, 3), 0.02))
