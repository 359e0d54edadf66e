"""No step of any task or controller waits for the device, or leaves it: tried with tensors that have no numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manikin.env.env import Env
from manikin.env.layouts.env import LayoutEnv
from manikin.env.layouts.slots import Places
from manikin.env.loop.device import DeviceLoop
from manikin.env.registry import task_class, task_ids
from manikin.homes.episodes import generate
from manikin.sense.imperfect import Delay, Dropout, Noise, Rate
from manikin.spec.budget import Budget
from manikin.tasks.home.doors.open import HomeOpen
from manikin.tasks.home.long.prepare_groceries import PrepareGroceries
from manikin.tasks.home.pick import HomePick
from manikin.tasks.home.written import in_episodes
from meta_world import META, MetaWorld, OnlyMeta
from test_variation import LooseArm

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")


def worlds_without_numbers(monkeypatch):
    monkeypatch.setattr("manikin.env.options.torch_device", lambda word: META)
    monkeypatch.setattr("manikin.env.assemble.torch_device", lambda word: META)
    monkeypatch.setattr("manikin.env.assemble.make_world", lambda scene, n, **_: MetaWorld(scene, n))


def on_meta(monkeypatch, task, **options):
    worlds_without_numbers(monkeypatch)
    env = Env(task, num_envs=3, device="cuda", budget=Budget(), **options)
    assert isinstance(env._loop, DeviceLoop) and env.device == META  # house: private, what is recorded as a graph
    return env


@pytest.fixture(autouse=True)
def kernels_without_numbers(monkeypatch):
    """Warp's kernels have no shapes alone: what surrounds them is tried here, they themselves in test_warp_kernels."""
    monkeypatch.setattr("manikin.sim.warp.kernels.arm.launch_rows", lambda *_: None)
    # house: private, a stand-in for Warp's kernel
    monkeypatch.setattr("manikin.sim.warp.kernels.arm.WarpArm._path", None)
    monkeypatch.setattr("manikin.sim.warp.kernels.arm.wp.from_torch", lambda t, **_: t)


def run(env):
    """Everything of a control step that is recorded as a graph."""
    loop = env._loop  # house: private, what is recorded as a graph
    with torch.no_grad(), env.on_device():
        out = [loop._begin()]  # house: private, what is recorded as a graph
        for going in (None, loop._going):  # house: private, what is recorded as a graph
            loop._act(going)  # house: private, what is recorded as a graph
            out.append(loop._look_at_step())  # house: private, what is recorded as a graph
        loop._put_back(loop._bad)  # house: private, what is recorded as a graph
        loop.observer.rewind()
    return out


