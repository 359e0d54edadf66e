"""Robots as agents of the batched environment: dictionaries say what the flat tensors say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manikin
from manikin.env.adapters.agents import AgentsEnv
from manikin.env.observe import Vision
from manikin.errors import ActionError, ConfigError
from manikin.sense.imu import Imu
from manikin.sense.stack import Stack

TASK = "TwoArmLift-v3"
PAIR = "TwoRobotPickCube-v2"


def actions(env: AgentsEnv, seed: int = 0) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {
        name: torch.rand(env.num_envs, space.shape[0], generator=rng) * 2 - 1
        for name, space in env.single_action_space.items()
    }


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_dictionaries_do_and_say_what_the_flat_tensors_do_and_say(device: str) -> None:
    options = {"control": ("osc_pose", "joint_pos"), "horizon": 3, "physics_hz": 200, "device": device}
    env, flat = manikin.make(PAIR, 2, agents=True, **options), manikin.make(PAIR, 2, **options)
    assert env.agents == ("robot0", "robot1") and isinstance(env, AgentsEnv)
    assert {name: space.shape for name, space in env.single_action_space.items()} == {"robot0": (7,), "robot1": (8,)}
    seen, whole = env.reset(seed=0)[0], flat.reset(seed=0)[0]
    names = flat.observation_names
    for k in range(4):
        for agent, other in (("robot0", "robot1"), ("robot1", "robot0")):
            own = [i for i, name in enumerate(names) if f"/{other}_" not in name]
            assert torch.equal(seen[agent], whole[:, own]) and len(own) < len(names)
            assert env.shares.observation_names[agent] == [names[i] for i in own]
        given = actions(env, k)
        seen, reward, ended, over, info = env.step(given)
        both = torch.cat([given["robot0"], given["robot1"]], 1)
        whole, *same, told = flat.step(both)
        assert all(torch.equal(a, b) for a, b in zip((reward, ended, over), same, strict=True))
        assert ("final_obs" in info) == ("final_obs" in told)
        if "final_obs" in info:
            assert torch.equal(info["final_obs"]["robot0"][:, :9], told["final_obs"][:, :9])


def test_named_observations_pictures_sources_and_stacks_are_parted_too() -> None:
    observe = ["rgb+state", Imu(name="robot1_imu", on="robot1"), Stack(2, "policy")]
    vision = Vision(cameras=("base_camera",), size=(8, 6), renderer="rays")
    env = manikin.make(PAIR, 2, agents=True, observe=observe, vision=vision)
    seen, _ = env.reset(seed=0)
    assert "robot1_imu" in seen["robot1"] and "robot1_imu" not in seen["robot0"]
    for agent, other in (("robot0", "robot1"), ("robot1", "robot0")):
        policy = seen[agent]["policy"]
        assert policy[f"{agent}_qpos"].shape == (2, 2, 9) and not any(name.startswith(other) for name in policy)
        assert seen[agent]["cameras"]["base_camera"]["rgb"].shape == (2, 6, 8, 3)
        assert env.single_observation_space[agent].contains(
            {g: {k: (v[0].numpy() if not isinstance(v, dict) else {n: t[0].numpy() for n, t in v.items()})
                 for k, v in group.items()} for g, group in seen[agent].items()}
        )  # fmt: skip
    flat = manikin.make(PAIR, 2, agents=True, observe=["policy", Stack(3)])
    assert flat.reset(seed=0)[0]["robot0"].shape[:2] == (2, 3)
    assert flat.observation_space["robot0"].shape == tuple(flat.reset(seed=0)[0]["robot0"].shape)


def test_rows_are_frozen_and_snapshots_go_through_the_flat_one() -> None:
    env = manikin.make(TASK, 3, agents=True, robot="panda,panda", autoreset="disabled")
    env.reset(seed=0)
    kept = env.unwrapped.save()
    seen = env.step(actions(env), active=np.array([True, False, True]))[0]
    env.unwrapped.load(kept)
    assert torch.equal(env.step(actions(env), active=np.array([True, False, True]))[0]["robot0"], seen["robot0"])
    assert env.instruction == env.unwrapped.instruction


def test_a_single_robot_is_one_agent() -> None:
    env = manikin.make("PickCube-v2", 2, agents=True)
    flat = manikin.make("PickCube-v2", 2)
    (name,) = env.agents
    assert torch.equal(env.reset(seed=0)[0][name], flat.reset(seed=0)[0])


def test_wrong_actions_are_refused_in_words() -> None:
    env = manikin.make(PAIR, 2, agents=True)
    env.reset(seed=0)
    good = actions(env)
    before = env.unwrapped.state_hash()
    for bad, message in (
        ({"robot0": good["robot0"]}, r"each of \['robot0', 'robot1'\], got \['robot0'\]"),
        (torch.zeros(2, 16), r"each of \['robot0', 'robot1'\], got Tensor"),
        ({**good, "robot1": torch.zeros(2, 3)}, r"actions of robot1 \(robot1/joint1.* must have shape \(2, 8\)"),
        ({**good, "robot1": torch.full((2, 8), float("nan"))}, "not finite"),
    ):
        with pytest.raises(ActionError, match=message):
            env.step(bad)
    assert torch.equal(env.unwrapped.state_hash(), before)
    with pytest.raises(ConfigError, match="leave out arrays="):
        manikin.make(PAIR, 2, agents=True, arrays="numpy")  # type: ignore[call-overload]


def test_the_flat_environment_steps_on_dictionaries_of_each_robots_actions_too() -> None:
    """Against the flat action that they make together, to the bit."""
    options = {"control": ("osc_pose", "joint_pos"), "physics_hz": 200}
    env, flat = manikin.make(PAIR, 3, **options), manikin.make(PAIR, 3, **options)
    env.reset(seed=0), flat.reset(seed=0)
    dims = [dim.name for dim in env.controller.card.dims]
    for k in range(3):
        whole = torch.rand(3, len(dims), generator=torch.Generator().manual_seed(k)) * 2 - 1
        parts = {r: whole[:, [i for i, name in enumerate(dims) if name.startswith(r)]] for r in ("robot0", "robot1")}
        active = np.array([True, k < 2, True])
        for one, other in zip(env.step(parts, active=active)[:4], flat.step(whole, active=active)[:4], strict=True):
            assert torch.equal(one, other)
    assert torch.equal(env.state_hash(), flat.state_hash())
    with pytest.raises(ActionError, match=r"each of \['robot0', 'robot1'\], got \['robot1'\]"):
        env.step({"robot1": torch.zeros(3, 8)})
    assert torch.equal(env.state_hash(), flat.state_hash())
    assert env.shares.dims["robot1"] == list(range(7, 15))


def test_robots_of_rows_with_layouts_are_agents_too() -> None:
    """Each cabinet is another model: dictionaries do what the flat tensors do, in the batch and for PettingZoo."""
    task = "OpenCabinetDrawer-v2"
    flat, env, agents = manikin.make(task, 3), manikin.make(task, 3), manikin.make(task, 3, agents=True)
    seen, _ = flat.reset(seed=0)
    env.reset(seed=0)
    (name,) = agents.agents
    assert torch.equal(agents.reset(seed=0)[0][name], seen)
    action = torch.rand(3, 8, generator=torch.Generator().manual_seed(0)) * 2 - 1
    seen, reward, *_ = flat.step(action)
    assert torch.equal(env.step({name: action})[0], seen)
    own, same, *_ = agents.step({name: action})
    assert torch.equal(own[name], seen) and torch.equal(same, reward)
    pytest.importorskip("pettingzoo", reason="pip install 'manikin[multi]'")
    from manikin.env.adapters.parallel import ParallelTask

    zoo, alone = ParallelTask(task), manikin.make(task, 1, autoreset="disabled")
    assert np.array_equal(zoo.reset(seed=2)[0][name], alone.reset(seed=2)[0][0].numpy())
    told = zoo.step({name: np.full(8, 0.5, np.float32)})
    whole = alone.step(torch.full((1, 8), 0.5))
    assert np.array_equal(told[0][name], whole[0][0].numpy()) and told[1][name] == float(whole[1][0])
