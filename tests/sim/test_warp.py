"""The Warp world held to the CPU's, on Warp's CPU device: the same kernels that run on a GPU."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

import manikin
from manikin.author.card import FreeArm
from manikin.env.observe import Vision
from manikin.errors import ClosedError, DataError
from manikin.math.rotation import quat_from_rotvec, quat_rotate
from manikin.plan.executor import WaypointExecutor
from manikin.rng import EpisodeRng
from manikin.sim.cpu import CpuWorld
from manikin.sim.health import Health
from manikin.spec.budget import Budget, advice
from manikin.spec.camera import CameraSpec
from test_world import build

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

from manikin.sim.warp.capacity import Capacity  # noqa: E402
from manikin.sim.warp.library import modules  # noqa: E402
from manikin.sim.warp.world import WarpWorld  # noqa: E402

TINY = CameraSpec(name="tiny", pos=(0.7, 0.5, 0.6), target=(0, 0, 0.05), fovy=0.9, width=24, height=16)


def start(kind, n=3, **options):
    parts = build()
    b, arm, cube, ball, can, _ = parts
    world = kind(b.compile(), n, **options)
    b.bind(world)
    arm.set_qpos(arm.keyframe())
    world.set_home()
    world.reset()
    height = torch.linspace(0.03, 0.05, 16)[:n]
    cube.set_pose(torch.stack([torch.full((n,), 0.05), torch.zeros(n), height], 1))
    ball.set_pose((0.05, 0.15, 0.03))
    can.set_pose((0.05, -0.15, 0.05))
    world.forward()
    return world, parts


@pytest.fixture(scope="module")
def both():
    return start(CpuWorld), start(WarpWorld)


def test_a_free_arm_moves_as_on_the_cpu():
    """Nothing is touched: one control step within 1e-5, fifty within 1e-3 (float32 against float64)."""
    seen = {}
    for device in ("cpu", "warp:cpu"):
        env = manikin.make(FreeArm, num_envs=2, device=device, reward="none")
        env.reset(seed=0)
        path = []
        for k in range(50):
            action = torch.full((2, 8), float(np.sin(0.3 * k)))
            action[1] *= -0.5
            env.step(action)
            path.append(torch.cat([env.robot.qpos, env.robot.tcp_pose], 1).clone())
        seen[device] = torch.stack(path)
    error = (seen["cpu"] - seen["warp:cpu"]).abs().amax((1, 2))
    assert error[0] < 1e-5 and error.max() < 1e-3, (error[0], error.max())
    assert (seen["cpu"][-1] - seen["cpu"][0]).abs().max() > 0.05


def test_things_that_rest_press_as_on_the_cpu(both):
    forces = []
    for world, (_b, _arm, cube, *_) in both:
        for _ in range(20):
            world.step(10)
        assert world.health().tolist() == [0, 0, 0]
        upward = int(world.scene.model.joint("cube").dofadr[0]) + 2
        net = world.read("qfrc_constraint")[:, upward]
        forces.append(net.clone())
        assert torch.allclose(cube.pos[:, 2], torch.full((3,), 0.02), atol=2e-4)
    assert torch.allclose(forces[0], forces[1], rtol=1e-3)
    weight = 1000 * 0.04**3 * 9.81
    assert torch.allclose(forces[1], torch.full((3,), weight), rtol=0.02)


def test_a_grip_and_a_hand_on_the_table_press_as_on_the_cpu():
    force, pressed = {}, {}
    for device in ("cpu", "warp:cpu"):
        env = manikin.make("PickCube-v2", num_envs=2, device=device, autoreset="disabled", terminate=False)
        env.reset(seed=3)
        expert = WaypointExecutor(env)
        for _ in range(28):
            env.step(expert.act())
        assert env.h.grasp.value.all()
        force[device] = env.h.grasp.force.norm(dim=-1)
        assert torch.allclose(env.forces[:, -2:], force[device], rtol=1e-4)  # the fingers touch nothing else
        env.robot.set_qpos([0.01, 0.85, -0.35, -1.83, 0.04, 1.4, 1.01])  # the hand is on the table
        env.world.forward()
        pressed[device] = env.forces
    assert torch.allclose(force["cpu"], force["warp:cpu"], rtol=0.02)
    assert force["cpu"].min() > 10
    assert torch.allclose(pressed["cpu"], pressed["warp:cpu"], rtol=0.02)
    assert pressed["cpu"][:, env.force_names.index("hand")].min() > 10
    assert (pressed["cpu"][:, 0] == pressed["cpu"][:, env.force_names.index("hand")]).all()


def test_edges_and_corners_of_boxes_press_in_the_direction_that_they_do_on_the_cpu(both):
    """A cube tilted by up to a degree, 0.3 mm deep in the table: as many contacts, the same directions and forces."""
    n, seen = 3, []
    for k in range(4):
        rng = EpisodeRng(torch.arange(n), torch.full((n,), k))
        turn = quat_from_rotvec(rng.uniform("turn", -0.02, 0.02, (3,)))
        corners = torch.tensor([[x, y, z] for x in (-1.0, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.02
        low = torch.stack([quat_rotate(turn, corner.expand(n, 3))[:, 2] for corner in corners], 1).amin(1)
        places = torch.stack([torch.full((n,), 0.05), torch.zeros(n), -low - 3e-4], 1)
        found = []
        for world, (_b, _arm, cube, *_) in both:
            world.reset()
            cube.set_pose(places, turn)
            world.forward()
            found.append(world.read("qfrc_constraint")[:, -18:].clone())
        (cpu, _), (warp, _) = both
        assert torch.equal(cpu.read("nefc").int(), warp.read("nefc").int())
        contact = warp.mjw_data.contact
        rows, frames, geoms = (getattr(contact, field).numpy() for field in ("worldid", "frame", "geom"))
        valid = np.arange(len(rows)) < int(warp.mjw_data.nacon.numpy()[0])
        for row in range(n):
            for here in cpu.data(row)[1].contact:
                there = frames[valid & (rows == row) & (geoms == here.geom).all(1), 0]
                seen.append(np.linalg.norm(there - here.frame[:3], axis=1).min())
        assert torch.allclose(found[0], found[1], rtol=5e-3, atol=5e-3 * float(found[0].abs().max()))
    assert len(seen) > 12 and max(seen) < np.deg2rad(0.02)


def test_snapshots_continue_bit_for_bit_in_any_row():
    world, _parts = start(WarpWorld)
    world.step(20)
    snapshot, seen = world.save(), world.read("sensordata").clone()
    world.step(30)
    after = world.state_hash()
    world.load(snapshot)
    assert torch.equal(world.read("sensordata"), seen)
    world.step(30)
    assert np.array_equal(world.state_hash(), after)
    world.load(snapshot)
    world.load(world.save(np.array([2])), np.array([0]))
    world.step(30)
    assert world.state_hash()[0] == after[2]


def test_snapshots_do_not_pass_to_another_kind_of_device(both):
    """Neither a World nor an Env takes one, nor writes anything before it says so."""
    cpu, warp = (world for world, _ in both)
    envs = [
        manikin.make("PegInsertionSide-v2", num_envs=2, device=word, budget=Budget()) for word in ("cpu", "warp:cpu")
    ]
    for env in envs:
        env.reset(seed=0)  # rows of sizes of their own
    for one, other in (cpu, warp), (warp, cpu), envs, envs[::-1]:
        world = getattr(other, "world", other)
        given, before = one.save(), other.save()
        with pytest.raises(DataError, match=f"taken on '{given.kind}' and cannot be loaded on '{before.kind}'"):
            other.load(given)
        after = other.save()
        assert before.state.tobytes() == after.state.tobytes() and before.model.keys() == after.model.keys()
        assert all(np.array_equal(before.model[field], after.model[field]) for field in world.varied)
    for env in envs:
        env.close()


def test_rows_left_out_or_not_reset_stay_bit_identical():
    world, (_b, _arm, _cube, *_) = start(WarpWorld)
    world.step(10)
    before, forces, places = world.state_hash(), world.read("sensordata").clone(), world.read("xpos").clone()
    world.step(10, np.array([True, False, True]))
    assert world.state_hash()[1] == before[1] and world.state_hash()[0] != before[0]
    assert torch.equal(world.read("sensordata")[1], forces[1]) and torch.equal(world.read("xpos")[1], places[1])
    before, forces = world.state_hash(), world.read("sensordata").clone()
    world.reset(np.array([0]))
    world.forward(np.array([0]))
    assert np.array_equal(world.state_hash()[1:], before[1:])
    assert torch.equal(world.read("sensordata")[1:], forces[1:])


def test_own_model_per_row_as_on_the_cpu():
    fields = "geom_size geom_rbound body_mass body_inertia body_subtreemass body_invweight0 dof_invweight0".split()
    seen = {}
    for kind in (CpuWorld, WarpWorld):
        world, (_b, _arm, cube, ball, *_) = start(kind)
        cube.set_size(torch.tensor([[0.02, 0.02, 0.02], [0.03, 0.015, 0.04], [0.01, 0.02, 0.03]]))
        cube.set_property("mass", torch.tensor([0.1, 0.2, 0.3]))
        ball.set_property("friction", torch.tensor([0.2, 0.5, 0.9]))
        cube.set_pose(torch.tensor([[0.05, 0, 0.021], [0.05, 0, 0.041], [0.05, 0, 0.031]]))
        world.forward()
        constants = {f: world.model_field(f).astype(np.float64) for f in fields}
        for _ in range(10):
            world.step(10)
        seen[kind] = constants, cube.pos.clone()
    for field in fields:
        mine, theirs = seen[WarpWorld][0][field], seen[CpuWorld][0][field]
        assert np.allclose(mine.reshape(theirs.shape), theirs, rtol=1e-5, atol=1e-8), field
    assert torch.allclose(seen[CpuWorld][1], seen[WarpWorld][1], atol=1e-4)
    assert torch.allclose(seen[WarpWorld][1][:, 2], torch.tensor([0.02, 0.04, 0.03]), atol=5e-4)


def test_a_diverged_row_goes_back_and_others_do_not_notice():
    world, (_b, _arm, cube, *_) = start(WarpWorld)
    calm, _ = start(WarpWorld)
    world.step(5)
    calm.step(5)
    force = world.read("xfrc_applied").clone()
    force[1, cube.body_id, 2] = 1e30
    world.write("xfrc_applied", force)
    world.step(5)
    calm.step(5)
    assert (world.health() & Health.DIVERGED).astype(bool).tolist() == [False, True, False]
    assert torch.isfinite(world.read("qpos")).all()
    assert np.array_equal(world.state_hash()[[0, 2]], calm.state_hash()[[0, 2]])


def test_a_budget_too_small_is_flagged_in_the_row_that_overflows():
    """Row 1 has everything on the table; in the others only the robot and what floats high above it."""
    world, (_b, _arm, cube, ball, can, _) = start(WarpWorld, njmax=14)
    for part, high in ((cube, 3.0), (ball, 4.0), (can, 5.0)):
        z = torch.full((3, 1), high)
        z[1] = 0.05 if part is can else 0.02 if part is cube else 0.03
        part.set_pose(torch.cat([part.pos[:, :2], z], 1))
    world.forward()
    world.step(4)
    assert (world.health() & Health.OVERFLOW).astype(bool).tolist() == [False, True, False]
    needed = world.usage()["njmax"]
    room = Budget(nconmax=64, njmax=14)
    assert 14 < needed <= 64 and f"njmax to at least {needed} (now 14; rows [1])" in advice(
        [(room, world.shortages(), range(3))]
    )


def test_whatever_is_dropped_has_words():
    """As a height field's contacts, which once raised the flag and told nothing."""
    world, _ = start(WarpWorld)
    kinds = modules()[1].OverflowType
    counted = kinds.NEFC | kinds.BROADPHASE | kinds.NARROWPHASE  # their numbers are known, see above
    limits = kinds.ITERATIONS | kinds.LS_ITERATIONS
    for kind in kinds:
        if kind and not kind & (counted | limits) and kind != kinds.ALL:
            one = Capacity(world._size, 3, world.device, kinds)  # house: private, the sizes of the room
            one.lose(torch.tensor([0, int(kind), 0]))
            assert "(rows [1])" in (said := advice([(Budget(), one.shortages(), range(3))])) or "; rows [1])" in said


