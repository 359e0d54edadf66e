"""Rows with different objects, held to simulating each row's own single model with MuJoCo itself, on both worlds."""

from __future__ import annotations

import re
from contextlib import nullcontext

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.arenas.table import table
from manikin.author.card import FreeArm
from manikin.env.env import Env
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.robots import robot
from manikin.scene.builder import SceneBuilder
from manikin.sim import make_world
from manikin.sim.cpu import CpuWorld
from manikin.spec.budget import Budget
from manikin.spec.physics import Physics
from manikin.spec.prop import Mesh, Prop, Shape
from manikin.spec.vary import Choice, Normal, Uniform


def wedge(name: str, *size: float) -> Mesh:
    """A slanted block, whose inertial frame is turned and off its origin."""
    a, b, c = size
    corners = [(x, y, z) for x in (-a, a) for y in (-b, b) for z in (0, c)]
    return Mesh(name=name, points=tuple(v for x, y, z in corners for v in (x + z / 3 + 0.01, y * (1.2 - z / c / 2), z)))


PROPS = (
    Prop(
        name="wedge",
        shapes=(Shape(type="mesh", mesh=wedge("wedge", 0.03, 0.02, 0.04)),),
        mass=0.3,
        friction=0.5,
    ),
    Prop(
        name="hammer",
        shapes=(
            Shape(type="mesh", mesh=wedge("head", 0.02, 0.02, 0.03), pos=(0.06, 0, 0), quat=(0.8, 0, 0, 0.6)),
            Shape(type="cylinder", size=(0.01, 0.06), quat=(0.70710678, 0, 0.70710678, 0)),
        ),
    ),
    Prop(
        name="brick",
        shapes=(Shape(type="box", size=(0.03, 0.02, 0.015), pos=(0.004, -0.01, 0.015)),),
        looks=(Shape(type="mesh", mesh=wedge("look", 0.03, 0.02, 0.03)),),
        mass=0.2,
    ),
)


SOFT = Physics(hz=200, solref=(0.01, 1.0))  # stiffer contacts multiply the differences of single precision


def build(props=PROPS):
    b = SceneBuilder([], SOFT)
    table(b)
    thing = b.mesh("thing", choice=props, draw=False)
    block = b.box("block", half_size=(0.04, 0.04, 0.02))
    return b, thing, block


def alone(prop: Prop | None) -> mujoco.MjModel:
    """The row's own scene, made by hand with MuJoCo's own words."""
    b = SceneBuilder([], SOFT)
    table(b)
    body = b.spec.worldbody.add_body(name="thing")
    body.add_freejoint(name="thing")
    if prop is None:  # nothing but the joint
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.01, 0, 0], contype=0, conaffinity=0)
        body.gravcomp = 1.0
    for i, shape in enumerate(prop.shapes if prop else ()):
        kind = getattr(mujoco.mjtGeom, f"mjGEOM_{shape.type.upper()}")
        geom = body.add_geom(name=f"g{i}", type=kind, pos=shape.pos, quat=shape.quat, size=[*shape.size, 0, 0, 0][:3])
        geom.friction[0] = prop.friction
        if shape.mesh is not None:
            made = b.spec.add_mesh(name=shape.mesh.name)
            made.uservert, made.inertia = list(shape.mesh.points), mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
            geom.meshname = shape.mesh.name
    b.box("block", half_size=(0.04, 0.04, 0.02))
    model = b.compile().model
    if prop is not None and prop.mass is not None:
        i = model.body("thing").id
        model.body_inertia[i] *= prop.mass / model.body_mass[i]
        model.body_mass[i] = prop.mass
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def start(kind, rows):
    """One row per entry: a candidate's number, or None for an absent object; it is dropped onto the block's edge."""
    b, thing, block = build()
    world = kind(b.compile(), len(rows))
    b.bind(world)
    world.reset()
    number = torch.tensor([0 if r is None else r for r in rows])
    thing.set_choice(number, torch.tensor([r is not None for r in rows]))
    thing.set_pose((0.05, 0.01, 0.1), (0.9, 0.3, 0.1, 0.3))
    block.set_pose((0.0, 0.0, 0.021))
    world.forward()
    return world, thing, block


def single(world, row: int, prop: Prop | None) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = alone(prop)
    data = mujoco.MjData(model)
    data.qpos[:] = world.read("qpos")[row].cpu().double().numpy()
    return model, data


ROWS = [0, 1, 2, None, 1]


