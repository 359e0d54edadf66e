"""The CPU World against MuJoCo itself: every sentence of docs/architecture.md about worlds has its test here."""

from __future__ import annotations

import logging

import mujoco
import numpy as np
import pytest
import torch

from manikin.arenas.table import table
from manikin.errors import ConfigError, DataError, SceneError, UnknownNameError
from manikin.robots import robot
from manikin.scene.builder import SceneBuilder
from manikin.sim.cpu import CpuWorld
from manikin.sim.health import Health
from manikin.spec.physics import Physics
from manikin.spec.prop import Shape
from manikin.spec.scene import CompiledScene
from states import states


def build():
    # Warp's discrete gives the force of an edge 1 % larger than MuJoCo's, see docs/physics.md
    b = SceneBuilder([robot("panda")], Physics(hz=200, integrator="implicitfast", solref=(0.01, 1.0)))
    table(b)
    arm = b.robot()
    cube = b.box("cube", half_size=(0.02, 0.02, 0.02), resizable=True)
    ball = b.sphere("ball", radius=0.03, resizable=True)
    can = b.cylinder("can", size=(0.03, 0.05), resizable=True)
    wall = b.part(
        "wall",
        [Shape(type="box", size=(0.01, 0.1, 0.05)), Shape(type="box", size=(0.1, 0.01, 0.05), pos=(0, 0.1, 0))],
        kind="kinematic",
        pos=(0.3, 0.3, 0.05),
        resizable=True,
    )
    return b, arm, cube, ball, can, wall


@pytest.fixture(scope="module")
def compiled():
    return build()[0].compile()


def start(world: CpuWorld, parts) -> None:
    b, arm, cube, ball, can, _ = parts
    b.bind(world)
    n = world.num_worlds
    world.reset()
    arm.set_qpos(arm.keyframe())
    # rows differ: the cube falls from another height in each
    height = torch.linspace(0.05, 0.15, 16).repeat(n // 16 + 1)[:n]
    cube.set_pose(torch.stack([torch.full((n,), 0.05), torch.zeros(n), height], 1), (0.8, 0.6, 0, 0))
    ball.set_pose((0.05, 0.15, 0.1))
    can.set_pose((0.05, -0.15, 0.1), (0.96, 0.28, 0, 0))  # tilted: a flat landing amplifies last bits at once
    world.forward()


def make(n: int, **options):
    parts = build()
    world = CpuWorld(parts[0].compile(), n, **options)
    start(world, parts)
    return world, parts


def reference(world: CpuWorld, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = world.scene.model
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, states(world)[row], int(mujoco.mjtState.mjSTATE_INTEGRATION))
    return model, data


def test_rows_are_the_serial_simulation_and_current_after_a_step():
    world, _ = make(3)
    fields = ("xpos", "xquat", "cvel", "sensordata", "qpos", "qvel")
    for field in fields:
        world.read(field)
    model, data = reference(world, 1)
    for _ in range(40):
        world.step(5)
        for _ in range(5):
            mujoco.mj_step(model, data)
        forces = data.sensordata.copy()  # of the last substep
        mujoco.mj_step1(model, data)  # positions and velocities at the new state
        for field in ("xpos", "xquat", "cvel", "qpos", "qvel"):
            assert np.array_equal(world.read(field)[1].numpy(), getattr(data, field).astype(np.float32)), field
        assert np.array_equal(world.read("sensordata")[1].numpy(), forces.astype(np.float32))
    assert np.abs(data.qpos - reference(make(3)[0], 1)[1].qpos).max() > 0.02  # things fell


def test_forward_and_reset_run_the_full_forward_pass():
    world, _parts = make(4)
    world.read("qacc")
    world.step(20)
    world.forward()
    _, data = world.data(2)
    assert np.array_equal(world.read("qacc")[2].numpy(), data.qacc.astype(np.float32))
    assert np.array_equal(world.read("sensordata")[2].numpy(), data.sensordata.astype(np.float32))


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 3}, {"persistent": True}, {"persistent": False}])
def test_threads_and_storage_never_change_bits(options):
    plain, _ = make(9)
    other, _ = make(9, **options)
    active = np.arange(9) % 3 != 0
    for step in range(30):
        for world in (plain, other):
            world.step(5, active if step % 2 else None)
    assert np.array_equal(states(plain), states(other))
    assert torch.equal(plain.read("sensordata"), other.read("sensordata"))


