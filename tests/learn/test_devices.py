"""Imitation, distillation and keyframes on Warp's CPU device, unchanged; the others' tests are with each of them."""

from __future__ import annotations

import math

import pytest
import torch

from manikin import make
from manikin.data.recorder import Recorder
from manikin.env.observe import Vision
from manikin.eval.runner import run_episodes
from manikin.learn import act, bc, diffusion, distill, voxel
from manikin.policy.expert import ExpertPolicy
from manikin.policy.network import NetworkPolicy
from manikin.spec.camera import CameraSpec

pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

TASK = "PushCube-v2"
WARP = pytest.mark.parametrize("device", ["warp:cpu"])
FRONT = CameraSpec(name="front", pos=[0.6, 0.0, 0.5], target=[0.0, 0.0, 0.05], fovy=0.9)
BOX = {"low": [-0.25, -0.25, -0.01], "high": [0.25, 0.25, 0.22], "resolution": [20, 16, 8]}
GRID = {"kind": "Voxels", "spec": {"kind": "VoxelSpec", **BOX}}
IMITATION = {
    "bc": (bc.BC, bc.Config(updates=3, batch_size=8, hidden=(8,))),
    "diffusion": (diffusion.Diffusion, diffusion.Config(updates=3, batch_size=8, width=16, steps=2)),
    "act": (act.ACT, act.Config(updates=3, batch_size=8, width=16, inner=16, latent=3, predict=5)),
}


def _seen(rows, observe, **given):
    vision = Vision(cameras=[FRONT], size=(36, 36), renderer="rays" if given.get("device") is None else "warp")
    return make(TASK, num_envs=rows, observe=observe, vision=vision, **given)


def _recorded(path, env):
    with Recorder(env, path, observations=True, states=False, keep="success", first_seed=0) as recorder:
        run_episodes(env, ExpertPolicy(env), range(2), observers=[recorder])
    env.close()
    return path


def _weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.actor.parameters()])


def _acts(policy, env, steps=2):
    """The policy moves the environment, and its actions are numbers."""
    observation, _ = env.reset(seed=3)
    for _ in range(steps):
        actions = policy.act(observation, [""] * env.num_envs)[:, 0]
        assert actions.isfinite().all()
        observation, rewards, *_ = env.step(actions)
        assert rewards.isfinite().all()


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    return _recorded(tmp_path_factory.mktemp("demos") / "a.h5", make(TASK, num_envs=2, autoreset="disabled"))


@pytest.fixture(scope="module")
def warp():
    env = make(TASK, num_envs=2, device="warp:cpu")
    yield env
    env.close()


@WARP
@pytest.mark.parametrize("name", IMITATION)
def test_imitation_learns_the_same_weights_as_on_the_cpu_and_acts_there(device, name, flat, warp):
    kind, config = IMITATION[name]
    here, there = kind(make(TASK), config, 3, flat), kind(warp, config, 3, flat)
    assert [here.iterate(), here.iterate()] == [there.iterate(), there.iterate()]
    assert torch.equal(_weights(here), _weights(there))
    _acts(NetworkPolicy(there.actor), warp)


@WARP
def test_distillation_runs_on_a_warp_device(device):
    env = _seen(2, "rgb+state", device=device, horizon=5, autoreset="same_step")
    sizes = {"channels": (4, 4), "hidden": (8,), "num_steps": 3, "updates": 2, "batch_size": 8, "lead": 8}
    trainer = distill.Distill(env, distill.Config(teacher="ppo-PushCube-v2", **sizes), 3)
    numbers = [trainer.iterate() for _ in range(2)]
    assert trainer.steps == len(trainer.frames) == 2 * 2 * 3
    assert all(math.isfinite(value) for one in numbers for value in one.values()) and numbers[1]["episodes"] == 2
    env.close()


@WARP
def test_keyframes_are_learned_and_followed_on_a_warp_device(device, tmp_path):
    observe = ["policy", GRID]
    demos = _recorded(tmp_path / "a.h5", _seen(2, observe, control="ee_pose", autoreset="disabled"))
    env = _seen(2, observe, control="ee_pose", device=device)
    sizes = {"width": 4, "bins": 8, "updates": 2, "batch_size": 4, "demonstrations": 2, "rows": 2}
    trainer = voxel.Voxel(env, voxel.Config(**sizes), 3, demos)
    assert all(math.isfinite(value) for value in trainer.iterate().values())
    _acts(NetworkPolicy(trainer.actor), env, steps=1)
    env.close()
