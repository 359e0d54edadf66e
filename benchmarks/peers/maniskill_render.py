"""PickCube-v1 of ManiSkill3 with camera observations on the CPU; prints control steps (one image each) per second.

Arguments: seconds, width, height, obs_mode (``rgb`` or ``rgb+depth+segmentation``).
"""

import sys
import time
import warnings

warnings.filterwarnings("ignore")
import gymnasium  # noqa: E402
import mani_skill.envs  # noqa: E402, F401
import torch  # noqa: E402

torch.set_num_threads(1)
seconds, width, height, mode = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
env = gymnasium.make(
    "PickCube-v1",
    obs_mode=mode,
    sim_backend="physx_cpu",
    render_backend="cpu",
    max_episode_steps=10**9,
    sensor_configs=dict(width=width, height=height),
)
observation, _ = env.reset(seed=0)
assert observation["sensor_data"]["base_camera"]["rgb"].shape[1:3] == (height, width)
actions = [env.action_space.sample() for _ in range(64)]
for action in actions[:5]:
    env.step(action)
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < seconds:
    env.step(actions[steps % 64])
    steps += 1
print(steps / (time.perf_counter() - begin))
