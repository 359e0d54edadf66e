"""What only a GPU can show: recorded graphs, agreement with Warp's CPU device, room, pictures, and the other GPU.

``python -m pytest tests/sim/test_gpu.py`` on a machine with one; everywhere else they are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import manikin
from manikin.author.card import FreeArm
from manikin.env.observe import Vision
from manikin.math import quat_to_matrix
from manikin.sim.health import Health
from manikin.spec.camera import CameraSpec

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.gpu

GPU = "cuda"
SMALL = CameraSpec(name="small", pos=(0.7, 0.5, 0.6), target=(0, 0, 0.05), fovy=0.9, width=48, height=32)


def leaves(tree, at=""):
    """(where, tensor) of nested dicts."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{at}/{key}")
    elif isinstance(tree, torch.Tensor):
        yield at, tree


def actions(env, steps):
    shape = (steps, env.num_envs, env.controller.card.size)
    return torch.from_numpy(np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)).to(env.device)


def played(task, rows, steps, *, before=lambda env, k: None, **options):
    """What reset and each step gave, by name; ``before`` is called with the environment before each step."""
    env = manikin.make(task, num_envs=rows, device=GPU, deterministic=True, **options)
    out = [dict(leaves({"observation": env.reset(seed=3)[0]}))]
    for k, action in enumerate(actions(env, steps)):
        before(env, k)
        names = ("observation", "reward", "terminated", "truncated", "info")
        out.append(dict(leaves(dict(zip(names, env.step(action), strict=True)))))
    assert all(tensor.device == env.device for tensor in out[-1].values())
    env.close()
    return out


def assert_same(one, other):
    for k, (recorded, called) in enumerate(zip(one, other, strict=True)):
        assert recorded.keys() == called.keys()
        for name, value in called.items():
            assert recorded[name].shape == value.shape, (k, name)
            apart = (recorded[name].double() - value.double()).abs()
            assert torch.equal(recorded[name], value), (k, name, apart.max())


@pytest.mark.parametrize("rows", [16, 1])  # torch's libraries take other routines for one matrix than for many
@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("PickCube-v2", {"control": "joint_delta_pos"}),
        ("PickCube-v2", {"control": "ee_delta_pose"}),
        ("PickCube-v2", {"control": "osc_pose"}),
        ("PickCube-v2", {"autoreset": "next_step"}),  # rows that begin do not move
        ("PickSingleYCB-v2", {"autoreset": "same_step"}),  # another mesh in every row
        ("OpenCabinetDrawer-v2", {"autoreset": "same_step"}),  # an environment of each layout
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value,
)
def test_recorded_graphs_give_what_single_calls_give(task, options, rows):
    """Episodes of 7 steps begin and end within; contacts are in a fixed order, so that the very bits are the same."""
    recorded, called = (played(task, rows, 50, graphs=graphs, horizon=7, **options) for graphs in (True, False))
    ends = range(7, 51, 8 if options.get("autoreset") == "next_step" else 7)
    assert [k for k, out in enumerate(called) if k and out["/truncated"].any()] == list(ends)
    assert_same(recorded, called)


def test_graphs_are_recorded_anew_when_an_array_is_replaced():
    """After ten steps each row gets joints as stiff as no other's."""
    seen = []

    def stiffer(env, k):
        if k in (10, 19):  # before, and when it has been recorded again
            seen.append(env._loop._move._graph)  # house: private, whether it is another recording
        if k == 10:
            dofs = tuple(range(7))
            damping = torch.linspace(1.0, 50.0, env.num_envs, device=env.device)
            env.world.set_model({("dof_damping", dofs): damping[:, None].expand(-1, 7)})

    recorded, called = (played("PickCube-v2", 4, 20, graphs=graphs, before=stiffer) for graphs in (True, False))
    assert_same(recorded, called)
    plain = played("PickCube-v2", 4, 20, graphs=False)
    assert_same(plain[:10], called[:10])
    assert not torch.equal(plain[20]["/observation"], called[20]["/observation"])
    first, second, *eager = seen
    assert first is not None and second is not None and first is not second
    assert eager == [None, None]


def hashes(device, rows, steps):
    """Of every row's state, every 50 control steps of many episodes."""
    env = manikin.make("StackCube-v2", num_envs=rows, device=device, deterministic=True)
    env.reset(seed=0)
    found = []
    for k, action in enumerate(actions(env, steps), 1):
        env.step(action)
        if k % 50 == 0:
            found.append(env.state_hash().tolist())
    assert not env.world.shortages()  # which of the contacts that do not fit are dropped depends on the order
    env.close()
    return found


@pytest.mark.parametrize(("rows", "steps"), [(256, 1000)])
def test_two_processes_end_a_thousand_steps_in_the_same_bits(rows, steps):
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    program = f"import json, test_gpu; print(json.dumps(test_gpu.hashes({GPU!r}, {rows}, {steps})))"
    other = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    ours = hashes(GPU, rows, steps)
    theirs, _ = other.communicate(timeout=600)
    assert other.returncode == 0 and len(ours) == steps // 50
    assert json.loads(theirs.splitlines()[-1]) == ours
    assert len({hash for row in ours for hash in row}) == len(ours) * rows