def test_a_row_does_not_depend_on_the_batch():
    large, _ = make(33)
    small, _ = make(2)
    for _ in range(30):
        large.step(5)
        small.step(5)
    assert np.array_equal(states(large)[:2], states(small))


def test_inactive_rows_stay_bit_identical():
    world, _ = make(6)
    world.step(10)
    before = states(world), world.read("sensordata").clone(), world.read("xpos").clone()
    active = np.array([True, False, True, False, False, True])
    world.step(10, active)
    assert np.array_equal(states(world)[~active], before[0][~active])
    assert torch.equal(world.read("sensordata")[~active], before[1][~active])
    assert torch.equal(world.read("xpos")[~active], before[2][~active])
    assert (states(world)[active] != before[0][active]).any(1).all()


def test_before_substep_runs_before_each_and_gives_the_same_states():
    one, _ = make(2)
    other, _ = make(2)
    seen: list[int] = []
    one.step(5)
    other.step(5, before_substep=seen.append)
    assert seen == [0, 1, 2, 3, 4]
    assert np.array_equal(states(one), states(other))


def test_writing_back_what_was_read_loses_nothing():
    world, _ = make(3)
    world.step(37)
    before = states(world)
    assert (before.astype(np.float32) != before).any()  # float32 cannot hold it
    for field in ("qpos", "qvel", "ctrl"):
        world.write(field, world.read(field))
    assert np.array_equal(states(world), before)
    with pytest.raises(UnknownNameError, match="writable"):
        world.write("xpos", world.read("xpos"))


def test_snapshot_continues_bit_for_bit_in_any_row_and_batch():
    world, parts = make(5)
    _b, _, cube, _, _, _ = parts
    world.set_model({("body_mass", (cube.body_id,)): np.linspace(0.02, 0.2, 5)[:, None]})
    world.step(40)
    snapshot = world.save()
    seen = {f: world.read(f).clone() for f in ("sensordata", "xpos", "qvel")}
    world.step(100)
    after = states(world)
    world.load(snapshot)
    for field, value in seen.items():
        assert torch.equal(world.read(field), value), field
    world.step(100)
    assert np.array_equal(states(world), after)
    one = world.__class__(world.scene, 7)
    one.read("sensordata"), one.read("xpos")
    world.load(snapshot)
    one.load(world.save(np.array([3])))  # one row into all rows of another batch, its mass with it
    assert torch.equal(one.read("sensordata"), seen["sensordata"][3].expand(7, -1))
    one.step(100)
    assert np.array_equal(states(one), np.broadcast_to(after[3], states(one).shape))
    world.load(world.save(np.array([0])), np.array([4]))  # into another row
    world.step(60)
    assert np.array_equal(states(world)[0], states(world)[4])


def test_a_snapshot_of_another_scene_or_size_is_refused():
    world, _ = make(3)
    with pytest.raises(DataError, match="3 rows cannot be loaded into 2"):
        world.load(world.save(), np.array([0, 1]))
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    other = CpuWorld(CompiledScene.from_model(model), 3)
    with pytest.raises(DataError, match="belongs to scene"):
        other.load(world.save())