def held_to_singles(world, steps: int, tol: float) -> float:
    """Largest difference of positions [m, quaternion] over the steps."""
    pairs = [single(world, row, None if r is None else PROPS[r]) for row, r in enumerate(ROWS)]
    worst = 0.0
    for _ in range(steps // 10):
        world.step(10)
        for model, data in pairs:
            mujoco.mj_step(model, data, 10)
        mine = world.read("qpos").cpu().numpy()
        theirs = np.stack([data.qpos for _, data in pairs])
        worst = max(worst, float(np.abs(mine - theirs).max()))
        assert worst < tol
    return worst


def test_mesh_choice_is_the_rows_own_single_model_on_the_cpu(record_property):
    world, thing, block = start(CpuWorld, ROWS)
    for row, r in enumerate(ROWS):
        model = alone(None if r is None else PROPS[r])
        mine, theirs = int(world.scene.model.body("thing").id), int(model.body("thing").id)
        if r is None:
            continue
        fields = "body_mass body_inertia body_ipos body_iquat body_invweight0 body_subtreemass"
        for field in fields.split():
            one, two = world.model_field(field)[row, mine], getattr(model, field)[theirs]
            assert np.allclose(one, two, rtol=1e-9, atol=1e-12), (field, r)
        for field in ("dof_invweight0", "dof_M0"):  # not dof_length, which only sleeping asks for
            assert np.allclose(world.model_field(field)[row], getattr(model, field), rtol=1e-9, atol=1e-12), (field, r)
    worst = held_to_singles(world, 250, 1e-6)
    record_property("largest difference from single models, CPU [m]", str(worst))
    z = thing.pos[:, 2]
    assert (z[[0, 1, 2, 4]] > 0).all() and (z[[0, 1, 2, 4]] < 0.09).all()  # they fell, and lie on something
    assert torch.equal(z[1], z[4])
    assert thing.present.tolist() == [True, True, True, False, True]
    assert z[3] == -20 and block.pos[3, :2].abs().max() < 1e-4  # the absent one floats far away and pushes nothing


@pytest.mark.xdist_group("warp")
def test_mesh_choice_is_the_rows_own_single_model_on_warp(record_property):
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    from manikin.sim.warp.world import WarpWorld

    world, thing, _ = start(WarpWorld, ROWS)
    worst = held_to_singles(world, 60, 2e-3)
    record_property("largest difference from single models, Warp [m]", str(worst))
    assert thing.pos[3, 2] == pytest.approx(-20, abs=1e-4)
    cpu = start(CpuWorld, ROWS)[0]
    for row in range(len(ROWS)):  # a row's own model, for pictures: its object and the volumes that rays look into
        mine, theirs = world.data(row)[0], cpu.data(row)[0]
        for field in ("body_mass", "geom_dataid", "geom_rgba", "geom_pos", "bvh_aabb"):
            assert np.allclose(getattr(mine, field), getattr(theirs, field), rtol=1e-5, atol=1e-6), (field, row)


def test_a_choice_is_part_of_snapshots_and_only_of_the_rows_in_view():
    world, thing, _ = start(CpuWorld, ROWS)
    before = world.save()
    thing.scope.rows = np.array([1], np.int32)
    thing.set_choice(torch.tensor([2]))
    thing.scope.rows = None
    assert thing.choice.tolist() == [0, 2, 2, 0, 1]
    after = world.save()
    for field, value in before.model.items():
        others = [0, 2, 3, 4]
        assert np.array_equal(value[others], after.model[field][others]), field
    mass = world.scene.model.body("thing").id
    assert after.model["body_mass"][1, mass] == pytest.approx(0.2)
    world.load(before)
    assert world.model_field("body_mass")[1, mass] == before.model["body_mass"][1, mass]


def test_extents_are_those_of_what_collides():
    _, thing, _ = start(CpuWorld, ROWS)
    assert torch.allclose(thing.extents[2], torch.tensor([0.03, 0.02, 0.015]))
    assert torch.allclose(thing.centre[2], torch.tensor([0.004, -0.01, 0.015]))
    model = alone(PROPS[0])
    g = model.geom("g0").id
    points, rotation = model.mesh_vert, np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[g])
    points = points @ rotation.reshape(3, 3).T + model.geom_pos[g]
    half = (points.max(0) - points.min(0)) / 2
    assert thing.extents[0].numpy() == pytest.approx(half, abs=1e-6)
    assert thing.masses.tolist() == pytest.approx([0.3, float(alone(PROPS[1]).body("thing").mass[0]), 0.2, 0.3,
                                                   float(alone(PROPS[1]).body("thing").mass[0])])  # fmt: skip


