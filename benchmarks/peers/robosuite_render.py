"""Lift with a Panda of robosuite with camera observations; prints control steps (one image each) per second.

Arguments: seconds, width, height, outputs (``rgb`` or ``rgb+depth+segmentation``).
"""

import sys
import time
import warnings

warnings.filterwarnings("ignore")
import numpy as np  # noqa: E402
import robosuite  # noqa: E402

seconds, width, height, outputs = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split("+")
env = robosuite.make(
    env_name="Lift",
    robots="Panda",
    has_renderer=False,
    has_offscreen_renderer=True,
    use_camera_obs=True,
    camera_names="agentview",
    camera_widths=width,
    camera_heights=height,
    camera_depths="depth" in outputs,
    camera_segmentations="instance" if "segmentation" in outputs else None,
    control_freq=20,
    horizon=10**9,
    ignore_done=True,
)
env.reset()
low, high = env.action_spec
actions = np.random.default_rng(0).uniform(low, high, (64, len(low)))
for action in actions[:5]:
    env.step(action)
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < seconds:
    env.step(actions[steps % 64])
    steps += 1
print(steps / (time.perf_counter() - begin))
