"""Save a state, try sixteen futures from it, keep the best first action: the simplest planner.

python examples/save_and_load.py
"""

from __future__ import annotations

import torch

import manikin

env = manikin.make("PickCube-v2", control="joint_delta_pos", reward="dense", autoreset="disabled")
futures = manikin.make("PickCube-v2", num_envs=16, control="joint_delta_pos", reward="dense", autoreset="disabled")
env.reset(seed=3)
futures.reset(seed=0)
size = env.single_action_space.shape[0]
generator = torch.Generator().manual_seed(0)

totals = []
for _ in range(8):
    futures.load(env.save())  # one row into all sixteen
    candidates = torch.randn((16, size), generator=generator).clamp(-1, 1)
    candidates[0] = 0  # standing still is one of the choices
    value = sum(futures.step(candidates)[1] for _ in range(3))
    best = int(value.argmax())
    _, reward, _, _, _ = env.step(candidates[best : best + 1])
    totals.append(float(reward))
print("reward per step:", " ".join(f"{t:.3f}" for t in totals))
assert totals[-1] > totals[0], "planning brings the gripper nearer"

# what happened in a copy happens in the original, to the bit
snapshot = env.save()
futures.load(snapshot)
action = torch.full((1, size), 0.3)
for _ in range(5):
    env.step(action)
    futures.step(action.expand(16, size))
assert (futures.state_hash() == env.state_hash()).all()
env.close()
futures.close()