def test_what_was_dropped_before_a_reset_or_in_a_row_left_out_is_not_this_episodes():
    world, _ = start(WarpWorld)
    kinds = modules()[1].OverflowType
    stale = world.flat("overflow")
    stale.fill_(int(kinds.CCD | kinds.ITERATIONS))
    world.reset(np.array([0]))
    world.step(1, np.array([True, True, False]))
    assert world.health().tolist() == [0, int(Health.OVERFLOW), 0]  # a solver's limit before a step is not one in it
    speed = world.read("qvel").clone()
    speed[2] = 1e12
    world.write("qvel", speed)
    before = world.state_hash()
    assert world.step(1, np.array([True, True, False])) is None
    assert world.health().tolist() == [0, int(Health.OVERFLOW), 0] and world.state_hash()[2] == before[2]
    assert world.step(1, np.array([False, False, True])).tolist() == [False, False, True]


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_a_row_left_out_of_a_step_keeps_its_health(device):
    env = manikin.make(
        "PickCube-v2", 2, device=device, autoreset="disabled", budget=manikin.Budget(nconmax=64, njmax=96)
    )
    env.reset(seed=0)
    speed = env.world.read("qvel").clone()
    speed[1] = 1e12
    env.world.write("qvel", speed)
    actions = torch.zeros(2, env.controller.card.size)
    *_, truncated, info = env.step(actions, active=np.array([True, False]))
    assert info["health"].tolist() == [0, 0] and truncated.tolist() == [False, False]
    *_, truncated, info = env.step(actions)
    assert info["health"][0] == 0 and int(info["health"][1]) & Health.DIVERGED and truncated.tolist() == [False, True]
    env.close()


