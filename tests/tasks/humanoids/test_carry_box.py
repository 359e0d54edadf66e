"""CarryBox: H1's hands carry the box; palms that lie flat; who may do it."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, SceneError
from manikin.plan.executor import WaypointExecutor
from manikin.toolkit import Palm

REST = 0.85 + 0.12  # [m]: the table's height and half of the box's


def _env(num_envs: int = 1, **options: object) -> manikin.Env:
    env = manikin.make("CarryBox-v1", num_envs, autoreset="disabled", terminate=False, **options)
    env.reset(seed=0)
    return env


def test_both_hands_hold_the_box_in_the_air_and_it_comes_to_stand_on_the_left_table() -> None:
    env = _env(2)
    expert, carried = WaypointExecutor(env), []
    for _ in range(170):
        *_, info = env.step(expert.act())
        turns = torch.tensor([stage == "turn" for stage in expert.waypoint])
        assert info["is_held"][turns].all() and (env.h.box.pos[turns, 2] > REST + 0.05).all()
        carried.append(torch.stack([press.value for press in env.h.presses], 1)[turns].sum(1)[:, 2])
    weight = 200 * 0.36 * 0.24 * 0.24 * 9.81
    assert torch.cat(carried).mean().item() == pytest.approx(weight, rel=0.1)  # nothing else touches it
    assert info["success"].all()
    assert env.h.box.pos[:, 2].tolist() == pytest.approx([REST] * 2, abs=2e-4)


@pytest.mark.parametrize("word", ["CarryBox-v1", "TransportBox-v1"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_palm_that_is_declared_is_the_face_of_the_palm_s_box(word: str, side: str) -> None:
    """Beside the built-in shapes: the palm lies on the plane, all of its own box behind it, and looks along it."""
    env = manikin.make(word, 1, autoreset="disabled")
    env.reset(seed=0)
    robot, palm = env.h.robot, Palm(env.h.robot, side, flat=True)
    out = -1.0 if side == "left" else 1.0  # inwards
    arms = robot.arm_qpos.clone()
    arms[:, :] = torch.tensor(robot.arm.keyframes["palms"])
    robot.set_qpos(arms)
    env.world.forward()
    place = robot.tools[side].tcp_pos + torch.tensor([[0.02, 0.03 * out, 0.02]])
    normal = torch.tensor([[0.0, out, 0.0]])
    q, off = palm.at(place, normal, arms, iterations=60)
    assert off.item() < 1e-3
    robot.set_qpos(q)
    env.world.forward()
    model, data = env.model_data(0)
    body = f"robot/{side}_palm_link" if word == "TransportBox-v1" else f"robot/{side}_palm"
    geom = next(
        g
        for g in range(model.ngeom)
        if model.body(model.geom_bodyid[g]).name == body and model.geom_type[g] == mujoco.mjtGeom.mjGEOM_BOX
    )
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * model.geom_size[geom]
    corners = data.geom_xpos[geom] + corners @ data.geom_xmat[geom].reshape(3, 3).T
    before = (corners - place[0].numpy()) @ normal[0].numpy()
    assert np.sort(before)[-4:] == pytest.approx(np.zeros(4), abs=2e-3)  # four corners on the plane
    assert np.sort(before)[:4].max() < -0.02
    face = corners[np.argsort(before)[-4:]].mean(0)
    assert face == pytest.approx(place[0].numpy(), abs=0.013)  # in the middle of the face, or near it


def test_a_hand_without_a_declared_palm_is_named() -> None:
    env = manikin.make("PickCube-v2", reward="none")
    env.reset(seed=0)
    tool = next(iter(env.robot.tools))
    with pytest.raises(SceneError, match=f"the tool '{tool}' of panda has no"):
        Palm(env.robot, tool, flat=True)


@pytest.mark.parametrize("robot", ["panda", "g1", "h1"])
def test_robots_without_two_hands_are_refused_with_the_name_of_one_that_has_them(robot: str) -> None:
    with pytest.raises(ConfigError, match=r"CarryBox-v1 needs a robot with .*; it takes .*h1_upper_body"):
        manikin.make("CarryBox-v1", robot=robot)