def test_a_diverged_row_goes_back_and_is_flagged_and_others_do_not_notice(caplog, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world, parts = make(4)
    calm, _ = make(4)
    world.step(20)
    calm.step(20)
    force = world.read("xfrc_applied").clone()
    force[2, parts[2].body_id, 2] = 1e30
    before, sensors = states(world), world.read("sensordata").clone()
    world.write("xfrc_applied", force)
    with caplog.at_level(logging.WARNING, logger="manikin.physics"):
        world.step(20)
    calm.step(20)
    rows = np.array([True, True, False, True])
    assert (world.health() & Health.DIVERGED).tolist() == [0, 0, int(Health.DIVERGED), 0]
    assert np.isfinite(states(world)).all()
    assert np.array_equal(states(world)[2], before[2])  # the force we put there is gone too
    assert torch.equal(world.read("sensordata")[2], sensors[2])
    assert np.array_equal(states(world)[rows], states(calm)[rows])
    assert any("unstable" in r.message for r in caplog.records)
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
    world.reset(np.array([2]))
    assert world.health()[2] == 0


def test_poison_overwrites_what_was_borrowed():
    world, parts = make(2, poison=True)
    cube = parts[2]
    kept = cube.pos
    assert torch.isfinite(kept).all()
    world.step(1)
    fresh = cube.pos
    assert torch.isnan(kept).all() and torch.isfinite(fresh).all()


# ---- per-row model: each kind against the row's own compiled model -------------------------------------------------


def single(edit) -> mujoco.MjModel:
    """The same scene compiled with other numbers."""
    b = build()[0]
    edit(b.spec)
    return b.compile().model


def agree(world: CpuWorld, row: int, model: mujoco.MjModel, steps: int = 200, tol: float = 1e-9) -> None:
    """The row moves as a simulation of ``model`` from the same state does."""
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, states(world)[row], int(mujoco.mjtState.mjSTATE_INTEGRATION))
    start = data.qpos.copy()
    for _ in range(steps):
        world.step(1)
        mujoco.mj_step(model, data)
    difference = np.abs(world.batch.bind("qpos")[row] - data.qpos).max()
    assert difference < tol, difference
    assert np.abs(data.qpos - start).max() > 0.01


def test_direct_fields_per_row():
    world, parts = make(3)
    cube = parts[2]
    cube.set_property("friction", torch.tensor([0.1, 0.5, 1.5]))
    cube.set_pose((0.05, 0, 0.021))
    cube.set_velocity((1.0, 0.0, 0.0))
    world.forward()

    def edit(spec):
        spec.geom("cube/0").friction[0] = np.float32(0.1)

    agree(world, 0, single(edit))
    x = cube.pos[:, 0]
    assert x[0] > x[1] > x[2]  # the slippery one slid further


def test_mass_per_row():
    world, parts = make(3)
    cube = parts[2]
    cube.set_property("mass", torch.tensor([0.01, 0.064, 0.5]))

    def edit(spec):
        spec.geom("cube/0").mass = 0.5

    model = single(edit)
    for field in ("body_mass", "body_inertia", "body_invweight0", "dof_invweight0", "dof_M0", "body_subtreemass"):
        assert np.allclose(world.batch.expanded(field)[2], getattr(model, field), rtol=1e-12, atol=1e-15), field
    agree(world, 2, model)


@pytest.mark.parametrize(
    ("which", "size"), [("cube", (0.03, 0.015, 0.04)), ("ball", (0.045, 0, 0)), ("can", (0.02, 0.08, 0))]
)
def test_size_per_row(which, size):
    world, parts = make(3)
    part = {"cube": parts[2], "ball": parts[3], "can": parts[4]}[which]
    wanted = part.size.clone()
    wanted[1] = torch.tensor(size)
    part.set_size(wanted)
    assert torch.equal(part.size, wanted)

    def edit(spec):
        spec.geom(f"{which}/0").size = np.float32(size)

    model = single(edit)
    fields = "geom_size geom_rbound geom_aabb body_mass body_inertia body_invweight0 dof_invweight0 dof_M0 bvh_aabb"
    for field in fields.split():
        mine, theirs = world.batch.expanded(field)[1], getattr(model, field)
        assert np.allclose(mine, theirs[: len(mine)], rtol=1e-9, atol=1e-12), field
    world.forward()
    agree(world, 1, model, steps=60, tol=1e-7)  # falls and lands
    compiled = world.scene.model
    assert np.allclose(world.batch.expanded("body_mass")[0], compiled.body_mass, rtol=1e-7)  # float32 sizes came back