def test_a_free_arm_moves_as_on_warps_cpu_device():
    seen = {}
    for device in ("warp:cpu", GPU):
        env = manikin.make(FreeArm, num_envs=2, device=device, reward="none")
        env.reset(seed=0)
        path = []
        for k in range(50):
            action = torch.full((2, 8), float(np.sin(0.3 * k)))
            action[1] *= -0.5
            env.step(action.to(env.device))
            pose = env.robot.tcp_pose
            turn = quat_to_matrix(pose[:, 3:]).flatten(1)  # q and -q are one: the hand points down, where w is about 0
            path.append(torch.cat([env.robot.qpos, pose[:, :3], turn], 1).cpu())
        seen[device] = torch.stack(path)
    error = (seen[GPU] - seen["warp:cpu"]).abs().amax((1, 2))
    assert error[0] < 1e-5 and error.max() < 1e-3, (error[0], error.max())
    assert (seen[GPU][-1] - seen[GPU][0]).abs().max() > 0.05


@pytest.mark.parametrize(
    ("room", "rows"),
    [({"nconmax": 24, "njmax": 4}, [False, True]), ({"nconmax": 1, "njmax": 64}, [True, True])],
    ids=["njmax", "nconmax"],
)
def test_what_does_not_fit_is_flagged(room, rows):
    """In row 0 the cube floats. Constraint rows are each row's own; contacts are of all rows together."""
    env = manikin.make("PickCube-v2", num_envs=2, device=GPU, budget=manikin.Budget(**room))
    env.reset(seed=0)
    pos = env.h.cube.pos.clone()
    pos[0, 2] = 1.0
    env.h.cube.set_pose(pos)
    info = env.step(torch.zeros(2, 8, device=env.device))[4]
    assert (info["health"] & int(Health.OVERFLOW)).bool().tolist() == rows
    assert next(iter(room if rows[0] else ["njmax"])) in env.budget_advice()
    env.close()


def test_pictures_stay_on_the_device_and_agree():
    """At the start and after four steps: by the third all is recorded."""
    seen = {}
    for device in ("warp:cpu", GPU):
        vision = Vision(cameras=(SMALL,), renderer="warp")
        env = manikin.make("PickCube-v2", 4, device=device, observe="rgb+depth+segmentation", vision=vision)
        pictures = {f"start{name}": picture for name, picture in leaves(env.reset(seed=0)[0])}
        for action in actions(env, 4):
            last = env.step(action)[0]
        pictures |= {f"later{name}": picture for name, picture in leaves(last)}
        assert len(pictures) >= 6 and all(picture.device == env.device for picture in pictures.values())
        for camera in ("start/cameras/small/rgb", "start/cameras/small/depth"):
            assert not torch.equal(pictures[camera], pictures[camera.replace("start", "later")])
        seen[device] = {name: picture.cpu() for name, picture in pictures.items()}
        env.close()
    assert seen[GPU].keys() == seen["warp:cpu"].keys()
    for name, ours in seen[GPU].items():
        theirs = seen["warp:cpu"][name]
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        apart = (ours.double() - theirs.double()).abs()
        most = 2 if ours.dtype == torch.uint8 else 0 if ours.dtype == torch.int32 else 1e-3
        assert (apart <= most).double().mean() > 0.995, (name, apart.max())  # edges fall either way
        assert ours.dim() < 4 or theirs.unique().numel() > 1


def test_one_row_is_numpy_through_gymnasium_and_pettingzoo():
    gymnasium, pettingzoo = pytest.importorskip("gymnasium"), pytest.importorskip("pettingzoo")
    assert pettingzoo
    from manikin.env.adapters.parallel import ParallelTask

    env = gymnasium.make("manikin/PickCube-v2", device=GPU)
    seen, _ = env.reset(seed=0)
    seen, reward, *_, info = env.step(np.zeros(8, np.float32))
    assert type(seen) is np.ndarray and type(reward) is float and type(info["success"]) is bool
    agents = ParallelTask("TwoRobotPickCube-v2", device=GPU)
    seen, _ = agents.reset(seed=0)
    seen, *_ = agents.step({name: np.zeros(agents.action_space(name).shape, np.float32) for name in agents.agents})
    assert all(type(value) is np.ndarray for value in (*seen.values(), agents.state()))


SECOND = """
import sys, torch, manikin
env = manikin.make("PickCube-v2", 64, device="cuda:1")
env.reset(seed=0)
for _ in range(4):
    out = env.step(torch.zeros(64, 8, device="cuda:1"))
assert out[0].device == torch.device("cuda", 1)
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_second_gpu_takes_nothing_of_the_first():
    free = torch.cuda.mem_get_info(0)[0]
    child = subprocess.Popen([sys.executable, "-c", SECOND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert "ready" in iter(child.stdout.readline, "").__next__()
    taken = free - torch.cuda.mem_get_info(0)[0]
    child.communicate("\n", timeout=60)
    assert child.returncode == 0 and taken < 2**24, taken  # a context alone takes some hundred MiB
