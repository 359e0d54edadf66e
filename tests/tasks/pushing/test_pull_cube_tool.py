"""PullCubeTool: the tool's shape and weight, where things start, and the reward that ManiSkill3 gives."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import manikin
from manikin.eval.runner import run_episodes
from manikin.math import quat_from_yaw, quat_to_matrix, quat_to_yaw
from manikin.policy.expert import ExpertPolicy
from maniskill_rules import pull_cube_tool


def test_the_tool_weighs_what_its_two_parts_do() -> None:
    """A handle of 500 kg/m^3 and a hook of 1000, which overlap for half the handle's width."""
    env = manikin.make("PullCubeTool-v1")
    model = env.scene.model
    handle, hook = 500 * 0.2 * 0.05 * 0.05, 1000 * 0.05 * 0.1 * 0.05
    body = model.body("tool")
    assert body.mass[0] == pytest.approx(handle + hook)
    assert body.ipos[:2] == pytest.approx(
        [(0.1 * handle + 0.175 * hook) / (handle + hook), 0.05 * hook / (handle + hook)]
    )
    corners = [model.geom(f"tool/{k}").pos[:2] + s * model.geom(f"tool/{k}").size[:2] for k in (0, 1) for s in (-1, 1)]
    assert np.array(corners) == pytest.approx(np.array([[0, -0.025], [0.2, 0.025], [0.15, 0], [0.2, 0.1]]), abs=1e-9)


def test_things_start_where_the_original_puts_them_and_never_in_one_another() -> None:
    env = manikin.make("PullCubeTool-v1", 512)
    env.reset(seed=0)
    tool, cube, turn = env.h.tool.pos, env.h.cube.pos, quat_to_yaw(env.h.cube.quat)
    fields = ((tool, 0, -0.3, -0.1), (tool, 1, -0.3, -0.1), (cube, 0, 0.05, 0.25), (cube, 1, -0.25, 0.05))
    for pos, axis, low, high in (*fields, (turn[:, None], 0, -math.pi / 6, math.pi / 6)):
        least, most = pos[:, axis].min(), pos[:, axis].max()
        assert low - 1e-6 <= least < low + 0.03 * (high - low) and high - 0.03 * (high - low) < most <= high + 1e-6
    first = [(*tool[k, :2].tolist(), *cube[k, :2].tolist(), turn[k].item()) for k in range(512)]
    touching = []
    for row in range(0, 512, 16):
        model, data = env.world.data(row)
        pairs = [{model.geom(g).name.partition("/")[0] for g in contact.geom} for contact in data.contact]
        touching.append({"tool", "cube"} in pairs)
    assert not any(touching) and len(set(first)) == 512
    away = (cube[:, :2] - torch.tensor([-0.615, 0.0])).norm(dim=1)
    assert away.min() > 0.6


@pytest.mark.parametrize("published", [False, True])
def test_the_reward_is_ours_or_the_published_one(published: bool) -> None:
    """The tool is held by a gripper that closes on it at the start; the cube is put around its hook, near and far."""
    n = 64
    options = {
        "config": {"published_reward": published},
        "autoreset": "disabled",
        "terminate": False,
        "reward": "dense",
    }
    env = manikin.make("PullCubeTool-v1", n, **options)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    env.h.robot.set_qpos(env.h.robot.keyframe(), opening=0.8)
    env.world.forward()
    tcp = env.h.robot.tcp_pos.clone()
    yaw = torch.tensor(rng.uniform(-0.1, 0.1, n), dtype=torch.float32)
    hold = torch.stack([0.02 * yaw.cos(), 0.02 * yaw.sin(), torch.zeros(n)], 1)
    env.h.tool.set_pose(tcp - hold, quat_from_yaw(yaw))
    action = torch.zeros(n, env.controller.card.size)
    action[:, -1] = torch.where(torch.arange(n) % 4 == 0, 1.0, -1.0)
    paid, wanted = [], []
    for _ in range(3):
        around = env.h.tool.pos + torch.tensor(
            rng.uniform((-0.1, -0.1, -0.02), (0.25, 0.2, 0.02), (n, 3)), dtype=torch.float32
        )
        around[::3] = env.h.tool.pos[::3] + torch.tensor(
            rng.uniform((0.05, 0.04, 0), (0.12, 0.08, 0.0), (len(around[::3]), 3))
        )
        around[5], around[6] = torch.tensor([0.55, 0.1, 0.02]), torch.tensor([-0.1, 0.3, 0.02])
        env.h.cube.set_pose(around)
        _, reward, *_, info = env.step(action)
        for row in range(n):
            parts = {}
            for name in ("tool", "cube"):
                one = getattr(env.h, name).pose[row]
                parts[name] = SimpleNamespace(pos=one[:3].numpy(), rot=quat_to_matrix(one[3:]).numpy())
            held = bool(info["is_grasped"][row])
            state = SimpleNamespace(tcp=env.h.robot.tcp_pos[row].numpy(), grasped=held, **parts)
            wanted.append(pull_cube_tool(state, published=published)[0])
            paid.append(reward[row].item())
    assert paid == pytest.approx(wanted, abs=2e-4)
    assert len({round(value) for value in wanted}) >= 6
    assert min(wanted) < 0 and max(wanted) > 9


def test_the_expert_pulls_whatever_the_reward_is():
    env = manikin.make("PullCubeTool-v1", 8, config={"published_reward": True}, autoreset="disabled")
    run = run_episodes(env, ExpertPolicy(env), range(8))
    assert sum(one.success_once for one in run.results) >= 7