@pytest.mark.slow
def test_expert_succeeds_as_often_as_on_the_cpu():
    wins = {}
    for device in ("cpu", "warp:cpu"):
        env = manikin.make("PickCube-v2", num_envs=32, device=device, autoreset="disabled", terminate=False)
        env.reset(seed=0)
        expert, once = WaypointExecutor(env), torch.zeros(32, dtype=torch.bool)
        for _ in range(env.horizon):
            once |= env.step(expert.act())[4]["success"]
        assert not env.world.health().any()
        wins[device] = int(once.sum())
    assert abs(wins["cpu"] - wins["warp:cpu"]) <= 2 and min(wins.values()) >= 29


def test_missing_package_says_how_to_get_it(monkeypatch):
    import builtins

    from manikin.errors import AssetError
    from manikin.sim.warp import library as warp_library

    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "mujoco_warp":
            raise ImportError("no module")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(AssetError, match=r"manikin\[gpu\]"):
        warp_library.modules()


@pytest.mark.parametrize("seen", ["state", "rgb"])
def test_a_closed_environment_keeps_no_room(seen):
    """Also while something still refers to it, and without waiting for Python to collect what refers to itself."""
    room, vision = Budget(nconmax=64, njmax=256), Vision(cameras=(TINY,), renderer="warp")
    env = manikin.make("PickCube-v2", 2, device="warp:cpu", budget=room, observe=seen, vision=vision)
    env.reset(seed=0)
    env.step(torch.zeros(2, 8))
    world = env.world
    parts = (world.mjw_data, world.mjw_data.efc, world.mjw_data.contact, world.mjw_model)
    arrays = [weakref.ref(a) for part in parts for a in vars(part).values() if getattr(a, "capacity", 0)]
    sizes = [array().capacity for array in arrays]
    del parts
    gc.disable()
    try:
        env.close()
        left = sum(size for array, size in zip(arrays, sizes, strict=True) if array() is not None)
    finally:
        gc.enable()
    assert sum(sizes) > 100_000 and left < 0.05 * sum(sizes)  # what the state's last views hold
    for asked in (env.save, env.state_hash, env.physics_states, world.forward, lambda: world.read("qpos")):
        with pytest.raises(ClosedError, match="closed"):
            asked()
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        world.other  # noqa: B018


