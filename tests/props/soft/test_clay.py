"""Clay: it keeps its volume, its shape and what was pressed into it; both devices move it alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin import Task
from manikin.errors import ConfigError
from manikin.math import yaw_rotate
from manikin.props.soft.clay import chamfer, clay
from manikin.spec.budget import Budget

SIZE = (0.04, 0.04, 0.03)


class Lump(Task):
    """A block of clay on nothing or on a plate, and a plate above it, with an arm far away.

    Randomization: none.
    Success: never.
    """

    id = "ClayLump-v0"
    horizon_s = 10.0
    shape = (3, 3, 3)
    height = 1.0

    def scene(self, b: Any) -> dict[str, Any]:
        return {
            "robot": b.robot(pos=(-2.0, 0, 0)),
            "clay": clay(b, "clay", size=SIZE, shape=self.shape),
            "floor": b.box("floor", half_size=(0.2, 0.2, 0.05), kind="kinematic"),
            "plate": b.box("plate", half_size=(0.1, 0.1, 0.02), kind="kinematic"),
        }

    def start(self, h: Any, ep: Any) -> None:
        h.robot.set_qpos(h.robot.keyframe())
        h.floor.set_pose((0.0, 0.0, -0.05))
        h.plate.set_pose((0.0, 0.0, 3.0))
        h.clay.place(torch.tensor([[0.0, 0.0, self.height]]).expand(h.n, 3), torch.full((h.n,), 0.3))

    def evaluate(self, h: Any) -> dict[str, torch.Tensor]:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: Any) -> dict[str, dict[str, torch.Tensor]]:
        return {"policy": {}, "privileged": {"clay": h.clay.pos.flatten(1)}}


class Lying(Lump):
    """The same on the floor.

    Randomization: none.
    Success: never.
    """

    id = "ClayLying-v0"
    height = 0.0


def _made(task: type[Task] = Lump, **options: Any) -> manikin.Env:
    env = manikin.make(task, autoreset="disabled", reward="none", **options)
    env.reset(seed=0)
    return env


def _steps(env: manikin.Env, steps: int) -> None:
    for _ in range(steps):
        env.step(torch.zeros(env.num_envs, env.controller.card.size))


def _press(env: manikin.Env, down: float) -> list[float]:
    """The plate moved down by so much and up again, 5 mm/s; the volume meanwhile [m^3]."""
    volumes, start = [], 0.03 + 2 * 0.004 + 0.02
    way = [*np.arange(0.0, down, 0.00025), *np.arange(down, -0.01, -0.001)]
    for z in way:
        env.h.plate.set_pose((0.0, 0.0, start - float(z)))
        _steps(env, 1)
        volumes.append(env.h.clay.volume.item())
    return volumes


def test_tetrahedra_fill_the_block_and_none_is_inside_out() -> None:
    env = _made()
    block = env.h.clay
    assert block.volume.item() == pytest.approx(math.prod(SIZE), rel=1e-5)
    pos = block.pos[0].double()
    a, b, c, d = pos[block.elements].unbind(1)
    parts = (torch.linalg.cross(b - a, c - a) * (d - a)).sum(1) / 6
    assert len(parts) == 6 * 8 and parts.min() > 0.99 * math.prod(SIZE) / 48
    assert block.ahead[0].tolist() == pytest.approx([0.04 * math.cos(0.3), 0.04 * math.sin(0.3), 0.0], abs=1e-5)
    assert block.middle[0].tolist() == pytest.approx([0.0, 0.0, 1.0 + 0.004 + 0.015], abs=1e-5)
    env.close()


def test_it_falls_freely_and_is_not_strained() -> None:
    env = _made()
    start = env.h.clay.pos.clone()
    _steps(env, 6)
    fell = (start - env.h.clay.pos)[0]
    torch.testing.assert_close(fell[:, 2], torch.full((27,), 0.5 * 9.81 * 0.3**2), rtol=0.05, atol=0.0)
    assert fell[:, :2].abs().max() < 1e-4
    env.close()


def test_pressed_clay_stays_flat_and_keeps_its_volume() -> None:
    """By 8 of 30 mm: volume within 5 % in every step, most of it stays, and a snapshot holds it."""
    env = _made(Lying)
    _steps(env, 4)
    first, high = env.h.clay.volume.item(), float(env.h.clay.pos[..., 2].max())
    volumes = _press(env, 0.008)
    assert min(volumes) > 0.95 * first and max(volumes) < 1.05 * first
    kept = env.save()
    pressed = high - float(env.h.clay.pos[..., 2].max())
    assert 0.004 < pressed < 0.009
    _steps(env, 10)
    later = env.h.clay.pos.clone()
    assert high - float(later[..., 2].max()) > 0.9 * pressed, "it stays as it was pressed"
    env.load(kept)
    _steps(env, 10)
    assert torch.equal(env.h.clay.pos, later)
    env.reset(seed=0)
    _steps(env, 4)
    assert high - float(env.h.clay.pos[..., 2].max()) < 1e-4, "another episode begins with a whole block"
    assert not env.world.health().any()
    env.close()


def test_chamfer_distance_is_its_formula() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 7, 3)), rng.normal(size=(2, 5, 3))
    found = chamfer(torch.tensor(one), torch.tensor(two))
    for row in range(2):
        there = np.mean([min(math.dist(p, q) for q in two[row]) for p in one[row]])
        back = np.mean([min(math.dist(p, q) for p in one[row]) for q in two[row]])
        assert found[row].item() == pytest.approx((there + back) / 2, rel=1e-6)
    same = torch.tensor(one)
    assert chamfer(same, same[:, torch.randperm(7, generator=torch.Generator().manual_seed(0))]).max() < 1e-6
    quarter = yaw_rotate(same, torch.full((2, 1), math.pi / 2, dtype=same.dtype))
    torch.testing.assert_close(quarter, torch.stack([-same[..., 1], same[..., 0], same[..., 2]], 2))


def test_both_devices_move_it_alike_for_ten_steps_and_deform_it_for_good() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    found = []
    for options in ({}, {"device": "warp:cpu", "budget": Budget(nconmax=64, njmax=256)}):
        env = _made(**options)
        squeezed = env.h.clay.pos.clone()
        squeezed[..., 2] = 1.0 + 0.8 * (squeezed[..., 2] - 1.0)
        env.h.clay.set_pos(squeezed)
        env.world.forward()
        _steps(env, 2)
        found.append((env.h.clay.pos[0].cpu().clone(), env.world.read("plastic").cpu().clone()))
        env.reset(seed=0)
        assert env.world.read("plastic").abs().max() == 0.0, "an episode begins with clay that was never pressed"
        env.close()
    assert found[0][1].abs().max() > 5e-5  # [m^2] of squared lengths
    assert (found[0][1] - found[1][1]).abs().max() < 1e-6
    assert (found[0][0] - found[1][0]).abs().max() < 1e-4


@pytest.mark.parametrize("shape", [(1, 3, 3), (3, 3, 1)])
def test_a_sheet_is_refused(shape: tuple[int, int, int]) -> None:
    class Sheet(Lump):
        """A sheet.

        Randomization: none.
        Success: never.
        """

        id = "ClaySheet-v0"

    Sheet.shape = shape
    with pytest.raises(ConfigError, match="2 points or more"):
        manikin.make(Sheet, reward="none")