def test_bad_choices_say_what_is_wrong():
    b = SceneBuilder([], Physics())
    with pytest.raises(SceneError, match="at least one"):
        b.mesh("a", choice=[])
    with pytest.raises(UnknownNameError, match="type of shape"):
        b.mesh("b", choice=[Prop(name="x", shapes=(Shape(type="cone", size=(1,)),))])
    with pytest.raises(SceneError, match="needs mesh"):
        b.mesh("c", choice=[Prop(name="x", shapes=(Shape(type="mesh"),))])
    with pytest.raises(UnknownNameError, match="kind of chosen part"):
        b.mesh("d", choice=PROPS, kind="fixed")
    _, thing, _ = start(CpuWorld, ROWS)
    with pytest.raises(SceneError, match="3 objects to choose from"):
        thing.set_choice(torch.full((5,), 3))


# ---- the other kinds on Warp, against single models (the CPU's are in test_world.py) --------------------------------


@pytest.mark.xdist_group("warp")
def test_direct_fields_masses_and_sizes_are_the_rows_own_single_model_on_warp(record_property):
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    from manikin.sim.warp.world import WarpWorld

    b = SceneBuilder([], Physics())
    table(b)
    slow, heavy, large = (b.box(f"box{k}", half_size=(0.03, 0.02, 0.02), resizable=True) for k in range(3))
    world = WarpWorld(b.compile(), 2)
    b.bind(world)
    world.reset()
    slow.set_property("friction", torch.tensor([0.1, 1.0]))
    heavy.set_property("mass", torch.tensor([0.5, 0.096]))
    large.set_size(torch.tensor([[0.02, 0.04, 0.03], [0.03, 0.02, 0.02]]))
    for k, part in enumerate((slow, heavy, large)):
        part.set_pose((0.0, 0.2 * k, 0.0301 if part is large else 0.0201))
    slow.set_velocity((0.4, 0.0, 0.0))
    large.set_pose((0.01, 0.21, 0.075))  # falls onto the heavy one, over its edge
    world.forward()

    c = SceneBuilder([], Physics())
    table(c)
    for k in range(3):
        c.box(f"box{k}", half_size=(0.02, 0.04, 0.03) if k == 2 else (0.03, 0.02, 0.02))
    c.spec.geom("box0/0").friction[0] = 0.1
    c.spec.geom("box1/0").mass = 0.5
    model = c.compile().model
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = world.read("qpos")[0].double().numpy(), world.read("qvel")[0].double().numpy()
    worst = 0.0
    for _ in range(10):
        world.step(10)
        mujoco.mj_step(model, data, 10)
        worst = max(worst, float(np.abs(world.read("qpos")[0].numpy() - data.qpos).max()))
    record_property("largest difference of kinds a, b, c from single models, Warp [m]", str(worst))
    assert worst < 2e-3
    assert slow.pos[0, 0] > slow.pos[1, 0] + 0.05 and large.pos[0, 2] > 0.05  # the slippery one slid further


# ---- a robot's servos ------------------------------------------------------------------------------------------------

GAINS, DAMPING = (1.0, 0.4, 2.5), (1.0, 3.0, 0.5)