def leaves(tree):
    if isinstance(tree, dict | tuple | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(value)
    else:
        yield tree


def check(env):
    run(env)  # constants are uploaded once
    with OnlyMeta():
        out = run(env)
    made = [t for t in leaves(out) if isinstance(t, torch.Tensor)]
    assert len(made) > 20 and all(t.device == META for t in made)


@pytest.mark.parametrize("control", ["joint_pos", "osc_pose"])
def test_servos_that_vary(monkeypatch, control):
    env = on_meta(monkeypatch, LooseArm, reward="none", control=control)
    check(env)
    assert {"actuator_gainprm", "dof_damping"} <= env.world.varied


def test_written_episodes(monkeypatch):
    """Long, handled, and a door; all their objects."""
    for kind, where in ((PrepareGroceries, "open"), (HomePick, "fridge"), (HomeOpen, "fridge")):
        task = in_episodes(kind, generate("prepare_groceries", [0]), where=where)
        check(on_meta(monkeypatch, task(arm="fetch_mshab", layout=task.layouts[0]), reward="dense"))


@pytest.mark.parametrize("task", task_ids())
def test_tasks(monkeypatch, task):
    kind = task_class(task)
    layout = next(iter(kind.layouts), None)
    check(on_meta(monkeypatch, kind(arm=kind.robots[0], layout=layout) if layout else kind, reward="dense"))


@pytest.mark.parametrize(
    "control",
    [
        "joint_pos",
        "joint_target_delta_pos",
        "joint_vel",
        "ee_delta_pos",
        "ee_delta_pose",
        "ee_pose",
        "osc_pose",
        "osc_position",
        "osc_pose:impedance=variable,goal=absolute",
        "joint_impedance",
        "joint_impedance:impedance=variable,goal=absolute",
        "joint_vel_pid",
        "joint_torque",
    ],
)
def test_controllers(monkeypatch, control):
    check(on_meta(monkeypatch, task_class("PickCube-v2"), control=control))


def test_sensors(monkeypatch):
    made = {"policy/qpos": [Noise(0.01, bias_std=0.02), Rate(7), Delay(2), Dropout(0.1)]}
    check(on_meta(monkeypatch, task_class("PushCube-v2"), sensors=made, observe="state_dict"))


def buckets_on_meta(monkeypatch, task, **options):
    worlds_without_numbers(monkeypatch)
    return LayoutEnv(task_class(task), num_envs=9, device="cuda", budget=Budget(), reward="none", **options)


@pytest.mark.parametrize("task", [task for task in task_ids() if task_class(task).layouts])
def test_what_a_task_with_layouts_observes_at_first_is_on_the_device(monkeypatch, task):
    """Before anything is known of its observations' shapes."""
    found, joined = [], Places.joined

    def seen(self, parts):
        found.extend(t.device for t in leaves(list(parts.values())))
        return joined(self, parts)

    monkeypatch.setattr(Places, "joined", seen)
    assert buckets_on_meta(monkeypatch, task).observation_names
    assert len(found) > 3 and set(found) == {META}


def test_buckets_wait_once_for_all_of_them(monkeypatch):
    """Neither numbers of rows nor actions travel in a step; the flags of all buckets come in one reading."""
    env = buckets_on_meta(monkeypatch, "OpenCabinetDrawer-v2")
    # house: private, rows move without a reset
    env._pool.place({row: row % len(env.task.layouts) for row in range(9)})
    for part in env.parts():
        part.env._loop.started = True  # house: private, what is recorded as a graph
    readings = []
    monkeypatch.setattr(
        torch.Tensor, "tolist", lambda flags: readings.append(tuple(flags.shape)) or [[False] * 4] * len(flags)
    )
    actions = torch.zeros(9, env.controller.card.size, device=META)
    for active in (None, torch.ones(9, dtype=torch.bool, device=META)):
        env.step(actions, active=active)  # constants are uploaded once
        with OnlyMeta():
            out = env.step(actions, active=active)
        made = [t for t in leaves(out) if isinstance(t, torch.Tensor)]
        assert len(made) > 10 and all(t.device == META and len(t) == 9 for t in made)
    assert readings == [(len(env.task.layouts), 4)] * 4
    env._pool.place({0: 1})  # only a row that moves sends anything  # house: private, what is recorded as a graph
    with OnlyMeta(), pytest.raises(RuntimeError, match="mixes"):
        env.step(actions)


def test_what_waits_or_mixes_is_found(monkeypatch):
    base = task_class("PushCube-v2")

    def broken(evaluate):
        return type("Broken", (base,), {"id": "Broken-v1", "evaluate": evaluate})

    def waits(self, h):
        return base.evaluate(self, h) if bool(h.cube.pos.sum() > 0) else {}

    def mixes(self, h):
        other = torch.ones(h.n, 3, device="cpu")
        return {"success": (h.cube.pos + other).sum(1) > 0}

    for evaluate in (waits, mixes):
        env = on_meta(monkeypatch, broken(evaluate))
        with pytest.raises(RuntimeError):
            run(env)


def test_uploads_are_found():
    """Of what torch does in silence on ``meta`` and by an upload on a GPU, which waits and cannot be recorded."""
    there = torch.zeros(3, 4, device=META)
    uploads = [
        lambda: there[:, [0, 2]],
        lambda: there.__setitem__((slice(None), [0, 2]), 0.0),
        lambda: there[np.array([0, 1])],
        lambda: there.new_tensor([1.0, 2.0]),
        lambda: torch.tensor([1.0, 2.0], device=META),
        lambda: torch.as_tensor(np.ones(2), device=META),
        lambda: torch.tensor(1.0, device="cpu").to(META),
        lambda: torch.where(there > 0, there, torch.tensor(1.0, device="cpu")),
    ]
    with OnlyMeta():
        for upload in uploads:
            with pytest.raises(RuntimeError, match=r"upload|mixes"):
                upload()
        there[:, 0] = 1.0
        assert (there + torch.tensor(1.0, device="cpu")).device == META
        assert (there[:, 1:] * 2.0 + torch.full((3, 3), 1.0, device=META)).device == META
