"""PickCube-v1 of ManiSkill3, state observations, CPU, joint delta positions; prints control steps per second."""

import sys
import time
import warnings

warnings.filterwarnings("ignore")
import gymnasium  # noqa: E402
import mani_skill.envs  # noqa: E402, F401
import torch  # noqa: E402

torch.set_num_threads(1)
env = gymnasium.make(
    "PickCube-v1", obs_mode="state", sim_backend="physx_cpu", render_backend="none", max_episode_steps=10**9
)
env.reset(seed=0)
actions = [env.action_space.sample() for _ in range(64)]
for action in actions[:50]:
    env.step(action)
env.reset()
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < float(sys.argv[1]):
    env.step(actions[steps % 64])
    steps += 1
print(steps / (time.perf_counter() - begin))