@pytest.mark.parametrize(
    ("device", "tol"),
    [("cpu", 1e-9), pytest.param("warp:cpu", 1e-5, marks=pytest.mark.xdist_group("warp"))],
)
def test_gains_and_damping_are_the_rows_own_single_model(device, tol, record_property):
    """A factor for all joints or one for each; the gripper's fingers are among them."""
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")

    def scene():
        b = SceneBuilder([robot("panda")], Physics())
        return b, b.robot()

    b, arm = scene()
    world = make_world(b.compile(), 3, device=device)
    b.bind(world)
    arm.set_qpos(arm.keyframe())
    each = torch.tensor(DAMPING)[:, None].expand(3, len(arm.joints)).clone()
    each[1, 3] = 0.7
    arm.set_property("gains", torch.tensor(GAINS))
    arm.set_property("damping", each)
    world.forward()
    target = world.read("ctrl").clone() + 0.15
    world.write("ctrl", target)

    pairs = []
    for row in range(3):
        c, _ = scene()
        for k, name in enumerate(arm.joints):
            c.spec.joint(f"robot/{name}").damping[0] *= float(each[row, k])
            servo = c.spec.actuator(f"robot/{name}")
            servo.gainprm[0] *= float(np.float32(GAINS[row]))
            servo.biasprm[1] *= float(np.float32(GAINS[row]))
        model = c.compile().model
        data = mujoco.MjData(model)
        data.qpos[:] = world.flat("qpos")[row]
        data.ctrl[:] = world.flat("ctrl")[row]
        pairs.append((model, data))
    worst, apart = 0.0, 0.0
    for _ in range(10):
        world.step(10)
        for model, data in pairs:
            mujoco.mj_step(model, data, 10)
        mine = np.asarray(world.flat("qpos"))
        worst = max(worst, float(np.abs(mine - np.stack([data.qpos for _, data in pairs])).max()))
        apart = max(apart, min(float(np.abs(mine[i] - mine[k]).max()) for i, k in ((0, 1), (0, 2), (1, 2))))
    record_property(f"largest difference of gains and damping from single models, {device} [rad, m]", str(worst))
    assert worst < tol and apart > 0.02


@pytest.mark.parametrize(
    ("device", "tol"),
    [("cpu", 1e-9), pytest.param("warp:cpu", 1e-3, marks=pytest.mark.xdist_group("warp"))],
)
def test_the_friction_of_fingers_is_the_rows_own_single_model(device, tol, record_property):
    """A block in the hand: it stays, slips slowly, falls."""
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    times = (1.0, 0.015, 0.005)

    def scene():
        b = SceneBuilder([robot("panda")], SOFT)
        arm = b.robot()
        return b, arm, b.box("block", half_size=(0.01, 0.01, 0.03), mass=1.0)

    b, arm, block = scene()
    world = make_world(b.compile(), 3, device=device)
    b.bind(world)
    arm.set_qpos(arm.keyframe(), opening=0.25)
    arm.set_property("finger_friction", torch.tensor(times))
    world.forward()
    block.set_pose(arm.tcp_pos, arm.tcp_quat)
    world.forward()
    target = arm.ctrl.clone()
    target[:, -1] = 0.0
    world.write("ctrl", target)

    pairs = []
    for factor in times:
        c, other, _ = scene()
        for name in other.model.finger_bodies:
            for geom in c.spec.body(f"robot/{name}").geoms:
                geom.friction *= float(np.float32(factor))
        model = c.compile().model
        data = mujoco.MjData(model)
        data.qpos[:], data.ctrl[:] = world.flat("qpos")[len(pairs)], world.flat("ctrl")[len(pairs)]
        pairs.append((model, data))
    world.step(40)
    for model, data in pairs:
        mujoco.mj_step(model, data, 40)
    mine = np.asarray(world.flat("qpos"))
    worst = float(np.abs(mine - np.stack([data.qpos for _, data in pairs])).max())
    record_property(f"largest difference of finger friction from single models, {device} [rad, m]", str(worst))
    height = mine[:, pairs[0][0].joint("block").qposadr[0] + 2]
    assert worst < tol
    assert height[0] > height[1] + 0.002 and height[1] > height[2] + 0.002, height


class LooseArm(FreeArm):
    """Another arm in every episode."""

    id = "LooseArm-v0"

    def scene(self, b):
        return {"robot": b.robot(gains=Uniform(0.5, 1.5), damping=Choice(((0.5,) * 9, (2.0,) * 9)))}


@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=pytest.mark.xdist_group("warp"))])
def test_servos_are_drawn_for_each_episode(device):
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")

    def own(env):
        world, model = env.world, env.scene.model
        driven = [model.joint(f"robot/{name}").dofadr[0] for name in env.robot.joints]
        times = [world.model_field("actuator_gainprm")[:, :, 0] / model.actuator_gainprm[:, 0]]
        times.append(world.model_field("actuator_biasprm")[:, :, 1] / model.actuator_biasprm[:, 1])
        times.append((world.model_field("dof_damping") / model.dof_damping)[:, driven])
        return np.stack(times, 1)  # (N, what, joints)

    budget = None if device == "cpu" else Budget()
    env = Env(LooseArm, num_envs=4, device=device, reward="none", budget=budget)
    env.reset(seed=0)
    first = own(env)
    assert np.ptp(first, 2).max() < 1e-6  # every joint alike
    gains, bias, damping = first[:, :, 0].T
    assert np.allclose(gains, bias, rtol=1e-6) and len(set(gains)) == 4 and 0.5 <= gains.min() <= gains.max() < 1.5
    assert set(damping.round(6)) == {0.5, 2.0}
    env.reset(seed=[7, None, None, None], options={"reset_mask": np.array([True, False, False, False])})
    assert np.array_equal(own(env)[1:], first[1:]) and not np.array_equal(own(env)[0], first[0])
    one = Env(LooseArm, num_envs=1, device=device, reward="none", budget=budget)
    one.reset(seed=2)
    assert np.array_equal(own(one)[0], first[2])


