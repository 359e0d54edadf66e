"""Cloth: it falls as a whole, hangs by its stiffness, keeps its area, and both devices move it alike."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import pytest
import torch

import manikin
from manikin import Task
from manikin.errors import ConfigError
from manikin.props.soft.cloth import cloth
from manikin.spec.budget import Budget
from manikin.spec.physics import Physics


class Sheet(Task):
    """A cloth in the air, with an arm far away.

    Randomization: none.
    Success: never.
    """

    id = "ClothSheet-v0"
    horizon_s = 5.0
    across = 5
    height, yaw = 1.0, 0.3

    def scene(self, b: Any) -> dict[str, Any]:
        return {"robot": b.robot(pos=(-2.0, 0, 0)), "cloth": cloth(b, "cloth", side=0.2, across=self.across)}

    def start(self, h: Any, ep: Any) -> None:
        h.robot.set_qpos(h.robot.keyframe())
        h.cloth.place(torch.tensor([[0.1, 0.2, self.height]]).expand(h.n, 3), torch.full((h.n,), self.yaw))

    def evaluate(self, h: Any) -> dict[str, torch.Tensor]:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: Any) -> dict[str, dict[str, torch.Tensor]]:
        return {"policy": {}, "privileged": {"cloth": h.cloth.pos.flatten(1)}}


def _made(**options: Any) -> manikin.Env:
    env = manikin.make(Sheet, autoreset="disabled", reward="none", **options)
    env.reset(seed=0)
    return env


def _area(points: torch.Tensor, triangles: torch.Tensor) -> float:
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return float(torch.linalg.cross(b - a, c - a).norm(dim=1).sum() / 2)


def test_a_cloth_is_laid_where_it_should_be_and_its_triangles_cover_it() -> None:
    env = _made()
    sheet, corners = env.h.cloth, env.h.cloth.corners[0]
    half = 0.1 * math.sqrt(2)
    bead = torch.tensor([0.1, 0.2, 1.0]) + half * torch.tensor(
        [math.cos(0.3 + math.pi / 4), math.sin(0.3 + math.pi / 4), 0.0]
    )
    torch.testing.assert_close(corners[1], bead)
    assert (corners[0] - corners[1]).norm().item() == pytest.approx(0.2 * math.sqrt(2), abs=1e-6)
    assert (corners[2] - corners[3]).norm().item() == pytest.approx(0.2 * math.sqrt(2), abs=1e-6)
    assert _area(sheet.pos[0], sheet.elements) == pytest.approx(0.04, rel=1e-5)
    model = env.scene.model
    assert float(model.body_subtreemass[model.body("cloth").id]) == pytest.approx(0.04, rel=1e-6)  # 1 kg/m^2
    env.close()


def test_it_falls_freely_and_is_not_strained() -> None:
    env = _made()
    start = env.h.cloth.pos.clone()
    for _ in range(8):
        env.step(torch.zeros(1, env.controller.card.size))
    fell = (start - env.h.cloth.pos)[0]
    torch.testing.assert_close(fell[:, 2], torch.full((25,), 0.5 * 9.81 * 0.4**2), rtol=0.04, atol=0.0)
    assert fell[:, :2].abs().max() < 1e-5
    env.close()


def test_gaps_are_distances_of_mirror_images() -> None:
    """Of a flat cloth twice the distance from the fold; of one that is folded by hand, none."""
    env = _made()
    sheet = env.h.cloth
    k, step = 5, 0.05
    expected = [abs(i - j) * step * math.sqrt(2) for i in range(k) for j in range(i + 1, k)]
    mirror = torch.tensor([(k - 1 - j) * k + (k - 1 - i) for i in range(k) for j in range(k)])
    pos = sheet.pos[0].clone()
    ours = [float((pos[n] - pos[m])[:2].norm()) for n, m in enumerate(mirror.tolist()) if n < m]
    assert sorted(sheet.gaps[0].tolist()) == pytest.approx(sorted(ours), abs=1e-5)
    assert sorted(ours) == pytest.approx(sorted(expected), abs=1e-5)
    lower = [n for n, m in enumerate(mirror.tolist()) if n > m]
    folded = pos.clone()
    folded[lower] = pos[mirror[lower]]
    sheet.set_pos(folded[None])
    env.world.forward()
    assert sheet.gaps.max() < 1e-6
    env.close()


def test_a_stretched_cloth_pulls_with_the_force_of_its_stiffness() -> None:
    """A strip that is stretched by a share along x, held in width: E t / (1 - nu^2) times share and width."""
    env = _made()
    model = env.scene.model
    data = mujoco.MjData(model)
    sheet, share = env.h.cloth, 0.01
    start = int(model.jnt_qposadr[model.body("cloth/0").jntadr[0]])
    rest = sheet.rest.numpy()
    data.qpos[start : start + 75] = 0.0
    data.qpos[start : start + 75 : 3] = share * rest[:, 0]
    mujoco.mj_forward(model, data)
    dof = int(model.body("cloth/0").dofadr[0])
    edge = [dof + 3 * (4 * 5 + j) for j in range(5)]  # the last column, along x
    force = -float(data.qfrc_spring[edge].sum())
    strain = share + share**2 / 2  # Green's
    expected = 1e5 * 1.5e-3 / (1 - 0.3**2) * strain * (1 + share) * 0.2
    assert force == pytest.approx(expected, rel=0.02)
    env.close()


def test_both_devices_move_it_alike_for_ten_steps() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    found = []
    for options in ({}, {"device": "warp:cpu", "budget": Budget(nconmax=64, njmax=256)}):
        env = _made(**options)
        start = env.h.cloth.pos.clone()
        start[:, -1, 2] += 0.02  # strained: the bead is pulled up
        env.h.cloth.set_pos(start)
        env.world.forward()
        for _ in range(2):
            env.step(torch.zeros(1, env.controller.card.size))
        found.append(env.h.cloth.pos[0].cpu().clone())
        env.close()
    assert (found[0] - found[1]).abs().max() < 1e-4


def test_what_is_refused() -> None:
    class Thin(Sheet):
        """A cloth of one point.

        Randomization: none.
        Success: never.
        """

        id = "ClothThin-v0"
        across = 1

    class Fast(Sheet):
        """Another integrator.

        Randomization: none.
        Success: never.
        """

        id = "ClothFast-v0"
        physics = Physics(integrator="implicitfast", hz=500)

    with pytest.raises(ConfigError, match="2 points or more"):
        manikin.make(Thin, reward="none")
    with pytest.raises(ConfigError, match="integrator 'discrete'"):
        manikin.make(Fast, reward="none")
