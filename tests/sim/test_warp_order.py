"""The order of contacts and of rows of constraints, by which a GPU gives the same bits in every run.

Which thread comes first is played here: contacts, and the rows of each kind of constraint, are shuffled before they are
sorted. tests/sim/test_gpu.py compares two processes where threads do race.
"""

from __future__ import annotations

import mujoco
import pytest
import torch

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

import warp as wp  # noqa: E402
from mujoco_warp._src import collision_driver, constraint  # noqa: E402

from manikin.compat.warp import fill_empty_sorts  # noqa: E402
from manikin.sim.warp import order  # noqa: E402
from manikin.sim.warp.world import WarpWorld  # noqa: E402
from test_world import build  # noqa: E402

BOTH = (collision_driver, "_sort_contacts"), (constraint, "_sort_constraints")


class Race:
    """Shuffles, and may then sort; counts how often something was not in order."""

    def __init__(self, *, sort: bool) -> None:
        self.sort, self.moved = sort, [0, 0]
        self.rng = torch.Generator().manual_seed(1)

    def contacts(self, m, d):
        count = int(d.nacon.numpy()[0])
        shuffled = torch.arange(d.naconmax)
        shuffled[:count] = torch.randperm(count, generator=self.rng)
        self.moved[0] += not torch.equal(shuffled, torch.arange(d.naconmax))
        order.move_contacts(d, shuffled)
        if self.sort:
            order.move_contacts(d, order.contact_order(m, d))

    def constraints(self, m, d):
        kind, about = wp.to_torch(d.efc.type), wp.to_torch(d.efc.id)
        draw = torch.rand(int(about.max()) + 1, generator=self.rng)[about.clamp(min=0).long()]  # one for each thing
        unused = torch.arange(kind.shape[1]) >= wp.to_torch(d.nefc)[:, None]
        shuffled = (kind + draw.double()).masked_fill(unused, 100).argsort(dim=1, stable=True)
        self.moved[1] += not torch.equal(shuffled, torch.arange(kind.shape[1]).expand_as(shuffled))
        order.move_rows(m, d, shuffled)
        if self.sort:
            order.move_rows(m, d, order.row_order(d))


def course(jacobian, monkeypatch, race=None, *, deterministic=True, steps=60):
    """States of two rows in which three things fall beside an arm that is pressed against its limits."""
    b, arm, cube, ball, can, _ = build()
    scene = b.compile()
    scene.model.opt.jacobian = jacobian
    world = WarpWorld(scene, 2, deterministic=deterministic, nconmax=32, njmax=96)
    if race is not None:
        for (module, name), function in zip(BOTH, (race.contacts, race.constraints), strict=True):
            monkeypatch.setattr(module, name, function)
    assert world.mjw_model.is_sparse == (jacobian == mujoco.mjtJacobian.mjJAC_SPARSE)
    b.bind(world)
    arm.set_qpos(arm.keyframe())
    cube.set_pose(((0.05, 0.0, 0.03), (0.05, 0.0, 0.04)), (0.8, 0.6, 0, 0))
    ball.set_pose((0.05, 0.15, 0.05))
    can.set_pose((0.05, -0.15, 0.06), (0.96, 0.28, 0, 0))
    world.forward()
    states = []
    for k in range(steps // 10):
        ctrl = world.read("ctrl").clone()
        ctrl[:, 0], ctrl[:, 3] = (3.0 if k % 2 else -3.0), -3.0
        world.write("ctrl", ctrl)
        world.step(10)
        states.append(world.read("qpos").clone())
    monkeypatch.undo()
    return torch.stack(states)


@pytest.mark.parametrize("jacobian", [mujoco.mjtJacobian.mjJAC_DENSE, mujoco.mjtJacobian.mjJAC_SPARSE])
def test_the_order_in_which_threads_arrive_changes_no_bit(jacobian, monkeypatch):
    race = Race(sort=True)
    sorted_alone, raced = course(jacobian, monkeypatch), course(jacobian, monkeypatch, race)
    assert min(race.moved) > 20
    assert torch.equal(raced, sorted_alone)

    unsorted = Race(sort=False)
    left = course(jacobian, monkeypatch, unsorted)
    assert min(unsorted.moved) > 20 and not torch.equal(left, sorted_alone)  # so the sorts are what does it
    default = course(jacobian, monkeypatch, deterministic=False)
    for other in (left, default):  # and the physics is that of every order
        torch.testing.assert_close(other[:2], sorted_alone[:2], rtol=0, atol=2e-5)


def test_what_a_version_sorts_by_itself_is_left_alone(monkeypatch):
    def theirs(m, d):
        return m.sorted(d)

    (first, contacts), (second, rows) = BOTH
    monkeypatch.setattr(first, contacts, theirs)
    monkeypatch.setattr(second, rows, lambda m, d: None)
    ours = (lambda m, d: m.first(d)), (lambda m, d: m.second(d))
    fill_empty_sorts(contacts=ours[0], constraints=ours[1])
    assert getattr(first, contacts) is theirs and getattr(second, rows) is ours[1]