def test_joints_driven_by_torque_have_damping_and_no_gains():
    env = Env(LooseArm, num_envs=2, control="osc_pose", reward="none")
    env.reset(seed=0)
    model, world = env.scene.model, env.world
    times = world.model_field("actuator_gainprm")[:, :, 0] / model.actuator_gainprm[:, 0]
    assert (times[:, :7] == 1).all() and (times[:, 7:] != 1).all()
    varied = world.model_field("dof_damping")[:, model.dof_damping > 0] / model.dof_damping[model.dof_damping > 0]
    assert set(varied.round(6).ravel()) <= {0.5, 1.0, 2.0} and (varied != 1).any()


def test_servos_that_cannot_vary_so_are_refused():
    b = SceneBuilder([robot("panda")], Physics())
    with pytest.raises(SceneError, match=r"gains of robot must be a Uniform, Normal or Choice of factors, not 0\.5"):
        b.robot(gains=0.5)
    for how in (Uniform(-0.1, 1.0), Choice(((1.0,) * 9, (-1.0,) * 9)), Normal(1.0, 0.1)):
        with pytest.raises(SceneError, match="damping of robot: factors must not be negative"):
            SceneBuilder([robot("panda")], Physics()).robot(damping=how)
    SceneBuilder([robot("panda")], Physics()).robot(damping=Normal(1.0, 0.1, low=0.0))
    b = SceneBuilder([robot("panda")], Physics())
    arm = b.robot()
    world = CpuWorld(b.compile(), 2)
    b.bind(world)
    with pytest.raises(
        UnknownNameError, match=r"'mass'.*Valid: damping, finger_friction, foot_friction, gains, trunk_mass"
    ):
        arm.set_property("mass", torch.ones(2))
    for factors in (torch.ones(2, 7), torch.ones(3), [1.0, 2.0], 1.0):
        with pytest.raises(ConfigError, match=r"damping of robot: factors must be a tensor \(2,\) or \(2, 9\), not "):
            arm.set_property("damping", factors)


@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=pytest.mark.xdist_group("warp"))])
def test_constants_of_several_changes_are_computed_once(device, monkeypatch):
    """To the bits that computing them after every change gives."""
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")

    def changed(together: bool):
        b, thing, block = build()
        world = make_world(b.compile(), 3, device=device)
        b.bind(world)
        derived = []
        count_derivations(monkeypatch, world, derived)
        thing.scope.rows = np.array([0, 2], np.int32)
        with world.together() if together else nullcontext():
            thing.set_choice(torch.tensor([1, 2]))
            block.set_property("mass", torch.tensor([0.5, 0.3]))
            thing.set_pose((0.0, 0.0, 0.05))
            block.set_property("friction", torch.tensor([0.2, 0.3]))
        thing.scope.rows = None
        world.forward()
        return world, derived

    (one, each), (other, once) = changed(False), changed(True)
    assert len(each) > len(once) == 1
    assert one.varied == other.varied and "body_invweight0" in one.varied
    for field in one.varied:
        assert np.array_equal(one.model_field(field), other.model_field(field)), field
    assert np.array_equal(one.state_hash(), other.state_hash()) and torch.equal(one.read("xpos"), other.read("xpos"))


def count_derivations(monkeypatch, world, derived):
    real = world._derive  # house: private, computations are counted
    monkeypatch.setattr(world, "_derive", lambda *due: (derived.append(due), real(*due)))


def test_a_start_computes_constants_once(monkeypatch):
    env = manikin.make("PickClutterYCB-v2", num_envs=3)
    derived = []
    count_derivations(monkeypatch, env.world, derived)
    env.reset(seed=0)
    assert len(derived) == 1 and len(env.world.varied) > 10


