"""FetchPickAndPlace-v4 of Gymnasium-Robotics; prints control steps per second."""

import sys
import time

import gymnasium
import gymnasium_robotics
import numpy as np

gymnasium.register_envs(gymnasium_robotics)
env = gymnasium.make("FetchPickAndPlace-v4", max_episode_steps=10**9)
env.reset(seed=0)
actions = np.random.default_rng(0).uniform(-1, 1, (64, 4)).astype(np.float32)
for action in actions[:50]:
    env.step(action)
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < float(sys.argv[1]):
    env.step(actions[steps % 64])
    steps += 1
print(steps / (time.perf_counter() - begin))