def test_parts_of_a_kinematic_thing_per_row_with_contact_between_objects():
    """Walls of another size and place, and a resized cube that lands on them."""
    world, parts = make(2)
    b, _arm, cube, _ball, _can, wall = parts
    sizes = torch.tensor([[0.05, 0.05, 0.05], [0.02, 0.1, 0.08]])
    offsets = torch.tensor([[0.02, 0.01, 0.0], [-0.04, 0.0, 0.03]])
    b.scope.rows = np.array([1])
    wall.set_size(sizes[None])
    wall.set_offsets(offsets[None])
    cube.set_size(torch.tensor([[0.03, 0.02, 0.025]]))
    wall.set_pose((0.3, 0.0, 0.06))
    cube.set_pose((0.3, 0.0, 0.2))
    b.scope.rows = None
    world.forward()

    def edit(spec):
        for k in range(2):
            geom = spec.geom(f"wall/{k}")
            geom.size, geom.pos = sizes[k].double().numpy(), offsets[k].double().numpy()
        spec.geom("cube/0").size = np.float32([0.03, 0.02, 0.025])

    agree(world, 1, single(edit), steps=150, tol=1e-7)
    assert cube.pos[1, 2] > 0.09  # it lies on the walls, not on the table


def test_what_cannot_vary_says_so(compiled):
    world = CpuWorld(compiled, 2)
    with pytest.raises(UnknownNameError, match="model field"):
        world.set_model({"mass_of_body": torch.zeros(2)})
    robot_geom = int(compiled.model.geom("robot/finger_pad_0_0").id)
    with pytest.raises(SceneError, match="own"):
        world.set_model({("geom_size", (robot_geom,)): torch.ones(2, 1, 3)})
    with pytest.raises(ConfigError, match="at least 1"):
        CpuWorld(compiled, 0)
    with pytest.raises(UnknownNameError, match="physics field"):
        world.read("position")


def test_channels_gather_and_write_columns_in_any_order():
    """Against plain indexing; runs that are evenly spaced, touch, lie apart or overlap in order."""
    world, _ = make(3)
    world.step(3)
    pieces = [
        ("qpos", 2, 5),
        ("qpos", 5, 6),
        ("qvel", 1, 2),
        ("qvel", 4, 5),
        ("qvel", 7, 8),
        ("qvel", 0, 2),
        ("ctrl", 3, 4),
    ]
    expected = np.concatenate([world.flat(field)[:, a:b] for field, a, b in pieces], 1)
    channel = world.channel(pieces)
    assert np.array_equal(channel.all().numpy(), expected.astype(np.float32))
    rows = np.array([2, 0], np.int32)
    assert np.array_equal(channel.rows(rows).numpy(), expected[rows].astype(np.float32))
    before = {field: world.flat(field).copy() for field in ("qpos", "qvel", "ctrl")}
    distinct = pieces[:5] + pieces[6:]
    width = sum(b - a for _, a, b in distinct)
    world.channel(distinct).write(torch.arange(2.0 * width).reshape(2, width), rows)
    at = 0
    for field, a, b in distinct:
        for k, row in enumerate(rows):
            before[field][row, a:b] = np.arange(2.0 * width).reshape(2, width)[k, at : at + b - a]
        at += b - a
    for field, values in before.items():
        assert np.array_equal(world.flat(field), values), field
    with pytest.raises(ConfigError, match=r"only state fields can be written, not \['xpos'\]"):
        world.channel([("qpos", 0, 1), ("xpos", 0, 3)]).write(np.zeros((3, 4)))
