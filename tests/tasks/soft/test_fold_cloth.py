"""FoldCloth: where the cloth starts, what counts as folded, and that its expert folds it."""

from __future__ import annotations

import math

import pytest
import torch

import manikin
from manikin.errors import ConfigError, ManikinError
from manikin.plan.executor import WaypointExecutor


def _make(num_envs: int = 1, **options: object) -> manikin.Env:
    return manikin.make("FoldCloth-v1", num_envs, **{"autoreset": "disabled", "terminate": False, **options})


def test_the_cloth_starts_flat_with_its_bead_towards_the_robot() -> None:
    env = _make(64)
    env.reset(seed=0)
    pos, corners = env.h.cloth.pos, env.h.cloth.corners
    middle = (corners[:, 0] + corners[:, 1])[:, :2] / 2 - torch.tensor([-0.1, 0.0])
    assert middle.abs().max() <= 0.051 and middle.amin() < -0.045 and middle.amax() > 0.045
    way = corners[:, 0] - corners[:, 1]
    turn = torch.atan2(way[:, 1], way[:, 0])  # 0 where the bead is nearest the robot
    assert -0.41 <= turn.min() < -0.35 and 0.35 < turn.max() <= 0.41
    torch.testing.assert_close(way.norm(dim=1), torch.full((64,), 0.24 * math.sqrt(2)), rtol=1e-3, atol=0.0)
    assert (pos[..., 2] - 0.005).abs().max() < 1e-3
    # the mean of |i - j| steps of the diagonal of a cell
    pairs = [abs(i - j) for i in range(9) for j in range(i + 1, 9)]
    flat = sum(pairs) / len(pairs) * 0.03 * math.sqrt(2)
    torch.testing.assert_close(env.task.gap(env.h), torch.full((64,), flat), rtol=1e-3, atol=0.0)


def _fold(env: manikin.Env, *, past: float = 0.0, squeeze: float = 1.0, lift: float = 0.0) -> dict[str, torch.Tensor]:
    """The cloth of the only row folded by hand, its half shifted ``past`` the other [m], shorter along the fold, and
    one point lifted; returns what is said of it."""
    h, k = env.h, 9
    step = 0.03
    pos = torch.zeros(81, 3)
    for i in range(k):
        for j in range(k):
            beyond = i + j > k - 1
            u, v = (k - 1 - j, k - 1 - i) if beyond else (i, j)
            along, across = (u - v) * step / math.sqrt(2) * squeeze, (u + v - k + 1) * step / math.sqrt(2)
            pos[i * k + j] = torch.tensor([-0.1 - across + past * beyond, along, 0.005])
    pos[40, 2] += lift
    h.cloth.set_pos(pos[None])
    env.world.forward()
    return env.task.evaluate(h)


@pytest.mark.parametrize(
    ("past", "squeeze", "lift", "folded"),
    [
        (0.0, 1.0, 0.0, True),
        (0.045, 1.0, 0.0, True),
        (0.055, 1.0, 0.0, False),
        (0.0, 0.86, 0.0, True),
        (0.0, 0.84, 0.0, False),
        (0.0, 1.0, 0.05, True),
        (0.0, 1.0, 0.06, False),
    ],
)
def test_what_counts_as_folded(past: float, squeeze: float, lift: float, folded: bool) -> None:
    env = _make(reward="dense")
    env.reset(seed=0)
    ev = _fold(env, past=past, squeeze=squeeze, lift=lift)
    assert env.task.gap(env.h).item() == pytest.approx(past, abs=1e-5)
    assert ev["is_folded"].tolist() == ev["success"].tolist() == [folded]
    terms = env.task.reward(env.h, ev, torch.zeros(1, env.controller.card.size))
    flat = 10 / 3 * 0.03 * math.sqrt(2)
    assert terms["fold"].item() == pytest.approx(3 * (1 - past / flat), abs=1e-4)
    assert sum(terms.values()).item() == pytest.approx(6.0) or not folded


def test_a_cloth_that_still_moves_does_not_count() -> None:
    env = _make()
    env.reset(seed=0)
    assert _fold(env)["success"].item()
    vel = env.world.read("qvel").clone()
    vel[0, int(env.scene.model.body("cloth/7").dofadr[0])] = 0.11
    env.world.write("qvel", vel)
    env.world.forward()
    ev = env.task.evaluate(env.h)
    assert ev["is_folded"].item() and not ev["success"].item()


def test_the_expert_folds_the_cloth_and_stretches_it_little() -> None:
    env = _make(2)
    env.reset(seed=0)
    expert, solved = WaypointExecutor(env), torch.zeros(2, dtype=torch.bool)
    for _ in range(env.horizon):
        *_, info = env.step(expert.act())
        solved |= info["success"]
    assert solved.all() and info["success"].all() and not info["health"].any()
    pos = env.h.cloth.pos.unflatten(1, (9, 9))
    for side in (pos[:, 1:] - pos[:, :-1], pos[:, :, 1:] - pos[:, :, :-1]):
        assert (side.norm(dim=3) < 1.05 * 0.03).all()


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 points or more"):
        manikin.make("FoldCloth-v1", config={"across": 1})
    with pytest.raises(ManikinError, match="panda"):
        manikin.make("FoldCloth-v1", robot="panda+stick")
