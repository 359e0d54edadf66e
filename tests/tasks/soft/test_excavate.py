"""Excavate: where things start, what counts as the right amount, and that no grain is lost."""

from __future__ import annotations

import pytest
import torch

import manikin


def _make(num_envs: int = 1, **options: object) -> manikin.Env:
    return manikin.make("Excavate-v1", num_envs, **{"autoreset": "disabled", "terminate": False, **options})


def test_all_grains_start_in_the_box_and_the_ladle_above_the_table() -> None:
    env = _make(32)
    env.reset(seed=0)
    h = env.h
    away = (h.grains.pos - h.box.pos[:, None]).abs()
    assert (away[..., 0] < 0.11).all() and (away[..., 1] < 0.055).all()
    assert torch.equal(env.task.counts(h), torch.zeros(32, 2))
    assert ((h.ladle.pos - h.box.pos)[:, 0] > 0.11 + 0.04).all(), "the ladle begins before the box"
    target = h.target.value
    assert (
        target.min() >= 10
        and target.max() <= 20
        and torch.equal(target, target.round())
        and len(set(target.tolist())) > 5
    )


def _lift(env: manikin.Env, up: int, spilt: int) -> None:
    """So many grains of the only row in the ladle, held high, and so many beside the box."""
    h = env.h
    pos = h.box.pos[0].repeat(200, 1) + torch.tensor([0.0, 0.0, 0.03])
    pos[:up] = h.box.pos[0] + torch.tensor([0.0, 0.0, 0.15])
    pos[up : up + spilt] = h.box.pos[0] + torch.tensor([0.0, 0.075, 0.008])
    h.grains.set_pos(pos[None])
    env.world.forward()


@pytest.mark.parametrize(
    ("more", "spilt", "right"),
    [(0, 0, True), (-4, 5, True), (-5, 0, False), (6, 0, True), (7, 0, False), (0, 6, False)],
)
def test_what_counts_as_the_right_amount(more: int, spilt: int, right: bool) -> None:
    """Of 200 grains 4 too few to 6 too many, and fewer than 6 spilt."""
    env = _make(reward="dense")
    env.reset(seed=1)
    target = int(env.h.target.value[0])
    _lift(env, target + more, spilt)
    assert env.task.counts(env.h)[0].tolist() == [target + more, spilt]
    ev = env.task.evaluate(env.h)
    assert ev["success"].tolist() == [right]
    terms = env.task.reward(env.h, ev, torch.zeros(1, env.controller.card.size))
    assert terms["lift"].item() == pytest.approx(3 * (1 - abs(more) / target), abs=1e-5)
    assert terms["clean"].item() == pytest.approx(1 - spilt / 200, abs=1e-6)
    assert sum(t.item() for t in terms.values()) == (
        pytest.approx(6.0) if right else pytest.approx(terms["lift"].item() + terms["clean"].item() + 1.0)
    )


def test_grains_that_still_fly_do_not_count() -> None:
    env = _make()
    env.reset(seed=1)
    _lift(env, int(env.h.target.value[0]), 0)
    vel = torch.zeros(1, 200, 3)
    vel[:, :3, :2] = 0.06
    env.h.grains.set_vel(vel)
    assert not env.task.evaluate(env.h)["success"].item()
