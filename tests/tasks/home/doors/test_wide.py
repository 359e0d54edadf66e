"""A door that opens past a right angle: where it is by formula, where the robot stands, and that the experts of
HomeOpen and HomeClose succeed at ReplicaCAD's fridge."""

from __future__ import annotations

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.eval.runner import run_episodes
from manikin.homes.episodes import home_of
from manikin.policy.expert import ExpertPolicy
from manikin.tasks.home import in_apartments
from manikin.tasks.home.doors.approach import floor
from manikin.tasks.home.doors.close import HomeClose
from manikin.tasks.home.doors.fronts import Front, Fronts, fronts
from manikin.tasks.home.doors.mechanisms import MechanismTask
from manikin.tasks.home.doors.open import HomeOpen
from manikin.tasks.home.doors.wide import Swung, behind, beside

SCENE, TIGHT, BACKS = "v3_sc0_staging_00", "v3_sc2_staging_00", "v3_sc0_staging_09"


def swung(layout: str) -> tuple[Fronts, Swung]:
    found = fronts(layout, ("fridge",))
    return found, Swung.of(found.hinge, found.yaw, found.sense, found.width)


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_places_at_a_door_turn_about_its_hinge(sense: float) -> None:
    """Against complex numbers: what is shut at z is at z exp(i sense q) from the hinge."""
    hinge, yaw, width, q = complex(2.0, -1.0), 0.7, 0.69, 1.9
    door = Swung.of(
        torch.tensor([[hinge.real, hinge.imag]]), torch.tensor([yaw]), torch.tensor([sense]), torch.tensor([width])
    )
    out = np.exp(1j * yaw)
    aside = out * -1j * sense  # the handle is on the side to which the door does not turn at first
    for along, off in ((0.4, 0.0), (0.6, 0.05), (width, -0.1)):
        want = hinge + (along * aside + off * out) * np.exp(1j * sense * q)
        got = door.at(q, along, off)[0].tolist()
        assert complex(*got) == pytest.approx(want, abs=1e-5)
    assert torch.allclose(door.edge(q), door.at(q, width))
    past = door.edge(1.73)[0] - door.hinge[0]
    assert float(past @ door.aside[0]) < 0 < float(past @ door.out[0])  # its edge is past the hinge


@pytest.mark.parametrize("layout", ["apartment0", SCENE])
def test_width_and_top_of_a_door_are_those_of_its_shapes(layout: str, request: pytest.FixtureRequest) -> None:
    """Against where MuJoCo has the corners of its panel and the end of its bar."""
    if layout == SCENE:
        request.getfixturevalue("data_root")
    one = fronts(layout, ("fridge",)).each[0]
    owner = next(piece for piece in home_of(layout).mechanisms if piece.name == one.mechanism)
    spec = mujoco.MjSpec()
    spec.copy_during_attach = True
    spec.attach(owner.model, frame=spec.worldbody.add_frame(pos=owner.pos, quat=owner.quat), prefix="it/")
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    far = []
    for k in range(model.ngeom):
        at_link = model.body(model.geom_bodyid[k]).name == f"it/{one.link}"
        if at_link and model.geom_type[k] == mujoco.mjtGeom.mjGEOM_BOX:
            turn = data.geom_xmat[k].reshape(3, 3)
            corners = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T * model.geom_size[k]
            link = data.body(f"it/{one.link}")  # which is tilted a little
            across = link.xmat.reshape(3, 3)[:, 1]
            far.append(np.abs((corners @ turn.T + data.geom_xpos[k] - link.xpos) @ across).max())
    assert one.width == pytest.approx(max(far), abs=1e-4)
    bar = data.geom(f"it/handle/{one.joint}/bar").xpos[2] + model.geom(f"it/handle/{one.joint}/bar").size[1]
    assert one.top == pytest.approx(bar, abs=1e-4)


def test_only_a_door_that_opens_past_a_right_angle_is_wide(data_root: Path) -> None:
    for layout, wide in (("apartment0", False), (SCENE, True)):
        task = in_apartments(HomeOpen, layout)({"mechanism": "fridge"}, layout=layout)
        assert isinstance(task, MechanismTask)
        task.about(fronts(layout, ("fridge",)), ("fridge",))
        low, high = task.fronts.limits[0].tolist()
        assert task.wide is wide is (low + 0.75 * (high - low) > math.pi / 2)
    assert Front.width == 0.0 and not fronts(SCENE, ("drawer",)).width.any()


@pytest.mark.parametrize("layout", [SCENE, TIGHT])
def test_stands_have_room_on_their_side_of_the_door(layout: str, data_root: Path) -> None:
    found, door = swung(layout)
    q = torch.tensor([2.2])
    stand, _ = behind(layout, door, q)
    assert float((stand - door.hinge)[0] @ door.aside[0]) < -0.5
    share = torch.linspace(0, 1, 50)[:, None]
    along = door.hinge + share * (door.edge(q) - door.hinge)
    assert float((along - stand).norm(dim=1).min()) > 0.7
    start = torch.cat([door.place(1.1, 0.6), torch.tensor([[math.pi]])], 1)
    line, near = beside(layout, found.handle, found.yaw, found.sense, start)
    for place in (line.base(near), line.base(line.back)):
        assert float((place[:, :2] - found.handle[:, :2])[0] @ door.aside[0]) > -1e-4
        assert floor(layout).clearance_at(place[:, :2].numpy())[0] > 0.28
    assert floor(layout).clearance_at(stand.numpy())[0] > 0.28


@pytest.mark.parametrize("kind", [HomeOpen, HomeClose])
def test_experts_succeed_at_the_fridge_of_replicacad(kind: type[MechanismTask], data_root: Path) -> None:
    task = in_apartments(kind, SCENE)
    env = manikin.make(task, 3, config={"mechanism": "fridge"}, autoreset="disabled", threads=1)
    run = run_episodes(env, ExpertPolicy(env), range(3))
    env.close()
    assert all(one.success_once for one in run.results)


@pytest.mark.parametrize(("kind", "layout", "seeds"), [(HomeClose, SCENE, (105, 189)), (HomeOpen, BACKS, (3, 66))])
def test_a_start_close_before_the_fridge_is_left_backwards(
    kind: type[MechanismTask], layout: str, seeds: tuple[int, ...], data_root: Path
) -> None:
    """With its arm before it the robot has no room to turn there."""
    env = manikin.make(in_apartments(kind, layout), 2, config={"mechanism": "fridge"}, autoreset="disabled", threads=1)
    env.reset(seed=list(seeds))
    scene = env.parts()[0].env
    assert isinstance(scene.task, MechanismTask)
    began = scene.task.seen(scene.h).base.clone()
    expert = ExpertPolicy(env)
    for _ in range(25):
        env.step(expert.act({}, env.instruction)[:, 0])
    moved = scene.task.seen(scene.h).base - began
    ahead = torch.stack([torch.cos(began[:, 2]), torch.sin(began[:, 2])], 1)
    assert ((moved[:, :2] * ahead).sum(1) < -0.05).all()
    run = run_episodes(env, ExpertPolicy(env), seeds)
    env.close()
    assert all(one.success_once for one in run.results)


def test_drawers_and_fridges_in_one_batch_go_each_their_way(data_root: Path) -> None:
    task = in_apartments(HomeOpen, SCENE)
    env = manikin.make(task, 6, config={"mechanism": "either"}, autoreset="disabled", threads=1)
    run = run_episodes(env, ExpertPolicy(env), range(6))
    env.close()
    assert sum(bool(one.success_once) for one in run.results) >= 5
