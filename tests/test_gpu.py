"""What only a GPU can show: recorded graphs, agreement with Warp's CPU device, room, pictures, and the other GPU.

``python -m pytest tests/test_gpu.py`` on a machine with one; everywhere else they are skipped.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import manikin
from manikin.env.card import FreeArm
from manikin.env.observe import Vision
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


@pytest.mark.parametrize("rows", [16, 1])  # one matrix is solved by other routines than many
@pytest.mark.parametrize("control", ["joint_delta_pos", "ee_delta_pose", "osc_pose"])
def test_recorded_graphs_give_what_single_calls_give(control, rows):
    """Episodes of 7 steps begin and end within; contacts are in a fixed order, so that the very bits are the same."""
    seen = []
    for graphs in (True, False):
        env = manikin.make(
            "PickCube-v1", num_envs=rows, device=GPU, control=control, horizon=7, deterministic=True, graphs=graphs
        )
        out = [dict(leaves({"observation": env.reset(seed=3)[0]}))]
        for action in actions(env, 50):
            names = ("observation", "reward", "terminated", "truncated", "info")
            out.append(dict(leaves(dict(zip(names, env.step(action), strict=True)))))
        seen.append(out)
        assert all(tensor.device == env.device for tensor in out[-1].values())
        env.close()
    assert sum(bool(out["/truncated"].any()) for out in seen[1][1:]) == 50 // 7
    for k, (recorded, called) in enumerate(zip(*seen, strict=True)):
        assert recorded.keys() == called.keys()
        for name, value in called.items():
            assert torch.equal(recorded[name], value), (k, name, (recorded[name] - value).abs().max())


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
            path.append(torch.cat([env.robot.qpos, env.robot.tcp_pose], 1).cpu())
        seen[device] = torch.stack(path)
    error = (seen[GPU] - seen["warp:cpu"]).abs().amax((1, 2))
    assert error[0] < 1e-5 and error.max() < 1e-3, (error[0], error.max())
    assert (seen[GPU][-1] - seen[GPU][0]).abs().max() > 0.05


@pytest.mark.parametrize(
    ("room", "rows"),
    [({"nconmax": 24, "njmax": 12}, [False, True]), ({"nconmax": 1, "njmax": 64}, [True, True])],
    ids=["njmax", "nconmax"],
)
def test_what_does_not_fit_is_flagged(room, rows):
    """In row 0 the cube floats. Constraint rows are each row's own; contacts are of all rows together."""
    env = manikin.make("PickCube-v1", num_envs=2, device=GPU, budget=manikin.Budget(**room))
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
        env = manikin.make("PickCube-v1", 4, device=device, observe="rgb+depth+segmentation", vision=vision)
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
    from manikin.env.parallel import ParallelTask

    env = gymnasium.make("manikin/PickCube-v1", device=GPU)
    seen, _ = env.reset(seed=0)
    seen, reward, *_, info = env.step(np.zeros(8, np.float32))
    assert type(seen) is np.ndarray and type(reward) is float and type(info["success"]) is bool
    agents = ParallelTask("TwoRobotPickCube-v1", device=GPU)
    seen, _ = agents.reset(seed=0)
    seen, *_ = agents.step({name: np.zeros(agents.action_space(name).shape, np.float32) for name in agents.agents})
    assert all(type(value) is np.ndarray for value in (*seen.values(), agents.state()))


SECOND = """
import sys, torch, manikin
env = manikin.make("PickCube-v1", 64, device="cuda:1")
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
