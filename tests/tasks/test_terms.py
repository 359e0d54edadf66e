"""Small sums of a control step: their bits are those of published rewards, in any batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manikin
from manikin.toolkit import bonus


@pytest.mark.parametrize("count", range(1, 8))
def test_the_bonus_is_what_torchs_sum_of_the_terms_leaves(count: int) -> None:
    for rows in (1, 3, 8, 17, 256, 1000):
        terms = torch.rand(rows, count, generator=torch.Generator().manual_seed(rows)) * 3 - 0.5
        success = torch.arange(rows) % 3 != 1
        made = bonus({str(k): terms[:, k] for k in range(count)}, success, 5.0)
        assert list(made) == [*map(str, range(count)), "success"]
        assert torch.equal(made["success"], torch.where(success, 5.0 - terms.sum(1), torch.tensor(0.0)))


@pytest.mark.parametrize("robot", ["panda", "panda+robotiq_three_finger"])
def test_a_grasp_is_what_its_words_say_for_any_forces(robot: str) -> None:
    """Forces are made up and put where MuJoCo's sensors write; what follows is written out finger by finger."""
    env = manikin.make("PickCube-v2", num_envs=500, robot=robot)
    env.reset(seed=0)
    grasp, rng = env.h.grasp, np.random.default_rng(0)
    fingers = len(env.robot.model.finger_bodies)
    force = rng.normal(size=(500, fingers, 3)) * 10 ** rng.uniform(-2, 2, (500, fingers, 1))
    xmat = env.world.flat("site_xmat").reshape(500, -1, 3, 3)
    sites = [env.scene.model.site(env.robot.prefix + name).id for name in env.robot.model.finger_sites]
    force[::2] = 3 * xmat[::2][:, sites][..., 2] + 0.5 * force[::2]  # half of them press more or less as they close
    for k, (sensor, *_) in enumerate(grasp.sensors()):
        adr = env.scene.model.sensor(sensor).adr[0]
        env.world.flat("sensordata")[:, adr : adr + 3] = force[:, k]
    env.world.version += 1
    held = []
    for row in range(500):
        presses = []
        for k, site in enumerate(sites):
            size = np.linalg.norm(force[row, k])
            angle = np.degrees(np.arccos(np.clip(force[row, k] @ xmat[row, site][:, 2] / size, -1, 1)))
            presses.append(size >= grasp.min_force and angle <= 85.0)
        sides = env.robot.gripper.sides or [(k,) for k in range(fingers)]
        held.append(all(any(presses[k] for k in side) for side in sides))
    assert 50 < sum(held) < 450
    assert grasp.value.tolist() == held
    env.close()


def _pressed(env: manikin.Env, force: np.ndarray) -> torch.Tensor:
    """Whether rows hold the cube when each finger presses on it with a force (n,) [N] as it closes."""
    grasp, model = env.h.grasp, env.scene.model
    xmat = env.world.flat("site_xmat").reshape(env.num_envs, -1, 3, 3)
    names = [env.robot.prefix + site for site in env.robot.model.finger_sites]
    for (sensor, *_), name in zip(grasp.sensors(), names, strict=True):
        adr = model.sensor(sensor).adr[0]
        env.world.flat("sensordata")[:, adr : adr + 3] = force[:, None] * xmat[:, model.site(name).id][:, :, 2]
    env.world.version += 1
    return grasp.value


@pytest.mark.parametrize("rows", [1, 3])
def test_a_grasp_comes_and_goes_with_its_forces(rows: int) -> None:
    """Where no finger touches in any row nothing is computed; what was said of a step before stays what it was."""
    env = manikin.make("PickCube-v2", num_envs=rows)
    env.reset(seed=0)
    enough = np.full(rows, 1.01 * env.h.grasp.min_force)
    nothing, one = np.zeros(rows), np.where(np.arange(rows) == rows - 1, enough, 0.0)
    said = [_pressed(env, force) for force in (nothing, enough, nothing, one, 0.9 * enough)]
    assert [value.tolist() for value in said] == [(force > 0).tolist() for force in (nothing, enough, nothing, one)] + [
        [False] * rows
    ]
    assert all(value.dtype == torch.bool for value in said)
    env.close()