@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=pytest.mark.xdist_group("warp"))])
def test_values_that_cannot_be_are_refused_alike_and_change_nothing(device):
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    b, *_ = build()
    world = make_world(b.compile(), 3, device=device)
    bodies, before, some = world.scene.model.nbody, world.version, np.array([0, 2])
    mass, gone, bad = ("body_mass", (1,)), ("body_mass", (bodies,)), np.array([[1.0], [np.nan], [np.inf]])
    cases = [
        ("body_mass", np.ones((3, bodies + 1)), None, f"values of 3 rows must be (3, {bodies}), got (3, {bodies + 1})"),
        (mass, np.ones((2, 1)), None, "'body_mass': values of 3 rows must be (3, 1), got (2, 1)"),
        (mass, 0.5, None, "must be (3, 1), got ()"),
        (("geom_size", (1, 2)), np.ones((2, 2, 2)), some, "of 2 rows must be (2, 2, 3), got (2, 2, 2)"),
        (mass, bad, None, "must be finite and not negative; those of the rows [1, 2] given are not"),
        (mass, -np.ones((2, 1)), some, "must be finite and not negative; those of the rows [0, 1] given are not"),
        (
            ("geom_friction", (1,)),
            torch.full((3, 1, 3), torch.nan),
            None,
            "must be finite; those of the rows [0, 1, 2]",
        ),
        (gone, np.ones((3, 1)), None, f"'body_mass' has objects 0 to {bodies - 1}, not [{bodies}]"),
        (mass, np.ones((1, 1)), [3], "rows must be within 0..2, got [3]"),
        (mass, np.ones((2, 1)), np.array([0, -1]), "rows must be within 0..2, got [0, -1]"),
        (mass, np.ones((1, 1)), np.array([True, False]), "a mask of rows must be (3,), got (2,)"),
    ]
    if device == "cpu":  # options are one for all on Warp
        cases.append(
            ("opt.gravity", np.zeros((3, 2)), None, "'opt.gravity': values of 3 rows must be (3, 3), got (3, 2)")
        )
    for key, value, rows, words in cases:
        with pytest.raises(ConfigError, match=re.escape(words)):
            world.set_model({key: value}, rows)
    snapshot = world.save([0])
    for call in (world.save, lambda rows: world.load(snapshot, rows)):
        with pytest.raises(ConfigError, match=re.escape("rows must be within 0..2, got [3]")):
            call([3])
    assert not world.varied and world.version == before
    world.set_model({mass: np.full((2, 1), 5.0)}, np.array([True, False, True]))
    assert (world.model_field("body_mass")[:, 1] == 5.0).tolist() == [True, False, True]


@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=pytest.mark.xdist_group("warp"))])
def test_a_snapshot_from_before_a_field_varied_restores_what_was_compiled(device):
    """In the rows that are loaded, and to the bit: their future is that of rows that never differed."""
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")

    def made():
        b = SceneBuilder([], Physics())
        table(b)
        pose = {"pos": (0.123, 0.217, 0.331), "quat": (0.7, 0.1, 0.3, 0.2)}
        block, hung = (b.box(name, half_size=(0.021, 0.033, 0.017), **pose) for name in ("block", "hung"))
        tie = b.spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY)
        tie.name1, tie.name2, tie.data[:3] = "block", "hung", (0.0371, 0.0133, 0.0717)
        world = make_world(b.compile(), 3, device=device)
        b.bind(world)
        world.reset()
        block.set_pose((0.013, 0.017, 0.3), (0.9, 0.3, 0.1, 0.3))
        hung.set_pose((0.021, 0.011, 0.4))
        world.forward()
        return world, block

    (plain, _), (world, block) = made(), made()
    before = world.save()
    assert not before.model
    block.set_property("mass", torch.tensor([0.5, 0.7, 0.9]))
    block.set_property("friction", torch.tensor([0.1, 0.2, 0.3]))
    if device == "cpu":  # options are one for all on Warp
        world.set_model({"opt.gravity": np.full((3, 3), -1.0)})
    assert {"body_mass", "geom_friction"} <= world.varied
    changed = {field: world.model_field(field).copy() for field in world.varied}
    world.load(before.rows(np.array([0, 2])), np.array([0, 2]))
    for field in world.varied:
        now = world.model_field(field)
        assert np.array_equal(now[[0, 2]], plain.model_field(field)[[0, 2]]), field
        assert np.array_equal(now[1], changed[field][1]), field
    world.load(before)
    for each in (plain, world):
        each.step(50)
    assert np.array_equal(plain.state_hash(), world.state_hash())
