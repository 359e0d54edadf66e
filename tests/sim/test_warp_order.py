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

import mujoco_warp as mjw  # noqa: E402
import warp as wp  # noqa: E402
from mujoco_warp._src import collision_driver, constraint  # noqa: E402

from manikin.compat.warp import fill_empty_sorts  # noqa: E402
from manikin.sim.warp import order  # noqa: E402
from manikin.sim.warp.world import WarpWorld  # noqa: E402
from test_world import build  # noqa: E402

DRY = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
FIRST_CONTACT = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_FRICTIONLESS)
BOTH = (collision_driver, "_sort_contacts"), (constraint, "_sort_constraints")


class Race:
    """Shuffles, and may then sort; counts how often something was not in order."""

    def __init__(self, *, sort: bool) -> None:
        self.sort, self.moved, self.found = sort, [0, 0], [0, 0]
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
            order.move_rows(m, d, order.row_order(m, d))
        self.addresses(d)

    def addresses(self, d):
        """Rows are where contacts and joints with dry friction say they are."""
        about, kind = wp.to_torch(d.efc.id), wp.to_torch(d.efc.type)
        count, world = int(d.nacon.numpy()[0]), wp.to_torch(d.contact.worldid)
        for c, rows in enumerate(wp.to_torch(d.contact.efc_address)[:count].tolist()):
            for row in (r for r in rows if r >= 0):
                assert about[world[c], row] == c and kind[world[c], row] >= FIRST_CONTACT
                self.found[0] += 1
        dry = wp.to_torch(d.dof_frictionadr)
        for w, dof in (dry >= 0).nonzero().tolist() if wp.to_torch(d.nf).any() else ():
            assert about[w, dry[w, dof]] == dof and kind[w, dry[w, dof]] == DRY
            self.found[1] += 1


def course(jacobian, monkeypatch, race=None, *, deterministic=True, steps=60):
    """States of two rows in which three things fall beside an arm that is pressed against its limits."""
    b, arm, cube, ball, can, _ = build()
    scene = b.compile()
    scene.model.opt.jacobian = jacobian
    scene.model.dof_frictionloss[:7] = 0.1 * torch.arange(1, 8).numpy()  # each row is another's
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
    assert min(race.moved) > 20 and min(race.found) > 100
    assert torch.equal(raced, sorted_alone)

    unsorted = Race(sort=False)
    left = course(jacobian, monkeypatch, unsorted)
    assert min(unsorted.moved) > 20 and not torch.equal(left, sorted_alone)  # so the sorts are what does it
    default = course(jacobian, monkeypatch, deterministic=False)
    for other in (left, default):  # and the physics is that of every order
        torch.testing.assert_close(other[:2], sorted_alone[:2], rtol=0, atol=2e-5)


EQUAL = """
<mujoco>
  <option integrator="implicitfast"/>
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="ja" axis="0 1 0"/><geom size=".1" mass="1" pos=".2 0 0"/><site name="at"/>
    </body>
    <body name="b" pos="0 1 1"><joint name="jb" axis="0 1 0"/><geom size=".1" mass="2" pos=".3 0 0"/></body>
    <body name="c" pos="0 2 1">
      <freejoint/><geom size=".1" mass="3" pos=".1 0 0"/>
      <body name="d"><geom size=".05" mass="1"/><site name="held"/></body>
    </body>
  </worldbody>
  <equality><joint joint1="ja" joint2="jb"/><connect body1="d" anchor="0 0 0"/></equality>
  <sensor><force site="at"/><force site="held"/></sensor>
</mujoco>"""


def test_forces_of_equalities_are_read_where_their_rows_are():
    """MuJoCo Warp reads connects before joints, whatever their ids. c hangs from d, which is held by the connect."""
    seen = {}
    for wanted in (False, True):
        model = mujoco.MjModel.from_xml_string(EQUAL)
        m, d = mjw.put_model(model), mjw.make_data(model, nworld=2, nconmax=8, njmax=16)
        m.opt.deterministic = order.determinism(wanted)
        for _ in range(10):
            mjw.step(m, d)
        seen[wanted] = [wp.to_torch(one).clone() for one in (d.sensordata, d.cfrc_ext, d.efc.id[:, :4])]
    for sorted_, plain in zip(seen[True][:2], seen[False][:2], strict=True):
        torch.testing.assert_close(sorted_, plain, rtol=0, atol=1e-4)
    assert seen[True][0].abs().max() > 5 and seen[True][2].tolist() == [[1, 1, 1, 0]] * 2


def test_what_a_version_sorts_by_itself_is_left_alone(monkeypatch):
    def theirs(m, d):
        return m.sorted(d)

    (first, contacts), (second, rows) = BOTH
    monkeypatch.setattr(first, contacts, theirs)
    monkeypatch.setattr(second, rows, lambda m, d: None)
    ours = (lambda m, d: m.first(d)), (lambda m, d: m.second(d))
    fill_empty_sorts(contacts=ours[0], constraints=ours[1])
    assert getattr(first, contacts) is theirs and getattr(second, rows) is ours[1]