class Aloft(FreeArm):
    """Nothing is touched: a robot with a free base begins in the air."""

    def start(self, h, ep):
        super().start(h, ep)
        if h.robot.arm.base.kind == "free":
            h.robot.set_root((0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0, 1.0, 0.0))


@pytest.mark.parametrize(
    ("word", "control"),
    [
        ("go2", "joint_target_delta_pos"),
        ("anymal_c", "joint_target_delta_pos"),
        ("spot_arm", "legs: joint_target_delta_pos, arm: joint_pos"),
        ("g1", "legs: joint_target_delta_pos, waist: joint_pos"),
        ("panda@planar", "base: base_vel, arm: joint_pos"),
    ],
)
def test_a_robot_whose_base_moves_takes_a_step_as_on_the_cpu(word, control):
    """A free base that falls and one that drives: one control step within 1e-5 (float32 against float64)."""
    seen = {}
    for device in ("cpu", "warp:cpu"):
        env = manikin.make(Aloft, num_envs=2, robot=word, control=control, device=device, reward="none")
        env.reset(seed=0)
        start = env.robot.root_pose.clone()
        size = env.controller.card.size
        env.step(torch.linspace(-0.6, 0.8, 2 * size).reshape(2, size))
        seen[device] = torch.cat([env.robot.qpos, env.robot.root_pose], 1).clone()
        assert (env.robot.root_pose - start).abs().amax(1).min() > 1e-3
    assert torch.allclose(seen["cpu"], seen["warp:cpu"], atol=1e-5, rtol=0)


def test_a_delayed_arm_moves_late_as_on_the_cpu_and_goes_on_from_a_snapshot(tmp_path):
    """Motors that hear commands 60 ms late, as ``manikin sysid`` finds them."""
    file = tmp_path / "late.toml"
    file.write_text('format = 1\nrobot = "panda"\ndelay = 0.06\n')
    generator = torch.Generator().manual_seed(0)
    actions = 2 * torch.rand((8, 2, 8), generator=generator) - 1
    found = {}
    for device, word in (("cpu", str(file)), ("warp:cpu", str(file)), ("cpu", "panda")):
        env = manikin.make("PickCube-v2", num_envs=2, robot=word, device=device, autoreset="disabled")
        env.reset(seed=3)
        path = []
        for k, action in enumerate(actions):
            if k == 4:
                middle = env.save()
            env.step(action)
            path.append(env.h.robot.qpos.clone())
        env.load(middle)
        for k, action in enumerate(actions[4:], 4):
            env.step(action)
            assert torch.equal(env.h.robot.qpos, path[k])
        env.close()
        found[device, word] = torch.stack(path)
    late, warp, prompt = (one[:, :, :7] for one in found.values())
    assert (warp - late).abs().max() < 1e-4 < 0.1 * (prompt - late).abs().max()
