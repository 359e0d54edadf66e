"""Grains: they fall, slide and pack as smooth balls do, and both devices move them alike."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import manikin
from manikin import Shape, Task
from manikin.errors import ConfigError
from manikin.props.soft.grains import Grains, column, grains
from manikin.props.soft.vessel import vessel
from manikin.spec.budget import Budget

RADIUS, INSIDE, HEIGHT, FLOOR = 0.005, 0.03, 0.12, 0.01
STARTS = {"column": (0.0, 0.0, FLOOR), "falling": (0.0, 0.0, 1.0), "slope": (0.0, 0.0, 0.0)}


class Box(Task):
    """Grains in a vessel, in the air or on a slope, with an arm far away.

    Randomization: none.
    Success: never.
    """

    id = "GrainBox-v0"
    horizon_s = 10.0
    where = "column"
    count = 60
    slope = 0.3  # [rad]

    def scene(self, b: Any) -> dict[str, Any]:
        robot = b.robot(pos=(-2.0, 0.0, 0.0))
        if self.where == "slope":
            turn = (math.cos(self.slope / 2), 0.0, math.sin(self.slope / 2), 0.0)  # x points down the slope
            b.part("slope", [Shape(type="box", size=(2.0, 0.5, 0.1), pos=(0, 0, -0.1))], kind="fixed", quat=turn)
        pot = b.part("pot", vessel(INSIDE, HEIGHT, wall=0.005, floor=FLOOR, below=0.05), kind="kinematic")
        return {"robot": robot, "pot": pot, "grains": grains(b, "grains", count=self.count, radius=RADIUS)}

    def start(self, h: Any, ep: Any) -> None:
        h.robot.set_qpos(h.robot.keyframe())
        h.pot.set_pose((0.0, 0.0 if self.where == "column" else 5.0, 0.0))
        if self.where == "slope":
            place = torch.tensor([0.1 * math.sin(self.slope), 0.0, 0.0])
            away = RADIUS * torch.tensor([math.sin(self.slope), 0.0, math.cos(self.slope)])
            h.grains.set_pos((place * 0 + away).expand(h.n, 1, 3))
        else:
            h.grains.set_pos((column(self.count, RADIUS, INSIDE) + torch.tensor(STARTS[self.where])).expand(h.n, -1, 3))

    def evaluate(self, h: Any) -> dict[str, torch.Tensor]:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: Any) -> dict[str, dict[str, torch.Tensor]]:
        return {"policy": {}, "privileged": {"grains": h.grains.pos}}


class Falling(Box):
    """One that falls.

    Randomization: none.
    Success: never.
    """

    id = "GrainFalling-v0"
    where, count = "falling", 1


class Sliding(Box):
    """One on a slope.

    Randomization: none.
    Success: never.
    """

    id = "GrainSliding-v0"
    where, count = "slope", 1


class Few(Box):
    """A dozen in a vessel.

    Randomization: none.
    Success: never.
    """

    id = "GrainFew-v0"
    count = 12


def _made(task: type[Task], **options: Any) -> tuple[manikin.Env, Grains]:
    env = manikin.make(task, autoreset="disabled", reward="none", **options)
    env.reset(seed=0)
    return env, env.h.grains


def _steps(env: manikin.Env, steps: int) -> None:
    hold = torch.zeros(env.num_envs, env.controller.card.size)
    for _ in range(steps):
        env.step(hold)


@pytest.mark.parametrize(("task", "along"), [(Falling, 1.0), (Sliding, math.sin(0.3))])
def test_a_free_grain_moves_by_gravity_and_drag_alone(task: type[Task], along: float) -> None:
    """v = g (1 - exp(-k t)) / k with k = 1/s, on a slope with the sine of its angle: nothing rubs, nothing rolls."""
    env, balls = _made(task)
    start = balls.pos.clone()
    _steps(env, 6)
    speed = 9.81 * along * (1.0 - math.exp(-0.3))
    way = 9.81 * along * (0.3 - (1.0 - math.exp(-0.3)))
    assert balls.vel[0, 0].norm().item() == pytest.approx(speed, rel=0.01)
    assert (balls.pos - start)[0, 0].norm().item() == pytest.approx(way, rel=0.05)  # steps of 10 ms
    env.close()


def test_packed_grains_keep_their_volume_and_none_leaves() -> None:
    """The share of the volume that balls fill is between loose and the densest packing (0.55 and 0.74); walls loosen it
    where the vessel is a few balls wide."""
    env, balls = _made(Box)
    _steps(env, 20)
    pos = balls.pos[0]
    assert balls.within(env.h.pot, INSIDE, HEIGHT).all()
    nearest = torch.cdist(pos, pos).fill_diagonal_(1.0).min()
    assert nearest > 2 * RADIUS * 0.9  # they are not pressed into one another
    assert pos[:, 2].min() > FLOOR + 0.9 * RADIUS
    top = 2 * (pos[:, 2].mean().item() - FLOOR)
    area = 8 * math.tan(math.pi / 8) * INSIDE**2  # of an octagon around the circle
    filled = len(pos) * 4 / 3 * math.pi * RADIUS**3 / (area * top)
    assert 0.5 < filled < 0.74
    assert balls.vel.norm(dim=2).max() < 0.05
    env.close()


def test_snapshots_hold_every_grain() -> None:
    env, balls = _made(Box)
    _steps(env, 3)
    kept = env.save()
    _steps(env, 3)
    went = balls.pos.clone()
    env.load(kept)
    _steps(env, 3)
    assert torch.equal(balls.pos, went)
    env.close()


def test_both_devices_move_grains_alike() -> None:
    """For ten physics steps to a tenth of a millimetre; when they lie, in count and mean height."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    found = []
    for options in ({}, {"device": "warp:cpu", "budget": Budget(nconmax=256, njmax=256)}):
        env, balls = _made(Few, **options)
        _steps(env, 2)
        early = balls.pos[0].clone().cpu()
        _steps(env, 10)
        inside = balls.within(env.h.pot, INSIDE, HEIGHT)[0]
        found.append((early, int(inside.sum()), balls.pos[0, :, 2].mean().item()))
        env.close()
    (one, count, height), (other, count_other, height_other) = found
    assert (one - other).abs().max() < 1e-4
    assert count == count_other == 12
    assert height == pytest.approx(height_other, abs=2e-4)


@pytest.mark.parametrize("task", ["Pour-v1", "Fill-v1", "Excavate-v1"])
def test_a_thousand_grains_are_made_and_stay_together(task: str) -> None:
    env = manikin.make(task, config={"count": 1000}, autoreset="disabled", reward="none")
    env.reset(seed=0)
    begun = env.h.grains.pos.clone()
    _steps(env, 2)
    assert torch.isfinite(env.h.grains.pos).all()
    assert (env.h.grains.pos - begun).norm(dim=2).max() < 0.08  # as 200 do while they and their vessel settle


@pytest.mark.parametrize("count", [0, 1001])
def test_too_many_or_no_grains_are_refused(count: int) -> None:
    with pytest.raises(ConfigError, match="1 to 1000"):
        manikin.make("Pour-v1", config={"count": count})


def test_grains_larger_than_the_vessel_are_refused() -> None:
    with pytest.raises(ConfigError, match="do not fit"):
        column(3, 0.04, 0.03)


def test_a_column_has_no_two_grains_in_one_place() -> None:
    spots = column(1000, 0.003, 0.028)
    assert torch.cdist(spots, spots).fill_diagonal_(1.0).min() > 2 * 0.003
    assert (spots[:, :2].norm(dim=1) <= 0.028 - 0.003).all() and (spots[:, 2] >= 0.003).all()
