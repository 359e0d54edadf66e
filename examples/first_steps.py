"""Sixteen environments at once; the same episode in another batch is the same episode.

python examples/first_steps.py
"""

from __future__ import annotations

import torch

import manikin


def play(num_envs: int, seeds: list[int], steps: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    """Move the first joint to and fro; returns the last observation (N, D) and the summed reward (N,)."""
    env = manikin.make("PickCube-v2", num_envs=num_envs, control="joint_delta_pos")
    obs, _ = env.reset(seed=seeds)
    total = torch.zeros(num_envs)
    for step in range(steps):
        action = torch.zeros(num_envs, *env.single_action_space.shape)
        action[:, 0] = 0.5 if step % 10 < 5 else -0.5
        obs, reward, _, _, _ = env.step(action)
        total += reward
    env.close()
    return obs, total


many, total_of_many = play(16, seeds=list(range(16)))
one, total_of_one = play(1, seeds=[5])
print(f"sixteen episodes, mean return {total_of_many.mean():.3f}")
assert torch.equal(many[5], one[0]), "episode 5 unfolds to the same bits alone and among sixteen"
assert torch.equal(total_of_many[5], total_of_one[0])
assert not torch.equal(many[4], many[5]), "other seeds are other episodes"
