"""Apartments in tasks: rows in different ones, and receptacles that move with their drawers."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest
import torch

import manikin
from furnished import corners_in_picture
from manikin.env.task import Quantity, Task
from manikin.errors import SceneError, UnknownNameError
from manikin.homes import Apartment, Home, Starts, apartment, free_space, furnish
from manikin.homes.kitchens import KITCHENS, kitchen
from manikin.robots import robot
from manikin.scene.handles import Robot
from manikin.spec.prop import Shape

SEEDS = {"first": 0, "second": 1, "third": 2}
RADIUS, TRIES = 0.3, 30


@dataclass
class Handles:
    home: Home
    robot: Robot


class Visit(Task):
    """Drive about.

    Randomization: which apartment, and where the robot stands in it.
    Success: never.
    """

    id = "Visit-v0"
    horizon_s = 5.0
    instruction = "drive about"
    robots = ("fetch",)
    robot_control = {"fetch": "base: base_vel"}
    layouts = tuple(SEEDS)
    observations = {"tcp": Quantity("m", "world"), "drawer": Quantity("m", "world")}

    def scene(self, b):
        home = apartment(SEEDS[self.layout] if self.layouts else self.seed)
        self._starts = Starts(home, free_space(home, radius=RADIUS, height=1.2), b.robots[0])
        return Handles(home=furnish(b, home), robot=b.robot(pos=(0, 0, 0)))

    def start(self, h, ep):
        numbers = ep.rng.uniform("place", 0.0, 1.0, (TRIES, 3))
        h.robot.set_qpos(self._starts.draw(h.robot.keyframe("carry"), numbers))

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        drawer = h.home.receptacle("counter/drawer0")[:, :3]
        return {"policy": {"tcp": h.robot.tcp_pos, "drawer": drawer}, "privileged": {}}


class Stay(Visit):
    """The same in one apartment.

    Randomization: where the robot stands.
    Success: never.
    """

    id = "Stay-v0"
    layouts = ()
    seed = 0


def played(rows: int, seed: int) -> torch.Tensor:
    env = manikin.make(Visit, num_envs=rows, reward="none", autoreset="disabled")
    env.reset(seed=seed)
    for k in range(20):
        action = torch.full((rows, env.controller.card.size), 0.5 if k < 10 else -0.3)
        obs, *_ = env.step(action)
    env.close()
    return obs.clone()


def test_rows_are_in_different_apartments_and_equal_to_rows_alone() -> None:
    together = played(6, 10)
    assert len(torch.unique(together[:, 3:], dim=0)) > 1  # counters stand in different places
    for row in (0, 4):
        assert torch.equal(together[row], played(1, 10 + row)[0])


@pytest.mark.parametrize("seed", SEEDS.values())
def test_nothing_touches_the_robot_where_it_starts(seed: int) -> None:
    """Neither base nor the arm, which reaches out of the cylinder that the map was made for."""
    kind = type("There", (Stay,), {"id": "There-v0", "seed": seed, "__doc__": Stay.__doc__})
    env = manikin.make(kind, num_envs=20, reward="none", autoreset="disabled")
    env.reset(seed=0)
    for row in range(20):
        model, data = env.world.data(row)
        pairs = [{model.geom(g).name for g in c.geom} for c in data.contact if c.dist < 0]
        assert not [pair for pair in pairs if "floor" not in pair]
    env.close()


def test_a_drawers_receptacle_moves_along_and_a_tables_does_not() -> None:
    env = manikin.make(Stay, num_envs=1, reward="none")
    env.reset(seed=0)
    home = env.h.home
    before = home.receptacle("counter/drawer0").clone(), home.receptacle("table/top").clone()
    closed = home.mechanism("counter").qpos.clone()
    opened = closed.clone()
    opened[:, home.mechanism("counter").joints.index("drawer0")] = 0.3
    home.mechanism("counter").set_qpos(opened)
    env.world.forward()
    moved = home.receptacle("counter/drawer0")[0, :3] - before[0][0, :3]
    assert moved.tolist() == pytest.approx([0.0, -0.3, 0.0], abs=1e-5)  # out of a front that faces -y
    assert torch.equal(home.receptacle("table/top"), before[1])
    model, data = env.world.data(0)
    mujoco.mj_kinematics(model, data)
    owner, one = home.apartment.receptacle("counter/drawer0")
    body = data.body(f"{owner.name}/{one.link}")
    exact = body.xpos + body.xmat.reshape(3, 3) @ np.array(one.pos)
    assert home.receptacle("counter/drawer0")[0, :3].tolist() == pytest.approx(exact.tolist(), abs=1e-5)
    with pytest.raises(UnknownNameError, match="counter/drawer0"):
        home.receptacle("counter/drawer99")
    env.close()


def test_a_robot_without_room_or_without_a_base_is_named() -> None:
    home = apartment(0)
    free, chosen = free_space(home, radius=0.3), robot("fetch")
    starts = Starts(home, free, (chosen.arm, chosen.gripper, False))
    reach = torch.zeros(len(chosen.arm.joints))  # the arm points ahead
    reach[:3] = torch.tensor([0.45, 4.5, 3.1])  # [m, rad] into the wall between the rooms
    assert starts.touches(reach[None])[0]
    corner = {"near": np.array([home.low[0], home.low[1]]), "within": 0.7, "facing": np.array(home.low)}
    with pytest.raises(SceneError, match="in all 2 tries of row 0"):
        starts.draw(reach, np.full((1, 2, 3), 0.5), **corner)
    arm = robot("panda")
    with pytest.raises(SceneError, match="panda has no base that drives"):
        Starts(home, free, (arm.arm, arm.gripper, False))


def test_the_view_for_people_has_all_of_a_home() -> None:
    """Of any shape; built-in apartments keep the view of their tasks' versions."""
    box = [Shape(type="box", size=(0.05, 0.05, 1.2), pos=(x, 0, 1.2)) for x in (0, 1)]
    for high in ((1.0, 9.0), (9.0, 1.0), (4.0, 4.0)):
        seen = np.abs(corners_in_picture(Apartment(name="any", low=(0, 0), high=high, walls=tuple(box))))
        assert 0.9 < seen.max() < 1.0
    for name in KITCHENS:
        assert np.abs(corners_in_picture(kitchen(name))).max() < 1.0
    home = apartment(0)
    assert home.view is not None and home.view[0][2] == pytest.approx(1.05 * (home.high[0] - home.low[0]))
