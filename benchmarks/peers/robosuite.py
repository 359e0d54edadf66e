"""Lift of robosuite with its operational-space controller, no cameras; prints control steps per second."""

import sys
import time
import warnings

warnings.filterwarnings("ignore")
sys.path.pop(0)  # this file is named like the package
import numpy as np  # noqa: E402
import robosuite  # noqa: E402

env = robosuite.make(
    "Lift",
    robots="Panda",
    has_renderer=False,
    has_offscreen_renderer=False,
    use_camera_obs=False,
    control_freq=20,
    horizon=10**9,
    ignore_done=True,
)
env.reset()
low, high = env.action_spec
actions = np.random.default_rng(0).uniform(low, high, (64, len(low)))
for action in actions[:10]:
    env.step(action)
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < float(sys.argv[1]):
    env.step(actions[steps % 64])
    steps += 1
print(steps / (time.perf_counter() - begin))
